//! A list of Zipkin's spans as JSON.

use bumpalo::Bump;

use super::found::Found;
use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::ids::hex;
use crate::json::reader::Reader;
use crate::span::{Batch, Kind};
use crate::value::Value;

/// Bytes of a usual span.
const USUAL_SPAN: usize = 400;

/// All spans of a request.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut reader = Reader::new(body, arena);
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    reader.array(|reader| span(reader, &mut gatherer))?;
    reader.end()?;
    Ok(gatherer.finish())
}

fn span<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let mut found = Found::default();
    gatherer.begin();
    found.span.size = reader.measured(|reader, key| {
        match key {
            b"traceId" => found.span.trace_id = hex(reader.text()?).unwrap_or_default(),
            b"id" => found.span.span_id = hex(reader.text()?).unwrap_or_default(),
            b"parentId" => {
                let digits = reader.text()?;
                found.parent(hex(digits), digits.iter().any(|digit| *digit != b'0'));
            }
            b"name" => found.span.operation = reader.text()?,
            b"kind" => found.span.kind = Kind::named(reader.text()?),
            b"timestamp" => found.timestamp = reader.value()?.count(),
            b"duration" => found.duration = reader.value()?.count(),
            b"shared" => found.span.is_shared = reader.value()? == Value::Truth(true),
            b"localEndpoint" => found.service = service_name(reader)?,
            b"remoteEndpoint" => found.remote = service_name(reader)?,
            b"tags" => reader.object(|reader, key| reader.value().map(|value| found.tag(key, value, gatherer)))?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    found.push(gatherer);
    Ok(())
}

fn service_name<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Broken> {
    let mut name = &[][..];
    reader.object(|reader, key| match key {
        b"serviceName" => reader.text().map(|text| name = text),
        _ => reader.skip(),
    })?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::found::IDS;
    use super::*;
    use crate::span::{Source, Status};
    use crate::testing::broken;

    const LIST: &str = r#"[
        {"traceId":"5af7183fb1d4cf5f","id":"352bff9a74ca9ad2","parentId":"6b221d5bc9e6496c","kind":"CLIENT",
         "name":"get /a\u0070i","timestamp":1556604172355737,"duration":1431,
         "localEndpoint":{"serviceName":"backend","ipv4":"192.168.99.1","port":3306},
         "remoteEndpoint":{"serviceName":"db"},
         "annotations":[{"timestamp":1,"value":"x"}],
         "tags":{"http.method":"GET","error":""}},
        {"traceId":"0af7651916cd43dd8448eb211c80319c","id":"1","shared":true,"kind":"SERVER","unknown":[{}]},
        {"traceId":"0","id":"1"}, {"traceId":"1","id":"11111111111111111"}, {"traceId":"1","id":"1","parentId":"x"}
    ]"#;

    #[test]
    fn spans() {
        let arena = Bump::new();
        let batch = decode(LIST.as_bytes(), &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (2, 3, Some(IDS[0])));
        let [client, server] = [batch.spans[0], batch.spans[1]];
        assert_eq!(client.trace_id, hex::<16>(b"5af7183fb1d4cf5f").expect("hex"), "filled up from the left");
        assert_eq!(client.parent_id, hex(b"6b221d5bc9e6496c"));
        assert_eq!((client.kind, client.status, client.operation), (Kind::Client, Status::Error, &b"get /api"[..]));
        assert_eq!((client.start_ns, client.duration_ns), (1_556_604_172_355_737_000, 1_431_000));
        assert_eq!(batch.sources[client.source as usize], Source { service: b"backend", instance: None });
        let json = client.attributes.json();
        assert_eq!(json, r#"{"http.method":"GET","error":"","peer.service":"db"}"#);
        assert_eq!((server.kind, server.parent_id, server.is_shared), (Kind::Server, None, true));
        assert_eq!(server.span_id, [0, 0, 0, 0, 0, 0, 0, 1]);
        let shared =
            r#"{"traceId":"0af7651916cd43dd8448eb211c80319c","id":"1","shared":true,"kind":"SERVER","unknown":[{}]}"#;
        assert_eq!(server.size as usize, shared.len());
        assert_ne!(server.identity(b""), server.span_id, "the client's span of the same id is another");
        assert_ne!(
            server.identity(b"gateway"),
            server.identity(b"vets"),
            "and so is that of a server behind the first"
        );
        assert_eq!(server.identity(b"vets"), server.identity(b"vets"), "but a retry is not");
    }

    #[test]
    fn no_list() {
        let arena = Bump::new();
        for wrong in ["", "{}", "[", "[1]", "[{\"traceId\":1}]", "[{}] x", "[[]]"] {
            assert!(decode(wrong.as_bytes(), &arena).is_err(), "{wrong}");
        }
        assert_eq!(decode(b"[]", &arena).expect("sound").spans.len(), 0);
    }

    proptest! {
        #[test]
        fn broken_lists(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let _ = decode(&broken(LIST.as_bytes(), at, byte, cut), &Bump::new());
        }
    }

    /// What a span says, as structs that own nothing.
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed<'a> {
        trace_id: &'a str,
        id: &'a str,
        parent_id: Option<&'a str>,
        name: &'a str,
        kind: &'a str,
        timestamp: u64,
        duration: u64,
        #[serde(borrow)]
        local_endpoint: Endpoint<'a>,
        #[serde(borrow)]
        tags: std::collections::HashMap<&'a str, &'a str>,
    }

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Endpoint<'a> {
        service_name: &'a str,
    }

    /// Prints CPU-s per million spans: from bytes to spans as the sink counts them, and to structs.
    #[test]
    #[ignore = "a measurement: bench/alternatives/run.py"]
    fn what_it_costs_beside_serde_json() {
        const SPANS: usize = 512;
        let span = |number: usize| {
            let tags: Vec<String> = (0..9).map(|tag| format!(r#""http.tag.{tag}":"value {}""#, number * tag)).collect();
            format!(
                r#"{{"traceId":"{number:032x}","id":"{:016x}","parentId":"{:016x}","kind":"SERVER","name":"get /orders/{{id}}","timestamp":1556604172355737,"duration":{number},"localEndpoint":{{"serviceName":"orders"}},"tags":{{{}}}}}"#,
                number + 1,
                number + 2,
                tags.join(",")
            )
        };
        let body = format!("[{}]", (1..=SPANS).map(span).collect::<Vec<_>>().join(","));
        let median = |work: &mut dyn FnMut() -> usize| {
            let mut seconds: Vec<f64> = (0..2_000)
                .map(|_| {
                    let begun = std::time::Instant::now();
                    assert_eq!(work(), SPANS);
                    begun.elapsed().as_secs_f64()
                })
                .collect();
            seconds.sort_by(f64::total_cmp);
            seconds[seconds.len() / 2] / SPANS as f64 * 1e6
        };
        let mut arena = Bump::new();
        let ours = median(&mut || {
            arena.reset();
            decode(body.as_bytes(), &arena).expect("sound").spans.len()
        });
        let theirs = median(&mut || {
            let spans: Vec<Typed<'_>> = serde_json::from_slice(body.as_bytes()).expect("sound");
            let size = |it: &Typed<'_>| {
                let ids = it.trace_id.len() + it.id.len() + it.parent_id.map_or(0, str::len);
                ids + it.name.len() + it.kind.len() + it.local_endpoint.service_name.len() + it.tags.len()
            };
            std::hint::black_box(spans.iter().map(|it| size(it) as u64 + it.timestamp + it.duration).sum::<u64>());
            spans.len()
        });
        println!("ours {ours:.4}, serde_json {theirs:.4}");
    }
}
