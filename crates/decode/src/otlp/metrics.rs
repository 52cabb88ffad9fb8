//! What OpenTelemetry SDKs tell about themselves in an `ExportMetricsServiceRequest`: spans that they dropped because a
//! queue was full, and spans that they could not export. All other metrics are skipped unread.
//!
//! Names as in the semantic conventions for SDK metrics (`otel.sdk.processor.span.processed`,
//! `otel.sdk.exporter.span.exported`, where `error.type` marks a loss) and as in the Java SDK before them
//! (`processedSpans` with `dropped`, `otlp.exporter.exported` with `success`).

use super::protobuf::resource;
use crate::loss::{LossCount, Stage};
use crate::span::Source;
use crate::wire::{Fields, Value, WireError, pair, repeated};

/// A counter's points are each the whole count since the start; else each is what came since the last.
const CUMULATIVE: u64 = 2;

/// Shows every loss that is told.
///
/// # Errors
/// If the body is not Protocol Buffers. Losses before the fault have been shown.
pub fn visit(body: &[u8], mut on_loss: impl FnMut(LossCount<'_>)) -> Result<(), WireError> {
    for group in repeated(body, 1) {
        resource_metrics(group?, &mut on_loss)?;
    }
    Ok(())
}

fn resource_metrics(message: &[u8], on_loss: &mut impl FnMut(LossCount<'_>)) -> Result<(), WireError> {
    let mut source = Source::default();
    for part in repeated(message, 1) {
        resource(part?, &mut source)?;
    }
    for scope in repeated(message, 2) {
        for message in repeated(scope?, 2) {
            metric(message?, &source, on_loss)?;
        }
    }
    Ok(())
}

fn metric(message: &[u8], source: &Source<'_>, on_loss: &mut impl FnMut(LossCount<'_>)) -> Result<(), WireError> {
    let (mut name, mut sum) = (&[][..], None);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => name = value.bytes()?,
            7 => sum = Some(value.bytes()?),
            _ => {}
        }
    }
    let (stage, marker): (_, &[u8]) = match name {
        b"otel.sdk.processor.span.processed" => (Stage::Queue, b"error.type"),
        b"otel.sdk.exporter.span.exported" => (Stage::Export, b"error.type"),
        b"processedSpans" => (Stage::Queue, b"dropped"),
        b"otlp.exporter.exported" => (Stage::Export, b"success"),
        _ => return Ok(()),
    };
    let Some(sum) = sum else { return Ok(()) };
    let mut is_cumulative = false;
    let mut fields = Fields::of(sum);
    while let Some((field, value)) = fields.next()? {
        if field == 2 {
            is_cumulative = value.varint()? == CUMULATIVE;
        }
    }
    for message in repeated(sum, 1) {
        if let Some((series, spans)) = point(message?, marker)? {
            on_loss(LossCount { source: *source, stage, metric: name, series, spans, is_cumulative });
        }
    }
    Ok(())
}

/// The attributes of a point, mixed into one number, and its count; `None` if it counts no losses.
fn point(message: &[u8], marker: &[u8]) -> Result<Option<(u64, u64)>, WireError> {
    let (mut count, mut is_loss, mut is_other, mut series) = (0, false, false, 0_u64);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            4 => count = f64::from_bits(value.fixed64()?).max(0.0) as u64,
            6 => count = value.fixed64()?,
            7 => {
                let attribute = value.bytes()?;
                // Points of one series carry the same attributes; their order does not matter in a sum.
                series = series.wrapping_add(u64::from(crc32fast::hash(attribute)));
                let (key, content) = pair(attribute)?;
                if key == marker {
                    is_loss = marks_loss(marker, content)?;
                } else if key == b"type" && marker == b"success" {
                    // The Java SDK counts logs and metrics under the same name.
                    is_other |= !matches!(Fields::of(content).next()?, Some((1, Value::Bytes(b"span"))));
                }
            }
            _ => {}
        }
    }
    Ok((is_loss && !is_other).then_some((series, count)))
}

