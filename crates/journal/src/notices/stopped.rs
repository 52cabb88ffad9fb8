//! Why a study stopped that goes on until something else than a number of rounds ends it, and how far it had come.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Severity;
use crate::units::Time;

/// Fewest rounds that have an interval.
pub const MIN_ROUNDS: u32 = 6;

/// How narrow the intervals of one metric are, and how narrow they are to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Precision {
    /// Title of the metric: `CPU per request`.
    pub metric: String,
    /// Half-width that is asked for: `1 %`.
    pub asked: String,
    /// Half-width of the widest interval: `1.4 %`; `None`: a variant has none yet.
    pub reached: Option<String>,
    /// Name of the variant whose interval is the widest; of one that has none yet.
    pub variant: String,
    /// Whether that is narrow enough.
    pub is_enough: bool,
}

/// What the judge sees of a study between two rounds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Look {
    /// Rounds that were begun.
    #[serde(default)]
    pub begun: u32,
    /// Those of them in which every variant has a run that counts.
    pub rounds: u32,
    /// Of every metric that the study goes on for, the one that is farthest from what is asked for first; empty if it goes on for none.
    pub precisions: Vec<Precision>,
    /// About how many rounds all of it takes; `None`: not known yet, or more than can be planned.
    pub rounds_needed: Option<u32>,
}

impl Look {
    /// `17 rounds`; `18 rounds, 17 of them complete` where not every variant has a run that counts in each.
    #[must_use]
    pub fn rounds_in_words(&self) -> String {
        let begun = self.begun.max(self.rounds);
        let rounds = if begun == 1 { "1 round".to_owned() } else { format!("{begun} rounds") };
        if begun == self.rounds { rounds } else { format!("{rounds}, {} of them complete", self.rounds) }
    }

    /// Whether all intervals are as narrow as asked for.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        !self.precisions.is_empty() && self.precisions.iter().all(|it| it.is_enough)
    }

    /// `known to ±1.4 %, target ±1 %`: the metric that is farthest from it.
    #[must_use]
    pub fn in_short(&self) -> Option<String> {
        let first = self.precisions.first()?;
        let reached = first.reached.as_ref()?;
        Some(format!("known to ±{reached}, target ±{}", first.asked))
    }
}

/// What ended a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// All intervals were narrow enough.
    Width,
    /// There was no time for another round.
    Time,
    /// These were the most rounds.
    Rounds,
}

/// Why and when a study stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// Why.
    pub by: StoppedBy,
    /// The limit of time, seconds; `None`: there was none.
    pub at_most_s: Option<f64>,
    /// How far it had come.
    #[serde(flatten)]
    pub look: Look,
}

impl Stopped {
    /// What was asked for and was not reached asks for care.
    #[must_use]
    pub fn severity(&self) -> Severity {
        let reached = self.look.rounds >= MIN_ROUNDS && self.look.precisions.iter().all(|it| it.is_enough);
        if reached { Severity::Note } else { Severity::Warning }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = self.look.rounds_in_words();
        match self.by {
            StoppedBy::Width => write!(f, "stopped after {rounds}")?,
            StoppedBy::Rounds => write!(f, "stopped after {rounds}, the most that the study allows")?,
            StoppedBy::Time => {
                write!(
                    f,
                    "stopped at the time limit of {}, after {rounds}",
                    in_words(self.at_most_s.unwrap_or_default())
                )?;
            }
        }
        if self.look.rounds < MIN_ROUNDS {
            let remedy = match self.by {
                StoppedBy::Time => "Raise `at_most`, or shorten `window` and `warmup`",
                _ => "Raise `rounds`",
            };
            return write!(f, ": an interval needs {MIN_ROUNDS} rounds. {remedy}");
        }
        let clauses: Vec<String> = self.look.precisions.iter().map(Precision::in_words).collect();
        if !clauses.is_empty() {
            write!(f, ": {}", clauses.join("; "))?;
        }
        Ok(())
    }
}

