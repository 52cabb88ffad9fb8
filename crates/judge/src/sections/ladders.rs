//! Ladders: a row for each step, a column for each metric that is told of it.

use crate::findings::{Cell, Column, Finding, Findings, LadderFindings, Number, Section, StepFindings, Topic};
use crate::units::Scale;

/// Out of band (the machine's), then in band (the user's).
const METRICS: [&str; 6] = ["cpu_per_request", "rss", "latency_p50", "latency_p99", "throughput", "completion_time"];

const NOTE: &str = "The first line is what the foot of the ladder takes; every other line is what its step adds, each with an \
                    interval of its own. CPU is out of band (the machine pays), latency in band (the user waits).";

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    findings.ladders.iter().map(section).collect()
}

fn section(ladder: &LadderFindings) -> Section {
    // Of a single step the whole would be the same once more.
    let whole = Some(&ladder.whole).filter(|_| ladder.steps.len() > 1);
    let column = |together: &Finding| {
        let scale = finest(ladder, together);
        let foot = Cell::from(Number::of(scale, together.baseline));
        let steps = ladder.steps.iter().chain(whole).map(|step| added(step, &together.metric, scale));
        (Column::on(scale, &together.title), [foot].into_iter().chain(steps).collect())
    };
    let columns = METRICS.iter().filter_map(|metric| ladder.whole.finding(metric)).map(column).collect();
    let steps = ladder.steps.iter().map(|step| format!("+ {}", step.label));
    let names = [ladder.foot_label.clone()].into_iter().chain(steps);
    let names = names.chain(whole.map(|_| "= all steps together".to_owned())).collect();
    let title = match ladder.name.as_str() {
        "" => "Where the cost comes from".to_owned(),
        name => format!("Where the cost of {name} comes from"),
    };
    Section { notes: vec![NOTE.to_owned()], ..Section::of_columns(Topic::Parts, title, "step", names, columns) }
}

fn added(step: &StepFindings, metric: &str, scale: Scale) -> Cell {
    let finding = step.finding(metric).filter(|_| step.refused.is_none());
    finding.map(|it| Number::found(scale, it)).into()
}

/// One scale for a column, so that steps can be compared at a glance: the unit of the whole, the digits that its narrowest interval bears.
fn finest(ladder: &LadderFindings, whole: &Finding) -> Scale {
    let of = |step: &StepFindings| step.finding(&whole.metric)?.range(false)?.half_width();
    let widths = ladder.steps.iter().chain([&ladder.whole]).filter_map(of);
    Scale::of(&whole.unit, whole.baseline.abs().max(whole.value.abs()), widths.reduce(f64::min))
}
