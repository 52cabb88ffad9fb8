//! How long a script's answers took, by request and kind, and its whole iterations: as clients saw them, in every variant.
//!
//! Quantiles are taken per run; what is told is their median over the runs. Of alternating runs they are those of the blocks, so the tail is
//! left out ([`super::latency`]). Nothing is decided here: whether a variant is
//! slower is judged on all requests together.

use unladen_load::outcome::{Outcome, Quantiles};

use super::evidence::{Evidence, VariantRuns};
use super::findings::{AnswerFindings, AnswerNumbers, Range, TimesFrom};
use super::latency;

/// Answers that a typical run must have beyond a quantile for it to be told.
const BEYOND: f64 = 10.0;

/// What is told of: a request, a kind of its answers, or whole iterations.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sort {
    request: Option<String>,
    kind: Option<String>,
    from: TimesFrom,
}

/// Answers of one sort in one run.
#[derive(Debug, Clone, Copy)]
struct AnswerSample {
    answers: u64,
    failed: Option<u64>,
    unfinished: Option<u64>,
    times: Quantiles,
}

/// All sorts of a variant and its baseline, in the order of the script.
pub(super) fn of(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Vec<AnswerFindings> {
    let (bare, here) = (loads(evidence.baseline_of(variant)), loads(variant));
    let mut found: Vec<Sort> = Vec::new();
    for load in bare.iter().chain(&here) {
        // Usually every run has the same.
        for sort in sorts(load) {
            if !found.contains(&sort) {
                found.push(sort);
            }
        }
    }
    let in_blocks =
        variant.valid.values().chain(evidence.baseline_of(variant).valid.values()).any(|run| run.blocks.is_some());
    let is_shown = |quantile: f64| !in_blocks || latency::is_sound_in_blocks(quantile);
    let finding = |sort: Sort| {
        let (baseline, value) = (numbers(&bare, &sort, is_shown), numbers(&here, &sort, is_shown));
        AnswerFindings { request: sort.request, kind: sort.kind, from: sort.from, baseline, value }
    };
    let some = |it: &AnswerFindings| {
        let any = |it: &AnswerNumbers| it.answers.high > 0.0 || it.failed.is_some_and(|failed| failed.high > 0.0);
        it.baseline.iter().chain(&it.value).any(any)
    };
    found.into_iter().map(finding).filter(some).collect()
}

fn loads<'e>(variant: &'e VariantRuns<'_>) -> Vec<&'e Outcome> {
    variant.valid.values().filter_map(|run| run.load.as_ref()).collect()
}

/// What a load can tell of: each request with its kinds below it, then iterations. A single request without kinds is the load itself.
fn sorts(load: &Outcome) -> Vec<Sort> {
    let mut sorts = Vec::new();
    if load.named.len() > 1 || !load.kinds.is_empty() {
        for named in &load.named {
            let request = Some(named.name.clone());
            sorts.push(Sort { request: request.clone(), kind: None, from: TimesFrom::Request });
            let kinds = load.kinds.iter().filter(|kind| kind.request == named.name);
            sorts.extend(kinds.map(|kind| Sort {
                request: request.clone(),
                kind: Some(kind.name.clone()),
                from: TimesFrom::Request,
            }));
        }
    }
    if load.iterations.is_some() {
        let own: Vec<Sort> = sorts.iter().filter(|sort| sort.kind.is_some()).cloned().collect();
        sorts.extend(own.into_iter().map(|sort| Sort { from: TimesFrom::Iteration, ..sort }));
        sorts.push(Sort { request: None, kind: None, from: TimesFrom::Iteration });
    }
    sorts
}

/// Answers of a sort in one run; `None`: the run does not tell them apart.
fn sample(load: &Outcome, sort: &Sort) -> Option<AnswerSample> {
    let Some(request) = &sort.request else {
        let it = load.iterations?;
        let (failed, unfinished) = (Some(it.failed), Some(it.unfinished));
        return Some(AnswerSample { answers: it.completed, failed, unfinished, times: it.latency_us });
    };
    if let Some(name) = &sort.kind {
        let kind = load.kinds.iter().find(|kind| kind.request == *request && kind.name == *name)?;
        let times = match sort.from {
            TimesFrom::Iteration => kind.iteration_us,
            TimesFrom::Request => kind.latency_us,
        };
        return Some(AnswerSample { answers: times.count, failed: None, unfinished: None, times });
    }
    let named = load.named.iter().find(|named| named.name == *request)?;
    Some(AnswerSample {
        answers: named.requests,
        failed: Some(named.errors),
        unfinished: None,
        times: named.latency_us,
    })
}

/// What the runs of one variant say of a sort; `is_shown` says of which quantiles.
fn numbers(loads: &[&Outcome], sort: &Sort, is_shown: impl Fn(f64) -> bool) -> Option<AnswerNumbers> {
    let runs: Vec<AnswerSample> = loads.iter().filter_map(|load| sample(load, sort)).collect();
    let count = |of: fn(&AnswerSample) -> Option<u64>| {
        let counts: Vec<f64> = runs.iter().filter_map(|run| Some(of(run)? as f64)).collect();
        Range::over(&counts)
    };
    let answers = count(|run| Some(run.answers))?;
    let at = |quantile: f64, of: fn(&Quantiles) -> f64| {
        let enough = is_shown(quantile) && answers.value * (1.0 - quantile) >= BEYOND - 1e-9;
        // A run without a single answer of the sort has no time of theirs.
        let times: Vec<f64> = runs.iter().filter(|run| run.answers > 0).map(|run| of(&run.times)).collect();
        Range::over(&times).filter(|_| enough)
    };
    Some(AnswerNumbers {
        answers,
        failed: count(|run| run.failed),
        unfinished: count(|run| run.unfinished),
        p50_us: at(0.5, |it| it.p50),
        p90_us: at(0.9, |it| it.p90),
        p95_us: at(0.95, |it| it.p95),
        p99_us: at(0.99, |it| it.p99),
    })
}

#[cfg(test)]
mod tests {
    use unladen_load::outcome::{Iterations, Kind, Named};

    use super::*;

    /// A load with so many good answers of a kind, each of which took so many µs.
    fn load(answers: u64, took: f64) -> Outcome {
        let times =
            |count, took: f64| Quantiles { count, p50: took, p90: took, p95: took, p99: took, ..Quantiles::default() };
        let (request, name) = ("result".to_owned(), "reserved".to_owned());
        Outcome {
            named: vec![
                Named { name: "reserve".to_owned(), requests: 2 * answers, ..Named::default() },
                Named { name: request.clone(), requests: answers, errors: 3, ..Named::default() },
            ],
            kinds: vec![
                Kind {
                    request: request.clone(),
                    name,
                    requests: answers,
                    latency_us: times(answers, took),
                    iteration_us: times(answers, 10.0 * took),
                },
                Kind { request, name: "other".to_owned(), ..Kind::default() },
            ],
            iterations: Some(Iterations {
                completed: answers,
                failed: 1,
                unfinished: 2,
                latency_us: times(answers, 20.0 * took),
            }),
            ..Outcome::default()
        }
    }

    #[test]
    fn requests_their_kinds_and_iterations_are_told_apart() {
        let names: Vec<_> = sorts(&load(1, 1.0))
            .into_iter()
            .map(|it| (it.request.unwrap_or_default(), it.kind.unwrap_or_default(), it.from == TimesFrom::Iteration))
            .collect();
        let all = [
            ("reserve", "", false),
            ("result", "", false),
            ("result", "reserved", false),
            ("result", "other", false),
            ("result", "reserved", true),
            ("result", "other", true),
            ("", "", true),
        ];
        assert_eq!(names, all.map(|(request, kind, from)| (request.to_owned(), kind.to_owned(), from)));
        let one = Outcome { named: vec![Named::default()], ..Outcome::default() };
        assert!(sorts(&one).is_empty(), "all answers are those of the one request");
    }

    #[test]
    fn times_are_medians_over_the_runs_and_far_quantiles_need_answers_beyond_them() {
        let loads = [load(200, 30.0), load(199, 20.0), load(220, 70.0), load(0, 0.0), load(201, 40.0)];
        let runs: Vec<&Outcome> = loads.iter().collect();
        let sort = |from| Sort { request: Some("result".to_owned()), kind: Some("reserved".to_owned()), from };
        let found = numbers(&runs, &sort(TimesFrom::Request), |_| true).expect("numbers");
        assert_eq!(found.answers, Range { value: 200.0, low: 0.0, high: 220.0 });
        assert_eq!((found.failed, found.unfinished), (None, None));
        assert_eq!(found.p50_us, Some(Range { value: 35.0, low: 20.0, high: 70.0 }), "of four runs");
        assert_eq!(found.p95_us.map(|it| it.value), Some(35.0), "ten of 200 are beyond it");
        assert_eq!(found.p99_us, None, "two are beyond it");
        let found = numbers(&runs, &sort(TimesFrom::Iteration), |_| true).expect("numbers");
        assert_eq!(found.p50_us, Some(Range { value: 350.0, low: 200.0, high: 700.0 }));
        let median_only = numbers(&runs, &sort(TimesFrom::Iteration), |quantile| quantile < 0.9).expect("numbers");
        assert_eq!((median_only.p50_us, median_only.p90_us), (found.p50_us, None));
        let whole =
            numbers(&runs, &Sort { request: None, kind: None, from: TimesFrom::Iteration }, |_| true).expect("numbers");
        assert_eq!(whole.failed, Some(Range { value: 1.0, low: 1.0, high: 1.0 }));
        assert_eq!(whole.unfinished.map(|it| it.value), Some(2.0));
        assert_eq!(
            numbers(&[&Outcome::default()], &sort(TimesFrom::Request), |_| true),
            None,
            "a journal of an older version"
        );
    }
}
