//! What the fuzz targets need of the store: spans through the log and into a group, and bytes as a log.

use std::io;
use std::path::Path;

use unladen_decode::span::{Batch, Protocol, Source, Span};
use unladen_decode::value::Value;

use super::group::Group;
use super::log::{self, Log, Logged};
use crate::config::Attributes;

/// Writes a span to a log and reads it back.
pub(crate) fn goes_through_the_log(span: &Span<'_>, source: &Source<'_>) {
    let logged = Logged { span: *span, source: *source, request: Some(7), protocol: Protocol::Jaeger, arrival_ns: 1 };
    let mut out = Vec::new();
    log::write(&logged, Attributes::All, &mut out);
    let mut rest = &out[..];
    let read = log::next(&mut rest).expect("what was logged can be read");
    assert!(rest.is_empty(), "nothing more was logged");
    // Attributes are compared below; the rest is not logged.
    assert_eq!(Span { source: 0, is_shared: false, attributes: read.span.attributes, ..*span }, read.span);
    assert_eq!(read.source, *source);
    assert_eq!(attributes(&read.span), attributes(span));
}

fn attributes(span: &Span<'_>) -> String {
    let mut all = String::new();
    // As text, because NaN is not equal to itself.
    span.attributes.visit(&mut |key: &[u8], value: Value<'_>| all += &format!("{key:?}={value:?};"));
    all
}

/// Puts all spans where they wait to be written.
pub(crate) fn goes_into_a_group(batch: &Batch<'_>) {
    let mut group = Group::default();
    for span in &batch.spans {
        let origin = group.origin(&batch.sources[span.source as usize]);
        group.push(span, origin, None, Protocol::OtlpGrpc, 0, Attributes::All);
    }
    assert_eq!(group.len(), batch.spans.len());
}

/// Reads bytes as the inside of a block of a log.
pub(crate) fn read_log(mut bytes: &[u8]) {
    while let Some(logged) = log::next(&mut bytes) {
        goes_through_the_log(&logged.span, &logged.source);
    }
}

/// Writes bytes as a sound block of a log.
pub(crate) fn write_log(folder: &Path, spans: &[u8]) -> io::Result<()> {
    Log::create(folder)?.append(1, spans)
}
