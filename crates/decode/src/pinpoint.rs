//! The spans of Pinpoint's agents: `PSpanMessage` of `v1/Span.proto` (<https://github.com/pinpoint-apm/pinpoint-grpc-idl>), walked without
//! copying.
//!
//! A `PSpan` is what a service does for a request; each `PSpanEvent` in it, or in a `PSpanChunk` of the same request, is a method that was
//! called for it, which is a span as well. An event's start is told as the difference to the event before, and its place in the tree by
//! its depth, which is left out where it is that of the event before. Methods have numbers, whose names come in calls of their own:
//! [`api`].

use std::collections::HashMap;

use bumpalo::Bump;

use crate::broken::Broken;
use crate::buffers::size;
use crate::frames::Together;
use crate::gather::Gatherer;
use crate::ids;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::times;
use crate::value::Value;
use crate::wire::{Fields, WireError, repeated};

/// Bytes of a usual event.
const USUAL_SPAN: usize = 60;
/// The agent's id in the trace ids of [`unladen_trace`]'s requests: the numbers beside it are the two halves of the id.
pub const OF_LOAD: &[u8] = b"unladen";
/// What a span has for a parent if it has none.
const NO_PARENT: u64 = u64::MAX;
/// Depth beyond which events are taken for siblings; agents stop at 64.
const MAX_DEPTH: usize = 256;
/// Annotations of a span that are kept; agents have a few. Their names are longer than they are, so a message could become many times as
/// large in memory.
const MAX_ANNOTATIONS: usize = 256;
/// Key of the annotation that names the method of a span whose method has no number.
const API: i32 = 12;
const NO_TRACE: &str = "the span has no transactionId";
const NO_SPAN: &str = "spanId is 0";

/// Who sends, as every call of an agent says, and what is known of its methods.
#[derive(Debug, Clone, Copy)]
pub struct Agent<'n> {
    /// `applicationname`.
    pub service: &'n [u8],
    /// `agentid`.
    pub id: &'n [u8],
    /// Names of methods by their numbers.
    pub apis: &'n HashMap<i32, Box<[u8]>>,
}

/// The spans of messages that came together.
///
/// # Errors
/// If one is not of this format, or ends too early. Then none of their spans may be counted.
pub fn decode<'a>(messages: Together<'a>, arena: &'a Bump, agent: Agent<'_>) -> Result<Batch<'a>, Broken> {
    let mut decoder = Decoder::new(arena, agent, messages.bytes().len());
    for message in messages.each() {
        decoder.message(message)?;
    }
    Ok(decoder.gatherer.finish())
}

/// Number and name of a method: what a `PApiMetaData` says.
///
/// # Errors
/// If the message is not of this format, or ends too early.
pub fn api(message: &[u8]) -> Result<(i32, &[u8]), Broken> {
    let (mut number, mut name) = (0, &[][..]);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => number = value.int32()?,
            2 => name = value.bytes()?,
            _ => {}
        }
    }
    Ok((number, name))
}

/// What spans are decoded with.
struct Decoder<'a, 'n> {
    agent: Agent<'n>,
    source: Source<'a>,
    gatherer: Gatherer<'a>,
    /// Of the events of a list: the last at each depth.
    last: Vec<[u8; 8]>,
    /// The last method, and its name.
    named: Option<(i32, &'a [u8])>,
    /// Name that the span at hand gives its method itself.
    own_name: &'a [u8],
    /// Annotations of the span at hand.
    annotations: usize,
}

/// What the events of a list share.
#[derive(Debug, Clone, Copy, Default)]
struct Shared {
    trace_id: [u8; 16],
    /// Zeros are none.
    span_id: [u8; 8],
    /// ms.
    start: u64,
    /// Tells events apart that go on beside the request.
    of_async: (i32, i32),
}

impl<'a, 'n> Decoder<'a, 'n> {
    fn new(arena: &'a Bump, agent: Agent<'n>, bytes: usize) -> Self {
        let source =
            Source { service: arena.alloc_slice_copy(agent.service), instance: Some(arena.alloc_slice_copy(agent.id)) };
        Self {
            agent,
            source,
            gatherer: Gatherer::new(arena, bytes / USUAL_SPAN),
            last: Vec::new(),
            named: None,
            own_name: &[],
            annotations: 0,
        }
    }

