//! Spans on their way to the store, column by column: filled on the receiving thread, encoded on the writing one.
//!
//! Every attribute key has a column of its own, up to a bound; what has none (too many keys, values of another type than
//! the key's first, keys that are no good names) goes into one column of JSON objects, so nothing is lost.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::dictionary::{Column, Guess, Ids, same};
use super::empty;
use super::file::CORE;
use crate::account::UNKNOWN_SERVICE;
use crate::config::Attributes;
use crate::json;
use crate::span::{Protocol, Source, Span, Value, Visitor};

/// Rows of a row group: larger ones cost more memory, hardly less CPU, and save hardly a byte.
const GROUP_ROWS: usize = 8_192;
/// Bytes that its spans may have in their messages.
const GROUP_BYTES: usize = 16 << 20;
/// Attribute keys that get a column.
const MAX_KEYS: usize = 128;
/// Longest key that gets a column, in bytes.
const MAX_KEY: usize = 200;
/// Attributes of an operation that are foreseen.
const MAX_ROUTE: usize = 256;
/// Longest attribute, as encoded, that is known again.
const MAX_ENCODED: usize = 64;
/// An attribute that was another so often in a row is not remembered any more.
const MAX_CHANGES: u8 = 8;
/// Stands in a route for a key without column.
const NO_COLUMN: u32 = u32::MAX;

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

/// An attribute of an earlier span: the next one of the same operation most likely has the same key, and often the value.
#[derive(Debug)]
struct Step {
    /// Empty if it has no column.
    key: Arc<[u8]>,
    column: u32,
    kind: Type,
    value: Guess,
    last: Encoded,
}

/// An attribute as it was encoded the last time, and the code of its value.
#[derive(Debug)]
struct Encoded {
    bytes: [u8; MAX_ENCODED],
    /// 0 if nothing is known.
    length: u8,
    /// How often it was another one in a row.
    changes: u8,
    code: u32,
}

impl Default for Encoded {
    fn default() -> Self {
        Self { bytes: [0; MAX_ENCODED], length: 0, changes: 0, code: 0 }
    }
}

impl Encoded {
    #[inline]
    fn is(&self, encoded: &[u8]) -> bool {
        encoded.len() == usize::from(self.length) && same(&self.bytes[..encoded.len()], encoded)
    }

    /// Remembers an attribute; one that is always another is not worth it.
    #[inline]
    fn set(&mut self, encoded: &[u8], code: u32) {
        if self.changes < MAX_CHANGES
            && let Some(bytes) = self.bytes.get_mut(..encoded.len())
        {
            bytes.copy_from_slice(encoded);
            (self.length, self.code) = (encoded.len() as u8, code);
            self.changes += 1;
        }
    }
}

/// What of a span has no dictionary. One after the other costs less than each into a column of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) span_id: [u8; 8],
    /// Unix time, ns.
    pub(super) start_ns: i64,
    pub(super) duration_ns: i64,
    /// Unix time, ns.
    pub(super) arrival_ns: i64,
    /// Index of the request; negative for none.
    pub(super) request: i64,
    /// Bytes in the message.
    pub(super) size: u32,
    /// [`crate::span::Kind`].
    pub(super) kind: u8,
    /// [`crate::span::Status`].
    pub(super) status: u8,
    /// [`Protocol`].
    pub(super) protocol: u8,
}

/// Some thousand spans, as columns.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(super) keys: Arc<Keys>,
    pub(super) trace_id: Ids<16>,
    pub(super) parent_id: Ids<8>,
    pub(super) rows: Vec<Row>,
    pub(super) service: Column,
    pub(super) instance: Column,
    pub(super) operation: Column,
    /// JSON objects of attributes without a column.
    pub(super) overflow: Column,
    /// By position in [`Keys::columns`]; those beyond the end have no value.
    pub(super) attributes: Vec<Column>,
    /// The attributes of the last span of each operation, in their order: the next is most likely alike.
    routes: Vec<Vec<Step>>,
    last_service: Guess,
    last_instance: Guess,
    last_operation: Guess,
    /// Bytes of all spans in their messages.
    bytes: usize,
    json: Vec<u8>,
}

