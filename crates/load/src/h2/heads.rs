//! What a header block of the server means to us. Servers send the same few blocks over and over, so the last ones are kept with
//! their meaning: a block that is the same byte for byte, with an unchanged table, means the same.

use super::hpack::{BlockError, Decoder};

/// Blocks that are kept.
const CACHED_BLOCKS: usize = 4;
/// Largest block that is kept, bytes.
const MAX_CACHED_BLOCK: usize = 4096;

/// What a block of a response or its trailers says, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    /// `:status`; 0: none.
    pub(super) status: u16,
    /// `content-length`.
    pub(super) length: Option<u64>,
    /// `grpc-status`.
    pub(super) grpc_status: Option<u16>,
    /// It breaks the rules for fields (RFC 9113, 8.2 and 8.3).
    pub(super) malformed: bool,
}

/// A block and its meaning.
#[derive(Debug, Default)]
struct Known {
    block: Vec<u8>,
    /// State of the table for which it holds.
    changes: u64,
    head: Head,
}

/// Reads blocks.
#[derive(Debug)]
pub(super) struct Heads {
    decoder: Decoder,
    known: [Known; CACHED_BLOCKS],
    next: usize,
}

impl Heads {
    /// Before the first block.
    pub(super) fn new() -> Self {
        Self { decoder: Decoder::new(), known: Default::default(), next: 0 }
    }

    /// Reads a block; every one must be, in order, since each may change the table.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8]) -> Result<Head, BlockError> {
        let changes = self.decoder.changes();
        for known in &self.known {
            if known.changes == changes && known.block == block {
                return Ok(known.head);
            }
        }
        self.read_slowly(block, |_, _| {})
    }

    /// [`Heads::read`] that also writes a line for each header field, as HTTP/1.1 would have them.
    pub(super) fn read_lines(&mut self, block: &[u8], lines: &mut Vec<u8>) -> Result<Head, BlockError> {
        lines.clear();
        self.read_slowly(block, |name, value| {
            if !name.starts_with(b":") {
                for part in [name, b": ", value, b"\r\n"] {
                    lines.extend_from_slice(part);
                }
            }
        })
    }

    /// Reads a block that is not known.
    #[cold]
    fn read_slowly(&mut self, block: &[u8], mut seen: impl FnMut(&[u8], &[u8])) -> Result<Head, BlockError> {
        let changes = self.decoder.changes();
        let mut head = Head::default();
        let mut fields = false;
        self.decoder.decode(block, |name, value| {
            seen(name, value);
            let pseudo = name.first() == Some(&b':');
            head.malformed |= match name {
                b":status" => {
                    let before = std::mem::replace(&mut head.status, status(value));
                    before != 0 || head.status == 0
                }
                b"content-length" => {
                    let length = decimal(value);
                    length.is_none()
                        || head.length.replace(length.unwrap_or(0)).is_some_and(|other| Some(other) != length)
                }
                b"grpc-status" => {
                    head.grpc_status = decimal(value).and_then(|code| u16::try_from(code).ok());
                    head.grpc_status.is_none()
                }
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => true,
                _ => pseudo || name.is_empty() || !name.iter().all(|&byte| is_name(byte)),
            };
            head.malformed |= value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
            // Pseudo-header fields come first.
            head.malformed |= pseudo && fields;
            fields |= !pseudo;
        })?;
        if changes == self.decoder.changes() && block.len() <= MAX_CACHED_BLOCK && !block.is_empty() {
            let known = &mut self.known[self.next];
            known.block.clear();
            known.block.extend_from_slice(block);
            (known.changes, known.head) = (changes, head);
            self.next = (self.next + 1) % CACHED_BLOCKS;
        }
        Ok(head)
    }
}

/// Whether a byte may stand in a field's name (RFC 9113, 8.2.1).
fn is_name(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e) && !byte.is_ascii_uppercase() && byte != b':'
}

/// A status code; 0 if it is none.
fn status(value: &[u8]) -> u16 {
    match value {
        [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => {
            value.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'))
        }
        _ => 0,
    }
}

/// A decimal number of at most 18 digits.
fn decimal(value: &[u8]) -> Option<u64> {
    let good = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    good.then(|| value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::super::hpack;
    use super::*;

    fn block(fields: &[(&str, &str)], indexing: bool) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            hpack::put_literal(&mut block, name, value.as_bytes(), indexing);
        }
        block
    }

    #[test]
    fn the_same_bytes_mean_the_same_only_while_the_table_stands_still() {
        let mut heads = Heads::new();
        heads.read(&block(&[(":status", "404")], true)).expect("good");
        // Index 62 is 404 now; read twice, so that it is kept.
        for _ in 0..2 {
            assert_eq!(heads.read(&[0xbe]).expect("good").status, 404);
        }
        heads.read(&block(&[(":status", "503")], true)).expect("good");
        assert_eq!(heads.read(&[0xbe]).expect("good").status, 503);
        assert_eq!(heads.read(&[0xbf]).expect("good").status, 404);
    }

    #[test]
    fn a_block_that_changes_the_table_is_read_anew_each_time() {
        let mut heads = Heads::new();
        let insert = block(&[(":status", "200"), ("content-length", "5")], true);
        for _ in 0..3 {
            heads.read(&insert).expect("good");
        }
        assert_eq!(heads.decoder.changes(), 6);
    }

    #[test]
    fn fields_are_understood_and_rules_kept() {
        let read = |fields: &[(&str, &str)]| Heads::new().read(&block(fields, false)).expect("HPACK");
        let head = read(&[(":status", "200"), ("content-length", "12"), ("grpc-status", "14"), ("x", "")]);
        assert_eq!(head, Head { status: 200, length: Some(12), grpc_status: Some(14), malformed: false });
        assert_eq!(read(&[("grpc-status", "0")]), Head { grpc_status: Some(0), ..Head::default() });
        assert!(!read(&[("content-length", "5"), ("content-length", "5")]).malformed);
        for fields in [
            &[(":status", "20")][..],
            &[(":status", "abc")],
            &[(":status", "200"), (":status", "200")],
            &[("x", "y"), (":status", "200")],
            &[(":status", "200"), (":path", "/")],
            &[("content-length", "-1")],
            &[("content-length", "5"), ("content-length", "6")],
            &[("grpc-status", "99999")],
            &[("transfer-encoding", "chunked")],
            &[("X-Upper", "1")],
            &[("", "1")],
            &[("a b", "1")],
            &[("a:b", "1")],
            &[("x", "1\r\ninjected: 2")],
        ] {
            assert!(read(fields).malformed, "{fields:?}");
        }
    }
}
