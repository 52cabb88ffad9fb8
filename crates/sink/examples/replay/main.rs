//! Sends spans in any of the sink's protocols as fast as a receiver takes them, and says how many it acknowledged. For
//! benchmarks and for tests of back-pressure; any receiver of the protocol will do.
//!
//! Requests are encoded once and stamped in place before each sending, so that the sender costs a fraction of what the
//! receiver does, yet no two spans have the same ids or times.

mod batches;
mod datadog;
mod formats;
mod h2;
mod instana;
mod newrelic;
mod pinpoint;
mod texts;
mod udp;
mod values;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use batches::Batches;
use bytes::Bytes;
use formats::Format;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use unladen_sink::config::Requests;

type Error = Box<dyn std::error::Error>;

/// What to do; every option is `--name value`.
struct Options {
    address: SocketAddr,
    protocol: Protocol,
    spans: u64,
    per_request: usize,
    connections: usize,
    streams: usize,
    seed: u64,
    /// Whose traces these are: if given, of a load's requests from `first` on.
    tag: u64,
    key: u64,
    first: u64,
}

/// How spans are sent.
#[derive(Clone, Copy, PartialEq)]
struct Protocol {
    name: &'static str,
    format: Format,
    path: &'static str,
    /// `None` for gRPC and datagrams.
    content_type: Option<&'static str>,
}

const PROTOCOLS: [Protocol; 11] = [
    Protocol {
        name: "grpc",
        format: Format::Otlp { framed: true },
        path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        content_type: None,
    },
    Protocol {
        name: "skywalking",
        format: Format::Skywalking,
        path: "/skywalking.v3.TraceSegmentReportService/collect",
        content_type: None,
    },
    Protocol {
        name: "http",
        format: Format::Otlp { framed: false },
        path: "/v1/traces",
        content_type: Some("application/x-protobuf"),
    },
    Protocol { name: "zipkin", format: Format::Zipkin, path: "/api/v2/spans", content_type: Some("application/json") },
    Protocol {
        name: "elastic",
        format: Format::Elastic,
        path: "/intake/v2/events",
        content_type: Some("application/x-ndjson"),
    },
    Protocol {
        name: "sentry",
        format: Format::Sentry,
        path: "/api/1/envelope/?sentry_key=petclinic",
        content_type: Some("application/x-sentry-envelope"),
    },
    Protocol {
        name: "datadog",
        format: Format::Datadog,
        path: "/v0.4/traces",
        content_type: Some("application/msgpack"),
    },
    Protocol { name: "xray", format: Format::Xray, path: "", content_type: None },
    Protocol {
        name: "newrelic",
        format: Format::Newrelic,
        path: "/agent_listener/invoke_raw_method?marshal_format=json&method=span_event_data&run_id=cGV0Y2xpbmlj",
        content_type: Some("application/json"),
    },
    Protocol {
        name: "instana",
        format: Format::Instana,
        path: "/com.instana.plugin.python/traces.4711",
        content_type: Some("application/json"),
    },
    Protocol { name: "pinpoint", format: Format::Pinpoint, path: "/v1.Span/SendSpan", content_type: None },
];

const USAGE: &str = "replay --address IP:PORT [--protocol grpc|http|skywalking|zipkin|elastic|sentry|datadog|xray|newrelic|instana|pinpoint] [--spans 1000000] \
                     [--per-request 512] [--connections 4] [--streams 2] [--seed 1] \
                     [--tag 0 [--key 0] [--first 0]]";

fn options() -> Result<Options, String> {
    let mut options = Options {
        address: SocketAddr::from(([127, 0, 0, 1], 4317)),
        protocol: PROTOCOLS[0],
        spans: 1_000_000,
        per_request: 512,
        connections: 4,
        streams: 2,
        seed: 1,
        tag: 0,
        key: 0,
        first: 0,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value; {USAGE}"))?;
        let wrong = |_| format!("{value} is no value for {name}; {USAGE}");
        match name.as_str() {
            "--address" => {
                options.address = value.parse().map_err(|_| format!("{value} is not an address; {USAGE}"))?
            }
            "--protocol" => {
                let known = PROTOCOLS.into_iter().find(|protocol| protocol.name == value);
                options.protocol = known.ok_or_else(|| format!("{value} is no protocol; {USAGE}"))?;
            }
            "--spans" => options.spans = value.parse().map_err(wrong)?,
            "--per-request" => options.per_request = value.parse().map_err(wrong)?,
            "--connections" => options.connections = value.parse().map_err(wrong)?,
            "--streams" => options.streams = value.parse().map_err(wrong)?,
            "--seed" => options.seed = value.parse().map_err(wrong)?,
            "--tag" => options.tag = value.parse().map_err(wrong)?,
            "--key" => options.key = value.parse().map_err(wrong)?,
            "--first" => options.first = value.parse().map_err(wrong)?,
            _ => return Err(format!("unknown option {name} {value}; {USAGE}")),
        }
    }
    Ok(options)
}

