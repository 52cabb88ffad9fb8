//! How much each notice weighs, and its stable name.

use super::{Notice, Severity};

impl Notice {
    /// Stable name, snake case: the `code` that the journal holds.
    #[must_use]
    pub fn code(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.get("code").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    }

    /// How much it weighs.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::ServiceDied { .. }
            | Self::SinkFailed { .. }
            | Self::DriverFailed { .. }
            | Self::ExpectedLogMissing { .. }
            | Self::SetupFailed { .. }
            | Self::CheckFailed { .. }
            | Self::PlaceboDiffers { .. }
            | Self::NoBaseline
            | Self::NothingCounts { .. }
            | Self::WorkDiffers { .. }
            | Self::Unsteady { .. }
            | Self::HostSaturated { .. }
            | Self::ImportedImpossible { .. }
            | Self::SpansDeclaredWrong { .. }
            | Self::LittleLawBroken { .. } => Severity::Refusal,
            Self::Throttled { .. }
            | Self::Steal { .. }
            | Self::OthersBusy { .. }
            | Self::DrainLimit { .. }
            | Self::Unwritten { .. }
            | Self::Killed { .. }
            | Self::ScrapeFailed { .. }
            | Self::ScrapeMissing { .. }
            | Self::JournalUnreadable { .. }
            | Self::RunNumberTwice { .. }
            | Self::NoRuns { .. }
            | Self::RunsVoid { .. }
            | Self::RunsSurplus { .. }
            | Self::TooFewRounds { .. }
            | Self::PlaceboUneven { .. }
            | Self::LittleLawStrained { .. }
            | Self::BaselineNotBare { .. }
            | Self::NotSteady { .. }
            | Self::MethodsDisagree { .. }
            | Self::BoughtWithLoss { .. }
            | Self::Imported { .. }
            | Self::LossUnread { .. }
            | Self::QueryFailed { .. }
            | Self::NumbersUnreadable { .. }
            | Self::StillCounting { .. }
            | Self::NothingCalibrated { .. }
            | Self::LedgerUnbalanced { .. } => Severity::Warning,
            Self::Stopped(stopped) => stopped.severity(),
            Self::NoCgroup { .. }
            | Self::LedgerByCounts
            | Self::SeparateDesign { .. }
            | Self::JournalTorn { .. }
            | Self::HostUnknown { .. }
            | Self::RunsRepeated { .. }
            | Self::NoPlacebo
            | Self::TooFewRequests { .. }
            | Self::SpansLearned { .. } => Severity::Note,
            Self::Load(notice) => notice.severity(),
            Self::Rounds(notice) => notice.severity(),
        }
    }
}
