//! What `unladen __demo` can be told. Only words and their ranges; what they do stands where it is done.

use std::net::{IpAddr, Ipv4Addr};

use clap::{Args, Subcommand, ValueEnum};
use http::Uri;

/// Which of the two services to be.
#[derive(Debug, Clone, Subcommand)]
pub enum Options {
    /// Answer `GET /work` by calling the provider three times, with some work before each call.
    Consumer(Box<ConsumerOptions>),
    /// Answer `GET /provider` with a short text.
    Provider(ProviderOptions),
}

/// What the provider can be told.
#[derive(Debug, Clone, Args)]
pub struct ProviderOptions {
    /// Port; 0 takes a free one, which is printed.
    #[arg(long)]
    pub port: u16,
    /// Address to listen at. In a container with a network of its own: 0.0.0.0.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub listen: IpAddr,
}

/// What the consumer can be told.
#[derive(Debug, Clone, Args)]
pub struct ConsumerOptions {
    /// Port; 0 takes a free one, which is printed.
    #[arg(long)]
    pub port: u16,
    /// Address to listen at. In a container with a network of its own: 0.0.0.0.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub listen: IpAddr,
    /// URL of the provider, `http://host:port/path`.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub provider: Uri,
    /// Work before each of the three calls: how many natural logarithms to add up (about 3 ns each).
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub iterations: u32,
    /// Whether to trace. `otlp` obeys the standard variables, such as OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME,
    /// OTEL_TRACES_SAMPLER and OTEL_BSP_*.
    #[arg(long, value_enum, default_value_t)]
    pub trace: Trace,
    /// Spans per request when tracing: the server span, then up to three client spans, then internal ones.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub spans: u32,
    /// Known costs and faults.
    #[command(flatten)]
    pub knobs: Knobs,
}

/// Whether to trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Trace {
    /// No: not one object of the SDK is made.
    #[default]
    None,
    /// With the OpenTelemetry SDK: batch span processor, OTLP over gRPC.
    Otlp,
    /// As the standard variable OTEL_TRACES_EXPORTER says: `otlp` or `none`. Without it: no.
    Env,
}

impl Trace {
    /// Whether to trace, in the environment of this process.
    pub(crate) fn is_on(self) -> bool {
        match self {
            Self::None => false,
            Self::Otlp => true,
            Self::Env => std::env::var("OTEL_TRACES_EXPORTER").is_ok_and(|exporter| exporter == "otlp"),
        }
    }
}

/// Known costs and faults, each off unless asked for. Each changes one thing and leaves the rest as it is.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Known costs and faults (each off unless given)")]
pub struct Knobs {
    /// Burn so much CPU time per request, in µs of the thread's own CPU clock.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub burn_us: u32,
    /// Add up so many more natural logarithms per request: more of the request's own work, whose cost changes with the machine's pace
    /// as that of the request does.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub extra_work: u32,
    /// Burn so many ms of CPU time in every second, in slices of 2 ms, requests or not.
    #[arg(long, value_name = "X", default_value_t = 0.0, hide_default_value = true, value_parser = of_a_second)]
    pub idle_burn_ms_per_second: f64,
    /// Leave work of so many µs of CPU time behind with every request, for a thread of its own.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub deferred_us: u32,
    /// How many seconds later it is done.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = not_negative, requires = "deferred_us")]
    pub deferred_by_s: f64,
    /// Burn so many µs more in a request before which none came for 10 ms: as if others had used its caches.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub cold_us: u32,
    /// Burn so many µs more in every n-th request, as who sends in batches does.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub batch_us: u32,
    /// Requests of a batch.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..), requires = "batch_us")]
    pub batch_of: u32,
    /// Hold so many MiB of resident memory from the start.
    #[arg(long, value_name = "M", default_value_t = 0, hide_default_value = true)]
    pub hold_mib: u32,
    /// Leak so many MiB of resident memory per minute, steadily, requests or not.
    #[arg(long, value_name = "X", default_value_t = 0.0, hide_default_value = true, value_parser = not_negative)]
    pub leak_mib_per_minute: f64,
    /// Wait so many µs per request without using the CPU.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub delay_us: u32,
    /// Wait longer from second to second, by so many µs per request, without using the CPU.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub slower_us_per_second: u32,
    /// Stand still for so many ms at a time: answer nobody, use no CPU.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub stall_ms: u32,
    /// How many seconds lie between the beginnings of two stalls.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = not_negative, requires = "stall_ms")]
    pub stall_every_s: f64,
    /// Answer this share of the requests (0 to 1, evenly spread) with status 500, after the same work.
    #[arg(long, value_name = "P", default_value_t = 0.0, hide_default_value = true, value_parser = share)]
    pub error_share: f64,
    /// Append so many bytes to the body.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub body_extra: u32,
    /// Wait so many ms before listening.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub slow_start_ms: u32,
    /// Die with exit code 1 so many seconds after the start.
    #[arg(long, value_name = "N", value_parser = not_negative)]
    pub die_after_s: Option<f64>,
    /// Go on at SIGTERM and SIGINT as if nothing had happened.
    #[arg(long)]
    pub ignore_sigterm: bool,
}

fn http_url(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http"), Some(_)) => Ok(uri),
        _ => Err("give a URL such as http://127.0.0.1:8080/provider".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    number(text).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "give a share from 0 to 1".to_owned())
}

fn not_negative(text: &str) -> Result<f64, String> {
    // A billion of anything here is out of reach, and keeps seconds within what a `Duration` holds.
    number(text).filter(|number| (0.0..=1e9).contains(number)).ok_or_else(|| "give a number from 0 to 1e9".to_owned())
}

fn of_a_second(text: &str) -> Result<f64, String> {
    // A thread cannot burn more than a second in a second.
    number(text).filter(|ms| (0.0..=1_000.0).contains(ms)).ok_or_else(|| "give milliseconds from 0 to 1000".to_owned())
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}
