//! Responses, read in whatever pieces they arrive. A body that comes with its head in one piece is not copied.

use super::Malformed;
use super::chunked::Chunked;
use super::head::{Framing, Head, HeadReader, MAX_HEAD};
use crate::bodies::{BodyHash, MAX_BODY};

/// Interim (1xx) responses that are skipped before a request counts as failed.
const MAX_INTERIM: u32 = 100;

/// A complete response.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    /// Status code.
    pub(crate) status: u16,
    /// Whether the server closes the connection.
    pub(crate) close: bool,
    /// The head, if the response came in one piece.
    pub(crate) head: &'a [u8],
    /// The body.
    pub(crate) body: Body<'a>,
}

/// The body of a complete response.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// Its length and hash: it came in pieces.
    Pieces(BodyHash),
}

impl Body<'_> {
    /// Length in bytes.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Pieces(hash) => hash.length(),
        }
    }

    /// Its hash, however it came.
    pub(crate) fn hash(&self) -> BodyHash {
        match self {
            Self::Whole(bytes) => {
                let mut hash = BodyHash::default();
                hash.update(bytes);
                hash
            }
            Self::Pieces(hash) => *hash,
        }
    }
}

/// Where in a response the reader is.
#[derive(Debug)]
enum State {
    /// In the head.
    Head,
    /// So many bytes of the body are still to come.
    Length(u64),
    /// In a chunked body.
    Chunked(Chunked),
    /// In a body that ends with the connection.
    UntilClose,
}

/// Reads the responses of one connection, one after the other.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    state: State,
    /// The beginning of a head that is not complete yet.
    partial: Vec<u8>,
    /// The head of the response whose body is being read.
    head: Option<Head>,
    /// Length and hash of the body so far.
    hash: BodyHash,
    /// Interim responses so far.
    interim: u32,
    /// Whether head and body are kept when they come in pieces.
    captures: bool,
    /// Head and (the beginning of the) body that were kept.
    captured: (Vec<u8>, Vec<u8>),
}

impl ResponseReader {
    /// Before a response.
    pub(crate) fn new() -> Self {
        Self {
            state: State::Head,
            partial: Vec::new(),
            head: None,
            hash: BodyHash::default(),
            interim: 0,
            captures: false,
            captured: Default::default(),
        }
    }

    /// Says whether the next responses are kept for [`ResponseReader::captured`], up to [`MAX_BODY`] bytes of body.
    pub(crate) fn capture(&mut self, captures: bool) {
        self.captures = captures;
        self.captured.0.clear();
        self.captured.1.clear();
    }

    /// Head and body of the last response, if it came in pieces and was to be kept.
    pub(crate) fn captured(&self) -> (&[u8], &[u8]) {
        (&self.captured.0, &self.captured.1)
    }

    /// Back to before a response.
    pub(crate) fn reset(&mut self) {
        self.state = State::Head;
        self.partial.clear();
        self.head = None;
        self.hash = BodyHash::default();
        self.interim = 0;
    }

