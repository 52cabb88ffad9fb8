//! Datadog's trace agent, as its tracers see it (DataDog/datadog-agent, `pkg/trace/api`): traces as MessagePack, versions 0.3 to 1.0,
//! over HTTP/1.1. Tracers ask `/info` first and use what stands there: the sink says of itself what a usual agent says, so that they do
//! the work that they do in production, and leaves out what would make them send other things than spans.
//!
//! Every trace is to be kept (rate 1), which is what an agent answers that knows no better.

mod about;

use std::rc::Rc;
use std::time::Duration;

use http::{HeaderMap, Method, Response, StatusCode};
use tokio::net::UdpSocket;
use tokio::sync::watch;

pub(crate) use self::about::About;
use crate::answer::Reply;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::web::{self, Failure, JSON, TEXT, content_type};
use unladen_decode::datadog::{losses, spans, streamed};
use unladen_decode::loss::{LossCount, Stage};
use unladen_decode::span::{Decode, Protocol, Source};

const V03: &str = "/v0.3/traces";
const V04: &str = "/v0.4/traces";
const V05: &str = "/v0.5/traces";
const V10: &str = "/v1.0/traces";
const STATS: &str = "/v0.6/stats";
/// What follows it names the request at Datadog's.
const TELEMETRY: &str = "/telemetry/proxy/";
/// The only one of them that is asked for, relative to that.
const APM_TELEMETRY: &str = "api/v2/apmtelemetry";

/// Every service in every environment: all traces.
const RATES: &str = r#"{"rate_by_service":{"service:,env:":1}}"#;

/// Chunks of a request, as the tracer counts them.
const TRACE_COUNT: &str = "x-datadog-trace-count";

/// Largest datagram of UDP.
const DATAGRAM: usize = 64 << 10;
/// Pause after a datagram could not be received.
const PAUSE: Duration = Duration::from_millis(50);

/// Counts what tracers tell over DogStatsD of their losses, until told to stop.
pub(crate) async fn receive_statsd(hub: Rc<Hub>, socket: UdpSocket, mut stop: watch::Receiver<bool>) {
    let mut datagram = vec![0; DATAGRAM];
    loop {
        let received = tokio::select! {
            received = socket.recv(&mut datagram) => received,
            _ = stop.changed() => return,
        };
        match received {
            Ok(length) => losses::statsd(&datagram[..length], |loss| hub.reported(loss)),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, about: &About, request: Request) -> Response<Reply> {
    let mut response = match answer(hub, about, request).await {
        Ok(response) => response,
        Err(failure) => failure.plain(),
    };
    about.sign(response.headers_mut());
    response
}

async fn answer(hub: &Hub, about: &About, request: Request) -> Result<Response<Reply>, Failure> {
    let path = request.uri().path();
    match (request.method(), path) {
        (&Method::GET | &Method::HEAD, about::PATH) => Ok(web::reply(StatusCode::OK, JSON, about.body())),
        (&Method::PUT | &Method::POST, V03 | V04 | V05 | V10) => {
            let (decode, chunks): (Decode, fn(&[u8]) -> u64) = match path {
                V10 => (streamed::decode, streamed::chunks),
                V05 => (spans::decode_with_table, spans::chunks_behind_table),
                _ => (spans::decode, spans::chunks),
            };
            let (kind, answer) = if path == V03 { (TEXT, "OK\n") } else { (JSON, RATES) };
            traces(hub, request, decode, chunks).await?;
            Ok(web::reply(StatusCode::OK, kind, answer))
        }
        (&Method::PUT | &Method::POST, STATS) => {
            // What the tracer counted of its spans by itself: nothing that the spans do not say.
            web::receive(hub, request).await?;
            Ok(web::reply(StatusCode::OK, TEXT, ""))
        }
        (&Method::POST, _) if path.strip_prefix(TELEMETRY) == Some(APM_TELEMETRY) => {
            let body = web::receive(hub, request).await?;
            // Taken as a courtesy: if it is broken, what stands before the break counts.
            let _ = losses::telemetry(body.bytes(), |loss| hub.reported(loss));
            Ok(web::reply(StatusCode::ACCEPTED, JSON, "{}"))
        }
        (_, V03 | V04 | V05 | V10 | STATS) => {
            Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes PUT and POST requests only")))
        }
        _ => {
            let message = format!("unladen's sink does not know {path} here; spans go to {V04}, {V05}, {V10} or {V03}");
            Err(Failure::new(StatusCode::NOT_FOUND, message))
        }
    }
}

/// Takes a payload; `chunks` says how many it should have, by its own word.
async fn traces(hub: &Hub, request: Request, decode: Decode, chunks: fn(&[u8]) -> u64) -> Result<(), Failure> {
    if !matches!(content_type(&request), b"" | b"application/msgpack") {
        let message = "the sink takes Datadog's spans as application/msgpack";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let told = chunks_told(request.headers());
    let body = web::receive(hub, request).await?;
    let missing = told.saturating_sub(chunks(body.bytes()));
    let taken = hub.take(Protocol::Datadog, body, decode).await;
    taken.map_err(|reason| Failure::refused(reason, "payload of Datadog's spans"))?;
    if missing > 0 {
        // Of what is not there nobody knows the service, nor how many spans it had: at least one each.
        let metric = TRACE_COUNT.as_bytes();
        let source = Source::default();
        hub.reported(LossCount {
            source,
            stage: Stage::Export,
            metric,
            series: 0,
            spans: missing,
            is_cumulative: false,
        });
    }
    Ok(())
}

/// Chunks that a request should have by its own word; 0 if it says nothing.
fn chunks_told(headers: &HeaderMap) -> u64 {
    let told = headers.get(TRACE_COUNT).and_then(|value| value.to_str().ok());
    told.and_then(|value| value.parse().ok()).unwrap_or(0)
}
