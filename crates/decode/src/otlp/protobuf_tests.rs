//! The walk against `prost` and `opentelemetry-proto`, which know nothing of it.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value as Any};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as proto;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::span::{MAX_SPAN, MAX_SPANS, TOO_LARGE, TOO_MANY};
use crate::testing::{broken, message};
use crate::wire::put_bytes;

/// Needs no arena.
fn decode(body: &[u8]) -> Result<Batch<'_>, Broken> {
    super::decode(body, Box::leak(Box::default()))
}

fn any_value() -> impl Strategy<Value = Option<AnyValue>> {
    let leaf = prop_oneof![
        ".{0,8}".prop_map(Any::StringValue),
        any::<bool>().prop_map(Any::BoolValue),
        any::<i64>().prop_map(Any::IntValue),
        prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY)].prop_map(Any::DoubleValue),
        vec(any::<u8>(), 0..8).prop_map(Any::BytesValue),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        let item = prop::option::of(inner).prop_map(|value| AnyValue { value });
        prop_oneof![
            vec(item.clone(), 0..4).prop_map(|values| Any::ArrayValue(ArrayValue { values })),
            vec(("[a-z]{0,3}", prop::option::of(item)), 0..4)
                .prop_map(|entries| Any::KvlistValue(KeyValueList { values: unique(entries) })),
        ]
    });
    prop::option::of(value.prop_map(|value| AnyValue { value: Some(value) }))
}

/// Keys of a map differ, as OpenTelemetry demands.
fn unique(entries: Vec<(String, Option<AnyValue>)>) -> Vec<KeyValue> {
    let mut seen = std::collections::BTreeSet::new();
    entries
        .into_iter()
        .filter(|(key, _)| seen.insert(key.clone()))
        .map(|(key, value)| KeyValue { key, value, ..KeyValue::default() })
        .collect()
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    vec((prop_oneof!["[a-z.]{1,8}", Just("http.route".to_string())], any_value()), 0..5).prop_map(unique)
}

/// Mostly right, sometimes of another length or all zeros.
fn id(length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => vec(any::<u8>(), length), 1 => vec(any::<u8>(), 0..20), 1 => Just(vec![0; length])]
}

prop_compose! {
    fn span()(
        ids in (id(16), id(8), prop_oneof![Just(Vec::new()), id(8)]),
        name in ".{0,12}",
        kind in -1_i32..8,
        times in (any::<u64>(), any::<u64>()),
        attributes in attributes(),
        status in prop::option::of((".{0,4}", -1_i32..4)),
        rest in (".{0,5}", any::<u32>(), vec(any::<u64>(), 0..3), vec(id(16), 0..3)),
    ) -> proto::Span {
        proto::Span {
            trace_id: ids.0, span_id: ids.1, parent_span_id: ids.2, name, kind,
            start_time_unix_nano: times.0, end_time_unix_nano: times.1,
            attributes,
            status: status.map(|(message, code)| proto::Status { message, code }),
            trace_state: rest.0, flags: rest.1, dropped_attributes_count: rest.1,
            events: rest.2.into_iter().map(|time_unix_nano| proto::span::Event { time_unix_nano, ..Default::default() }).collect(),
            links: rest.3.into_iter().map(|trace_id| proto::span::Link { trace_id, ..Default::default() }).collect(),
            ..proto::Span::default()
        }
    }
}

fn request() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let resource = prop::option::of(attributes().prop_flat_map(|attributes| {
        let names = (prop::option::of("[a-z]{0,5}"), prop::option::of("[0-9]{1,3}"));
        names.prop_map(move |(service, instance)| {
            let named = [("service.name", service), ("service.instance.id", instance)];
            let named = named.into_iter().filter_map(|(key, value)| {
                let value = Some(AnyValue { value: Some(Any::StringValue(value?)) });
                Some(KeyValue { key: key.into(), value, ..KeyValue::default() })
            });
            Resource { attributes: attributes.iter().cloned().chain(named).collect(), ..Resource::default() }
        })
    }));
    let scope = vec(span(), 0..4).prop_map(|spans| proto::ScopeSpans { spans, ..Default::default() });
    let spans = (resource, vec(scope, 0..3)).prop_map(|(resource, scope_spans)| proto::ResourceSpans {
        resource,
        scope_spans,
        schema_url: "https://opentelemetry.io/schemas/1.21.0".into(),
    });
    vec(spans, 0..4).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

/// A span as text, from either side.
#[derive(Debug, PartialEq)]
struct SpanText {
    ids: (Vec<u8>, Vec<u8>, Option<Vec<u8>>),
    service: String,
    instance: Option<String>,
    name: String,
    kind: &'static str,
    status: &'static str,
    start: u64,
    duration: i64,
    size: usize,
    attributes: Option<serde_json::Value>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("proptest makes UTF-8")
}

