//! A pilot: the baseline against itself, a few times, and what a whole study would show with such noise, and in what time.
//!
//! It decides nothing: no variant has been run. The scatter of a few pairs is known only roughly, so what is promised is
//! promised twice: by the scatter found, and by what it is at most with 80 % confidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_journal::record::{Design, RunRecord};
use unladen_stats::estimate::{Level, median};
use unladen_stats::noise::{Spread, spread};
use unladen_stats::plan;
use unladen_study::measured::Measured;
use unladen_study::metrics;
use unladen_study::spec::Study;

use super::compare::{Comparison, level};
use super::evidence::Evidence;
use super::findings::{NoticeLine, Place, VarianceFindings};
use super::{JudgeError, levels, notices, study};
use times::Times;

mod times;

/// Numbers of rounds for which is told what they show, beside that of the study.
const ROUNDS: [u32; 3] = [6, 12, 24];
/// Pairs that a scatter can be told from at all.
const MIN_PAIRS: u32 = 2;

/// The study that a pilot is for.
pub struct Planned<'a> {
    /// It.
    pub study: &'a Study,
    /// Runs in each of its rounds.
    pub variants: usize,
    /// Sizes of the groups in which they take turns, by the bytes that are available and those that each takes.
    pub groups: &'a dyn Fn(u64, u64) -> Vec<usize>,
}

/// What a pilot says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pilot {
    /// Name of the study.
    pub study: String,
    /// Pairs of runs (baseline, baseline once more) that count.
    pub pairs: u32,
    /// Seconds that a run of the study takes, all in all, in the design of the pilot: its part of a round.
    pub seconds_per_run: f64,
    /// How the pilot's rounds shared their time.
    #[serde(default)]
    pub design: Design,
    /// Seconds that a round of the study takes, by design.
    #[serde(default)]
    pub round_seconds: RoundSeconds,
    /// Where the noise of CPU per request comes from; `null` unless 4 alternating rounds tell.
    #[serde(default)]
    pub variance: Option<VarianceFindings>,
    /// The window that makes the most of the time, by that noise, seconds (Kalibera & Jones 2013).
    #[serde(default)]
    pub best_window_s: Option<f64>,
    /// What variants need to be alive at the same time.
    #[serde(default)]
    pub memory: Memory,
    /// Runs in a round of the study.
    #[serde(rename = "arms")]
    pub variants: u32,
    /// Rounds of the study.
    pub rounds: u32,
    /// The noise of every metric that stands in the short tables or has a budget.
    pub metrics: Vec<MetricNoise>,
    /// What disturbed the pilot.
    pub notices: Vec<NoticeLine>,
}

/// What variants need to be alive at the same time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Bytes that all processes of a run of the baseline have (RSS).
    pub each: u64,
    /// Bytes that can be had.
    pub available: u64,
    /// How many variants take turns at the same time: sizes of the groups of a round.
    pub groups: Vec<u32>,
}

/// Seconds that a round takes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RoundSeconds {
    /// All variants side by side: what heats up and drains does so once.
    pub alternating: f64,
    /// One after the other.
    pub separate: f64,
}

/// The noise of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricNoise {
    /// Name of the metric.
    pub metric: String,
    /// Its name for people.
    pub title: String,
    /// Unit of `baseline`, and of the other numbers unless they are `relative`.
    pub unit: String,
    /// Whether the numbers below are relative differences (0.02 = 2 %).
    pub relative: bool,
    /// Median over all runs.
    pub baseline: f64,
    /// Standard deviation of the difference within a round.
    pub noise: f64,
    /// What it is at most with 80 % confidence.
    pub noise_at_most: f64,
    /// What so many rounds show.
    pub reach: Vec<Reach>,
    /// The margin that matters, and what it takes to tell costs of that size.
    pub margin: Goal,
    /// The study's budget, and what it takes to tell a cost of half of it from it; `null` without one.
    pub budget: Option<Goal>,
}

/// What a number of rounds shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reach {
    /// Rounds.
    pub rounds: u32,
    /// Seconds that they take.
    pub seconds: f64,
    /// Smallest effect that they find with 80 % probability, if the noise is as found.
    pub effect: f64,
    /// The same if the noise is as large as it may be.
    pub effect_at_most: f64,
}

/// What it takes to reach a precision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Half-width of the interval that is wanted.
    pub precision: f64,
    /// Rounds; `null`: more than 200.
    pub rounds: Option<u32>,
    /// Seconds that they take.
    pub seconds: Option<f64>,
}

