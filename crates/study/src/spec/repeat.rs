//! When a round is done again: on grounds that know nothing of the variants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::units::Ratio;

/// A round is repeated as a whole if something else took too much of the machine in the window of one of its runs. The first
/// attempt is then discarded, whatever its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Repeat {
    /// Share of the machine's time that the hypervisor may take.
    pub steal: Ratio,
    /// Share of the machine's time that processes other than the study's and unladen's may use.
    pub others: Ratio,
    /// Maximum of repeated rounds, as a share of `rounds`: on a machine that is always busy, repeating does not help. `0%`:
    /// none.
    pub at_most: Ratio,
}

impl Repeat {
    /// How many rounds of so many may be done again.
    #[must_use]
    pub fn allowance(&self, rounds: u32) -> u32 {
        (f64::from(rounds) * self.at_most.0) as u32
    }
}

impl Default for Repeat {
    fn default() -> Self {
        // Simulated: with a third of rounds done again, hits of 8 % in 15 % of the runs cost half of the interval's width.
        Self { steal: Ratio(0.02), others: Ratio(0.10), at_most: Ratio(0.34) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_rounds_may_be_done_again() {
        let repeat = Repeat::default();
        assert_eq!([1, 2, 3, 6, 12, 24].map(|rounds| repeat.allowance(rounds)), [0, 0, 1, 2, 4, 8]);
        assert_eq!(Repeat { at_most: Ratio(0.0), ..repeat }.allowance(12), 0);
    }
}
