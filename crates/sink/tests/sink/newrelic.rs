//! New Relic's collector over real sockets, as its agents call it, with and without TLS, and as a hostile sender might.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use unladen_decode::wire::put_number;
use unladen_sink::config::{Config, Protocol, Requests};

use crate::http::{post, send, send_over};
use crate::payloads::{Adds, Expect, ONE, UNDECODABLE};
use crate::senders::{Client, MS, START, Way, field, framed};
use crate::support::{Sink, block_on, columns, gzip, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };
/// Where the spans of the service `pets` go.
pub(crate) const PATH: &str =
    "/agent_listener/invoke_raw_method?marshal_format=json&method=span_event_data&run_id=cGV0cw";

/// A span of a trace; that of the request has the number 0.
pub(crate) fn event(trace: &str, number: u64) -> String {
    let (id, at) = (number + 1, START / MS + number);
    let caller =
        if number == 0 { r#""nr.entryPoint":true"# } else { r#""parentId":"0000000000000001","span.kind":"client""# };
    format!(
        r#"[{{"type":"Span","traceId":"{trace}","guid":"{id:016x}","timestamp":{at},"duration":0.001,"name":"GET /vets",{caller}}},{{}},{{"number":"{number}"}}]"#
    )
}

/// A request with spans, of which none was lost before.
pub(crate) fn harvest(events: &[String]) -> String {
    format!(r#"["cGV0cw",{{"reservoir_size":100,"events_seen":{}}},[{}]]"#, events.len(), events.join(","))
}

/// What a hostile sender may send, and what it gets and counts for.
pub(crate) fn hostile(trace: &str) -> Vec<(&'static str, String, Expect, Adds)> {
    let rejected = Adds { rejected: 1, ..Adds::default() };
    let million = 1_000_000;
    let sound = |number: u64| event(trace, 0).replace("0001\"", &format!("{number:04}\""));
    let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
    let one = |event: String| harvest(&[event]);
    vec![
        ("ids of the wrong length", one(sound(1).replace(trace, "0707")), Expect::Taken, rejected),
        ("time running backwards", one(sound(2).replace("0.001", "-1e300")), Expect::Taken, ONE),
        (
            "a million attributes",
            one(sound(3).replace("{\"number\"", &format!("{{{many}\"number\""))),
            Expect::Taken,
            ONE,
        ),
        (
            "deep nesting",
            one(format!("[{{\"a\":{}", "[".repeat(100_000))),
            Expect::Refused(400, "", "nested too deeply"),
            UNDECODABLE,
        ),
        (
            "a million broken events",
            format!("[1,{{}},[{}[]]]", "[],".repeat(million)),
            Expect::Taken,
            Adds { rejected: 1 + million as u64, ..Adds::default() },
        ),
    ]
}

/// An entry of a map.
fn entry(map: u32, key: &str, value: &[u8]) -> Vec<u8> {
    field(map, &[field(1, key.as_bytes()), field(2, value)].concat())
}

/// The same span as in [`event`], as Infinite Tracing has it.
pub(crate) fn streamed(trace: &str, index: u64) -> Vec<u8> {
    let text = |text: &str| field(1, text.as_bytes());
    let mut at = Vec::new();
    put_number(&mut at, 3, START / MS + index);
    let duration = [&[4 << 3 | 1][..], &0.001_f64.to_le_bytes()].concat();
    let id = format!("{:016x}", index + 1);
    let (caller, called) =
        if index == 0 { ("nr.entryPoint", vec![2 << 3, 1]) } else { ("parentId", text("0000000000000001")) };
    let mut out = field(1, trace.as_bytes());
    let intrinsics =
        [("type", text("Span")), ("guid", text(&id)), ("timestamp", at), ("duration", duration), (caller, called)];
    intrinsics.iter().for_each(|(key, value)| out.extend(entry(2, key, value)));
    out.extend(entry(2, "name", &text("GET /vets")));
    out.extend(entry(4, "number", &text(&index.to_string())));
    out
}

/// What a hostile sender may stream, and what it gets and counts for.
pub(crate) fn hostile_streamed(trace: &str) -> Vec<(&'static str, Vec<u8>, Expect, Adds)> {
    let million = 1_000_000;
    let rejected = |rejected: u64| Adds { rejected, ..Adds::default() };
    let mut many = streamed(trace, 7);
    (0..million).for_each(|number: u32| many.extend(entry(3, &number.to_string(), &[2 << 3, 1])));
    let back = [streamed(trace, 8), entry(2, "duration", &[&[4 << 3 | 1][..], &(-1e300_f64).to_le_bytes()].concat())];
    vec![
        ("ids of the wrong length", field(1, &streamed("0707", 6)), Expect::Taken, rejected(1)),
        ("time running backwards", field(1, &back.concat()), Expect::Taken, ONE),
        ("a million attributes", field(1, &many), Expect::Taken, ONE),
        ("a million spans of two bytes", [10, 0].repeat(million as usize), Expect::Taken, rejected(million.into())),
    ]
}

fn call(method: &str) -> String {
    format!("/agent_listener/invoke_raw_method?marshal_format=json&protocol_version=17&license_key=k&method={method}")
}

#[test]
fn an_agent_connects_and_sends_its_spans() {
    let sink = Sink::with(|config| Config {
        requests: Some(REQUESTS),
        max_message: 100_000,
        ..listening(config, &[Protocol::Newrelic])
    });
    let address = sink.addresses["newrelic"];
    let trace = |index| REQUESTS.trace_id(index).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let returned = |answer: &[u8]| serde_json::from_slice::<Value>(answer).expect("JSON")["return_value"].clone();
    block_on(async {
        let here = format!("sink:{}", address.port());
        for (agent, asked, host) in [
            ("NewRelic-GoAgent/3.45.0", here.as_str(), here.as_str()),
            ("NewRelic-NodeAgent/14.5.1 (nodejs 22)", "sink", &here),
            ("NewRelic-PythonAgent/14.1.0 (Python 3.11)", &here, "sink"),
        ] {
            let mut request = post(&call("preconnect"), &[("user-agent", agent)], b"[]".into());
            request.headers_mut().insert("host", asked.parse().expect("a host"));
            let (status, answer) = send(address, request).await;
            assert_eq!((status, returned(&answer)), (200, json!({ "redirect_host": host })), "{agent}");
        }
        let hello = json!([{ "app_name": ["pets"], "event_harvest_config": { "harvest_limits": { "span_event_data": 2_000 } } }]);
        let gzipped = [("content-encoding", "gzip")];
        let (status, answer) =
            send(address, post(&call("connect"), &gzipped, gzip(hello.to_string().as_bytes()))).await;
        let answer = returned(&answer);
        assert_eq!(
            (status, &answer["agent_run_id"], &answer["collect_span_events"]),
            (200, &"cGV0cw".into(), &true.into())
        );
        let sound =
            harvest(&[event(&trace(0), 0), event(&trace(0), 1)]).replace("\"events_seen\":2", "\"events_seen\":9");
        assert_eq!(send(address, post(PATH, &gzipped, gzip(sound.as_bytes()))).await.0, 200);
        for (path, body, expected) in [
            (call("metric_data"), "[]", 200),
            (call("get_agent_commands"), "[]", 200),
            (call("connect"), "hello", 200),
            (PATH.to_owned(), "hello", 400),
            (PATH.to_owned(), &" ".repeat(200_000), 413),
            ("/v1/traces".to_owned(), "[]", 404),
        ] {
            assert_eq!(send(address, post(&path, &[], body.into())).await.0, expected, "{path} {body:.10}");
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.rejected, summary.undecodable), (2, 0, 2));
    assert_eq!((&summary.spans_by_request[..], summary.by_protocol["newrelic"]), (&[(2, 1)][..], 2));
    let [lost] = &summary.reported_losses[..] else { panic!("one loss: {:?}", summary.reported_losses) };
    assert_eq!((lost.service.as_str(), lost.stage.as_str(), lost.spans), ("pets", "reservoir", 7));
    let (request, query) = (columns(&rows[0]), columns(&rows[1]));
    assert_eq!((request["kind"].as_str(), query["kind"].as_str()), ("\"server\"", "\"client\""));
    assert_eq!(query["parent_id"], request["span_id"]);
    assert_eq!((request["start_ns"].as_str(), request["duration_ns"].as_str()), ("1700000000000000000", "1000000"));
}

/// Who trusts the sink's own authority, and nobody else, is served under each of its names.
#[test]
fn over_tls() {
    let sink = Sink::with(|config| listening(config, &[Protocol::Newrelic]));
    let address = sink.addresses["newrelic"];
    let authority =
        CertificateDer::from_pem_file(sink.folder.path().join(unladen_sink::CA_FILE)).expect("a certificate");
    let mut roots = RootCertStore::empty();
    let stranger = Arc::new(client(roots.clone()));
    roots.add(authority).expect("an authority");
    let config = Arc::new(client(roots));
    block_on(async {
        for name in ["localhost", "127.0.0.1"] {
            let name = ServerName::try_from(name).expect("a name");
            let connect = async |config: &Arc<ClientConfig>| {
                let stream = TcpStream::connect(address).await.expect("the sink listens");
                tokio_rustls::TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await
            };
            let stream = connect(&config).await.expect("the sink's certificate is good");
            let body = harvest(&[event(&"07".repeat(16), 0)]);
            assert_eq!(send_over(stream, post(PATH, &[], body.into())).await.0, 200);
            assert!(connect(&stranger).await.is_err(), "nobody else vouches for it");
        }
    });
    let (summary, _) = sink.stop();
    assert_eq!((summary.saved, summary.duplicates), (1, 1));
}

/// All spans in a stream, on the port of the collector, of the service that the run belongs to.
#[test]
fn infinite_tracing() {
    let sink = Sink::with(|config| Config { requests: Some(REQUESTS), ..listening(config, &[Protocol::Newrelic]) });
    let address = sink.addresses["newrelic"];
    let trace = REQUESTS.trace_id(0);
    block_on(async {
        let mut client = Client::connect(Way::NewrelicStreamed, address).await.expect("the sink listens");
        let run = [("agent_run_token", "cGV0cw")];
        let (status, grpc, _) =
            client.call(&run, Way::NewrelicStreamed.body(&[trace], 2).into()).await.expect("an answer");
        assert_eq!((status, grpc.as_deref()), (200, Some("0")));
        let hex: String = trace.iter().map(|byte| format!("{byte:02x}")).collect();
        let one = framed(&streamed(&hex, 2));
        let alone = "/com.newrelic.trace.v1.IngestService/RecordSpan";
        let (_, grpc, _) = client.call_at(alone, &run, [&one[..], &one].concat().into()).await.expect("an answer");
        assert_eq!(grpc.as_deref(), Some("0"));
        let unknown = "/com.newrelic.trace.v1.IngestService/Record";
        let (_, grpc, message) = client.call_at(unknown, &run, one.into()).await.expect("an answer");
        assert!(grpc.as_deref() == Some("12") && message.contains("RecordSpanBatch"), "{grpc:?} {message}");
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.duplicates, summary.rejected), (3, 1, 0));
    assert_eq!((&summary.spans_by_request[..], summary.by_service["pets"]), (&[(3, 1)][..], 3));
    assert_eq!(
        (columns(&rows[0])["kind"].as_str(), columns(&rows[1])["kind"].as_str()),
        ("\"server\"", "\"internal\"")
    );
}

fn client(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("supported");
    config.with_root_certificates(roots).with_no_client_auth()
}
