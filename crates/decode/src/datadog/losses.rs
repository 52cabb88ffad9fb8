//! What Datadog's tracers tell of spans that they dropped: the counter `spans_dropped` of their telemetry (JSON), and the counters
//! `datadog.tracer.queue.dropped.spans` (Java) and `datadog.tracer.spans_dropped` (Go) of their DogStatsD, text over UDP
//! (<https://docs.datadoghq.com/developers/dogstatsd/datagram_shell>). Each value counts what came since the last.
//!
//! Only reasons that are known to be losses count. Spans that a tracer leaves out because their trace has the priority not to be kept
//! are told under the same names, and are sampled, not lost.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::json::reader::Reader;
use crate::loss::{LossCount, Stage};
use crate::span::Source;

/// A counter of the telemetry.
const SPANS_DROPPED: &[u8] = b"spans_dropped";
/// Counters over DogStatsD.
const STATSD: [&[u8]; 2] = [b"datadog.tracer.queue.dropped.spans", b"datadog.tracer.spans_dropped"];

/// Shows every loss that telemetry tells.
///
/// # Errors
/// If the body is not JSON of this shape. Losses before the fault have been shown.
pub fn telemetry(body: &[u8], mut on_loss: impl FnMut(LossCount<'_>)) -> Result<(), Broken> {
    let arena = Bump::new();
    let mut source = Source::default();
    let message = message(&mut Reader::new(body, &arena), &mut source)?;
    match message {
        (b"generate-metrics", Some(mut payload)) => metrics(&mut payload, source, &mut on_loss),
        (b"message-batch", Some(mut payload)) => payload.array(|reader| {
            // The messages of a batch come from who sends it.
            match message_of_batch(reader)? {
                (b"generate-metrics", Some(mut payload)) => metrics(&mut payload, source, &mut on_loss),
                _ => Ok(()),
            }
        }),
        _ => Ok(()),
    }
}

/// What a message is, and where its payload begins.
type Message<'a> = (&'a [u8], Option<Reader<'a>>);

fn message_of_batch<'a>(reader: &mut Reader<'a>) -> Result<Message<'a>, Broken> {
    message(reader, &mut Source::default())
}

