//! Ladders: what each step from the bare service to the full instrumentation adds.
//!
//! A step is compared with the one below it within each round, as a variant is with the baseline: the increment has an
//! interval of its own, which the difference of two intervals would not be. The increments are Hodges-Lehmann estimates
//! each and need not add up to the whole exactly; the whole is therefore measured too, foot against top.

use std::borrow::Cow;

use super::compare::{Comparison, compare};
use super::evidence::{Evidence, VariantRuns};
use super::findings::{Finding, LadderFindings, StepFindings};
use super::metrics::Metric;
use super::units::Scale;
use super::words;

/// Every ladder of the study whose steps have been run. `refused` says why nothing may be said of a variant, by its key.
pub(super) fn ladders(
    evidence: &Evidence<'_>,
    metrics: &[Cow<'static, Metric>],
    refused: impl Fn(&str) -> Option<String>,
) -> Vec<LadderFindings> {
    let variant = |name: &String| evidence.all_variants().find(|variant| variant.name == *name);
    let mut ladders = Vec::new();
    for (name, steps) in evidence.folder.study.ladder.each() {
        let variants: Vec<&VariantRuns<'_>> = steps.iter().filter_map(variant).collect();
        let (Some(foot), Some(top)) = (variants.first(), variants.last()) else { continue };
        // One step from its own baseline is what the variant's table says already.
        if variants.len() < 2 || variants.len() == 2 && evidence.baseline_of(top).name == foot.name {
            continue;
        }
        let step = |from: &VariantRuns<'_>, to: &VariantRuns<'_>| step(evidence, metrics, from, to, &refused);
        let steps: Vec<StepFindings> = variants.windows(2).map(|pair| step(pair[0], pair[1])).collect();
        let whole = step(foot, top);
        ladders.push(LadderFindings {
            name: name.to_owned(),
            foot: foot.name.clone(),
            foot_label: foot.label.clone(),
            words: sentence(name, &steps, &whole),
            steps,
            whole,
        });
    }
    ladders
}

fn step(
    evidence: &Evidence<'_>,
    metrics: &[Cow<'static, Metric>],
    from: &VariantRuns<'_>,
    to: &VariantRuns<'_>,
    refused: &impl Fn(&str) -> Option<String>,
) -> StepFindings {
    let study = &evidence.folder.study;
    let mut comparisons: Vec<Comparison> =
        metrics.iter().filter_map(|metric| compare(study, metric, None, from, to)).collect();
    comparisons.retain(|comparison| !comparison.is_zero());
    comparisons.iter_mut().for_each(Comparison::say);
    let mut metrics: Vec<Finding> = comparisons.into_iter().map(|comparison| comparison.finding).collect();
    let refused = [&to.name, &from.name].into_iter().find_map(|name| refused(name));
    if let Some(reason) = &refused {
        metrics.iter_mut().for_each(|finding| finding.take_verdict(reason));
    }
    StepFindings { from: from.name.clone(), to: to.name.clone(), label: to.label.clone(), refused, metrics }
}

/// `Of the CPU per request, attached adds 9.1 µs [8.0, 10.2], export 22.0 µs [20.1, 23.9]; all steps together 76.3 µs
/// [73.1, 79.5].`
fn sentence(name: &str, steps: &[StepFindings], whole: &StepFindings) -> String {
    let head = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let parts: Vec<String> = steps.iter().map(|step| format!("{} {}", step.label, added(step))).collect();
    format!("{head}CPU per request by step: {}; together {}.", words::list(parts.into_iter()), added(whole))
}

/// `+9.1 µs [8.0, 10.2]`.
fn added(step: &StepFindings) -> String {
    if let Some(reason) = &step.refused {
        return format!("unknown ({reason})");
    }
    let cpu = step.finding("cpu_per_request");
    let Some(cpu) = cpu else { return "unknown (not measured)".to_owned() };
    if cpu.difference.is_none() {
        let scale = Scale::of_values(cpu);
        return format!("{} (too few rounds for an interval)", scale.signed_with_unit(cpu.value - cpu.baseline));
    }
    words::estimate(cpu, false)
}
