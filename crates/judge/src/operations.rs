//! How long each operation takes, from the spans: the view from within the service, beside that of its users.
//!
//! A bare service has no spans, so nothing is compared with it; variants can be compared with each other. Spans of the
//! warm-up are left out. Quantiles are taken per run; what is told is their median over the runs. Of alternating runs the tail is left out
//! ([`super::latency`]).

use std::collections::HashMap;

use hdrhistogram::Histogram;
use unladen_journal::record::RunRecord;
use unladen_journal::spans;
use unladen_study::measured::Measured;

use super::evidence::{Evidence, VariantRuns};
use super::findings::{OperationFindings, Range};
use super::latency;

/// Spans that are read of a study, about: a few seconds' worth of work.
const SPANS: u64 = 20_000_000;
/// Operations that are told of a variant, those with the most time in them.
const MAX_SHOWN: usize = 25;
/// Operations that are kept apart; names with ids in them have no end.
const MAX_HISTOGRAMS: usize = 2_000;

/// Durations by service and operation, nanoseconds.
type Durations = HashMap<(String, String), Histogram<u64>>;

/// The operations of every variant.
pub(super) fn read(folder: &Measured) -> Vec<OperationFindings> {
    let evidence = Evidence::of(folder);
    let with_spans = |run: &&RunRecord| run.sink.as_ref().is_some_and(|sink| sink.saved > 0);
    let runs = evidence.valid().filter(|run| with_spans(run)).count() as u64;
    let limit = SPANS / runs.max(1);
    let of_variant = |variant: &VariantRuns<'_>| {
        let of_run = |run: &&RunRecord| durations(folder, run, limit);
        findings(
            &variant.name,
            variant.valid.values().any(|run| run.blocks.is_some()),
            &variant.valid.values().copied().filter(with_spans).filter_map(|run| of_run(&run)).collect::<Vec<_>>(),
        )
    };
    evidence.all_variants().flat_map(of_variant).collect()
}

/// Number of the first request of the window.
pub(super) fn first_of_window(run: &RunRecord) -> i64 {
    let seconds = run.load.as_ref().map(|load| &load.seconds[..]).unwrap_or_default();
    let warm = seconds.iter().find(|second| f64::from(second.second) + 0.01 >= run.phases.warmup_s);
    warm.and_then(|second| i64::try_from(second.first_index).ok()).unwrap_or(0)
}

fn durations(folder: &Measured, run: &RunRecord, limit: u64) -> Option<Durations> {
    let first = first_of_window(run);
    // Looked up as bytes: to make a text for every span would take most of the time.
    let mut services: HashMap<Vec<u8>, HashMap<Vec<u8>, Histogram<u64>>> = HashMap::new();
    let mut read = 0;
    spans::each(&folder.dir.join(&run.dir), limit, |span| {
        if span.request.is_some_and(|request| request < first) {
            return;
        }
        let (service, operation) = (span.operation.0.data(), span.operation.1.data());
        let duration = u64::try_from(span.duration_ns).unwrap_or(0);
        let known = services.get_mut(service).and_then(|operations| operations.get_mut(operation));
        if let Some(histogram) = known {
            // Grows as needed, and refuses only what no 64 bits hold.
            let _ = histogram.record(duration);
        } else if let (true, Ok(mut histogram)) = (read < MAX_HISTOGRAMS, Histogram::new(3)) {
            read += 1;
            let _ = histogram.record(duration);
            services.entry(service.to_vec()).or_default().insert(operation.to_vec(), histogram);
        }
    })
    .ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let of_service = |(service, operations): (Vec<u8>, HashMap<Vec<u8>, Histogram<u64>>)| {
        operations.into_iter().map(move |(operation, histogram)| ((text(&service), text(&operation)), histogram))
    };
    Some(services.into_iter().flat_map(of_service).collect())
}

/// What the runs of one variant say, the operations with the most time in them first.
fn findings(variant: &str, in_blocks: bool, runs: &[Durations]) -> Vec<OperationFindings> {
    let is_sound = |quantile: &f64| !in_blocks || latency::is_sound_in_blocks(*quantile);
    let mut names: Vec<&(String, String)> = runs.iter().flat_map(HashMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let mut operations: Vec<(f64, OperationFindings)> = names
        .into_iter()
        .filter_map(|name| {
            let found: Vec<&Histogram<u64>> = runs.iter().filter_map(|run| run.get(name)).collect();
            let at = |quantile: f64| {
                let values: Vec<f64> = found.iter().map(|it| it.value_at_quantile(quantile) as f64 / 1e3).collect();
                Range::over(&values)
            };
            let time: f64 = found.iter().map(|it| it.mean() * it.len() as f64).sum();
            let operation = OperationFindings {
                variant: variant.to_owned(),
                service: name.0.clone(),
                operation: name.1.clone(),
                spans: found.iter().map(|it| it.len()).sum(),
                p50_us: at(0.5)?,
                p90_us: at(0.9)?,
                p99_us: Some(0.99).filter(is_sound).and_then(at),
            };
            Some((time, operation))
        })
        .collect();
    operations.sort_by(|a, b| b.0.total_cmp(&a.0));
    operations.truncate(MAX_SHOWN);
    operations.into_iter().map(|(_, operation)| operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_medians_over_the_runs_and_the_dearest_operation_is_first() {
        let run = |of_get: u64, of_call: u64| {
            let mut durations = Durations::new();
            for (operation, value, count) in [("GET /", of_get, 100), ("call", of_call, 300)] {
                let mut histogram = Histogram::new(3).expect("three digits");
                histogram.record_n(value, count).expect("it grows");
                durations.insert(("shop".to_owned(), operation.to_owned()), histogram);
            }
            durations
        };
        let findings =
            findings("otel", false, &[run(900_000, 100_000), run(1_000_000, 110_000), run(5_000_000, 90_000)]);
        let names: Vec<_> = findings.iter().map(|it| (it.operation.as_str(), it.spans)).collect();
        assert_eq!(names, [("GET /", 300), ("call", 900)]);
        let p50 = findings[0].p50_us;
        assert!(
            (p50.value - 1000.0).abs() < 2.0 && (p50.low - 900.0).abs() < 2.0 && (p50.high - 5000.0).abs() < 5.0,
            "{p50:?}"
        );
    }
}