fn message<'a>(reader: &mut Reader<'a>, source: &mut Source<'a>) -> Result<Message<'a>, Broken> {
    let (mut kind, mut payload) = (&[][..], None);
    reader.object(|reader, key| {
        match key {
            b"request_type" => kind = reader.text()?,
            b"runtime_id" => source.instance = Some(reader.text()?),
            b"application" => reader.object(|reader, key| match key {
                b"service_name" => reader.text().map(|name| source.service = name),
                _ => reader.skip(),
            })?,
            b"payload" => {
                payload = Some(*reader);
                reader.skip()?;
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok((kind, payload))
}

fn metrics(
    payload: &mut Reader<'_>,
    source: Source<'_>,
    on_loss: &mut impl FnMut(LossCount<'_>),
) -> Result<(), Broken> {
    payload.object(|reader, key| match key {
        b"series" => reader.array(|reader| series(reader, source, on_loss)),
        _ => reader.skip(),
    })
}

fn series(reader: &mut Reader<'_>, source: Source<'_>, on_loss: &mut impl FnMut(LossCount<'_>)) -> Result<(), Broken> {
    let (mut name, mut lost_at, mut spans) = (&[][..], None, 0.0);
    reader.object(|reader, key| match key {
        b"metric" => reader.text().map(|text| name = text),
        b"tags" => reader.array(|reader| reader.text().map(|tag| lost_at = lost_at.or(stage(tag)))),
        b"points" => reader.array(|reader| {
            // Time and count.
            let mut last = 0.0;
            reader.array(|reader| reader.value().map(|value| last = value.real().unwrap_or(0.0)))?;
            spans += last;
            Ok(())
        }),
        _ => reader.skip(),
    })?;
    if let Some(stage) = lost_at
        && name == SPANS_DROPPED
        && spans > 0.0
    {
        on_loss(loss(source, stage, SPANS_DROPPED, spans));
    }
    Ok(())
}

/// Shows every loss that a datagram of DogStatsD tells.
pub fn statsd(datagram: &[u8], mut on_loss: impl FnMut(LossCount<'_>)) {
    for line in datagram.split(|byte| *byte == b'\n') {
        let Some((name, rest)) = split_once(line, b':') else { continue };
        let mut parts = rest.split(|byte| *byte == b'|');
        let values = parts.next().unwrap_or_default();
        let (mut source, mut lost_at, mut is_counter, mut rate) = (Source::default(), None, false, 1.0);
        for part in parts {
            match part {
                b"c" => is_counter = true,
                [b'@', share @ ..] => rate = number(share),
                [b'#', tags @ ..] => {
                    for tag in tags.split(|byte| *byte == b',') {
                        lost_at = lost_at.or(stage(tag));
                        source.service = tag.strip_prefix(b"service:").unwrap_or(source.service);
                    }
                }
                _ => {}
            }
        }
        let spans = values.split(|byte| *byte == b':').map(number).sum::<f64>() / rate;
        if let Some(stage) = lost_at
            && is_counter
            && rate > 0.0
            && spans > 0.0
            && STATSD.contains(&name)
        {
            on_loss(loss(source, stage, name, spans));
        }
    }
}

fn loss<'a>(source: Source<'a>, stage: Stage, metric: &'a [u8], spans: f64) -> LossCount<'a> {
    LossCount { source, stage, metric, series: 0, spans: spans.round() as u64, is_cumulative: false }
}

/// Where spans were lost, by the reason in a tag; `None` if it names none, or they were not to be kept.
fn stage(tag: &[u8]) -> Option<Stage> {
    match tag {
        b"reason:overfull_buffer" | b"reason:queue_full" => Some(Stage::Queue),
        b"priority:unset" | b"priority:sampler_keep" | b"priority:user_keep" => Some(Stage::Queue),
        b"reason:serialization_error" | b"reason:api_error" | b"reason:send_failure" => Some(Stage::Export),
        _ => None,
    }
}

fn number(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn split_once(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reported = (String, String, Stage, u64);

    fn told(losses: &mut Vec<Reported>) -> impl FnMut(LossCount<'_>) {
        |loss| {
            assert!(!loss.is_cumulative);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            losses.push((text(loss.source.service), text(loss.metric), loss.stage, loss.spans));
        }
    }

    /// As ddtrace sends it, with the payload before who sends it.
    #[test]
    fn telemetry_by_reason() {
        let series = r#"{"namespace":"tracers","series":[
            {"metric":"spans_dropped","type":"count","points":[[1700000000,3],[1700000010,4.0]],"tags":["reason:overfull_buffer"]},
            {"metric":"spans_dropped","points":[[1700000000,5]],"tags":["reason:api_error"]},
            {"metric":"spans_dropped","points":[[1700000000,90]],"tags":["reason:p0_drop"]},
            {"metric":"trace_chunks_dropped","points":[[1700000000,90]],"tags":["reason:overfull_buffer"]},
            {"metric":"spans_created","points":[[1700000000,900]],"tags":["integration_name:flask"]}]}"#;
        let message = format!(r#"{{"request_type":"generate-metrics","payload":{series}}}"#);
        let by = r#""runtime_id":"1","application":{"service_name":"shop","env":""}"#;
        let single = format!(r#"{{"payload":{series},"request_type":"generate-metrics",{by}}}"#);
        let batch = format!(
            r#"{{"request_type":"message-batch","payload":[{{"request_type":"app-heartbeat"}},{message}],{by}}}"#
        );
        for body in [single, batch] {
            let mut losses = Vec::new();
            assert_eq!(telemetry(body.as_bytes(), told(&mut losses)), Ok(()));
            let expected = [(Stage::Queue, 7), (Stage::Export, 5)];
            assert_eq!(losses, expected.map(|(stage, spans)| ("shop".into(), "spans_dropped".into(), stage, spans)));
        }
        for other in ["{}", r#"{"request_type":"app-started","payload":{"series":[]}}"#] {
            assert_eq!(telemetry(other.as_bytes(), |loss| panic!("{loss:?}")), Ok(()));
        }
        assert!(telemetry(b"{\"payload\":", |_| ()).is_err());
    }

    #[test]
    fn statsd_by_reason() {
        let datagram = b"datadog.tracer.queue.dropped.spans:5|c|#service:shop,priority:sampler_keep\n\
            datadog.tracer.queue.dropped.spans:90|c|#priority:sampler_drop,service:shop\n\
            datadog.tracer.queue.dropped.traces:90|c|#priority:user_keep\n\
            datadog.tracer.spans_dropped:3:4|c|@0.5|#reason:queue_full,lang:go\n\
            datadog.tracer.spans_dropped:90|g|#reason:queue_full\n\
            datadog.tracer.spans_dropped:90|c|@0|#reason:queue_full\n\
            datadog.tracer.spans_dropped:-9|c|#reason:queue_full\n\nnoise";
        let mut losses = Vec::new();
        statsd(datagram, told(&mut losses));
        let [java, go]: [&str; 2] = ["datadog.tracer.queue.dropped.spans", "datadog.tracer.spans_dropped"];
        let expected = [("shop", java, 5), ("", go, 14)];
        let expected =
            expected.map(|(service, metric, spans)| (service.to_owned(), metric.to_owned(), Stage::Queue, spans));
        assert_eq!(losses, expected);
    }
}
