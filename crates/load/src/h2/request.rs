//! A request as HTTP/2 frames, encoded once: sending it copies them and overwrites the stream's number and the trace ids.
//!
//! The first request of a connection puts its fields into the server's table; all later ones refer to them, which is a byte per
//! field. The trace header is different every time, so it is a literal at a fixed place that stays out of the table.

use super::frame::{self, MAX_PAYLOAD, flag, kind};
use super::hpack;
use crate::plan::Trace;

/// Header fields that belong to a connection of HTTP/1.1 and may not be sent (RFC 9113, 8.2.2), and `host`, which becomes
/// `:authority`.
const NOT_SENT: [&str; 6] = ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// What to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Pseudo-header fields and header fields, names in lower case.
    fields: Vec<(String, String)>,
    /// Place of the trace header among the fields.
    trace: Option<usize>,
    /// The body.
    body: Vec<u8>,
}

impl Fields {
    /// Takes an HTTP/1.1 request apart that we have rendered ourselves. `trace`: name of the trace header.
    pub(crate) fn of_http1(request: &[u8], scheme: &str, trace: Option<&str>) -> Self {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
        let head = String::from_utf8_lossy(&request[..end]);
        let body = request.get(end + 4..).unwrap_or_default().to_vec();
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let headers: Vec<(String, &str)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
            .collect();
        let authority = headers.iter().find(|(name, _)| name == "host").map_or("", |(_, value)| value);
        let mut fields: Vec<(String, String)> =
            [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        // The trace header comes next: its place is then in the first frame, however large the others are.
        let place = fields.len();
        let mut found = None;
        for (name, value) in headers {
            if Some(name.as_str()) == trace {
                fields.insert(place, (name, value.to_owned()));
                found = Some(place);
            } else if is_sent(&name, value) {
                fields.push((name, value.to_owned()));
            }
        }
        Self { fields, trace: found, body }
    }

    /// Sets or adds a field.
    fn set(&mut self, name: &str, value: &str) {
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.fields.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Sets the path.
    pub(crate) fn set_path(&mut self, path: &str) {
        self.set(":path", path);
    }

    /// Makes it a gRPC call with this body (prefix and message).
    pub(crate) fn for_grpc(&mut self, body: Vec<u8>) {
        self.fields.retain(|(name, _)| name != "content-length");
        self.set(":method", "POST");
        self.set("content-type", "application/grpc");
        self.set("te", "trailers");
        self.body = body;
    }
}

/// Whether a field of an HTTP/1.1 request is sent; its name is in lower case.
fn is_sent(name: &str, value: &str) -> bool {
    !NOT_SENT.contains(&name) && (name != "te" || value == "trailers")
}

/// Appends the frames of a request that has been rendered for HTTP/1.1 and is different every time: nothing of it goes into the
/// server's table. Returns its body.
pub(crate) fn put_rendered<'a>(into: &mut Vec<u8>, rendered: &'a [u8], scheme: &str, stream: u32) -> &'a [u8] {
    let end = rendered.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(rendered.len());
    let body = rendered.get(end + 4..).unwrap_or_default();
    let head = String::from_utf8_lossy(&rendered[..end]);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let mut block = Vec::with_capacity(rendered.len());
    let mut field = |name: &str, value: &str| match hpack::static_field(name, value) {
        Some(index) => hpack::put_indexed(&mut block, index),
        None => hpack::put_literal(&mut block, name, value.as_bytes(), false),
    };
    field(":method", words.next().unwrap_or_default());
    field(":scheme", scheme);
    field(":path", words.next().unwrap_or_default());
    // Pseudo-header fields come before all others, wherever `Host` stands.
    let headers = || lines.clone().filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim()));
    if let Some((_, authority)) = headers().find(|(name, _)| name.eq_ignore_ascii_case("host")) {
        field(":authority", authority);
    }
    for (name, value) in headers() {
        let name = name.to_ascii_lowercase();
        if is_sent(&name, value) {
            field(&name, value);
        }
    }
    let frames = Frames::new(&block, None, body.is_empty());
    let start = into.len();
    into.extend_from_slice(&frames.bytes);
    for place in frames.ids {
        into[start + place..start + place + 4].copy_from_slice(&stream.to_be_bytes());
    }
    body
}

/// HEADERS, with CONTINUATION if it is large.
#[derive(Debug, Clone)]
struct Frames {
    bytes: Vec<u8>,
    /// Where the number of the stream stands.
    ids: Vec<usize>,
    /// Where the value of the trace header stands.
    trace: Option<usize>,
}

