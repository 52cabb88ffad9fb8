//! Findings as metrics to whoever keeps metrics: OTLP over HTTP (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>), as
//! `unladen report DIR --push http://127.0.0.1:4318/v1/metrics`. Formats and sends; every number stands in `findings.json`.
//!
//! Gauges, all with the attributes `study`, `variant`, `metric`, `unit`, and `service` and `operation` where there are any:
//! `unladen.finding.baseline`, `unladen.finding.value`, and with `bound` (`estimate`, `low`, `high`)
//! `unladen.finding.difference` and `unladen.finding.ratio`. Budgets are `unladen.budget.outcome`: 1 pass, 0 undecided, −1 fail.
//! Spans are `unladen.spans` with `state` (`wanted`, `saved`, `lost`). Only `http://`: a collector on the way speaks TLS.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use unladen_judge::findings::{Finding, Findings, Outcome, VariantFindings};

/// How long the receiver may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer that is read, bytes.
const LONGEST: usize = 1 << 20;
/// Media type of OTLP in protobuf.
const PROTOBUF: &str = "application/x-protobuf";

/// Findings that did not get through.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Not a URL that is spoken.
    #[error(
        "`{0}` is not a URL such as http://127.0.0.1:4318/v1/metrics. For https put an OpenTelemetry Collector in between"
    )]
    Url(String),
    /// No runtime.
    #[error("cannot start the asynchronous runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// Nobody answers.
    #[error("{url} cannot be reached: {message}. Is a receiver of OTLP over HTTP there?")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        message: String,
    },
    /// A status that says no.
    #[error("{url} answered {status}: {text}")]
    Refused {
        /// Where.
        url: String,
        /// Its status.
        status: StatusCode,
        /// How its answer begins.
        text: String,
    },
    /// A part of the numbers was refused.
    #[error("{url} took all but {rejected} numbers: {message}")]
    Partial {
        /// Where.
        url: String,
        /// How many.
        rejected: i64,
        /// Why.
        message: String,
    },
}

