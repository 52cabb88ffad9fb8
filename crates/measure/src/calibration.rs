//! The calibration: before the first round, a load on every variant that makes spans, so slow that nothing is lost. It teaches
//! how many spans a request makes where the study does not say so, and holds what the study says against it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unladen_journal::notices::{DeclaredWrong, Notice};
use unladen_journal::record::{Calibration, Counted, VariantKind};
use unladen_journal::role::Role;
use unladen_ledger::summary::Summary;
use unladen_load::plan::{Pacing, Plan as LoadPlan};
use unladen_study::plan::{Plan, PlannedVariant, Process};

use super::error::RunError;
use super::instrument::SinkPart;
use super::programs;
use super::queries;
use super::service::RunningService;
use super::setup::Setup;
use super::stack::names_the_sink;
use super::stop::{self, LAST_QUIET, stop_in_two_steps};
use super::watch::{Step, Watcher};

/// Runs of a study are numbered from 1; trace ids of calibrations come from numbers that no run reaches.
const FIRST_NUMBER: u32 = 1 << 24;
/// A mean of spans per request may be this far from what is declared.
const TOLERANCE: f64 = 0.05;
/// Share of the traces that must have the declared number, if that is a whole one.
const AGREEMENT: f64 = 0.5;
/// Share of the traces from which on their most frequent number is taken for all of them.
const UNANIMOUS: f64 = 0.99;
/// Share of the requests of which spans must come; if fewer do, the variant has a sampler of its own.
const UNSAMPLED: f64 = 0.5;

/// The variants that are calibrated: those that may make spans. One that declares nothing does only if it can send them somewhere.
fn wanted(plan: &Plan) -> impl Iterator<Item = (usize, &PlannedVariant)> {
    let makes_spans = |variant: &PlannedVariant| {
        variant.kind == VariantKind::Variant
            && variant.sampled.0 > 0.0
            && variant.spans_per_request.map_or_else(|| sends_spans(plan, variant), |spans| spans > 0.0)
    };
    // A driver is a load of its own, which cannot be slowed down.
    let is_on = plan.study.calibration.requests > 0 && plan.study.load.driver.is_none();
    plan.variants.iter().enumerate().filter(move |(_, variant)| is_on && makes_spans(variant))
}

/// Whether a process of the variant is told where the sink is, or its spans are counted elsewhere. The sink listens on free
/// ports, so nobody can know it otherwise.
fn sends_spans(plan: &Plan, variant: &PlannedVariant) -> bool {
    let is_counted = |process: &Process| plan.study.services.get(&process.service).is_some_and(|it| it.count.is_some());
    let by_process = variant.processes.iter().any(|process| process.knows_the_sink() || is_counted(process));
    by_process || names_the_sink(plan, variant)
}

/// Calibrates what `known` does not hold yet, and hands every new calibration to `keep`. Returns the plan with the spans per
/// request that were learned.
///
/// # Errors
/// When a calibration cannot be run, or the study declares another number than it finds.
pub(super) fn calibrate(
    setup: &Setup<'_>,
    known: Vec<Calibration>,
    interrupted: &AtomicBool,
    watcher: &mut dyn Watcher,
    mut keep: impl FnMut(&Calibration) -> Result<(), RunError>,
) -> Result<Plan, RunError> {
    let mut known: BTreeMap<String, Calibration> = known.into_iter().map(|it| (it.variant.clone(), it)).collect();
    let mut plan = setup.plan.clone();
    for (index, variant) in wanted(setup.plan) {
        let calibration = match known.remove(&variant.name) {
            Some(calibration) => calibration,
            None => {
                watcher.see(Step::Calibrating { variant });
                let mut calibration = one(setup, index, variant, interrupted)?;
                calibration.notice = verdict(variant, &calibration);
                keep(&calibration)?;
                watcher.see(Step::Calibrated { variant, calibration: &calibration });
                calibration
            }
        };
        // Judged anew: the study may have been corrected before it goes on.
        if let Some(notice @ Notice::SpansDeclaredWrong { .. }) = verdict(variant, &calibration) {
            return Err(RunError::Declared { notice, folder: setup.folder.path().to_owned() });
        }
        let Some(variant) = plan.variants.get_mut(index) else { continue };
        if variant.spans_per_request.is_none() && calibration.mean > 0.0 {
            variant.spans_per_request = Some(calibration.spans_per_request);
            variant.calibrated = true;
        }
    }
    Ok(plan)
}

