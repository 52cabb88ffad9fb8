//! What is told of rounds as a whole: that they were done again, that some are unlike others, and how they shared their time.

use serde::{Deserialize, Serialize};

use super::Severity;

/// Of rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum RoundsNotice {
    /// Rounds that were done again, mostly because something else disturbed them.
    #[error("rounds repeated: {rounds}. {} first runs ({runs}, of all variants) are excluded, whatever their result", disturbed(*percent))]
    RoundsRepeated {
        /// How many rounds.
        rounds: u32,
        /// Runs that are left out.
        runs: u32,
        /// Steal and other load in the worst of them, percent of the machine.
        percent: f64,
    },
    /// Some rounds of a variant are unlike its others.
    #[error("in {rounds} {took}: no single number describes all rounds. Look at those runs")]
    RoundsApart {
        /// Rounds, and their runs.
        rounds: String,
        /// Who took how much in them, and in the others.
        took: String,
    },
    /// Alternating rounds in which no variant's run counts.
    #[error(
        "alternating rounds that do not count for any variant: {rounds} ({runs} runs). The first, round {round}: {reason}"
    )]
    RoundsLost {
        /// How many rounds.
        rounds: u32,
        /// How many runs they had.
        runs: u32,
        /// Number of the first of them.
        round: u32,
        /// Why the first run of it does not count.
        reason: String,
    },
    /// Rounds with runs of both designs.
    #[error(
        "rounds that mix both designs: {rounds}. The study was resumed with another `design`, and runs of different designs are not compared. Excluded: {runs} runs of the less frequent design"
    )]
    DesignsMixed {
        /// How many rounds.
        rounds: u32,
        /// Runs that are left out.
        runs: u32,
    },
    /// The tail of the latency is not that of the variant while others are alive beside it.
    #[error(
        "{metrics} not shown: in alternating rounds, background work of the other variants slows the slowest requests. Also measure each variant alone (`alone: 2s`)"
    )]
    NotInBlocks {
        /// Titles of the metrics.
        metrics: String,
    },
    /// Too few blocks of an alternating round count.
    #[error(
        "only {kept} of {of} super-blocks count: the load generator was late in {late}, something else used the machine in {disturbed}{compilers}. Stop other processes, or give the generator its own core",
        compilers = compilers(*compiling)
    )]
    BlocksLost {
        /// Super-blocks that count.
        kept: u32,
        /// Super-blocks.
        of: u32,
        /// Thrown away because the generator was late.
        late: u32,
        /// Thrown away because the machine was disturbed.
        disturbed: u32,
        /// Thrown away because the JIT compiler of a variant was unusually busy.
        #[serde(default)]
        compiling: u32,
    },
    /// Many super-blocks do not count.
    #[error("{percent:.0} % of the super-blocks were discarded, whichever variant was disturbed: {why}")]
    BlocksThrownAway {
        /// Share of all super-blocks, percent.
        percent: f64,
        /// For which reasons, and what to do.
        why: String,
    },
    /// Absolute CPU per request in blocks is not what it is alone.
    #[error("CPU per request of {variant} is {share} in blocks than alone{advice}")]
    BlocksUnlikeAlone {
        /// Variants, the baseline among them, for which the same advice holds: `a, b and c`.
        variant: String,
        /// `12 % [9, 15] higher`; of several variants `10 to 19 % higher`.
        share: String,
        /// What may explain it, and what to do.
        advice: String,
    },
    /// The first round was unlike what the variants are alone.
    #[error(
        "the variants used {share} CPU per request in blocks than alone.{} If that repeats, they are measured one after the other",
        blocks_ms.map(|ms| format!(" From here on they have blocks of {ms} ms, as caches are cold in the beginning of each.")).unwrap_or_default()
    )]
    UnlikeAlone {
        /// `26 % less`.
        share: String,
        /// Length of the blocks from then on, ms, if they are made longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocks_ms: Option<f64>,
    },
    /// The starts of a variant are of two kinds.
    #[error(
        "the starts of {variant} fall into two groups: {groups}. No single number describes its cost. Look at what differs between those runs ({runs})"
    )]
    StartsInGroups {
        /// Variant, or the baseline.
        variant: String,
        /// `5 rounds near 41.2 µs of CPU per request (+2 %), 7 near 58.1 µs (+43 %)`.
        groups: String,
        /// Runs of the smaller group.
        runs: String,
    },
    /// A variant does not cost the same on all machines of a merged study.
    #[error(
        "{variant} does not cost the same on all machines: {costs}. The interval is of all these rounds together; on another machine the cost may differ as much"
    )]
    MachinesDisagree {
        /// Variant.
        variant: String,
        /// `+12 % on node-1 (6 rounds), +31 % on node-2 (6 rounds)`.
        costs: String,
    },
    /// V8 takes the blocks of the other variants for a pause.
    #[error(
        "in Node.js ({services}), V8 shrinks the heap of a process that rests, as each does while the load is on other variants. Requests then cost up to twice as much for 10 to 20 s. For narrower intervals, start all variants with `node --no-memory-reducer`"
    )]
    MemoryReducer {
        /// Names of the services: `shop, gateway`.
        services: String,
    },
}

