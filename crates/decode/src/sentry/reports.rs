//! What an SDK says that it lost itself: the item `client_report`
//! (<https://develop.sentry.dev/sdk/telemetry/client-reports/>), every minute or so and as the program ends.
//!
//! Most SDKs book a lost transaction twice: as one `transaction` and as so many `span`s, itself among them. The account takes
//! a loss under two names once.

use bumpalo::Bump;

use super::envelope::Items;
use crate::broken::Broken;
use crate::ids;
use crate::json::reader::Reader;
use crate::loss::{LossCount, Stage};
use crate::span::Source;

/// Shows every loss that an envelope tells of, up to where it is broken: what is wrong with it is said by who takes its spans.
pub fn visit(envelope: &[u8], service: &[u8], mut on_loss: impl FnMut(LossCount<'_>)) {
    let arena = Bump::new();
    let Ok(mut items) = Items::of(envelope, &arena) else { return };
    while let Ok(Some(item)) = items.next() {
        if item.kind == b"client_report" && report(&arena, item.payload, service, &mut on_loss).is_err() {
            return;
        }
    }
}

fn report(arena: &Bump, payload: &[u8], service: &[u8], on_loss: &mut impl FnMut(LossCount<'_>)) -> Result<(), Broken> {
    let source = Source { service, instance: None };
    Reader::new(payload, arena).object(|reader, key| match key {
        b"discarded_events" => reader.array(|reader| {
            let (mut reason, mut category, mut quantity) = (&[][..], &[][..], 0);
            reader.object(|reader, key| match key {
                b"reason" => reader.text().map(|text| reason = text),
                b"category" => reader.text().map(|text| category = text),
                b"quantity" => reader.value().map(|number| quantity = number.whole().unwrap_or(0)),
                _ => reader.skip(),
            })?;
            let spans = u64::try_from(quantity).unwrap_or(0);
            if let (b"span" | b"transaction", Some(stage)) = (category, stage(reason)) {
                let series = ids::hash(0, reason);
                on_loss(LossCount { source, stage, metric: category, series, spans, is_cumulative: false });
            }
            Ok(())
        }),
        _ => reader.skip(),
    })
}

/// Where spans were lost for a reason; `None` if they were not to be recorded at all.
fn stage(reason: &[u8]) -> Option<Stage> {
    match reason {
        b"sample_rate" | b"no_parent_span" => None,
        // The last one is a rate of sampling that falls while the queue is full.
        b"queue_overflow" | b"cache_overflow" | b"buffer_overflow" | b"backpressure" => Some(Stage::Queue),
        b"network_error" | b"send_error" | b"ratelimit_backoff" | b"internal_sdk_error" => Some(Stage::Export),
        // `before_send`, `event_processor`, `ignored`, ….
        _ => Some(Stage::Filter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(envelope: &str) -> Vec<(Stage, String, u64)> {
        let mut losses = Vec::new();
        visit(envelope.as_bytes(), b"pets", |loss| {
            assert_eq!((loss.source, loss.is_cumulative), (Source { service: b"pets", instance: None }, false));
            losses.push((loss.stage, String::from_utf8_lossy(loss.metric).into_owned(), loss.spans));
        });
        losses
    }

    #[test]
    fn losses_by_stage() {
        let event = |reason: &str, category: &str, quantity: &str| {
            format!(r#"{{"reason":"{reason}","category":"{category}","quantity":{quantity}}}"#)
        };
        let all = [
            event("queue_overflow", "transaction", "2"),
            event("queue_overflow", "span", "9"),
            event("send_error", "span", "1"),
            event("before_send", "span", "4"),
            event("sample_rate", "span", "100"),
            event("queue_overflow", "error", "7"),
            event("network_error", "span", "-3"),
        ];
        let report = format!(r#"{{"timestamp":1.5,"discarded_events":[{}]}}"#, all.join(","));
        let envelope = format!("{{}}\n{{\"type\":\"session\"}}\n{{}}\n{{\"type\":\"client_report\"}}\n{report}\n");
        let expected = [
            (Stage::Queue, "transaction", 2),
            (Stage::Queue, "span", 9),
            (Stage::Export, "span", 1),
            (Stage::Filter, "span", 4),
            (Stage::Export, "span", 0),
        ];
        assert_eq!(losses(&envelope), expected.map(|(stage, metric, spans)| (stage, metric.to_string(), spans)));
        for end in 0..envelope.len() - report.len() {
            assert_eq!(losses(&envelope[..end]), [], "cut at {end}");
        }
    }
}
