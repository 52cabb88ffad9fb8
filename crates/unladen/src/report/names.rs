//! A matrix over names: each value a line of one table. Over numbers, the doses have theirs.

use indexmap::IndexMap;

use super::view::{self, LadderTable};
use crate::judge::findings::{Finding, Findings, VariantFindings};

/// What the service spends.
const SPENT: [&str; 2] = ["cpu_per_request", "rss"];
/// What its users feel: the first that there is. A terminal has room for one.
const FELT: [&str; 3] = ["throughput", "completion_time", "latency_p99"];

/// A table for each variant that was run with several values, in the form of a ladder's.
pub(super) fn tables(findings: &Findings) -> Vec<LadderTable> {
    if findings.void.is_some() || !findings.doses.is_empty() {
        return Vec::new();
    }
    let mut variants: IndexMap<&str, Vec<(String, &VariantFindings)>> = IndexMap::new();
    for variant in &findings.variants {
        if let Some((key, values)) = variant.name.split_once('@') {
            let values = view::clean(values).replace('=', " ").replace(',', ", ");
            variants.entry(key).or_default().push((values, variant));
        }
    }
    variants.into_values().filter(|cells| cells.len() > 1).map(|cells| table(&cells)).collect()
}

fn table(cells: &[(String, &VariantFindings)]) -> LadderTable {
    let first = |metric: &str| cells.iter().find_map(|(_, variant)| variant.finding(metric));
    let spent = SPENT.iter().filter_map(|metric| first(metric));
    let columns: Vec<&Finding> = spent.chain(FELT.iter().find_map(|metric| first(metric))).collect();
    let cell = |variant: &VariantFindings, metric: &str| match variant.finding(metric) {
        Some(it) if variant.refused.is_none() && it.refused.is_none() && it.difference.is_some() => {
            view::row(variant, it).ratio
        }
        _ => view::NONE.to_owned(),
    };
    let line = |(values, variant): &(String, &VariantFindings)| {
        (values.clone(), columns.iter().map(|it| cell(variant, &it.metric)).collect::<Vec<_>>())
    };
    let label = cells.first().map_or_else(String::new, |(values, variant)| {
        let label = view::clean(&variant.label);
        label.strip_suffix(&format!(", {values}")).unwrap_or(&label).to_owned()
    });
    LadderTable {
        title: format!("{label}, side by side"),
        columns: columns.iter().map(|it| it.title.clone()).collect(),
        lines: cells.iter().map(line).collect(),
    }
}
