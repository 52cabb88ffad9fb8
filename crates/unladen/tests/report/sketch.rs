//! Makes run folders as `unladen run` leaves them, with effects and mishaps that are known. Same seed, same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use unladen_journal::notices::LoadNotice;
use unladen_journal::record::{CpuSource, HostWindow, Ledger, Phases, ProcessRecord, RunRecord, SCHEMA, VariantKind};
use unladen_journal::role::Role;
use unladen_judge::findings::Findings;
use unladen_judge::judge;
use unladen_ledger::summary::Summary;
use unladen_load::outcome::{BodyClass, Outcome, Quantiles, Second};

/// A study to be.
#[derive(Clone)]
pub(crate) struct Sketch {
    pub(crate) name: &'static str,
    pub(crate) question: &'static str,
    pub(crate) rounds: u32,
    /// Requests per second; `None`: closed loop.
    pub(crate) rate: Option<f64>,
    pub(crate) window_s: u32,
    pub(crate) variants: Vec<SketchedVariant>,
    pub(crate) budgets: Vec<(&'static str, &'static str)>,
    /// More lines of the study.
    pub(crate) more: &'static str,
    /// Relative scatter of a run.
    pub(crate) noise: f64,
    pub(crate) seed: u64,
    /// Changes runs after they are made.
    pub(crate) change_run: fn(&mut RunRecord),
}

/// A variant to be: what it adds to the bare service.
#[derive(Clone)]
pub(crate) struct SketchedVariant {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: VariantKind,
    /// Factor on the CPU per request.
    pub(crate) cpu: f64,
    /// MiB on top.
    pub(crate) memory: f64,
    /// Factor on the latencies.
    pub(crate) latency: f64,
    /// Spans per sampled request.
    pub(crate) spans: f64,
    /// Share of requests whose spans are wanted.
    pub(crate) sampled: f64,
    /// Share of the spans that never arrive.
    pub(crate) lost: f64,
    /// Of a matrix: its values.
    pub(crate) cell: Vec<(&'static str, &'static str)>,
}

pub(crate) fn sketched(name: &'static str, label: &'static str, kind: VariantKind) -> SketchedVariant {
    SketchedVariant {
        name,
        label,
        kind,
        cpu: 1.0,
        memory: 0.0,
        latency: 1.0,
        spans: 0.0,
        sampled: 1.0,
        lost: 0.0,
        cell: Vec::new(),
    }
}

impl Sketch {
    /// Twelve rounds of a baseline and a placebo that are alike, and no variant yet.
    pub(crate) fn new(name: &'static str, question: &'static str) -> Self {
        Self {
            name,
            question,
            rounds: 12,
            rate: Some(2000.0),
            window_s: 5,
            variants: vec![
                sketched("baseline", "", VariantKind::Baseline),
                sketched("placebo", "", VariantKind::Placebo),
            ],
            budgets: Vec::new(),
            more: "",
            noise: 0.01,
            seed: 1,
            change_run: |_| {},
        }
    }

    /// With one more variant.
    pub(crate) fn with(mut self, variant: SketchedVariant) -> Self {
        self.variants.push(variant);
        self
    }

