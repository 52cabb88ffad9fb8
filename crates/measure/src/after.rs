//! What a run does after its window, on the same processes: saturate, search the capacity. The load is sent from threads of
//! unladen itself, bound to the instrument's core: nothing is sampled any more that they could disturb.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use unladen_journal::record::{Capacity, Saturation, Trial};
use unladen_load::LoadError;
use unladen_load::capacity::{self, Search};
use unladen_load::outcome::Outcome;
use unladen_load::pace::Stage;
use unladen_load::plan::{Pacing, Plan, Protocol};
use unladen_load::threshold::{Threshold, ThresholdError};
use unladen_study::spec;

/// Connections of a trial, unless the study says otherwise: at least so many.
const TRIAL_CONNECTIONS: u32 = 64;
/// A trial's warm-up, as a share of its length.
const TRIAL_WARMUP: f64 = 0.2;
/// First trial, as a share of what a closed loop gets through.
const FIRST_TRIAL: f64 = 0.5;
/// Throughput that counts as the maximum, as a share of the best second's.
const NEAR_MAX: f64 = 0.95;

/// Why a phase after the window could not be done.
#[derive(Debug, thiserror::Error)]
pub enum AfterError {
    /// The load could not be sent.
    #[error("the load after the window failed: {0}")]
    Load(#[from] LoadError),
    /// A limit makes no sense.
    #[error("the limit of the capacity makes no sense: {0}")]
    Limit(#[from] ThresholdError),
}

/// A closed loop like the plan's load, and requests that it sent in all.
///
/// # Errors
/// When the load cannot be sent at all.
pub(super) fn saturate(
    plan: &Plan,
    wanted: &spec::Saturation,
    stop: &AtomicBool,
) -> Result<(Saturation, u64), AfterError> {
    let connections = wanted.connections.unwrap_or(plan.connections);
    let streams = if plan.protocol == Protocol::Http2 || plan.grpc.is_some() { plan.streams } else { 1 };
    let pacing = if wanted.ramp.0.is_zero() {
        Pacing::Closed
    } else {
        let stages = vec![Stage { seconds: wanted.ramp.as_seconds(), to: f64::from(connections) * f64::from(streams) }];
        Pacing::Users { from: 1.0, stages, think_s: 0.0, rate: None }
    };
    let plan = Plan { pacing, connections, warmup_s: 0.0, window_s: wanted.time.as_seconds(), ..alone(plan) };
    let outcome = unladen_load::run(&plan, &mut |_| {}, stop)?;
    Ok((saturation(&outcome), outcome.sent_total))
}

/// The numbers of a closed loop.
fn saturation(outcome: &Outcome) -> Saturation {
    // The last second may be cut short.
    let whole = outcome.duration_s as usize;
    let seconds = || outcome.seconds.iter().take(whole.max(1));
    let max = seconds().map(|second| second.answered).max().unwrap_or(0) as f64;
    let first = seconds().position(|second| second.answered as f64 >= NEAR_MAX * max);
    Saturation {
        max,
        mean: outcome.rate,
        time_to_max_s: first.map_or(0.0, |position| (position + 1) as f64),
        error_rate: error_rate(outcome),
        generator_busy: busy(outcome),
    }
}

/// The highest rate that holds, and requests that were sent in all.
///
/// # Errors
/// When a load cannot be sent at all.
pub(super) fn search(
    plan: &Plan,
    wanted: &spec::Capacity,
    interrupted: &AtomicBool,
) -> Result<(Capacity, u64), AfterError> {
    let trial_s = wanted.trial.as_seconds();
    let limit_us = wanted.limit.as_seconds() * 1e6;
    let thresholds = [
        format!("{}>{limit_us}us", wanted.quantile.name()).parse::<Threshold>()?,
        format!("error-rate>{}", wanted.errors.0).parse()?,
    ];
    let plan = Plan {
        connections: wanted.connections.unwrap_or(plan.connections.max(TRIAL_CONNECTIONS)),
        warmup_s: TRIAL_WARMUP * trial_s,
        window_s: trial_s,
        // Whoever is far beyond the limit has failed; waiting longer would only load the next trial.
        timeout_s: plan.timeout_s.min((wanted.limit.as_seconds() * 4.0).max(1.0)),
        ..alone(plan)
    };
    let started = Instant::now();
    let sent = Cell::new(0);
    let from = match wanted.from {
        Some(rate) => rate,
        None => {
            let closed = Plan { pacing: Pacing::Closed, ..plan.clone() };
            let outcome = unladen_load::run(&closed, &mut |_| {}, interrupted)?;
            sent.set(outcome.sent_total);
            (FIRST_TRIAL * outcome.rate).max(1.0)
        }
    };
    let search = Search { from, most: wanted.most, precision: wanted.precision.0 };
    let time_is_up = AtomicBool::new(false);
    let mut trials = Vec::new();
    let after = |rate: f64, outcome: &Outcome, held: bool| {
        sent.set(sent.get() + outcome.sent_total);
        trials.push(trial(rate, outcome, held));
        if started.elapsed() >= wanted.time.0 || interrupted.load(Ordering::Relaxed) {
            time_is_up.store(true, Ordering::Relaxed);
        }
    };
    let found = capacity::measure(&plan, &search, &thresholds, after, &time_is_up)?;
    let close =
        matches!((found.holds, found.fails), (Some(holds), Some(fails)) if fails <= holds * (1.0 + search.precision));
    let cut_short = time_is_up.load(Ordering::Relaxed) && !close;
    Ok((Capacity { holds: found.holds, fails: found.fails, cut_short, trials }, sent.get()))
}

fn trial(rate: f64, outcome: &Outcome, held: bool) -> Trial {
    Trial {
        rate,
        achieved: outcome.rate,
        p50_us: outcome.latency_us.p50,
        p99_us: outcome.latency_us.p99,
        error_rate: error_rate(outcome),
        generator_busy: busy(outcome),
        held,
    }
}

/// The plan without what belongs to the load of the window.
fn alone(plan: &Plan) -> Plan {
    Plan { start_at_ns: None, out: None, limit: None, slot_us: None, ..plan.clone() }
}

fn error_rate(outcome: &Outcome) -> f64 {
    let all = outcome.requests + outcome.errors;
    if all == 0 { 1.0 } else { outcome.errors as f64 / all as f64 }
}

/// Share of one core that the generator used.
fn busy(outcome: &Outcome) -> f64 {
    if outcome.duration_s > 0.0 {
        outcome.cpu_us_per_request * outcome.completed_in_window as f64 / 1e6 / outcome.duration_s
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use unladen_load::outcome::Second;

    use super::*;

    fn second(second: u32, answered: u64) -> Second {
        Second { second, answered, ..Second::default() }
    }

    #[test]
    fn the_best_whole_second_is_the_maximum_and_the_first_near_it_the_time() {
        let outcome = Outcome {
            seconds: [(0, 200), (1, 960), (2, 1000), (3, 990), (4, 5000)].map(|(at, count)| second(at, count)).into(),
            duration_s: 4.3,
            rate: 790.0,
            requests: 99,
            errors: 1,
            completed_in_window: 4_300,
            cpu_us_per_request: 100.0,
            ..Outcome::default()
        };
        let found = saturation(&outcome);
        assert_eq!((found.max, found.mean, found.time_to_max_s), (1000.0, 790.0, 2.0));
        assert_eq!((found.error_rate, found.generator_busy), (0.01, 0.1));
    }

    #[test]
    fn silence_is_no_success() {
        let found = saturation(&Outcome::default());
        assert_eq!((found.max, found.error_rate), (0.0, 1.0));
    }
}