    fn message(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => self.span(value.bytes()?)?,
                2 => self.chunk(value.bytes()?)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `PSpan`
    fn span(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        let (mut shared, mut span, mut parent, mut api) = (Shared::default(), Span::default(), NO_PARENT, 0);
        self.begin();
        span.kind = Kind::Server;
        // Of its own: its events have theirs.
        let mut own = message.len();
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                2 => shared.trace_id = self.trace_id(value.bytes()?)?,
                3 => shared.span_id = value.fixed64()?.to_be_bytes(),
                4 => parent = value.fixed64()?,
                5 => shared.start = value.varint()?,
                6 => span.duration_ns = i64::from(value.int32()?) * 1_000_000,
                7 => api = value.int32()?,
                9 => self.accepted(value.bytes()?)?,
                10 => self.annotation(value.bytes()?)?,
                12 if value.varint()? != 0 => span.status = Status::Error,
                13 => own -= value.bytes()?.len(),
                14 => span.status = Status::Error,
                _ => {}
            }
        }
        if let Some(reason) = shared.missing() {
            self.gatherer.reject(reason);
        } else {
            span.trace_id = shared.trace_id;
            span.span_id = shared.span_id;
            span.parent_id = (parent != NO_PARENT && parent != 0).then(|| parent.to_be_bytes());
            span.operation = self.name(api);
            span.start_ns = times::of_ms(shared.start);
            span.size = size(own);
            span.source = self.gatherer.source(self.source);
            self.gatherer.push(span);
        }
        self.events(shared, repeated(message, 13))
    }

    /// `PSpanChunk`: events of a span whose `PSpan` comes by itself.
    fn chunk(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        let mut shared = Shared::default();
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                2 => shared.trace_id = self.trace_id(value.bytes()?)?,
                3 => shared.span_id = value.fixed64()?.to_be_bytes(),
                7 => shared.start = value.varint()?,
                8 => shared.of_async = numbers(value.bytes()?)?,
                _ => {}
            }
        }
        self.events(shared, repeated(message, 5))
    }

    fn events(
        &mut self,
        shared: Shared,
        messages: impl Iterator<Item = Result<&'a [u8], WireError>>,
    ) -> Result<(), WireError> {
        let missing = shared.missing();
        let mut list = [0; 16];
        list[..8].copy_from_slice(&shared.span_id);
        list[8..12].copy_from_slice(&shared.of_async.0.to_be_bytes());
        list[12..].copy_from_slice(&shared.of_async.1.to_be_bytes());
        let (named, mut start, mut depth) = (ids::Named::new(&list), shared.start, 1);
        self.last.clear();
        for message in messages {
            let event = self.event(message?)?;
            start = start.saturating_add_signed(event.delay.into());
            if event.depth > 0 {
                depth = (event.depth as usize).min(MAX_DEPTH);
            }
            if let Some(reason) = missing {
                self.gatherer.reject(reason);
                continue;
            }
            let span_id = named.span_id(event.sequence.into());
            self.last.truncate(depth - 1);
            let parent = self.last.last().copied().unwrap_or(shared.span_id);
            self.last.resize(depth - 1, parent);
            self.last.push(span_id);
            let source = self.gatherer.source(self.source);
            let operation = self.name(event.api);
            self.gatherer.push(Span {
                source,
                trace_id: shared.trace_id,
                span_id,
                parent_id: Some(parent),
                operation,
                start_ns: times::of_ms(start),
                ..event.span
            });
        }
        Ok(())
    }

    /// `PSpanEvent`
    fn event(&mut self, message: &'a [u8]) -> Result<Event<'a>, WireError> {
        let mut event = Event { span: Span { size: size(message.len()), ..Span::default() }, ..Event::default() };
        let (mut kind, mut is_call) = (Kind::Internal, false);
        self.begin();
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => event.sequence = value.int32()?,
                2 => event.depth = value.int32()?,
                3 => event.delay = value.int32()?,
                4 => event.span.duration_ns = i64::from(value.int32()?) * 1_000_000,
                5 => kind = kind_of(value.sint32()?),
                6 => self.annotation(value.bytes()?)?,
                10 => event.api = value.sint32()?,
                11 => event.span.status = Status::Error,
                12 => is_call |= self.next(value.bytes()?)?,
                _ => {}
            }
        }
        event.span.kind = if kind == Kind::Internal && is_call { Kind::Client } else { kind };
        Ok(event)
    }

    /// `PNextEvent`: whom an event calls, if it calls somebody.
    fn next(&mut self, message: &'a [u8]) -> Result<bool, WireError> {
        let mut is_call = false;
        for message in repeated(message, 1) {
            let mut fields = Fields::of(message?);
            while let Some((field, value)) = fields.next()? {
                match field {
                    1 => is_call |= !matches!(value.fixed64()?, 0 | NO_PARENT),
                    2 => self.gatherer.text(b"server.address", value.bytes()?),
                    3 => self.gatherer.text(b"peer.service", value.bytes()?),
                    _ => {}
                }
            }
        }
        Ok(is_call)
    }

    /// `PAcceptEvent`: what was asked for, and who asked.
    fn accepted(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => self.gatherer.text(b"url.path", value.bytes()?),
                2 => self.gatherer.text(b"server.address", value.bytes()?),
                3 => self.gatherer.text(b"client.address", value.bytes()?),
                _ => {}
            }
        }
        Ok(())
    }

    /// `PAnnotation`, if its value is a text or a number; others are pairs whose parts have no names.
    fn annotation(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        self.annotations += 1;
        if self.annotations > MAX_ANNOTATIONS {
            return Ok(());
        }
        let (mut key, mut found) = (0, None);
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => key = value.int32()?,
                2 => found = scalar(value.bytes()?)?,
                _ => {}
            }
        }
        let Some(value) = found else { return Ok(()) };
        match key {
            API => {
                if let Value::Text(name) = value {
                    self.own_name = name;
                }
            }
            40 => self.gatherer.attribute(b"url.full", value),
            41 => self.gatherer.attribute(b"url.query", value),
            46 => self.gatherer.attribute(b"http.response.status_code", value),
            _ => self.gatherer.attribute(format!("pinpoint.annotation.{key}").as_bytes(), value),
        }
        Ok(())
    }

    /// `PTransactionId`: an agent's id and two numbers. That of a request of the load are the halves of its trace id.
    fn trace_id(&self, message: &[u8]) -> Result<[u8; 16], WireError> {
        let (mut agent, mut numbers) = (&[][..], [0, 0]);
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => agent = value.bytes()?,
                2 => numbers[0] = value.varint()?,
                3 => numbers[1] = value.varint()?,
                _ => {}
            }
        }
        let mut halves = [0; 16];
        halves[..8].copy_from_slice(&numbers[0].to_be_bytes());
        halves[8..].copy_from_slice(&numbers[1].to_be_bytes());
        if agent == OF_LOAD {
            return Ok(halves);
        }
        // Its own is left out.
        let agent = if agent.is_empty() { self.agent.id } else { agent };
        Ok(ids::trace_id(&[agent, b"^", &halves].concat()))
    }

    /// Forgets the span before.
    fn begin(&mut self) {
        self.gatherer.begin();
        self.own_name = &[];
        self.annotations = 0;
    }

    /// The name of a method, or its number if that is not known.
    fn name(&mut self, api: i32) -> &'a [u8] {
        if api == 0 && !self.own_name.is_empty() {
            return self.own_name;
        }
        if let Some((last, name)) = self.named
            && last == api
        {
            return name;
        }
        let arena = self.gatherer.arena();
        let name: &[u8] = match self.agent.apis.get(&api) {
            Some(name) => arena.alloc_slice_copy(name),
            None => arena.alloc_str(&format!("api {api}")).as_bytes(),
        };
        self.named = Some((api, name));
        name
    }
}

