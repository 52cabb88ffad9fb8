//! What sampled spans tell of latencies, beside what clients saw, as tables: one for each request whose span the study names.

use unladen_judge::findings::{Findings, Range, SampledFindings, SampledQuantiles};
use unladen_judge::units::{self, Scale};

use super::view::{self, LadderTable};

/// All tables, in the form of a ladder's: four lines for each variant.
pub(super) fn tables(findings: &Findings) -> Vec<LadderTable> {
    let mut requests: Vec<&str> = Vec::new();
    for sampled in &findings.sampled {
        if !requests.contains(&sampled.request.as_str()) {
            requests.push(&sampled.request);
        }
    }
    requests.into_iter().map(|request| table(findings, request)).collect()
}

type Of = fn(&SampledQuantiles) -> f64;

/// Quantiles by their names.
const COLUMNS: [(&str, Of); 4] =
    [("p50", |it| it.p50_us), ("p90", |it| it.p90_us), ("p95", |it| it.p95_us), ("p99", |it| it.p99_us)];

fn table(findings: &Findings, request: &str) -> LadderTable {
    let all: Vec<&SampledFindings> = findings.sampled.iter().filter(|it| it.request == request).collect();
    let both = || all.iter().flat_map(|it| [&it.from_clients, &it.from_spans]);
    let scales = COLUMNS.map(|(_, of)| Scale::of("us", both().map(of).fold(0.0, f64::max), None));
    let times = |count: u64, of_all: &SampledQuantiles| -> Vec<String> {
        let cells = COLUMNS.iter().zip(scales).map(|((_, of), scale)| scale.number(of(of_all)));
        std::iter::once(units::count(count)).chain(cells).collect()
    };
    let mut lines = Vec::new();
    for it in &all {
        lines.push((view::label(findings, &it.variant), times(it.requests, &it.from_clients)));
        lines.push((format!("  {} in spans", units::share(it.ratio)), times(it.spans, &it.from_spans)));
        lines.push(("  off by, %".to_owned(), off([it.error_p50, it.error_p90, it.error_p95, it.error_p99])));
        let sampling = [it.sampling_p50, it.sampling_p90, it.sampling_p95, it.sampling_p99];
        lines.push(("  of it by sampling, %".to_owned(), off(sampling)));
    }
    let heads = COLUMNS.iter().zip(scales).map(|((name, _), scale)| format!("{name}, {}", scale.unit()));
    LadderTable {
        title: format!("What sampling hides of {}", view::shortened(&view::clean(request), 40)),
        columns: std::iter::once("requests".to_owned()).chain(heads).collect(),
        lines,
    }
}

/// Medians over the rounds; where those differ, with the lowest and the highest: by chance a sample errs now up, now down, and the median
/// of that is about nothing.
fn off(ranges: [Option<Range>; 4]) -> Vec<String> {
    let cell = |range: Option<Range>| {
        let Some(range) = range else { return view::NONE.to_owned() };
        let scale = units::percent(range.magnitude(), range.half_width());
        let [value, low, high] = [range.value, range.low, range.high].map(|it| scale.signed(it));
        if range.half_width().is_none() { value } else { format!("{value} [{low}, {high}]") }
    };
    std::iter::once(String::new()).chain(ranges.into_iter().map(cell)).collect()
}