    /// The runs, round by round.
    pub(crate) fn runs(&self) -> Vec<RunRecord> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut runs = Vec::new();
        for round in 1..=self.rounds {
            // The host drifts: what all runs of a round share.
            let drift = self.scatter(&mut random, 5.0);
            let first = random.random_range(0..self.variants.len());
            for slot in 0..self.variants.len() {
                let variant = &self.variants[(first + slot) % self.variants.len()];
                let mut run = self.run(variant, drift, &mut random);
                run.run = u32::try_from(runs.len()).expect("few runs") + 1;
                run.round = round;
                run.slot = u32::try_from(slot).expect("few arms") + 1;
                run.dir = format!("runs/{:02}-{}", run.run, run.variant);
                (self.change_run)(&mut run);
                runs.push(run);
            }
        }
        runs
    }

    /// A factor near 1.
    fn scatter(&self, random: &mut ChaCha8Rng, times: f64) -> f64 {
        // The sum of twelve uniform numbers is normal enough.
        let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        (normal * self.noise * times).exp()
    }

    fn run(&self, variant: &SketchedVariant, drift: f64, random: &mut ChaCha8Rng) -> RunRecord {
        let window = f64::from(self.window_s);
        let connections = 16.0;
        let latency = 800.0 * variant.latency * drift * self.scatter(random, 3.0);
        let rate = self.rate.unwrap_or(connections / (latency * 1.2 / 1e6));
        let requests = (rate * window).round() as u64;
        let sent = (rate * (window + 2.0)).round() as u64;
        let cpu = 340.0 * variant.cpu * drift * self.scatter(random, 1.0);
        let memory = (24.0 + variant.memory) * self.scatter(random, 0.5);
        let tail = latency * 3.0 * self.scatter(random, 6.0);
        let expected = (sent as f64 * variant.spans).round() as u64;
        let sampled_out = (expected as f64 * (1.0 - variant.sampled)).round() as u64;
        let lost = ((expected - sampled_out) as f64 * variant.lost).round() as u64;
        let saved = expected - sampled_out - lost;
        RunRecord {
            schema: SCHEMA,
            run: 0,
            round: 0,
            slot: 0,
            attempt: 1,
            variant: variant.name.to_owned(),
            kind: variant.kind,
            cell: variant.cell.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            against: "baseline".to_owned(),
            dir: String::new(),
            started: "2026-03-01T12:00:00Z".to_owned(),
            void: None,
            notices: Vec::new(),
            phases: Phases {
                start_s: 0.12,
                warmup_s: 2.0,
                window_s: window,
                drain_s: 0.5,
                stop_s: 0.05,
                ..Phases::default()
            },
            load: Some(self.outcome(rate, requests, sent, latency, tail)),
            work: None,
            reported_numbers: BTreeMap::new(),
            saturation: None,
            capacity: None,
            faults: None,
            reported_losses: Vec::new(),
            counted: Vec::new(),
            shortfalls: Vec::new(),
            sink: Some(Summary { received: saved, saved, stored_bytes: saved * 61, ..Summary::default() }),
            ledger: Some(Ledger {
                expected,
                spans_per_request: variant.spans,
                declared: true,
                sampled_out,
                saved,
                lost,
                by_stage: if lost > 0 { BTreeMap::from([("subject".to_owned(), lost)]) } else { BTreeMap::new() },
                complete: sent - lost.min(sent),
                partial: 0,
                missing: lost.min(sent),
                lost_by_second: vec![0, 0, lost, 0, 0, 0, 0],
                ..Ledger::default()
            }),
            processes: vec![ProcessRecord {
                service: "app".to_owned(),
                role: Some(Role::Subject),
                pid: 4711,
                start_up_s: Some(0.08 * drift * self.scatter(random, 2.0)),
                cpu_source: CpuSource::CgroupV2,
                cpu_ns: Some((cpu * 1e3 * requests as f64) as u64),
                rss: Some((memory * 1_048_576.0) as u64),
                rss_peak: Some((memory * 1.1 * 1_048_576.0) as u64),
                threads: Some(if variant.spans > 0.0 { 11 } else { 9 }),
                voluntary_switches: Some(requests * 2),
                involuntary_switches: Some(requests / 50),
                network_received: Some(requests * 220),
                network_sent: Some(requests * 1300 + saved * 180),
                ended: "running".to_owned(),
                ..ProcessRecord::default()
            }],
            instrument: vec![instrument("load", 14_000 * requests), instrument("sink", 900 * saved)],
            host: HostWindow {
                cores: 4,
                busy_s: 6.0,
                others_s: 0.1,
                steal_s: 0.0,
                cpu_pressure: Some(0.02),
                memory_available: 8 << 30,
            },
            imported: None,
            ..RunRecord::empty()
        }
    }

    fn outcome(&self, rate: f64, requests: u64, sent: u64, latency: f64, tail: f64) -> Outcome {
        let latency_us = Quantiles {
            count: requests,
            mean: latency * 1.2,
            p50: latency,
            p75: latency * 1.3,
            p90: latency * 1.8,
            p95: latency * 2.2,
            p99: tail,
            p999: tail * 2.0,
            max: tail * 3.0,
        };
        let second =
            |second| Second { second, sent: rate as u64, answered: rate as u64, p50_us: latency, ..Second::default() };
        Outcome {
            requests,
            errors: 0,
            error_classes: BTreeMap::new(),
            completed_in_window: requests,
            sent_total: sent,
            answered_total: sent,
            sampled_total: sent,
            target_rate: self.rate,
            rate,
            duration_s: f64::from(self.window_s),
            window_start_ns: 0,
            window_end_ns: 0,
            latency_us,
            service_time_us: latency_us,
            send_lag_us: Quantiles { count: requests, p50: 8.0, p99: 41.0, max: 200.0, ..Quantiles::default() },
            bytes_sent: requests * 180,
            bytes_received: requests * 1240,
            statuses: BTreeMap::from([(200, requests)]),
            bodies: vec![BodyClass { length: 1024, hash: "00112233aabbccdd".to_owned(), count: requests }],
            other_bodies: 0,
            reconnects: 0,
            cpu_us_per_request: 14.0,
            unanswered: 0,
            seconds: (0..self.window_s + 2).map(second).collect(),
            ..Outcome::default()
        }
    }

    /// The resolved study.
    pub(crate) fn study(&self) -> String {
        let mut yaml = format!(
            "study: {}\nquestion: {}\nrounds: {}\nwindow: {}s\nplacebo: {}\nservices:\n  app:\n    command: ./app\nvariants:\n",
            self.name,
            serde_json::json!(self.question),
            self.rounds,
            self.window_s,
            self.variants.iter().any(|variant| variant.kind == VariantKind::Placebo),
        );
        for variant in
            self.variants.iter().filter(|variant| variant.kind != VariantKind::Placebo && variant.cell.is_empty())
        {
            let label =
                if variant.label.is_empty() { serde_json::Value::Null } else { serde_json::json!(variant.label) };
            yaml.push_str(&format!("  {}:\n    label: {label}\n", serde_json::json!(variant.name)));
        }
        yaml.push_str("load:\n  url: http://127.0.0.1:${port.app}/work\n  connections: 16\n");
        if let Some(rate) = self.rate {
            yaml.push_str(&format!("  rate: {rate}\n"));
        }
        if !self.budgets.is_empty() {
            yaml.push_str("budgets:\n");
            for (metric, limit) in &self.budgets {
                yaml.push_str(&format!("  {metric}: {limit}\n"));
            }
        }
        yaml.push_str(self.more);
        yaml
    }
}

