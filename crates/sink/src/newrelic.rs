//! New Relic's collector (protocol 17), and Infinite Tracing.
//!
//! The collector: `POST /agent_listener/invoke_raw_method?method=…`, JSON in, JSON out, over TLS, which its
//! agents cannot do without. An agent asks which host is its own (`preconnect`), connects, is told what to collect and how often, and
//! then hands in what it has. Spans are taken; what else it sends (metrics, transactions, errors, logs, …) is welcome and not looked into.
//!
//! An agent keeps a sample of its spans: so many a minute, which is for the server to say. The sink says what the agent would like, and
//! has it come every five seconds instead of every minute, a twelfth at a time, so that a drain is short. One that asks for the most
//! that it may is meant to send all: it gets [`ALL`].
//!
//! Infinite Tracing: streams of all spans, by gRPC on the same port, if the agent is told that this is its trace observer. The status that
//! a real one sends now and then comes once, at the end: agents do nothing about it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use unladen_decode::newrelic::json::decode;
use unladen_decode::newrelic::protobuf::{self, Holds};
use unladen_decode::span::Protocol;

use crate::answer::{Answer, Reply};
use crate::grpc;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::status::Code;
use crate::web::{self, Failure, JSON};

const PATH: &str = "/agent_listener/invoke_raw_method";
/// Between two harvests, ms; and how many of them a minute has.
const PERIOD_MS: u64 = 5_000;
const PERIODS: u64 = 60_000 / PERIOD_MS;
/// Spans a minute that agents keep unless they are told otherwise, and the most that they may ask for.
const USUAL: u64 = 2_000;
const MAX_SPANS_PER_MINUTE: u64 = 10_000;
/// Spans in a harvest of an agent that sends all.
const ALL: u64 = 100_000;
/// What a service is called that has no name.
const NAMELESS: &str = "unknown_service";

/// Answers one request, gRPC or not. `port` is where the sink listens for it.
pub(crate) async fn serve(hub: &Hub, port: u16, request: Request) -> Answer {
    if grpc::is_grpc(&request) { record(hub, request).await.into() } else { collect(hub, port, request).await.into() }
}

/// Infinite Tracing.
async fn record(hub: &Hub, request: Request) -> Result<Vec<u8>, grpc::Failure> {
    let path = request.uri().path();
    let holds = match path.strip_prefix("/com.newrelic.trace.v1.IngestService/") {
        Some("RecordSpan") => Holds::One,
        Some("RecordSpanBatch") => Holds::Many,
        _ => {
            let message = format!("unladen's sink does not know {path}; spans go to RecordSpan or RecordSpanBatch");
            return Err(grpc::Failure::new(Code::Unimplemented, message));
        }
    };
    let run = request.headers().get("agent_run_token").and_then(|run| run.to_str().ok()).unwrap_or_default();
    let service = service_of(run);
    let service = service.as_bytes();
    let what = "span of New Relic's Infinite Tracing";
    grpc::take_stream(hub, request, Protocol::Newrelic, what, |messages, arena| {
        protobuf::decode(messages, arena, holds, service)
    })
    .await?;
    Ok(Vec::new())
}

async fn collect(hub: &Hub, port: u16, request: Request) -> Response<Reply> {
    match call(hub, port, request).await {
        Ok(value) => web::reply(StatusCode::OK, JSON, json!({ "return_value": value }).to_string()),
        Err(failure) => {
            let (status, message) = (failure.status, failure.message);
            let body = json!({ "exception": { "error_type": "unladen", "message": message } }).to_string();
            let mut response = web::reply(status, JSON, body);
            web::retry(&mut response);
            response
        }
    }
}

/// What a method returns.
async fn call(hub: &Hub, port: u16, request: Request) -> Result<Value, Failure> {
    let path = request.uri().path();
    if path != PATH {
        let message = format!("unladen's sink does not know {path} here; agents of New Relic call {PATH}");
        return Err(Failure::new(StatusCode::NOT_FOUND, message));
    }
    // An agent may be told to use PUT.
    if !matches!(*request.method(), Method::POST | Method::PUT) {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{PATH} takes POST requests only")));
    }
    let asked = |name: &str| parameter(request.uri().query().unwrap_or_default(), name).to_owned();
    let (method, run) = (asked("method"), asked("run_id"));
    let host = redirect_host(&request, port);
    let body = web::receive(hub, request).await?;
    match method.as_str() {
        "preconnect" => Ok(json!({ "redirect_host": host })),
        "connect" => Ok(connected(&serde_json::from_slice(body.bytes()).unwrap_or_default())),
        "get_agent_commands" => Ok(json!([])),
        "span_event_data" => {
            let service = service_of(&run);
            let service = service.as_bytes();
            let taken = hub.take(Protocol::Newrelic, body, |bytes, arena| decode(bytes, arena, service)).await;
            taken.map(|_| Value::Null).map_err(|reason| Failure::refused(reason, "span events of New Relic's"))
        }
        _ => Ok(Value::Null),
    }
}

