//! The command line: what may be typed. What it means is decided in [`crate::commands`].

pub mod cluster;
pub mod load;
pub mod sink;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use unladen_journal::units::Time;
use unladen_processes::subject::kubernetes::Workload;
use unladen_report::Format;
use unladen_study::compare::{NamedAgent, NamedCommand};
use unladen_study::merge::NamedFolder;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// What does instrumentation cost a service, and do its spans arrive?
///
/// unladen runs the same service with and without instrumentation under the same load, in interleaved rounds on fresh processes. It
/// prints each difference with a confidence interval, or says that it cannot tell.
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
    /// Measure a built-in service with and without OpenTelemetry: no setup, 2 to 3 minutes.
    Demo(Demo),
    /// Run a study.
    Run(Run),
    /// Measure your own service, given its command lines with and without instrumentation.
    Compare(Compare),
    /// List the agents that unladen knows by name, and show what each adds to a service.
    Agents(Agents),
    /// Judge a run folder again, from its journal, and print the report.
    Report(Report),
    /// Check a run folder against its budgets: exit code 0 pass, 1 fail, 3 undecided, 2 could not run.
    Gate(Gate),
    /// Show the results in a folder in a browser: lists, trends, comparisons, live studies.
    Serve(Serve),
    /// Merge run folders of one study, measured on several machines, into one.
    Merge(Merge),
    /// Delete spans and logs of old runs; verdicts and reports stay.
    Prune(Prune),
    /// Fetch the results of a study started with `run --in-cluster`; without a name, list these studies.
    Fetch(cluster::Fetch),
    /// Delete leftovers of dead studies in a Kubernetes cluster.
    Clean(cluster::Clean),
    /// Judge the results of other tools (k6, wrk, vegeta, JMeter, Hyperfoil, overhead tests, CSV) by the same method; or make a first
    /// study of a Compose file or of workloads of a cluster.
    Import(Import),
    /// Run the load generator on its own.
    Load(Box<load::Load>),
    /// Run the span sink on its own: receive, count and store spans.
    Sink(Box<sink::Sink>),
    /// Check whether this machine, or a cluster, can measure, with a remedy for each problem.
    Doctor(Doctor),
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
    DemoSubject(unladen_demo::Options),
    /// The load generator's process: a plan on standard input, events on standard output.
    #[command(name = "__load", hide = true)]
    LoadProcess,
    /// The process of a load that turns between targets: a configuration on standard input, events on standard output.
    #[command(name = "__turns", hide = true)]
    TurnsProcess,
    /// A part of a load, in a pod on another node than the services: it dials in where the parts meet.
    #[command(name = "__load-part", hide = true)]
    LoadPart,
    /// A probe in a pod, beside the container that it watches.
    #[command(name = "__probe", hide = true)]
    Probe {
        /// Port to listen at.
        port: u16,
    },
    /// The sink's process: a configuration on standard input, events on standard output.
    #[command(name = "__sink", hide = true)]
    SinkProcess,
    /// The relay's process: a configuration on standard input, `ready` on standard output.
    #[command(name = "__relay", hide = true)]
    RelayProcess,
    /// What runs in the pod of `run --in-cluster`.
    #[command(name = "__in-cluster", hide = true, subcommand)]
    InPod(cluster::InPod),
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
    /// Number of rounds; every variant runs once per round. An interval needs at least 6. With --until or --at-most: the
    /// maximum [then: 200]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    /// Run until every variant's interval is this narrow: cpu_per_request=1% for ±1 %, rss=100KiB; may be given several times.
    #[arg(long, value_name = "METRIC=WIDTH")]
    pub until: Vec<String>,
    /// Time limit: start no round that would end after it: 90s, 10m. Without --until, run as many rounds as fit.
    #[arg(long, value_name = "TIME")]
    pub at_most: Option<Time>,
    /// How a round measures its variants: all alive, with the load alternating between them in short blocks, or one after the
    /// other [default: alternating, unless it would bias the result]
    #[arg(long, value_name = "DESIGN", value_parser = ["alternating", "separate"])]
    pub design: Option<String>,
    /// Block length in an alternating round [default: the time of 6 requests, 6ms to 100ms; 100ms in a closed loop]
    #[arg(long, value_name = "TIME")]
    pub block: Option<Time>,
    /// After the blocks of an alternating round, load each variant alone for this long [default: the window, at most 2s]
    #[arg(long, value_name = "TIME")]
    pub alone: Option<Time>,
    /// Warm-up: load before each window, not measured: 2s, 500ms, 1m.
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<Time>,
    /// Measured time of each run: 5s, 1m.
    #[arg(long, value_name = "TIME")]
    pub window: Option<Time>,
    /// Seed of the order, the trace ids and the sampling.
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Do not run the study: run the baseline against itself N times (default 4) to measure the noise, and print which effect
    /// the study would detect in what time.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "4")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=100))]
    pub plan: Option<u32>,
    /// Print plain lines instead of progress bars.
    #[arg(long)]
    pub plain: bool,
    /// Profile the subject in one extra, unmeasured run per variant: async-profiler for JVMs, pprof for services with that key,
    /// perf for anything else. The report shows differential flame graphs.
    #[arg(long)]
    pub profile: bool,
    /// Path of libasyncProfiler.so. Without it, Maven downloads it once, if Maven is installed.
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub async_profiler: Option<PathBuf>,
    /// Expose live metrics in Prometheus' text format at http://ADDRESS/metrics; port 0 picks a free port.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Print the result only, no progress.
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
    /// Change a value of the study: --set load.rate=500. --set profile=capacity also searches the capacity.
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
    /// Run only these variants, besides the baseline and the placebo.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Resume an interrupted study in this run folder.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// Where to run it.
    #[command(flatten)]
    pub cluster: cluster::InCluster,
    /// How to measure.
    #[command(flatten)]
    pub measure: Measure,
}