/// Writes a run folder of these runs.
pub(crate) fn write(dir: &Path, study: &str, runs: &[RunRecord]) {
    fs::write(dir.join("study.yaml"), study).expect("temporary folder");
    let host = serde_json::json!({"cpu": "Example CPU", "kernel": "6.1", "cores": 4, "cores_apart": true, "seed": 7});
    fs::write(dir.join("host.json"), host.to_string()).expect("temporary folder");
    let lines: String = runs.iter().map(|run| serde_json::to_string(run).expect("a record is JSON") + "\n").collect();
    fs::write(dir.join("journal.jsonl"), lines).expect("temporary folder");
}

fn instrument(part: &str, cpu_ns: u64) -> ProcessRecord {
    ProcessRecord {
        service: part.to_owned(),
        cpu_ns: Some(cpu_ns),
        ended: "running".to_owned(),
        ..ProcessRecord::default()
    }
}

/// OpenTelemetry at full, at a tenth and switched off: the ladder of the demo.
pub(crate) fn ladder() -> Sketch {
    let otel = sketched("otel", "OpenTelemetry", VariantKind::Variant);
    Sketch::new("demo", "What does OpenTelemetry cost this service, and do its spans arrive?")
        .with(SketchedVariant { cpu: 1.18, memory: 9.0, latency: 1.12, spans: 4.0, ..otel.clone() })
        .with(SketchedVariant {
            name: "otel-10pct",
            label: "OpenTelemetry, 10 %",
            cpu: 1.05,
            memory: 6.0,
            latency: 1.03,
            spans: 4.0,
            sampled: 0.1,
            ..otel
        })
}

/// The run does not count.
pub(crate) fn late(run: &mut RunRecord) {
    run.void = Some(LoadNotice::GeneratorLate { lag_p99_us: 5200.0, limit_us: 1000.0 }.into());
}

/// The findings of a sketch, by way of a run folder.
pub(crate) fn findings(sketch: &Sketch) -> Findings {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &sketch.runs());
    judge(dir.path()).expect("a whole run folder")
}