impl Frames {
    /// Cuts a block into frames. `trace`: where in the block the trace header's value stands.
    fn new(block: &[u8], trace: Option<usize>, ends: bool) -> Self {
        let (mut bytes, mut ids) = (Vec::new(), Vec::new());
        let count = block.len().div_ceil(MAX_PAYLOAD);
        for (number, part) in block.chunks(MAX_PAYLOAD).enumerate() {
            ids.push(bytes.len() + 5);
            let last = if number + 1 == count { flag::END_HEADERS } else { 0 };
            let (kind, flags) = match number {
                0 => (kind::HEADERS, last | if ends { flag::END_STREAM } else { 0 }),
                _ => (kind::CONTINUATION, last),
            };
            frame::put_head(&mut bytes, part.len(), kind, flags, 0);
            bytes.extend_from_slice(part);
        }
        Self { bytes, ids, trace: trace.map(|place| place + frame::HEAD) }
    }
}

/// What the server's table holds of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Nothing yet.
    Fresh,
    /// The request's fields.
    Filled,
    /// Nothing, and so it stays: it is too small.
    Unused,
}

/// An encoded request.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    fresh: Frames,
    filled: Frames,
    unused: Frames,
    trace: Option<Trace>,
    body: Vec<u8>,
}

impl Encoded {
    /// Encodes a request.
    pub(crate) fn new(fields: &Fields, trace: Option<Trace>) -> Self {
        let ends = fields.body.is_empty();
        let (mut size, mut inserted) = (0, Vec::new());
        let (mut fresh, mut fresh_trace) = (Vec::new(), None);
        let (mut unused, mut unused_trace) = (Vec::new(), None);
        for (number, (name, value)) in fields.fields.iter().enumerate() {
            let traced = fields.trace == Some(number);
            if let Some(index) = hpack::static_field(name, value) {
                hpack::put_indexed(&mut fresh, index);
                hpack::put_indexed(&mut unused, index);
                continue;
            }
            let entry = hpack::entry_size(name, value);
            let indexing = size + entry <= hpack::TABLE_SIZE;
            if indexing {
                size += entry;
                inserted.push(number);
            }
            hpack::put_literal(&mut fresh, name, value.as_bytes(), indexing);
            hpack::put_literal(&mut unused, name, value.as_bytes(), false);
            if traced {
                fresh_trace = Some(fresh.len() - value.len());
                unused_trace = Some(unused.len() - value.len());
            }
        }
        let (mut filled, mut filled_trace) = (Vec::new(), None);
        for (number, (name, value)) in fields.fields.iter().enumerate() {
            // The newest entry has the lowest index.
            let index = inserted
                .iter()
                .position(|&other| other == number)
                .map(|place| hpack::FIRST_DYNAMIC + inserted.len() - 1 - place);
            match (hpack::static_field(name, value), index) {
                (Some(index), _) => hpack::put_indexed(&mut filled, index),
                (None, Some(index)) if fields.trace == Some(number) => {
                    hpack::put_literal_named(&mut filled, index, value.as_bytes());
                    filled_trace = Some(filled.len() - value.len());
                }
                (None, Some(index)) => hpack::put_indexed(&mut filled, index),
                (None, None) => hpack::put_literal(&mut filled, name, value.as_bytes(), false),
            }
        }
        Self {
            fresh: Frames::new(&fresh, fresh_trace, ends),
            filled: Frames::new(&filled, filled_trace, ends),
            unused: Frames::new(&unused, unused_trace, ends),
            trace,
            body: fields.body.clone(),
        }
    }

