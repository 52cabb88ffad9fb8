//! What is known of a study under way, and the file in its run folder that holds it.
//!
//! [`Live`] is fed with the steps that `unladen-measure` tells of and with the time, and has no clock of its own. Nothing here is
//! part of the record: the journal is.

use std::fs;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use unladen_journal::notices::Look;
use unladen_journal::record::RunRecord;
use unladen_journal::role::Role;
use unladen_linux::process::Identity;
use unladen_measure::watch::{Phase, Step};

/// The name of the file.
pub const FILE: &str = "live.json";

/// What is known of a study under way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// Name of the study.
    pub study: String,
    /// Its variants, as far as they are known.
    pub variants: IndexMap<String, Variant>,
    /// Runs done, those of before an interruption too.
    pub runs_done: usize,
    /// Runs in the whole study; where something else than a number of rounds ends it, what is expected so far.
    pub runs_of: usize,
    /// Runs that were done before this process began.
    pub runs_before: usize,
    /// What is done before the runs: a build, a calibration.
    pub preparing: Option<String>,
    /// Round of the run under way, from 1.
    pub round: u32,
    /// Key of its variant.
    pub variant: String,
    /// Its phase.
    pub phase: Option<Phase>,
    /// Seconds of load in each run.
    pub load_s: f64,
    /// The last second of its load.
    pub second: Option<Second>,
    /// What runs now, as the probe saw it last.
    #[serde(default)]
    pub services: Vec<Service>,
    /// Seconds that are left, from how long the runs took so far; `None` before the first has ended.
    pub left_s: Option<f64>,
    /// Whether the runs are all done.
    pub is_done: bool,
    /// Of a study that something else than a number of rounds ends: how far it had come after its last whole round.
    #[serde(default)]
    pub look: Option<Look>,
    #[serde(skip)]
    records: Vec<RunRecord>,
    #[serde(skip)]
    began_s: f64,
    #[serde(skip)]
    ended: usize,
}

/// A second of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Seconds since the start of the warm-up.
    pub second: u32,
    /// Requests answered.
    pub answered: u64,
    /// Requests that failed.
    pub errors: u64,
    /// 99th percentile of the latency, µs.
    pub p99_us: f64,
}

/// A service of the run under way, or a part of the instrument; all its replicas together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Its name.
    pub service: String,
    /// `subject`, `dependency`, `collector`, `storage` or `driver`; `instrument` for the load generator and the sink.
    pub role: String,
    /// CPU that it used over the last second, cores' worth.
    pub cpu_cores: Option<f64>,
    /// Its resident memory, bytes.
    pub rss: Option<u64>,
}

/// One variant so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Name for people.
    pub label: String,
    /// Runs that count.
    pub runs: u64,
    /// Runs that do not.
    pub void: u64,
    /// Requests answered in the windows of the runs that count.
    pub requests: u64,
    /// Requests that failed in them.
    pub errors: u64,
    /// Median of the CPU per request, µs.
    pub cpu_us_per_request: Option<f64>,
    /// Difference to the baseline, as a share of it.
    pub ratio: Option<f64>,
    /// Its interval, from 6 rounds on.
    pub ratio_interval: Option<(f64, f64)>,
    /// 99th percentile of the latency in the last run that counts, µs.
    pub p99_us: Option<f64>,
    /// Resident memory of the subject in the last run that counts, bytes.
    pub rss: Option<u64>,
    /// Spans that were due in the runs that count.
    pub wanted: u64,
    /// Those that arrived.
    pub saved: u64,
    /// Those that did not.
    pub lost: u64,
}

impl Live {
    /// Before anything has happened. `labels` names the variants for people.
    #[must_use]
    pub fn new(study: &str, labels: &IndexMap<String, String>) -> Self {
        let variant = |label: &String| Variant { label: label.clone(), ..Variant::default() };
        let variants = labels.iter().map(|(name, label)| (name.clone(), variant(label))).collect();
        Self { study: study.to_owned(), variants, ..Self::default() }
    }

    /// Name of a variant for people.
    #[must_use]
    pub fn label<'a>(&'a self, variant: &'a str) -> &'a str {
        self.variants.get(variant).map_or(variant, |it| &it.label)
    }

