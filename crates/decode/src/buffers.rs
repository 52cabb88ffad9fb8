//! Numbers and strings at the end of a buffer, and taken off again. No format of a sender: it is how attributes are kept that cannot stay
//! as they came, and how whoever stores spans may log them.

/// Length of a span in its message.
#[inline]
pub(crate) fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Takes so many bytes off; `None` if there are fewer.
#[inline]
pub fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*bytes)
}

/// Takes off what [`put_bytes`] appended.
#[inline]
pub fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(rest)?);
    let (bytes, behind) = rest.split_at_checked(length as usize)?;
    *rest = behind;
    Some(bytes)
}

/// Appends bytes with their length before them.
#[inline]
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