/// Judges the run folder of a pilot.
///
/// # Errors
/// When nothing in it counts.
pub fn pilot(folder: &Measured, planned: Planned<'_>) -> Result<Pilot, JudgeError> {
    let no_runs = || JudgeError::NoRuns { folder: folder.dir.display().to_string() };
    let evidence = Evidence::of(folder);
    let placebo = evidence.placebo.as_ref().ok_or_else(no_runs)?;
    let mut notices = evidence.notices();
    let pairs = evidence.paired_rounds(placebo);
    if pairs < MIN_PAIRS {
        let is_reason =
            |it: &&Notice| matches!(it, Notice::RunsVoid { .. } | Notice::Rounds(RoundsNotice::RoundsLost { .. }));
        let reason = notices.iter().find(is_reason).map(ToString::to_string);
        return Err(JudgeError::PilotVoid { pairs, reason: reason.unwrap_or_default() });
    }
    let known = study::metrics(&evidence, &mut notices);
    let comparisons = study::comparisons(&evidence, &known, &evidence.baseline, placebo);
    let times = Times::of(&folder.runs, planned.study).ok_or_else(no_runs)?;
    let memory = memory(&evidence, planned.groups);
    let round_seconds = RoundSeconds {
        alternating: memory.groups.iter().map(|variants| times.round(Design::Alternating, *variants as usize)).sum(),
        separate: times.round(Design::Separate, planned.variants),
    };
    let round_s = if times.design == Design::Separate { round_seconds.separate } else { round_seconds.alternating };
    let seconds_per_run = round_s / planned.variants.max(1) as f64;
    let variance = levels::of(&evidence.baseline, placebo);
    let has_budget = |name: &str| planned.study.budgets.contains_key(name);
    let metrics: Vec<MetricNoise> = comparisons
        .iter()
        .filter(|it| it.finding.is_of_whole())
        .filter(|it| it.finding.place != Place::Detail || has_budget(&it.finding.metric))
        .filter_map(|it| noise(it, planned.study, round_s))
        .collect();
    Ok(Pilot {
        study: planned.study.study.clone(),
        pairs,
        seconds_per_run,
        design: times.design,
        round_seconds,
        memory,
        best_window_s: variance.as_ref().and_then(|it| best_window(it, times.window, seconds_per_run)),
        variance,
        variants: super::evidence::number(planned.variants),
        rounds: planned.study.rounds,
        metrics,
        notices: notices::lines(&evidence, &notices),
    })
}

/// What the runs of the pilot had, and in what groups there is room for them.
fn memory(evidence: &Evidence<'_>, groups: &dyn Fn(u64, u64) -> Vec<usize>) -> Memory {
    let of_run = |run: &RunRecord| run.processes.iter().filter_map(|process| process.rss).sum::<u64>();
    let each = evidence.valid().map(of_run).max().unwrap_or(0);
    let available = evidence.valid().map(|run| run.host.memory_available + of_run(run)).max().unwrap_or(0);
    Memory { each, available, groups: groups(available, each).into_iter().map(super::evidence::number).collect() }
}

/// The window that gives the narrowest interval for a given time. What varies within a start is known of a window of `window_s`.
fn best_window(variance: &VarianceFindings, window_s: f64, run_s: f64) -> Option<f64> {
    plan::window_length(run_s - window_s, variance.within * window_s.sqrt(), variance.between)
}

fn noise(comparison: &Comparison, study: &Study, round_s: f64) -> Option<MetricNoise> {
    let finding = &comparison.finding;
    let Spread { sd, at_most } = spread(comparison.deciding())?;
    let level = level(study);
    // Log-ratios and relative differences: 0.0198 is 2 %.
    let natural = |value: f64| if finding.relative { value.exp_m1() } else { value };
    let mut counts: Vec<u32> = ROUNDS.into_iter().chain([study.rounds]).collect();
    counts.sort_unstable();
    counts.dedup();
    let reach = counts.into_iter().filter_map(|rounds| {
        let effect = |sd| Some(natural(plan::smallest_detectable(sd, rounds as usize, level)?));
        Some(Reach {
            rounds,
            seconds: f64::from(rounds) * round_s,
            effect: effect(sd)?,
            effect_at_most: effect(at_most)?,
        })
    });
    let values: Vec<f64> = finding.rounds.iter().flat_map(|round| [round.baseline, round.value]).collect();
    Some(MetricNoise {
        metric: finding.metric.clone(),
        title: finding.title.clone(),
        unit: finding.unit.clone(),
        relative: finding.relative,
        baseline: median(&values)?,
        noise: natural(sd),
        noise_at_most: natural(at_most),
        reach: reach.collect(),
        margin: goal(finding.margin, finding.relative, sd, level, round_s),
        budget: budget(comparison, study).map(|limit| goal(limit / 2.0, finding.relative, sd, level, round_s)),
    })
}

fn goal(precision: f64, relative: bool, sd: f64, level: Level, round_s: f64) -> Goal {
    let wanted = if relative { precision.ln_1p() } else { precision };
    let rounds = plan::rounds_for_half_width(sd, wanted, level).and_then(|rounds| u32::try_from(rounds).ok());
    Goal { precision, rounds, seconds: rounds.map(|rounds| f64::from(rounds) * round_s) }
}

/// The study's limit on the metric, on the scale that decides.
fn budget(comparison: &Comparison, study: &Study) -> Option<f64> {
    let finding = &comparison.finding;
    let limit = metrics::find(&finding.metric)?.limit(study.budgets.get(&finding.metric)?)?;
    match (limit.relative, finding.relative) {
        (true, false) => Some(limit.value * finding.baseline.abs()),
        (false, true) => (finding.baseline > 0.0).then(|| limit.value / finding.baseline),
        _ => Some(limit.value),
    }
}
