//! Frames on the wire: their head, types, flags and codes (RFC 9113, 4, 6 and 7).

/// Bytes before a frame's payload.
pub const HEAD: usize = 9;
/// Largest payload that either side sends unless the other allows more; we never do.
pub const MAX_PAYLOAD: usize = 16_384;
/// What a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types.
pub mod kind {
    /// Bytes of a body.
    pub const DATA: u8 = 0;
    /// A header block, or its beginning.
    pub const HEADERS: u8 = 1;
    /// Which streams come first; deprecated.
    pub const PRIORITY: u8 = 2;
    /// The end of a stream before its time.
    pub const RST_STREAM: u8 = 3;
    /// What the sender of it allows.
    pub const SETTINGS: u8 = 4;
    /// A request that the server makes up.
    pub const PUSH_PROMISE: u8 = 5;
    /// To be sent back.
    pub const PING: u8 = 6;
    /// No further streams.
    pub const GOAWAY: u8 = 7;
    /// How many more bytes may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a header block.
    pub const CONTINUATION: u8 = 9;
}

/// Flags.
pub mod flag {
    /// An answer to SETTINGS or PING.
    pub const ACK: u8 = 0x1;
    /// Nothing follows on the stream.
    pub const END_STREAM: u8 = 0x1;
    /// The header block is whole.
    pub const END_HEADERS: u8 = 0x4;
    /// Padding stands at the end.
    pub const PADDED: u8 = 0x8;
    /// A priority stands before the block.
    pub const PRIORITY: u8 = 0x20;
}

/// Error codes.
pub mod code {
    /// All is well.
    pub const NO_ERROR: u32 = 0;
    /// The rules are broken.
    pub const PROTOCOL_ERROR: u32 = 1;
    /// More than the window holds.
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: u32 = 6;
    /// Nothing of the stream was looked at: it may be tried again.
    pub const REFUSED_STREAM: u32 = 7;
    /// Nobody needs the stream any more.
    pub const CANCEL: u32 = 8;
    /// A header block cannot be decoded.
    pub const COMPRESSION_ERROR: u32 = 9;
    /// Too much of it.
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

/// Identifiers of settings.
pub mod setting {
    /// Size of the table of header compression, bytes.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the server may push.
    pub const ENABLE_PUSH: u16 = 2;
    /// Streams at once.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// Window of a new stream, bytes.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// Largest payload, bytes.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// Most bytes of names and values of a request.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Length of the payload.
    pub length: usize,
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// 0: the connection.
    pub stream: u32,
}

impl Head {
    /// Reads it, if it is there completely.
    #[inline]
    pub fn read(input: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD] = input.first_chunk()?;
        Some(Self {
            length: usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]),
            kind: bytes[3],
            flags: bytes[4],
            stream: word(&bytes[5..]) & 0x7fff_ffff,
        })
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The first four bytes as a number; missing ones count as 0.
#[inline]
pub fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Appends a frame's head.
#[inline]
pub fn put_head(into: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = (length as u32).to_be_bytes();
    let id = stream.to_be_bytes();
    into.extend_from_slice(&[length[1], length[2], length[3], kind, flags, id[0], id[1], id[2], id[3]]);
}

/// Appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
pub fn put_word(into: &mut Vec<u8>, kind: u8, stream: u32, value: u32) {
    put_head(into, 4, kind, 0, stream);
    into.extend_from_slice(&value.to_be_bytes());
}

/// Appends a SETTINGS frame.
pub fn put_settings(into: &mut Vec<u8>, settings: &[(u16, u32)]) {
    put_head(into, 6 * settings.len(), kind::SETTINGS, 0, 0);
    for (identifier, value) in settings {
        into.extend_from_slice(&identifier.to_be_bytes());
        into.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends a GOAWAY frame; `last` is the highest stream of the other side that has been seen, 0 for none.
pub fn put_goaway(into: &mut Vec<u8>, last: u32, code: u32) {
    put_head(into, 8, kind::GOAWAY, 0, 0);
    into.extend_from_slice(&last.to_be_bytes());
    into.extend_from_slice(&code.to_be_bytes());
}

/// The payload without its padding. `None`: the padding does not fit.
#[inline]
pub fn unpadded(head: Head, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(flag::PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.len().checked_sub(usize::from(padding)).map(|length| &rest[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_is_put() {
        let mut bytes = Vec::new();
        put_head(&mut bytes, 0x01_02_03, kind::DATA, flag::END_STREAM, 0x7fff_fff1);
        assert_eq!(bytes, [1, 2, 3, 0, 1, 0x7f, 0xff, 0xff, 0xf1]);
        let head = Head { length: 0x01_02_03, kind: 0, flags: 1, stream: 0x7fff_fff1 };
        assert_eq!(Head::read(&bytes), Some(head));
        assert_eq!(Head::read(&bytes[..8]), None);
        bytes[5] |= 0x80;
        assert_eq!(Head::read(&bytes), Some(head), "the reserved bit means nothing");
    }

    #[test]
    fn padding_is_left_out_and_may_not_be_longer_than_the_payload() {
        let head = Head { length: 0, kind: kind::DATA, flags: flag::PADDED, stream: 1 };
        assert_eq!(unpadded(head, &[2, b'a', 0, 0]), Some(&b"a"[..]));
        assert_eq!(unpadded(head, &[3, 0, 0, 0]), Some(&b""[..]));
        assert_eq!(unpadded(head, &[4, 0, 0, 0]), None);
        assert_eq!(unpadded(head, &[]), None);
        assert_eq!(unpadded(Head { flags: 0, ..head }, &[2, b'a']), Some(&[2, b'a'][..]));
    }
}
