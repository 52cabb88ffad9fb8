//! The sink about itself, for those who operate it: `/metrics` in Prometheus' text format
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>) and `/healthz`. Takes no spans.

use std::convert::Infallible;
use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use unladen_ledger::summary::Summary;

use crate::answer::Reply;
use crate::hub::Hub;
use crate::web::reply;

/// How the format calls itself.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A media type.
const TEXT: &str = "text/plain; charset=utf-8";
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers one request: whoever looks every few seconds need not hold a connection.
pub(crate) async fn serve(hub: Rc<Hub>, stream: TcpStream) {
    let service = service_fn(|request| {
        let answer = answer(&hub, &request);
        async { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A reader that goes away is its own affair.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

fn answer(hub: &Hub, request: &Request<Incoming>) -> Response<Reply> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is answered here\n");
    }
    match request.uri().path() {
        "/metrics" => {
            let (_, saved, quiet_ms) = hub.progress();
            reply(StatusCode::OK, PROMETHEUS, metrics(&hub.summary(), saved, quiet_ms))
        }
        "/healthz" if hub.is_healthy() => reply(StatusCode::OK, TEXT, "ok\n"),
        "/healthz" => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, "spans cannot be written\n"),
        _ => reply(StatusCode::NOT_FOUND, TEXT, "there are /metrics and /healthz\n"),
    }
}

/// All that is counted; `saved` are in the store, and the last span came `quiet_ms` ago.
fn metrics(summary: &Summary, saved: u64, quiet_ms: u64) -> String {
    let mut page = Page::default();
    let by_protocol = summary.by_protocol.iter().map(|(protocol, spans)| (vec![("protocol", protocol)], *spans));
    page.counter("spans_received", "Spans received and understood, duplicates included.", by_protocol);
    page.plain("spans_saved", "Distinct spans in the store.", saved);
    page.plain("spans_duplicate", "Spans received more than once.", summary.duplicates);
    page.plain("spans_rejected", "Spans that can never be stored.", summary.rejected);
    page.plain("spans_late", "Distinct spans that arrived more than ten seconds after their end.", summary.late);
    page.plain("spans_dropped", "Spans dropped on purpose.", summary.dropped);
    page.plain("requests_struck", "Requests refused, reset or never answered on purpose.", summary.faulted);
    page.plain("requests_undecodable", "Requests that could not be decoded.", summary.undecodable);
    page.plain("received_bytes", "Bytes of telemetry received, before decompression.", summary.bytes);
    page.plain("traces", "Distinct traces.", summary.traces);
    let by_service = summary.by_service.iter().map(|(service, spans)| (vec![("service", service)], *spans));
    page.counter("service_spans", "Distinct spans by service.", by_service);
    let losses = summary
        .reported_losses
        .iter()
        .map(|loss| (vec![("service", &loss.service), ("stage", &loss.stage)], loss.spans));
    page.counter("told_lost_spans", "Spans that agents say they lost themselves, by service and stage.", losses);
    page.gauge("quiet_seconds", "Time since the last span arrived, or since the start.", quiet_ms as f64 / 1e3);
    page.text
}

/// The page as it grows.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, "# HELP unladen_sink_{name} {help}\n# TYPE unladen_sink_{name} {kind}");
    }

    fn counter<'a>(
        &mut self,
        name: &str,
        help: &str,
        series: impl Iterator<Item = (Vec<(&'static str, &'a String)>, u64)>,
    ) {
        let name = format!("{name}_total");
        self.head(&name, help, "counter");
        for (labels, value) in series {
            let labels = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            let _ = writeln!(self.text, "unladen_sink_{name}{{{labels}}} {value}");
        }
    }

    fn plain(&mut self, name: &str, help: &str, value: u64) {
        let name = format!("{name}_total");
        self.head(&name, help, "counter");
        let _ = writeln!(self.text, "unladen_sink_{name} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        let _ = writeln!(self.text, "unladen_sink_{name} {value}");
    }
}

/// A label's value; names of services come from outside.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use unladen_ledger::summary::ReportedLoss;

    #[test]
    fn every_counter_stands_there_with_its_help_and_type() {
        let loss = ReportedLoss { service: "a \"b\"\n\\".into(), stage: "queue".into(), spans: 3 };
        let summary = Summary {
            received: 7,
            bytes: 900,
            reported_losses: vec![loss],
            by_protocol: [("otlp_grpc".into(), 4), ("zipkin".into(), 3)].into(),
            by_service: [("shop".into(), 7)].into(),
            ..Summary::default()
        };
        let text = metrics(&summary, 6, 1_500);
        for line in [
            "# TYPE unladen_sink_spans_received_total counter",
            "unladen_sink_spans_received_total{protocol=\"otlp_grpc\"} 4",
            "unladen_sink_spans_received_total{protocol=\"zipkin\"} 3",
            "unladen_sink_spans_saved_total 6",
            "unladen_sink_received_bytes_total 900",
            "unladen_sink_service_spans_total{service=\"shop\"} 7",
            "unladen_sink_told_lost_spans_total{service=\"a \\\"b\\\"\\n\\\\\",stage=\"queue\"} 3",
            "# TYPE unladen_sink_quiet_seconds gauge",
            "unladen_sink_quiet_seconds 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        // As the format wants it: help and type once and first, every other line a sample of that metric.
        let mut current = String::new();
        for line in text.lines() {
            match line.strip_prefix("# HELP ") {
                Some(help) => current = help.split(' ').next().expect("a name").to_owned(),
                None => assert!(line.trim_start_matches("# TYPE ").starts_with(&current), "{line} after {current}"),
            }
        }
    }
}
