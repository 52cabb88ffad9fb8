//! Progress on the terminal while a study runs: moving bars on a tty, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use unladen_sink::{Recovered, SinkError};

use crate::journal::record::{Calibration, RunRecord};
use crate::judge;
use crate::run::watch::{Nobody, Phase, Step, Watcher};

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Bars if standard error is a terminal, else lines.
    Auto,
    /// Lines.
    Plain,
    /// Nothing.
    Quiet,
}

/// A watcher for the terminal. `labels` names the variants for people.
#[must_use]
pub fn watcher(show: Show, labels: IndexMap<String, String>) -> Box<dyn Watcher> {
    match show {
        Show::Quiet => Box::new(Nobody),
        Show::Auto if std::io::stderr().is_terminal() => Box::new(Bars::new(labels)),
        Show::Auto | Show::Plain => Box::new(Lines { so_far: SoFar::new(labels), runs: (0, 0) }),
    }
}

/// What is known so far, for the line "CPU per request so far".
#[derive(Debug)]
struct SoFar {
    labels: IndexMap<String, String>,
    records: Vec<RunRecord>,
}

impl SoFar {
    fn new(labels: IndexMap<String, String>) -> Self {
        Self { labels, records: Vec::new() }
    }

    fn label(&self, variant: &str) -> String {
        self.labels.get(variant).cloned().unwrap_or_else(|| variant.to_owned())
    }

    /// `baseline 151 µs, OpenTelemetry 214 µs (+41.7 %)`.
    fn line(&self) -> String {
        let mut parts = Vec::new();
        for estimate in judge::so_far(&self.records) {
            let label = self.label(&estimate.variant);
            parts.push(match estimate.ratio {
                Some(ratio) => format!("{label} {:.1} µs ({:+.1} %)", estimate.cpu_us_per_request, ratio * 100.0),
                None => format!("{label} {:.1} µs", estimate.cpu_us_per_request),
            });
        }
        parts.join(", ")
    }
}

/// One line of a finished run: `OpenTelemetry  212.4 µs/request  p99 1.2 ms  8000 of 8000 spans`.
fn summary(record: &RunRecord, label: &str) -> String {
    if let Some(reason) = &record.void {
        return format!("{label}: does not count: {reason}");
    }
    let mut line = format!("{label:<24}");
    if let Some(cpu) = judge::cpu_us_per_request(record) {
        line += &format!(" {cpu:>8.1} µs CPU/request");
    }
    if let Some(load) = &record.load {
        line += &format!("  p99 {:>7.2} ms", load.latency_us.p99 / 1e3);
    }
    if let Some(ledger) = record.ledger.as_ref().filter(|ledger| ledger.expected > 0) {
        let wanted = ledger.expected - ledger.sampled_out;
        line += &format!("  {} of {wanted} spans", ledger.saved);
    }
    line
}

/// `calibration: OpenTelemetry makes 4 spans per request (consumer `GET` 3, consumer `GET /work` 1)`.
fn calibrated(label: &str, found: &Calibration) -> String {
    if found.mean == 0.0 {
        return format!("calibration: no span of {label} arrived in {} requests", found.requests);
    }
    let spans = (found.spans_per_request * 1_000.0).round() / 1_000.0;
    format!("calibration: {label} makes {spans} spans per request ({})", found.described())
}

/// `runs/03-otel was killed: 12000 spans in 1 torn file and 37 in the log are whole again`.
fn recovered(dir: &str, outcome: &Result<Recovered, SinkError>) -> String {
    match outcome {
        Ok(Recovered { files, rows, logged_rows }) => {
            let files = if *files == 1 { "1 torn file".to_owned() } else { format!("{files} torn files") };
            format!("{dir} was killed: {rows} spans in {files} and {logged_rows} in the log are whole again")
        }
        Err(error) => format!("{dir} was killed, and its spans cannot be made whole: {error}"),
    }
}

/// Progress as lines, for files and CI.
struct Lines {
    so_far: SoFar,
    runs: (usize, usize),
}

impl Watcher for Lines {
    fn see(&mut self, step: Step<'_>) {
        match step {
            Step::Building { service, command } => eprintln!("building {service}: {command}"),
            Step::Calibrating { .. } => {}
            Step::Recovered { dir, outcome } => eprintln!("{}", recovered(dir, outcome)),
            Step::Calibrated { arm, calibration } => eprintln!("{}", calibrated(&arm.label, calibration)),
            Step::Begin { runs, of, load_s } => {
                self.runs = (of - runs, of);
                eprintln!("{runs} runs of {load_s:.1} s each");
            }
            Step::Again { round, reason, runs } => {
                eprintln!("round {round} is done again: {reason}");
                self.runs.1 += runs;
            }
            Step::Done { record, again } => {
                self.runs.0 += usize::from(!again);
                let label = self.so_far.label(&record.variant);
                eprintln!(
                    "[{:>3}/{}] round {:>2}  {}",
                    self.runs.0,
                    self.runs.1,
                    record.round,
                    summary(record, &label)
                );
                self.so_far.records.push(record.clone());
            }
            Step::Run { .. } | Step::Phase(_) | Step::Second(_) => {}
        }
    }
}

