//! A study of several machines: whether a variant costs the same on each. Rounds are blocks, so what the machines themselves differ in cancels in
//! every round's difference.

use indexmap::IndexMap;
use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_stats::estimate::{Estimate, Level, hodges_lehmann};
use unladen_stats::strata::kruskal_wallis;

use super::evidence::{Evidence, number};
use super::findings::{Finding, RoundValue, VariantFindings};
use super::groups::MATTERS;
use super::{units, words};

/// The metric that machines are compared by.
pub(super) const METRIC: &str = "cpu_per_request";

/// Among studies whose machines do not differ, the share in which a variant is told of all the same.
const ALPHA: f64 = 0.01;

/// The machine of each round, in their order.
pub(super) type Machines<'a> = IndexMap<u32, &'a str>;

/// Of runs, as their rounds and machines; empty if there is one machine.
pub(super) fn machines<'a>(runs: impl Iterator<Item = (u32, &'a str)>) -> Machines<'a> {
    runs.filter(|(_, machine)| !machine.is_empty()).collect()
}

/// The rounds of a finding by machine, in the order of the machines' first rounds.
pub(super) fn rounds<'a>(finding: &Finding, machines: &Machines<'a>) -> IndexMap<&'a str, Vec<RoundValue>> {
    let mut rounds: IndexMap<&str, Vec<RoundValue>> = IndexMap::new();
    for round in &finding.rounds {
        if let Some(machine) = machines.get(&round.round) {
            rounds.entry(machine).or_default().push(*round);
        }
    }
    rounds
}

/// The relative difference in some rounds, with its interval if there are enough; `None` if a value is not above 0.
pub(super) fn estimate(rounds: &[RoundValue]) -> Option<Estimate> {
    Some(hodges_lehmann(&ratios(rounds)?, Level::P95).ok()?.relative())
}

/// Log-ratios.
fn ratios(rounds: &[RoundValue]) -> Option<Vec<f64>> {
    rounds.iter().map(|it| Some(it.ratio?.ln_1p())).collect()
}

/// What each machine says of every variant that does not cost the same on all of them, by the variant's name.
pub(super) fn disagreements(evidence: &Evidence<'_>, variants: &[VariantFindings]) -> IndexMap<String, String> {
    let machines = machines(evidence.folder.runs.iter().map(|run| (run.round, run.machine.as_str())));
    let of_variant = |variant: &VariantFindings| {
        let rounds = rounds(variant.finding(METRIC)?, &machines);
        Some((variant.name.clone(), disagreement(&rounds)?))
    };
    variants.iter().filter_map(of_variant).collect()
}

/// A notice for every variant that does not cost the same on all machines.
pub(super) fn notices(disagreements: IndexMap<String, String>) -> impl Iterator<Item = Notice> {
    disagreements.into_iter().map(|(variant, costs)| RoundsNotice::MachinesDisagree { variant, costs }.into())
}

/// What each machine says, if they disagree.
fn disagreement(rounds: &IndexMap<&str, Vec<RoundValue>>) -> Option<String> {
    let ratios: Vec<Vec<f64>> = rounds.values().map(|it| ratios(it)).collect::<Option<_>>()?;
    let estimates: Vec<f64> = rounds.values().map(|it| Some(estimate(it)?.value)).collect::<Option<_>>()?;
    let ends = [f64::min, f64::max].map(|of| estimates.iter().map(|it| it.ln_1p()).reduce(of));
    let [Some(least), Some(most)] = ends else { return None };
    if most - least <= MATTERS || kruskal_wallis(&ratios)? >= ALPHA {
        return None;
    }
    let one = |((machine, rounds), ratio): ((&&str, &Vec<RoundValue>), &f64)| {
        let percent = units::percent(*ratio, None).signed_with_unit(*ratio);
        format!("{percent} on {machine} ({} rounds)", number(rounds.len()))
    };
    Some(words::list(rounds.iter().zip(&estimates).map(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds_with(ratios: &[f64]) -> Vec<RoundValue> {
        let round = |(ratio, round): (&f64, u32)| RoundValue {
            round,
            baseline: 100.0,
            value: 100.0 * ratio,
            difference: 100.0 * (ratio - 1.0),
            ratio: Some(ratio - 1.0),
        };
        ratios.iter().zip(1..).map(round).collect()
    }

    #[test]
    fn machines_disagree_if_their_rounds_do_not_mix_and_it_matters() {
        let first = rounds_with(&[1.10, 1.11, 1.12, 1.13, 1.14, 1.15]);
        let of = |second: &[f64]| {
            disagreement(&IndexMap::from([("node-1", first.clone()), ("node-2", rounds_with(second))]))
        };
        let far = of(&[1.30, 1.31, 1.29, 1.32, 1.28, 1.33]);
        assert_eq!(far.as_deref(), Some("+12 % on node-1 (6 rounds) and +30 % on node-2 (6 rounds)"));
        assert_eq!(of(&[1.105, 1.115, 1.125, 1.135, 1.145, 1.10]), None, "they mix");
        assert_eq!(of(&[1.151, 1.152, 1.153, 1.151, 1.152, 1.153]), None, "by less than matters");
        assert_eq!(of(&[1.30, 1.31]), None, "two rounds may be chance");
    }
}
