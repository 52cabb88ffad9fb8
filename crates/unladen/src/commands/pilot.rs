//! `--plan`: before a study is run, the baseline against itself a few times, and what the study would show in what time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use super::print;
use crate::judge::pilot::{Planned, pilot};
use crate::notices::Look;
use crate::report;
use crate::run::folder::RunFolder;
use crate::run::groups::{MAX_ALIVE, groups};
use crate::run::watch::Watcher;
use crate::run::{self};
use crate::study::plan::Plan;
use crate::study::units::Ratio;

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
        let out =
            self.out.clone().unwrap_or_else(|| super::measure::new_folder(&format!("{}-plan", self.plan.study.study)));
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
        run::study(&alone, &folder, self.seed, interrupted, &mut |_| Look::default(), watcher)?;
        let arms = &self.plan.arms;
        let sizes = |fit: usize| groups(arms, fit.min(MAX_ALIVE)).iter().map(Vec::len).collect();
        let planned = Planned { study: &self.plan.study, arms: arms.len(), groups: &sizes };
        let found = pilot(&crate::journal::read::read(folder.path())?, planned)?;
        folder.write(PLAN_FILE, &serde_json::to_string_pretty(&found)?)?;
        report::write_all(folder.path(), &crate::judge::judge(folder.path())?)?;
        print(&report::pilot::text(&found))
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
