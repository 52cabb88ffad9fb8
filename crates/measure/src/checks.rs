//! What the numbers of a run say about the run itself. Pure: facts in, notices out; a refusal voids the run.
//!
//! None of these rules looks at which variant the run belongs to, nor at its cost: a run is never dropped for its result.

use unladen_journal::notices::{LoadNotice, Notice};
use unladen_journal::record::{HostWindow, ProcessRecord, RunRecord};
use unladen_journal::units::Ratio;
use unladen_load::outcome::{Little, Outcome};
use unladen_load::trust;
use unladen_load::warning::LoadWarning;
use unladen_probe::scrape::Scraped;
use unladen_study::spec::{Load, Repeat, Study};

/// Shares of the window above which throttling, steal and other processes are worth a warning.
const THROTTLED_LIMIT: f64 = 0.01;
/// See [`THROTTLED_LIMIT`].
const STEAL_LIMIT: f64 = 0.01;
/// See [`THROTTLED_LIMIT`].
const OTHERS_LIMIT: f64 = 0.05;

/// Whether the load can be believed; the first reason why not.
#[must_use]
pub fn load(outcome: &Outcome, study: &Load) -> Option<Notice> {
    let due = outcome.requests + outcome.errors + outcome.unanswered;
    if due == 0 {
        return Some(LoadNotice::failed("no request was due in the window; make it longer"));
    }
    let failed = outcome.errors + outcome.unanswered;
    if failed as f64 > study.errors.0 * due as f64 {
        let mut classes: Vec<String> =
            outcome.error_classes.iter().map(|(class, count)| format!("{count} {class}")).collect();
        if outcome.unanswered > 0 {
            classes.push(format!("{} unanswered", outcome.unanswered));
        }
        return Some(LoadNotice::Errors { errors: failed, requests: due, classes: classes.join(", ") }.into());
    }
    let open = study.is_open();
    if let Some(target) = outcome.target_rate
        && open
        && study.requests.is_none()
        && outcome.rate < trust::MIN_RATE_SHARE * target
    {
        return Some(LoadNotice::RateMissed { wanted: target, achieved: outcome.rate }.into());
    }
    let queued = queued(outcome, study);
    if queued > trust::WAITING_VOID {
        return Some(LoadNotice::OutOfConnections { percent: queued * 100.0, connections: study.connections }.into());
    }
    // The generator's own lateness: requests that waited for a connection are late, too, but not because of it.
    let lag = outcome.lateness_us.p99;
    let limit = trust::late_limit_us(outcome.service_time_us.p50);
    if open && study.burst.is_none() && lag > limit {
        return Some(LoadNotice::GeneratorLate { lag_p99_us: lag, limit_us: limit }.into());
    }
    // An open loop whose generator is on time has what it needs, however busy it is.
    let saturated = outcome.warnings.iter().find_map(|warning| match warning {
        LoadWarning::Saturated { share } => Some(LoadNotice::GeneratorSaturated { percent: share * 100.0 }.into()),
        _ => None,
    });
    if let Some(saturated) = saturated.filter(|_| !open) {
        return Some(saturated);
    }
    little(outcome)
}

/// Whether the requests that the generator saw under way are those that its rate and times make. Samples may stand at one place
/// of an even schedule, so a request more or less says nothing.
fn little(outcome: &Outcome) -> Option<Notice> {
    let Little { in_flight, expected, holds, .. } = outcome.little;
    let off = (in_flight - expected).abs() > 1.0 + trust::LITTLE_VOID * in_flight.max(expected);
    (holds == Some(false) && off).then_some(LoadNotice::LittleLawOff { seen: in_flight, expected }.into())
}

/// Share of the window's requests that found every connection busy; a burst and a replay want that.
fn queued(outcome: &Outcome, study: &Load) -> f64 {
    let due = (outcome.requests + outcome.errors).max(1);
    if study.burst.is_some() { 0.0 } else { outcome.queued as f64 / due as f64 }
}

/// What was remarkable about the load without making the run void.
#[must_use]
pub fn remarks(outcome: &Outcome, study: &Load) -> Option<Notice> {
    let queued = queued(outcome, study);
    (queued >= trust::WAITING)
        .then_some(LoadNotice::ConnectionsShort { percent: queued * 100.0, connections: study.connections }.into())
}