fn walked(batch: &Batch<'_>) -> Vec<SpanText> {
    let text_of = |span: &Span<'_>| {
        let source = batch.sources[span.source as usize];
        let json = span.attributes.json();
        SpanText {
            ids: (span.trace_id.to_vec(), span.span_id.to_vec(), span.parent_id.map(|id| id.to_vec())),
            service: text(source.service),
            instance: source.instance.map(text),
            name: text(span.operation),
            kind: Kind::NAMES[span.kind as usize],
            status: Status::NAMES[span.status as usize],
            start: span.start_ns,
            duration: span.duration_ns,
            size: span.size as usize,
            attributes: (!json.is_empty()).then(|| serde_json::from_str(&json).expect("valid JSON")),
        }
    };
    batch.spans.iter().map(text_of).collect()
}

fn json(value: Option<&AnyValue>) -> serde_json::Value {
    use serde_json::Value as Json;
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => Json::from(text.as_str()),
        Some(Any::BoolValue(value)) => Json::from(*value),
        Some(Any::IntValue(number)) => Json::from(*number),
        Some(Any::DoubleValue(number)) if number.is_nan() => Json::from("NaN"),
        Some(Any::DoubleValue(number)) if *number == f64::INFINITY => Json::from("Infinity"),
        Some(Any::DoubleValue(number)) if *number == f64::NEG_INFINITY => Json::from("-Infinity"),
        Some(Any::DoubleValue(number)) => Json::from(*number),
        Some(Any::BytesValue(bytes)) => {
            Json::from(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes))
        }
        Some(Any::ArrayValue(list)) => list.values.iter().map(|value| json(Some(value))).collect(),
        Some(Any::KvlistValue(list)) => object(&list.values),
        None | Some(_) => Json::Null,
    }
}

fn object(attributes: &[KeyValue]) -> serde_json::Value {
    serde_json::Value::Object(
        attributes.iter().map(|attribute| (attribute.key.clone(), json(attribute.value.as_ref()))).collect(),
    )
}

fn valid(id: &[u8], length: usize) -> bool {
    id.len() == length && id.iter().any(|byte| *byte != 0)
}

/// What the walk should find, and how many spans it should reject.
fn expected(request: &ExportTraceServiceRequest) -> (Vec<SpanText>, u64) {
    let (mut spans, mut rejected) = (Vec::new(), 0);
    for group in &request.resource_spans {
        let named = |key: &str| {
            let attributes = &group.resource.as_ref()?.attributes;
            match attributes.iter().rev().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()? {
                Any::StringValue(text) => Some(text.clone()),
                _ => None,
            }
        };
        for span in group.scope_spans.iter().flat_map(|scope| &scope.spans) {
            let parent = &span.parent_span_id;
            if !valid(&span.trace_id, 16) || !valid(&span.span_id, 8) || !(parent.is_empty() || parent.len() == 8) {
                rejected += 1;
                continue;
            }
            let kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"];
            let statuses = ["unset", "ok", "error"];
            let index = |number: i32| usize::try_from(number).unwrap_or(0);
            let duration = i128::from(span.end_time_unix_nano) - i128::from(span.start_time_unix_nano);
            spans.push(SpanText {
                ids: (span.trace_id.clone(), span.span_id.clone(), valid(parent, 8).then(|| parent.clone())),
                service: named("service.name").unwrap_or_default(),
                instance: named("service.instance.id"),
                name: span.name.clone(),
                kind: kinds.get(index(span.kind)).unwrap_or(&kinds[0]),
                status: statuses
                    .get(index(span.status.as_ref().map_or(0, |status| status.code)))
                    .unwrap_or(&statuses[0]),
                start: span.start_time_unix_nano,
                duration: i64::try_from(duration).unwrap_or(if duration > 0 { i64::MAX } else { i64::MIN }),
                size: span.encoded_len(),
                attributes: (!span.attributes.is_empty()).then(|| object(&span.attributes)),
            });
        }
    }
    (spans, rejected)
}

