//! CPU that services take while no variant has a load.

use crate::findings::{Cell, Column, Finding, Findings, Number, Section, Topic, VariantFindings};
use crate::units::Scale;

const NOTE: &str = "CPU per second while no variant has a load: what timers and threads that poll take, whether or not anybody asks \
                    the service anything.";

/// Cores below which nothing is worth a table: half a millisecond in a second.
const NOTHING: f64 = 0.0005;

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let mut all: Vec<(&VariantFindings, &Finding)> = Vec::new();
    for variant in &findings.variants {
        all.extend(variant.metrics.iter().filter(|it| it.metric == "idle_cpu").map(|it| (variant, it)));
    }
    let most = all.iter().map(|(_, it)| f64::max(it.baseline, it.value)).fold(0.0, f64::max);
    if most < NOTHING {
        return Vec::new();
    }
    let narrowest = all.iter().filter_map(|(_, it)| it.range(false)?.half_width()).reduce(f64::min);
    // In thousandths of a core also where it is many of them.
    let scale = Scale::of("cores", most.min(0.099), narrowest);
    let row = |(variant, it): &(&VariantFindings, &Finding)| {
        vec![
            variant.label.clone().into(),
            it.service.clone().unwrap_or_else(|| "all".to_owned()).into(),
            Number::of(scale, it.baseline).into(),
            Number::of(scale, it.value).into(),
            Number::found(scale, it).into(),
            Cell::Verdict(variant.judgement(it)),
        ]
    };
    let numbers = ["baseline", "value", "difference"].map(|title| Column::on(scale, title));
    let names = ["variant", "service"].map(Column::left).into_iter();
    let columns = names.chain(numbers).chain([Column::left("verdict")]).collect();
    let rows = all.iter().map(row).collect();
    let title = "Idle CPU by service".to_owned();
    vec![Section { notes: vec![NOTE.to_owned()], ..Section::new(Topic::Variants, title, columns, rows) }]
}