/// `unladen compare`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  unladen compare --url http://127.0.0.1:8080/vets --rate 500 \\\n    --baseline 'java -jar app.jar' --variant 'otel=java -javaagent:otel.jar -jar app.jar'\n  unladen compare --compose compose.yaml --service api --url http://api:8080/vets --rate 500 \\\n    --variant otel=compose.otel.yaml\n  unladen compare --url http://127.0.0.1:8080/vets --rate 500 --command 'java -jar app.jar' \\\n    --agent otel-java=otel.jar --agent elastic-java=elastic.jar\n\n${sink.otlp_grpc} and ${sink.otlp_http} in a command stand for the addresses of the span sink, ${port.NAME} for a free port. In a Compose file the sink is at\n${UNLADEN_SINK_OTLP_GRPC} and ${UNLADEN_SINK_OTLP_HTTP}."
)]
pub struct Compare {
    /// URL to send requests to.
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// Command line of the uninstrumented service. No shell is involved; leading NAME=VALUE words set its environment.
    #[arg(long, visible_alias = "command", value_name = "COMMAND", required_unless_present = "compose")]
    #[arg(conflicts_with = "compose")]
    pub baseline: Option<String>,
    /// Compose file of the uninstrumented service, instead of a command line; may be given several times, later files override earlier ones.
    #[arg(long, value_name = "FILE", requires = "service")]
    pub compose: Vec<String>,
    /// Service of the Compose files to measure.
    #[arg(long, value_name = "NAME", requires = "compose")]
    pub service: Option<String>,
    /// Name and command line of an instrumented variant; may be given several times. With --compose: name and further Compose files,
    /// separated by commas.
    #[arg(long = "variant", value_name = "NAME=COMMAND", required_unless_present = "agents")]
    pub variants: Vec<NamedCommand>,
    /// Agent to run the baseline's command under, as a variant of that name, with its path where it has one: otel-java=otel.jar,
    /// otel-python; may be given several times. NAME:all also makes it send every span. `unladen agents` lists them.
    #[arg(long = "agent", value_name = "NAME[=PATH]", conflicts_with = "compose")]
    pub agents: Vec<NamedAgent>,
    /// Requests per second, open loop. Without it: a closed loop over the connections.
    #[arg(long, value_name = "R")]
    pub rate: Option<f64>,
    /// Connections [default: 16]
    #[arg(long, short, value_name = "N")]
    pub connections: Option<u32>,
    /// Address that the service connects to, HOST:PORT, needed where each variant has its own network because all use one port:
    /// 127.0.0.1:5432; may be given several times. Addresses in the command lines are detected.
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

/// `unladen agents`
#[derive(Debug, Args)]
pub struct Agents {
    /// What to do [default: list]
    #[command(subcommand)]
    pub command: Option<AgentsCommand>,
}

/// What `unladen agents` does.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// List them: name, language, protocol of the spans, and what they need.
    List,
    /// Show what an agent adds to a service: command, environment and trace header, and how to get it.
    Show {
        /// Name of the agent.
        name: String,
    },
}

/// `unladen report`
#[derive(Debug, Args)]
pub struct Report {
    /// Run folder.
    pub dir: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also send the findings as OTLP metrics over HTTP: http://127.0.0.1:4318/v1/metrics. Their timestamp is the start of the
    /// study.
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
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also write the budgets as JUnit XML, one test case each.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// `unladen serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Folder to search for run folders.
    #[arg(default_value = "runs")]
    pub dir: PathBuf,
    /// Address to listen on; port 0 picks a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7077")]
    pub listen: SocketAddr,
    /// Additional host name to accept, such as that of a proxy; may be given several times. Requests for unknown host names are
    /// refused (DNS rebinding).
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
}

