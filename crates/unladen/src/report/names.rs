//! A matrix over names: each value a line of one table. Over numbers, the doses have theirs.

use indexmap::IndexMap;

use super::view::{self, LadderTable};
use crate::judge::findings::{Finding, Findings, VariantFindings};
use crate::study::matrix::{labelled, variant_of};

/// What the service spends.
const SPENT: [&str; 2] = ["cpu_per_request", "rss"];
/// What its users feel: the first that there is. A terminal has room for one.
const FELT: [&str; 3] = ["throughput", "completion_time", "latency_p99"];

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
    let first = |metric: &str| cells.iter().find_map(|variant| variant.finding(metric));
    let spent = SPENT.iter().filter_map(|metric| first(metric));
    let columns: Vec<&Finding> = spent.chain(FELT.iter().find_map(|metric| first(metric))).collect();
    let cell = |variant: &VariantFindings, metric: &str| match variant.finding(metric) {
        Some(it) if variant.refused.is_none() && it.refused.is_none() && it.difference.is_some() => {
            view::row(variant, it).ratio
        }
        _ => view::NONE.to_owned(),
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