impl RoundsNotice {
    /// How much it weighs.
    pub(super) fn severity(&self) -> Severity {
        match self {
            Self::RoundsApart { .. }
            | Self::RoundsLost { .. }
            | Self::DesignsMixed { .. }
            | Self::BlocksThrownAway { .. }
            | Self::BlocksUnlikeAlone { .. }
            | Self::StartsInGroups { .. }
            | Self::MachinesDisagree { .. } => Severity::Warning,
            Self::BlocksLost { .. } => Severity::Refusal,
            Self::RoundsRepeated { .. }
            | Self::NotInBlocks { .. }
            | Self::UnlikeAlone { .. }
            | Self::MemoryReducer { .. } => Severity::Note,
        }
    }
}

/// What is said of super-blocks in which compilers were busy, if there are any.
fn compilers(super_blocks: u32) -> String {
    if super_blocks == 0 { String::new() } else { format!(", JIT compilers were unusually busy in {super_blocks}") }
}

/// How much of the machine something else used, if that is why.
fn disturbed(percent: f64) -> String {
    if percent < 0.5 {
        return "Their".to_owned();
    }
    format!("Something else used up to {percent:.0} % of the machine, so their")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notices::Notice;

    #[test]
    fn compilers_are_named_if_they_cost_super_blocks() {
        let lost =
            |compiling| RoundsNotice::BlocksLost { kept: 1, of: 9, late: 3, disturbed: 5 - compiling, compiling };
        assert!(lost(0).to_string().contains("used the machine in 5. Stop"), "{}", lost(0));
        let expected = "used the machine in 3, JIT compilers were unusually busy in 2. Stop";
        assert!(lost(2).to_string().contains(expected), "{}", lost(2));
        let old = r#"{"code":"blocks_lost","kept":1,"of":9,"late":3,"disturbed":5}"#;
        let notice: Notice = serde_json::from_str(old).expect("a notice of an older journal");
        assert_eq!((&notice, notice.severity()), (&lost(0).into(), Severity::Refusal));
    }

    #[test]
    fn only_a_machine_that_was_used_is_blamed_for_a_repetition() {
        let text = |percent| RoundsNotice::RoundsRepeated { rounds: 1, runs: 5, percent }.to_string();
        assert_eq!(
            text(83.2),
            "rounds repeated: 1. Something else used up to 83 % of the machine, so their first runs (5, of all variants) are excluded, whatever their result"
        );
        assert_eq!(
            text(0.1),
            "rounds repeated: 1. Their first runs (5, of all variants) are excluded, whatever their result"
        );
    }

    /// The journal and findings know one kind of notice.
    #[test]
    fn in_json_it_is_a_notice_like_any_other() {
        let notice = Notice::from(RoundsNotice::DesignsMixed { rounds: 1, runs: 2 });
        let json = serde_json::to_string(&notice).expect("JSON");
        assert_eq!(json, r#"{"code":"designs_mixed","rounds":1,"runs":2}"#);
        assert_eq!(serde_json::from_str::<Notice>(&json).expect("and back"), notice);
        assert_eq!((notice.code().as_str(), notice.severity()), ("designs_mixed", Severity::Warning));
    }
}
