//! Segments as JSON, as `POST /v3/segments` (a list) and `/v3/segment` (one) have them: the protobuf messages in proto3's
//! JSON, so enums come as names or numbers.

use bumpalo::Bump;

use super::found::{Found, Segment};
use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::json::reader::Reader;
use crate::span::Batch;
use crate::value::Value;

/// All segments of a body.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump, is_list: bool) -> Result<Batch<'a>, Broken> {
    let mut reader = Reader::new(body, arena);
    let mut gatherer = Gatherer::new(arena, 0);
    if is_list {
        reader.array(|reader| segment(reader, &mut gatherer))?;
    } else {
        segment(&mut reader, &mut gatherer)?;
    }
    reader.end()?;
    Ok(gatherer.finish())
}

fn segment<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    // What all spans share may follow them: so it is read in a pass of its own.
    let mut segment = Segment::default();
    let mut again = *reader;
    reader.object(|reader, key| {
        match key {
            b"traceId" => segment.trace_id = reader.text()?,
            b"traceSegmentId" => segment.id = reader.text()?,
            b"service" => segment.service = reader.text()?,
            b"serviceInstance" => segment.instance = reader.text()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let mut segment = segment.shared();
    again.object(|reader, key| match key {
        b"spans" => reader.array(|reader| {
            span(reader, gatherer)?.push(&mut segment, None, gatherer);
            Ok(())
        }),
        _ => reader.skip(),
    })
}

fn span<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<Found<'a>, Broken> {
    let mut found = Found::default();
    gatherer.begin();
    let size = reader.measured(|reader, key| {
        match key {
            b"spanId" => found.id = reader.value()?.whole().unwrap_or(0),
            b"parentSpanId" => found.parent = reader.value()?.whole().unwrap_or(0),
            b"startTime" => found.start = reader.value()?.whole().unwrap_or(0),
            b"endTime" => found.end = reader.value()?.whole().unwrap_or(0),
            b"operationName" => found.operation = reader.text()?,
            b"peer" => found.peer = reader.text()?,
            b"spanType" => found.kind = named(reader.value()?, &["Entry", "Exit", "Local"]),
            b"spanLayer" => {
                let layers = ["Unknown", "Database", "RPCFramework", "Http", "MQ", "Cache", "FAAS"];
                found.layer = named(reader.value()?, &layers);
            }
            b"isError" => found.is_error = reader.value()? == Value::Truth(true),
            b"refs" => reader.array(|reader| {
                let (mut segment, mut span) = (&[][..], 0);
                reader.object(|reader, key| match key {
                    b"parentTraceSegmentId" => reader.text().map(|text| segment = text),
                    b"parentSpanId" => reader.value().map(|number| span = number.whole().unwrap_or(0)),
                    _ => reader.skip(),
                })?;
                found.reference.get_or_insert((segment, span));
                Ok(())
            })?,
            b"tags" => reader.array(|reader| {
                let (mut name, mut content) = (&[][..], Value::Text(&[]));
                reader.object(|reader, key| match key {
                    b"key" => reader.text().map(|text| name = text),
                    b"value" => reader.value().map(|value| content = value),
                    _ => reader.skip(),
                })?;
                gatherer.attribute(name, content);
                Ok(())
            })?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Found { size, ..found })
}

/// The number of an enum's value; 0 if it is unknown.
fn named(value: Value<'_>, names: &[&str]) -> i64 {
    match value {
        Value::Text(text) => names.iter().position(|name| name.as_bytes() == text).unwrap_or(0) as i64,
        value => value.whole().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids;
    use crate::span::Kind;
    use crate::testing::broken;

    const SEGMENT: &str = r#"{
        "traceId": "a12ff60b-5807-463b-a1f8-fb1c8608219e", "serviceInstance": "User_Service_Instance_Name",
        "spans": [
            {"operationName": "/ingress", "startTime": 1588664577013, "endTime": 1588664577028, "spanType": "Exit",
             "spanId": 1, "isError": false, "parentSpanId": 0, "componentId": 6000, "peer": "upstream", "spanLayer": "Http"},
            {"operationName": "/ingress", "startTime": 1588664577013, "spanLayer": 4, "spanType": 0, "spanId": 0,
             "tags": [{"key": "http.method", "value": "GET"}],
             "parentSpanId": -1, "refs": [{"parentTraceSegmentId": "far", "parentSpanId": 3}]}
        ],
        "service": "User_Service_Name", "traceSegmentId": "a12ff60b-5807-463b"
    }"#;

    #[test]
    fn segments() {
        let arena = Bump::new();
        let batch = decode(SEGMENT.as_bytes(), &arena, false).expect("sound");
        let [exit, entry] = [batch.spans[0], batch.spans[1]];
        assert_eq!(batch.sources[0].service, b"User_Service_Name");
        assert_eq!(exit.trace_id, ids::trace_id(b"a12ff60b-5807-463b-a1f8-fb1c8608219e"));
        assert_eq!(exit.parent_id, Some(entry.span_id));
        assert_eq!(entry.parent_id, Some(ids::span_id(b"far", 3)));
        assert_eq!((exit.kind, entry.kind), (Kind::Client, Kind::Consumer));
        assert_eq!(exit.duration_ns, 15_000_000);
        let list = format!("[{SEGMENT},{SEGMENT}]");
        assert_eq!(decode(list.as_bytes(), &arena, true).expect("sound").spans.len(), 4);
        assert!(decode(list.as_bytes(), &arena, false).is_err());
    }

    proptest! {
        #[test]
        fn broken_segments(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let _ = decode(&broken(SEGMENT.as_bytes(), at, byte, cut), &Bump::new(), false);
        }
    }
}
