//! CPU per request over the time of alternating rounds: the machine changes its pace under all variants at once.

use std::collections::BTreeMap;

use serde::Serialize;
use unladen_journal::record::RunRecord;

use super::super::evidence::Evidence;
use super::super::values::pace;
use super::parts::short;

/// One alternating round.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PaceRound {
    /// Round, from 1.
    pub round: u32,
    /// The middles of the stretches, seconds since the start of its first measured block.
    pub t_s: Vec<f64>,
    /// The variants that took turns, the baseline first.
    #[serde(rename = "arms")]
    pub variants: Vec<VariantPace>,
}

/// One variant in a round: a value for each stretch, `null` where it has none.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct VariantPace {
    /// Key of the variant.
    pub name: String,
    /// CPU per request in its blocks, µs.
    pub cpu_us: Vec<Option<f64>>,
    /// The same over that of its baseline in the same stretch, less 1; `null` for a baseline.
    pub ratio: Option<Vec<Option<f64>>>,
}

/// All alternating rounds in their order.
pub(super) fn read(evidence: &Evidence<'_>) -> Vec<PaceRound> {
    let mut rounds: BTreeMap<u32, PaceRound> = BTreeMap::new();
    for variant in evidence.all_variants() {
        let baseline = evidence.baseline_of(variant);
        for (&number, run) in &variant.valid {
            let Some(blocks) = &run.blocks else { continue };
            let round = rounds.entry(number).or_insert_with(|| PaceRound {
                round: number,
                t_s: blocks.points.iter().map(|point| short(point.t_s)).collect(),
                variants: Vec::new(),
            });
            let cpu_us = course(run);
            let bare = baseline.valid.get(&number).filter(|_| baseline.name != variant.name).map(|bare| course(bare));
            let ratio = bare.map(|bare| {
                let over = |(here, bare): (&Option<f64>, &Option<f64>)| Some(short((*here)? / (*bare)? - 1.0));
                cpu_us.iter().zip(&bare).map(over).collect()
            });
            let cpu_us = cpu_us.into_iter().map(|it| it.map(short)).collect();
            round.variants.push(VariantPace { name: variant.name.clone(), cpu_us, ratio });
        }
    }
    rounds.into_values().filter(|round| !round.t_s.is_empty()).collect()
}

/// Stretches are the same for all runs of a round.
fn course(run: &RunRecord) -> Vec<Option<f64>> {
    run.blocks.iter().flat_map(|blocks| &blocks.points).map(pace).collect()
}