/// What became of the spans.
#[derive(Default, Clone, Copy)]
struct Outcome {
    /// Requests sent again because they were refused for the moment.
    retries: u64,
    /// Spans that were acknowledged.
    acknowledged: u64,
    /// Spans refused for good.
    refused: u64,
    /// Bytes of acknowledged messages.
    bytes: u64,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Taken,
    Later,
    Never,
}

fn main() -> Result<(), Error> {
    let options = options()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Options { tag, key, first, .. } = options;
    let load = (tag != 0).then_some((Requests { tag, key }, first));
    let batches = Rc::new(Batches::new(options.seed, options.protocol.format, options.per_request, load));
    let begun = Instant::now();
    let outcome = LocalSet::new().block_on(&runtime, send_all(&options, batches))?;
    let seconds = begun.elapsed().as_secs_f64();
    let Outcome { retries, acknowledged, refused, bytes } = outcome;
    println!(
        "{{\"acknowledged\":{acknowledged},\"refused\":{refused},\"retries\":{retries},\"bytes\":{bytes},\"seconds\":{seconds}}}"
    );
    Ok(())
}

async fn send_all(options: &Options, batches: Rc<Batches>) -> Result<Outcome, Error> {
    let requests = options.spans.div_ceil(batches.spans() as u64);
    let connections = options.connections as u64;
    let mut tasks = Vec::new();
    for connection in 0..connections {
        let share = requests / connections + u64::from(connection < requests % connections);
        let (address, protocol, streams) = (options.address, options.protocol, options.streams);
        let batches = Rc::clone(&batches);
        tasks.push(tokio::task::spawn_local(async move {
            match protocol.content_type {
                None if protocol.format == Format::Xray => udp::send_all(address, &batches, share).await,
                None => {
                    let connection = h2::Connection::open(address, protocol.path).await?;
                    Ok(connection.send(share, streams, batches.spans() as u64, || batches.next()).await?)
                }
                Some(content_type) => post_all(address, protocol.path, content_type, &batches, share).await,
            }
        }));
    }
    let mut outcome = Outcome::default();
    for task in tasks {
        let part: Result<Outcome, Error> = task.await?;
        let part = part?;
        outcome.retries += part.retries;
        outcome.acknowledged += part.acknowledged;
        outcome.refused += part.refused;
        outcome.bytes += part.bytes;
    }
    Ok(outcome)
}

/// Posts a number of requests one after the other; what may pass later is sent again.
async fn post_all(
    address: SocketAddr,
    path: &str,
    content_type: &str,
    batches: &Batches,
    requests: u64,
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    let mut sender = None;
    for _ in 0..requests {
        let batch = batches.next();
        loop {
            match post(&mut sender, address, path, content_type, batch.clone()).await? {
                Answer::Taken => {
                    outcome.acknowledged += batches.spans() as u64;
                    outcome.bytes += batch.len() as u64;
                    break;
                }
                Answer::Later => {
                    outcome.retries += 1;
                    tokio::time::sleep(h2::PAUSE).await;
                }
                Answer::Never => {
                    outcome.refused += batches.spans() as u64;
                    break;
                }
            }
        }
    }
    Ok(outcome)
}

/// Sends one request, over the last connection if that still stands.
async fn post(
    sender: &mut Option<http1::SendRequest<Full<Bytes>>>,
    address: SocketAddr,
    path: &str,
    content_type: &str,
    body: Bytes,
) -> Result<Answer, Error> {
    let mut open = match sender.take() {
        Some(open) => open,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (open, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::task::spawn_local(connection);
            open
        }
    };
    open.ready().await?;
    let request = Request::post(path).header("content-type", content_type).header("host", "localhost");
    let response = open.send_request(request.body(Full::new(body))?).await?;
    let answer = match response.status() {
        StatusCode::OK | StatusCode::ACCEPTED => Answer::Taken,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Answer::Later,
        _ => Answer::Never,
    };
    let closes = response.headers().get("connection").is_some_and(|value| value.as_bytes() == b"close");
    response.into_body().collect().await?;
    if !closes {
        *sender = Some(open);
    }
    Ok(answer)
}
