//! Attributes of a SkyWalking span: tags, which are text, and the peer.

use crate::value::{Value as Attribute, Visitor};
use crate::wire::{Fields, Value, pair};

/// What a tag begins with in a `SpanObject`: field 12, of bytes.
pub(crate) const TAG: u8 = 12 << 3 | 2;

/// Shows the tags among the fields of a `SpanObject` one by one, and its peer. What cannot be decoded is left out, because
/// the span itself is sound.
pub(crate) fn visit(fields: &[u8], visitor: &mut impl Visitor) {
    let mut fields = Fields::of(fields);
    let (mut peer, mut peer_field) = (&[][..], &[][..]);
    loop {
        let rest = fields.rest();
        let field = match fields.another(TAG) {
            Some(tag) => Ok(Some((12, Value::Bytes(tag)))),
            None => fields.next(),
        };
        // As a whole, so that no tag is taken for a peer.
        let encoded = &rest[..rest.len() - fields.rest().len()];
        let tag = match field {
            Ok(Some((12, Value::Bytes(tag)))) => tag,
            Ok(Some((7, Value::Bytes(bytes)))) => {
                (peer, peer_field) = (bytes, encoded);
                continue;
            }
            Ok(Some(_)) => continue,
            // The fields were walked once, so an error cannot come.
            Ok(None) | Err(_) => break,
        };
        if !visitor.takes(encoded)
            && let Ok((key, content)) = pair(tag)
        {
            visitor.attribute(encoded, key, Attribute::Text(content));
        }
    }
    if !peer.is_empty() && !visitor.takes(peer_field) {
        visitor.attribute(peer_field, b"peer", Attribute::Text(peer));
    }
}
