//! Sends OTLP spans as fast as a receiver takes them, and says how many it acknowledged. For benchmarks and for tests of
//! back-pressure; any OTLP receiver will do.
//!
//! Requests are encoded once and stamped in place before each sending, so that the sender costs a fraction of what the
//! receiver does, yet no two spans have the same ids or times.

mod batches;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use batches::Batches;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// What to do; every option is `--name value`.
struct Options {
    address: SocketAddr,
    protocol: Protocol,
    spans: u64,
    per_request: usize,
    connections: usize,
    streams: usize,
    seed: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Grpc,
    Http,
}

const USAGE: &str = "replay --address IP:PORT [--protocol grpc|http] [--spans 1000000] [--per-request 512] \
                     [--connections 4] [--streams 2] [--seed 1]";

fn options() -> Result<Options, String> {
    let mut options = Options {
        address: SocketAddr::from(([127, 0, 0, 1], 4317)),
        protocol: Protocol::Grpc,
        spans: 1_000_000,
        per_request: 512,
        connections: 4,
        streams: 2,
        seed: 1,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value; {USAGE}"))?;
        let wrong = |_| format!("{value} is no value for {name}; {USAGE}");
        match name.as_str() {
            "--address" => options.address = value.parse().map_err(|_| format!("{value} is no address; {USAGE}"))?,
            "--protocol" if value == "grpc" => options.protocol = Protocol::Grpc,
            "--protocol" if value == "http" => options.protocol = Protocol::Http,
            "--spans" => options.spans = value.parse().map_err(wrong)?,
            "--per-request" => options.per_request = value.parse().map_err(wrong)?,
            "--connections" => options.connections = value.parse().map_err(wrong)?,
            "--streams" => options.streams = value.parse().map_err(wrong)?,
            "--seed" => options.seed = value.parse().map_err(wrong)?,
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let batches = Rc::new(Batches::new(options.seed, options.per_request));
    let begun = Instant::now();
    let outcome = LocalSet::new().block_on(&runtime, send_all(&options, batches))?;
    let seconds = begun.elapsed().as_secs_f64();
    let Outcome { retries, acknowledged, refused, bytes } = outcome;
    println!(
        "{{\"acknowledged\":{acknowledged},\"refused\":{refused},\"retries\":{retries},\"bytes\":{bytes},\"seconds\":{seconds}}}"
    );
    Ok(())
}

async fn send_all(options: &Options, batches: Rc<Batches>) -> Result<Outcome, Box<dyn std::error::Error>> {
    let streams = if options.protocol == Protocol::Grpc { options.streams } else { 1 };
    let workers = options.connections * streams;
    let requests = options.spans.div_ceil(options.per_request as u64);
    let mut tasks = Vec::new();
    for connection in 0..options.connections {
        let mut sender = Sender::connect(options.protocol, options.address).await?;
        for stream in 0..streams {
            let worker = (connection * streams + stream) as u64;
            let share = requests / workers as u64 + u64::from(worker < requests % workers as u64);
            let sender = sender.another();
            let batches = Rc::clone(&batches);
            let uri = uri(options);
            tasks.push(tokio::task::spawn_local(send(sender, batches, share, uri)));
        }
    }
    let mut outcome = Outcome::default();
    for task in tasks {
        let part = task.await??;
        outcome.retries += part.retries;
        outcome.acknowledged += part.acknowledged;
        outcome.refused += part.refused;
        outcome.bytes += part.bytes;
    }
    Ok(outcome)
}

fn uri(options: &Options) -> String {
    match options.protocol {
        Protocol::Grpc => {
            format!("http://{}/opentelemetry.proto.collector.trace.v1.TraceService/Export", options.address)
        }
        Protocol::Http => "/v1/traces".into(),
    }
}

/// Sends a number of requests one after the other; what may pass later is sent again.
async fn send(mut sender: Sender, batches: Rc<Batches>, requests: u64, uri: String) -> Result<Outcome, hyper::Error> {
    let mut outcome = Outcome::default();
    for _ in 0..requests {
        let batch = batches.next(sender.is_grpc());
        loop {
            match sender.send(&uri, batch.clone()).await? {
                Answer::Taken => {
                    outcome.acknowledged += batches.spans() as u64;
                    outcome.bytes += batch.len() as u64;
                    break;
                }
                Answer::Later => {
                    outcome.retries += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
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

#[derive(Debug, PartialEq)]
enum Answer {
    Taken,
    Later,
    Never,
}

enum Sender {
    Grpc(http2::SendRequest<Full<Bytes>>),
    Http(Option<http1::SendRequest<Full<Bytes>>>),
}

impl Sender {
    async fn connect(protocol: Protocol, address: SocketAddr) -> Result<Self, Box<dyn std::error::Error>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        Ok(match protocol {
            Protocol::Grpc => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
                tokio::task::spawn_local(connection);
                Self::Grpc(sender)
            }
            Protocol::Http => {
                let (sender, connection) = http1::handshake(io).await?;
                tokio::task::spawn_local(connection);
                Self::Http(Some(sender))
            }
        })
    }

    fn is_grpc(&self) -> bool {
        matches!(self, Self::Grpc(_))
    }

    /// The next stream of a connection; of HTTP/1.1 there is only one.
    fn another(&mut self) -> Self {
        match self {
            Self::Grpc(sender) => Self::Grpc(sender.clone()),
            Self::Http(sender) => Self::Http(sender.take()),
        }
    }

    async fn send(&mut self, uri: &str, body: Bytes) -> Result<Answer, hyper::Error> {
        let request = Request::post(uri);
        match self {
            Self::Grpc(sender) => {
                let request = request.header("content-type", "application/grpc").header("te", "trailers");
                let Ok(request) = request.body(Full::new(body)) else { return Ok(Answer::Never) };
                grpc_answer(sender.send_request(request).await?).await
            }
            Self::Http(Some(sender)) => {
                let request = request.header("content-type", "application/x-protobuf").header("host", "localhost");
                let Ok(request) = request.body(Full::new(body)) else { return Ok(Answer::Never) };
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                let answer = match response.status() {
                    StatusCode::OK => Answer::Taken,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Answer::Later,
                    _ => Answer::Never,
                };
                response.into_body().collect().await?;
                Ok(answer)
            }
            Self::Http(None) => Ok(Answer::Never),
        }
    }
}

async fn grpc_answer(response: Response<Incoming>) -> Result<Answer, hyper::Error> {
    let in_headers = response.headers().get("grpc-status").cloned();
    let body = response.into_body().collect().await?;
    let status = in_headers.or_else(|| body.trailers().and_then(|trailers| trailers.get("grpc-status").cloned()));
    Ok(match status.as_ref().map(|status| status.as_bytes()) {
        Some(b"0") => Answer::Taken,
        Some(b"14" | b"8") => Answer::Later,
        _ => Answer::Never,
    })
}
