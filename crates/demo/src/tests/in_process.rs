//! Consumer and provider on free ports of this process; spans are kept in memory.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser as _;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use opentelemetry::trace::{SpanId, SpanKind, Status, TraceId};
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracerProvider, SpanData};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::{NOT_SAMPLED, SAMPLED, get};
use crate::consumer::Consumer;
use crate::options::ConsumerOptions;
use crate::provider::Provider;
use crate::server::{Service, serve};
use crate::telemetry::Telemetry;
use crate::work::logarithms;

#[derive(clap::Parser)]
struct CommandLine {
    #[command(flatten)]
    consumer: ConsumerOptions,
}

/// A provider that remembers the `traceparent` of every call.
#[derive(Default)]
struct Watched(Mutex<Vec<Option<String>>>);

impl Service for Watched {
    async fn answer(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let traceparent = request.headers().get("traceparent").map(|value| value.to_str().expect("text").to_owned());
        self.0.lock().expect("not poisoned").push(traceparent);
        Provider.answer(request, peer).await
    }
}

struct Demo {
    work: String,
    provider: Arc<Watched>,
    exporter: InMemorySpanExporter,
    /// Both servers stop when it goes.
    _stop: [oneshot::Sender<()>; 2],
}

impl Demo {
    async fn start(traced: bool, arguments: &[&str]) -> Self {
        let provider = Arc::new(Watched::default());
        let (provider_address, stop_provider) = start(Arc::clone(&provider)).await;
        let url = format!("http://{provider_address}/provider");
        Self::start_consumer(traced, arguments, &url, provider, stop_provider).await
    }

    async fn start_consumer(
        traced: bool,
        arguments: &[&str],
        provider_url: &str,
        provider: Arc<Watched>,
        stop_provider: oneshot::Sender<()>,
    ) -> Self {
        let words = ["consumer", "--port", "0", "--iterations", "100", "--provider", provider_url];
        let options = CommandLine::try_parse_from(words.iter().chain(arguments)).expect("good options").consumer;
        let exporter = InMemorySpanExporter::default();
        // The sampler is the SDK's default, spelled out so that this test does not depend on the environment.
        let telemetry = traced.then(|| {
            let sampler = Sampler::ParentBased(Box::new(Sampler::AlwaysOn));
            let provider = SdkTracerProvider::builder().with_sampler(sampler).with_simple_exporter(exporter.clone());
            Telemetry::new(provider.build())
        });
        let consumer = Consumer::new(&options, telemetry).expect("nothing to hold");
        let (address, stop_consumer) = start(Arc::new(consumer)).await;
        let work = format!("http://{address}/work");
        Self { work, provider, exporter, _stop: [stop_consumer, stop_provider] }
    }

    fn spans(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().expect("not shut down")
    }

    fn calls(&self) -> Vec<Option<String>> {
        self.provider.0.lock().expect("not poisoned").clone()
    }
}

async fn start(service: Arc<impl Service>) -> (SocketAddr, oneshot::Sender<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(serve(listener, service, async {
        let _ = stopped.await;
    }));
    (address, stop)
}

#[tokio::test]
async fn every_answer_is_the_same_and_takes_three_calls() {
    let demo = Demo::start(false, &[]).await;
    let traced = Demo::start(true, &[]).await;
    let mut answers = HashSet::new();
    for _ in 0..4 {
        answers.insert(get(&demo.work, Some(SAMPLED)).await);
        answers.insert(get(&traced.work, Some(SAMPLED)).await);
    }
    let [(status, body)] = &answers.into_iter().collect::<Vec<_>>()[..] else { panic!("answers differ") };
    assert_eq!(*status, StatusCode::OK);
    assert!(body.starts_with("ok 207"), "300 logarithms of about 1e300 (690.8 each) are in {body}");
    assert_eq!(demo.calls(), vec![None; 12], "the bare consumer calls three times and injects nothing");
    assert_eq!(traced.calls().len(), 12);
    assert!(demo.spans().is_empty());
}

