//! Checks of what a run's own numbers must obey, whatever was measured.
//!
//! Little's law (Little 1961): in a closed loop every connection always has a request under way, so
//! rate × mean response time = connections. When it does not hold, time went missing between the requests: the
//! generator was the bottleneck, and its weakness would be booked on the variant.

use unladen_journal::notices::Notice;
use unladen_journal::record::RunRecord;
use unladen_study::spec::Study;

use super::evidence::Evidence;
use super::units;

/// Beyond this the generator, not the service, set the pace: the run says nothing.
const LITTLE_REFUSES: f64 = 0.25;
/// Beyond this it is worth a warning.
const LITTLE_WARNS: f64 = 0.10;

/// Why a run that the journal takes for valid does not count.
pub(super) fn refusal(study: &Study, run: &RunRecord) -> Option<Notice> {
    let (expected, found) = little(study, run)?;
    (off(expected, found) > LITTLE_REFUSES)
        .then_some(Notice::LittleLawBroken { connections: expected, under_way: found })
}

/// What the runs that count must be read with.
pub(super) fn notices(evidence: &Evidence<'_>) -> Vec<Notice> {
    let study = &evidence.folder.study;
    let breaches: Vec<(f64, f64)> = evidence
        .valid()
        .filter_map(|run| little(study, run))
        .filter(|(expected, found)| off(*expected, *found) > LITTLE_WARNS)
        .collect();
    let worst = breaches.iter().copied().max_by(|a, b| off(a.0, a.1).total_cmp(&off(b.0, b.1)));
    let little = worst.map(|(connections, under_way)| Notice::LittleLawStrained {
        runs: super::evidence::number(breaches.len()),
        connections,
        under_way,
    });
    little.into_iter().chain(bare(evidence)).collect()
}

/// What imported numbers cannot support.
pub(super) fn imported(evidence: &Evidence<'_>) -> Vec<Notice> {
    let runs: Vec<&unladen_journal::record::Imported> =
        evidence.valid().filter_map(|run| run.imported.as_ref()).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    let has = |metric: &str| runs.iter().any(|run| run.numbers.contains_key(metric));
    let mut missing = vec!["whether the sides alternated (they are paired in the order given)"];
    if !has("cpu_per_request") {
        missing.push("the CPU that a request takes");
    }
    if !has("error_rate") {
        missing.push("how many requests failed");
    }
    missing.extend(["whether the answers were the same", "how many spans arrived"]);
    if runs.iter().all(|run| run.requests.is_none()) {
        missing.push("how many requests a quantile rests on");
    }
    vec![Notice::Imported { missing: super::words::list(missing.into_iter().map(str::to_owned)) }]
}

/// A baseline that sends spans is not bare.
fn bare(evidence: &Evidence<'_>) -> Option<Notice> {
    let declared = evidence.folder.study.variants.get(&evidence.baseline.name).and_then(|it| it.spans_per_request);
    let saved: u64 = evidence.baseline.valid.values().filter_map(|run| run.ledger.as_ref()).map(|it| it.saved).sum();
    (declared.is_none_or(|spans| spans == 0.0) && saved > 0)
        .then_some(Notice::BaselineNotBare { spans: units::count(saved) })
}

/// Requests that should have been and that were under way on average, in a closed loop.
fn little(study: &Study, run: &RunRecord) -> Option<(f64, f64)> {
    let load = run.load.as_ref()?;
    if !study.load.is_saturating() || load.target_rate.is_some() || load.latency_us.count == 0 {
        return None;
    }
    // The rate of an alternating run is that of its blocks and of the stretch alone, its latencies are those of the blocks that count. The
    // generator's own product is of one set of requests.
    let under_way = match run.blocks {
        Some(_) => Some(load.little.expected).filter(|it| *it > 0.0)?,
        None => load.rate * load.latency_us.mean / 1e6,
    };
    Some((f64::from(study.load.connections), under_way))
}

fn off(expected: f64, found: f64) -> f64 {
    (found / expected - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::Blocks;
    use unladen_load::outcome::{Little, Outcome, Quantiles};

    use super::*;

    /// A service that its compiler made quicker between blocks and the stretch alone has no fewer connections under way.
    #[test]
    fn the_law_is_held_against_one_set_of_requests() {
        let mut study = Study::new("s", unladen_study::spec::Load::new("http://127.0.0.1:1/".to_owned()));
        study.load.connections = 4;
        let latency_us = Quantiles { count: 1_000, mean: 200.0, ..Quantiles::default() };
        let outcome = |expected| Outcome {
            rate: 26_500.0,
            latency_us,
            little: Little { expected, ..Little::default() },
            ..Outcome::default()
        };
        let run = |blocks, expected| RunRecord { load: Some(outcome(expected)), blocks, ..RunRecord::empty() };
        assert_eq!(little(&study, &run(None, 4.0)), Some((4.0, 5.3)));
        assert_eq!(little(&study, &run(Some(Blocks::default()), 4.1)), Some((4.0, 4.1)));
        assert_eq!(little(&study, &run(Some(Blocks::default()), 0.0)), None, "an older journal");
        assert!(refusal(&study, &run(None, 4.0)).is_some());
    }
}