    /// Whether nothing of the response has arrived yet.
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(self.state, State::Head) && self.partial.is_empty() && self.interim == 0
    }

    /// Takes bytes in; returns the response if they complete it. Bytes beyond it are an error, since nothing is asked
    /// before it is answered.
    #[inline]
    pub(crate) fn push<'a>(
        &mut self,
        heads: &mut HeadReader,
        input: &'a [u8],
    ) -> Result<Option<Response<'a>>, Malformed> {
        if self.is_untouched()
            && let Some((head, used)) = heads.read(input, 0)?
            && head.status >= 200
        {
            let rest = &input[used..];
            let whole = match head.framing {
                Framing::Empty => rest.is_empty(),
                Framing::Length(length) => rest.len() as u64 == length,
                Framing::Chunked | Framing::UntilClose => false,
            };
            if whole {
                let (status, close) = (head.status, head.close);
                return Ok(Some(Response { status, close, head: &input[..used], body: Body::Whole(rest) }));
            }
        }
        self.push_pieces(heads, input)
    }

    /// The general case of [`ResponseReader::push`].
    fn push_pieces<'a>(
        &mut self,
        heads: &mut HeadReader,
        mut input: &'a [u8],
    ) -> Result<Option<Response<'a>>, Malformed> {
        while let State::Head = self.state {
            let Some(used) = self.read_head(heads, input)? else { return Ok(None) };
            input = &input[used..];
        }
        let (captures, captured, hash) = (self.captures, &mut self.captured.1, &mut self.hash);
        let mut take_in = |data: &[u8]| {
            hash.update(data);
            if captures {
                let room = MAX_BODY - captured.len().min(MAX_BODY);
                captured.extend_from_slice(&data[..data.len().min(room)]);
            }
        };
        let (used, done) = match &mut self.state {
            State::Head => (0, true),
            State::Length(left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                take_in(&input[..take]);
                *left -= take as u64;
                (take, *left == 0)
            }
            State::Chunked(chunked) => chunked.push(input, take_in)?,
            State::UntilClose => {
                take_in(input);
                (input.len(), false)
            }
        };
        match (done, used == input.len()) {
            (true, true) => Ok(self.take()),
            (true, false) => Err(Malformed::Unsolicited),
            (false, _) => Ok(None),
        }
    }

    /// Reads (more of) a head. Returns how much of the input it took, or `None` if it is not complete.
    fn read_head(&mut self, heads: &mut HeadReader, input: &[u8]) -> Result<Option<usize>, Malformed> {
        let before = self.partial.len();
        let (head, used) = if before == 0 {
            match heads.read(input, 0)? {
                Some(found) => {
                    if self.captures {
                        self.captured.0.clear();
                        self.captured.0.extend_from_slice(&input[..found.1]);
                    }
                    found
                }
                None => {
                    self.partial.extend_from_slice(input);
                    return Ok(None);
                }
            }
        } else {
            // One byte more than the limit is enough to find out that a head is too long.
            let room = (MAX_HEAD + 1).saturating_sub(before).min(input.len());
            self.partial.extend_from_slice(&input[..room]);
            match heads.read(&self.partial, before)? {
                Some((head, length)) => {
                    if self.captures {
                        self.captured.0.clear();
                        self.captured.0.extend_from_slice(&self.partial[..length]);
                    }
                    (head, length - before)
                }
                None => return Ok(None),
            }
        };
        self.partial.clear();
        if head.status < 200 {
            self.interim += 1;
            // 101 would switch to a protocol that nobody asked for.
            if head.status == 101 || self.interim > MAX_INTERIM {
                return Err(Malformed::Interim);
            }
            return Ok(Some(used));
        }
        self.head = Some(head);
        self.state = match head.framing {
            Framing::Empty => State::Length(0),
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunked::new()),
            Framing::UntilClose => State::UntilClose,
        };
        Ok(Some(used))
    }

    /// The response that has become complete.
    fn take(&mut self) -> Option<Response<'static>> {
        let head = self.head?;
        let (status, close) = (head.status, head.close);
        let response = Response { status, close, head: &[], body: Body::Pieces(self.hash) };
        self.reset();
        Some(response)
    }

    /// The connection has ended: that completes a response whose body ends so.
    pub(crate) fn end(&mut self) -> Option<Response<'static>> {
        if matches!(self.state, State::UntilClose) { self.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Status, length and hash of the body, close.
    type Parsed = (u16, u64, u64, bool);

    fn parsed(response: &Response<'_>) -> Parsed {
        let hash = response.body.hash();
        (response.status, hash.length(), hash.finish(), response.close)
    }

    fn read(input: &[u8], piece: usize, ends: bool) -> Result<Option<Parsed>, Malformed> {
        let (mut heads, mut reader) = (HeadReader::new("GET"), ResponseReader::new());
        let mut found = None;
        for piece in input.chunks(piece.max(1)) {
            if found.is_some() {
                return Err(Malformed::Unsolicited);
            }
            found = reader.push(&mut heads, piece)?.map(|response| parsed(&response));
        }
        Ok(found.or_else(|| if ends { reader.end().map(|response| parsed(&response)) } else { None }))
    }

    #[test]
    fn responses_in_any_pieces() {
        for (text, ends, status, length) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, 200, 5),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false, 200, 5),
            ("HTTP/1.0 200 OK\r\n\r\nhello", true, 200, 5),
            ("HTTP/1.1 204 No Content\r\n\r\n", false, 204, 0),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno",
                false,
                500,
                2,
            ),
        ] {
            let whole = read(text.as_bytes(), text.len(), ends).expect("well-formed").expect("complete");
            assert_eq!((whole.0, whole.1), (status, length), "{text:?}");
            for piece in 1..text.len() {
                assert_eq!(read(text.as_bytes(), piece, ends), Ok(Some(whole)), "{text:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn an_end_in_the_middle_completes_nothing() {
        for text in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"] {
            assert_eq!(read(text.as_bytes(), 3, true), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_is_what_came() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n";
        let (mut heads, mut reader) = (HeadReader::new("GET"), ResponseReader::new());
        reader.capture(true);
        assert!(reader.push(&mut heads, head.as_bytes()).expect("good").is_none());
        for number in 0..300u32 {
            let piece = vec![b'0' + (number % 10) as u8; 10_000];
            let done = reader.push(&mut heads, &piece).expect("good").is_some();
            assert_eq!(done, number == 299);
        }
        assert_eq!(reader.captured().0, head.as_bytes());
        assert_eq!(reader.captured().1.len(), MAX_BODY);
        assert_eq!(&reader.captured().1[9_999..10_001], b"01");
    }

    #[test]
    fn too_much_is_an_error() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!",
            "HTTP/1.1 204 No Content\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
        ] {
            assert_eq!(read(text.as_bytes(), text.len(), false), Err(Malformed::Unsolicited), "{text:?}");
        }
        assert_eq!(read(b"HTTP/1.1 101 Switching\r\n\r\n", 100, false), Err(Malformed::Interim));
        let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(200);
        assert_eq!(read(interim.as_bytes(), interim.len(), false), Err(Malformed::Interim));
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(20_000));
        assert_eq!(read(endless.as_bytes(), 1000, false), Err(Malformed::HeadTooLong));
    }

    proptest! {
        #[test]
        fn whatever_comes_the_reader_does_not_panic_and_keeps_little(input: Vec<u8>, piece in 1usize..32) {
            let _ = read(&input, piece, true);
            let text = [b"HTTP/1.1 200 OK\r\n".as_slice(), &input].concat();
            let _ = read(&text, piece, true);
        }
    }
}
