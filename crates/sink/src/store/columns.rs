//! The columns of span files: those that every file has, and one for each key of an attribute.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use unladen_decode::value::Value;

/// Attribute keys that get a column.
const MAX_KEYS: usize = 128;
/// Longest key that gets a column, in bytes.
const MAX_KEY: usize = 200;

/// Physical types of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int64,
    Double,
    ByteArray,
    /// Of so many bytes.
    Fixed(u8),
}

impl Physical {
    /// Its number in the footer.
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Boolean => 0,
            Self::Int64 => 2,
            Self::Double => 5,
            Self::ByteArray => 6,
            Self::Fixed(_) => 7,
        }
    }
}

/// What bytes mean: numbers of the older `ConvertedType` and of the field of `LogicalType`, since readers know one or the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Plain,
    Utf8,
    Json,
}

impl Meaning {
    /// Its numbers in the footer.
    pub(super) fn numbers(self) -> Option<(i32, u8)> {
        match self {
            Self::Plain => None,
            Self::Utf8 => Some((0, 1)),
            Self::Json => Some((19, 12)),
        }
    }
}

/// A column that every file has.
#[derive(Debug)]
pub(super) struct Core {
    /// Its name.
    pub(super) name: &'static str,
    pub(super) physical: Physical,
    pub(super) is_optional: bool,
    pub(super) meaning: Meaning,
}

const fn core(name: &'static str, physical: Physical, is_optional: bool, meaning: Meaning) -> Core {
    Core { name, physical, is_optional, meaning }
}

/// One row per span; columns of attributes follow. `request` is the index of the request that started the trace,
/// `attributes` a JSON object of those that have no column. Times are plain numbers of nanoseconds, because several
/// readers refuse Parquet's own nanosecond timestamps.
pub(super) const CORE: [Core; 15] = [
    core("trace_id", Physical::Fixed(16), false, Meaning::Plain),
    core("span_id", Physical::Fixed(8), false, Meaning::Plain),
    core("parent_id", Physical::Fixed(8), true, Meaning::Plain),
    core("kind", Physical::ByteArray, false, Meaning::Utf8),
    core("service", Physical::ByteArray, false, Meaning::Utf8),
    core("instance", Physical::ByteArray, true, Meaning::Utf8),
    core("operation", Physical::ByteArray, false, Meaning::Utf8),
    core("start_ns", Physical::Int64, false, Meaning::Plain),
    core("duration_ns", Physical::Int64, false, Meaning::Plain),
    core("status", Physical::ByteArray, false, Meaning::Utf8),
    core("protocol", Physical::ByteArray, false, Meaning::Utf8),
    core("arrival_ns", Physical::Int64, false, Meaning::Plain),
    core("size", Physical::Int64, false, Meaning::Plain),
    core("request", Physical::Int64, true, Meaning::Plain),
    core("attributes", Physical::ByteArray, true, Meaning::Json),
];

/// What a column of attributes holds, by the first value of its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Type {
    #[default]
    Text,
    Whole,
    Real,
    Truth,
}

impl Type {
    /// The type for a value; those that are no plain ones have none.
    pub(super) fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(_) => Some(Self::Text),
            Value::Whole(_) => Some(Self::Whole),
            Value::Real(_) => Some(Self::Real),
            Value::Truth(_) => Some(Self::Truth),
            Value::Json(_) => None,
        }
    }
}

/// Name and type of every column of attributes; once there, a column stays.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    pub(super) columns: Vec<(Arc<str>, Type)>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Keys {
    /// Column of a key.
    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        self.table.find(hash, |column| self.columns[*column as usize].0.as_bytes() == key).copied()
    }

    /// Whether a key can have a column: readers of Parquet tell names apart without regard to case.
    pub(super) fn admits(&self, key: &[u8]) -> bool {
        let is_taken = |name: &str| name.as_bytes().eq_ignore_ascii_case(key);
        self.columns.len() < MAX_KEYS
            && (1..=MAX_KEY).contains(&key.len())
            && !CORE.iter().any(|core| is_taken(core.name))
            && !self.columns.iter().any(|(name, _)| is_taken(name))
    }

    /// Adds a column; its number.
    pub(super) fn add(&mut self, key: &str, kind: Type) -> u32 {
        let column = self.columns.len() as u32;
        self.columns.push((key.into(), kind));
        let (columns, hasher) = (&self.columns, &self.hasher);
        let hash = |column: &u32| hasher.hash_one(columns[*column as usize].0.as_bytes());
        self.table.insert_unique(hash(&column), column, hash);
        column
    }
}