impl Group {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
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
        self.parent_id.clear();
        self.rows.clear();
        self.service.clear();
        self.instance.clear();
        self.operation.clear();
        self.overflow.clear();
        self.attributes.iter_mut().for_each(Column::clear);
        self.routes.iter_mut().for_each(Vec::clear);
        empty(&mut self.json);
        (self.last_service, self.last_instance, self.last_operation) = Default::default();
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
        self.parent_id.push(span.parent_id.as_ref());
        self.rows.push(Row {
            span_id: span.span_id,
            start_ns: i64::try_from(span.start_ns).unwrap_or(i64::MAX),
            duration_ns: span.duration_ns,
            arrival_ns,
            request: request.map_or(-1, |index| index as i64),
            size: span.size,
            kind: span.kind as u8,
            status: span.status as u8,
            protocol: protocol as u8,
        });
        let service = if source.service.is_empty() { UNKNOWN_SERVICE.as_bytes() } else { source.service };
        let code = self.service.dictionary.text(service, &mut self.last_service);
        self.service.set(row, code);
        if let Some(instance) = source.instance {
            let code = self.instance.dictionary.text(instance, &mut self.last_instance);
            self.instance.set(row, code);
        }
        let operation = self.operation.dictionary.text(span.operation, &mut self.last_operation);
        self.operation.set(row, operation);
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
        let route = std::mem::take(&mut self.routes[operation]);
        self.json.clear();
        let mut columns = Columns { group: self, route, position: 0, row, which };
        span.attributes.visit(&mut columns);
        let route = columns.route;
        self.routes[operation] = route;
        if !self.json.is_empty() {
            self.json.push(b'}');
            let code = self.overflow.dictionary.text(&self.json, &mut Guess::default());
            self.overflow.set(row, code);
        }
    }

    /// Where values of a key go.
    #[inline(never)]
    fn step(&mut self, key: &[u8], value: Value<'_>) -> Step {
        let column = self.column(key, value);
        let known = self.keys.columns.get(column as usize);
        let (key, kind) = known.map_or_else(Default::default, |(name, kind)| (Arc::clone(name).into(), *kind));
        if column != NO_COLUMN && self.attributes.len() <= column as usize {
            self.attributes.resize_with(column as usize + 1, Column::default);
        }
        Step { key, column, kind, value: Guess::default(), last: Encoded::default() }
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

    /// Sets a value and returns its code; `None` if it does not fit into the column, or there is none.
    #[inline]
    fn set(&mut self, row: usize, step: &mut Step, value: Value<'_>) -> Option<u32> {
        let column = self.attributes.get_mut(step.column as usize).filter(|column| !column.has(row))?;
        let code = match (step.kind, value) {
            (Type::Text, Value::Text(text)) => column.dictionary.text(text, &mut step.value),
            (Type::Whole, Value::Whole(number)) => column.dictionary.fixed(number.to_le_bytes(), &mut step.value),
            (Type::Real, Value::Real(number)) => column.dictionary.fixed(number.to_le_bytes(), &mut step.value),
            (Type::Truth, Value::Truth(truth)) => u32::from(truth),
            _ => return None,
        };
        column.set(row, code);
        Some(code)
    }
}

/// Puts the attributes of one span into their columns.
struct Columns<'g> {
    group: &'g mut Group,
    /// The attributes of the last span of the same operation, and how far this one has come along them.
    route: Vec<Step>,
    position: usize,
    row: usize,
    which: Attributes,
}

impl Visitor for Columns<'_> {
    #[inline]
    fn takes(&mut self, encoded: &[u8]) -> bool {
        let Some(step) = self.route.get_mut(self.position) else { return false };
        if !step.last.is(encoded) {
            return false;
        }
        let column = self.group.attributes.get_mut(step.column as usize).filter(|column| !column.has(self.row));
        let Some(column) = column else { return false };
        column.set(self.row, step.last.code);
        step.last.changes = 0;
        self.position += 1;
        true
    }

    #[inline]
    fn attribute(&mut self, encoded: &[u8], key: &[u8], value: Value<'_>) {
        if self.which == Attributes::Few && !self.which.wants(key) {
            return;
        }
        let Self { group, route, position, row, .. } = self;
        if *position == route.len() {
            if *position == MAX_ROUTE {
                // No usual span: what is foreseen must not take more than what is stored.
                *position -= 1;
                route.pop();
            }
            route.push(group.step(key, value));
        }
        let step = &mut route[*position];
        if !same(&step.key, key) {
            *step = group.step(key, value);
        }
        *position += 1;
        match group.set(*row, step, value) {
            Some(code) => step.last.set(encoded, code),
            None => json::member(key, value, group.json.is_empty(), &mut group.json),
        }
    }
}
