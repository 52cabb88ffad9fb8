//! Findings in words: a phrase for every finding, a sentence for every variant.
//!
//! The sentence is the first thing that a user reads. It never says "no difference" for "not significant", and says
//! "cannot tell" with the range in which the truth lies and what would settle it.

use unladen_stats::estimate::{Estimate, Interval};
use unladen_stats::plan::MAX_ROUNDS;
use unladen_stats::verdict::{Verdict, less_than_margin};

use super::findings::{Finding, LedgerFindings, Place, VariantFindings};
use super::units::{self, Scale};

/// The verdict as two words at most, for tables.
/// Instead of an interval.
pub(super) fn too_few(rounds: usize, needed: usize) -> String {
    format!("needs {needed} rounds, has {rounds}: no interval yet")
}

/// The phrase for one finding. `estimate` and `interval` are those that decide, turned so that more is a cost.
pub(super) fn finding(finding: &Finding, verdict: Verdict, estimate: &Estimate, interval: &Interval) -> String {
    let scale = deciding_scale(finding);
    let range = format!("[{}, {}]", scale.number(interval.low), scale.number(interval.high));
    let margin = margin(finding);
    match verdict {
        Verdict::Costs => {
            let small = less_than_margin(interval, finding.margin);
            let small = if small { format!(": less than the {margin} that matters") } else { String::new() };
            format!("costs {} {range}{small}", scale.with_unit(estimate.value))
        }
        Verdict::Saves => {
            // What is saved is said as a positive number, so the ends change places.
            let range = format!("[{}, {}]", scale.number(-interval.high), scale.number(-interval.low));
            let what = scale.with_unit(-estimate.value);
            format!("saves {what} {range}: unexpected for instrumentation, so check it")
        }
        Verdict::NoDifference if interval.farther_end() == 0.0 => "the same in every round".to_owned(),
        Verdict::NoDifference => format!("no difference beyond ±{}", scale.with_unit(interval.farther_end())),
        Verdict::CannotTell => {
            let between = between(finding);
            // Without a margin nothing can be settled: what the baseline has none of has no share of it.
            match finding.rounds_needed {
                _ if finding.margin == 0.0 => format!("cannot tell: {between}"),
                Some(rounds) => format!("cannot tell: {between}; about {rounds} rounds would settle ±{margin}"),
                None => {
                    format!("cannot tell: {between}; more than {MAX_ROUNDS} rounds would be needed to settle ±{margin}")
                }
            }
        }
    }
}

/// The estimate with its interval, relative or not: `+18.4 % [16.9, 19.8]`.
pub(super) fn estimate(finding: &Finding, relative: bool) -> String {
    units::estimate(finding, relative).unwrap_or_else(|| finding.words.clone())
}

/// The scale of the numbers that decide.
fn deciding_scale(finding: &Finding) -> Scale {
    if finding.relative { Scale::of_ratio(finding) } else { Scale::of_difference(finding) }
}

fn margin(finding: &Finding) -> String {
    if finding.relative {
        units::chosen("%", finding.margin)
    } else {
        let unit = if finding.unit == "share" { "points" } else { &finding.unit };
        Scale::of(unit, finding.margin, None).with_unit(finding.margin)
    }
}

/// The ends of the interval that decides, as they are, not turned: a throughput between −5 % and +3 %.
fn between(finding: &Finding) -> String {
    let (low, high) = if finding.relative {
        (finding.ratio_low, finding.ratio_high)
    } else {
        (finding.difference_low, finding.difference_high)
    };
    let scale = deciding_scale(finding);
    let written = |end: Option<f64>| scale.signed_with_unit(end.unwrap_or_default());
    format!("between {} and {}", written(low), written(high))
}

/// The sentence for a variant.
pub(super) fn sentence(variant: &VariantFindings) -> String {
    let label = &variant.label;
    if let Some(reason) = &variant.refused {
        return format!("No verdict on {label}: {reason}.");
    }
    let judged = judged(variant);
    if judged.is_empty() {
        return format!("{label}: nothing was measured on both sides.");
    }
    let mut clauses = Vec::new();
    if judged.iter().any(|finding| finding.difference.is_none()) {
        clauses.push(format!("too few rounds for an interval; so far {}", list(judged.iter().map(|it| so_far(it)))));
    } else {
        let of =
            |verdict: Verdict| judged.iter().copied().filter(|it| it.verdict == verdict).collect::<Vec<&Finding>>();
        let costs = of(Verdict::Costs);
        if !costs.is_empty() {
            clauses.push(format!("costs {}", list(costs.iter().map(|it| amount(it)))));
        }
        let saves = of(Verdict::Saves);
        if !saves.is_empty() {
            clauses.push(format!("saves {} (unexpected, so check it)", list(saves.iter().map(|it| amount(it)))));
        }
        let same = of(Verdict::NoDifference);
        if !same.is_empty() {
            clauses.push(format!("no difference in {}", list(same.iter().map(|it| floor(it)))));
        }
        let (refused, unclear): (Vec<_>, Vec<_>) =
            of(Verdict::CannotTell).into_iter().partition(|it| it.refused.is_some());
        if !unclear.is_empty() {
            clauses.push(cannot_tell(&unclear));
        }
        clauses.extend(refused.iter().map(|it| format!("no verdict on {} (see below)", it.title)));
    }
    clauses.extend(variant.ledger.as_ref().and_then(arrived));
    clauses.extend(leak(variant));
    let colon =
        if clauses.first().is_some_and(|it| it.starts_with("costs") || it.starts_with("saves")) { "" } else { ":" };
    format!("{label}{colon} {}.", clauses.join("; "))
}

