//! A study under way for Prometheus: `unladen run … --metrics 127.0.0.1:9464`. The names are described in docs/how-to/watching.md.
//!
//! The text is made when something happens, not when somebody asks: an answer costs nothing while a run is measured.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use unladen_measure::watch::{Phase, Step};

use super::Display;
use crate::guard::{self, Names};
use crate::under_way::{Live, Service, Variant};

/// How the format calls itself (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const PHASES: [Phase; 9] = [
    Phase::Start,
    Phase::Setup,
    Phase::WarmUp,
    Phase::Window,
    Phase::Drain,
    Phase::Check,
    Phase::Saturation,
    Phase::Capacity,
    Phase::Stop,
];

/// The endpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for --metrics: {source}. Choose another port, or 0 for a free one")]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

/// An endpoint that tells of a study.
#[derive(Debug, Clone)]
pub struct Endpoint {
    address: SocketAddr,
    text: Arc<Mutex<Arc<str>>>,
}

impl Endpoint {
    /// Listens. The thread that answers lives as long as the process.
    ///
    /// # Errors
    /// When the address is taken.
    pub fn open(address: SocketAddr) -> Result<Self, ListenError> {
        let error = |source| ListenError { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(error)?;
        listener.set_nonblocking(true).map_err(error)?;
        let bound = listener.local_addr().map_err(error)?;
        let text: Arc<Mutex<Arc<str>>> = Arc::new(Mutex::new(Arc::from("")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(error)?;
        let shared = Arc::clone(&text);
        let answer = move || {
            let text = Arc::clone(&shared.lock().unwrap_or_else(PoisonError::into_inner));
            async move { ([(CONTENT_TYPE, MEDIA_TYPE)], text.to_string()) }
        };
        let router = guard::guarded(Router::new().route("/metrics", get(answer)), Names::new(bound.ip(), Vec::new()));
        let serve = move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                // It accepts until the process ends.
                let _ = axum::serve(listener, router).await;
            });
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(error)?;
        Ok(Self { address: bound, text })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Display for Endpoint {
    fn show(&mut self, _: Step<'_>, live: &Live) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Arc::from(render(live));
    }
}

/// The numbers in Prometheus' text format.
#[must_use]
pub fn render(live: &Live) -> String {
    let mut text = Text { text: String::new(), study: &live.study };
    text.family("unladen_info", "gauge", "The unladen that runs the study.");
    text.sample("unladen_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    text.one("unladen_study_runs_planned", "gauge", "Runs in the whole study.", live.runs_of as f64);
    text.one("unladen_study_runs_done", "gauge", "Runs that are done.", live.runs_done as f64);
    if let Some(left) = live.left_s {
        text.one("unladen_study_remaining_seconds", "gauge", "Time left, from how long the runs took so far.", left);
    }
    text.one(
        "unladen_run_round",
        "gauge",
        "Round of the run under way, from 1; 0 before the first.",
        f64::from(live.round),
    );
    text.family("unladen_run_phase", "gauge", "1 for the phase of the run under way.");
    for phase in PHASES.iter().filter(|_| !live.variant.is_empty()) {
        let labels = [("variant", live.variant.as_str()), ("phase", phase.words())];
        text.sample("unladen_run_phase", &labels, f64::from(u8::from(live.phase == Some(*phase))));
    }
    if let Some(second) = &live.second {
        let labels = [("variant", live.variant.as_str())];
        let mut last = |name, help, value| {
            text.family(name, "gauge", help);
            text.sample(name, &labels, value);
        };
        last(
            "unladen_load_requests_per_second",
            "Requests answered in the last second of the load.",
            second.answered as f64,
        );
        last(
            "unladen_load_errors_per_second",
            "Requests that failed in the last second of the load.",
            second.errors as f64,
        );
        last("unladen_load_latency_p99_seconds", "99th percentile of the latency in it.", second.p99_us / 1e6);
    }
    services(&mut text, live);
    variants(&mut text, live);
    text.text
}

/// What runs now. Between two runs there is nothing, and Prometheus shows a gap.
fn services(text: &mut Text<'_>, live: &Live) {
    let mut of = |name: &str, help: &str, value: fn(&Service) -> Option<f64>| {
        text.family(name, "gauge", help);
        for service in &live.services {
            let labels = [
                ("variant", live.variant.as_str()),
                ("service", service.service.as_str()),
                ("role", service.role.as_str()),
            ];
            if let Some(value) = value(service) {
                text.sample(name, &labels, value);
            }
        }
    };
    of("unladen_service_cpu_cores", "CPU that a service used over the last second, cores' worth.", |it| it.cpu_cores);
    of("unladen_service_memory_bytes", "Resident memory of a service.", |it| it.rss.map(|rss| rss as f64));
}

fn variants(text: &mut Text<'_>, live: &Live) {
    text.family("unladen_variant_runs_total", "counter", "Runs in the journal, by whether they count.");
    for (name, variant) in &live.variants {
        text.sample("unladen_variant_runs_total", &[("variant", name), ("counts", "true")], variant.runs as f64);
        text.sample("unladen_variant_runs_total", &[("variant", name), ("counts", "false")], variant.void as f64);
    }
    text.family("unladen_variant_spans_total", "counter", "Spans of the runs that count: wanted, saved, lost.");
    for (name, variant) in &live.variants {
        for (state, spans) in [("wanted", variant.wanted), ("saved", variant.saved), ("lost", variant.lost)] {
            text.sample("unladen_variant_spans_total", &[("variant", name), ("state", state)], spans as f64);
        }
    }
    type Column = (&'static str, &'static str, &'static str, fn(&Variant) -> Option<f64>);
    let columns: [Column; 8] = [
        ("unladen_variant_requests_total", "counter", "Requests in the windows of the runs that count.", |it| {
            Some(it.requests as f64)
        }),
        ("unladen_variant_request_errors_total", "counter", "Those of them that failed.", |it| Some(it.errors as f64)),
        (
            "unladen_variant_cpu_seconds_per_request",
            "gauge",
            "CPU per request, median over the runs that count.",
            |it| it.cpu_us_per_request.map(|it| it / 1e6),
        ),
        ("unladen_variant_cpu_ratio", "gauge", "CPU per request beside the baseline's, less 1.", |it| it.ratio),
        ("unladen_variant_cpu_ratio_low", "gauge", "Low end of its 95 % interval; from 6 rounds on.", |it| {
            it.ratio_interval.map(|it| it.0)
        }),
        ("unladen_variant_cpu_ratio_high", "gauge", "High end of its 95 % interval; from 6 rounds on.", |it| {
            it.ratio_interval.map(|it| it.1)
        }),
        (
            "unladen_variant_latency_p99_seconds",
            "gauge",
            "99th percentile of the latency in the last run that counts.",
            |it| it.p99_us.map(|it| it / 1e6),
        ),
        ("unladen_variant_rss_bytes", "gauge", "Resident memory of the subject in the last run that counts.", |it| {
            it.rss.map(|it| it as f64)
        }),
    ];
    for (metric, kind, help, value) in columns {
        text.family(metric, kind, help);
        for (name, variant) in &live.variants {
            if let Some(value) = value(variant) {
                text.sample(metric, &[("variant", name)], value);
            }
        }
    }
}

/// Text that grows. Writing into a string cannot fail.
struct Text<'a> {
    text: String,
    study: &'a str,
}

impl Text<'_> {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.text, "{name}{{study=\"{}\"", escaped(self.study));
        for (label, of) in labels {
            let _ = write!(self.text, ",{label}=\"{}\"", escaped(of));
        }
        let _ = writeln!(self.text, "}} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    fn live() -> Live {
        let labels = [("baseline".to_owned(), "bare".to_owned()), ("a\"\\\n".to_owned(), "odd".to_owned())];
        let mut live = Live::new("shop", &labels.into_iter().collect());
        live.variants["baseline"].cpu_us_per_request = Some(151.0);
        live.variants["baseline"].lost = 7;
        (live.variant, live.phase) = ("baseline".into(), Some(Phase::Window));
        let service = |service: &str, role: &str, rss| Service {
            service: service.to_owned(),
            role: role.to_owned(),
            cpu_cores: Some(0.25),
            rss,
        };
        live.services = vec![service("shop", "subject", Some(1024)), service("otelcol", "collector", None)];
        live
    }

    #[test]
    fn values_are_in_base_units_and_labels_escaped() {
        let text = render(&live());
        for line in [
            "unladen_variant_cpu_seconds_per_request{study=\"shop\",variant=\"baseline\"} 0.000151",
            "unladen_variant_spans_total{study=\"shop\",variant=\"baseline\",state=\"lost\"} 7",
            "unladen_variant_spans_total{study=\"shop\",variant=\"a\\\"\\\\\\n\",state=\"lost\"} 0",
            "unladen_run_phase{study=\"shop\",variant=\"baseline\",phase=\"measuring\"} 1",
            "unladen_run_phase{study=\"shop\",variant=\"baseline\",phase=\"stopping\"} 0",
            "unladen_service_cpu_cores{study=\"shop\",variant=\"baseline\",service=\"otelcol\",role=\"collector\"} 0.25",
            "unladen_service_memory_bytes{study=\"shop\",variant=\"baseline\",service=\"shop\",role=\"subject\"} 1024",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("unladen_service_memory_bytes{study=\"shop\",variant=\"baseline\",service=\"otelcol\""));
    }

    #[test]
    fn the_endpoint_answers_with_the_last_state_and_only_to_its_own_name() {
        let mut endpoint = Endpoint::open((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        endpoint.show(Step::Phase(Phase::Window), &live());
        let ask = |host: &str| {
            let mut stream = TcpStream::connect(endpoint.address()).expect("it listens");
            write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            answer
        };
        assert!(ask("127.0.0.1").contains("unladen_variant_cpu_seconds_per_request{"));
        assert!(ask("evil.example").starts_with("HTTP/1.1 421"));
    }
}
