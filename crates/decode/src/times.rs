//! Times and durations, as text and as numbers of seconds.

use jiff::fmt::temporal::DateTimeParser;

use crate::value::Value;

static RFC_3339: DateTimeParser = DateTimeParser::new();

/// A time by RFC 3339 as Unix time, ns; 0 if it is none, or before 1970.
pub(crate) fn rfc3339(text: &[u8]) -> u64 {
    RFC_3339.parse_timestamp(text).map_or(0, |time| u64::try_from(time.as_nanosecond()).unwrap_or(0))
}

/// Unix time: seconds as a number, which has room for microseconds only, or RFC 3339. 0 for anything else.
pub(crate) fn unix(value: Value<'_>) -> u64 {
    match value {
        Value::Whole(seconds) => u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000),
        // A float that is out of range becomes the nearest number in it.
        Value::Real(seconds) => ((seconds * 1e6).round() as u64).saturating_mul(1_000),
        Value::Text(text) => rfc3339(text),
        _ => 0,
    }
}

/// Unix time in ns of one in ms.
pub(crate) fn of_ms(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

/// A duration as .NET writes it, `[-][d.]hh:mm:ss[.fffffff]`, in ns
/// (<https://learn.microsoft.com/dotnet/standard/base-types/standard-timespan-format-strings>).
pub(crate) fn timespan(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?;
    let fraction = number(fraction)?.checked_mul(10_i64.checked_pow(9_u32.checked_sub(fraction.len() as u32)?)?)?;
    let hours = number(days)?.checked_mul(24)?.checked_add(number(hours)?)?;
    let minutes = hours.checked_mul(60)?.checked_add(number(minutes)?)?;
    let seconds = minutes.checked_mul(60)?.checked_add(number(seconds)?)?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [
            ("1970-01-01T00:00:01.5Z", 1_500_000_000),
            ("1970-01-01T01:00:00.000000001+01:00", 1),
            ("1969-12-31T00:00:00Z", 0),
            ("today", 0),
        ] {
            assert_eq!(rfc3339(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn seconds() {
        assert_eq!(unix(Value::Real(1_742_921_669.158_209)), 1_742_921_669_158_209_000);
        assert_eq!(unix(Value::Whole(2)), 2_000_000_000);
        assert_eq!(unix(Value::Whole(-1)), 0);
        assert_eq!(unix(Value::Real(f64::MAX)), u64::MAX);
        assert_eq!(unix(Value::Text(b"1970-01-01T00:00:01.5Z")), 1_500_000_000);
        assert_eq!(unix(Value::Truth(true)), 0);
    }

    #[test]
    fn timespans() {
        for (text, expected) in [
            ("00:00:00.0041234", Some(4_123_400)),
            ("0.00:00:00.004", Some(4_000_000)),
            ("1.02:03:04", Some(93_784_000_000_000)),
            ("-00:00:01", Some(-1_000_000_000)),
            ("106752.00:00:00", None),
            ("00:00", None),
            ("00:00:00.0000000001", None),
            ("00:+1:00", None),
            ("", None),
            ("\u{661}:00:00", None),
        ] {
            assert_eq!(timespan(text.as_bytes()), expected, "{text}");
        }
    }
}
