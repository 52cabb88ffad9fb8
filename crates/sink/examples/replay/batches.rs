//! Requests that are encoded once with values drawn at random; ids and times are stamped in anew for every sending, so no
//! two spans are alike. Knows where the places for them are, not what is around them.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use unladen_sink::config::Requests;
use unladen_trace::mix;

use crate::formats::{Format, template};

/// Spans with values of their own, over all templates.
const DISTINCT_SPANS: usize = 131_072;

/// A supply of requests without end.
pub(crate) struct Batches {
    templates: Vec<Template>,
    spans: usize,
    turn: Cell<usize>,
    random: RefCell<Random>,
    clock_ns: Cell<u64>,
    /// Whose traces these are, and the request that comes next; `None` for traces of nobody.
    load: Option<(Requests, Cell<u64>)>,
}

/// An encoded request.
#[derive(Default)]
pub(crate) struct Template {
    pub(crate) message: Vec<u8>,
    pub(crate) spans: Vec<Places>,
}

/// What of a span is where in the message, and whether it begins a trace.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) is_root: bool,
    pub(crate) places: Vec<(usize, Stamp)>,
}

/// What is stamped in, and how it is encoded.
#[derive(Clone, Copy)]
pub(crate) enum Stamp {
    /// 16 and 8 bytes.
    Trace,
    Span,
    Root,
    /// The low half of 8 bytes; the high half in 16 hexadecimal digits.
    TraceLow,
    TraceHighHex,
    /// The halves of a trace's id as varints of ten bytes; the low half in 16 hexadecimal digits.
    TraceHighVarint,
    TraceLowVarint,
    TraceLowHex,
    /// 32 and 16 hexadecimal digits.
    TraceHex,
    SpanHex,
    RootHex,
    /// The first 8 hexadecimal digits of a trace's id; the other 24.
    TraceTimeHex,
    TraceRestHex,
    /// The last digits of a SkyWalking id: of the trace, of its segment.
    TraceDigits,
    SegmentDigits,
    /// Nanoseconds, little end first.
    StartNanos,
    EndNanos,
    /// Nanoseconds, big end first.
    StartNanosBig,
    DurationNanosBig,
    /// Microseconds in 16 digits; the duration in as many as there are, with spaces before them.
    StartMicros,
    DurationMicros,
    /// Milliseconds, the duration with three decimals.
    DurationMillis,
    /// Seconds with six decimals in 17 characters.
    StartSeconds,
    EndSeconds,
    /// Milliseconds in 13 digits.
    StartMillisDigits,
    /// Milliseconds as a varint of six bytes.
    StartMillis,
    EndMillis,
}

/// Digits of [`Stamp::TraceDigits`] and [`Stamp::SegmentDigits`].
pub(crate) const DIGITS: usize = 17;
/// Characters of a duration in text.
pub(crate) const DURATION: usize = 10;

impl Batches {
    /// Requests of about `spans` spans each; `load` says whose traces they are, and the first request.
    pub(crate) fn new(seed: u64, format: Format, spans: usize, load: Option<(Requests, u64)>) -> Self {
        let mut random = Random(mix(seed));
        let count = (DISTINCT_SPANS / spans).max(1);
        let templates: Vec<_> = (0..count).map(|_| template(format, spans, load.is_some(), &mut random)).collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            spans: templates.first().map_or(0, |template| template.spans.len()),
            templates,
            turn: Cell::new(0),
            random: RefCell::new(random),
            clock_ns: Cell::new(now.as_nanos() as u64),
            load: load.map(|(requests, first)| (requests, Cell::new(first))),
        }
    }

    /// Spans of each request.
    pub(crate) fn spans(&self) -> usize {
        self.spans
    }

    /// The next request.
    pub(crate) fn next(&self) -> Bytes {
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        let template = &self.templates[turn % self.templates.len()];
        let mut body = template.message.clone();
        self.stamp(&mut body, &template.spans);
        body.into()
    }

    fn stamp(&self, message: &mut [u8], spans: &[Places]) {
        let random = &mut *self.random.borrow_mut();
        let mut values = Values::default();
        let (mut start, mut duration) = (0, 0);
        for span in spans {
            values.span = random.next();
            if span.is_root {
                values.trace = match &self.load {
                    Some((requests, next)) => u128::from_be_bytes(requests.trace_id(next.replace(next.get() + 1))),
                    None => u128::from(random.next()) << 64 | u128::from(random.next()),
                };
                values.root = values.span;
                // A request about every 30 µs, each of 1 to 20 ms.
                self.clock_ns.set(self.clock_ns.get() + random.below(60_000));
                start = self.clock_ns.get();
                duration = 1_000_000 + random.below(19_000_000);
                (values.start, values.duration) = (start, duration);
            } else {
                (values.start, values.duration) = (start + random.below(duration / 2), random.below(duration / 2));
            }
            for (at, stamp) in &span.places {
                values.put(*stamp, &mut message[*at..]);
            }
        }
    }
}