/// Sends the findings; `at_ns` is the time that the numbers are booked under, nanoseconds since 1970. Returns how many numbers were
/// taken.
///
/// # Errors
/// When the receiver cannot be reached or does not take them all.
pub fn push(findings: &Findings, url: &str, at_ns: u64) -> Result<usize, PushError> {
    let uri: Uri = url.parse().map_err(|_| PushError::Url(url.to_owned()))?;
    if uri.scheme_str() != Some("http") || uri.host().is_none() {
        return Err(PushError::Url(url.to_owned()));
    }
    let request = request(findings, at_ns);
    let sent = points(&request);
    let request = Request::builder()
        .method(Method::POST)
        .uri(uri)
        .header(header::CONTENT_TYPE, PROTOBUF)
        .header(header::USER_AGENT, concat!("unladen/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(Bytes::from(request.encode_to_vec())))
        .map_err(|_| PushError::Url(url.to_owned()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let unreachable = |message: String| PushError::Unreachable { url: url.to_owned(), message };
    let (status, body) = runtime.block_on(async {
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let exchange = async {
            let response = client.request(request).await.map_err(|error| unreachable(in_full(&error)))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LONGEST).collect().await;
            Ok((status, body.map_err(|error| unreachable(error.to_string()))?.to_bytes()))
        };
        let late = |_| Err(unreachable(format!("no answer within {} s", TIMEOUT.as_secs())));
        tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or_else(late)
    })?;
    if !status.is_success() {
        let text = String::from_utf8_lossy(&body).chars().filter(|it| !it.is_control()).take(200).collect();
        return Err(PushError::Refused { url: url.to_owned(), status, text });
    }
    // Receivers that answer with something else have taken everything.
    let partial = ExportMetricsServiceResponse::decode(body).ok().and_then(|it| it.partial_success);
    match partial.filter(|it| it.rejected_data_points > 0) {
        Some(it) => Err(PushError::Partial {
            url: url.to_owned(),
            rejected: it.rejected_data_points,
            message: it.error_message,
        }),
        None => Ok(sent),
    }
}

/// An error with what it comes from: the client says only "client error (Connect)".
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(it) = source {
        text += &format!(": {it}");
        source = it.source();
    }
    text
}

fn points(request: &ExportMetricsServiceRequest) -> usize {
    let metrics = request.resource_metrics.iter().flat_map(|it| &it.scope_metrics).flat_map(|it| &it.metrics);
    metrics.map(|it| if let Some(metric::Data::Gauge(gauge)) = &it.data { gauge.data_points.len() } else { 0 }).sum()
}

/// The gauges of the findings.
#[must_use]
pub fn request(findings: &Findings, at_ns: u64) -> ExportMetricsServiceRequest {
    let mut gauges = Gauges { at_ns, metrics: Vec::new() };
    for variant in &findings.variants {
        for finding in &variant.metrics {
            of_finding(&mut gauges, findings, variant, finding);
        }
        if let Some(ledger) = &variant.ledger {
            for (state, spans) in [("wanted", ledger.wanted), ("saved", ledger.saved), ("lost", ledger.lost)] {
                let attributes = [("study", findings.study.as_str()), ("variant", &variant.name), ("state", state)];
                gauges.add("unladen.spans", "Spans of the valid runs.", spans as f64, &attributes);
            }
        }
    }
    for line in &findings.budgets {
        let outcome = match line.outcome {
            Outcome::Pass => 1.0,
            Outcome::Fail => -1.0,
            Outcome::Undecided => 0.0,
        };
        let mut attributes =
            vec![("study", findings.study.as_str()), ("variant", &line.variant), ("metric", &line.metric)];
        attributes.push(("limit", &line.limit));
        attributes.extend(line.service.as_deref().map(|it| ("service", it)));
        gauges.add("unladen.budget.outcome", "1 pass, 0 undecided, -1 fail.", outcome, &attributes);
    }
    let scope = InstrumentationScope {
        name: "unladen".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let resource = Resource { attributes: vec![attribute("service.name", "unladen")], ..Resource::default() };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics: gauges.metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn of_finding(gauges: &mut Gauges, findings: &Findings, variant: &VariantFindings, finding: &Finding) {
    let mut attributes = vec![
        ("study", findings.study.as_str()),
        ("variant", &variant.name),
        ("metric", &finding.metric),
        ("unit", &finding.unit),
    ];
    attributes.extend(finding.service.as_deref().map(|it| ("service", it)));
    attributes.extend(finding.operation.as_deref().map(|it| ("operation", it)));
    gauges.add("unladen.finding.baseline", "Median of the baseline over the rounds.", finding.baseline, &attributes);
    gauges.add("unladen.finding.value", "Median of the variant over the rounds.", finding.value, &attributes);
    let is_judged = findings.void.is_none() && variant.refused.is_none() && finding.refused.is_none();
    let bounds = [
        ("unladen.finding.difference", "Difference from the baseline.", finding.difference, "estimate"),
        ("unladen.finding.difference", "", finding.difference_low, "low"),
        ("unladen.finding.difference", "", finding.difference_high, "high"),
        ("unladen.finding.ratio", "Relative difference from the baseline.", finding.ratio, "estimate"),
        ("unladen.finding.ratio", "", finding.ratio_low, "low"),
        ("unladen.finding.ratio", "", finding.ratio_high, "high"),
    ];
    // Of what is refused no difference gets out: nobody could see the refusal where the numbers go.
    for (name, description, value, bound) in bounds.into_iter().filter(|_| is_judged) {
        if let Some(value) = value {
            let attributes: Vec<_> = attributes.iter().copied().chain([("bound", bound)]).collect();
            gauges.add(name, description, value, &attributes);
        }
    }
}

/// Gauges by name.
struct Gauges {
    at_ns: u64,
    metrics: Vec<Metric>,
}

impl Gauges {
    fn add(&mut self, name: &str, description: &str, value: f64, attributes: &[(&str, &str)]) {
        let point = NumberDataPoint {
            attributes: attributes.iter().map(|(key, value)| attribute(key, value)).collect(),
            time_unix_nano: self.at_ns,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        };
        if let Some(Metric { data: Some(metric::Data::Gauge(gauge)), .. }) =
            self.metrics.iter_mut().find(|it| it.name == name)
        {
            gauge.data_points.push(point);
            return;
        }
        self.metrics.push(Metric {
            name: name.to_owned(),
            description: description.to_owned(),
            data: Some(metric::Data::Gauge(Gauge { data_points: vec![point] })),
            ..Metric::default()
        });
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}
