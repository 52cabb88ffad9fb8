//! What the numbers of a run say about the run itself. Pure: facts in, notices out; a refusal voids the run.
//!
//! None of these rules looks at which variant the run belongs to, nor at its cost: a run is never dropped for its result.

use unladen_load::outcome::Outcome;

use crate::journal::record::{HostWindow, ProcessRecord};
use crate::notices::Notice;
use crate::probe::scrape::Scraped;

/// Share of failed requests above which a run is void.
const ERROR_LIMIT: f64 = 0.01;
/// Share of the wanted rate that must be answered.
const RATE_LIMIT: f64 = 0.98;
/// A generator may be this late (99th percentile) before the run is void, in µs …
const LAG_FLOOR_US: f64 = 1_000.0;
/// … or this share of the median latency, whichever is more.
const LAG_SHARE: f64 = 0.1;
/// Shares of the window above which throttling, steal and other processes are worth a warning.
const THROTTLED_LIMIT: f64 = 0.01;
/// See [`THROTTLED_LIMIT`].
const STEAL_LIMIT: f64 = 0.01;
/// See [`THROTTLED_LIMIT`].
const OTHERS_LIMIT: f64 = 0.05;

/// Whether the load can be believed; the first reason why not.
#[must_use]
pub fn load(outcome: &Outcome) -> Option<Notice> {
    let due = outcome.requests + outcome.errors + outcome.unanswered;
    if due == 0 {
        return Some(Notice::LoadFailed { message: "no request was due in the window; make it longer".to_owned() });
    }
    let failed = outcome.errors + outcome.unanswered;
    if failed as f64 > ERROR_LIMIT * due as f64 {
        let mut classes: Vec<String> =
            outcome.error_classes.iter().map(|(class, count)| format!("{count} {class}")).collect();
        if outcome.unanswered > 0 {
            classes.push(format!("{} unanswered", outcome.unanswered));
        }
        return Some(Notice::Errors { errors: failed, requests: due, classes: classes.join(", ") });
    }
    let target = outcome.target_rate?;
    let lag = outcome.send_lag_us.p99;
    let limit = LAG_FLOOR_US.max(LAG_SHARE * outcome.service_time_us.p50);
    if outcome.rate < RATE_LIMIT * target {
        return Some(Notice::RateMissed { wanted: target, achieved: outcome.rate });
    }
    (lag > limit).then_some(Notice::GeneratorLate { lag_p99_us: lag, limit_us: limit })
}

/// Endpoints that did not answer, or not as the study says.
#[must_use]
pub fn scrapes(scraped: &[(String, u32, Scraped)]) -> Vec<Notice> {
    let mut notices = Vec::new();
    for (service, _, scraped) in scraped {
        if let Some(error) = scraped.error.clone().filter(|_| scraped.failed > 0) {
            let (service, failed, asked) = (service.clone(), scraped.failed, scraped.asked);
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
    let capacity = f64::from(host.cores) * window_s;
    let steal = host.steal_s / capacity;
    let others = host.others_s / capacity;
    throttled
        .chain((steal > STEAL_LIMIT).then_some(Notice::Steal { percent: steal * 100.0 }))
        .chain((others > OTHERS_LIMIT).then_some(Notice::OthersBusy { percent: others * 100.0 }))
        .collect()
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_good_load_is_believed() {
        assert_eq!(load(&good()), None);
    }

    #[test]
    fn failed_requests_void_the_run_above_one_percent() {
        let mut outcome = good();
        outcome.errors = 10;
        assert_eq!(load(&outcome), None);
        outcome.errors = 11;
        outcome.error_classes.insert("timeout".to_owned(), 11);
        let notice = load(&outcome).expect("a refusal");
        assert_eq!(notice.to_string(), "11 of 1011 requests failed (11 timeout). Look at the logs in the run's folder");
        outcome.errors = 0;
        outcome.unanswered = 500;
        assert!(matches!(load(&outcome), Some(Notice::Errors { .. })));
    }

    #[test]
    fn a_late_or_short_generator_voids_an_open_loop_only() {
        let mut outcome = good();
        outcome.send_lag_us.p99 = 1_001.0;
        assert!(matches!(load(&outcome), Some(Notice::GeneratorLate { .. })));
        outcome.service_time_us.p50 = 20_000.0;
        assert_eq!(load(&outcome), None, "a tenth of the median latency is allowed");
        outcome.rate = 480.0;
        assert!(matches!(load(&outcome), Some(Notice::RateMissed { .. })));
        outcome.target_rate = None;
        assert_eq!(load(&outcome), None);
    }

    #[test]
    fn an_empty_window_is_refused() {
        let mut outcome = good();
        outcome.requests = 0;
        assert!(matches!(load(&outcome), Some(Notice::LoadFailed { .. })));
    }

    #[test]
    fn endpoints_that_fail_are_told() {
        let scraped = Scraped {
            asked: 6,
            failed: 2,
            error: Some("it answers 503".to_owned()),
            missing: vec!["go_threads".to_owned()],
            ..Scraped::default()
        };
        let notices = scrapes(&[("app".to_owned(), 0, scraped), ("fine".to_owned(), 0, Scraped::default())]);
        let texts: Vec<String> = notices.iter().map(Notice::to_string).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].starts_with("2 of 6 questions to the metrics endpoint of app had no answer (it answers 503)"));
        assert!(texts[1].starts_with("the metrics endpoint of app knows nothing of go_threads"), "{}", texts[1]);
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