/// `may leak: its memory grows 1.02 MiB/min [0.91, 1.13] faster`; nothing if it does not, or was not looked at. The heap of a JVM
/// tells more than its memory, which it takes for minutes before it uses again what it has: that alone accuses nobody.
fn leak(variant: &VariantFindings) -> Option<String> {
    let growth = |metric, what| {
        let slope = variant.finding(metric)?;
        // Less than the margin is what an allocator does in its first minutes.
        let grows = slope.verdict == Verdict::Costs && slope.difference_low? > 0.0 && slope.difference? > slope.margin;
        let amount = estimate(slope, false);
        grows.then(|| format!("its {what} grows {} faster than the baseline's", amount.trim_start_matches('+')))
    };
    if let Some(heap) = growth("heap_slope", "heap") {
        return Some(format!("may leak: {heap}"));
    }
    let memory = growth("memory_slope", "memory")?;
    let heap = variant.finding("heap_slope").filter(|heap| heap.difference.is_some());
    Some(match heap.map(|heap| heap.verdict == Verdict::CannotTell) {
        None => format!("may leak: {memory}"),
        Some(false) => format!("{memory}, its heap does not"),
        Some(true) => format!("{memory}, unclear whether its heap grows"),
    })
}

/// The sentence for the placebo: the noise floor.
pub(super) fn noise_floor(placebo: &VariantFindings) -> String {
    let judged = judged(placebo);
    let floors: Vec<String> = judged.iter().filter(|it| it.difference.is_some()).map(|it| noise(it)).collect();
    if floors.is_empty() {
        return "Noise floor: unknown, too few rounds.".to_owned();
    }
    format!("Noise floor (baseline vs. itself): {}.", list(floors.into_iter()))
}

/// The findings that a sentence speaks of: the most telling ones and a latency quantile of the tables. That is the largest one
/// about which something can be told, or else the largest one.
fn judged(variant: &VariantFindings) -> Vec<&Finding> {
    let whole = || variant.metrics.iter().filter(|it| it.is_of_whole());
    let latencies = || whole().filter(|it| it.place == Place::Table && it.metric.starts_with("latency_p"));
    let latency = latencies().rfind(|it| it.verdict != Verdict::CannotTell).or_else(|| latencies().next_back());
    whole().filter(|it| it.place == Place::Sentence).chain(latency).collect()
}

/// `62 µs of CPU per request (+18.4 % [16.9, 19.8])`.
fn amount(finding: &Finding) -> String {
    let difference = finding.difference.unwrap_or_default().abs();
    let what = Scale::of_difference(finding).with_unit(difference);
    let phrase = phrase(finding);
    match finding.ratio {
        Some(_) => format!("{what} {phrase} ({})", estimate(finding, true)),
        None => format!("{what} {phrase}"),
    }
}

fn phrase(finding: &Finding) -> &str {
    let metric = super::metrics::METRICS.iter().find(|metric| metric.name == finding.metric);
    metric.map_or(finding.title.as_str(), |metric| metric.phrase.as_ref())
}

/// `cannot tell for latency p99 (between −0.7 % and +2.9 %): would need about 30 rounds`.
fn cannot_tell(unclear: &[&Finding]) -> String {
    let ranges = unclear.iter().map(|finding| format!("{} ({})", finding.title, between(finding)));
    let rounds = unclear.iter().map(|finding| finding.rounds_needed).reduce(|a, b| Some(a?.max(b?))).flatten();
    let rounds = match rounds {
        Some(rounds) => format!("about {rounds} rounds"),
        None => format!("more than {MAX_ROUNDS} rounds"),
    };
    format!("cannot tell for {}: would need {rounds}", list(ranges))
}

/// `CPU per request beyond ±0.8 %`.
fn floor(finding: &Finding) -> String {
    match finding.words.strip_prefix("no difference beyond ") {
        Some(bound) => format!("{} beyond {bound}", finding.title),
        None => format!("{} at all", finding.title),
    }
}

/// `CPU per request ±0.9 %`.
fn noise(finding: &Finding) -> String {
    let ends = if finding.relative {
        [finding.ratio_low, finding.ratio_high]
    } else {
        [finding.difference_low, finding.difference_high]
    };
    let farther = ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
    format!("{} ±{}", finding.title, deciding_scale(finding).with_unit(farther))
}

/// `CPU per request 337 → 399 µs`.
fn so_far(finding: &Finding) -> String {
    let scale = Scale::of_values(finding);
    format!("{} {} → {}", finding.title, scale.number(finding.baseline), scale.with_unit(finding.value))
}

/// `of 240,000 spans 239,998 arrived, 2 were lost (0.00083 %)`.
fn arrived(ledger: &LedgerFindings) -> Option<String> {
    if ledger.wanted == 0 {
        return (ledger.sampled_out > 0).then(|| "no spans were wanted".to_owned());
    }
    let (wanted, saved) = (units::count(ledger.wanted), units::count(ledger.saved));
    let lost = match ledger.lost {
        0 => String::new(),
        lost => format!(", {} were lost ({})", units::count(lost), units::share(ledger.loss_ratio)),
    };
    let bought = if ledger.bought_with_loss { ": bought with lost spans" } else { "" };
    Some(format!("of {wanted} spans {saved} arrived{lost}{bought}"))
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