#[tokio::test]
async fn a_request_makes_a_server_span_with_three_client_spans_below() {
    let demo = Demo::start(true, &[]).await;
    get(&demo.work, Some(SAMPLED)).await;

    let spans = demo.spans();
    assert_eq!(spans.len(), 4);
    let trace = TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").expect("hexadecimal");
    assert!(spans.iter().all(|span| span.span_context.trace_id() == trace));
    let (servers, clients): (Vec<_>, Vec<_>) = spans.iter().partition(|span| span.span_kind == SpanKind::Server);
    let [server] = servers[..] else { panic!("one server span, not {}", servers.len()) };
    assert_eq!(server.name, "GET /work");
    assert_eq!(server.parent_span_id, SpanId::from_hex("b7ad6b7169203331").expect("hexadecimal"));
    assert!(server.parent_span_is_remote);
    assert_eq!(clients.len(), 3);
    for client in &clients {
        assert_eq!((client.name.as_ref(), &client.span_kind), ("GET", &SpanKind::Client));
        assert_eq!(client.parent_span_id, server.span_context.span_id());
    }
    // Each call carries the id of its own client span.
    let injected: HashSet<_> = demo.calls().into_iter().flatten().collect();
    let expected: HashSet<_> =
        clients.iter().map(|client| format!("00-{trace}-{}-01", client.span_context.span_id())).collect();
    assert_eq!(injected, expected);
}

#[tokio::test]
async fn spans_carry_what_the_semantic_conventions_ask_for() {
    let demo = Demo::start(true, &[]).await;
    get(&demo.work, Some(SAMPLED)).await;
    for span in demo.spans() {
        let names: HashSet<_> = span.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
        let mut wanted = vec!["http.request.method", "http.response.status_code", "server.address", "server.port"];
        wanted.extend(["network.protocol.version", "network.peer.address", "network.peer.port"]);
        wanted.extend(match span.span_kind {
            SpanKind::Server => &["http.route", "url.path", "url.scheme", "user_agent.original"][..],
            _ => &["url.full"][..],
        });
        assert_eq!(names, HashSet::from_iter(wanted), "{}", span.name);
        assert_eq!(span.attributes.len(), names.len(), "none is set twice");
        assert_eq!(span.status, Status::Unset);
    }
}

#[tokio::test]
async fn the_callers_sampling_decision_is_obeyed_and_passed_on() {
    let demo = Demo::start(true, &[]).await;
    get(&demo.work, Some(NOT_SAMPLED)).await;
    assert_eq!(demo.spans().len(), 0);
    let calls = demo.calls();
    assert_eq!(calls.len(), 3);
    for traceparent in calls {
        let traceparent = traceparent.expect("an unsampled trace goes on");
        assert!(traceparent.starts_with(&NOT_SAMPLED[..35]) && traceparent.ends_with("-00"), "{traceparent}");
    }
    get(&demo.work, None).await;
    assert_eq!(demo.spans().len(), 4, "without a caller's decision, everything is sampled");
}

#[tokio::test]
async fn the_number_of_spans_can_be_told() {
    for (spans, clients) in [(1, 0), (2, 1), (4, 3), (20, 3)] {
        let demo = Demo::start(true, &["--spans", &spans.to_string()]).await;
        get(&demo.work, Some(SAMPLED)).await;
        let made = demo.spans();
        assert_eq!(made.len(), spans);
        assert_eq!(made.iter().filter(|span| span.span_kind == SpanKind::Client).count(), clients);
        let server = made.iter().find(|span| span.span_kind == SpanKind::Server).expect("a server span");
        let children = made.iter().filter(|span| span.parent_span_id == server.span_context.span_id());
        assert_eq!(children.count(), spans - 1);
        assert_eq!(demo.calls().len(), 3, "the work stays the same");
    }
}