    /// The body.
    #[inline]
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether the request with this index carries the sampled flag.
    #[inline]
    pub(crate) fn is_sampled(&self, index: u64) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.is_sampled(index))
    }

    /// Appends the frames of the request's head.
    #[inline]
    pub(crate) fn put(&self, into: &mut Vec<u8>, table: Table, stream: u32, index: u64) {
        let frames = match table {
            Table::Filled => &self.filled,
            Table::Fresh => &self.fresh,
            Table::Unused => &self.unused,
        };
        let start = into.len();
        into.extend_from_slice(&frames.bytes);
        let put = &mut into[start..];
        for &place in &frames.ids {
            put[place..place + 4].copy_from_slice(&stream.to_be_bytes());
        }
        if let (Some(trace), Some(place)) = (&self.trace, frames.trace) {
            let length = trace.header.placeholder().len();
            trace.header.write(&mut put[place..place + length], trace.ids(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Head;
    use super::*;
    use crate::http1::request::Template;
    use crate::plan::{Plan, TraceHeader};
    use crate::target::Target;

    fn encoded(plan: &Plan) -> Encoded {
        let target = Target::parse(&plan.url).expect("a good url");
        let mut template = Template::new(plan, &target).expect("renders");
        let name = plan.trace.as_ref().map(|trace| trace.header.name());
        Encoded::new(&Fields::of_http1(template.render(0).0, "http", name), plan.trace.clone())
    }

    /// Block and flags of the frames of one request.
    fn block(bytes: &[u8]) -> (Vec<u8>, Vec<Head>) {
        let (mut block, mut heads, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(head) = Head::read(&bytes[at..]) {
            at += frame::HEAD;
            block.extend_from_slice(&bytes[at..at + head.length]);
            at += head.length;
            heads.push(head);
        }
        assert_eq!(at, bytes.len());
        (block, heads)
    }

    fn fields(decoder: &mut hpack::Decoder, bytes: &[u8]) -> Vec<String> {
        let mut fields = Vec::new();
        decoder
            .decode(&block(bytes).0, |name, value| {
                fields.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
            })
            .expect("our own block");
        fields
    }

    #[test]
    fn the_second_request_is_a_few_bytes_and_means_the_same() {
        let mut plan = Plan::new("http://h:81/x?y");
        plan.headers = vec![("X-A".to_owned(), "1".to_owned()), ("Connection".to_owned(), "close".to_owned())];
        let encoded = encoded(&plan);
        let mut decoder = hpack::Decoder::new();
        let expected = [":method=GET", ":scheme=http", ":authority=h:81", ":path=/x?y", "x-a=1"];
        for (table, length) in [(Table::Fresh, None), (Table::Filled, Some(frame::HEAD + 5)), (Table::Unused, None)] {
            let mut bytes = Vec::new();
            encoded.put(&mut bytes, table, 7, 0);
            assert_eq!(fields(&mut decoder, &bytes), expected, "{table:?}");
            assert!(length.is_none_or(|length| bytes.len() == length), "{}", bytes.len());
            let (_, heads) = block(&bytes);
            assert_eq!((heads.len(), heads[0].stream, heads[0].flags), (1, 7, flag::END_STREAM | flag::END_HEADERS));
        }
    }

    #[test]
    fn trace_ids_change_and_stay_out_of_the_table() {
        let mut plan = Plan::new("http://h/");
        plan.method = "POST".to_owned();
        plan.body = Some("{}".to_owned());
        plan.trace = Some(Trace { header: TraceHeader::W3c, tag: 1, key: 2, sampled: 1.0 });
        let encoded = encoded(&plan);
        let mut decoder = hpack::Decoder::new();
        for (index, table) in [Table::Fresh, Table::Filled, Table::Filled, Table::Unused].into_iter().enumerate() {
            let changes = decoder.changes();
            let mut bytes = b"before".to_vec();
            encoded.put(&mut bytes, table, 9, index as u64);
            let fields = fields(&mut decoder, &bytes[6..]);
            let mut expected = *b"00-00000000000000000000000000000000-0000000000000000-00";
            let trace = plan.trace.as_ref().expect("given");
            trace.header.write(&mut expected, trace.ids(index as u64));
            assert_eq!(fields[4], format!("traceparent={}", String::from_utf8_lossy(&expected)), "{table:?}");
            assert_eq!(fields[5], "content-length=2");
            assert_eq!(block(&bytes[6..]).1[0].flags, flag::END_HEADERS, "the body follows");
            assert_eq!(decoder.changes() > changes, table == Table::Fresh, "{table:?}");
        }
        assert!(encoded.is_sampled(0));
    }

    #[test]
    fn a_rendered_request_means_the_same_and_stays_out_of_the_table() {
        let rendered =
            b"POST /x?id=7 HTTP/1.1\r\nX-A: 1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        let mut bytes = b"before".to_vec();
        assert_eq!(put_rendered(&mut bytes, rendered, "https", 5), b"{}");
        let mut decoder = hpack::Decoder::new();
        let expected = [":method=POST", ":scheme=https", ":path=/x?id=7", ":authority=h", "x-a=1", "content-length=2"];
        assert_eq!(fields(&mut decoder, &bytes[6..]), expected);
        assert_eq!(decoder.changes(), 0);
        let heads = block(&bytes[6..]).1;
        assert_eq!((heads.len(), heads[0].stream, heads[0].flags), (1, 5, flag::END_HEADERS));
    }

    #[test]
    fn large_heads_are_cut_into_frames_and_do_not_all_fit_the_table() {
        let mut plan = Plan::new("http://h/");
        plan.headers = (0..20).map(|number| (format!("x-{number}"), "v".repeat(2_000))).collect();
        plan.trace = Some(Trace { header: TraceHeader::W3c, tag: 1, key: 2, sampled: 0.0 });
        let encoded = encoded(&plan);
        let mut decoder = hpack::Decoder::new();
        for table in [Table::Fresh, Table::Filled, Table::Unused] {
            let mut bytes = Vec::new();
            encoded.put(&mut bytes, table, 3, 1);
            let (_, heads) = block(&bytes);
            assert_eq!(heads.len(), 3, "{table:?}");
            assert!(heads.iter().all(|head| head.stream == 3 && head.length <= MAX_PAYLOAD));
            assert_eq!(heads.iter().map(|head| head.kind).collect::<Vec<_>>(), [1, 9, 9]);
            assert_eq!(heads.iter().map(|head| head.flags).collect::<Vec<_>>(), [1, 0, 4]);
            let fields = fields(&mut decoder, &bytes);
            assert_eq!(fields.len(), 25);
            assert!(fields[24] == format!("x-19={}", "v".repeat(2_000)) && fields[4].starts_with("traceparent=00-0"));
        }
    }
}