/// What is stamped into a span.
#[derive(Default)]
struct Values {
    trace: u128,
    root: u64,
    span: u64,
    /// ns.
    start: u64,
    /// ns.
    duration: u64,
}

impl Values {
    fn put(&self, stamp: Stamp, to: &mut [u8]) {
        let copy = |bytes: &[u8], to: &mut [u8]| to[..bytes.len()].copy_from_slice(bytes);
        let end = self.start + self.duration;
        match stamp {
            Stamp::Trace => copy(&self.trace.to_be_bytes(), to),
            Stamp::Span => copy(&self.span.to_be_bytes(), to),
            Stamp::Root => copy(&self.root.to_be_bytes(), to),
            Stamp::TraceLow => copy(&(self.trace as u64).to_be_bytes(), to),
            Stamp::TraceHighHex => hex(&((self.trace >> 64) as u64).to_be_bytes(), to),
            Stamp::StartNanosBig => copy(&self.start.to_be_bytes(), to),
            Stamp::DurationNanosBig => copy(&self.duration.to_be_bytes(), to),
            Stamp::TraceHighVarint => varint((self.trace >> 64) as u64, &mut to[..10]),
            Stamp::TraceLowVarint => varint(self.trace as u64, &mut to[..10]),
            Stamp::TraceLowHex => hex(&(self.trace as u64).to_be_bytes(), to),
            Stamp::TraceHex => hex(&self.trace.to_be_bytes(), to),
            Stamp::TraceTimeHex => hex(&self.trace.to_be_bytes()[..4], to),
            Stamp::TraceRestHex => hex(&self.trace.to_be_bytes()[4..], to),
            Stamp::SpanHex => hex(&self.span.to_be_bytes(), to),
            Stamp::RootHex => hex(&self.root.to_be_bytes(), to),
            Stamp::TraceDigits => decimal(self.trace as u64, b'0', &mut to[..DIGITS]),
            Stamp::SegmentDigits => decimal(self.root, b'0', &mut to[..DIGITS]),
            Stamp::StartNanos => copy(&self.start.to_le_bytes(), to),
            Stamp::EndNanos => copy(&end.to_le_bytes(), to),
            Stamp::StartMicros => decimal(self.start / 1_000, b'0', &mut to[..16]),
            Stamp::DurationMicros => decimal(self.duration / 1_000, b' ', &mut to[..DURATION]),
            Stamp::DurationMillis => {
                decimal(self.duration / 1_000_000, b' ', &mut to[..DURATION - 4]);
                to[DURATION - 4] = b'.';
                decimal(self.duration / 1_000 % 1_000, b'0', &mut to[DURATION - 3..DURATION]);
            }
            Stamp::StartSeconds => seconds(self.start, to),
            Stamp::EndSeconds => seconds(end, to),
            Stamp::StartMillisDigits => decimal(self.start / 1_000_000, b'0', &mut to[..13]),
            // 36 to 42 bits, as the milliseconds since 1970 have for the next hundred years.
            Stamp::StartMillis => varint(self.start / 1_000_000, &mut to[..6]),
            Stamp::EndMillis => varint(end / 1_000_000, &mut to[..6]),
        }
    }
}

fn hex(bytes: &[u8], to: &mut [u8]) {
    for (pair, byte) in to.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
}

/// The lowest digits of a number, as many as there is room for; `fill` where it has none.
fn decimal(mut number: u64, fill: u8, to: &mut [u8]) {
    for (position, digit) in to.iter_mut().rev().enumerate() {
        *digit = if number == 0 && position > 0 { fill } else { b'0' + (number % 10) as u8 };
        number /= 10;
    }
}

/// Nanoseconds as seconds with six decimals, in 17 characters.
fn seconds(number: u64, to: &mut [u8]) {
    decimal(number / 1_000_000_000, b'0', &mut to[..10]);
    to[10] = b'.';
    decimal(number / 1_000 % 1_000_000, b'0', &mut to[11..17]);
}

/// A varint that takes as many bytes as there are.
fn varint(mut number: u64, to: &mut [u8]) {
    let last = to.len() - 1;
    for (position, byte) in to.iter_mut().enumerate() {
        *byte = number as u8 & 0x7f | if position < last { 0x80 } else { 0 };
        number >>= 7;
    }
}

/// The sequence splitmix64.
pub(crate) struct Random(u64);

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound.max(1))) >> 64) as u64
    }

    /// One of several texts.
    pub(crate) fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}
