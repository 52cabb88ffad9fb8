//! A sink in a thread, spans to send, and a reader of what it stored.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;
use tempfile::TempDir;
use tokio::sync::oneshot;
use unladen_ledger::summary::{Event, Summary};
use unladen_sink::SinkError;
use unladen_sink::config::{Attributes, Config, Protocol};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running sink with a folder of its own.
pub(crate) struct Sink {
    pub(crate) folder: TempDir,
    pub(crate) grpc: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) addresses: BTreeMap<String, SocketAddr>,
    pub(crate) events: mpsc::Receiver<Event>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<Summary, SinkError>>,
}

/// Free ports on loopback.
pub(crate) fn config(out: &Path) -> Config {
    let config = Config { out: out.into(), attributes: Attributes::All, ..Config::default() };
    listening(config, &[Protocol::OtlpGrpc, Protocol::OtlpHttp])
}

/// Listens for these as well, at free ports.
pub(crate) fn listening(mut config: Config, protocols: &[Protocol]) -> Config {
    config.listen.extend(protocols.iter().map(|protocol| (*protocol, SocketAddr::from(([127, 0, 0, 1], 0)))));
    config
}

impl Sink {
    pub(crate) fn start() -> Self {
        Self::with(|config| config)
    }

    pub(crate) fn with(change: impl FnOnce(Config) -> Config) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let config = change(config(folder.path()));
        let (stop, stopped) = oneshot::channel();
        let (report, events) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let stop = async {
                let _ = stopped.await;
            };
            // Nobody listens any more once the test has what it wants.
            unladen_sink::run(&config, |event| drop(report.send(event)), stop)
        });
        let Ok(Event::Ready { addresses }) = events.recv_timeout(PATIENCE) else { panic!("the sink is not ready") };
        let (grpc, http) = (addresses["otlp_grpc"], addresses["otlp_http"]);
        Self { folder, grpc, http, addresses, events, stop, thread }
    }

    /// Waits until the sink ends without being told to.
    pub(crate) fn ends_by_itself(self) -> Result<Summary, SinkError> {
        let end = self.thread.join().expect("the sink does not panic");
        drop(self.stop);
        end
    }

    /// Stops the sink; the summary, and the rows on disk by column.
    pub(crate) fn stop(self) -> (Summary, Vec<Row>) {
        let (summary, folder) = self.stop_and_keep();
        (summary, rows(folder.path()))
    }

    /// Stops the sink; the summary, and the folder with its files.
    pub(crate) fn stop_and_keep(self) -> (Summary, TempDir) {
        drop(self.stop);
        let summary = self.thread.join().expect("the sink does not panic").expect("the sink ends well");
        let path = self.folder.path().join("summary.json");
        let written = std::fs::read(path).expect("the sink writes its summary");
        assert_eq!(serde_json::from_slice::<Summary>(&written).expect("the summary is JSON"), summary);
        (summary, self.folder)
    }
}

/// Every row of every span file, in order.
pub(crate) fn rows(out: &Path) -> Vec<Row> {
    let mut files: Vec<_> =
        std::fs::read_dir(out.join("spans")).expect("spans folder").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    let mut rows = Vec::new();
    for path in files {
        assert_eq!(path.extension().and_then(|extension| extension.to_str()), Some("parquet"), "{}", path.display());
        let file = std::fs::File::open(&path).expect("span file");
        let reader = SerializedFileReader::new(file).expect("a whole Parquet file");
        rows.extend(reader.get_row_iter(None).expect("rows").map(|row| row.expect("row")));
    }
    rows
}

/// A row's columns as text.
pub(crate) fn columns(row: &Row) -> BTreeMap<String, String> {
    row.get_column_iter().map(|(name, field)| (name.clone(), field.to_string())).collect()
}

/// Span `number` of a trace; ids are made from the numbers.
pub(crate) fn span(trace: u64, number: u64) -> Span {
    let trace_id = (u128::from(u64::MAX) << 64 | u128::from(trace)).to_be_bytes().to_vec();
    with_trace(trace_id, number)
}

pub(crate) fn with_trace(trace_id: Vec<u8>, number: u64) -> Span {
    Span {
        trace_id,
        span_id: (number + 1).to_be_bytes().to_vec(),
        parent_span_id: if number == 0 { Vec::new() } else { number.to_be_bytes().to_vec() },
        name: if number == 0 { "GET /vets".into() } else { "SELECT vets".into() },
        kind: if number == 0 { 2 } else { 3 },
        start_time_unix_nano: 1_700_000_000_000_000_000 + number,
        end_time_unix_nano: 1_700_000_000_000_000_000 + number + 1_000_000,
        attributes: vec![attribute("http.route", "/vets"), attribute("number", &number.to_string())],
        ..Span::default()
    }
}

pub(crate) fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value.into())) });
    KeyValue { key: key.into(), value, ..KeyValue::default() }
}

/// A request of the service `pets`.
pub(crate) fn request(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let attributes = vec![attribute("service.name", "pets"), attribute("service.instance.id", "pets-1")];
    let resource = Some(Resource { attributes, ..Resource::default() });
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { resource, scope_spans, ..Default::default() }] }
}

/// A runtime for clients.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    block_on_within(PATIENCE, future)
}

/// The same for what takes longer.
pub(crate) fn block_on_within<T>(patience: Duration, future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(patience, future).await.expect("the test hangs") })
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}
