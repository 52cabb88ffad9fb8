//! What sampled spans tell of latencies, beside the truth: the load generator has timed every request.
//!
//! Per run and request, quantiles of its server spans are held to those of its clients, from sent to answered (the wait before it
//! was sent is nothing that a service could see). Two things keep them apart: spans begin and end within the service, and only some
//! requests have one. The generator knows which requests carried the sampled flag, so that the second is told apart.

use std::collections::HashMap;

use hdrhistogram::Histogram;
use unladen_journal::record::RunRecord;
use unladen_journal::spans;
use unladen_load::outcome::{Named, Outcome, Quantiles};
use unladen_stats::estimate::median;
use unladen_study::measured::Measured;

use super::evidence::{Evidence, VariantRuns};
use super::findings::{Range, SampledFindings, SampledQuantiles, SampledRound};
use super::operations::first_of_window;

/// The longest span of each request, nanoseconds: a span around others of the same name is the request's.
type Longest = HashMap<i64, u64>;

/// Every variant that has spans, request by request, as far as the study names their spans.
pub(super) fn read(folder: &Measured) -> Vec<SampledFindings> {
    let script = folder.study.load.script.as_ref();
    let wanted: Vec<(&str, &str)> = script
        .iter()
        .flat_map(|script| &script.requests)
        .filter_map(|request| Some((request.name.as_str(), request.span.as_deref()?)))
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let evidence = Evidence::of(folder);
    evidence.all_variants().flat_map(|variant| of_variant(folder, variant, &wanted)).collect()
}

fn of_variant(folder: &Measured, variant: &VariantRuns<'_>, wanted: &[(&str, &str)]) -> Vec<SampledFindings> {
    let mut rounds: Vec<Vec<SampledRound>> = vec![Vec::new(); wanted.len()];
    let (mut sampled, mut sent) = (0, 0);
    // Of alternating runs clients tell of the blocks, and their tail is not the variant's alone; spans tell of the whole run.
    for (&round, run) in variant.valid.iter().filter(|(_, run)| run.blocks.is_none()) {
        let (Some(load), true) = (&run.load, run.sink.as_ref().is_some_and(|sink| sink.saved > 0)) else { continue };
        let Some(longest) = longest(folder, run, wanted) else { continue };
        (sampled, sent) = (sampled + load.sampled_total, sent + load.sent_total);
        for ((rounds, longest), (request, _)) in rounds.iter_mut().zip(&longest).zip(wanted) {
            let named = load.named.iter().find(|named| named.name == *request);
            rounds.extend(named.and_then(|named| of_round(round, load, named, longest)));
        }
    }
    let ratio = if sent > 0 { sampled as f64 / sent as f64 } else { 0.0 };
    let of_request = |((request, span), rounds): (&(&str, &str), Vec<SampledRound>)| {
        (!rounds.is_empty()).then(|| finding(&variant.name, (request, span), ratio, rounds))
    };
    wanted.iter().zip(rounds).filter_map(of_request).collect()
}

/// The longest spans by request, for each name of a span.
fn longest(folder: &Measured, run: &RunRecord, wanted: &[(&str, &str)]) -> Option<Vec<Longest>> {
    let first = first_of_window(run);
    let mut found: Vec<Longest> = vec![Longest::new(); wanted.len()];
    // Sampled or not, every one of them is needed: to leave some out would be another sample.
    spans::each(&folder.dir.join(&run.dir), u64::MAX, |span| {
        let Some(request) = span.request.filter(|request| *request >= first) else { return };
        let places = wanted.iter().zip(&mut found).filter(|((_, name), _)| name.as_bytes() == span.operation.1.data());
        for (_, longest) in places {
            let duration = u64::try_from(span.duration_ns).unwrap_or(0);
            longest.entry(request).and_modify(|it| *it = duration.max(*it)).or_insert(duration);
        }
    })
    .ok()?;
    Some(found)
}

/// One round of one request; `None`: there is nothing to compare.
fn of_round(round: u32, load: &Outcome, named: &Named, longest: &Longest) -> Option<SampledRound> {
    let mut histogram: Histogram<u64> = Histogram::new(3).ok()?;
    for duration in longest.values() {
        // Grows as needed, and refuses only what no 64 bits hold.
        let _ = histogram.record(*duration);
    }
    if histogram.is_empty() || named.service_time_us.count == 0 {
        return None;
    }
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    let of = |times: &Quantiles| SampledQuantiles {
        p50_us: times.p50,
        p90_us: times.p90,
        p95_us: times.p95,
        p99_us: times.p99,
    };
    let all = of(&named.service_time_us);
    let of_sampled = match named.sampled_us.count {
        0 => (load.sampled_total >= load.sent_total).then_some(all),
        _ => Some(of(&named.sampled_us)),
    };
    Some(SampledRound {
        round,
        spans: histogram.len(),
        requests: named.requests,
        from_spans: SampledQuantiles { p50_us: at(0.5), p90_us: at(0.9), p95_us: at(0.95), p99_us: at(0.99) },
        from_clients: all,
        of_sampled,
    })
}

