//! An outcome in words: what a terminal shows after and during a load. Pure; no colours, no cursor movements.

use std::fmt::Write;

use crate::outcome::{Outcome, Quantiles, Second};
use crate::plan::{Order, Pacing, Plan};

/// How a load was paced, in words.
#[must_use]
pub fn pacing(plan: &Plan) -> String {
    let limit = plan.limit.map_or(String::new(), |limit| format!(", at most {limit}"));
    let paced = match &plan.pacing {
        Pacing::Constant { rate } => format!("open loop, {rate} requests/s"),
        Pacing::Poisson { rate, .. } => format!("open loop, {rate} requests/s at random (Poisson)"),
        Pacing::Stages { stages, .. } => format!("open loop, {} stages of rates", stages.len()),
        Pacing::Replay { gaps_us } => format!("open loop, {} recorded gaps", gaps_us.len()),
        Pacing::Burst { count } => format!("burst of {count}"),
        Pacing::Closed => "closed loop".to_owned(),
        Pacing::Users { rate, think_s, .. } => {
            let turns = rate.map_or(String::new(), |rate| format!(", at most {rate} iterations/s"));
            format!("users who pause {think_s} s{turns}")
        }
    };
    paced + &limit
}

/// Whether latencies count from an instant that does not depend on the service.
fn is_open(plan: &Plan) -> bool {
    !matches!(plan.pacing, Pacing::Closed | Pacing::Users { .. })
}

/// A row of milliseconds.
fn row(text: &mut String, name: &str, q: &Quantiles) {
    let _ = writeln!(
        text,
        "  {name:<24}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.3}",
        q.mean / 1e3,
        q.p50 / 1e3,
        q.p90 / 1e3,
        q.p95 / 1e3,
        q.p99 / 1e3,
        q.p999 / 1e3,
        q.max / 1e3
    );
}

