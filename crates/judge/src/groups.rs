//! Variants whose starts are of two kinds: told, never left out.
//!
//! Looked at is CPU per request over that of the baseline in the same round, so that a machine of two speeds is not taken for two kinds of
//! starts. If the same rounds part in several variants, it is the baseline that has two kinds.

use std::collections::BTreeSet;

use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_journal::record::{Design, RunRecord};
use unladen_stats::apart::apart;
use unladen_stats::estimate::median;
use unladen_stats::groups::groups;

use super::evidence::{Evidence, VariantRuns, number};
use super::units::{self, Scale};
use super::{so_far, words};

/// How far apart, as a log-ratio, groups must be for anybody to care.
pub(super) const MATTERS: f64 = 0.03;

/// A variant in two groups of rounds.
struct SplitRounds<'e, 'a> {
    variant: &'e VariantRuns<'a>,
    /// Cheaper rounds, dearer rounds.
    groups: [BTreeSet<u32>; 2],
}

/// A notice for every variant whose starts fall into two groups, unless it `is_explained` by something else.
pub(super) fn notices(evidence: &Evidence<'_>, is_explained: impl Fn(&str) -> bool) -> Vec<Notice> {
    let variants = evidence.placebo.iter().chain(&evidence.variants).filter(|it| !is_explained(&it.name));
    let split: Vec<SplitRounds<'_, '_>> =
        variants.filter_map(|variant| split(evidence.baseline_of(variant), variant)).collect();
    let mut notices: Vec<Notice> = Vec::new();
    for it in &split {
        let alike = |other: &&SplitRounds<'_, '_>| {
            let reversed = [&other.groups[1], &other.groups[0]] == it.groups.each_ref();
            other.variant.against() == it.variant.against() && (other.groups == it.groups || reversed)
        };
        let notice = if split.iter().filter(alike).count() > 1 {
            // What the others cost more the baseline costs less.
            let [cheap, dear] = it.groups.each_ref();
            notice(evidence.baseline_of(it.variant), None, [dear, cheap])
        } else {
            notice(it.variant, Some(evidence.baseline_of(it.variant)), it.groups.each_ref())
        };
        notices.extend(notice.filter(|notice| !notices.contains(notice)));
    }
    notices
}

/// The rounds of a variant in two groups, if they are.
fn split<'e, 'a>(baseline: &VariantRuns<'a>, variant: &'e VariantRuns<'a>) -> Option<SplitRounds<'e, 'a>> {
    let pairs: Vec<(u32, &RunRecord, f64)> = variant
        .valid
        .iter()
        .filter_map(|(round, run)| Some((*round, *run, ratio(baseline.valid.get(round)?, run)?)))
        .collect();
    // The two designs may have different absolute numbers; that is no property of the starts.
    let of = |design: Design| pairs.iter().filter(|(_, run, _)| run.design == design).count();
    let most = if of(Design::Alternating) >= of(Design::Separate) { Design::Alternating } else { Design::Separate };
    let pairs: Vec<(u32, f64)> =
        pairs.iter().filter(|(_, run, _)| run.design == most).map(|(round, _, ratio)| (*round, *ratio)).collect();
    let (rounds, ratios): (Vec<u32>, Vec<f64>) = pairs.into_iter().unzip();
    if !apart(&ratios).is_empty() {
        // Told as rounds unlike the others.
        return None;
    }
    let found = groups(&ratios.iter().map(|ratio| ratio.ln()).collect::<Vec<_>>(), MATTERS)?;
    let set = |places: &[usize]| places.iter().map(|&at| rounds[at]).collect();
    Some(SplitRounds { variant, groups: [set(&found.lower), set(&found.upper)] })
}

fn ratio(bare: &RunRecord, here: &RunRecord) -> Option<f64> {
    Some(so_far::cpu_us_per_request(here)? / so_far::cpu_us_per_request(bare)?).filter(|ratio| *ratio > 0.0)
}

/// What to say of a variant, and by how much it differs from what it is held against.
fn notice(
    variant: &VariantRuns<'_>,
    baseline: Option<&VariantRuns<'_>>,
    groups: [&BTreeSet<u32>; 2],
) -> Option<Notice> {
    let typical = |rounds: &BTreeSet<u32>, value: &dyn Fn(u32) -> Option<f64>| {
        median(&rounds.iter().filter_map(|round| value(*round)).collect::<Vec<_>>())
    };
    let one = |rounds: &BTreeSet<u32>| {
        let took = typical(rounds, &|round| so_far::cpu_us_per_request(variant.valid.get(&round)?))?;
        let more = baseline.and_then(|bare| {
            let more = typical(rounds, &|round| ratio(bare.valid.get(&round)?, variant.valid.get(&round)?))? - 1.0;
            Some(format!(" ({})", units::percent(more, None).signed_with_unit(more)))
        });
        Some((number(rounds.len()), Scale::of("us", took, None).with_unit(took), more.unwrap_or_default()))
    };
    let (first, second) = (one(groups[0])?, one(groups[1])?);
    let fewer = if groups[0].len() <= groups[1].len() { groups[0] } else { groups[1] };
    let runs = fewer.iter().filter_map(|round| variant.valid.get(round)).map(|run| run.run.to_string());
    let groups = format!(
        "{} rounds near {} of CPU per request{}, {} near {}{}",
        first.0, first.1, first.2, second.0, second.1, second.2
    );
    Some(RoundsNotice::StartsInGroups { variant: variant.name.clone(), groups, runs: words::list(runs) }.into())
}
