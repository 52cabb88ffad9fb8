//! What may be typed after `unladen load`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use unladen_journal::units::{Ratio, Time};
use unladen_load::plan::Shard;
use unladen_load::threshold::Threshold;

/// `unladen load`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(
    after_help = "Examples:\n  unladen load http://127.0.0.1:8080/ --rate 1000 --duration 30s --fail-if 'p99>50ms'\n  unladen load http://127.0.0.1:8080/ -c 64\n  unladen load http://127.0.0.1:8080/ --stages 10s:100,30s:500\n  unladen load http://127.0.0.1:8080/ --users 50 --think 0s --rate 1000 --script tickets.yaml\n  unladen load http://127.0.0.1:8080/ --capacity 'p99<20ms' -c 64 --duration 2s\n  unladen load http://127.0.0.1:8080/ --against http://127.0.0.1:8081/ --rate 1000\n\nWithout --rate, --stages, --users, --burst or --replay the load is a closed loop over the connections."
)]
pub struct Load {
    /// Merging the parts of a load that several processes shared.
    #[command(subcommand)]
    pub merge: Option<Merge>,
    /// Where requests go: http, https, or unix:/socket.
    #[arg(required_unless_present_any = ["targets", "plan"])]
    pub url: Option<String>,
    /// Second target for the same load. The load alternates between both in short blocks, so that machine noise affects
    /// both equally. Prints both results and the difference.
    #[arg(long, value_name = "URL", conflicts_with_all = ["capacity", "shard", "requests", "burst", "fail_if", "plan"])]
    pub against: Option<String>,
    /// Length of a block, with --against.
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "against")]
    pub block: Time,
    /// Connections.
    #[arg(long, short, value_name = "N", default_value_t = 16)]
    pub connections: u32,
    /// Cores to run on, one thread pinned to each.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<u32>,
    /// When requests are due.
    #[command(flatten)]
    pub pacing: Pacing,
    /// The highest rate at which conditions hold, instead of one load.
    #[command(flatten)]
    pub capacity: Capacity,
    /// Duration of the load; with --capacity, of each trial.
    #[arg(long, short, value_name = "TIME", default_value = "10s")]
    pub duration: Time,
    /// Warm-up, not measured.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub warmup: Time,
    /// What is asked.
    #[command(flatten)]
    pub request: Request,
    /// What comes out.
    #[command(flatten)]
    pub output: Output,
    /// Plan as JSON, for features without an option (sequences, values, captures, tests). Other options, except the outputs, are
    /// ignored.
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub plan: Option<PathBuf>,
    /// Part of a load shared by several processes: 2/4. In an indexed Kubernetes Job, give only the total: /4.
    #[arg(long, value_name = "PART")]
    pub shard: Option<String>,
    /// Start time in UTC, so that all parts start together: 2026-11-20T10:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<jiff::Timestamp>,
}