fn finding(variant: &str, (request, span): (&str, &str), ratio: f64, rounds: Vec<SampledRound>) -> SampledFindings {
    type Of = fn(&SampledQuantiles) -> f64;
    let off = |of: Of, from: fn(&SampledRound) -> Option<SampledQuantiles>| -> Option<Range> {
        let one = |round: &SampledRound| {
            let truth = of(&round.from_clients);
            (truth > 0.0).then_some(of(&from(round)?) / truth - 1.0)
        };
        Range::over(&rounds.iter().filter_map(one).collect::<Vec<_>>())
    };
    let error = |of: Of| off(of, |round| Some(round.from_spans));
    let sampling = |of: Of| off(of, |round| round.of_sampled);
    let over = |by: fn(&[f64]) -> f64, from: fn(&SampledRound) -> SampledQuantiles| {
        let of = |of: Of| by(&rounds.iter().map(|round| of(&from(round))).collect::<Vec<_>>());
        SampledQuantiles {
            p50_us: of(|it| it.p50_us),
            p90_us: of(|it| it.p90_us),
            p95_us: of(|it| it.p95_us),
            p99_us: of(|it| it.p99_us),
        }
    };
    let middle = |values: &[f64]| median(values).unwrap_or(0.0);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    SampledFindings {
        variant: variant.to_owned(),
        request: request.to_owned(),
        span: span.to_owned(),
        ratio,
        spans: rounds.iter().map(|round| round.spans).sum(),
        requests: rounds.iter().map(|round| round.requests).sum(),
        from_spans: over(middle, |round| round.from_spans),
        from_clients: over(middle, |round| round.from_clients),
        mean_from_spans: over(mean, |round| round.from_spans),
        mean_from_clients: over(mean, |round| round.from_clients),
        error_p50: error(|it| it.p50_us),
        error_p90: error(|it| it.p90_us),
        error_p95: error(|it| it.p95_us),
        error_p99: error(|it| it.p99_us),
        sampling_p50: sampling(|it| it.p50_us),
        sampling_p90: sampling(|it| it.p90_us),
        sampling_p95: sampling(|it| it.p95_us),
        sampling_p99: sampling(|it| it.p99_us),
        rounds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(count: u64, p50: f64, p99: f64) -> Quantiles {
        Quantiles { count, p50, p90: p50, p95: p50, p99, ..Quantiles::default() }
    }

    #[test]
    fn what_sampling_hides_is_told_apart_from_what_spans_do_not_see() {
        // A service that says 90 of the 100 µs that its users see; of the ten sampled requests none was one of the slow ones.
        let named = Named {
            requests: 1_000,
            service_time_us: times(1_000, 100.0, 1_000.0),
            sampled_us: times(10, 100.0, 200.0),
            ..Named::default()
        };
        let load = Outcome { sampled_total: 10, sent_total: 1_000, ..Outcome::default() };
        let mut longest: Longest = (0..9).map(|at| (at, 90_000)).collect();
        longest.insert(9, 180_000);
        let round = of_round(1, &load, &named, &longest).expect("there are spans");
        let found = finding("otel", ("result", "GET /r"), 0.01, vec![round]);
        let near = |range: Option<Range>, wanted: f64| {
            let value = range.expect("a number").value;
            assert!((value - wanted).abs() < 0.002, "{value} {wanted}");
        };
        near(found.error_p50, -0.1);
        near(found.sampling_p50, 0.0);
        near(found.error_p99, -0.82);
        near(found.sampling_p99, -0.8);
        assert_eq!((found.spans, found.requests, found.rounds.len()), (10, 1_000, 1));
        assert!((found.from_spans.p50_us - 90.0).abs() < 0.1 && found.from_clients.p50_us == 100.0);
    }

    #[test]
    fn of_all_requests_sampling_hides_nothing_and_of_unknown_ones_nobody_knows() {
        let named = Named { requests: 9, service_time_us: times(9, 100.0, 100.0), ..Named::default() };
        let longest = Longest::from([(1, 110_000)]);
        for (sampled, known) in [(9, true), (3, false)] {
            let load = Outcome { sampled_total: sampled, sent_total: 9, ..Outcome::default() };
            let round = of_round(1, &load, &named, &longest).expect("a span");
            let found = finding("otel", ("result", "GET /r"), 1.0, vec![round]);
            assert_eq!(found.sampling_p99.map(|it| it.value), known.then_some(0.0));
            assert!((found.error_p99.expect("a number").value - 0.1).abs() < 0.002);
        }
        assert_eq!(of_round(1, &Outcome::default(), &named, &Longest::new()), None, "no spans");
    }
}
