//! Quantities as people write them: `250ms`, `2s`, `1m`; `10%`; `512MiB`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time: `250ms`, `2s`, `1m`, `1h`. A bare number is refused: which unit it means cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
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
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

impl FromStr for Time {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.to_owned(), wanted: "a time such as `250ms`, `2s`, `1m` or `1h`" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let seconds = match unit {
            "us" | "µs" => number / 1e6,
            "ms" => number / 1e3,
            "s" => number,
            "m" | "min" => number * 60.0,
            "h" => number * 3600.0,
            _ => return Err(error()),
        };
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| error())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        if micros.is_multiple_of(1_000_000) {
            write!(f, "{}s", micros / 1_000_000)
        } else if micros.is_multiple_of(1_000) {
            write!(f, "{}ms", micros / 1_000)
        } else {
            write!(f, "{micros}us")
        }
    }
}

impl FromStr for Ratio {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.to_owned(), wanted: "a share such as `10%` or `0.1`" };
        match split(text).ok_or_else(error)? {
            (number, "%") => Ok(Self(number / 100.0)),
            (number, "") => Ok(Self(number)),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to a millionth of a percent, so that 0.07 prints as 7%, not as 7.000000000000001%.
        write!(f, "{}%", (self.0 * 100.0 * 1e6).round() / 1e6)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError { text: text.to_owned(), wanted: "an amount of memory such as `512MiB` or `1GiB`" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let factor = match unit {
            "" | "B" => 1.0,
            "KiB" | "Ki" => 1024.0,
            "MiB" | "Mi" => 1024.0 * 1024.0,
            "GiB" | "Gi" => 1024.0 * 1024.0 * 1024.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            _ => return Err(error()),
        };
        Ok(Self((number * factor).round() as u64))
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
    ($type:ident, $pattern:literal, $expecting:literal, $from_number:expr) => {
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
                json_schema!({ "type": ["string", "number"], "pattern": $pattern, "description": $expecting })
            }
        }
    };
}

quantity!(Time, "^[0-9.]+ ?(us|µs|ms|s|m|min|h)$", "a time such as `250ms`, `2s`, `1m` or `1h`", |_| None);
quantity!(Ratio, "^[0-9.]+ ?%?$", "a share such as `10%` or `0.1`", |number| (number >= 0.0).then_some(Ratio(number)));
quantity!(
    Bytes,
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
    fn shares_and_memory_are_read_and_written_back() {
        assert_eq!("7%".parse::<Ratio>().map(|r| r.to_string()), Ok("7%".to_owned()));
        assert_eq!("0.1".parse::<Ratio>(), Ok(Ratio(0.1)));
        assert!("ten".parse::<Ratio>().is_err());
        assert_eq!("512MiB".parse::<Bytes>(), Ok(Bytes(512 << 20)));
        assert_eq!("64MB".parse::<Bytes>(), Ok(Bytes(64_000_000)));
        assert_eq!(Bytes(1 << 30).to_string(), "1GiB");
        assert!("5 apples".parse::<Bytes>().is_err());
    }
}