    /// Something has happened, `now_s` seconds after the beginning.
    pub fn see(&mut self, step: Step<'_>, now_s: f64) {
        match step {
            Step::Building { service, command } => self.preparing = Some(format!("building {service}: {command}")),
            Step::Calibrating { variant } => self.preparing = Some(format!("calibrating {}", variant.label)),
            Step::Calibrated { .. } | Step::Recovered { .. } | Step::LessAtOnce { .. } => {}
            Step::Begin { runs, of, load_s, is_open_ended } => {
                (self.runs_of, self.runs_before, self.runs_done) = (of, of - runs, of - runs);
                (self.load_s, self.began_s, self.ended, self.preparing) = (load_s, now_s, 0, None);
                self.look = is_open_ended.then(Look::default);
                self.is_done = runs == 0 && !is_open_ended;
            }
            Step::Look { look, runs } => {
                self.look = Some(look.clone());
                self.runs_of = self.runs_done + runs;
                self.left_s = self.seconds_left(now_s);
            }
            Step::Stopped(stopped) => {
                self.look = Some(stopped.look.clone());
                (self.runs_of, self.left_s, self.is_done) = (self.runs_done, Some(0.0), true);
            }
            Step::Run { slot, variant } => {
                (self.round, self.variant, self.second) = (slot.round, variant.name.clone(), None);
                self.services.clear();
            }
            Step::Together { round, runs } => {
                (self.round, self.variant, self.second) = (round, format!("{runs} variants in turn"), None);
            }
            Step::Phase(phase) => self.phase = Some(phase),
            Step::Second(second) => {
                self.second = Some(Second {
                    second: second.second,
                    answered: second.answered,
                    errors: second.errors,
                    p99_us: second.p99_us,
                });
            }
            Step::Sample(sample) => self.services = services(sample),
            Step::Again { runs, .. } | Step::TurnsGivenUp { runs, .. } => {
                self.runs_of += runs;
                self.is_done = false;
            }
            Step::Done { record, again } => {
                self.runs_done += usize::from(!again);
                self.ended += 1;
                self.add(record);
                (self.phase, self.second) = (None, None);
                self.services.clear();
                self.is_done = self.runs_done >= self.runs_of && self.look.is_none();
                self.left_s = self.seconds_left(now_s);
            }
        }
    }

    /// By how long the runs of this process took so far; `None` before the first.
    fn seconds_left(&self, now_s: f64) -> Option<f64> {
        let each = (self.ended > 0).then(|| (now_s - self.began_s) / self.ended as f64)?;
        Some(self.runs_of.saturating_sub(self.runs_done) as f64 * each)
    }

    /// What one run adds.
    fn add(&mut self, record: &RunRecord) {
        let variant = self
            .variants
            .entry(record.variant.clone())
            .or_insert_with(|| Variant { label: record.variant.clone(), ..Variant::default() });
        if record.void.is_some() {
            variant.void += 1;
        } else {
            variant.runs += 1;
            if let Some(load) = &record.load {
                variant.requests += load.requests;
                variant.errors += load.errors;
            }
            variant.p99_us = unladen_judge::latency_p99_us(record);
            let rss = record.processes.iter().filter(|it| it.role == Some(Role::Subject));
            variant.rss = rss.map(|it| it.rss).sum::<Option<u64>>().filter(|it| *it > 0);
            if let Some(ledger) = &record.ledger {
                variant.wanted += ledger.wanted();
                variant.saved += ledger.saved;
                variant.lost += ledger.lost;
            }
        }
        let mut trimmed = record.clone();
        if let Some(load) = &mut trimmed.load {
            // The largest part of a record, and nobody asks for it here.
            load.seconds = Vec::new();
        }
        self.records.push(trimmed);
        for estimate in unladen_judge::so_far(&self.records) {
            if let Some(variant) = self.variants.get_mut(&estimate.variant) {
                variant.cpu_us_per_request = Some(estimate.cpu_us_per_request);
                (variant.ratio, variant.ratio_interval) = (estimate.ratio, estimate.ratio_interval);
            }
        }
    }
}

/// The processes of a sample by service: replicas are added up, and what one of them lacks is not known of the whole.
fn services(sample: &unladen_probe::Live) -> Vec<Service> {
    let mut services: IndexMap<(&str, &'static str), Vec<&unladen_probe::LiveProcess>> = IndexMap::new();
    for process in &sample.processes {
        let role = process.role.map_or("instrument", Role::name);
        services.entry((process.service.as_str(), role)).or_default().push(process);
    }
    let service = |((name, role), replicas): ((&str, &str), Vec<&unladen_probe::LiveProcess>)| Service {
        service: name.to_owned(),
        role: role.to_owned(),
        cpu_cores: replicas.iter().map(|it| it.cpu).sum(),
        rss: replicas.iter().map(|it| it.rss).sum(),
    };
    services.into_iter().map(service).collect()
}

/// The content of the file: `L` is [`Live`], or a reference to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveFile<L> {
    /// The process that runs the study.
    pub pid: u32,
    /// When that started, in ticks since boot: with the pid it names a process for good.
    pub start_ticks: u64,
    /// What is known.
    #[serde(flatten)]
    pub live: L,
}

/// Reads the file of a run folder; `None` without one, and when its process has gone.
#[must_use]
pub fn read(folder: &Path) -> Option<Live> {
    let file: LiveFile<Live> = serde_json::from_slice(&fs::read(folder.join(FILE)).ok()?).ok()?;
    Identity { pid: file.pid, start_ticks: file.start_ticks }.is_alive().then_some(file.live)
}

#[cfg(test)]
mod tests {
    use unladen_journal::notices::{LoadNotice, Notice, Stopped, StoppedBy};

    use super::*;

    fn record(round: u32, variant: &str) -> RunRecord {
        RunRecord { round, variant: variant.into(), ..RunRecord::empty() }
    }

