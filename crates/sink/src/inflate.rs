//! Decompression of bodies: as a whole if they are one message, or while they come in, in steps of bounded size, for
//! protocols whose senders hold a request open and send line by line. Either way a bomb is noticed early.

use std::io::{Read, Write};
use std::rc::Rc;

use flate2::read::{DeflateDecoder, MultiGzDecoder as WholeGzDecoder, ZlibDecoder};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use http::{HeaderMap, HeaderValue, header};
use zstd::stream::raw::{DParameter, Decoder, Operation};

use crate::body::{BodyError, Budget, Payload};

/// Largest window of zstd, as a power of two: what RFC 8878 asks every decoder to take at least.
const ZSTD_WINDOW: u32 = 23;
/// Compressed bytes of gzip that are looked at in one step; they become at most about a thousand times as many.
const GZIP_STEP: usize = 256;
/// Decompressed bytes of one step of the other formats.
const STEP: usize = 16 << 10;

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
    /// What `content-encoding` says, in whichever case (RFC 9110, section 8.4.1); its value if it is another.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, String> {
        const CODINGS: [(&str, Encoding); 6] = [
            ("", Encoding::Identity),
            ("identity", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("x-gzip", Encoding::Gzip),
            ("deflate", Encoding::Deflate),
            ("zstd", Encoding::Zstd),
        ];
        let value = headers.get(header::CONTENT_ENCODING).map_or(&[][..], HeaderValue::as_bytes);
        let coding = CODINGS.iter().find(|(name, _)| value.eq_ignore_ascii_case(name.as_bytes()));
        coding.map(|(_, encoding)| *encoding).ok_or_else(|| String::from_utf8_lossy(value).into_owned())
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
    inflate(WholeGzDecoder::new(compressed), limit, budget)
}

fn inflate(decoder: impl Read, limit: usize, budget: &Rc<Budget>) -> Result<Payload, BodyError> {
    let mut payload = Payload::new(budget);
    payload.read_from(decoder, limit)?;
    Ok(payload)
}

/// A body's decompressor.
pub(crate) struct Inflate {
    format: Format,
    /// Whether the bytes that were seen may become more than has come out.
    holds_back: bool,
}

enum Format {
    Identity,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// The head of zlib is to be told from bare deflate first.
    UnknownDeflate(Option<u8>),
    /// And whether it has ended.
    Deflate(Decompress, bool),
    /// And whether it is between two frames.
    Zstd(Box<Decoder<'static>>, bool),
}

impl Inflate {
    /// At the start of a body.
    pub(crate) fn new(encoding: Encoding) -> Result<Self, BodyError> {
        let format = match encoding {
            Encoding::Identity => Format::Identity,
            Encoding::Gzip => Format::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Encoding::Deflate => Format::UnknownDeflate(None),
            Encoding::Zstd => {
                let mut decoder = Decoder::new().map_err(|_| BodyError::Compression)?;
                let window = DParameter::WindowLogMax(ZSTD_WINDOW);
                decoder.set_parameter(window).map_err(|_| BodyError::Compression)?;
                Format::Zstd(Box::new(decoder), true)
            }
        };
        Ok(Self { format, holds_back: false })
    }

    /// Appends what the compressed bytes become and takes off those that it has seen. True if there is more to come of
    /// them, because `out` has grown to about `enough` before; more than `limit` bytes are an error.
    pub(crate) fn feed(
        &mut self,
        compressed: &mut &[u8],
        out: &mut Payload,
        enough: usize,
        limit: usize,
    ) -> Result<bool, BodyError> {
        while !compressed.is_empty() || self.holds_back {
            if out.bytes().len() >= enough {
                return Ok(true);
            }
            self.step(compressed, out, limit)?;
        }
        Ok(false)
    }