#[tokio::test]
async fn a_failing_call_ends_the_request_with_500_and_marks_its_spans() {
    // A port that was free a moment ago: nobody answers there.
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port").local_addr().expect("bound");
    let url = format!("http://{closed}/provider");
    let demo = Demo::start_consumer(true, &[], &url, Arc::default(), oneshot::channel().0).await;
    let (status, body) = get(&demo.work, Some(SAMPLED)).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body.contains("cannot be reached") && body.contains("refused"), "{body}");
    let spans = demo.spans();
    assert_eq!(spans.len(), 2, "the first call fails, no other is made");
    assert!(spans.iter().all(|span| matches!(span.status, Status::Error { .. })));

    let provider = Arc::new(Watched::default());
    let (address, stop) = start(Arc::clone(&provider)).await;
    let url = format!("http://{address}/elsewhere");
    let demo = Demo::start_consumer(true, &[], &url, provider, stop).await;
    let (status, body) = get(&demo.work, None).await;
    assert_eq!((status.as_u16(), body.as_str()), (500, "the provider answered 404 Not Found"));
}

#[tokio::test]
async fn only_work_is_traced() {
    let demo = Demo::start(true, &[]).await;
    let root = demo.work.trim_end_matches("/work");
    assert_eq!(get(&format!("{root}/ready"), None).await, (StatusCode::OK, "ready".to_owned()));
    assert_eq!(get(&format!("{root}/other"), None).await.0, StatusCode::NOT_FOUND);
    assert!(demo.spans().is_empty());
}

#[tokio::test]
async fn knobs_change_what_is_answered() {
    let plain = Demo::start(false, &[]).await;
    let longer = Demo::start(false, &["--body-extra", "3"]).await;
    let (_, body) = get(&plain.work, None).await;
    assert_eq!(get(&longer.work, None).await, (StatusCode::OK, format!("{body}xxx")));

    let failing = Demo::start(true, &["--error-share", "0.5"]).await;
    let mut failed = 0;
    for _ in 0..6 {
        failed += u32::from(get(&failing.work, None).await.0 == StatusCode::INTERNAL_SERVER_ERROR);
    }
    assert_eq!(failed, 3);
    assert_eq!(failing.calls().len(), 18, "a failed request does the same work");
    assert_eq!(failing.spans().len(), 24);
}

/// CPU time that this thread has used, in ms.
fn thread_cpu_so_far_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// CPU time that ten requests take the thread of this test, in ms: client, consumer and provider share it.
async fn thread_cpu_ms(arguments: &[&str]) -> f64 {
    let demo = Demo::start(false, arguments).await;
    get(&demo.work, None).await;
    let before = thread_cpu_so_far_ms();
    for _ in 0..10 {
        get(&demo.work, None).await;
    }
    thread_cpu_so_far_ms() - before
}

#[tokio::test]
async fn burning_takes_cpu_and_delaying_takes_time() {
    let plain = thread_cpu_ms(&[]).await;
    let burnt = thread_cpu_ms(&["--burn-us", "10000"]).await - plain;
    assert!((burnt - 100.0).abs() < 10.0, "10 requests burnt {burnt:.1} ms more, not 100");

    let start = Instant::now();
    let delayed = thread_cpu_ms(&["--delay-us", "10000"]).await - plain;
    assert!(start.elapsed() >= Duration::from_millis(110));
    assert!(delayed < 20.0, "10 delays of 10 ms took {delayed:.1} ms of CPU");
}

#[tokio::test]
async fn extra_work_is_so_many_logarithms() {
    let before = thread_cpu_so_far_ms();
    std::hint::black_box(logarithms(10_000_000));
    let alone = thread_cpu_so_far_ms() - before;
    let plain = thread_cpu_ms(&[]).await;
    let extra = thread_cpu_ms(&["--extra-work", "1000000"]).await - plain;
    // Which pace the machine had for the one and for the other is its own affair.
    assert!((0.5..2.0).contains(&(extra / alone)), "{extra:.0} and {alone:.0} ms");

    let plain = Demo::start(false, &[]).await;
    let more = Demo::start(false, &["--extra-work", "1000"]).await;
    assert_eq!(get(&more.work, None).await, get(&plain.work, None).await, "nothing of it is in the answer");
}