/// What the phases after the window have to be read with.
#[must_use]
pub fn after(record: &RunRecord, study: &Study) -> Vec<Notice> {
    let at_limit = |busy: f64, what: &str| {
        (busy > trust::BUSY_AT_LIMIT)
            .then(|| Notice::from(LoadNotice::GeneratorAtLimit { percent: busy * 100.0, what: what.to_owned() }))
    };
    let saturated = record.saturation.and_then(|found| at_limit(found.generator_busy, "saturation"));
    let capacity = record.capacity.as_ref().and_then(|found| {
        let first = found.trials.first().map_or(0.0, |trial| trial.rate);
        match (found.holds, found.fails) {
            (None, fails) => Some(LoadNotice::NoCapacity { rate: fails.unwrap_or(first) }.into()),
            (Some(holds), None) if study.capacity.as_ref().is_some_and(|wanted| holds >= wanted.most) => {
                Some(LoadNotice::CapacityBeyond { rate: holds }.into())
            }
            (Some(holds), fails) if found.cut_short => {
                Some(LoadNotice::CapacityCutShort { holds, fails: fails.unwrap_or(f64::INFINITY) }.into())
            }
            _ => {
                let failed = found.trials.iter().filter(|trial| Some(trial.rate) == found.fails && !trial.held);
                at_limit(failed.map(|trial| trial.generator_busy).reduce(f64::max)?, "capacity")
            }
        }
    });
    saturated.into_iter().chain(capacity).collect()
}

/// Endpoints that did not answer, or not as the study says.
#[must_use]
pub fn scrapes(scraped: &[(String, u32, Scraped)]) -> Vec<Notice> {
    let mut notices = Vec::new();
    for (service, _, scraped) in scraped {
        if let Some(error) = scraped.error.clone().filter(|_| scraped.failed > 0) {
            let (service, failed, asked) = (service.clone(), scraped.failed, scraped.attempts);
            notices.push(Notice::ScrapeFailed { service, failed, asked, error });
        }
        if !scraped.missing.is_empty() {
            notices.push(Notice::ScrapeMissing { service: service.clone(), names: scraped.missing.join(", ") });
        }
    }
    notices
}

/// What disturbed the window without making it void.
#[must_use]
pub fn disturbances(processes: &[ProcessRecord], host: &HostWindow, window_s: f64) -> Vec<Notice> {
    let throttled = processes.iter().filter_map(|process| {
        let share = process.throttled_ns? as f64 / 1e9 / window_s;
        (share > THROTTLED_LIMIT)
            .then(|| Notice::Throttled { service: process.service.clone(), percent: share * 100.0 })
    });
    let beyond = |seconds: f64, limit: f64| host.share(seconds, window_s).filter(|share| *share > limit);
    let steal = beyond(host.steal_s, STEAL_LIMIT).map(|share| Notice::Steal { percent: share * 100.0 });
    let others = beyond(host.others_s, OTHERS_LIMIT).map(|share| Notice::OthersBusy { percent: share * 100.0 });
    throttled.chain(steal).chain(others).collect()
}

