//! What a table prints as the verdict on a finding.

use serde::{Deserialize, Serialize};

use super::{Finding, VariantFindings, Verdict};

/// The verdict, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Nothing may be said, whatever the numbers.
    NoVerdict,
    /// There is no interval yet.
    TooFewRounds,
    /// What the interval says.
    #[serde(untagged)]
    Of(Verdict),
}

impl Judgement {
    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoVerdict => "no verdict",
            Self::TooFewRounds => "too few rounds",
            Self::Of(verdict) => verdict.words(),
        }
    }

    /// Whether there is a difference, to the better or the worse.
    #[must_use]
    pub const fn is_difference(self) -> bool {
        matches!(self, Self::Of(Verdict::Costs | Verdict::Saves))
    }
}

impl VariantFindings {
    /// The verdict on one of its findings.
    #[must_use]
    pub fn judgement(&self, finding: &Finding) -> Judgement {
        match (&self.refused, &finding.refused, finding.difference) {
            (None, None, Some(_)) => Judgement::Of(finding.verdict),
            (None, None, None) => Judgement::TooFewRounds,
            _ => Judgement::NoVerdict,
        }
    }
}