/// Runs the calibration of one variant.
fn one(
    setup: &Setup<'_>,
    index: usize,
    variant: &PlannedVariant,
    interrupted: &AtomicBool,
) -> Result<Calibration, RunError> {
    let dir = format!("runs/calibration-{}", variant.name);
    let folder = setup.folder.run(&dir)?;
    let number = FIRST_NUMBER + u32::try_from(index).unwrap_or(0);
    let (site, ids) = (setup.site(0), setup.trace_ids(number));
    let started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    // On a good day, and only counted.
    let config = unladen_sink::config::Config { faults: None, store: false, ..site.sink_config(variant, &folder, ids) };
    let logs = folder.join("logs");
    let mut sink = SinkPart::start(&setup.launcher, &config, &setup.partition.instrument, &logs, site.network())?;
    let _relay = site.relay(variant, &folder, &logs)?;
    // Goes after them.
    let mut stack = None;
    let mut services: Vec<RunningService> = Vec::new();
    let mut load = || -> Result<_, RunError> {
        let started = (&mut services, &mut stack);
        let hosts = site.start_services(variant, (folder.as_path(), number), &mut sink, started, interrupted)?;
        programs::set_up(site, variant.programs(Role::Setup), (folder.as_path(), number), || {
            if interrupted.load(Ordering::Relaxed) { Err(RunError::Interrupted) } else { Ok(()) }
        })?;
        let backends = queries::backends(site, variant, &hosts)?;
        let calibration = &setup.plan.study.calibration;
        let plan = LoadPlan {
            pacing: Pacing::Constant { rate: calibration.rate },
            start_at_ns: None,
            warmup_s: 0.0,
            window_s: f64::from(calibration.requests) / calibration.rate,
            cores: Vec::new(),
            out: None,
            limit: None,
            ..site.load_plan(variant, &folder, ids, &hosts)?
        };
        let plan =
            LoadPlan { trace: plan.trace.map(|trace| unladen_load::plan::Trace { sampled: 1.0, ..trace }), ..plan };
        let outcome = unladen_load::run(&plan, &mut |_| {}, interrupted)?;
        if outcome.interrupted {
            return Err(RunError::Interrupted);
        }
        let drain = &setup.plan.study.drain;
        let wanted = variant.spans_per_request.map(|spans| (spans * outcome.answered_total as f64).round() as u64);
        stop::drain(&mut sink, drain, wanted, Instant::now(), interrupted)?;
        Ok((outcome.answered_total, backends))
    };
    let loaded = load();
    let (ends, counted) =
        stop_in_two_steps(setup, variant, &mut services, || -> Result<(u64, Vec<Counted>), RunError> {
            let (requests, mut backends) = loaded?;
            // What cannot be asked is told in every run.
            let counted = queries::settle(&mut backends, &setup.plan.study.drain, None, || false, &mut Vec::new());
            Ok((requests, counted))
        });
    let (requests, counted) = counted?;
    ends?;
    if let Some(stack) = stack {
        stack.remove()?;
    }
    let stopping = Instant::now();
    while sink.quiet().min(stopping.elapsed()) < LAST_QUIET {
        sink.look(Duration::from_millis(20))?;
    }
    let summary = sink.finish()?;
    Ok(learned(variant, started, dir, requests, &summary, &counted))
}

/// What the calibration teaches.
fn learned(
    variant: &PlannedVariant,
    started: String,
    dir: String,
    requests: u64,
    summary: &Summary,
    counted: &[Counted],
) -> Calibration {
    let mut calibration =
        Calibration { variant: variant.name.clone(), started, dir, requests, ..Calibration::default() };
    let by_backend = counted.iter().find(|counted| counted.role == Role::Storage).map(|counted| counted.spans);
    let by_count = by_backend.or((summary.spans_by_request.is_empty()).then_some(summary.saved));
    if let Some(spans) = by_count {
        if requests > 0 {
            // Without ids there is only the mean; what is nearly whole is whole, but for the odd span of a start-up.
            let mean = spans as f64 / requests as f64;
            let is_whole = mean >= 1.0 && (mean - mean.round()).abs() <= TOLERANCE;
            calibration.mean = mean;
            calibration.spans_per_request = if is_whole { mean.round() } else { mean };
        }
    } else if let Ok(learned) = unladen_ledger::learn(summary) {
        calibration.traces = summary.spans_by_request.iter().filter(|run| run.0 > 0).map(|run| run.1).sum();
        // A sampler leaves few traces, and some samplers tear them.
        let is_one_number = learned.agreement >= UNANIMOUS || is_sampled(&calibration);
        calibration.spans_per_request = if is_one_number { learned.spans_per_request } else { learned.mean };
        calibration.most_frequent = Some(learned.spans_per_request);
        calibration.agreement = learned.agreement;
        calibration.mean = learned.mean;
        calibration.operations = learned.operations;
    }
    calibration
}

/// Whether spans came of so few requests that the variant must have a sampler of its own.
fn is_sampled(calibration: &Calibration) -> bool {
    (calibration.traces as f64) < UNSAMPLED * calibration.requests as f64
}

