//! A matrix over names: each value a line of one table. Over numbers, the doses have theirs.

use indexmap::IndexMap;
use unladen_judge::findings::{Finding, Findings, VariantFindings};
use unladen_study::matrix::{labelled, variant_of};

use super::view::{self, LadderTable};

/// The columns: what the service spends, and what its users feel, for which a terminal has room for one. Of each the first that can be
/// told for one of the values at least: a compiler may be at work in all the windows, and then what it leaves of the CPU can be told.
const COLUMNS: [&[&str]; 3] = [
    &["cpu_per_request", "cpu_without_jit"],
    &["rss"],
    &["throughput", "completion_time", "latency_p99", "throughput_mean", "latency_p90"],
];

/// A table for each variant that was run with several values, in the form of a ladder's.
pub(super) fn tables(findings: &Findings) -> Vec<LadderTable> {
    if findings.void.is_some() || !findings.doses.is_empty() {
        return Vec::new();
    }
    let mut variants: IndexMap<&str, Vec<&VariantFindings>> = IndexMap::new();
    for variant in findings.variants.iter().filter(|it| !it.cell.is_empty()) {
        variants.entry(variant_of(&variant.name)).or_default().push(variant);
    }
    variants.into_values().filter(|cells| cells.len() > 1).map(|cells| table(&cells)).collect()
}

fn table(cells: &[&VariantFindings]) -> LadderTable {
    let column = |metrics: &&[&str]| -> Option<&Finding> {
        let first = |find: for<'a> fn(&'a VariantFindings, &str) -> Option<&'a Finding>| {
            metrics.iter().find_map(|metric| cells.iter().find_map(|variant| find(variant, metric)))
        };
        first(shown).or_else(|| first(VariantFindings::finding))
    };
    let columns: Vec<&Finding> = COLUMNS.iter().filter_map(column).collect();
    let cell = |variant: &VariantFindings, metric: &str| {
        shown(variant, metric).map_or_else(|| view::NONE.to_owned(), |it| view::row(variant, it).ratio)
    };
    // What follows the name of the variant in its label.
    let values = |variant: &VariantFindings| labelled("", &variant.cell);
    let line = |variant: &&VariantFindings| {
        let name = view::clean(values(variant).trim_start_matches(", "));
        (name, columns.iter().map(|it| cell(variant, &it.metric)).collect::<Vec<_>>())
    };
    let label = cells.first().map_or("", |variant| variant.label.trim_end_matches(&values(variant)));
    LadderTable {
        title: format!("{}, side by side", view::clean(label)),
        columns: columns.iter().map(|it| it.title.clone()).collect(),
        lines: cells.iter().map(line).collect(),
    }
}

/// What was found of a metric, if anything can be said of it.
fn shown<'a>(variant: &'a VariantFindings, metric: &str) -> Option<&'a Finding> {
    let is_shown = |it: &&Finding| variant.refused.is_none() && it.refused.is_none() && it.difference.is_some();
    variant.finding(metric).filter(is_shown)
}
