//! Spans on their way to the store, column by column: filled on the receiving thread, encoded on the writing one.
//!
//! Every attribute key has a column of its own, up to a bound; what has none (too many keys, values of another type than
//! the key's first, keys that are no good names) goes into one column of JSON objects, so nothing is lost.

use std::sync::Arc;

use unladen_decode::json;
use unladen_decode::span::{Protocol, Source, Span};
use unladen_decode::value::{Value, Visitor};

use super::columns::{Keys, Type};
use super::dictionary::{Column, Guess, Ids, Presence};
use crate::buffers::{empty, same};
use crate::config::Attributes;

/// Rows of a row group: larger ones cost more memory, hardly less CPU, and save hardly a byte; smaller ones are synced more
/// often.
const GROUP_ROWS: usize = 16_384;
/// Bytes that its spans may have in their messages.
const GROUP_BYTES: usize = 16 << 20;
/// Attributes of an operation that are foreseen, and of all operations.
const MAX_ROUTE: usize = 256;
const MAX_STEPS: usize = 16_384;
/// Operations whose memory for that is kept for the next group.
const RETAINED_ROUTES: usize = 256;
/// Operations of which is foreseen what follows.
const MAX_FOLLOWING: usize = 4_096;
/// Longest attribute, as encoded, that is known again.
const MAX_ENCODED: usize = 64;
/// An attribute that was another so often in a row is not remembered any more.
const MAX_CHANGES: u8 = 8;
/// Stands in a route for a key without column.
const NO_COLUMN: u32 = u32::MAX;

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
    /// [`unladen_decode::span::Kind`].
    pub(super) kind: u8,
    /// [`unladen_decode::span::Status`].
    pub(super) status: u8,
    /// [`Protocol`].
    pub(super) protocol: u8,
}

/// Service and instance of a group's rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    service: u32,
    instance: Option<u32>,
}

