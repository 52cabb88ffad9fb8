//! Looks at answers: tests that are counted, and captures for later steps. Off the hot path of plans that need neither.

use std::borrow::Cow;
use std::io::Read;

use regex::bytes::Regex;

use crate::bodies::MAX_BODY;
use crate::error::LoadError;
use crate::plan::{Source, Test};

/// Longest value that is taken from an answer, bytes.
const MAX_CAPTURE: usize = 64 << 10;

/// A whole answer.
pub(crate) struct WholeAnswer<'a> {
    pub(crate) status: u16,
    /// With its final empty line.
    head: &'a [u8],
    /// As much of it as is looked at, decompressed if it came so.
    body: Cow<'a, [u8]>,
    /// The body as JSON, once somebody asks.
    json: std::cell::OnceCell<Option<serde_json::Value>>,
}

/// A header's value in a head.
fn header<'a>(head: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let mut lines = head.split(|&byte| byte == b'\n').skip(1);
    lines.find_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        line[..colon].eq_ignore_ascii_case(wanted.as_bytes()).then(|| line[colon + 1..].trim_ascii())
    })
}

impl<'a> WholeAnswer<'a> {
    /// An answer of which the head and (the beginning of) the body are known.
    pub(crate) fn new(status: u16, head: &'a [u8], body: &'a [u8]) -> Self {
        let body = &body[..body.len().min(MAX_BODY)];
        let limit = MAX_BODY as u64;
        let mut plain = Vec::new();
        // What is not what it says it is, or is cut off, is looked at as far as it goes.
        let body = match header(head, "content-encoding") {
            Some(coding) if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => {
                let _ = flate2::read::MultiGzDecoder::new(body).take(limit).read_to_end(&mut plain);
                Cow::Owned(plain)
            }
            Some(coding) if coding.eq_ignore_ascii_case(b"deflate") => {
                let _ = flate2::read::ZlibDecoder::new(body).take(limit).read_to_end(&mut plain);
                Cow::Owned(plain)
            }
            _ => Cow::Borrowed(body),
        };
        Self { status, head, body, json: std::cell::OnceCell::new() }
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&[u8]> {
        header(self.head, name)
    }

    /// The value at a pointer of a JSON body.
    fn at(&self, pointer: &str) -> Option<&serde_json::Value> {
        self.json.get_or_init(|| serde_json::from_slice(&self.body).ok()).as_ref()?.pointer(pointer)
    }
}

/// A test, ready to be made.
#[derive(Debug, Clone)]
pub(crate) enum CompiledTest {
    Status(u16),
    GrpcStatus(u16),
    Contains(Vec<u8>),
    Matches(Regex),
    Json(String, serde_json::Value),
    Header(String, String),
}

/// Compiles a regular expression of a plan.
fn compile(text: &str) -> Result<Regex, LoadError> {
    let remedy = "it is not a regular expression; see https://docs.rs/regex";
    Regex::new(text).map_err(|_| LoadError::Plan { field: "requests", value: format!("{text:?}"), remedy })
}

/// Refuses what is no pointer.
fn pointer(text: &str) -> Result<String, LoadError> {
    let remedy = "a JSON pointer is empty or begins with a slash, as in /items/0/id";
    if text.is_empty() || text.starts_with('/') {
        return Ok(text.to_owned());
    }
    Err(LoadError::Plan { field: "requests", value: format!("{text:?}"), remedy })
}

impl CompiledTest {
    /// Compiles a test.
    ///
    /// # Errors
    /// [`LoadError::Plan`] if it is not well-formed.
    pub(crate) fn new(test: &Test) -> Result<Self, LoadError> {
        Ok(match test {
            Test::Status(status) => Self::Status(*status),
            Test::GrpcStatus(text) => Self::GrpcStatus(crate::grpc::status::code(text)?),
            Test::BodyContains(text) => Self::Contains(text.as_bytes().to_vec()),
            Test::BodyMatches(text) => Self::Matches(compile(text)?),
            Test::JsonEquals { pointer: text, value } => Self::Json(pointer(text)?, value.clone()),
            Test::HeaderEquals { name, value } => Self::Header(name.clone(), value.clone()),
        })
    }

    /// Whether it holds of an answer.
    pub(crate) fn holds(&self, answer: &WholeAnswer<'_>) -> bool {
        match self {
            Self::Status(status) => answer.status == *status,
            Self::GrpcStatus(wanted) => header(answer.head, "grpc-status")
                .and_then(|value| std::str::from_utf8(value).ok()?.parse().ok())
                .is_some_and(|code: u16| code == *wanted),
            Self::Contains(text) => {
                text.is_empty() || answer.body.windows(text.len()).any(|window| window == &text[..])
            }
            Self::Matches(regex) => regex.is_match(&answer.body),
            Self::Json(pointer, value) => answer.at(pointer) == Some(value),
            Self::Header(name, value) => header(answer.head, name) == Some(value.as_bytes()),
        }
    }
}

/// A capture, ready to be made.
#[derive(Debug, Clone)]
pub(crate) enum CompiledCapture {
    Json(String),
    Header(String),
    Regex(Regex),
}

impl CompiledCapture {
    /// Compiles a capture.
    ///
    /// # Errors
    /// [`LoadError::Plan`] if it is not well-formed.
    pub(crate) fn new(source: &Source) -> Result<Self, LoadError> {
        Ok(match source {
            Source::Json(text) => Self::Json(pointer(text)?),
            Source::Header(name) => Self::Header(name.clone()),
            Source::Regex(text) => Self::Regex(compile(text)?),
        })
    }

