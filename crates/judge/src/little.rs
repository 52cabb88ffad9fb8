//! Little's law (Little 1961): in a closed loop every connection always has a request under way, so
//! rate × mean response time = connections. When it does not hold, time went missing between the requests: the
//! generator was the bottleneck, and its weakness would be booked on the variant.

use unladen_journal::notices::Notice;
use unladen_journal::record::RunRecord;
use unladen_study::spec::Study;

/// Beyond this the generator, not the service, set the pace: the run says nothing.
const REFUSES: f64 = 0.25;
/// Beyond this it is worth a warning.
const WARNS: f64 = 0.10;

/// Why a run that the journal takes for valid does not count.
pub(super) fn refusal(study: &Study, run: &RunRecord) -> Option<Notice> {
    let (expected, found) = little(study, run)?;
    (off(expected, found) > REFUSES).then_some(Notice::LittleLawBroken { connections: expected, under_way: found })
}

/// A warning if the law is strained in some of these runs, with the numbers of the worst.
pub(super) fn notice<'a>(study: &Study, runs: impl Iterator<Item = &'a RunRecord>) -> Option<Notice> {
    let breaches: Vec<(f64, f64)> =
        runs.filter_map(|run| little(study, run)).filter(|(expected, found)| off(*expected, *found) > WARNS).collect();
    let worst = breaches.iter().copied().max_by(|a, b| off(a.0, a.1).total_cmp(&off(b.0, b.1)));
    worst.map(|(connections, under_way)| Notice::LittleLawStrained {
        runs: u32::try_from(breaches.len()).unwrap_or(u32::MAX),
        connections,
        under_way,
    })
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
