//! Request bodies in and replies out, with bounds: no body, compressed or not, may outgrow the configured message size,
//! and all bodies at once may not outgrow a fixed budget, however many connections send them.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io::Read;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, HeaderValue, header};
use hyper::body::{Body, Frame};

use crate::inflate::is_zlib;

/// Step in which a body is decompressed, so that a bomb is noticed early.
const STEP: u64 = 256 << 10;
/// Largest window of zstd, as a power of two: what RFC 8878 asks every decoder to take at least.
pub(crate) const ZSTD_WINDOW: u32 = 23;
/// Buffers kept for the next bodies, and the largest of them.
const SPARES: usize = 4;
const LARGEST_SPARE: usize = 512 << 10;

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// Larger than the configured limit, as sent or decompressed.
    TooLarge,
    /// All bodies together would take too much memory: it may pass later.
    Busy,
    /// The connection broke off.
    Connection,
    /// The sender has fallen silent.
    Silent,
    /// Not what its compression says.
    Compression,
}

/// Memory for bodies, shared by all connections of the sink's one thread.
#[derive(Debug)]
pub(crate) struct Budget {
    used: Cell<usize>,
    limit: usize,
    /// Buffers to be used again: fresh ones would each time come from the kernel, page by page.
    spare: RefCell<Vec<Vec<u8>>>,
}

impl Budget {
    /// At most `limit` bytes at once.
    pub(crate) fn new(limit: usize) -> Rc<Self> {
        Rc::new(Self { used: Cell::new(0), limit, spare: RefCell::default() })
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    fn recycle(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if (1..=LARGEST_SPARE).contains(&buffer.capacity()) && spare.len() < SPARES {
            buffer.clear();
            spare.push(buffer);
        }
    }
}

/// A message in memory; gives its part of the budget back when dropped.
#[derive(Debug)]
pub(crate) struct Payload {
    bytes: Vec<u8>,
    skipped: usize,
    reserved: usize,
    budget: Rc<Budget>,
}

impl Payload {
    /// Nothing yet.
    pub(crate) fn new(budget: &Rc<Budget>) -> Self {
        Self { bytes: Vec::new(), skipped: 0, reserved: 0, budget: Rc::clone(budget) }
    }

    /// The message.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.skipped..]
    }

    /// Makes room for as many bytes as are to come: no more of them is in memory than has come.
    pub(crate) fn expect(&mut self, bytes: usize) {
        if self.bytes.capacity() == 0 {
            self.bytes = self.budget.spare.borrow_mut().pop().unwrap_or_default();
        }
        self.bytes.reserve(bytes);
    }

    /// Takes the message out; an empty one is left.
    pub(crate) fn replace(&mut self) -> Self {
        std::mem::replace(self, Self::new(&Rc::clone(&self.budget)))
    }

    /// Forgets the message.
    pub(crate) fn clear(&mut self) {
        drop(self.replace());
    }

    /// Without its first bytes.
    pub(crate) fn skip(mut self, bytes: usize) -> Self {
        self.advance(bytes);
        self
    }

    /// Forgets its first bytes.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.skipped = (self.skipped + bytes).min(self.bytes.len());
    }

    fn reserve(&mut self, more: usize) -> Result<(), BodyError> {
        let used = self.budget.used.get() + more;
        if used > self.budget.limit {
            return Err(BodyError::Busy);
        }
        self.budget.used.set(used);
        self.reserved += more;
        Ok(())
    }

    /// Appends bytes, up to `limit` in all.
    pub(crate) fn push(&mut self, chunk: &[u8], limit: usize) -> Result<(), BodyError> {
        if self.bytes.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge);
        }
        self.reserve(chunk.len())?;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.budget.used.set(self.budget.used.get() - self.reserved);
        self.budget.recycle(std::mem::take(&mut self.bytes));
    }
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Not at all.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 1950, or RFC 1951 bare, as some senders read HTTP.
    Deflate,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// What `content-encoding` says; its value if it is another.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, String> {
        match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"" | b"identity") => Ok(Self::Identity),
            Some(b"gzip" | b"x-gzip") => Ok(Self::Gzip),
            Some(b"deflate") => Ok(Self::Deflate),
            Some(b"zstd") => Ok(Self::Zstd),
            Some(other) => Err(String::from_utf8_lossy(other).into_owned()),
        }
    }
}

/// Decompresses a body to at most `limit` bytes.
pub(crate) fn unpack(
    encoding: Encoding,
    body: Payload,
    limit: usize,
    budget: &Rc<Budget>,
) -> Result<Payload, BodyError> {
    let bytes = body.bytes();
    match encoding {
        Encoding::Identity => Ok(body),
        Encoding::Gzip => gunzip(bytes, limit, budget),
        Encoding::Deflate => match bytes {
            [first, second, ..] if is_zlib(*first, *second) => inflate(ZlibDecoder::new(bytes), limit, budget),
            _ => inflate(DeflateDecoder::new(bytes), limit, budget),
        },
        Encoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|_| BodyError::Compression)?;
            decoder.window_log_max(ZSTD_WINDOW).map_err(|_| BodyError::Compression)?;
            inflate(decoder, limit, budget)
        }
    }
}