/// Some thousand spans, as columns.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(super) keys: Arc<Keys>,
    pub(super) trace_id: Ids<16>,
    pub(super) parent_id: Ids<8>,
    pub(super) has_parent: Presence,
    pub(super) rows: Vec<Row>,
    pub(super) service: Column,
    pub(super) instance: Column,
    pub(super) operation: Column,
    /// JSON objects of attributes without a column.
    pub(super) overflow: Column,
    /// By position in [`Keys::columns`]; those beyond the end have no value.
    pub(super) attributes: Vec<Column>,
    /// By operation: the attributes of its last span, in their order, as the next is most likely alike.
    routes: Vec<Vec<Step>>,
    /// By operation: the one that came after it the last time.
    following: Vec<Guess>,
    /// How many attributes that are.
    steps: usize,
    last_service: Guess,
    last_instance: Guess,
    last_operation: usize,
    /// Bytes of all spans in their messages, and of what is kept as JSON.
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
        self.has_parent.clear();
        self.rows.clear();
        self.service.clear();
        self.instance.clear();
        self.operation.clear();
        self.overflow.clear_and_learn();
        self.attributes.iter_mut().for_each(Column::clear_and_learn);
        self.routes.truncate(RETAINED_ROUTES);
        self.routes.iter_mut().for_each(Vec::clear);
        self.steps = 0;
        empty(&mut self.json);
        self.following.clear();
        (self.last_service, self.last_instance, self.last_operation) = Default::default();
        self.bytes = 0;
    }

    /// Codes of what spans come from; of this group's rows only.
    pub(super) fn origin(&mut self, source: &Source<'_>) -> Origin {
        Origin {
            service: self.service.dictionary.text(source.service(), &mut self.last_service),
            instance: source.instance.map(|name| self.instance.dictionary.text(name, &mut self.last_instance)),
        }
    }

    /// Appends a span.
    pub(super) fn push(
        &mut self,
        span: &Span<'_>,
        origin: Origin,
        request: Option<u64>,
        protocol: Protocol,
        arrival_ns: i64,
        which: Attributes,
    ) {
        let row = self.len();
        self.trace_id.push(&span.trace_id);
        if let Some(parent_id) = &span.parent_id {
            self.parent_id.push(parent_id);
            self.has_parent.set(row);
        }
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
        self.service.set(row, origin.service);
        if let Some(instance) = origin.instance {
            self.instance.set(row, instance);
        }
        let operation = self.operation(span.operation);
        self.operation.set(row, operation);
        self.bytes += span.size as usize;
        if which != Attributes::None {
            self.push_attributes(span, row, operation as usize, which);
        }
    }

    /// Code of an operation.
    #[inline]
    fn operation(&mut self, name: &[u8]) -> u32 {
        // What follows what is mostly the same.
        let mut guess = self.following.get(self.last_operation).copied().unwrap_or_default();
        let prefetched = guess.code();
        let operation = self.operation.dictionary.text(name, &mut guess);
        if operation != prefetched && self.last_operation < MAX_FOLLOWING {
            if self.following.len() <= self.last_operation {
                self.following.resize_with(self.last_operation + 1, Guess::default);
            }
            self.following[self.last_operation] = guess;
        }
        self.last_operation = operation as usize;
        operation
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
            // Escapes take up to six times as much as what they stand for.
            self.bytes += self.json.len();
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
        let mut unforeseen;
        let step = if let Some(step) = route.get_mut(*position) {
            if !same(&step.key, key) {
                *step = group.step(key, value);
            }
            *position += 1;
            step
        } else {
            unforeseen = group.step(key, value);
            if *position < MAX_ROUTE && group.steps < MAX_STEPS {
                group.steps += 1;
                *position += 1;
                route.push(unforeseen);
                &mut route[*position - 1]
            } else {
                // No usual spans: what is foreseen must not take more than what is stored.
                &mut unforeseen
            }
        };
        match group.set(*row, step, value) {
            Some(code) => step.last.set(encoded, code),
            None => json::member(key, value, group.json.is_empty(), &mut group.json),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use unladen_decode::attributes::{RawAttributes, logged as log};
    use unladen_decode::wire::{put_bytes, put_number};

    /// What a span says, by key; numbers are whole or text by their sign.
    type NumberedAttributes = Vec<(u8, i64)>;

    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut message = Vec::new();
        fields.iter().for_each(|(field, bytes)| put_bytes(&mut message, *field, bytes));
        message
    }

    fn otlp(attributes: &NumberedAttributes) -> Vec<u8> {
        let attribute = |(key, number): &(u8, i64)| {
            let text = number.to_string().repeat(*key as usize + 1);
            // Not left out if it is 0.
            let value = if *number < 0 { message(&[(1, text.as_bytes())]) } else { vec![0x18, *number as u8] };
            message(&[(9, &message(&[(1, format!("key.{key}").as_bytes()), (2, &value)]))])
        };
        let mut span: Vec<u8> = attributes.iter().flat_map(attribute).collect();
        put_number(&mut span, 6, 1);
        span
    }

    fn logged(numbered: &NumberedAttributes) -> Vec<u8> {
        let mut attributes = Vec::new();
        for (key, number) in numbered {
            let text = number.to_string().repeat(*key as usize + 1);
            let value = if *number < 0 { Value::Text(text.as_bytes()) } else { Value::Whole(*number) };
            log::put(format!("key.{key}").as_bytes(), value, &mut attributes);
        }
        attributes
    }

    fn push(group: &mut Group, operation: &[u8], attributes: RawAttributes<'_>) {
        let span = Span { attributes, operation, ..Span::default() };
        let origin = group.origin(&Source::default());
        group.push(&span, origin, None, Protocol::OtlpGrpc, 3, Attributes::All);
    }

    /// The values of every column.
    fn values(group: &Group) -> Vec<(String, Vec<Option<&[u8]>>)> {
        let names = group.keys.columns.iter().map(|(name, kind)| format!("{name} {kind:?}"));
        let columns = names.zip(&group.attributes).chain([("overflow".to_owned(), &group.overflow)]);
        columns
            .map(|(name, column)| {
                let mut codes = column.codes.iter();
                let bit =
                    |row: usize| column.present.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1);
                let mut value = |row| bit(row).then(|| column.dictionary.value(*codes.next().expect("a code")));
                let values = (0..group.len()).map(&mut value).collect();
                assert_eq!(codes.len(), 0, "every code is of a row");
                (name, values)
            })
            .collect()
    }

    proptest! {
        /// Attributes that are known again by their encoding end where those do that are looked at one by one.
        #[test]
        fn what_is_known_again_is_the_same(spans in prop::collection::vec((0_u8..3, prop::collection::vec((0_u8..6, -4_i64..4), 0..8)), 0..80)) {
            let (mut known, mut known_logged, mut looked_at) = (Group::default(), Group::default(), Group::default());
            for (operation, attributes) in &spans {
                let (otlp, logged) = (otlp(attributes), logged(attributes));
                push(&mut known, &[b'a' + operation], RawAttributes::Otlp(&otlp));
                push(&mut known_logged, &[b'a' + operation], RawAttributes::Logged(&logged));
                // Remembers nothing.
                looked_at.routes.iter_mut().for_each(Vec::clear);
                push(&mut looked_at, &[b'a' + operation], RawAttributes::Logged(&logged));
            }
            prop_assert_eq!(values(&known), values(&looked_at));
            prop_assert_eq!(values(&known_logged), values(&looked_at));
        }
    }

    #[test]
    fn an_empty_attribute_is_not_taken_for_a_long_one() {
        let mut group = Group::default();
        let text = [&[0x0a, 100][..], &[b'q'; 100]].concat();
        let (long, empty) = (message(&[(9, &message(&[(1, b"query"), (2, &text)]))]), message(&[(9, b"")]));
        push(&mut group, b"op", RawAttributes::Otlp(&long));
        push(&mut group, b"op", RawAttributes::Otlp(&empty));
        let query = [&100_u32.to_le_bytes()[..], &[b'q'; 100]].concat();
        let overflow = b"\x09\0\0\0{\"\":null}";
        let expected = vec![
            ("query Text".to_owned(), vec![Some(&query[..]), None]),
            ("overflow".to_owned(), vec![None, Some(&overflow[..])]),
        ];
        assert_eq!(values(&group), expected);
    }

    #[test]
    fn what_is_foreseen_is_bounded() {
        let mut group = Group::default();
        for operation in 0..400_u32 {
            let attributes: NumberedAttributes =
                (0..300).map(|number| ((number % 256) as u8, i64::from(operation % 100))).collect();
            push(&mut group, &operation.to_le_bytes(), RawAttributes::Otlp(&otlp(&attributes)));
        }
        let steps = |group: &Group| group.routes.iter().map(Vec::len).sum::<usize>();
        assert_eq!((steps(&group), group.steps), (MAX_STEPS, MAX_STEPS));
        assert!(group.attributes.iter().all(|column| column.codes.len() == 400), "every value is there all the same");
        group.clear();
        assert!(steps(&group) == 0 && group.routes.len() <= RETAINED_ROUTES);
    }
}
