//! Heads of responses: parsed in full only when they differ from the last one.
//!
//! Most services send the same head again and again (the `Date` line changes once a second), so comparing it with the last
//! one saves nearly all of the parsing.

use super::Malformed;
use super::request::is_token;

/// Longest head, bytes.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// How every response begins.
const VERSION: &[u8] = b"HTTP/1.";

/// How the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    Empty,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// What a head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Status code, 100 to 999.
    pub(crate) status: u16,
    /// How the body ends.
    pub(crate) framing: Framing,
    /// Whether the server closes the connection after the body.
    pub(crate) close: bool,
}

/// Reads heads, remembering the last one.
#[derive(Debug)]
pub(crate) struct HeadReader {
    /// Whether responses have no body whatever they say, as those to HEAD.
    bodiless: bool,
    /// The last head, with its final empty line.
    last: Vec<u8>,
    /// What it says.
    says: Head,
}

impl HeadReader {
    /// For responses to this method.
    pub(crate) fn new(method: &str) -> Self {
        let says = Head { status: 0, framing: Framing::Empty, close: false };
        Self { bodiless: method == "HEAD", last: Vec::new(), says }
    }

    /// Reads the head at the start of the input. Returns it with its length, or `None` if it is not complete; the first
    /// `searched` bytes are known not to hold its end.
    #[inline]
    pub(crate) fn read(&mut self, input: &[u8], searched: usize) -> Result<Option<(Head, usize)>, Malformed> {
        if !self.last.is_empty() && input.starts_with(&self.last) {
            return Ok(Some((self.says, self.last.len())));
        }
        self.read_new(input, searched)
    }

    /// Reads a head that is not the last one.
    #[cold]
    fn read_new(&mut self, input: &[u8], searched: usize) -> Result<Option<(Head, usize)>, Malformed> {
        let Some(length) = end_of_head(input, searched) else {
            // What does not even begin like a response would otherwise be waited for until the timeout.
            return if input.iter().zip(VERSION).any(|(a, b)| a != b) {
                Err(Malformed::StatusLine)
            } else if input.len() > MAX_HEAD {
                Err(Malformed::HeadTooLong)
            } else {
                Ok(None)
            };
        };
        if length > MAX_HEAD {
            return Err(Malformed::HeadTooLong);
        }
        let head = parse(&input[..length], self.bodiless)?;
        self.last.clear();
        self.last.extend_from_slice(&input[..length]);
        self.says = head;
        Ok(Some((head, length)))
    }
}