    #[test]
    fn time_left_counts_the_runs_of_this_process_and_those_done_again() {
        let mut live = Live::new("shop", &IndexMap::new());
        live.see(Step::Begin { runs: 4, of: 10, load_s: 3.0, is_open_ended: false }, 100.0);
        assert_eq!((live.runs_done, live.left_s, live.is_done), (6, None, false));
        live.see(Step::Done { record: &record(1, "a"), again: false }, 105.0);
        assert_eq!((live.runs_done, live.left_s), (7, Some(15.0)));
        // It took time and is done again.
        live.see(Step::Done { record: &record(1, "b"), again: true }, 110.0);
        assert_eq!((live.runs_done, live.left_s), (7, Some(15.0)));
        let reason = Notice::HostUnknown { message: String::new() };
        live.see(Step::Again { round: 1, reason: &reason, runs: 2 }, 110.0);
        for at in 1..=5 {
            live.see(Step::Done { record: &record(1, "b"), again: false }, 110.0 + f64::from(at) * 5.0);
        }
        assert_eq!((live.runs_done, live.runs_of, live.left_s, live.is_done), (12, 12, Some(0.0), true));
    }

    #[test]
    fn what_is_left_of_an_open_ended_study_is_what_is_expected() {
        let mut live = Live::new("shop", &IndexMap::new());
        live.see(Step::Begin { runs: 2, of: 2, load_s: 3.0, is_open_ended: true }, 100.0);
        live.see(Step::Done { record: &record(1, "a"), again: false }, 105.0);
        live.see(Step::Done { record: &record(1, "b"), again: false }, 110.0);
        assert!(!live.is_done, "that is for the judge to say");
        let look = Look { rounds: 1, ..Look::default() };
        live.see(Step::Look { look: &look, runs: 4 }, 110.0);
        assert_eq!((live.runs_done, live.runs_of, live.left_s, &live.look), (2, 6, Some(20.0), &Some(look.clone())));
        live.see(Step::Stopped(&Stopped { by: StoppedBy::Time, at_most_s: Some(15.0), look }), 110.0);
        assert_eq!((live.runs_of, live.left_s, live.is_done), (2, Some(0.0), true));
    }

    #[test]
    fn runs_that_do_not_count_count_apart() {
        let labels = [("otel".to_owned(), "OpenTelemetry".to_owned())].into_iter().collect();
        let mut live = Live::new("shop", &labels);
        let ledger =
            unladen_journal::record::Ledger { expected: 10, sampled_out: 2, saved: 7, lost: 1, ..Default::default() };
        let good = RunRecord { ledger: Some(ledger), ..record(1, "otel") };
        let bad = RunRecord {
            void: Some(LoadNotice::GeneratorLate { lag_p99_us: 9.0, limit_us: 1.0 }.into()),
            ..good.clone()
        };
        live.see(Step::Done { record: &good, again: false }, 1.0);
        live.see(Step::Done { record: &bad, again: false }, 2.0);
        let variant = &live.variants["otel"];
        assert_eq!((variant.runs, variant.void, variant.wanted, variant.saved, variant.lost), (1, 1, 8, 7, 1));
        assert_eq!(live.label("otel"), "OpenTelemetry");
    }

    #[test]
    fn replicas_count_as_one_service_and_the_instrument_beside_them() {
        let process = |service: &str, role, cpu, rss| unladen_probe::LiveProcess {
            service: service.to_owned(),
            role,
            cpu,
            rss,
            ..unladen_probe::LiveProcess::default()
        };
        let subject = Some(Role::Subject);
        let storage = Some(Role::Storage);
        let sample = unladen_probe::Live {
            processes: vec![
                process("shop", subject, Some(0.5), Some(100)),
                process("shop", subject, Some(0.25), Some(20)),
                process("elastic", storage, None, Some(7)),
                process("load", None, Some(0.1), None),
            ],
            ..unladen_probe::Live::default()
        };
        let mut live = Live::new("shop", &IndexMap::new());
        live.see(Step::Sample(&sample), 0.0);
        let rows: Vec<_> =
            live.services.iter().map(|it| (it.service.as_str(), it.role.as_str(), it.cpu_cores, it.rss)).collect();
        assert_eq!(
            rows,
            [
                ("shop", "subject", Some(0.75), Some(120)),
                ("elastic", "storage", None, Some(7)),
                ("load", "instrument", Some(0.1), None)
            ]
        );
        live.see(Step::Done { record: &record(1, "a"), again: false }, 1.0);
        assert!(live.services.is_empty(), "they have been stopped");
    }

    #[test]
    fn what_is_known_survives_as_json() {
        let mut live = Live::new("shop", &[("a".to_owned(), "A".to_owned())].into_iter().collect());
        live.see(Step::Phase(Phase::Window), 1.0);
        let text = serde_json::to_string(&live).expect("it is JSON");
        assert_eq!(serde_json::from_str::<Live>(&text).expect("and back"), live);
    }
}
