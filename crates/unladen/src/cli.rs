//! The command line: what may be typed. What it means is decided in [`crate::commands`].

pub mod load;
pub mod sink;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use unladen_journal::units::Time;
use unladen_report::Format;
use unladen_study::compare::NamedCommand;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// What does instrumentation cost a service, and do its spans arrive?
///
/// unladen runs the same service bare and instrumented under the same load, in interleaved rounds on fresh processes, and
/// prints the cost with an interval on every difference, or says that it cannot tell.
#[derive(Debug, Parser)]
#[command(version, styles = STYLES, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done (gate: pass), 1 over budget (gate), 2 could not run, 3 undecided (gate), 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Weigh the embedded service bare and under OpenTelemetry: nothing to install, about 2 minutes.
    Demo(Demo),
    /// Run a study.
    Run(Run),
    /// Weigh your own service by its command lines, without a study file.
    Compare(Compare),
    /// Judge and print a run folder again, from its journal alone.
    Report(Report),
    /// Judge a run folder against its budgets: exit code 0 pass, 1 fail, 3 undecided, 2 could not run.
    Gate(Gate),
    /// Show the studies and runs below a folder in a browser: lists, trends, comparisons, runs under way.
    Serve(Serve),
    /// Delete spans and logs of old runs; verdicts and reports stay.
    Prune(Prune),
    /// Judge the results of other tools (k6, wrk, vegeta, JMeter, Hyperfoil, overhead tests, CSV) by the same method.
    Import(Import),
    /// The load generator alone.
    Load(Box<load::Load>),
    /// The span sink alone: counts and stores what instrumentation sends.
    Sink(Box<sink::Sink>),
    /// Can this machine measure? What stands in the way, with a remedy each.
    Doctor {
        /// As JSON: a list of checks, each with `what`, `found` and `remedy` (null if all is well).
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of study.yaml.
    Schema,
    /// Print completions for a shell.
    Completions {
        /// Shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Writes manual pages: for packages.
    #[command(name = "__man", hide = true)]
    Man {
        /// Folder to write them into.
        dir: PathBuf,
    },
    /// The embedded subject of the demo.
    #[command(name = "__demo", hide = true, subcommand)]
    DemoSubject(crate::demo::Options),
    /// The load generator's process: a plan on standard input, events on standard output.
    #[command(name = "__load", hide = true)]
    LoadProcess,
    /// The process of a load that turns between targets: a configuration on standard input, events on standard output.
    #[command(name = "__turns", hide = true)]
    TurnsProcess,
    /// The sink's process: a configuration on standard input, events on standard output.
    #[command(name = "__sink", hide = true)]
    SinkProcess,
    /// The relay's process: a configuration on standard input, `ready` on standard output.
    #[command(name = "__relay", hide = true)]
    RelayProcess,
    /// The watcher that cleans up after an unladen that was killed.
    #[command(name = "__guard", hide = true)]
    GuardProcess,
}

/// Options of every command that measures.
#[derive(Debug, Args, Default)]
pub struct Measure {
    /// Run folder to write [default: runs/STUDY-UTCTIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Rounds; every variant runs once in each. 6 is the least that gives an interval. With --until or --at-most: the most that there
    /// may be [then: 200]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    /// Go on until the interval of the difference is so narrow for every variant: cpu_per_request=1% for ±1 %, rss=100KiB; may be given
    /// several times.
    #[arg(long, value_name = "METRIC=WIDTH")]
    pub until: Vec<String>,
    /// Begin no round that would end later than so long after the start: 90s, 10m. Without --until as many rounds as fit.
    #[arg(long, value_name = "TIME")]
    pub at_most: Option<Time>,
    /// How the variants of a round share the time: all alive and the load turns between them in short blocks, or one after the other
    /// [default: alternating wherever it is sound]
    #[arg(long, value_name = "DESIGN", value_parser = ["alternating", "separate"])]
    pub design: Option<String>,
    /// Length of a block of an alternating round [default: what 12 requests take, 25ms to 100ms]
    #[arg(long, value_name = "TIME")]
    pub block: Option<Time>,
    /// After the blocks of an alternating round each variant has the load for itself for so long [default: as long as the window, at
    /// most 2s]
    #[arg(long, value_name = "TIME")]
    pub alone: Option<Time>,
    /// Load before each window, not measured: 2s, 500ms, 1m.
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<Time>,
    /// What is measured of each run: 5s, 1m.
    #[arg(long, value_name = "TIME")]
    pub window: Option<Time>,
    /// Seed of the order, the trace ids and the sampling.
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Do not run the study yet: run the baseline against itself N times (4 if not said), and tell which effect the study would
    /// find in which time.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "4")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=100))]
    pub plan: Option<u32>,
    /// Plain lines instead of moving bars.
    #[arg(long)]
    pub plain: bool,
    /// Sample where the subject spends its CPU, in extra runs after those that are measured, one per variant: async-profiler for
    /// JVMs, pprof for services that have the key, perf for anything else. The report shows differential flame graphs.
    #[arg(long)]
    pub profile: bool,
    /// async-profiler's library (libasyncProfiler.so). Without it Maven, if there is one, gets it once.
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub async_profiler: Option<PathBuf>,
    /// Tell of the study under way in Prometheus' text format at http://ADDRESS/metrics; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Only the result, no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `unladen demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// How to measure.
    #[command(flatten)]
    pub measure: Measure,
    /// Print the study instead of running it, as a start for your own.
    #[arg(long)]
    pub print_study: bool,
    /// Change a value of the study: --set load.rate=500. --set profile=capacity searches the capacity, too.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// `unladen run`
#[derive(Debug, Args)]
pub struct Run {
    /// Study file, or a folder with a study.yaml. May be left out with --resume.
    #[arg(required_unless_present = "resume")]
    pub study: Option<PathBuf>,
    /// Change a value of the study: --set window=10s, --set variants.otel.sampled=10%, or one of its variables.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Only these variants, besides the baseline and the placebo.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Go on with an interrupted study in this run folder.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// How to measure.
    #[command(flatten)]
    pub measure: Measure,
}

/// `unladen compare`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  unladen compare --url http://127.0.0.1:8080/vets --rate 500 \\\n    --baseline 'java -jar app.jar' --variant 'otel=java -javaagent:otel.jar -jar app.jar'\n\n${sink.otlp_grpc} and ${sink.otlp_http} in a command stand for the addresses of the span sink, ${port.NAME} for a free port."
)]
pub struct Compare {
    /// Where requests go.
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// Command line of the bare service. No shell runs it; NAME=VALUE words in front go to its environment.
    #[arg(long, value_name = "COMMAND")]
    pub baseline: String,
    /// A name and the command line of the service with something added; may be given several times.
    #[arg(long = "variant", value_name = "NAME=COMMAND", required = true)]
    pub variants: Vec<NamedCommand>,
    /// Requests per second, open loop. Without it a closed loop over the connections.
    #[arg(long, value_name = "R")]
    pub rate: Option<f64>,
    /// Connections [default: 16]
    #[arg(long, short, value_name = "N")]
    pub connections: Option<u32>,
    /// What the service must reach besides, HOST:PORT, where each variant has a network of its own because they use the same port:
    /// 127.0.0.1:5432; may be given several times. Addresses in the command lines are found by themselves.
    #[arg(long, value_name = "HOST:PORT")]
    pub reach: Vec<String>,
    /// Limit on the cost, METRIC=LIMIT: cpu_per_request=10%; may be given several times.
    #[arg(long = "budget", value_name = "METRIC=LIMIT")]
    pub budgets: Vec<String>,
    /// How to measure.
    #[command(flatten)]
    pub measure: Measure,
    /// Print the study instead of running it.
    #[arg(long)]
    pub print_study: bool,
}