/// `unladen load merge`
#[derive(Debug, Subcommand)]
pub enum Merge {
    /// Merge the parts of a load exactly, counts and histograms. A missing part is an error.
    Merge {
        /// Folders given to --hdr by the parts.
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
        /// Write the result as JSON to a file, or to standard output with '-'.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

/// When requests are due.
#[derive(Debug, Args)]
pub struct Pacing {
    /// Requests per second, open loop: each is sent when due, however slow the service is. With --users: the maximum of
    /// iterations per second of all users, like JMeter's throughput timer.
    #[arg(long, short, value_name = "R", conflicts_with_all = ["stages", "burst", "replay"])]
    pub rate: Option<f64>,
    /// Open loop with linear ramps: 10s:100,30s:500 reaches 100/s after 10 s, then 500/s after another 30 s.
    #[arg(long, value_name = "LIST", group = "paced")]
    pub stages: Option<String>,
    /// Closed loop of this many users, each pausing --think after every request.
    #[arg(long, value_name = "N", group = "paced")]
    pub users: Option<u32>,
    /// Closed loop of users with linear ramps of their number: 30s:320,4m:320.
    #[arg(long, value_name = "LIST", group = "paced")]
    pub user_stages: Option<String>,
    /// Send this many requests as fast as possible, one at a time per connection.
    #[arg(long, value_name = "N", group = "paced")]
    pub burst: Option<u64>,
    /// Open loop with recorded gaps: one number of microseconds per line.
    #[arg(long, value_name = "FILE", group = "paced")]
    pub replay: Option<PathBuf>,
    /// Random (Poisson) instead of even arrivals; with --rate or --stages.
    #[arg(long)]
    pub poisson: bool,
    /// Timing of sends: 'slot' batches requests due within one slot, 'exact' sends each on time, 'spin' does so without
    /// sleeping.
    /// Default: 'exact' up to 5,000 a second, else 'slot'.
    #[arg(long, value_enum)]
    pub pace: Option<Pace>,
    /// Length of a slot: 250us. Default: by rate.
    #[arg(long, value_name = "TIME", conflicts_with = "pace")]
    pub slot: Option<Time>,
    /// Pause of a user after every request.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub think: Time,
    /// Maximum number of requests.
    #[arg(long, value_name = "N")]
    pub requests: Option<u64>,
    /// Random seed.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
}

/// What is asked.
#[derive(Debug, Args)]
pub struct Request {
    /// HTTP method.
    #[arg(long, short = 'X', value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Request header, 'Name: value'; may be given several times.
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Request body.
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Vegeta's target file: 'GET url' lines, headers below, an empty line between targets.
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub targets: Option<PathBuf>,
    /// Several requests as a mix or a sequence, with values, captures and checks: the keys of a study's load.script, as YAML.
    /// Paths in it are relative to its folder.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "body", "grpc"])]
    pub script: Option<PathBuf>,
    /// Request timeout.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub timeout: Time,
    /// Connection timeout, including TLS. Default: the request timeout.
    #[arg(long, value_name = "TIME")]
    pub connect_timeout: Option<Time>,
    /// Status code that counts as success. Default: any below 400.
    #[arg(long, value_name = "CODE")]
    pub status: Option<u16>,
    /// Send a trace header with every request, with the sampled flag set on this share of them.
    #[arg(long, value_name = "SHARE")]
    pub trace: Option<Ratio>,
    /// Trace header to send.
    #[arg(long, value_enum, default_value_t)]
    pub trace_header: TraceHeader,
    /// Use HTTP/2: by ALPN over TLS, by prior knowledge otherwise.
    #[arg(long)]
    pub http2: bool,
    /// HTTP/2: concurrent requests per connection.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub streams: u32,
    /// TLS: trusted CA certificates, PEM file. Default: the system's.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// TLS: do not verify the server's certificate.
    #[arg(long)]
    pub insecure: bool,
    /// TLS: client certificate, PEM file.
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// TLS: key of the client certificate, PEM file. Default: the certificate's file.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Follow up to this many redirects in a row, on the same connection. Default: a redirect is an answer.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub redirects: u32,
    /// Call a unary gRPC method, 'package.Service/Method', described by --proto or the server's reflection.
    #[arg(long, value_name = "METHOD")]
    pub grpc: Option<String>,
    /// gRPC: the message as JSON.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub message: String,
    /// gRPC: .proto file; may be given several times.
    #[arg(long = "proto", value_name = "FILE")]
    pub protos: Vec<PathBuf>,
}

/// Exactly when requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// Batch with others due within the same slot.
    Slot,
    /// Each on time.
    Exact,
    /// Each on time, without sleeping: occupies a whole core.
    Spin,
}

/// The highest rate at which conditions hold.
#[derive(Debug, Args)]
pub struct Capacity {
    /// Search the highest rate at which these conditions hold, in trials of --duration each: 'p99<20ms',
    /// 'p99<20ms,error-rate<0.1%'. Without an error-rate, 0.1 % is the limit. --rate is the first trial.
    #[arg(
        id = "capacity",
        long = "capacity",
        value_name = "CONDITIONS",
        conflicts_with_all = ["stages", "users", "user_stages", "burst", "replay", "requests", "shard", "hdr", "poisson"]
    )]
    pub conditions: Option<Conditions>,
    /// Highest rate to try.
    #[arg(long, value_name = "R", default_value_t = 1_000_000.0, requires = "capacity")]
    pub most: f64,
    /// Stop when the highest passing and the lowest failing rate are this close.
    #[arg(long, value_name = "SHARE", default_value = "2%", requires = "capacity")]
    pub precision: Ratio,
}

/// Conditions that hold, `p99<20ms,errors<1`; kept as the thresholds that break them.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions(pub Vec<Threshold>);

impl std::str::FromStr for Conditions {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let one = |part: &str| -> anyhow::Result<Threshold> {
            let (name, sign, limit) = [("<=", ">"), ("<", ">="), (">=", "<"), (">", "<=")]
                .into_iter()
                .find_map(|(holds, breaks)| part.split_once(holds).map(|(name, limit)| (name, breaks, limit)))
                .ok_or_else(|| anyhow::anyhow!("`{part}` is no condition; write one such as p99<20ms"))?;
            Ok(format!("{}{sign}{}", name.trim(), limit.trim()).parse()?)
        };
        let mut thresholds = text.split(',').map(one).collect::<anyhow::Result<Vec<_>>>()?;
        if !text.contains("error") {
            thresholds.push("error-rate>0.1%".parse()?);
        }
        Ok(Self(thresholds))
    }
}

/// Kinds of trace headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TraceHeader {
    /// W3C traceparent.
    #[default]
    W3c,
    /// Zipkin's b3.
    B3,
    /// SkyWalking's sw8.
    Sw8,
    /// Sentry's sentry-trace.
    Sentry,
    /// X-Amzn-Trace-Id of AWS X-Ray.
    Xray,
    /// Pinpoint-TraceID and what belongs to it.
    Pinpoint,
}

/// What comes out.
#[derive(Debug, Args)]
pub struct Output {
    /// Write the result as JSON to a file, or to standard output with '-'.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Folder for the histograms, latency.hdr.
    #[arg(long, value_name = "DIR")]
    pub hdr: Option<PathBuf>,
    /// Exit with code 1 if this is true: p99>50ms, error-rate>1%, rate<950; may be given several times.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Threshold>,
}

/// A part of a load as typed: `2/4`, or `/4` with the number from `JOB_COMPLETION_INDEX`.
///
/// # Errors
/// When it names no part.
pub fn shard(text: &str) -> anyhow::Result<Shard> {
    let Some(of) = text.strip_prefix('/') else { return Ok(text.parse()?) };
    let index = std::env::var("JOB_COMPLETION_INDEX").map_err(|_| {
        anyhow::anyhow!(
            "`--shard {text}` takes its number from JOB_COMPLETION_INDEX, which is not set; write --shard 1{text}"
        )
    })?;
    Ok(Shard::of_job(&index, of.parse()?)?)
}
