//! Spans on their way to the store, column by column: filled on the receiving thread, encoded on the writing one.
//!
//! Every attribute key has a column of its own, up to a bound; what has none (too many keys, values of another type than
//! the key's first, keys that are no good names) goes into one column of JSON objects, so nothing is lost.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::dictionary::{Column, Ids, NULL, same};
use super::file::CORE;
use crate::account::UNKNOWN_SERVICE;
use crate::config::Attributes;
use crate::json;
use crate::span::{Protocol, Source, Span, Value};

/// Rows of a row group: larger ones cost more CPU and memory and save hardly a byte.
const GROUP_ROWS: usize = 16_384;
/// Bytes that its spans may have in their messages.
const GROUP_BYTES: usize = 16 << 20;
/// Attribute keys that get a column.
const MAX_KEYS: usize = 128;
/// Longest key that gets a column, in bytes.
const MAX_KEY: usize = 200;
/// Stands in a route for a key without column.
const NO_COLUMN: u32 = u32::MAX;

/// What a column of attributes holds, by the first value of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Whole,
    Real,
    Truth,
}

impl Type {
    fn of(value: Value<'_>) -> Option<Self> {
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
    fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        self.table.find(hash, |column| self.columns[*column as usize].0.as_bytes() == key).copied()
    }

    /// Whether a key can have a column: readers of Parquet tell names apart without regard to case.
    fn admits(&self, key: &[u8]) -> bool {
        let is_taken = |name: &str| name.as_bytes().eq_ignore_ascii_case(key);
        self.columns.len() < MAX_KEYS
            && (1..=MAX_KEY).contains(&key.len())
            && !CORE.iter().any(|name| is_taken(name))
            && !self.columns.iter().any(|(name, _)| is_taken(name))
    }

    fn add(&mut self, key: &str, kind: Type) -> u32 {
        let column = self.columns.len() as u32;
        self.columns.push((key.into(), kind));
        let (columns, hasher) = (&self.columns, &self.hasher);
        let hash = |column: &u32| hasher.hash_one(columns[*column as usize].0.as_bytes());
        self.table.insert_unique(hash(&column), column, hash);
        column
    }
}

/// Column and code of an attribute of an earlier span.
#[derive(Debug, Clone, Copy)]
struct Step {
    column: u32,
    code: u32,
}

/// Some thousand spans, as columns.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(super) keys: Arc<Keys>,
    pub(super) trace_id: Ids<16>,
    /// 8 bytes a row.
    pub(super) span_id: Vec<u8>,
    pub(super) parent_id: Ids<8>,
    /// [`crate::span::Kind`].
    pub(super) kind: Vec<u8>,
    pub(super) service: Column,
    pub(super) instance: Column,
    pub(super) operation: Column,
    /// Unix time, ns.
    pub(super) start_ns: Vec<i64>,
    pub(super) duration_ns: Vec<i64>,
    /// [`crate::span::Status`].
    pub(super) status: Vec<u8>,
    /// [`Protocol`].
    pub(super) protocol: Vec<u8>,
    /// Unix time, ns.
    pub(super) arrival_ns: Vec<i64>,
    /// Bytes in the message.
    pub(super) size: Vec<i64>,
    /// Index of the request; negative for none.
    pub(super) request: Vec<i64>,
    /// JSON objects of attributes without a column.
    pub(super) overflow: Column,
    /// By position in [`Keys::columns`]; those beyond the end have no value.
    pub(super) attributes: Vec<Column>,
    /// The attributes of the last span of each operation, in their order: the next is most likely alike.
    routes: Vec<Vec<Step>>,
    /// Bytes of all spans in their messages.
    bytes: usize,
    json: Vec<u8>,
}