impl Shared {
    /// Why its spans can never be stored.
    fn missing(&self) -> Option<&'static str> {
        if self.trace_id == [0; 16] {
            return Some(NO_TRACE);
        }
        (self.span_id == [0; 8]).then_some(NO_SPAN)
    }
}

/// An event before its place in the tree is known.
#[derive(Debug, Clone, Copy, Default)]
struct Event<'a> {
    sequence: i32,
    depth: i32,
    /// ms since the start of the event before.
    delay: i32,
    api: i32,
    span: Span<'a>,
}

/// What an event is by the type of the service that it calls: databases and caches, queues, calls of others
/// (`ServiceType.java` of Pinpoint).
fn kind_of(service: i32) -> Kind {
    match service {
        2_000..3_000 | 8_000..8_300 | 9_000..10_000 => Kind::Client,
        8_300..8_800 => Kind::Producer,
        _ => Kind::Internal,
    }
}

/// `PLocalAsyncId`: two numbers.
fn numbers(message: &[u8]) -> Result<(i32, i32), WireError> {
    let (mut first, mut second) = (0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => first = value.int32()?,
            2 => second = value.int32()?,
            _ => {}
        }
    }
    Ok((first, second))
}

/// A `PAnnotationValue`, if it is a text or a number.
fn scalar(message: &[u8]) -> Result<Option<Value<'_>>, WireError> {
    let mut fields = Fields::of(message);
    let mut last = None;
    while let Some((field, value)) = fields.next()? {
        last = match field {
            1 => Some(Value::Text(value.bytes()?)),
            2 => Some(Value::Truth(value.varint()? != 0)),
            3 => Some(Value::Whole(value.int32()?.into())),
            4 => Some(Value::Whole(value.varint()? as i64)),
            5 | 8 => Some(Value::Whole(value.sint32()?.into())),
            6 => Some(Value::Real(f64::from_bits(value.fixed64()?))),
            _ => last,
        };
    }
    Ok(last)
}

#[cfg(test)]
#[path = "pinpoint_tests.rs"]
mod tests;
