//! Header blocks of requests, and those of answers.
//!
//! An agent sends the same block with every request once the tables of both sides are warm, so the last one is remembered
//! with what it meant.

use std::rc::Rc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version, header};
use unladen_http2::hpack::{BlockError, Decoder, put_indexed, put_literal, static_field};

/// Most bytes of names and values that a request may have, as told in the settings.
pub(super) const MAX_LIST: usize = 16 << 10;
/// What RFC 9113, 6.5.2, adds for every field.
const OVERHEAD: usize = 32;

/// `:status: 200` and `content-type: application/grpc`.
pub(super) const ALL_WELL: &[u8] = b"\x88\x0f\x10\x10application/grpc";
/// `grpc-status: 0`.
pub(super) const ALL_DONE: &[u8] = b"\x00\x0bgrpc-status\x010";

/// Head of a request.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) parts: Rc<Parts>,
    /// `content-length`.
    pub(super) length: Option<u64>,
}

/// A block that was decoded, but is no head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Malformed {
    /// RFC 9113, 8.1.1.
    Rules,
    /// More than [`MAX_LIST`].
    TooLarge,
}

/// Decoder of a connection.
#[derive(Debug)]
pub(super) struct Heads {
    decoder: Decoder,
    /// The last block that left the table as it was, the state of the table, and what it meant.
    last: Option<(Vec<u8>, u64, Head)>,
}

impl Heads {
    /// Nothing decoded yet.
    pub(super) fn new() -> Self {
        Self { decoder: Decoder::new(), last: None }
    }

    /// The head in a block. Every block must be decoded, in order, for the table's sake.
    pub(super) fn decode(&mut self, block: &[u8]) -> Result<Result<Head, Malformed>, BlockError> {
        let changes = self.decoder.changes();
        if let Some((last, then, head)) = &self.last
            && *then == changes
            && last == block
        {
            return Ok(Ok(head.clone()));
        }
        let mut fields = Fields::default();
        self.decoder.decode(block, |name, value| fields.add(name, value))?;
        let head = fields.finish();
        if let Ok(head) = &head
            && self.decoder.changes() == changes
        {
            self.last = Some((block.to_vec(), changes, head.clone()));
        }
        Ok(head)
    }
}

/// Fields of a block, as they come.
#[derive(Default)]
struct Fields {
    method: Option<Method>,
    path: Option<Uri>,
    headers: HeaderMap,
    size: usize,
    has_ordinary: bool,
    is_malformed: bool,
}

impl Fields {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        self.size += name.len() + value.len() + OVERHEAD;
        if self.size > MAX_LIST {
            return;
        }
        if !name.starts_with(b":") {
            self.has_ordinary = true;
            // Names are in lower case, and nothing that belongs to HTTP/1.1 stands among them.
            let is_wrong = name.iter().any(u8::is_ascii_uppercase)
                || matches!(
                    name,
                    b"connection" | b"transfer-encoding" | b"upgrade" | b"keep-alive" | b"proxy-connection"
                )
                || (name == b"te" && value != b"trailers");
            match (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                (Ok(name), Ok(value)) if !is_wrong => {
                    self.headers.append(name, value);
                }
                _ => self.is_malformed = true,
            }
            return;
        }
        let is_new = match name {
            b":method" => {
                Method::from_bytes(value).ok().and_then(|method| self.method.replace(method).map_or(Some(()), |_| None))
            }
            b":path" => Uri::try_from(value).ok().and_then(|path| self.path.replace(path).map_or(Some(()), |_| None)),
            b":scheme" | b":authority" => Some(()),
            _ => None,
        };
        self.is_malformed |= is_new.is_none() || self.has_ordinary;
    }

    fn finish(self) -> Result<Head, Malformed> {
        if self.size > MAX_LIST {
            return Err(Malformed::TooLarge);
        }
        let (Some(method), Some(path), false) = (self.method, self.path, self.is_malformed) else {
            return Err(Malformed::Rules);
        };
        let length = match self.headers.get(header::CONTENT_LENGTH) {
            None => None,
            Some(length) => match length.to_str().ok().and_then(|length| length.parse().ok()) {
                None => return Err(Malformed::Rules),
                length => length,
            },
        };
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.uri, parts.version, parts.headers) = (method, path, Version::HTTP_2, self.headers);
        Ok(Head { parts: Rc::new(parts), length })
    }
}

/// Appends the head of an answer.
pub(super) fn put_head(status: StatusCode, headers: &HeaderMap, out: &mut Vec<u8>) {
    match static_field(":status", status.as_str()) {
        Some(index) => put_indexed(out, index),
        None => put_literal(out, ":status", status.as_str().as_bytes(), false),
    }
    put_fields(headers, out);
}

/// Appends header fields, or trailers.
pub(super) fn put_fields(headers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in headers {
        put_literal(out, name.as_str(), value.as_bytes(), false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        fields.iter().for_each(|(name, value)| put_literal(&mut block, name, value.as_bytes(), false));
        block
    }

    #[test]
    fn the_usual_answer_is_what_it_says() {
        let mut fields = Vec::new();
        for block in [ALL_WELL, ALL_DONE] {
            let field = |name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
            Decoder::new().decode(block, field).expect("a block");
        }
        let expected = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "0")];
        assert_eq!(fields, expected.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())));
    }

    #[test]
    fn heads_are_remembered_until_the_table_changes() {
        let mut heads = Heads::new();
        let plain = block(&[(":method", "POST"), (":path", "/a?b=c"), (":scheme", "http"), ("content-length", "7")]);
        let first = heads.decode(&plain).expect("HPACK").expect("a head");
        assert_eq!((first.parts.method.as_str(), first.parts.uri.path(), first.length), ("POST", "/a", Some(7)));
        let second = heads.decode(&plain).expect("HPACK").expect("a head");
        assert!(Rc::ptr_eq(&first.parts, &second.parts));
        // The first entry of the table means another path each time.
        for path in ["/x", "/y"] {
            let mut indexing = block(&[(":method", "POST")]);
            put_literal(&mut indexing, ":path", path.as_bytes(), true);
            heads.decode(&indexing).expect("HPACK").expect("a head");
            let by_index = heads.decode(&[block(&[(":method", "POST")]), vec![0x80 | 62]].concat());
            assert_eq!(by_index.expect("HPACK").expect("a head").parts.uri.path(), path);
        }
    }

    #[test]
    fn malformed_heads() {
        let sound = [(":method", "POST"), (":path", "/"), (":scheme", "http")];
        let with = |more: &[(&'static str, &'static str)]| [&sound[..], more].concat();
        let cases: [Vec<(&str, &str)>; 10] = [
            sound[1..].to_vec(),
            vec![sound[0], sound[2]],
            with(&[(":path", "/twice")]),
            with(&[(":status", "200")]),
            with(&[("a", "b"), (":authority", "late")]),
            with(&[("Upper", "x")]),
            with(&[("connection", "close")]),
            with(&[("te", "gzip")]),
            with(&[("content-length", "-1")]),
            with(&[("a b", "x")]),
        ];
        for case in cases {
            assert_eq!(Heads::new().decode(&block(&case)).expect("HPACK").map(drop), Err(Malformed::Rules), "{case:?}");
        }
        let long = "x".repeat(MAX_LIST);
        let large = block(&[(":method", "POST"), (":path", "/"), ("a", &long)]);
        assert_eq!(Heads::new().decode(&large).expect("HPACK").map(drop), Err(Malformed::TooLarge));
        assert!(Heads::new().decode(&block(&with(&[("te", "trailers")]))).expect("HPACK").is_ok());
    }
}
