//! A harvest of New Relic's agents: spans as three objects each.

use crate::batches::{DURATION, Stamp, Template};
use crate::texts;
use crate::values::SpanParts;

/// A request with these spans, three of a trace.
pub(crate) fn template(parts: &[SpanParts]) -> Template {
    let before = format!("[\"1\",{{\"reservoir_size\":100000,\"events_seen\":{}}},[", parts.len());
    texts::request(parts, [&before, ",", "]]"], |text, place, parts| {
        let is_root = place == 0;
        text.put("[{\"type\":\"Span\",\"traceId\":\"");
        text.place(Stamp::TraceHex, 32);
        text.put("\",\"guid\":\"");
        text.place(Stamp::SpanHex, 16);
        if !is_root {
            text.put("\",\"parentId\":\"");
            text.place(Stamp::RootHex, 16);
        }
        text.put("\",\"transactionId\":\"");
        text.place(Stamp::RootHex, 16);
        text.put("\",\"sampled\":true,\"priority\":1.123456,\"timestamp\":");
        text.place(Stamp::StartMillisDigits, 13);
        // Seconds.
        text.put(",\"duration\":");
        text.place(Stamp::DurationMicros, DURATION);
        text.put(&format!("e-6,\"name\":\"{}\",\"category\":", parts.0));
        text.put(match is_root {
            true => "\"generic\",\"nr.entryPoint\":true,\"transaction.name\":\"WebTransaction/Uri/owners\"},{},{",
            false => "\"datastore\",\"span.kind\":\"client\",\"component\":\"MySQL\"},{},{",
        });
        text.members(parts, false);
        text.put("}]");
    })
}