/// Decompresses gzip, one member or several, to at most `limit` bytes.
pub(crate) fn gunzip(compressed: &[u8], limit: usize, budget: &Rc<Budget>) -> Result<Payload, BodyError> {
    inflate(MultiGzDecoder::new(compressed), limit, budget)
}

fn inflate(mut decoder: impl Read, limit: usize, budget: &Rc<Budget>) -> Result<Payload, BodyError> {
    let mut payload = Payload::new(budget);
    loop {
        let before = payload.bytes.len();
        decoder.by_ref().take(STEP).read_to_end(&mut payload.bytes).map_err(|_| BodyError::Compression)?;
        let read = payload.bytes.len() - before;
        if payload.bytes.len() > limit {
            return Err(BodyError::TooLarge);
        }
        payload.reserve(read)?;
        if read == 0 {
            return Ok(payload);
        }
    }
}

/// A reply's body: one piece of data, then perhaps trailers.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Reply {
    /// Data, then trailers if given.
    pub(crate) fn new(data: impl Into<Bytes>, trailers: Option<HeaderMap>) -> Self {
        Self { data: Some(data.into()).filter(|data: &Bytes| !data.is_empty()), trailers }
    }

    /// Data and trailers.
    pub(crate) fn into_parts(self) -> (Bytes, Option<HeaderMap>) {
        (self.data.unwrap_or_default(), self.trailers)
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = match self.data.take() {
            Some(data) => Some(Frame::data(data)),
            None => self.trailers.take().map(Frame::trailers),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("writing to memory");
        encoder.finish().expect("writing to memory")
    }

    #[test]
    fn gzip_comes_back_whole() {
        let budget = Budget::new(1 << 20);
        let two_members = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(gunzip(&two_members, 100, &budget).expect("sound").bytes(), b"one two");
        assert_eq!(budget.used.get(), 0, "everything is given back");
    }

    fn body(bytes: &[u8], budget: &Rc<Budget>) -> Payload {
        let mut body = Payload::new(budget);
        body.push(bytes, usize::MAX).expect("within the budget");
        body
    }

    #[test]
    fn every_encoding_comes_back_whole_and_no_bomb_goes_off() {
        let budget = Budget::new(1 << 20);
        let zlib = |bytes: &[u8]| {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(bytes).expect("writing to memory");
            encoder.finish().expect("writing to memory")
        };
        let raw = |bytes: &[u8]| zlib(bytes)[2..zlib(bytes).len() - 4].to_vec();
        let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).expect("writing to memory");
        type Pack<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
        let encoders: [(Encoding, Pack<'_>); 4] =
            [(Encoding::Gzip, &gzip), (Encoding::Deflate, &zlib), (Encoding::Deflate, &raw), (Encoding::Zstd, &zstd)];
        for (encoding, pack) in encoders {
            let whole = unpack(encoding, body(&pack(b"one two"), &budget), 7, &budget);
            assert_eq!(whole.expect("sound").bytes(), b"one two", "{encoding:?}");
            let bomb = pack(&vec![0; 8 << 20]);
            let gone = unpack(encoding, body(&bomb, &budget), 100_000, &budget);
            assert!(matches!(gone, Err(BodyError::TooLarge)), "{encoding:?}");
            let cut = unpack(encoding, body(&bomb[..bomb.len() / 2], &budget), 100_000_000, &Budget::new(1 << 30));
            assert!(matches!(cut, Err(BodyError::Compression)), "{encoding:?}");
            let scrap = unpack(encoding, body(b"\xff\xff\xff", &budget), 100, &budget);
            assert!(matches!(scrap, Err(BodyError::Compression)), "{encoding:?}");
        }
        assert_eq!(budget.used.get(), 0, "everything is given back");
    }

    #[test]
    fn bombs_and_scrap_are_refused() {
        let budget = Budget::new(1 << 20);
        let bomb = gzip(&vec![0; 8 << 20]);
        assert!(bomb.len() < 10_000);
        assert!(matches!(gunzip(&bomb, 100_000, &budget), Err(BodyError::TooLarge)));
        assert!(matches!(gunzip(&bomb, 16 << 20, &budget), Err(BodyError::Busy)));
        assert!(matches!(gunzip(b"no gzip at all", 100, &budget), Err(BodyError::Compression)));
        assert!(matches!(
            gunzip(&bomb[..bomb.len() / 2], 16 << 20, &Budget::new(1 << 30)),
            Err(BodyError::Compression)
        ));
        assert_eq!(budget.used.get(), 0, "everything is given back");
    }
}
