//! The chunked transfer coding (RFC 9112, 7.1), read piece by piece.

use super::Malformed;

/// Longest size line or trailer section, bytes.
const MAX_LINE: usize = 4096;

/// Where in the coding the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the hex digits of a size; whether one has come.
    Size(bool),
    /// After the digits, up to the line's end (chunk extensions).
    Extension,
    /// The size line's CR has come.
    SizeEnd,
    /// In the data of a chunk.
    Data,
    /// After the data: CR, then LF.
    DataEnd,
    /// See `DataEnd`.
    DataEndLf,
    /// At the start of a trailer line.
    Trailer,
    /// Within a trailer line.
    TrailerLine,
    /// The last line's CR has come.
    End,
    /// Everything has come.
    Done,
}

/// Reader of one chunked body.
#[derive(Debug, Clone)]
pub(crate) struct Chunked {
    state: State,
    /// Bytes left of the chunk.
    left: u64,
    /// Bytes of the line or trailers so far, so that endless ones end.
    line: usize,
}

impl Chunked {
    /// At the first size line.
    pub(crate) fn new() -> Self {
        Self { state: State::Size(false), left: 0, line: 0 }
    }

    /// Takes bytes in and hands the data in them to `data`. Returns how many were used and whether the body is complete.
    pub(crate) fn push(&mut self, input: &[u8], mut data: impl FnMut(&[u8])) -> Result<(usize, bool), Malformed> {
        let mut at = 0;
        while at < input.len() {
            if self.state == State::Data {
                let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - at);
                data(&input[at..at + take]);
                at += take;
                self.left -= take as u64;
                if self.left == 0 {
                    self.state = State::DataEnd;
                }
                continue;
            }
            self.line += 1;
            if self.line > MAX_LINE {
                return Err(Malformed::Chunk);
            }
            self.state = self.step(input[at])?;
            at += 1;
            if self.state == State::Done {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// One byte outside the data.
    fn step(&mut self, byte: u8) -> Result<State, Malformed> {
        Ok(match (self.state, byte) {
            (State::Size(_), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                if self.left >> 60 != 0 {
                    return Err(Malformed::Chunk);
                }
                self.left = self.left << 4 | digit;
                State::Size(true)
            }
            (State::Size(true) | State::Extension, b'\r') => State::SizeEnd,
            (State::Size(true), b';' | b' ' | b'\t') => State::Extension,
            (State::Extension, b'\t' | b' '..=0x7e | 0x80..) => State::Extension,
            (State::SizeEnd, b'\n') => {
                self.line = 0;
                if self.left == 0 { State::Trailer } else { State::Data }
            }
            (State::DataEnd, b'\r') => State::DataEndLf,
            (State::DataEndLf, b'\n') => {
                self.line = 0;
                State::Size(false)
            }
            (State::Trailer, b'\r') => State::End,
            (State::Trailer, byte) if byte != b'\n' => State::TrailerLine,
            (State::TrailerLine, b'\n') => State::Trailer,
            (State::TrailerLine, _) => State::TrailerLine,
            (State::End, b'\n') => State::Done,
            _ => return Err(Malformed::Chunk),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(input: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Malformed> {
        let (mut reader, mut body, mut used) = (Chunked::new(), Vec::new(), 0);
        for piece in input.chunks(piece.max(1)) {
            let (taken, done) = reader.push(piece, |data| body.extend_from_slice(data))?;
            used += taken;
            if done {
                return Ok((body, used, true));
            }
        }
        Ok((body, used, false))
    }

    #[test]
    fn good_bodies() {
        for (text, body) in [
            (&b"0\r\n\r\n"[..], &b""[..]),
            (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
            (b"3;name=\"v\"\r\nabc\r\n00A \r\n0123456789\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", b"abc0123456789"),
        ] {
            for piece in 1..text.len() {
                let (read, used, done) = read(text, piece).expect("well-formed");
                assert_eq!((read.as_slice(), used, done), (body, text.len(), true));
            }
        }
    }

    #[test]
    fn broken_bodies() {
        for text in [
            &b"\r\n"[..],
            b"x\r\n",
            b"-1\r\n",
            b"3\nabc",
            b"3\r\nabcd",
            b"3\r\nabc\n",
            b"10000000000000000\r\n",
            b"ffffffffffffffffff\r\n",
            b"0\r\n\n",
        ] {
            assert_eq!(read(text, 1).expect_err("broken"), Malformed::Chunk, "{}", text.escape_ascii());
        }
        let endless = [b"0\r\n".as_slice(), &b"A: b\r\n".repeat(1000)].concat();
        assert_eq!(read(&endless, 100).expect_err("endless trailers"), Malformed::Chunk);
    }

    proptest! {
        #[test]
        fn whatever_comes_it_neither_panics_nor_depends_on_the_cuts(input: Vec<u8>, piece in 1usize..16) {
            let whole = read(&input, input.len());
            match (read(&input, piece), whole) {
                (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
                (a, b) => prop_assert_eq!(a.is_err(), b.is_err()),
            }
        }
    }
}
