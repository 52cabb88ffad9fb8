//! How long a round takes, under either design, by what the runs of a pilot took.

use std::collections::BTreeMap;

use unladen_journal::record::{Design, RunRecord};
use unladen_stats::estimate::median;
use unladen_study::spec::Study;

/// Longest stretch alone that a study has without asking for it, seconds.
const MAX_ALONE_S: f64 = 2.0;

/// What takes time in a round, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    /// Design of the pilot.
    pub(super) design: Design,
    /// For every run, whatever the design: start, setup, heating up, warm-up, window, check, stop, and what no phase says.
    each: f64,
    /// For every run if they come one after the other, else once in a round: draining.
    shared: f64,
    /// For every run that follows others: saturation and capacity, which want the machine for themselves.
    after: f64,
    /// For every run of an alternating round: the load for itself.
    alone: f64,
    /// The window.
    pub(super) window: f64,
}

impl Times {
    /// From the runs of a pilot for `study`; `None` without any.
    pub(super) fn of(runs: &[RunRecord], study: &Study) -> Option<Self> {
        let typical = |of: &dyn Fn(&RunRecord) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>());
        let alternating = runs.iter().filter(|run| run.design == Design::Alternating).count();
        let design = if 2 * alternating > runs.len() { Design::Alternating } else { Design::Separate };
        let planned = study.alone.map_or(study.window.as_seconds().min(MAX_ALONE_S), |it| it.as_seconds());
        let alone = runs.iter().find_map(|run| Some(run.blocks.as_ref()?.alone.as_ref()?.seconds));
        let mut times = Self {
            design,
            each: typical(&|run| {
                let it = &run.phases;
                it.start_s + it.setup_s + it.preheat_s + it.warmup_s + it.window_s + it.check_s + it.stop_s
            })?,
            shared: typical(&|run| run.phases.drain_s)?,
            after: typical(&|run| run.phases.after_s)?,
            alone: alone.unwrap_or(planned),
            window: typical(&|run| run.phases.window_s)?,
        };
        let (took, variants) = took(runs, design)?;
        times.each += (took - times.round(design, variants)).max(0.0) / variants as f64;
        Some(times)
    }

    /// Seconds of a round of so many runs.
    pub(super) fn round(&self, design: Design, variants: usize) -> f64 {
        let variants = variants as f64;
        match design {
            Design::Separate => variants * (self.each + self.shared + self.after),
            Design::Alternating => variants * (self.each + self.alone) + self.shared,
        }
    }
}

/// From the start of the first to that of the last, by run or by round: everything is in it. With how many runs that is of.
fn took(runs: &[RunRecord], design: Design) -> Option<(f64, usize)> {
    // The runs of an alternating round start together.
    let mut sessions: BTreeMap<(u32, u32, u32), (i64, usize)> = BTreeMap::new();
    for run in runs {
        let slot = if design == Design::Alternating { 0 } else { run.slot };
        let start = run.started.parse::<jiff::Timestamp>().ok()?.as_second();
        let session = sessions.entry((run.round, run.attempt, slot)).or_insert((start, 0));
        *session = (session.0.min(start), session.1 + 1);
    }
    let starts = || sessions.values().map(|(start, _)| *start);
    let (first, last) = (starts().min()?, starts().max()?);
    let variants = sessions.values().map(|(_, runs)| *runs).max()?;
    // Starts are known to the second.
    Some(((last - first) as f64 / (sessions.len() - 1).max(1) as f64, variants))
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::{Alone, Blocks, Phases};
    use unladen_study::spec::Load;

    use super::*;

    /// A pilot of two rounds of two runs that starts a session every so many seconds.
    fn pilot(design: Design, every_s: i64) -> Vec<RunRecord> {
        let phases =
            Phases { start_s: 1.0, preheat_s: 3.0, warmup_s: 1.0, window_s: 4.0, drain_s: 2.0, ..Phases::default() };
        let alone = Some(Alone { seconds: 1.5, ..Alone::default() });
        let start =
            |at: i64| jiff::Timestamp::from_second(1_700_000_000 + at * every_s).expect("an instant").to_string();
        let run = |round: u32, slot: u32| {
            let at = if design == Design::Separate { 2 * (round - 1) + slot - 1 } else { round - 1 };
            RunRecord {
                round,
                slot,
                design,
                phases,
                started: start(at.into()),
                blocks: (design == Design::Alternating).then(|| Blocks { alone: alone.clone(), ..Blocks::default() }),
                ..RunRecord::empty()
            }
        };
        vec![run(1, 1), run(1, 2), run(2, 1), run(2, 2)]
    }

    fn times(runs: &[RunRecord]) -> Times {
        Times::of(runs, &Study::new("x", Load::new("http://localhost/"))).expect("runs")
    }

    #[test]
    fn what_is_shared_is_paid_once_in_an_alternating_round() {
        let separate = times(&pilot(Design::Separate, 11));
        assert!((separate.round(Design::Separate, 5) - 55.0).abs() < 1e-9, "5 × (1 + 3 + 1 + 4 + 2)");
        // Of a stretch alone nobody knows but the study: as long as the window of 5 s, at most 2 s.
        assert!((separate.round(Design::Alternating, 5) - (5.0 * 11.0 + 2.0)).abs() < 1e-9, "{separate:?}");
        let alternating = times(&pilot(Design::Alternating, 23));
        assert!((alternating.round(Design::Alternating, 5) - (5.0 * 10.5 + 2.0)).abs() < 1e-9, "{alternating:?}");
        assert!((alternating.round(Design::Separate, 5) - 55.0).abs() < 1e-9, "{alternating:?}");
    }

    #[test]
    fn what_no_phase_says_is_in_it() {
        let slower = times(&pilot(Design::Separate, 13));
        assert!((slower.round(Design::Separate, 2) - 26.0).abs() < 1e-9, "{slower:?}");
        // Two runs of 10.5 s and 2 s once are 23 s; here a round took 27 s.
        let slower = times(&pilot(Design::Alternating, 27));
        assert!((slower.round(Design::Alternating, 2) - 27.0).abs() < 1e-9, "{slower:?}");
    }
}