    /// What it takes from an answer; `None`: there is nothing, or far too much.
    pub(crate) fn take(&self, answer: &WholeAnswer<'_>) -> Option<Vec<u8>> {
        let taken = match self {
            Self::Json(pointer) => match answer.at(pointer)? {
                serde_json::Value::String(text) => text.as_bytes().to_vec(),
                serde_json::Value::Null => return None,
                other => other.to_string().into_bytes(),
            },
            Self::Header(name) => header(answer.head, name)?.to_vec(),
            Self::Regex(regex) => {
                let found = regex.captures(&answer.body)?;
                found.get(1).or_else(|| found.get(0))?.as_bytes().to_vec()
            }
        };
        (taken.len() <= MAX_CAPTURE).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 201 Created\r\nLocation: /jobs/7\r\nX-Empty:\r\n\r\n";
    const BODY: &[u8] = br#"{"id": 7, "state": "done", "items": [{"name": "a b"}], "none": null}"#;

    fn holds(test: &Test) -> bool {
        CompiledTest::new(test).expect("a good test").holds(&WholeAnswer::new(201, HEAD, BODY))
    }

    fn take(source: &Source) -> Option<String> {
        let taken = CompiledCapture::new(source).expect("a good capture").take(&WholeAnswer::new(201, HEAD, BODY))?;
        Some(String::from_utf8(taken).expect("text"))
    }

    #[test]
    fn tests_hold_or_do_not() {
        let json = |pointer: &str, value: serde_json::Value| Test::JsonEquals { pointer: pointer.to_owned(), value };
        let header = |name: &str, value: &str| Test::HeaderEquals { name: name.to_owned(), value: value.to_owned() };
        for (test, expected) in [
            (Test::Status(201), true),
            (Test::Status(200), false),
            (Test::BodyContains("\"done\"".to_owned()), true),
            (Test::BodyContains(String::new()), true),
            (Test::BodyContains("failed".to_owned()), false),
            (Test::BodyMatches(r#""id":\s*\d+"#.to_owned()), true),
            (Test::BodyMatches("^done$".to_owned()), false),
            (json("/id", 7.into()), true),
            (json("/items/0/name", "a b".into()), true),
            (json("/nothing", serde_json::Value::Null), false),
            (json("/none", serde_json::Value::Null), true),
            (header("location", "/jobs/7"), true),
            (header("Location", "/jobs/8"), false),
            (header("X-None", ""), false),
        ] {
            assert_eq!(holds(&test), expected, "{test:?}");
        }
    }

    #[test]
    fn captures_take_what_is_there() {
        for (source, expected) in [
            (Source::Json("/id".to_owned()), Some("7")),
            (Source::Json("/items/0".to_owned()), Some(r#"{"name":"a b"}"#)),
            (Source::Json("/state".to_owned()), Some("done")),
            (Source::Json("/none".to_owned()), None),
            (Source::Json("/missing".to_owned()), None),
            (Source::Header("LOCATION".to_owned()), Some("/jobs/7")),
            (Source::Header("X-None".to_owned()), None),
            (Source::Regex(r"name.: .(\w)".to_owned()), Some("a")),
            (Source::Regex("do.e".to_owned()), Some("done")),
            (Source::Regex("nope".to_owned()), None),
        ] {
            assert_eq!(take(&source).as_deref(), expected, "{source:?}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        assert!(CompiledTest::new(&Test::BodyMatches("(".to_owned())).is_err());
        assert!(CompiledTest::new(&Test::JsonEquals { pointer: "id".to_owned(), value: 1.into() }).is_err());
        assert!(CompiledCapture::new(&Source::Regex("(".to_owned())).is_err());
        assert!(CompiledCapture::new(&Source::Json("id".to_owned())).is_err());
    }

    #[test]
    fn compressed_bodies_are_read_and_bombs_are_cut_off() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
        let packed = |plain: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory")
        };
        let body = packed(BODY);
        assert!(CompiledTest::Contains(b"done".to_vec()).holds(&WholeAnswer::new(200, head, &body)));
        assert!(!CompiledTest::Contains(b"done".to_vec()).holds(&WholeAnswer::new(200, head, &body[..15])));
        assert!(!CompiledTest::Contains(b"done".to_vec()).holds(&WholeAnswer::new(200, head, b"no gzip at all")));
        let bomb = packed(&vec![0; 16 * MAX_BODY]);
        assert_eq!(WholeAnswer::new(200, head, &bomb).body.len(), MAX_BODY);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(BODY).expect("memory");
        let body = zlib.finish().expect("memory");
        let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: Deflate\r\n\r\n";
        assert!(CompiledTest::Contains(b"done".to_vec()).holds(&WholeAnswer::new(200, head, &body)));
    }
}
