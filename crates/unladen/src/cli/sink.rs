//! What may be typed after `unladen sink`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use unladen_journal::units::{Ratio, Time};
use unladen_study::spec::{Delay, Faults, Flapping, Refuse};

/// `unladen sink`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  unladen sink --out spans\n  unladen sink --out spans --admin 127.0.0.1:9464   # curl http://127.0.0.1:9464/metrics\n  unladen sink --out spans --delay 50ms..200ms --refuse-share 10%   # slow and refusing"
)]
pub struct Sink {
    /// Folder for summary.json and spans/*.parquet.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Address for OTLP over gRPC.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4317")]
    pub otlp_grpc: SocketAddr,
    /// Address for OTLP over HTTP.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4318")]
    pub otlp_http: SocketAddr,
    /// Address for Zipkin v2 [off unless given; its own port is 9411]
    #[arg(long, value_name = "ADDR")]
    pub zipkin: Option<SocketAddr>,
    /// Address for SkyWalking v3 over gRPC and HTTP [off unless given; its own port is 11800]
    #[arg(long, value_name = "ADDR")]
    pub skywalking: Option<SocketAddr>,
    /// Address for Elastic APM intake v2 [off unless given; its own port is 8200]
    #[arg(long, value_name = "ADDR")]
    pub elastic: Option<SocketAddr>,
    /// Address for Jaeger's Thrift over HTTP and its gRPC collector [off unless given; its own port is 14268]
    #[arg(long, value_name = "ADDR")]
    pub jaeger: Option<SocketAddr>,
    /// Address for Sentry's envelopes, the host of a DSN [off unless given]
    #[arg(long, value_name = "ADDR")]
    pub sentry: Option<SocketAddr>,
    /// Address for Azure Application Insights, the IngestionEndpoint of a connection string [off unless given]
    #[arg(long, value_name = "ADDR")]
    pub azure: Option<SocketAddr>,
    /// Address for Datadog's traces over HTTP, DogStatsD over UDP [off unless given; its own port is 8126]
    #[arg(long, value_name = "ADDR")]
    pub datadog: Option<SocketAddr>,
    /// Address for AWS X-Ray: segments over UDP, sampling rules over TCP [off unless given; its own port is 2000]
    #[arg(long, value_name = "ADDR")]
    pub xray: Option<SocketAddr>,
    /// Address for New Relic's collector; its agents must trust sink-ca.pem in the folder of the results [off unless given]
    #[arg(long, value_name = "ADDR")]
    pub newrelic: Option<SocketAddr>,
    /// Address for Pinpoint's collector over gRPC, all of its services [off unless given; its own ports are 9991 to 9993]
    #[arg(long, value_name = "ADDR")]
    pub pinpoint: Option<SocketAddr>,
    /// Address for Instana's tracers, as the agent of their host [off unless given; its own port is 42699]
    #[arg(long, value_name = "ADDR")]
    pub instana: Option<SocketAddr>,
    /// Address for /metrics (Prometheus) and /healthz [off unless given]
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<SocketAddr>,
    /// When stored spans are made durable.
    #[arg(long, value_enum, default_value_t = Sync::Always)]
    pub sync: Sync,
    /// Which attributes are stored with each span.
    #[arg(long, value_enum, default_value_t = Attributes::Few)]
    pub attributes: Attributes,
    /// Print plain lines instead of a live table.
    #[arg(long)]
    pub plain: bool,
    /// What goes wrong on purpose.
    #[command(flatten)]
    pub bad_day: BadDay,
}

/// What the sink does to its senders.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fault injection (each off by default)")]
pub struct BadDay {
    /// Delay every request by this time: 50ms, 10ms..50ms (all equally likely), or 'exponential 50ms' (the mean).
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Delay>,
    /// Refuse requests with this HTTP status [503 if only another --refuse option is given]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(400..=599))]
    pub refuse: Option<u16>,
    /// Refuse requests with this gRPC status [14, UNAVAILABLE, if only another --refuse option is given]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub refuse_grpc: Option<u8>,
    /// Refuse exactly this share of the requests: 10%.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub refuse_share: Option<Ratio>,
    /// Reset connections when a request comes in.
    #[arg(long)]
    pub reset: bool,
    /// Accept requests and never answer.
    #[arg(long)]
    pub black_hole: bool,
    /// Acknowledge exactly this share of the batches, then drop them: 10%.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub drop: Option<Ratio>,
    /// Close connections after this many requests.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub close_after: Option<u64>,
    /// Alternate between healthy and faulty, healthy first: 5s:2s.
    #[arg(long, value_name = "GOOD:BAD", value_parser = flapping)]
    pub flapping: Option<Flapping>,
}