/// What a reader has to know about a calibration: that it found nothing, or another number than the study declares.
fn verdict(variant: &PlannedVariant, found: &Calibration) -> Option<Notice> {
    let declared = variant.spans_per_request.filter(|_| !variant.calibrated);
    if found.mean == 0.0 {
        return Some(Notice::NothingCalibrated { variant: variant.name.clone(), requests: found.requests });
    }
    let declared = declared?;
    let fits = match found.most_frequent {
        Some(_) if is_sampled(found) => true,
        Some(most) if declared.fract() == 0.0 => most == declared && found.agreement >= AGREEMENT,
        _ => (found.mean / declared - 1.0).abs() <= TOLERANCE,
    };
    (!fits).then(|| {
        Notice::SpansDeclaredWrong(DeclaredWrong {
            variant: variant.name.clone(),
            declared,
            found: (found.spans_per_request * 1_000.0).round() / 1_000.0,
            requests: found.requests,
            operations: found.described(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(declared: Option<f64>) -> PlannedVariant {
        PlannedVariant { label: "OpenTelemetry".into(), spans_per_request: declared, ..PlannedVariant::empty("otel") }
    }

    fn of(spans_by_request: &[(u32, u64)], counted: Option<u64>) -> Calibration {
        let saved = spans_by_request.iter().map(|(spans, requests)| u64::from(*spans) * requests).sum();
        let summary = Summary { saved, spans_by_request: spans_by_request.to_vec(), ..Summary::default() };
        let counted = counted.map(|spans| Counted { spans, role: Role::Storage, ..Counted::default() });
        learned(&variant(None), String::new(), String::new(), 40, &summary, counted.as_slice())
    }

    #[test]
    fn only_what_can_make_spans_is_calibrated() {
        let study = "
study: who
services:
  app: {command: ./app}
  store: {role: storage, command: ./store, count: {http: 'http://127.0.0.1:1/', pointer: /spans}, only: [counted]}
variants:
  baseline: {}
  slow: {services: {app: {args: [--slow]}}}
  traced: {services: {app: {env: {TO: '${sink.otlp_grpc}'}}}}
  silent: {services: {app: {env: {TO: '${sink.otlp_grpc}'}}}, spans_per_request: 0}
  declared: {spans_per_request: 3}
  counted: {}
load: {url: 'http://127.0.0.1:1/'}
";
        let study = unladen_study::read::parse(study, "study.yaml", &[]).expect("a study");
        let plan = Plan::from_study(study, std::path::Path::new("/x")).expect("a plan");
        let names: Vec<&str> = wanted(&plan).map(|(_, variant)| variant.name.as_str()).collect();
        assert_eq!(names, ["traced", "declared", "counted"]);
    }

    #[test]
    fn what_all_requests_make_is_taken_and_else_the_mean() {
        let all = of(&[(4, 40)], None);
        assert_eq!((all.spans_per_request, all.agreement, all.traces), (4.0, 1.0, 40));
        let two_kinds = of(&[(4, 20), (2, 20)], None);
        assert_eq!((two_kinds.spans_per_request, two_kinds.agreement), (3.0, 0.5));
        assert_eq!(of(&[], Some(162)).spans_per_request, 4.05_f64.round(), "a span of the start-up more or less");
        assert_eq!(of(&[], Some(100)).spans_per_request, 2.5);
        assert_eq!(of(&[(4, 1), (2, 1)], None).spans_per_request, 4.0, "a sampler left two traces and tore one");
        assert_eq!(of(&[(4, 40)], Some(120)).spans_per_request, 3.0, "a counted storage decides");
    }

    #[test]
    fn what_is_declared_must_be_found() {
        let wrong = |declared: f64, found: &Calibration| verdict(&variant(Some(declared)), found).map(|it| it.code());
        let four = of(&[(4, 38), (3, 2)], None);
        assert_eq!(wrong(4.0, &four), None);
        assert_eq!(wrong(3.0, &four).as_deref(), Some("spans_declared_wrong"));
        assert_eq!(wrong(3.9, &four), None, "a mean");
        assert_eq!(wrong(4.0, &of(&[(4, 18), (3, 22)], None)).as_deref(), Some("spans_declared_wrong"));
        assert_eq!(wrong(4.0, &of(&[(2, 2)], None)), None, "a sampler left two traces and tore both");
        assert_eq!(wrong(4.0, &of(&[], Some(160))), None);
        assert_eq!(wrong(4.0, &of(&[], Some(120))).as_deref(), Some("spans_declared_wrong"));
        assert_eq!(wrong(4.0, &of(&[], None)).as_deref(), Some("nothing_calibrated"));
        assert_eq!(verdict(&variant(None), &four), None);
    }
}