proptest! {
    #[test]
    fn finds_what_prost_encoded(request in request()) {
        let body = request.encode_to_vec();
        let batch = decode(&body).expect("prost encodes soundly");
        let (spans, rejected) = expected(&request);
        prop_assert_eq!(walked(&batch), spans);
        prop_assert_eq!(batch.rejected, rejected);
        prop_assert_eq!(batch.reason.is_some(), rejected > 0);
    }

    /// Two requests back to back are one request, and the order of a group's fields does not matter.
    #[test]
    fn order_on_the_wire_does_not_matter(request in request()) {
        let mut turned = Vec::new();
        for group in &request.resource_spans {
            let mut fields: Vec<_> = group.scope_spans.iter().map(|scope| (2, scope.encode_to_vec())).collect();
            fields.extend(group.resource.iter().map(|resource| (1, resource.encode_to_vec())));
            let fields: Vec<_> = fields.iter().map(|(field, bytes)| (*field, &bytes[..])).collect();
            put_bytes(&mut turned, 1, &message(&fields));
        }
        let body = request.encode_to_vec();
        let (straight, turned) = (decode(&body).expect("sound"), decode(&turned).expect("sound"));
        prop_assert_eq!(walked(&straight), walked(&turned));
    }

    /// Broken bytes never panic, and whatever prost takes, the walk takes, with as many spans.
    #[test]
    fn broken_bytes(request in request(), at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let body = broken(&request.encode_to_vec(), at, byte, cut);
        let walked = decode(&body);
        if let Ok(batch) = &walked {
            for span in &batch.spans {
                span.attributes.json();
            }
        }
        if let Ok(decoded) = ExportTraceServiceRequest::decode(&body[..]) {
            let batch = walked.expect("prost decoded it");
            let spans = decoded.resource_spans.iter().flat_map(|group| &group.scope_spans).map(|scope| scope.spans.len());
            prop_assert_eq!(batch.spans.len() as u64 + batch.rejected, spans.sum::<usize>() as u64);
        }
    }

    #[test]
    fn noise(body in vec(any::<u8>(), 0..200)) {
        let _ = decode(&body);
    }
}

/// A request of one group with one scope.
fn group_of(scope: &[u8]) -> Vec<u8> {
    message(&[(1, &message(&[(2, scope)]))])
}

#[test]
fn attributes_are_shown_in_the_order_of_the_message() {
    let attribute = |key: &str, value| KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    };
    let span = proto::Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        attributes: vec![
            attribute("thread.id", Any::IntValue(7)),
            attribute("http.route", Any::StringValue("/owners/\"{id}\"\n".into())),
            attribute("http.response.status_code", Any::IntValue(200)),
        ],
        ..proto::Span::default()
    };
    let body = span.encode_to_vec();
    let json = r#"{"thread.id":7,"http.route":"/owners/\"{id}\"\n","http.response.status_code":200}"#;
    assert_eq!(RawAttributes::Otlp(&body).json(), json);
    assert_eq!(RawAttributes::Otlp(&[]).json(), "");
}

#[test]
fn invalid_utf_8_and_broken_attributes_do_not_cost_the_span() {
    let span = message(&[
        (1, &[1; 16]),
        (2, &[2; 8]),
        (5, b"caf\xe9"),
        // {"k": "\xff"}, then a key with a value that is cut off.
        (9, &[0x0a, 1, b'k', 0x12, 3, 0x0a, 1, 0xff]),
        (9, &[0x0a, 1, b'l', 0x12, 2, 0x0a, 9]),
    ]);
    let body = group_of(&message(&[(2, &span)]));
    let batch = decode(&body).expect("the span is sound");
    assert_eq!(batch.spans[0].operation, b"caf\xe9");
    assert_eq!(batch.spans[0].attributes.json(), "{\"k\":\"\u{fffd}\"}");
}

#[test]
fn empty_messages_take_no_memory() {
    // A group of two bytes a million times, and as many spans of two bytes.
    let groups = [0x0a, 0].repeat(1 << 20);
    let batch = decode(&groups).expect("sound");
    assert_eq!((batch.sources.len(), batch.spans.len(), batch.rejected), (0, 0, 0));
    let body = group_of(&[0x12, 0].repeat(1 << 20));
    let batch = decode(&body).expect("sound");
    assert_eq!((batch.sources.len(), batch.spans.len(), batch.rejected), (0, 0, 1 << 20));
}

#[test]
fn many_spans_and_large_ones_are_rejected() {
    let span = |attribute: usize| message(&[(1, &[1; 16]), (2, &[1; 8]), (9, &vec![0; attribute])]);
    let request = |spans: &[(usize, Vec<u8>)]| {
        let mut scope = Vec::new();
        spans.iter().for_each(|(times, span)| (0..*times).for_each(|_| put_bytes(&mut scope, 2, span)));
        group_of(&scope)
    };
    let many = request(&[(MAX_SPANS + 3, span(0))]);
    let many = decode(&many).expect("sound");
    assert_eq!((many.spans.len(), many.rejected, many.reason), (MAX_SPANS, 3, Some(TOO_MANY)));
    let large = request(&[(1, span(MAX_SPAN - 50)), (1, span(MAX_SPAN)), (1, span(0))]);
    let large = decode(&large).expect("sound");
    assert_eq!((large.spans.len(), large.rejected, large.reason), (2, 1, Some(TOO_LARGE)));
}
