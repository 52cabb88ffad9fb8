//! A matrix over names: each value a row of one table. Over numbers, the doses have theirs.

use indexmap::IndexMap;
use unladen_study::matrix::{labelled, variant_of};

use crate::findings::{Column, Finding, Findings, Number, Section, Topic, VariantFindings};
use crate::units::Scale;

/// The columns: what the service spends, and what its users feel, for which a terminal has room for one. Of each the first that can be
/// told for one of the values at least: a compiler may be at work in all the windows, and then what it leaves of the CPU can be told.
const COLUMNS: [&[&str]; 3] = [
    &["cpu_per_request", "cpu_without_jit"],
    &["rss"],
    &["throughput", "completion_time", "latency_p99", "throughput_mean", "latency_p90"],
];

/// A table for each variant that was run with several values.
pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    if findings.void.is_some() || !findings.doses.is_empty() {
        return Vec::new();
    }
    let mut variants: IndexMap<&str, Vec<&VariantFindings>> = IndexMap::new();
    for variant in findings.variants.iter().filter(|it| !it.cell.is_empty()) {
        variants.entry(variant_of(&variant.name)).or_default().push(variant);
    }
    variants.into_values().filter(|variants| variants.len() > 1).map(|variants| section(&variants)).collect()
}

fn section(variants: &[&VariantFindings]) -> Section {
    let first = |metrics: &&[&str]| -> Option<&Finding> {
        let of = |find: for<'a> fn(&'a VariantFindings, &str) -> Option<&'a Finding>| {
            metrics.iter().find_map(|metric| variants.iter().find_map(|variant| find(variant, metric)))
        };
        of(shown).or_else(|| of(VariantFindings::finding))
    };
    let relative = |it: &Finding| Some(Number::estimate_with_unit(Scale::of_ratio(it), it.range(true)?));
    let column = |first: &Finding| {
        let cell = |variant: &&VariantFindings| shown(variant, &first.metric).and_then(relative).into();
        (Column::right(&first.title), variants.iter().map(cell).collect())
    };
    let columns = COLUMNS.iter().filter_map(first).map(column).collect();
    // What follows the name of the variant in its label.
    let values = |variant: &VariantFindings| labelled("", &variant.cell);
    let names = variants.iter().map(|it| values(it).trim_start_matches(", ").to_owned()).collect();
    let label = variants.first().map_or("", |it| it.label.trim_end_matches(&values(it)));
    Section::of_columns(Topic::Variants, format!("{label}, side by side"), "value", names, columns)
}

/// What was found of a metric, if anything can be said of it.
fn shown<'a>(variant: &'a VariantFindings, metric: &str) -> Option<&'a Finding> {
    let is_shown = |it: &&Finding| variant.refused.is_none() && it.refused.is_none() && it.difference.is_some();
    variant.finding(metric).filter(is_shown)
}
