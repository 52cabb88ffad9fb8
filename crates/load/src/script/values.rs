//! Values for `{{name}}`: pure functions of seed, name and iteration, so that a load can be repeated exactly and threads and
//! shards need not agree on anything. Files are read once.

use std::path::Path;

use unladen_trace::mix;

use crate::error::LoadError;
use crate::plan::Value;

/// A value, ready to be made.
#[derive(Debug, Clone)]
pub(crate) struct ValueGenerator {
    kind: Kind,
    /// Keeps values of different names apart.
    salt: u64,
}

/// What it makes.
#[derive(Debug, Clone)]
enum Kind {
    Counter(i64),
    Integer(i64, i64),
    Text(u32),
    Uuid,
    Rows(Vec<Vec<u8>>, bool),
}

/// Letters and digits of [`Value::Text`].
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A number below `below`, from a random one (Lemire's multiplication, without its rejection: the bias is below 2^-32 for
/// everything that fits into 32 bits).
fn scale(random: u64, below: u64) -> u64 {
    ((u128::from(random) * u128::from(below)) >> 64) as u64
}

impl ValueGenerator {
    /// The maker of a value.
    ///
    /// # Errors
    /// [`LoadError::Plan`] if it makes no sense, [`LoadError::Read`] if a file cannot be read.
    pub(crate) fn new(name: &str, value: &Value, seed: u64) -> Result<Self, LoadError> {
        let refuse =
            |value: String, remedy| Err(LoadError::Plan { field: "values", value: format!("{name}: {value}"), remedy });
        let kind = match value {
            Value::Counter { from } => Kind::Counter(*from),
            Value::Integer { min, max } if min <= max => Kind::Integer(*min, *max),
            Value::Integer { min, max } => return refuse(format!("{min} to {max}"), "write the smaller number as min"),
            Value::Text { length } if *length <= 1 << 20 => Kind::Text(*length),
            Value::Text { length } => return refuse(length.to_string(), "a text has at most 1,048,576 letters"),
            Value::Uuid => Kind::Uuid,
            Value::Csv { file, column, random } => Kind::Rows(rows(file, column)?, *random),
        };
        let salt = name.bytes().fold(mix(seed ^ 0x5eed), |salt, byte| mix(salt ^ u64::from(byte)));
        Ok(Self { kind, salt })
    }

    /// Writes the value of an iteration.
    pub(crate) fn write(&self, iteration: u64, into: &mut Vec<u8>) {
        let random = |number: u64| mix(mix(self.salt ^ iteration).wrapping_add(number));
        match &self.kind {
            Kind::Counter(from) => {
                into.extend_from_slice(from.wrapping_add_unsigned(iteration).to_string().as_bytes());
            }
            Kind::Integer(min, max) => {
                let span = max.abs_diff(*min);
                let offset = if span == u64::MAX { random(0) } else { scale(random(0), span + 1) };
                into.extend_from_slice(min.wrapping_add_unsigned(offset).to_string().as_bytes());
            }
            Kind::Text(length) => {
                into.extend((0..*length).map(|at| LETTERS[scale(random(u64::from(at)), 62) as usize]));
            }
            Kind::Uuid => {
                let (high, low) = (random(0) & !0xf000 | 0x4000, random(1) & !(0b11 << 62) | (0b10 << 62));
                let text = format!(
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    high >> 32,
                    (high >> 16) & 0xffff,
                    high & 0xffff,
                    low >> 48,
                    low & 0xffff_ffff_ffff
                );
                into.extend_from_slice(text.as_bytes());
            }
            Kind::Rows(rows, any) => {
                let count = rows.len() as u64;
                let at = if *any { scale(random(0), count) } else { iteration % count.max(1) };
                into.extend_from_slice(rows.get(at as usize).map_or(&[][..], Vec::as_slice));
            }
        }
    }
}

/// A column of a CSV file.
fn rows(file: &Path, column: &str) -> Result<Vec<Vec<u8>>, LoadError> {
    let failed = |message: String| LoadError::Read { path: file.to_owned(), message };
    let mut reader = csv::Reader::from_path(file).map_err(|error| failed(error.to_string()))?;
    let names = reader.byte_headers().map_err(|error| failed(error.to_string()))?;
    let at = names
        .iter()
        .position(|name| name == column.as_bytes())
        .ok_or_else(|| failed(format!("its first line names no column {column:?}")))?;
    let mut rows = Vec::new();
    for record in reader.byte_records() {
        let record = record.map_err(|error| failed(error.to_string()))?;
        rows.push(record.get(at).unwrap_or_default().to_vec());
    }
    if rows.is_empty() { Err(failed("it has no rows".to_owned())) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn make(name: &str, value: &Value, iteration: u64) -> String {
        let mut out = Vec::new();
        ValueGenerator::new(name, value, 1).expect("a good value").write(iteration, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn counters_count_and_integers_stay_in_their_range() {
        assert_eq!(make("n", &Value::Counter { from: -1 }, 3), "2");
        let dice = Value::Integer { min: 1, max: 6 };
        let seen: BTreeSet<i64> = (0..200).map(|at| make("d", &dice, at).parse().expect("a number")).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        let all = Value::Integer { min: i64::MIN, max: i64::MAX };
        assert!((0..100).all(|at| make("a", &all, at).parse::<i64>().is_ok()));
        assert!(ValueGenerator::new("x", &Value::Integer { min: 2, max: 1 }, 1).is_err());
    }

    #[test]
    fn texts_and_uuids_look_as_they_should_and_differ() {
        assert_eq!(make("t", &Value::Text { length: 20 }, 0).len(), 20);
        let uuids: BTreeSet<String> = (0..1000).map(|at| make("u", &Value::Uuid, at)).collect();
        assert_eq!(uuids.len(), 1000);
        for uuid in uuids {
            let parts: Vec<&str> = uuid.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uuid}");
            assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{uuid}");
        }
        assert_eq!(make("u", &Value::Uuid, 7), make("u", &Value::Uuid, 7), "the same each time");
        assert_ne!(make("u", &Value::Uuid, 7), make("v", &Value::Uuid, 7), "names differ");
    }

    #[test]
    fn rows_of_a_file_come_in_order_or_in_any() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("users.csv");
        std::fs::write(&file, "id,name\n1,\"Ann, B.\"\n2,Bob\n").expect("written");
        let column = |column: &str, random| Value::Csv { file: file.clone(), column: column.to_owned(), random };
        let names: Vec<String> = (0..3).map(|at| make("n", &column("name", false), at)).collect();
        assert_eq!(names, ["Ann, B.", "Bob", "Ann, B."]);
        let any: BTreeSet<String> = (0..50).map(|at| make("n", &column("id", true), at)).collect();
        assert_eq!(any.into_iter().collect::<Vec<_>>(), ["1", "2"]);
        let error = ValueGenerator::new("n", &column("age", false), 1).expect_err("no such column").to_string();
        assert!(error.contains("users.csv") && error.contains("age"), "{error}");
    }
}