/// `unladen report`
#[derive(Debug, Args)]
pub struct Report {
    /// Run folder.
    pub dir: PathBuf,
    /// What to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also send the findings as OTLP metrics over HTTP: http://127.0.0.1:4318/v1/metrics. Booked under the time at which the study
    /// started.
    #[arg(long, value_name = "URL")]
    pub push: Option<String>,
}

/// `unladen gate`
#[derive(Debug, Args)]
pub struct Gate {
    /// Run folder.
    pub dir: PathBuf,
    /// Limit on the cost besides those of the study, METRIC=LIMIT: cpu_per_request=10%, or METRIC@SERVICE=LIMIT; may be
    /// given several times.
    #[arg(long = "budget", value_name = "METRIC=LIMIT")]
    pub budgets: Vec<String>,
    /// What to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also write the budgets as JUnit XML, a test case each, for CI systems that show test results.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// `unladen serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Folder below which run folders are looked for.
    #[arg(default_value = "runs")]
    pub dir: PathBuf,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7077")]
    pub listen: SocketAddr,
    /// Another name to answer to, such as that of a proxy in front; may be given several times. Browsers that ask under a name that
    /// is not known are refused, because any page on the web can have its own name point here.
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
}

/// `unladen prune`
#[derive(Debug, Args)]
pub struct Prune {
    /// Folder to search for run folders.
    #[arg(default_value = "runs")]
    pub dir: PathBuf,
    /// Delete whole run folders, not just spans and logs.
    #[arg(long)]
    pub all: bool,
    /// Only studies whose last run ended this long ago: 168h.
    #[arg(long, value_name = "TIME")]
    pub older_than: Option<Time>,
    /// Delete. Without it, print what would be deleted.
    #[arg(long)]
    pub yes: bool,
}

/// `unladen import`
#[derive(Debug, Args)]
#[command(
    after_help = "One file is one run; files (or rows) are paired in the order given. Where one file holds several variants, FILE#NAME picks one.\n\nExamples:\n  unladen import --baseline 'bare-*.json' --variant 'otel=otel-*.json' --out judged\n  unladen import --baseline results.csv#none --variant agent=results.csv#splunk-otel --out judged"
)]
pub struct Import {
    /// Files of the bare side, in the order of the rounds. Several: give it several times, or a pattern in quotes.
    #[arg(long, value_name = "FILES", required = true)]
    pub baseline: Vec<String>,
    /// A name and its files; may be given several times, also for one name.
    #[arg(long = "variant", value_name = "NAME=FILES", required = true)]
    pub variants: Vec<String>,
    /// Run folder to write.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Name of the study.
    #[arg(long, value_name = "NAME", default_value = "imported")]
    pub name: String,
    /// Limit on the cost, METRIC=LIMIT: latency_p95=10%; may be given several times.
    #[arg(long = "budget", value_name = "METRIC=LIMIT")]
    pub budgets: Vec<String>,
}
