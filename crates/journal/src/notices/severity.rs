//! How much a notice weighs.

use serde::{Deserialize, Serialize};

/// How much a notice weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Informs.
    Note,
    /// Asks for care.
    Warning,
    /// Takes the run or the study out of the verdict.
    Refusal,
}

impl Severity {
    /// As it stands in files, and for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Refusal => "refusal",
        }
    }
}