/// Where the head ends: after its first empty line. Lines end with LF; a CR before it belongs to the line's end.
fn end_of_head(input: &[u8], searched: usize) -> Option<usize> {
    // The empty line may have begun within what was searched.
    let mut at = searched.saturating_sub(2);
    loop {
        at += input[at..].iter().position(|&byte| byte == b'\n')? + 1;
        match input[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

/// Parses a complete head.
fn parse(head: &[u8], bodiless: bool) -> Result<Head, Malformed> {
    let mut lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (status, old) = status_line(lines.next().unwrap_or_default())?;
    let (mut length, mut chunked, mut coded) = (None, false, false);
    let (mut close, mut keep_alive) = (false, false);
    for line in lines.take_while(|line| !line.is_empty()) {
        let colon = line.iter().position(|&byte| byte == b':').ok_or(Malformed::Header)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || !name.iter().copied().all(is_token) || value.iter().any(|&b| b == 0 || b == b'\r') {
            return Err(Malformed::Header);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = number(value)?;
            if length.is_some_and(|length| length != number) {
                return Err(Malformed::Length);
            }
            length = Some(number);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            coded = true;
            chunked = value.eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|&byte| byte == b',') {
                close |= option.trim_ascii().eq_ignore_ascii_case(b"close");
                keep_alive |= option.trim_ascii().eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    let framing = if bodiless || status < 200 || status == 204 || status == 304 {
        Framing::Empty
    } else if coded {
        // A coded body has no length of its own; both together are the mark of request smuggling (RFC 9112, 6.3).
        if !chunked || old || length.is_some() {
            return Err(Malformed::TransferCoding);
        }
        Framing::Chunked
    } else {
        match length {
            Some(0) => Framing::Empty,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        }
    };
    let close = close || (old && !keep_alive) || framing == Framing::UntilClose;
    Ok(Head { status, framing, close })
}

/// `HTTP/1.1 200 OK`: the status, and whether the version is 1.0.
fn status_line(line: &[u8]) -> Result<(u16, bool), Malformed> {
    let rest = line.strip_prefix(VERSION).ok_or(Malformed::StatusLine)?;
    match *rest {
        [minor @ b'0'..=b'9', b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ref reason @ ..]
            if matches!(reason.first(), None | Some(b' ')) =>
        {
            Ok((u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'), minor == b'0'))
        }
        _ => Err(Malformed::StatusLine),
    }
}

/// A length: digits only. A list of the same number is taken as that number (RFC 9110, 8.6).
fn number(value: &[u8]) -> Result<u64, Malformed> {
    let mut parts = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let first = parts.next().unwrap_or_default();
    if first.is_empty() || !first.iter().all(u8::is_ascii_digit) || parts.any(|part| part != first) {
        return Err(Malformed::Length);
    }
    first
        .iter()
        .try_fold(0u64, |sum, &digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(Malformed::Length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<(Head, usize)>, Malformed> {
        HeadReader::new("GET").read(text.as_bytes(), 0)
    }

    #[test]
    fn good_heads() {
        for (text, status, framing, close) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, Framing::Length(5), false),
            ("HTTP/1.1 200\r\ncontent-length:5 \r\n\r\n", 200, Framing::Length(5), false),
            ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", 200, Framing::Length(5), false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", 200, Framing::Length(5), false),
            ("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: Chunked\r\n\r\n", 404, Framing::Chunked, false),
            ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", 200, Framing::Empty, true),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", 204, Framing::Empty, false),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, Framing::Empty, false),
            ("HTTP/1.1 200 OK\r\n\r\n", 200, Framing::UntilClose, true),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", 200, Framing::Length(5), true),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n", 200, Framing::Length(5), false),
            ("HTTP/1.1 100 Continue\r\n\r\n", 100, Framing::Empty, false),
        ] {
            assert_eq!(read(text), Ok(Some((Head { status, framing, close }, text.len()))), "{text:?}");
        }
    }

    #[test]
    fn broken_heads() {
        for (text, error) in [
            ("\r\n\r\n", Malformed::StatusLine),
            ("SSH-2.0-OpenSSH\r\n\r\n", Malformed::StatusLine),
            ("SSH", Malformed::StatusLine),
            ("HTTP/2 200\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 20x OK\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 2000 OK\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Malformed::Header),
            ("HTTP/1.1 200 OK\r\nA B: c\r\n\r\n", Malformed::Header),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Malformed::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", Malformed::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", Malformed::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Malformed::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Malformed::Length),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Malformed::TransferCoding),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", Malformed::TransferCoding),
        ] {
            assert_eq!(read(text), Err(error), "{text:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(20_000));
        assert_eq!(read(&endless), Err(Malformed::HeadTooLong));
    }

    #[test]
    fn a_head_is_complete_with_its_empty_line_wherever_the_cut_is() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        for cut in 0..text.len() {
            let mut reader = HeadReader::new("GET");
            assert_eq!(reader.read(&text[..cut], 0), Ok(None), "{cut}");
            assert_eq!(
                reader.read(text, cut).map(|head| head.map(|(_, length)| length)),
                Ok(Some(text.len())),
                "{cut}"
            );
        }
    }

    #[test]
    fn the_last_head_is_remembered_and_a_new_one_is_noticed() {
        let mut reader = HeadReader::new("GET");
        let (a, b) = ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 500 NO\r\nContent-Length: 6\r\n\r\n");
        for (text, status) in [(a, 200), (a, 200), (b, 500), (b, 500), (a, 200)] {
            let (head, length) = reader.read(text.as_bytes(), 0).expect("well-formed").expect("complete");
            assert_eq!((head.status, length), (status, text.len()));
        }
    }

    #[test]
    fn answers_to_head_have_no_body() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let head = HeadReader::new("HEAD").read(text.as_bytes(), 0).expect("well-formed").expect("complete").0;
        assert_eq!(head.framing, Framing::Empty);
    }
}