fn marks_loss(marker: &[u8], content: &[u8]) -> Result<bool, WireError> {
    let truth = match Fields::of(content).next()? {
        Some((1, Value::Bytes(text))) => match marker {
            b"error.type" => return Ok(!text.is_empty()),
            _ => text == b"true",
        },
        Some((2, Value::Varint(number))) => number != 0,
        _ => return Ok(false),
    };
    Ok(if marker == b"success" { !truth } else { truth })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::message;
    use crate::wire::{put_bytes, put_number};

    fn attribute(key: &str, content: &[u8]) -> Vec<u8> {
        message(&[(1, key.as_bytes()), (2, content)])
    }

    fn string(key: &str, value: &str) -> Vec<u8> {
        attribute(key, &message(&[(1, value.as_bytes())]))
    }

    fn boolean(key: &str, value: bool) -> Vec<u8> {
        attribute(key, &[0x10, u8::from(value)])
    }

    fn metric(name: &str, temporality: u64, points: &[(Vec<u8>, u64)]) -> Vec<u8> {
        of_type("span", name, temporality, points)
    }

    fn of_type(kind: &str, name: &str, temporality: u64, points: &[(Vec<u8>, u64)]) -> Vec<u8> {
        let mut sum = Vec::new();
        for (attribute, count) in points {
            let count = [&[6 << 3 | 1][..], &count.to_le_bytes()].concat();
            put_bytes(&mut sum, 1, &[count, message(&[(7, &string("type", kind)), (7, attribute)])].concat());
        }
        put_number(&mut sum, 2, temporality);
        let scope = message(&[(2, &message(&[(1, name.as_bytes()), (7, &sum)]))]);
        let resource = message(&[(1, &string("service.name", "shop"))]);
        message(&[(1, &message(&[(2, &scope), (1, &resource)]))])
    }

    fn losses(body: &[u8]) -> Vec<(String, Stage, u64, bool)> {
        let mut losses = Vec::new();
        let name = |loss: &LossCount<'_>| String::from_utf8_lossy(loss.source.service).into_owned();
        visit(body, |loss| losses.push((name(&loss), loss.stage, loss.spans, loss.is_cumulative))).expect("sound");
        losses
    }

    #[test]
    fn losses_by_stage() {
        let full = string("error.type", "queue_full");
        let queue = metric("otel.sdk.processor.span.processed", 2, &[(string("other", "x"), 90), (full, 10)]);
        assert_eq!(losses(&queue), [("shop".into(), Stage::Queue, 10, true)]);
        let export = metric("otel.sdk.exporter.span.exported", 1, &[(string("error.type", "14"), 7)]);
        assert_eq!(losses(&export), [("shop".into(), Stage::Export, 7, false)]);
        let java = metric("processedSpans", 2, &[(boolean("dropped", true), 3), (boolean("dropped", false), 5)]);
        assert_eq!(losses(&java), [("shop".into(), Stage::Queue, 3, true)]);
        let java =
            metric("otlp.exporter.exported", 2, &[(boolean("success", true), 3), (boolean("success", false), 5)]);
        assert_eq!(losses(&java), [("shop".into(), Stage::Export, 5, true)]);
        let logs = of_type("log", "otlp.exporter.exported", 2, &[(boolean("success", false), 5)]);
        assert_eq!(losses(&logs), [], "those are no spans");
        assert_eq!(losses(&metric("http.server.duration", 2, &[(string("error.type", "500"), 3)])), []);
    }

    #[test]
    fn broken_metrics_are_an_error() {
        let sound = metric("processedSpans", 2, &[(boolean("dropped", true), 3)]);
        for end in 1..sound.len() {
            // Cut anywhere, it must not panic; cut within the outermost message, it is broken.
            assert!(visit(&sound[..end], |_| ()).is_err());
        }
    }
}