    fn step(&mut self, compressed: &mut &[u8], out: &mut Payload, limit: usize) -> Result<(), BodyError> {
        match &mut self.format {
            Format::Identity => out.push(std::mem::take(compressed), limit),
            Format::Gzip(decoder) => {
                let (now, later) = compressed.split_at(compressed.len().min(GZIP_STEP));
                *compressed = later;
                decoder.write_all(now).and_then(|()| decoder.flush()).map_err(|_| BodyError::Compression)?;
                let pushed = out.push(decoder.get_ref(), limit);
                decoder.get_mut().clear();
                pushed
            }
            Format::UnknownDeflate(first) => {
                let Some((next, behind)) = compressed.split_first() else { return Ok(()) };
                *compressed = behind;
                let Some(first) = *first else {
                    *first = Some(*next);
                    return Ok(());
                };
                let head = [first, *next];
                self.format = Format::Deflate(Decompress::new(is_zlib(head[0], head[1])), false);
                // Two bytes become next to nothing.
                self.step(&mut &head[..], out, limit)
            }
            // There is something behind the end.
            Format::Deflate(_, true) => Err(BodyError::Compression),
            Format::Deflate(decoder, is_ended) => {
                let mut plain = [0; STEP];
                let before = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(compressed, &mut plain, FlushDecompress::None);
                let read = (decoder.total_in() - before.0) as usize;
                let written = (decoder.total_out() - before.1) as usize;
                *is_ended = match status {
                    Ok(Status::StreamEnd) => true,
                    Ok(Status::Ok | Status::BufError) => false,
                    Err(_) => return Err(BodyError::Compression),
                };
                self.holds_back = !*is_ended && written == plain.len();
                advance(compressed, read, written)?;
                out.push(&plain[..written], limit)
            }
            Format::Zstd(decoder, is_between) => {
                let mut plain = [0; STEP];
                let status = decoder.run_on_buffers(compressed, &mut plain).map_err(|_| BodyError::Compression)?;
                *is_between = status.remaining == 0;
                self.holds_back = !*is_between && status.bytes_written == plain.len();
                advance(compressed, status.bytes_read, status.bytes_written)?;
                out.push(&plain[..status.bytes_written], limit)
            }
        }
    }

