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
