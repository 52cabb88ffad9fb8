//! Courses over time: what the probes sampled of the subject, and what the load generator saw in every second.

use std::collections::BTreeMap;

use unladen_journal::record::RunRecord;
use unladen_journal::timeline;
use unladen_load::outcome::Second;

use super::super::evidence::Evidence;
use super::parts::{Course, RunCourse, short};

/// Values per run that a chart can show.
const MAX_POINTS: f64 = 120.0;

/// Sampled courses: metric of the timeline, title, unit.
const SAMPLED: [(&str, &str, &str); 4] = [
    ("cpu_cores", "CPU of the subject", "cores"),
    ("rss", "memory of the subject (RSS)", "B"),
    ("heap", "heap of the subject", "B"),
    ("heap_after_gc", "heap after the last collection", "B"),
];

/// What one second of the load has: name, title, unit, value.
type OfSecond = (&'static str, &'static str, &'static str, fn(&Second) -> f64);
const SECONDS: [OfSecond; 4] = [
    ("rate", "answers per second", "1/s", |second| second.answered as f64),
    ("latency_p50", "median latency of each second", "us", |second| second.p50_us),
    ("latency_p99", "p99 latency of each second", "us", |second| second.p99_us),
    ("errors", "failed requests per second", "1/s", |second| second.errors as f64),
];

pub(super) fn read(evidence: &Evidence<'_>, unread: &mut u32) -> Vec<Course> {
    let mut runs: Vec<&RunRecord> = evidence.valid().filter(|run| run.imported.is_none()).collect();
    runs.sort_by_key(|run| run.run);
    let step_s = step_s(runs.iter().copied());
    let mut courses: Vec<Course> = SAMPLED
        .iter()
        .map(|(name, title, unit)| (name, title, unit))
        .chain(SECONDS.iter().map(|(name, title, unit, _)| (name, title, unit)))
        .map(|(name, title, unit)| Course { name, title, unit, step_s, runs: Vec::new() })
        .collect();
    for run in runs {
        let sampled = sampled(evidence, run, step_s).unwrap_or_else(|| {
            *unread += 1;
            Vec::new()
        });
        for (course, steps) in courses.iter_mut().zip(sampled) {
            course.runs.extend(of_run(run, &steps));
        }
        for (course, (name, _, _, value)) in courses.iter_mut().skip(SAMPLED.len()).zip(SECONDS) {
            // The tail of a second of blocks is also that of the others that are alive.
            if name != "latency_p99" || run.blocks.is_none() {
                course.runs.extend(of_run(run, &seconds(run, step_s, value)));
            }
        }
    }
    let says_something =
        |course: &Course| course.runs.iter().flat_map(|run| &run.values).any(|it| it.is_some_and(|it| it != 0.0));
    courses.retain(says_something);
    courses
}

/// Seconds between two values of a course: whole ones, because that is how often things are sampled.
pub(super) fn step_s<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> f64 {
    let longest = runs.map(|run| run.phases.warmup_s + run.phases.window_s).fold(0.0, f64::max);
    (longest / MAX_POINTS).ceil().max(1.0)
}

/// Sum of the values in a step, and how many they are.
pub(super) type Steps = BTreeMap<i64, (f64, u32)>;

pub(super) fn add(steps: &mut Steps, step: i64, value: f64) {
    let sum = steps.entry(step).or_default();
    *sum = (sum.0 + value, sum.1 + 1);
}

pub(super) fn step(t_s: f64, step_s: f64) -> i64 {
    (t_s / step_s).floor() as i64
}

/// One course per sampled metric: mean of each process's samples in a step, summed over the processes.
fn sampled(evidence: &Evidence<'_>, run: &RunRecord, step_s: f64) -> Option<Vec<Steps>> {
    let names = SAMPLED.map(|(name, _, _)| name);
    let samples = timeline::subject(&evidence.folder.dir.join(&run.dir).join("timeline.parquet"), &names).ok()?;
    let mut of_processes: Vec<BTreeMap<(Vec<u8>, i32), Steps>> = vec![BTreeMap::new(); names.len()];
    for sample in samples {
        let (service, replica) = sample.process;
        let steps = of_processes[sample.metric].entry((service.data().to_vec(), replica)).or_default();
        add(steps, step(sample.t_s + 0.01, step_s), sample.value);
    }
    Some(of_processes.into_iter().map(|processes| summed(processes.into_values())).collect())
}

/// Each process's mean in a step, added up over the processes.
pub(super) fn summed(processes: impl Iterator<Item = Steps>) -> Steps {
    let mut sum = Steps::new();
    for (step, (total, count)) in processes.flatten() {
        add(&mut sum, step, total / f64::from(count));
    }
    // A sum over processes, not a mean.
    sum.values_mut().for_each(|(_, count)| *count = 1);
    sum
}

/// What the load generator saw, at the end of each second, as samples stand at the end of what they sum up. The last second is cut short by the end of the load, and left out.
fn seconds(run: &RunRecord, step_s: f64, value: fn(&Second) -> f64) -> Steps {
    let mut steps = Steps::new();
    let Some(load) = &run.load else { return steps };
    let end_s = run.phases.warmup_s + run.phases.window_s;
    for second in load.seconds.iter().filter(|second| f64::from(second.second) + 1.0 <= end_s + 0.01) {
        add(&mut steps, step(f64::from(second.second) + 1.01 - run.phases.warmup_s, step_s), value(second));
    }
    steps
}

fn of_run(run: &RunRecord, steps: &Steps) -> Option<RunCourse> {
    let (first, last) = (*steps.keys().next()?, *steps.keys().next_back()?);
    let value = |step| steps.get(&step).map(|(sum, count)| short(sum / f64::from(*count)));
    Some(RunCourse { run: run.run, first, values: (first..=last).map(value).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stay_gaps() {
        let mut steps = Steps::new();
        for (at, value) in [(-1.0, 4.0), (0.2, 1.0), (0.9, 3.0), (2.5, 8.0)] {
            add(&mut steps, step(at, 1.0), value);
        }
        let course = of_run(&RunRecord::empty(), &steps).expect("values");
        assert_eq!((course.first, course.values), (-1, vec![Some(4.0), Some(2.0), None, Some(8.0)]));
    }

    #[test]
    fn seconds_count_from_the_window_and_a_cut_one_is_left_out() {
        let mut run = RunRecord::empty();
        (run.phases.warmup_s, run.phases.window_s) = (2.0, 2.5);
        let second = |second| Second { second, answered: 10 + u64::from(second), ..Second::default() };
        let load = unladen_load::outcome::Outcome { seconds: (0..6).map(second).collect(), ..Default::default() };
        run.load = Some(load);
        let steps = seconds(&run, 1.0, |second| second.answered as f64);
        let steps: Vec<_> = steps.iter().map(|(step, sum)| (*step, sum.0)).collect();
        assert_eq!(steps, [(-1, 10.0), (0, 11.0), (1, 12.0), (2, 13.0)]);
    }
}
