//! What several parts do with bytes: compare short strings, use a buffer again.

/// Bytes that a buffer keeps when it is emptied.
const MAX_RETAINED: usize = 1 << 20;

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