/// `unladen merge`
///
/// Rounds are blocks: each has all variants on one machine, and a round on another machine is another round. The report says what each
/// machine found, and warns where they disagree.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  unladen merge xeon=runs/shop-xeon epyc=runs/shop-epyc --out runs/shop-both\n\nThe studies must be the same, apart from `rounds` and `seed`. The folders stay as they are."
)]
pub struct Merge {
    /// Run folders, with a name for their machine where the host name will not do.
    #[arg(required = true, num_args = 2.., value_name = "[NAME=]DIR")]
    pub folders: Vec<NamedFolder>,
    /// Run folder to write.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// What `unladen import` reads besides results.
#[derive(Debug, Subcommand)]
pub enum ImportWhat {
    /// Print a study of a Compose file, to begin with: `unladen import compose compose.yaml > study.yaml`.
    Compose {
        /// Compose files, merged in this order.
        #[arg(required = true)]
        files: Vec<String>,
    },
    /// Make a folder with a study of live workloads, to begin with: `unladen import kubernetes deployment/shop -n prod`.
    ///
    /// The folder gets study.yaml and, in deploy/, the manifests of the workloads and of the ConfigMaps, Secrets, Services and
    /// ServiceAccounts that their pods need. The command reports what it left out and what needs review. It only reads the cluster, and
    /// overwrites no file.
    #[command(
        after_help = "Example:\n  unladen import kubernetes deployment/shop statefulset/db -n prod --out studies/shop\n  unladen doctor studies/shop\n  unladen run studies/shop"
    )]
    Kubernetes(ImportKubernetes),
}

/// `unladen import kubernetes`
#[derive(Debug, Args)]
pub struct ImportKubernetes {
    /// Workloads: deployment/NAME, statefulset/NAME or daemonset/NAME. The first is measured; the others are its dependencies.
    #[arg(required = true, value_name = "WORKLOAD")]
    pub workloads: Vec<Workload>,
    /// Namespace that they are in [default: that of the context, else `default`]
    #[arg(long, short, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Context of the kubeconfig, which the study then names [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Folder to make [default: the name of the first workload]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write the values of Secrets, to files that only their owner can read. Without it, a Secret has its keys and placeholders.
    #[arg(long)]
    pub with_secrets: bool,
}

/// `unladen doctor`
#[derive(Debug, Args)]
#[command(
    after_help = "Without a study and a context it checks this machine. With a study or --context, it checks the cluster: nodes, clock, autoscalers, and the rights that the study needs."
)]
pub struct Doctor {
    /// Study of a cluster: the file, or a folder with a study.yaml.
    pub study: Option<PathBuf>,
    /// Context of the kubeconfig [default: that of the study, else the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Print only a ClusterRole with the rights that are missing, and its binding, for an administrator: `… --role | kubectl apply -f -`.
    #[arg(long, conflicts_with = "json")]
    pub role: bool,
    /// Print JSON: a list of checks, each with `what`, `found` and `remedy` (null if all is well).
    #[arg(long)]
    pub json: bool,
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
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "One file is one run; files (or rows) are paired in the order given. Where one file holds several variants, FILE#NAME picks one.\n\nExamples:\n  unladen import --baseline 'bare-*.json' --variant 'otel=otel-*.json' --out judged\n  unladen import --baseline results.csv#none --variant agent=results.csv#splunk-otel --out judged"
)]
pub struct Import {
    /// What to import other than results.
    #[command(subcommand)]
    pub what: Option<ImportWhat>,
    /// Result files of the baseline, in the order of the rounds; may be given several times, or as a quoted pattern.
    #[arg(long, value_name = "FILES", required = true)]
    pub baseline: Vec<String>,
    /// Name and result files of a variant; may be given several times, also with the same name.
    #[arg(long = "variant", value_name = "NAME=FILES", required = true)]
    pub variants: Vec<String>,
    /// Run folder to write.
    #[arg(long, value_name = "DIR", required = true)]
    pub out: Option<PathBuf>,
    /// Name of the study.
    #[arg(long, value_name = "NAME", default_value = "imported")]
    pub name: String,
    /// Limit on the cost, METRIC=LIMIT: latency_p95=10%; may be given several times.
    #[arg(long = "budget", value_name = "METRIC=LIMIT")]
    pub budgets: Vec<String>,
}
