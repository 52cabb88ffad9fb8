//! `--plan`: before a study is run, the baseline against itself a few times, and what the study would show in what time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use unladen_journal::notices::Look;
use unladen_journal::units::Ratio;
use unladen_judge::pilot::{Planned, pilot};
use unladen_measure::folder::RunFolder;
use unladen_measure::groups::{MAX_ALIVE, fitting, groups};
use unladen_measure::watch::Watcher;
use unladen_study::plan::Plan;

use super::print;

/// What the pilot says, in its run folder, for other programs.
const PLAN_FILE: &str = "plan.json";

/// How a pilot is run.
pub(super) struct Pilot<'a> {
    /// The study that it is for.
    pub(super) plan: &'a Plan,
    /// Pairs of runs.
    pub(super) rounds: u32,
    /// Run folder to write.
    pub(super) out: Option<PathBuf>,
    /// Seed of the order.
    pub(super) seed: u64,
    /// Whether progress is shown.
    pub(super) shown: bool,
}

impl Pilot<'_> {
    /// Measures, judges and prints.
    pub(super) fn run(&self, interrupted: &AtomicBool, watcher: &mut dyn Watcher) -> anyhow::Result<ExitCode> {
        let out = self.out.clone().unwrap_or_else(|| super::new_folder(&format!("{}-plan", self.plan.study.study)));
        let folder = RunFolder::create(&out)?;
        let alone = baseline_alone(self.plan, self.rounds)?;
        if self.shown {
            let seconds = alone.study.seconds_of(2 * self.rounds as usize);
            eprintln!(
                "{}: {} pairs of runs of the baseline, about {seconds:.0} s, to see the noise\nrun folder: {}",
                self.plan.study.study,
                self.rounds,
                out.display()
            );
        }
        // A pilot has its number of pairs, and nothing else ends it.
        unladen_measure::study(&alone, &folder, self.seed, interrupted, &mut |_| Look::default(), watcher)?;
        let sizes = |available: u64, each: u64| {
            let fit = fitting(available, each as f64).min(MAX_ALIVE);
            groups(self.plan, fit).iter().map(Vec::len).collect()
        };
        let planned = Planned { study: &self.plan.study, variants: self.plan.variants.len(), groups: &sizes };
        let found = pilot(&unladen_judge::read(folder.path())?, planned)?;
        folder.write(PLAN_FILE, &serde_json::to_string_pretty(&found)?)?;
        unladen_report::write_all(folder.path(), &unladen_judge::judge(folder.path())?)?;
        print(&unladen_report::pilot::text(&found))
    }
}

/// The study with its baseline and placebo only.
fn baseline_alone(plan: &Plan, rounds: u32) -> anyhow::Result<Plan> {
    let mut alone = plan.clone().only(&[] as &[&str])?;
    alone.study.matrix.clear();
    (alone.study.rounds, alone.study.placebo) = (rounds, true);
    (alone.study.until, alone.study.at_most) = Default::default();
    // The noise is what it is, and nothing is decided.
    alone.study.repeat.at_most = Ratio(0.0);
    alone.study.on_undecided = Default::default();
    alone.study.budgets.clear();
    let dir: &Path = &alone.dir;
    Ok(Plan::from_study(alone.study.clone(), dir)?)
}
