//! Attributes of spans as protocols encode them. They are left as they came until they are stored, and then shown to a
//! visitor: decoders find where they are, and need not know who looks at them.

pub(crate) mod logged;
pub(crate) mod otlp;
pub(crate) mod skywalking;

#[cfg(test)]
use crate::value::Value;
use crate::value::Visitor;

/// Attributes as the protocol encodes them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RawAttributes<'a> {
    /// The part of a `Span` message of OTLP that has them.
    Otlp(&'a [u8]),
    /// The part of a `SpanObject` message of SkyWalking that has them.
    Skywalking(&'a [u8]),
    /// As the store's log has them: what receivers make that cannot leave them as they came.
    Logged(&'a [u8]),
}

impl RawAttributes<'_> {
    /// Shows every attribute, in the order of the message. What cannot be decoded is left out.
    #[inline]
    pub(crate) fn visit(&self, visitor: &mut impl Visitor) {
        match self {
            RawAttributes::Otlp(fields) => otlp::visit(fields, visitor),
            RawAttributes::Skywalking(fields) => skywalking::visit(fields, visitor),
            RawAttributes::Logged(attributes) => logged::visit(attributes, visitor),
        }
    }

    /// Appends the wanted attributes as a JSON object; appends nothing and returns false if there are none.
    #[cfg(test)]
    pub(crate) fn write_json(&self, which: crate::config::Attributes, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.visit(&mut |key: &[u8], value: Value<'_>| {
            if which.wants(key) {
                crate::json::member(key, value, out.len() == start, out);
            }
        });
        if out.len() > start {
            out.push(b'}');
        }
        out.len() > start
    }
}
