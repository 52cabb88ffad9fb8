//! What the tests of several parts need.

use proptest::sample::Index;

use crate::wire::put_bytes;

/// A message of Protocol Buffers with these fields, all of them length-delimited.
pub(crate) fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = Vec::new();
    fields.iter().for_each(|(field, bytes)| put_bytes(&mut message, *field, bytes));
    message
}

/// Bytes that end at some place, or have another byte there.
pub(crate) fn broken(bytes: &[u8], at: Index, byte: u8, is_cut: bool) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match bytes.len() {
        0 => {}
        length if is_cut => bytes.truncate(at.index(length)),
        length => bytes[at.index(length)] = byte,
    }
    bytes
}