/// Progress as bars.
struct Bars {
    so_far: SoFar,
    study: ProgressBar,
    run: ProgressBar,
    estimate: ProgressBar,
    load_s: f64,
    started: Instant,
    first: u64,
    title: String,
}

impl Bars {
    fn new(labels: IndexMap<String, String>) -> Self {
        let all = MultiProgress::new();
        let line = |template: &str| {
            let bar = all.add(ProgressBar::new(0));
            bar.set_style(
                ProgressStyle::with_template(template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("━╸─"),
            );
            bar
        };
        let study = line("{bar:40.cyan} {pos}/{len} runs  {msg}");
        let run = line("{bar:40.green} {msg}");
        let estimate = line("{msg}");
        Self {
            so_far: SoFar::new(labels),
            study,
            run,
            estimate,
            load_s: 1.0,
            started: Instant::now(),
            first: 0,
            title: String::new(),
        }
    }

    /// Time left, from the runs so far.
    fn left(&self) -> String {
        let done = self.study.position() - self.first;
        if done == 0 {
            return String::new();
        }
        let each = self.started.elapsed().as_secs_f64() / done as f64;
        let left = (self.study.length().unwrap_or(0) - self.study.position()) as f64 * each;
        format!("about {} left", indicatif::HumanDuration(Duration::from_secs(left.round() as u64)))
    }
}

impl Watcher for Bars {
    fn see(&mut self, step: Step<'_>) {
        match step {
            Step::Building { service, command } => self.estimate.set_message(format!("building {service}: {command}")),
            Step::Recovered { dir, outcome } => self.study.suspend(|| eprintln!("{}", recovered(dir, outcome))),
            Step::Calibrating { arm } => self.estimate.set_message(format!("calibrating {}", arm.label)),
            Step::Calibrated { arm, calibration } => {
                self.study.suspend(|| eprintln!("{}", calibrated(&arm.label, calibration)));
            }
            Step::Begin { runs, of, load_s } => {
                self.study.set_length(of as u64);
                self.first = (of - runs) as u64;
                self.study.set_position(self.first);
                self.started = Instant::now();
                self.load_s = load_s;
                self.run.set_length((load_s * 10.0) as u64);
            }
            Step::Run { slot, arm } => {
                self.title = format!("round {}: {}", slot.round, arm.label);
                self.run.set_position(0);
            }
            Step::Phase(phase) => {
                let phase = match phase {
                    Phase::Start => "starting",
                    Phase::WarmUp => "warming up",
                    Phase::Window => "measuring",
                    Phase::Drain => "waiting for spans",
                    Phase::Saturation => "saturating",
                    Phase::Capacity => "searching the capacity",
                    Phase::Stop => "stopping",
                };
                self.run.set_message(format!("{}, {phase}", self.title));
                if phase == "waiting for spans" {
                    self.run.set_position((self.load_s * 10.0) as u64);
                }
            }
            Step::Second(second) => {
                self.run.set_position(u64::from(second.second + 1) * 10);
                self.run.set_message(format!(
                    "{}  {} requests/s  p99 {:.2} ms  {} errors",
                    self.title,
                    second.answered,
                    second.p99_us / 1e3,
                    second.errors
                ));
            }
            Step::Again { round, reason, runs } => {
                self.study.inc_length(runs as u64);
                self.study.suspend(|| eprintln!("round {round} is done again: {reason}"));
            }
            Step::Done { record, again } => {
                self.study.inc(u64::from(!again));
                if let Some(reason) = &record.void {
                    let label = self.so_far.label(&record.variant);
                    self.study.suspend(|| eprintln!("round {} of {label} does not count: {reason}", record.round));
                }
                self.so_far.records.push(record.clone());
                self.study.set_message(self.left());
                self.estimate.set_message(format!("CPU per request so far: {}", self.so_far.line()));
                if self.study.position() == self.study.length().unwrap_or(0) {
                    self.run.finish_and_clear();
                    self.estimate.finish_and_clear();
                    self.study.finish_and_clear();
                }
            }
        }
    }
}