impl BadDay {
    /// As in a study; `None` if nothing is to go wrong.
    #[must_use]
    pub fn faults(&self) -> Option<Faults> {
        let refuses = self.refuse.is_some() || self.refuse_grpc.is_some() || self.refuse_share.is_some();
        let usual = Refuse::default();
        let faults = Faults {
            delay: self.delay,
            refuse: refuses.then(|| Refuse {
                http: self.refuse.unwrap_or(usual.http),
                grpc: self.refuse_grpc.unwrap_or(usual.grpc),
                share: self.refuse_share.unwrap_or(usual.share),
            }),
            reset: self.reset,
            black_hole: self.black_hole,
            drop: self.drop.unwrap_or(Ratio(0.0)),
            close_after: self.close_after,
            flapping: self.flapping.clone(),
        };
        (Faults { flapping: None, ..faults.clone() } != Faults::default()).then_some(faults)
    }
}

fn share(text: &str) -> Result<Ratio, String> {
    let share: Ratio = text.parse().map_err(|error| format!("{error}"))?;
    if (0.0..=1.0).contains(&share.0) { Ok(share) } else { Err("give a share from 0% to 100%".to_owned()) }
}

fn flapping(text: &str) -> Result<Flapping, String> {
    let times = text.split_once(':').and_then(|(good, bad)| Some((good.parse::<Time>().ok()?, bad.parse().ok()?)));
    match times {
        Some((good, bad)) if !good.0.is_zero() => Ok(Flapping { good, bad }),
        _ => Err("give the good and the bad time, such as 5s:2s".to_owned()),
    }
}

/// Which attributes of a span are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Attributes {
    /// None.
    None,
    /// A handful that name the operation.
    Few,
    /// All of them.
    All,
}

/// When stored spans are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sync {
    /// Before they are acknowledged.
    Always,
    /// About every second.
    Interval,
    /// At the end of each file.
    End,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};

    fn faults(words: &[&str]) -> Option<String> {
        let cli = Cli::try_parse_from([&["unladen", "sink", "--out", "x"], words].concat()).expect("options");
        let Command::Sink(sink) = cli.command else { panic!("the sink was asked for") };
        sink.bad_day.faults().map(|faults| faults.of_sink().to_string())
    }

    #[test]
    fn a_bad_day_is_typed_as_it_is_written_in_a_study() {
        assert_eq!(faults(&[]), None);
        assert_eq!(faults(&["--flapping", "1s:2s"]), None, "without a fault there is nothing to turn on and off");
        assert_eq!(faults(&["--drop", "10%"]).as_deref(), Some("drops 10 % of the batches but acknowledges them"));
        let refusal = "refuses 5 % of the requests with HTTP 503 or gRPC status 14";
        assert_eq!(faults(&["--refuse-share", "5%"]).as_deref(), Some(refusal));
        let all = faults(&["--delay", "10ms..20ms", "--refuse", "429", "--refuse-grpc", "8", "--flapping", "1s:500ms"]);
        let words = "answers 10 to 20 ms late, refuses all requests with HTTP 429 or gRPC status 8; alternating 1000 ms healthy, 500 ms faulty";
        assert_eq!(all.as_deref(), Some(words));
        for wrong in [["--drop", "110%"], ["--flapping", "5s"], ["--delay", "20"], ["--refuse", "200"]] {
            assert!(
                Cli::try_parse_from([&["unladen", "sink", "--out", "x"], &wrong[..]].concat()).is_err(),
                "{wrong:?}"
            );
        }
    }
}