impl Group {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether nothing more should come in.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= GROUP_ROWS || self.bytes >= GROUP_BYTES
    }

    /// Takes over the columns of the group before, but not its rows.
    pub(super) fn succeed(&mut self, before: &Self) {
        self.keys = Arc::clone(&before.keys);
    }

    /// Forgets all rows but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.trace_id.clear();
        self.span_id.clear();
        self.parent_id.clear();
        self.kind.clear();
        self.service.clear();
        self.instance.clear();
        self.operation.clear();
        self.start_ns.clear();
        self.duration_ns.clear();
        self.status.clear();
        self.protocol.clear();
        self.arrival_ns.clear();
        self.size.clear();
        self.request.clear();
        self.overflow.clear();
        self.attributes.iter_mut().for_each(Column::clear);
        self.routes.iter_mut().for_each(Vec::clear);
        self.bytes = 0;
    }

    /// Appends a span.
    pub(super) fn push(
        &mut self,
        span: &Span<'_>,
        source: &Source<'_>,
        request: Option<u64>,
        protocol: Protocol,
        arrival_ns: i64,
        which: Attributes,
    ) {
        let row = self.len();
        self.trace_id.push(Some(&span.trace_id));
        self.span_id.extend_from_slice(&span.span_id);
        self.parent_id.push(span.parent_id.as_ref());
        self.kind.push(span.kind as u8);
        let service = if source.service.is_empty() { UNKNOWN_SERVICE.as_bytes() } else { source.service };
        let code = self.service.dictionary.text(service, self.service.last());
        self.service.set(row, code);
        if let Some(instance) = source.instance {
            let code = self.instance.dictionary.text(instance, self.instance.last());
            self.instance.set(row, code);
        }
        let operation = self.operation.dictionary.text(span.operation, self.operation.last());
        self.operation.set(row, operation);
        self.start_ns.push(i64::try_from(span.start_ns).unwrap_or(i64::MAX));
        self.duration_ns.push(span.duration_ns);
        self.status.push(span.status as u8);
        self.protocol.push(protocol as u8);
        self.arrival_ns.push(arrival_ns);
        self.size.push(i64::from(span.size));
        self.request.push(request.map_or(-1, |index| index as i64));
        self.bytes += span.size as usize;
        if which != Attributes::None {
            self.push_attributes(span, row, operation as usize, which);
        }
    }

    fn push_attributes(&mut self, span: &Span<'_>, row: usize, operation: usize, which: Attributes) {
        if self.routes.len() <= operation {
            self.routes.resize_with(operation + 1, Vec::new);
        }
        // Taken out, so that it and the columns can be changed side by side.
        let mut route = std::mem::take(&mut self.routes[operation]);
        let mut position = 0;
        self.json.clear();
        span.attributes.visit(|key, value| {
            if which == Attributes::Few && !which.wants(key) {
                return;
            }
            if position == route.len() {
                route.push(Step { column: self.column(key, value), code: NULL });
            }
            let step = &mut route[position];
            if !self.is_key(step.column, key) {
                *step = Step { column: self.column(key, value), code: NULL };
            }
            position += 1;
            match self.set(row, *step, value) {
                Some(code) => step.code = code,
                None => json::member(key, value, self.json.is_empty(), &mut self.json),
            }
        });
        self.routes[operation] = route;
        if !self.json.is_empty() {
            self.json.push(b'}');
            let code = self.overflow.dictionary.text(&self.json, NULL);
            self.overflow.set(row, code);
        }
    }

    #[inline]
    fn is_key(&self, column: u32, key: &[u8]) -> bool {
        self.keys.columns.get(column as usize).is_some_and(|(name, _)| same(name.as_bytes(), key))
    }

    /// The column of a key, made if there is none yet.
    fn column(&mut self, key: &[u8], value: Value<'_>) -> u32 {
        if let Some(column) = self.keys.find(key) {
            return column;
        }
        match (Type::of(value), std::str::from_utf8(key)) {
            (Some(kind), Ok(name)) if self.keys.admits(key) => Arc::make_mut(&mut self.keys).add(name, kind),
            _ => NO_COLUMN,
        }
    }

    /// Sets a value; its code, or `None` if the value does not fit into the column.
    #[inline]
    fn set(&mut self, row: usize, step: Step, value: Value<'_>) -> Option<u32> {
        let number = step.column as usize;
        let (_, kind) = self.keys.columns.get(number)?;
        if self.attributes.len() <= number {
            self.attributes.resize_with(number + 1, Column::default);
        }
        let column = &mut self.attributes[number];
        if column.has(row) {
            return None;
        }
        let code = match (kind, value) {
            (Type::Text, Value::Text(text)) => column.dictionary.text(text, step.code),
            (Type::Whole, Value::Whole(number)) => column.dictionary.fixed(number.to_le_bytes(), step.code),
            (Type::Real, Value::Real(number)) => column.dictionary.fixed(number.to_le_bytes(), step.code),
            (Type::Truth, Value::Truth(truth)) => u32::from(truth),
            _ => return None,
        };
        column.set(row, code);
        Some(code)
    }
}