    /// At the end of the body: what is still held back; an error if the compressed text should not have ended here.
    pub(crate) fn finish(&mut self, out: &mut Payload, limit: usize) -> Result<(), BodyError> {
        match &mut self.format {
            Format::Identity | Format::Deflate(_, true) | Format::Zstd(_, true) => Ok(()),
            Format::Gzip(decoder) => {
                decoder.try_finish().map_err(|_| BodyError::Compression)?;
                out.push(decoder.get_ref(), limit)
            }
            Format::UnknownDeflate(_) | Format::Deflate(..) | Format::Zstd(..) => Err(BodyError::Compression),
        }
    }
}

/// Whether a body begins as RFC 1950 wants it: deflate with a window of up to 32 KiB, and a checksum over these two bytes.
pub(crate) fn is_zlib(first: u8, second: u8) -> bool {
    first & 15 == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

/// Takes off what was read; that nothing happens at all must not go on for ever.
fn advance(compressed: &mut &[u8], read: usize, written: usize) -> Result<(), BodyError> {
    let is_stuck = !compressed.is_empty() && read == 0 && written == 0;
    *compressed = compressed.get(read..).unwrap_or_default();
    if is_stuck { Err(BodyError::Compression) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn pack(encoding: Encoding, is_bare: bool, plain: &[u8]) -> Vec<u8> {
        let level = Compression::default();
        let done = match encoding {
            Encoding::Identity => Ok(plain.to_vec()),
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), level);
                encoder.write_all(plain).and_then(|()| encoder.finish())
            }
            Encoding::Deflate if is_bare => {
                let mut encoder = DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(plain).and_then(|()| encoder.finish())
            }
            Encoding::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(plain).and_then(|()| encoder.finish())
            }
            Encoding::Zstd => zstd::bulk::compress(plain, 1),
        };
        done.expect("writing to memory")
    }

    fn whole(encoding: Encoding, body: &[u8], limit: usize, budget: &Rc<Budget>) -> Result<Payload, BodyError> {
        let mut packed = Payload::new(&Budget::new(usize::MAX));
        packed.push(body, usize::MAX)?;
        unpack(encoding, packed, limit, budget)
    }

    /// Feeds a body piece by piece, forgetting what came out as a stream would; everything that came out, and the largest
    /// piece of it.
    fn stream(encoding: Encoding, body: &[u8], pieces: usize, limit: usize) -> Result<(Vec<u8>, usize), BodyError> {
        const ENOUGH: usize = 10_000;
        let budget = Budget::new(limit);
        let mut inflate = Inflate::new(encoding)?;
        let (mut all, mut largest) = (Vec::new(), 0);
        for mut piece in body.chunks(pieces) {
            let mut is_more = true;
            while is_more {
                let mut out = Payload::new(&budget);
                is_more = inflate.feed(&mut piece, &mut out, ENOUGH, limit)?;
                all.extend_from_slice(out.bytes());
                largest = largest.max(out.bytes().len());
            }
        }
        let mut out = Payload::new(&budget);
        inflate.finish(&mut out, limit)?;
        all.extend_from_slice(out.bytes());
        Ok((all, largest))
    }

    const ALL: [(Encoding, bool); 5] = [
        (Encoding::Identity, false),
        (Encoding::Gzip, false),
        (Encoding::Deflate, false),
        (Encoding::Deflate, true),
        (Encoding::Zstd, false),
    ];

    #[test]
    fn every_encoding_comes_back_whole_and_no_bomb_goes_off() {
        let budget = Budget::new(1 << 20);
        for (encoding, is_bare) in ALL {
            let sound = whole(encoding, &pack(encoding, is_bare, b"one two"), 7, &budget);
            assert_eq!(sound.expect("sound").bytes(), b"one two", "{encoding:?}");
        }
        for (encoding, is_bare) in &ALL[1..] {
            let bomb = pack(*encoding, *is_bare, &vec![0; 8 << 20]);
            assert!(bomb.len() < 10_000, "{encoding:?}");
            let gone = |limit| whole(*encoding, &bomb, limit, &budget);
            assert!(matches!(gone(100_000), Err(BodyError::TooLarge)), "{encoding:?}");
            assert!(matches!(gone(16 << 20), Err(BodyError::Busy)), "{encoding:?}");
            for scrap in [&bomb[..bomb.len() / 2], b"\xff\xff\xff", b"nothing compressed at all"] {
                let scrap = whole(*encoding, scrap, 100_000_000, &Budget::new(1 << 30));
                assert!(matches!(scrap, Err(BodyError::Compression)), "{encoding:?}");
            }
        }
        let two_members = [pack(Encoding::Gzip, false, b"one "), pack(Encoding::Gzip, false, b"two")].concat();
        assert_eq!(gunzip(&two_members, 100, &budget).expect("sound").bytes(), b"one two");
        assert_eq!(budget.used(), 0, "everything is given back");
    }

    #[test]
    fn bombs_come_in_small_pieces() {
        let zeros = vec![0; 8 << 20];
        for (encoding, is_bare) in &ALL[1..] {
            let bomb = pack(*encoding, *is_bare, &zeros);
            let (all, largest) = stream(*encoding, &bomb, 64 << 10, 16 << 20).expect("sound");
            assert_eq!(all.len(), zeros.len(), "{encoding:?}");
            assert!(largest < 1 << 20, "{encoding:?}: {largest}");
        }
    }

    #[test]
    fn what_is_cut_off_or_scrap_is_an_error() {
        let plain: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
        for (encoding, is_bare) in &ALL[1..] {
            let body = pack(*encoding, *is_bare, &plain);
            for end in [0, 1, body.len() / 2, body.len() - 1] {
                // Nothing at all is no zstd frame, and no gzip member.
                let cut = stream(*encoding, &body[..end], 1_000, 1 << 20);
                let is_empty_zstd = end == 0 && *encoding == Encoding::Zstd;
                assert_eq!(cut.is_err(), !is_empty_zstd, "{encoding:?} cut at {end}");
            }
            assert!(stream(*encoding, b"\xff\xff\xff\xff\xff", 2, 1 << 20).is_err(), "{encoding:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_the_whole(
            plain in prop::collection::vec(prop_oneof![Just(7_u8), any::<u8>()], 1..40_000),
            choice in 0..ALL.len(),
            pieces in 1_usize..5_000,
        ) {
            let (encoding, is_bare) = ALL[choice];
            let body = pack(encoding, is_bare, &plain);
            let (all, _) = stream(encoding, &body, pieces, 1 << 20).expect("sound");
            prop_assert_eq!(all, plain);
        }

        /// As a stream a body is taken for what it is as a whole, whatever was done to it.
        #[test]
        fn broken_bodies(
            choice in 1..ALL.len(), at in any::<prop::sample::Index>(), byte: u8, cut: bool, pieces in 1_usize..400
        ) {
            let (encoding, is_bare) = ALL[choice];
            let plain: Vec<u8> = (0..300_u32).flat_map(u32::to_le_bytes).collect();
            let mut body = pack(encoding, is_bare, &plain);
            let at = at.index(body.len());
            if cut { body.truncate(at) } else { body[at] = byte }
            let streamed = stream(encoding, &body, pieces, 1 << 20);
            let whole = whole(encoding, &body, 1 << 20, &Budget::new(1 << 22));
            if let (Ok((streamed, _)), Ok(whole)) = (streamed, whole) {
                prop_assert_eq!(&streamed[..], whole.bytes());
            }
        }
    }
}