/// A parameter of the query, empty if there is none.
fn parameter<'q>(query: &'q str, name: &str) -> &'q str {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
}

/// Where the agent shall go from now on: here. Some add their own port to what they are told, others take 443 if there is none, also if
/// their `Host` has none.
fn redirect_host(request: &Request, port: u16) -> String {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let host = text(header::HOST);
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let adds_port =
        ["NewRelic-PythonAgent", "NewRelic-JavaAgent"].iter().any(|it| text(header::USER_AGENT).contains(it));
    if adds_port { name.to_owned() } else { format!("{name}:{port}") }
}

/// What an agent is told that connects with this.
fn connected(hello: &Value) -> Value {
    let hello = &hello[0];
    let service = hello["app_name"][0].as_str().filter(|name| !name.is_empty()).unwrap_or(NAMELESS);
    let limits = &hello["event_harvest_config"]["harvest_limits"];
    let limit = |name: &str| limits[name].as_u64();
    let spans = match limit("span_event_data").unwrap_or(USUAL) {
        MAX_SPANS_PER_MINUTE.. => ALL,
        spans => spans.div_ceil(PERIODS),
    };
    let others = ["analytic_event_data", "custom_event_data", "error_event_data", "log_event_data"];
    let others = others.into_iter().filter_map(|name| Some((name.to_owned(), limit(name)?.div_ceil(PERIODS).into())));
    // Some agents read here what comes every few seconds, others below `span_event_harvest_config`.
    let limits = others.chain([("span_event_data".to_owned(), spans.into())]);
    json!({
        "agent_run_id": URL_SAFE_NO_PAD.encode(service),
        // Without these there is no distributed tracing.
        "account_id": "1",
        "trusted_account_key": "1",
        "primary_application_id": "1",
        "entity_guid": "",
        // Without this the agent for Java sends no spans.
        "collect_span_events": true,
        "span_event_harvest_config": { "report_period_ms": PERIOD_MS, "harvest_limit": spans },
        "event_harvest_config": {
            "report_period_ms": PERIOD_MS,
            "harvest_limits": limits.collect::<serde_json::Map<String, Value>>(),
        },
        // As its servers do: requests whose caller does not decide, in a minute.
        "sampling_target": 10,
        "sampling_target_period_in_seconds": 60,
        "data_report_period": 60,
        "max_payload_size_in_bytes": 1_000_000,
        "collect_analytics_events": true,
        "collect_custom_events": true,
        "collect_error_events": true,
        "collect_errors": true,
        "collect_traces": true,
        "request_headers_map": {},
        "messages": [],
    })
}

/// The service that was given this as its run.
fn service_of(run: &str) -> String {
    let name = URL_SAFE_NO_PAD.decode(run).ok().and_then(|name| String::from_utf8(name).ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| NAMELESS.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_told_what_it_would_like() {
        let hello =
            |limits: Value| json!([{ "app_name": ["größe"], "event_harvest_config": { "harvest_limits": limits } }]);
        let answer = connected(&hello(json!({ "span_event_data": 2_000, "analytic_event_data": 1_200 })));
        let spans = |answer: &Value| answer["span_event_harvest_config"]["harvest_limit"].clone();
        assert_eq!(
            (spans(&answer), &answer["event_harvest_config"]["harvest_limits"]),
            (167.into(), &json!({ "analytic_event_data": 100, "span_event_data": 167 }))
        );
        assert_eq!(service_of(answer["agent_run_id"].as_str().expect("text")), "größe");
        assert_eq!(spans(&connected(&hello(json!({ "span_event_data": 10_000 })))), 100_000);
        for strange in [Value::Null, json!([]), json!([{ "app_name": 7 }]), json!({ "app_name": [""] })] {
            let answer = connected(&strange);
            assert_eq!(
                (spans(&answer), service_of(answer["agent_run_id"].as_str().expect("text"))),
                (167.into(), NAMELESS.to_owned())
            );
        }
        assert_eq!(service_of("?"), NAMELESS);
    }

    #[test]
    fn parameters_of_a_query() {
        let query = "marshal_format=json&method=connect&run_id=cGV0cw";
        assert_eq!(
            ["method", "run_id", "run", "license_key"].map(|name| parameter(query, name)),
            ["connect", "cGV0cw", "", ""]
        );
    }
}
