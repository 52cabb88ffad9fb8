//! Whether a block shows what users see: CPU per request in the blocks of a run over that of the stretch in which its variant had the load for
//! itself, on the same processes.
//!
//! A block is short. If caches, branch predictors or a heap are cold at its start, every request in it is dearer, on both sides of a
//! comparison: differences may still agree, but the absolute numbers are those of another service. Asked are the last blocks, because a process
//! that is still warming up takes less with every second. What a JIT compiler takes is in both parts and is known for them together only, so
//! it is not taken out.

use indexmap::IndexMap;
use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_journal::record::RunRecord;
use unladen_stats::estimate::{Level, hodges_lehmann};

use super::evidence::{Evidence, VariantRuns};
use super::findings::Range;
use super::{units, values, words};

/// By how much the two may differ.
const TOLERANCE: f64 = 0.03;

/// CPU per request in the last blocks over that alone, less 1, with its 95 % interval over the rounds; `None` with too few of them.
pub(super) fn of(variant: &VariantRuns<'_>) -> Option<Range> {
    let ratios: Vec<f64> = variant.valid.values().filter_map(|run| log_ratio(run)).collect();
    Range::of(&hodges_lehmann(&ratios, Level::P95).ok()?.relative())
}

fn log_ratio(run: &RunRecord) -> Option<f64> {
    Some(run.blocks.as_ref()?.against_alone()?.ln())
}

/// Warnings for the variants of which the two surely differ: one for all that have the same explanation.
pub(super) fn notices(evidence: &Evidence<'_>) -> Vec<Notice> {
    let mut by_advice: IndexMap<&str, Vec<(&str, Range)>> = IndexMap::new();
    for variant in evidence.all_variants() {
        let Some(ratio) = of(variant).filter(|it| it.low > TOLERANCE || it.high < -TOLERANCE) else { continue };
        let compiles = variant.valid.values().any(|run| values::compiling_ns(run, None).is_some_and(|ns| ns > 0.0));
        by_advice.entry(advice(ratio, compiles)).or_default().push((&variant.name, ratio));
    }
    let notice = |(advice, variants): (&str, Vec<(&str, Range)>)| {
        Notice::from(RoundsNotice::BlocksUnlikeAlone {
            variant: words::list(variants.iter().map(|(name, _)| (*name).to_owned())),
            share: shares(&variants),
            advice: advice.to_owned(),
        })
    };
    by_advice.into_iter().map(notice).collect()
}

/// `12.0 % [9.1, 15.2] higher`; of several variants `10 to 19 % higher`.
fn shares(variants: &[(&str, Range)]) -> String {
    let values = || variants.iter().map(|(_, ratio)| ratio.value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    match variants {
        [(_, only)] => share(*only),
        _ if least > 0.0 => format!("{:.0} to {:.0} % higher", 100.0 * least, 100.0 * most),
        _ if most < 0.0 => format!("{:.0} to {:.0} % lower", -100.0 * most, -100.0 * least),
        _ => format!("{:.0} % lower to {:.0} % higher", -100.0 * least, 100.0 * most),
    }
}

/// `12.0 % [9.1, 15.2] higher`.
fn share(ratio: Range) -> String {
    let (more, [low, high]) =
        if ratio.low > 0.0 { ("higher", [ratio.low, ratio.high]) } else { ("lower", [-ratio.high, -ratio.low]) };
    let scale = units::percent(ratio.magnitude(), ratio.half_width());
    format!("{} [{}, {}] {more}", scale.with_unit(ratio.value.abs()), scale.number(low), scale.number(high))
}

/// What may explain it, and what to do.
fn advice(ratio: Range, compiles: bool) -> &'static str {
    match (compiles, ratio.low > 0.0) {
        (true, _) => {
            ". A JIT compiler was active in both, and its share cannot be separated here: heat up for longer (`preheat`)"
        }
        (false, true) => ": blocks start with cold caches. Use longer blocks (`block`), or `design: separate`",
        (false, false) => {
            ". Differences between variants come from the blocks; for absolute numbers use `design: separate`"
        }
    }
}
