//! What sampled spans tell of latencies, beside what clients saw: a table for each request whose span the study names.

use super::cells::{distinct, label, noted};
use crate::findings::{Cell, Column, Findings, Number, Range, SampledFindings, SampledQuantiles, Section, Topic};
use crate::units::{self, Scale};

pub(super) type Of = fn(&SampledQuantiles) -> f64;

/// Quantiles by their names.
pub(super) const COLUMNS: [(&str, Of); 4] =
    [("p50", |it| it.p50_us), ("p90", |it| it.p90_us), ("p95", |it| it.p95_us), ("p99", |it| it.p99_us)];

const NOTE: &str = "Of each variant with spans: what its clients saw of all requests, from sent to answered; what the spans of the \
                    sampled ones tell; by how much that is off, and how much of it is by sampling alone (the rest is outside of the \
                    service). Medians over the rounds, in brackets the lowest and the highest; each round is in findings.json.";

/// Four rows for each variant.
pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let requests = distinct(findings.sampled.iter().map(|it| &it.request));
    noted(requests.into_iter().map(|request| section(findings, request)).collect(), NOTE)
}

fn section(findings: &Findings, request: &str) -> Section {
    let all = || findings.sampled.iter().filter(|it| it.request == request);
    let both = || all().flat_map(|it| [&it.from_clients, &it.from_spans]);
    let scales = COLUMNS.map(|(_, of)| Scale::of("us", both().map(of).fold(0.0, f64::max), None));
    let times = |name: String, count: u64, quantiles: &SampledQuantiles| -> Vec<Cell> {
        let times = COLUMNS.iter().zip(scales).map(|((_, of), scale)| Number::of(scale, of(quantiles)).into());
        [name.into(), Number::count(count).into()].into_iter().chain(times).collect()
    };
    let rows = |it: &SampledFindings| {
        let in_spans = format!("  {} in spans", units::share(it.ratio));
        [
            times(label(findings, &it.variant).to_owned(), it.requests, &it.from_clients),
            times(in_spans, it.spans, &it.from_spans),
            off("  off by, %", it.errors()),
            off("  of it by sampling, %", it.sampling()),
        ]
    };
    let times = COLUMNS.iter().zip(scales).map(|((name, _), scale)| Column::on(scale, *name));
    let columns = [Column::left("variant"), Column::right("requests")].into_iter().chain(times).collect();
    let title = format!("What sampling hides of {request}");
    Section::new(Topic::Sampled, title, columns, all().flat_map(rows).collect())
}

/// Medians over the rounds; where those differ, with the lowest and the highest: by chance a sample errs now up, now down, and the median
/// of that is about nothing.
fn off(name: &str, ranges: [Option<Range>; 4]) -> Vec<Cell> {
    let number = |range: Range| {
        let scale = units::percent(range.magnitude(), range.half_width());
        match range.half_width() {
            Some(_) => Number::estimate(scale, range),
            None => Number::difference(scale, range.value),
        }
    };
    let names = [name, ""].map(|it| it.to_owned().into());
    names.into_iter().chain(ranges.map(|range| range.map(number).into())).collect()
}