/// What took so much of the machine in a run's window that its round is to be done again. Looks at the machine alone.
#[must_use]
pub fn disturbed(run: &RunRecord, limits: &Repeat) -> Option<Notice> {
    let share = |seconds: f64| run.host.share(seconds, run.phases.window_s);
    let beyond = |seconds: f64, limit: Ratio| share(seconds).filter(|share| *share > limit.0);
    let steal = beyond(run.host.steal_s, limits.steal).map(|share| Notice::Steal { percent: share * 100.0 });
    steal.or_else(|| Some(Notice::OthersBusy { percent: beyond(run.host.others_s, limits.others)? * 100.0 }))
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::{Capacity, Trial};

    use super::*;

    fn good() -> Outcome {
        let mut outcome: Outcome = serde_json::from_value(serde_json::json!({
            "requests": 1000, "errors": 0, "error_classes": {}, "completed_in_window": 1000, "sent_total": 1200,
            "answered_total": 1200, "sampled_total": 1200, "target_rate": 500.0, "rate": 500.0, "duration_s": 2.0,
            "window_start_ns": 0, "window_end_ns": 2_000_000_000_u64, "latency_us": null_quantiles(),
            "service_time_us": null_quantiles(), "send_lag_us": null_quantiles(), "bytes_sent": 1, "bytes_received": 1,
            "statuses": {}, "bodies": [], "other_bodies": 0, "reconnects": 0, "cpu_us_per_request": 9.0,
            "unanswered": 0, "seconds": []
        }))
        .expect("an outcome");
        outcome.service_time_us.p50 = 500.0;
        outcome
    }

    fn null_quantiles() -> serde_json::Value {
        serde_json::to_value(unladen_load::outcome::Quantiles::default()).expect("quantiles")
    }

    fn open() -> Load {
        Load { rate: Some(500.0), ..Load::new("http://localhost/") }
    }

    #[test]
    fn a_good_load_is_believed() {
        assert_eq!(load(&good(), &open()), None);
        assert_eq!(remarks(&good(), &open()), None);
    }

    #[test]
    fn failed_requests_void_the_run_above_one_percent() {
        let mut outcome = good();
        outcome.errors = 10;
        assert_eq!(load(&outcome, &open()), None);
        outcome.errors = 11;
        outcome.error_classes.insert("timeout".to_owned(), 11);
        let notice = load(&outcome, &open()).expect("a refusal");
        assert_eq!(notice.to_string(), "11 of 1011 requests failed (11 timeout). Look at the logs in the run's folder");
        outcome.errors = 0;
        outcome.unanswered = 500;
        assert!(matches!(load(&outcome, &open()), Some(Notice::Load(LoadNotice::Errors { .. }))));
        let meant_to_fail = Load { errors: Ratio(0.4), ..open() };
        assert_eq!(load(&outcome, &meant_to_fail), None, "a third");
    }

    #[test]
    fn a_late_or_short_generator_voids_an_open_loop_only() {
        let mut outcome = good();
        outcome.lateness_us.p99 = 1_001.0;
        assert!(matches!(load(&outcome, &open()), Some(Notice::Load(LoadNotice::GeneratorLate { .. }))));
        let burst = Load { burst: Some(1000), ..Load::new("") };
        for closed in [Load::new(""), burst] {
            assert_eq!(load(&outcome, &closed), None);
        }
        outcome.service_time_us.p50 = 20_000.0;
        assert_eq!(load(&outcome, &open()), None, "a tenth of the median latency is allowed");
        outcome.rate = 480.0;
        assert!(matches!(load(&outcome, &open()), Some(Notice::Load(LoadNotice::RateMissed { .. }))));
        assert_eq!(load(&outcome, &Load::new("")), None);
        let users = unladen_study::spec::Users { count: 10.0, rate: Some(500.0), ..Default::default() };
        assert_eq!(load(&outcome, &Load { users: Some(users), ..Load::new("") }), None, "a target is no promise");
    }

    #[test]
    fn too_few_connections_are_told_apart_from_a_late_generator() {
        let mut outcome = good();
        (outcome.queued, outcome.send_lag_us.p99) = (20, 30_000.0);
        assert_eq!(outcome.lateness_us.p99, 0.0);
        assert_eq!(load(&outcome, &open()), None, "a pause of the service");
        assert!(
            matches!(remarks(&outcome, &open()), Some(Notice::Load(LoadNotice::ConnectionsShort { percent, .. })) if percent == 2.0)
        );
        outcome.queued = 251;
        assert!(matches!(
            load(&outcome, &open()),
            Some(Notice::Load(LoadNotice::OutOfConnections { connections: 16, .. }))
        ));
    }

    #[test]
    fn a_saturated_generator_voids_a_closed_loop() {
        let mut outcome = good();
        outcome.warnings = vec![LoadWarning::Saturated { share: 0.97 }];
        assert_eq!(load(&outcome, &open()), None, "it was on time");
        assert!(matches!(load(&outcome, &Load::new("")), Some(Notice::Load(LoadNotice::GeneratorSaturated { .. }))));
    }

    #[test]
    fn a_breach_of_littles_law_voids_the_run() {
        let mut outcome = good();
        for (in_flight, expected, holds, broken) in [
            (8.0, 8.0, Some(true), false),
            (0.0, 0.9, Some(false), false),
            (8.0, 11.0, Some(false), false),
            (8.0, 13.0, Some(false), true),
            (13.0, 8.0, Some(false), true),
            (13.0, 8.0, None, false),
        ] {
            outcome.little = Little { in_flight, expected, holds, ..Little::default() };
            assert_eq!(load(&outcome, &open()).is_some(), broken, "{in_flight} {expected}");
        }
    }

    #[test]
    fn what_the_capacity_must_be_read_with_is_said() {
        let load = Load::new("http://localhost/");
        let study: Study = Study {
            capacity: serde_json::from_value(serde_json::json!({"limit": "10ms", "most": 8000.0})).expect("a capacity"),
            ..Study::new("x", load)
        };
        let codes = |holds: Option<f64>, fails: Option<f64>, cut_short: bool, busy: f64| {
            let trial = |rate: f64| Trial { rate, generator_busy: busy, ..Trial::default() };
            let trials = fails.or(holds).map(trial).into_iter().collect();
            let capacity = Some(Capacity { holds, fails, cut_short, trials });
            let record = RunRecord { capacity, ..record() };
            after(&record, &study).iter().map(Notice::code).collect::<Vec<_>>()
        };
        assert_eq!(codes(Some(4000.0), Some(4100.0), false, 0.5), Vec::<String>::new());
        assert_eq!(codes(Some(4000.0), Some(4100.0), false, 0.9), ["generator_at_limit"]);
        assert_eq!(codes(Some(8000.0), None, false, 0.9), ["capacity_beyond"]);
        assert_eq!(codes(Some(2000.0), Some(4000.0), true, 0.5), ["capacity_cut_short"]);
        assert_eq!(codes(None, Some(1.0), false, 0.5), ["no_capacity"]);
    }

    fn record() -> RunRecord {
        serde_json::from_value(serde_json::json!({
            "schema": 1, "run": 1, "round": 1, "slot": 1, "variant": "baseline", "kind": "baseline", "dir": "",
            "started": "", "void": null, "notices": [], "load": null, "sink": null, "ledger": null,
            "phases": {"start_s": 0.1, "warmup_s": 1.0, "window_s": 5.0, "drain_s": 0.0, "stop_s": 0.1},
            "processes": [], "instrument": [],
            "host": {"cores": 2, "busy_s": 1.0, "others_s": 0.0, "steal_s": 0.0, "cpu_pressure": null, "memory_available": 1},
        }))
        .expect("a record")
    }

    #[test]
    fn an_empty_window_is_refused() {
        let mut outcome = good();
        outcome.requests = 0;
        assert!(matches!(load(&outcome, &open()), Some(Notice::Load(LoadNotice::LoadFailed { .. }))));
    }

    #[test]
    fn endpoints_that_fail_are_told() {
        let scraped = Scraped {
            attempts: 6,
            failed: 2,
            error: Some("it answers 503".to_owned()),
            missing: vec!["go_threads".to_owned()],
            ..Scraped::default()
        };
        let notices = scrapes(&[("app".to_owned(), 0, scraped), ("fine".to_owned(), 0, Scraped::default())]);
        let texts: Vec<String> = notices.iter().map(Notice::to_string).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].starts_with("2 of 6 scrapes of app failed (it answers 503)"));
        assert!(texts[1].starts_with("the metrics endpoint of app has no go_threads"), "{}", texts[1]);
    }

    #[test]
    fn disturbances_are_named() {
        let host = HostWindow { cores: 2, steal_s: 0.05, others_s: 0.3, ..HostWindow::default() };
        let held =
            ProcessRecord { service: "app".to_owned(), throttled_ns: Some(40_000_000), ..ProcessRecord::default() };
        let notices = disturbances(&[held], &host, 2.0);
        assert!(matches!(&notices[..], [Notice::Throttled { .. }, Notice::Steal { .. }, Notice::OthersBusy { .. }]));
        assert!(disturbances(&[ProcessRecord::default()], &HostWindow { cores: 2, ..host_quiet() }, 2.0).is_empty());
    }

    fn host_quiet() -> HostWindow {
        HostWindow { steal_s: 0.001, others_s: 0.01, ..HostWindow::default() }
    }
}
