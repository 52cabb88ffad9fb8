//! Messages of gRPC that came together, each behind its prefix.

/// Bytes before every message: whether it is compressed, and its length.
pub const PREFIX: usize = 5;

/// The plain messages at the beginning of `bytes`, as far as they are whole.
#[inline]
pub fn frames(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let ([0, length @ ..], rest) = bytes.split_first_chunk::<PREFIX>()? else { return None };
        let (message, behind) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        bytes = behind;
        Some(message)
    })
}

/// Messages of a stream that came together.
#[derive(Debug, Clone, Copy)]
pub enum Together<'a> {
    /// One, its prefix taken off.
    One(&'a [u8]),
    /// Several, each behind its prefix.
    Framed(&'a [u8]),
}

impl<'a> Together<'a> {
    /// All that came.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::One(bytes) | Self::Framed(bytes) => bytes,
        }
    }

    /// The messages, one by one.
    #[inline]
    pub fn each(self) -> impl Iterator<Item = &'a [u8]> {
        let (one, framed) = match self {
            Self::One(message) => (Some(message), &[][..]),
            Self::Framed(messages) => (None, messages),
        };
        one.into_iter().chain(frames(framed))
    }
}
