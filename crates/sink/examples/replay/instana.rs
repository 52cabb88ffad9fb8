//! A list of the spans of Instana's tracers.

use crate::batches::{DURATION, Stamp, Template};
use crate::texts;
use crate::values::SpanParts;

/// A request with these spans, three of a trace.
pub(crate) fn template(parts: &[SpanParts]) -> Template {
    texts::request(parts, ["[", ",", "]"], |text, place, parts| {
        let is_root = place == 0;
        text.put("{\"t\":\"");
        text.place(Stamp::TraceLowHex, 16);
        text.put("\",\"s\":\"");
        text.place(Stamp::SpanHex, 16);
        if is_root {
            text.put("\",\"lt\":\"");
            text.place(Stamp::TraceHex, 32);
        } else {
            text.put("\",\"p\":\"");
            text.place(Stamp::RootHex, 16);
        }
        let kind = if is_root { 1 } else { 2 };
        text.put(&format!("\",\"n\":\"{}\",\"k\":{kind},\"ts\":", parts.0));
        text.place(Stamp::StartMillisDigits, 13);
        text.put(",\"d\":");
        text.place(Stamp::DurationMillis, DURATION);
        text.put(",\"f\":{\"e\":\"4711\",\"h\":\"02:42:ac:ff:fe:11:00:02\"},\"ec\":0,\"stack\":[],\"data\":{");
        text.put(if is_root { "\"service\":\"petclinic\",\"http\":{" } else { "\"mysql\":{" });
        text.members(parts, false);
        text.put("}}}");
    })
}
