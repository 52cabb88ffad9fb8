//! What several parts do with bytes: take numbers and strings off them, compare short ones, use a buffer again.

/// Bytes that a buffer keeps when it is emptied.
const MAX_RETAINED: usize = 1 << 20;

/// Length of a span in its message.
pub(crate) fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Takes so many bytes off; `None` if there are fewer.
#[inline]
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*bytes)
}

/// Takes off what [`put_bytes`] appended.
#[inline]
pub(crate) fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(rest)?);
    let (bytes, behind) = rest.split_at_checked(length as usize)?;
    *rest = behind;
    Some(bytes)
}

/// Appends bytes with their length before them.
#[inline]
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Whether two short strings are equal. Calling `memcmp`, as `==` does, costs more than comparing them.
#[inline]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let length = a.len();
    if length != b.len() {
        return false;
    }
    let words = |at: usize| -> Option<bool> {
        let (a, b) = (a.get(at..)?.first_chunk::<8>()?, b.get(at..)?.first_chunk::<8>()?);
        Some(u64::from_le_bytes(*a) == u64::from_le_bytes(*b))
    };
    let pairs = |at: usize| -> Option<bool> {
        let (a, b) = (a.get(at..)?.first_chunk::<16>()?, b.get(at..)?.first_chunk::<16>()?);
        Some(u128::from_le_bytes(*a) == u128::from_le_bytes(*b))
    };
    match length {
        0 => true,
        1..8 => a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0,
        // The words overlap where the length is no multiple of eight.
        8..=16 => words(0) == Some(true) && words(length - 8) == Some(true),
        17..=32 => pairs(0) == Some(true) && pairs(length - 16) == Some(true),
        33..=64 => {
            pairs(0) == Some(true)
                && pairs(16) == Some(true)
                && pairs(length - 32) == Some(true)
                && pairs(length - 16) == Some(true)
        }
        _ => a == b,
    }
}

/// Empties a buffer that will be used again; gives its memory back if something unusually large was in it.
pub(crate) fn empty<T>(buffer: &mut Vec<T>) {
    if buffer.capacity() * size_of::<T>() > MAX_RETAINED {
        *buffer = Vec::new();
    } else {
        buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_is_what_is_equal() {
        for length in 0..72 {
            let a: Vec<u8> = (0..length).collect();
            assert!(same(&a, &a.clone()));
            assert!(!same(&a, &[&a[..], b"x"].concat()));
            for at in 0..a.len() {
                let mut b = a.clone();
                b[at] ^= 0x80;
                assert!(!same(&a, &b), "{length} bytes, another at {at}");
            }
        }
    }
}
