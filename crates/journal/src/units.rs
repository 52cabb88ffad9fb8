//! Quantities as people write them: `250ms`, `2s`, `1m`; `10%`; `512MiB`.
//!
//! What is written (`Display`, `Serialize`) reads back as exactly the same quantity, so that the resolved copy of a
//! study is the study. Whole numbers are therefore never taken through floating point.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time: `250ms`, `2s`, `1m`, `1h`. A bare number is refused: which unit it means cannot be known.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Time(pub Duration);

/// A share: `10%` or `0.1`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Ratio(pub f64);

/// An amount of memory: `512MiB`, `1GiB`, `64MB`, or bytes as a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A quantity that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct UnitError {
    text: String,
    wanted: &'static str,
}

impl Time {
    /// From seconds, which must not be negative.
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self(Duration::from_secs_f64(seconds))
    }

    /// In seconds.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0.as_secs_f64()
    }
}

/// Splits `12.5ms` into the number and the unit.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text[end..].trim()))
}

/// `number` times `factor`, exactly for whole numbers, rounded to the nearest for others; `None` beyond `u64`.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let product = (number.parse::<f64>().ok()? * factor as f64).round();
    (product < u64::MAX as f64).then_some(product as u64)
}

impl FromStr for Time {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.to_owned(), wanted: "a time such as `250ms`, `2s`, `1m` or `1h`" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let nanoseconds = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(error()),
        };
        scaled(number, nanoseconds).map(|total| Self(Duration::from_nanos(total))).ok_or_else(error)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        for (factor, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
            if nanos.is_multiple_of(factor) {
                return write!(f, "{}{unit}", nanos / factor);
            }
        }
        write!(f, "{nanos}ns")
    }
}

impl FromStr for Ratio {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.to_owned(), wanted: "a share such as `10%` or `0.1`" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let number: f64 = number.parse().map_err(|_| error())?;
        match unit {
            "%" => Ok(Self(number / 100.0)),
            "" => Ok(Self(number)),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to a millionth of a percent, so that 0.07 prints as 7%, not as 7.000000000000001%; but only if that
        // reads back as the same number.
        let percent = (self.0 * 100.0 * 1e6).round() / 1e6;
        if percent / 100.0 == self.0 { write!(f, "{percent}%") } else { write!(f, "{}", self.0) }
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.to_owned(), wanted: "an amount of memory such as `512MiB` or `1GiB`" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let factor = match unit {
            "" | "B" => 1,
            "KiB" | "Ki" => 1 << 10,
            "MiB" | "Mi" => 1 << 20,
            "GiB" | "Gi" => 1 << 30,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return Err(error()),
        };
        scaled(number, factor).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (factor, unit) in [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
            if self.0 >= factor && self.0.is_multiple_of(factor) {
                return write!(f, "{}{unit}", self.0 / factor);
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// Serde and schema for a quantity that is written as a string, or as a plain number if `from_number` allows it.
macro_rules! quantity {
    ($type:ident, $json:tt, $pattern:literal, $expecting:literal, $from_number:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        self.visit_f64(number as f64)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        self.visit_f64(number as f64)
                    }
                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$type, E> {
                        let convert: fn(f64) -> Option<$type> = $from_number;
                        convert(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": $json, "pattern": $pattern, "description": $expecting })
            }
        }
    };
}

quantity!(Time, "string", "^[0-9.]+ ?(ns|us|µs|ms|s|m|min|h)$", "a time such as `250ms`, `2s`, `1m` or `1h`", |_| {
    None
});
quantity!(Ratio, ["string", "number"], "^[0-9.]+ ?%?$", "a share such as `10%` or `0.1`", |number| (number >= 0.0)
    .then_some(Ratio(number)));
quantity!(
    Bytes,
    ["string", "number"],
    "^[0-9.]+ ?(B|KiB|Ki|MiB|Mi|GiB|Gi|kB|KB|MB|GB)?$",
    "an amount of memory such as `512MiB` or `1GiB`",
    |number| { (number >= 0.0).then_some(Bytes(number as u64)) }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_back() {
        for (text, seconds, written) in [
            ("250ms", 0.25, "250ms"),
            ("2s", 2.0, "2s"),
            ("1m", 60.0, "60s"),
            ("1.5 s", 1.5, "1500ms"),
            ("100us", 1e-4, "100us"),
        ] {
            let time: Time = text.parse().expect(text);
            assert!((time.as_seconds() - seconds).abs() < 1e-12, "{text}");
            assert_eq!(time.to_string(), written);
        }
        for text in ["", "2", "s", "-1s", "2 weeks", "NaNs"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn whole_numbers_keep_every_digit() {
        assert_eq!("18446744073709551615B".parse::<Bytes>(), Ok(Bytes(u64::MAX)));
        assert_eq!("9007199254740993ns".parse::<Time>().map(|t| t.to_string()), Ok("9007199254740993ns".to_owned()));
        for text in ["18446744073709551616B", "99999999999GiB", "99999999999h", "1.2.3s", ".s"] {
            assert!(text.parse::<Bytes>().is_err() && text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_and_memory_are_read_and_written_back() {
        assert_eq!(Ratio(1.0 / 3.0).to_string(), "0.3333333333333333");
        assert_eq!("7%".parse::<Ratio>().map(|r| r.to_string()), Ok("7%".to_owned()));
        assert_eq!("0.1".parse::<Ratio>(), Ok(Ratio(0.1)));
        assert!("ten".parse::<Ratio>().is_err());
        assert_eq!("512MiB".parse::<Bytes>(), Ok(Bytes(512 << 20)));
        assert_eq!("64MB".parse::<Bytes>(), Ok(Bytes(64_000_000)));
        assert_eq!(Bytes(1 << 30).to_string(), "1GiB");
        assert!("5 apples".parse::<Bytes>().is_err());
    }
}
