//! What the cluster admitted of a variant: how its pods differ from the baseline's.

use super::cells::noted;
use crate::findings::{Align, Column, Findings, PodDifference, Section, Topic, VariantFindings};

const NOTE: &str = "Pods as the API server admitted them, after all injectors. What unladen and the cluster add to every pod is left out.";

/// A table for each variant whose pods differ.
pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let differ = findings.variants.iter().filter(|variant| !variant.admitted.is_empty());
    noted(differ.map(section).collect(), NOTE)
}

fn section(variant: &VariantFindings) -> Section {
    let row = |it: &PodDifference| {
        vec![it.service.clone().into(), it.path.clone().into(), it.baseline.clone().into(), it.variant.clone().into()]
    };
    let wrapped = |title: &str| Column { align: Align::Wrapped, ..Column::left(title) };
    let columns = vec![Column::left("service"), Column::left("in the pod"), wrapped("baseline"), wrapped("variant")];
    let title = format!("What {} changes in the pods", variant.label);
    Section::new(Topic::Variants, title, columns, variant.admitted.iter().map(row).collect())
}
