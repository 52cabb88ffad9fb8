//! Frames on the wire: their head, types, flags and codes (RFC 9113, 4, 6 and 7).

/// Bytes before a frame's payload.
pub(crate) const HEAD: usize = 9;
/// Largest payload that either side sends unless the other allows more; we never do.
pub(crate) const MOST_PAYLOAD: usize = 16_384;
/// What a client sends first.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Error codes.
pub(crate) mod code {
    pub(crate) const NO_ERROR: u32 = 0;
    pub(crate) const PROTOCOL_ERROR: u32 = 1;
    pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
    pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
    pub(crate) const REFUSED_STREAM: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
    pub(crate) const COMPRESSION_ERROR: u32 = 9;
    pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;
}

/// Identifiers of settings.
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Length of the payload.
    pub(crate) length: usize,
    /// See [`kind`].
    pub(crate) kind: u8,
    /// See [`flag`].
    pub(crate) flags: u8,
    /// 0: the connection.
    pub(crate) stream: u32,
}

impl Head {
    /// Reads it, if it is there completely.
    #[inline]
    pub(crate) fn read(input: &[u8]) -> Option<Self> {
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
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The first four bytes as a number; missing ones count as 0.
#[inline]
pub(crate) fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Appends a frame's head.
#[inline]
pub(crate) fn put_head(into: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = (length as u32).to_be_bytes();
    let id = stream.to_be_bytes();
    into.extend_from_slice(&[length[1], length[2], length[3], kind, flags, id[0], id[1], id[2], id[3]]);
}

/// Appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
pub(crate) fn put_word(into: &mut Vec<u8>, kind: u8, stream: u32, value: u32) {
    put_head(into, 4, kind, 0, stream);
    into.extend_from_slice(&value.to_be_bytes());
}

/// Appends a SETTINGS frame.
pub(crate) fn put_settings(into: &mut Vec<u8>, settings: &[(u16, u32)]) {
    put_head(into, 6 * settings.len(), kind::SETTINGS, 0, 0);
    for (identifier, value) in settings {
        into.extend_from_slice(&identifier.to_be_bytes());
        into.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends a GOAWAY frame: no stream of the server's has been seen.
pub(crate) fn put_goaway(into: &mut Vec<u8>, code: u32) {
    put_head(into, 8, kind::GOAWAY, 0, 0);
    into.extend_from_slice(&[0; 4]);
    into.extend_from_slice(&code.to_be_bytes());
}

/// The payload without its padding. `None`: the padding does not fit.
#[inline]
pub(crate) fn unpadded(head: Head, payload: &[u8]) -> Option<&[u8]> {
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
