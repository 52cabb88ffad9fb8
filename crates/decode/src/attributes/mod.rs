//! Attributes of spans as protocols encode them. They are left as they came until somebody wants them, and then shown
//! to a visitor: decoders find where they are, and need not know who looks at them.

pub mod logged;
pub(crate) mod otlp;
pub(crate) mod skywalking;

use crate::value::Visitor;

/// Attributes as the protocol encodes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RawAttributes<'a> {
    /// The part of a `Span` message of OTLP that has them.
    Otlp(&'a [u8]),
    /// The part of a `SpanObject` message of SkyWalking that has them.
    Skywalking(&'a [u8]),
    /// In an encoding of their own ([`logged`]): what decoders make that cannot leave them as they came.
    Logged(&'a [u8]),
}

impl RawAttributes<'_> {
    /// Shows every attribute, in the order of the message. What cannot be decoded is left out.
    #[inline]
    pub fn visit(&self, visitor: &mut impl Visitor) {
        match self {
            RawAttributes::Otlp(fields) => otlp::visit(fields, visitor),
            RawAttributes::Skywalking(fields) => skywalking::visit(fields, visitor),
            RawAttributes::Logged(attributes) => logged::visit(attributes, visitor),
        }
    }

    /// All of them as a JSON object; empty if there are none.
    #[cfg(test)]
    pub(crate) fn json(&self) -> String {
        let mut out = Vec::new();
        self.visit(&mut |key: &[u8], value: crate::value::Value<'_>| {
            crate::json::member(key, value, out.is_empty(), &mut out);
        });
        out.extend((!out.is_empty()).then_some(b'}'));
        String::from_utf8(out).expect("JSON is UTF-8")
    }
}

impl Default for RawAttributes<'_> {
    /// None.
    fn default() -> Self {
        Self::Logged(&[])
    }
}