impl Precision {
    fn in_words(&self) -> String {
        let Self { metric, asked, variant, .. } = self;
        match (&self.reached, self.is_enough) {
            (Some(reached), true) => {
                format!("every interval of {metric} is within ±{reached} (target: ±{asked})")
            }
            (Some(reached), false) => {
                format!("{metric} is known to ±{reached} (target: ±{asked}; the widest interval is that of {variant})")
            }
            (None, true) => format!("there is nothing to compare in {metric}"),
            (None, false) => format!("{metric} of {variant} has no interval (target: ±{asked})"),
        }
    }
}

/// `10 min`, `90 s`.
#[must_use]
pub fn in_words(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    if minutes >= 2.0 && minutes.fract() == 0.0 {
        format!("{minutes} min")
    } else if seconds.fract() == 0.0 {
        format!("{seconds} s")
    } else {
        Time::seconds(seconds).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(by: StoppedBy, rounds: u32, precisions: Vec<Precision>) -> Stopped {
        Stopped { by, at_most_s: Some(600.0), look: Look { rounds, precisions, ..Look::default() } }
    }

    fn cpu(reached: Option<&str>, is_enough: bool) -> Precision {
        Precision {
            metric: "CPU per request".into(),
            asked: "1 %".into(),
            reached: reached.map(str::to_owned),
            variant: "otel".into(),
            is_enough,
        }
    }

    #[test]
    fn what_a_reader_is_told() {
        for (stopped, severity, words) in [
            (
                stopped(StoppedBy::Width, 9, vec![cpu(Some("0.96 %"), true)]),
                Severity::Note,
                "stopped after 9 rounds: every interval of CPU per request is within ±0.96 % (target: ±1 %)",
            ),
            (
                stopped(StoppedBy::Time, 17, vec![cpu(Some("2.3 %"), false)]),
                Severity::Warning,
                "stopped at the time limit of 10 min, after 17 rounds: CPU per request is known to ±2.3 % (target: ±1 %; the widest interval is that of otel)",
            ),
            (
                stopped(StoppedBy::Rounds, 200, vec![cpu(Some("2.3 %"), false)]),
                Severity::Warning,
                "stopped after 200 rounds, the most that the study allows: CPU per request is known to ±2.3 % (target: ±1 %; the widest interval is that of otel)",
            ),
            (
                stopped(StoppedBy::Time, 17, vec![]),
                Severity::Note,
                "stopped at the time limit of 10 min, after 17 rounds",
            ),
            (
                stopped(StoppedBy::Time, 4, vec![cpu(None, false)]),
                Severity::Warning,
                "stopped at the time limit of 10 min, after 4 rounds: an interval needs 6 rounds. Raise `at_most`, or shorten `window` and `warmup`",
            ),
            (
                stopped(StoppedBy::Time, 8, vec![cpu(None, false)]),
                Severity::Warning,
                "stopped at the time limit of 10 min, after 8 rounds: CPU per request of otel has no interval (target: ±1 %)",
            ),
        ] {
            assert_eq!((stopped.to_string().as_str(), stopped.severity()), (words, severity));
        }
    }

    #[test]
    fn rounds_that_are_not_complete_are_told() {
        let words = |begun, rounds| Look { begun, rounds, ..Look::default() }.rounds_in_words();
        assert_eq!([words(1, 1), words(9, 9), words(9, 7)], ["1 round", "9 rounds", "9 rounds, 7 of them complete"]);
    }

    #[test]
    fn times_are_written_as_people_say_them() {
        let written = [90.0, 600.0, 60.0, 5400.0, 1.5, 125.0].map(in_words);
        assert_eq!(written, ["90 s", "10 min", "60 s", "90 min", "1500ms", "125 s"]);
    }

    #[test]
    fn a_study_that_asks_for_nothing_is_never_done_by_it() {
        assert!(!Look::default().is_enough());
        assert!(Look { precisions: vec![cpu(Some("0.9 %"), true)], ..Look::default() }.is_enough());
        assert!(
            !Look { precisions: vec![cpu(Some("1.1 %"), false), cpu(Some("0.9 %"), true)], ..Look::default() }
                .is_enough()
        );
    }
}