/// Bytes as people read them.
fn bytes(count: u64) -> String {
    let (mut value, mut unit) = (count as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") }
}

/// `name count, name count`.
fn counts<K: std::fmt::Display>(counts: impl IntoIterator<Item = (K, u64)>) -> String {
    counts.into_iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// The whole outcome: a table of times, requests, errors, and what to beware of.
#[must_use]
pub fn text(plan: &Plan, outcome: &Outcome) -> String {
    let open = is_open(plan);
    let mut text = String::new();
    let _ = writeln!(text, "{}", plan.url);
    let _ = writeln!(text, "  {:.1} s, {} connections, {}", outcome.duration_s, plan.connections, pacing(plan));
    let _ = writeln!(
        text,
        "\n  {:<24}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "ms", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"
    );
    row(&mut text, if open { "latency, from due" } else { "latency" }, &outcome.latency_us);
    if open {
        row(&mut text, "service time, from sent", &outcome.service_time_us);
        row(&mut text, "send lag", &outcome.send_lag_us);
    }
    for named in &outcome.named {
        row(&mut text, &format!("  {}", named.name), &named.latency_us);
        for kind in outcome.kinds.iter().filter(|kind| kind.request == named.name && kind.requests > 0) {
            row(&mut text, &format!("    {}", kind.name), &kind.latency_us);
        }
    }
    if let Some(iterations) = &outcome.iterations {
        row(&mut text, "whole iterations", &iterations.latency_us);
    }
    let all = outcome.requests + outcome.errors;
    let share = if all > 0 { 100.0 * outcome.errors as f64 / all as f64 } else { 0.0 };
    let target = outcome.target_rate.map_or(String::new(), |rate| format!(" of {rate:.1}/s wanted"));
    let _ = writeln!(text, "\n  requests   {:>12}   {:.1}/s{target}", outcome.requests, outcome.rate);
    let classes = counts(outcome.error_classes.iter().map(|(class, &count)| (class, count)));
    let _ = writeln!(text, "  errors     {:>12}   {share:.2} %   {classes}", outcome.errors);
    let _ = writeln!(
        text,
        "  statuses   {}",
        counts(outcome.statuses.iter().map(|(status, &count)| (format!("{status}:"), count)))
    );
    let _ =
        writeln!(text, "  bytes      {} sent, {} received", bytes(outcome.bytes_sent), bytes(outcome.bytes_received));
    for test in &outcome.tests {
        let _ = writeln!(
            text,
            "  test       {}: {}: {} passed, {} failed",
            test.request, test.name, test.passed, test.failed
        );
    }
    for named in outcome.named.iter().filter(|named| named.errors > 0) {
        let _ = writeln!(text, "  {}: {} of {} failed", named.name, named.errors, named.errors + named.requests);
    }
    for kind in &outcome.kinds {
        let _ = writeln!(text, "  kind       {}: {}: {}", kind.request, kind.name, kind.requests);
    }
    if let Some(iterations) = &outcome.iterations {
        let (failed, unfinished) = (iterations.failed, iterations.unfinished);
        let _ = writeln!(
            text,
            "  iterations {:>12}   {failed} failed, {unfinished} not over at the end of the window",
            iterations.completed
        );
    }
    if outcome.reconnects > 0 {
        let _ = writeln!(text, "  reconnects {:>12}", outcome.reconnects);
    }
    let _ = writeln!(text, "  generator  {:>12.2} µs of CPU per request", outcome.cpu_us_per_request);
    for warning in warnings(plan, outcome) {
        let _ = writeln!(text, "  {warning}");
    }
    text
}

/// What a reader must know before believing the numbers.
#[must_use]
pub fn warnings(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    if outcome.interrupted {
        found.push("The load was ended early.".to_owned());
    }
    if !is_open(plan) {
        found.push(
            "A closed loop waits for the service: its latencies leave out the requests that a stall kept from being sent."
                .to_owned(),
        );
    }
    let one_at_a_time = plan.order == Order::Weighted && plan.limit.is_none();
    if let (Some(target), true) = (outcome.target_rate, is_open(plan) && one_at_a_time)
        && outcome.rate < 0.99 * target
    {
        found.push(format!(
            "Only {:.1} of {target:.1} answers/s came: the service or the generator is saturated.",
            outcome.rate
        ));
    }
    if outcome.queued > 0 && !matches!(plan.pacing, Pacing::Burst { .. }) {
        found.push(format!(
            "{} requests waited for a free connection; that wait is in the latency. More connections would send them on time.",
            outcome.queued
        ));
    }
    if outcome.unanswered > 0 {
        found.push(format!("{} requests had no answer when the load was given up.", outcome.unanswered));
    }
    found
}

/// One line while the load runs.
#[must_use]
pub fn live(second: &Second) -> String {
    format!(
        "{:>5} s  {:>9} sent  {:>9} answered  p50 {:>9.3} ms  p99 {:>9.3} ms  {:>6} errors",
        second.second + 1,
        second.sent,
        second.answered,
        second.p50_us / 1e3,
        second.p99_us / 1e3,
        second.errors
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            requests: 990,
            errors: 10,
            error_classes: [("timeout".to_owned(), 10)].into(),
            statuses: [(200, 990)].into(),
            rate: 99.0,
            duration_s: 10.0,
            target_rate: Some(100.0),
            bytes_received: 1 << 20,
            latency_us: Quantiles { count: 990, p99: 12_345.0, ..Quantiles::default() },
            ..Outcome::default()
        }
    }

    #[test]
    fn a_reader_finds_rate_errors_and_tail() {
        let plan = Plan { pacing: Pacing::Constant { rate: 100.0 }, ..Plan::new("http://h/x") };
        let text = text(&plan, &outcome());
        for part in [
            "http://h/x",
            "open loop, 100 requests/s",
            "12.345",
            "99.0/s of 100.0/s wanted",
            "1.00 %",
            "timeout 10",
            "200: 990",
            "1.0 MiB received",
            "send lag",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert_eq!(warnings(&plan, &outcome()), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_to_be_believed_is_said() {
        let closed = Plan::new("http://h/x");
        assert!(warnings(&closed, &outcome())[0].contains("closed loop"));
        assert!(!text(&closed, &outcome()).contains("send lag"));
        let open = Plan { pacing: Pacing::Constant { rate: 100.0 }, ..closed };
        let bad = Outcome { rate: 50.0, queued: 3, unanswered: 2, interrupted: true, ..outcome() };
        assert_eq!(warnings(&open, &bad).len(), 4);
    }

    #[test]
    fn bytes_are_rounded() {
        for (count, text) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB")] {
            assert_eq!(bytes(count), text);
        }
    }
}
