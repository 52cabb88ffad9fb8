//! A study that goes on until its intervals are narrow: how far it has come. Only widths are looked at, never where an interval lies:
//! whoever stops when a difference shows finds one too often.
//!
//! The variants' differences are what is promised. The placebo's is the noise floor; nobody asked how well that is known.

use std::path::PathBuf;

use unladen_journal::notices::{Look, Precision};
use unladen_journal::record::RunRecord;
use unladen_stats::estimate::{Interval, Level};
use unladen_stats::plan;
use unladen_stats::rank;
use unladen_study::measured::Measured;
use unladen_study::metrics::{self, Limit};
use unladen_study::spec::Study;

use super::compare::{compare, level};
use super::evidence::{Evidence, VariantRuns, number};
use super::findings::Finding;
use super::from_blocks;
use super::metrics::{METRICS, Metric};
use super::units::{self, Scale};

/// How far a study has come with these runs, all that the journal holds.
#[must_use]
pub fn look(study: &Study, runs: &[RunRecord]) -> Look {
    let mut folder = Measured {
        dir: PathBuf::new(),
        study: study.clone(),
        host: serde_json::Value::Null,
        runs: runs.to_vec(),
        calibrations: Vec::new(),
        notices: Vec::new(),
    };
    from_blocks::settle(&mut folder.runs);
    let evidence = Evidence::of(&folder);
    let goals = study.until.iter().filter_map(|(name, width)| Goal::new(name, width));
    let mut reached: Vec<Reached> = goals.map(|goal| goal.reached(&evidence)).collect();
    reached.sort_by(|a, b| b.of_asked.total_cmp(&a.of_asked));
    Look {
        begun: evidence.rounds_begun(),
        rounds: evidence.complete_rounds(),
        rounds_needed: reached.iter().map(|it| it.rounds_needed).reduce(|a, b| Some(a?.max(b?))).flatten(),
        precisions: reached.into_iter().map(|it| it.precision).collect(),
    }
}

/// How narrow the intervals of a metric are to be.
struct Goal<'a> {
    metric: &'static Metric,
    service: Option<&'a str>,
    limit: Limit,
}

/// How far one goal has been reached.
struct Reached {
    precision: Precision,
    /// The widest half-width over the one that is asked for; infinite where there is no interval yet.
    of_asked: f64,
    rounds_needed: Option<u32>,
}

impl<'a> Goal<'a> {
    fn new(name: &'a str, width: &str) -> Option<Self> {
        let (name, service) = metrics::of_service(name);
        let metric = METRICS.iter().find(|metric| metric.name == name)?;
        Some(Self { metric, service, limit: metrics::find(name)?.limit(width)? })
    }

    fn reached(&self, evidence: &Evidence<'_>) -> Reached {
        let study = &evidence.folder.study;
        let level = level(study);
        let compared = |variant: &VariantRuns<'_>| {
            compare(study, self.metric, self.service, evidence.baseline_of(variant), variant)
        };
        let mut findings: Vec<(&str, Option<Finding>)> = evidence
            .variants
            .iter()
            .map(|variant| (variant.name.as_str(), compared(variant).map(|it| it.finding)))
            .collect();
        // Of a variant that has nothing to compare after so many rounds nothing will come: it is not waited for.
        let is_late = evidence.rounds_begun() >= number(rank::min_rounds(level));
        findings.retain(|(_, finding)| finding.is_some() || !is_late);
        let mut widths = Vec::new();
        for (variant, finding) in &findings {
            let Some((finding, interval)) = finding.as_ref().and_then(|it| Some((it, self.interval(it)?))) else {
                return self.without_interval(variant, false);
            };
            widths.push((*variant, interval, self.rounds_needed(&interval, finding.rounds.len(), level)));
        }
        let rounds_needed = widths.iter().map(|(.., rounds)| *rounds).reduce(|a, b| Some(a?.max(b?))).flatten();
        let widest = widths.iter().max_by(|(_, a, _), (_, b, _)| a.half_width().total_cmp(&b.half_width()));
        let Some((variant, widest, _)) = widest else { return self.without_interval("", is_late) };
        let precision = Precision {
            reached: Some(self.written(widest.half_width())),
            variant: (*variant).to_owned(),
            is_enough: plan::narrow_enough(widest, self.limit.value),
            ..self.asked()
        };
        Reached { precision, of_asked: widest.half_width() / self.limit.value, rounds_needed }
    }

    /// What is known where a variant has no interval; if that `is_enough`, none is waited for.
    fn without_interval(&self, variant: &str, is_enough: bool) -> Reached {
        let precision = Precision { variant: variant.to_owned(), is_enough, ..self.asked() };
        Reached { precision, of_asked: f64::INFINITY, rounds_needed: None }
    }

    /// The interval as it is printed.
    fn interval(&self, finding: &Finding) -> Option<Interval> {
        let range = finding.range(self.limit.relative)?;
        Some(Interval { low: range.low, high: range.high, achieved: finding.level? })
    }

    /// About how many rounds a variant needs; `None`: more than can be planned.
    fn rounds_needed(&self, interval: &Interval, rounds: usize, level: Level) -> Option<u32> {
        if plan::narrow_enough(interval, self.limit.value) {
            return Some(number(rounds));
        }
        let sd = plan::implied_sd(interval, rounds, level)?;
        let needed = plan::rounds_for_half_width(sd, self.limit.value, level)?;
        Some(number(needed.max(rounds + 1)))
    }

    /// What is asked for, in words.
    fn asked(&self) -> Precision {
        let service = self.service.map(|service| format!(" · {service}")).unwrap_or_default();
        Precision {
            metric: format!("{}{service}", self.metric.title),
            asked: units::chosen(self.unit(), self.limit.value),
            ..Precision::default()
        }
    }

    fn unit(&self) -> &str {
        match self.metric.unit {
            _ if self.limit.relative => "%",
            "share" => "points",
            unit => unit,
        }
    }

    /// A half-width with three digits, so that one that is a little too wide does not look as if it were not.
    fn written(&self, half_width: f64) -> String {
        let digits = Some(half_width / 10.0);
        let scale = match self.unit() {
            "%" => units::percent(half_width, digits),
            unit => Scale::of(unit, half_width, digits),
        };
        scale.with_unit(half_width)
    }
}

#[cfg(test)]
mod tests {
    use unladen_journal::notices::Notice;
    use unladen_journal::record::{Alone, Blocks, ProcessRecord, VariantKind};
    use unladen_journal::role::Role;
    use unladen_load::outcome::Outcome;
    use unladen_study::spec::Load;

    use super::*;

    /// A study that goes on for this.
    fn study(until: &[(&str, &str)]) -> Study {
        let mut study = Study::new("x", Load::new("http://localhost/"));
        study.until = until.iter().map(|(metric, width)| ((*metric).into(), (*width).into())).collect();
        study
    }

    fn run(round: u32, variant: &str, cpu_ns: f64) -> RunRecord {
        let kind = match variant {
            "baseline" => VariantKind::Baseline,
            "placebo" => VariantKind::Placebo,
            _ => VariantKind::Variant,
        };
        let process = ProcessRecord {
            role: Some(Role::Subject),
            cpu_ns: Some((cpu_ns * 1e6) as u64),
            rss: Some(20 << 20),
            ..ProcessRecord::default()
        };
        let load = Outcome { requests: 1000, completed_in_window: 1000, duration_s: 1.0, ..Outcome::default() };
        let variant = variant.to_owned();
        RunRecord { round, variant, kind, load: Some(load), processes: vec![process], ..RunRecord::empty() }
    }

    /// Rounds in which a variant costs 100 µs, give or take `scatter`; one is steady, and the placebo scatters wildly.
    fn rounds(rounds: u32, scatter: f64) -> Vec<RunRecord> {
        let of = |round: u32| {
            let up = if round.is_multiple_of(2) { 1.0 } else { -1.0 };
            [
                run(round, "baseline", 100.0),
                run(round, "placebo", 100.0 + 50.0 * up),
                run(round, "steady", 105.0),
                run(round, "otel", 200.0 + scatter * up),
            ]
        };
        (1..=rounds).flat_map(of).collect()
    }

    #[test]
    fn the_widest_of_the_variants_counts_as_it_is_printed_and_the_placebo_does_not() {
        let study = study(&[("cpu_per_request", "2%")]);
        let early = look(&study, &rounds(5, 1.0));
        assert_eq!((early.rounds, early.rounds_needed, early.is_enough()), (5, None, false));
        assert_eq!(early.precisions[0].reached, None);
        let wide = look(&study, &rounds(6, 4.0));
        let Precision { metric, asked, reached, variant, is_enough } = &wide.precisions[0];
        assert_eq!((metric.as_str(), asked.as_str(), variant.as_str()), ("CPU per request", "2 %", "otel"));
        // From 196 to 204 µs over 100: what is printed is +96 to +104 %, on the log scale it would be half of that.
        assert_eq!((reached.as_deref(), *is_enough), (Some("4.0 %"), false));
        assert!(wide.rounds_needed > Some(6), "{wide:?}");
        let narrow = look(&study, &rounds(6, 1.9));
        assert!(narrow.is_enough() && narrow.rounds_needed == Some(6), "{narrow:?}");
    }

    /// As in the report: a closed loop's throughput is told from blocks that are alike, not from stretches that scatter.
    #[test]
    fn a_number_comes_from_where_the_report_takes_it_from() {
        let in_blocks = |mut run: RunRecord| {
            let process = &mut run.processes[0];
            (process.idle_cpu, process.cpu_foreign_ns) = (Some(0.0), Some(0));
            let alone = Alone { seconds: 1.0, completed: u64::from(100 * run.round), ..Alone::default() };
            let blocks =
                Blocks { length_s: 1.0, own_s: 10.0, completed: 5000, alone: Some(alone), ..Blocks::default() };
            RunRecord { blocks: Some(blocks), ..run }
        };
        let mut rounds: Vec<RunRecord> = rounds(6, 1.0).into_iter().map(in_blocks).collect();
        let study = study(&[("throughput", "1%")]);
        assert!(look(&study, &rounds).is_enough());
        // Half of the work is done later.
        rounds.iter_mut().for_each(|run| run.processes[0].cpu_foreign_ns = Some(50_000_000));
        let alone = |run: &mut RunRecord| {
            let completed = if run.variant == "otel" { run.round } else { 1 };
            run.blocks.iter_mut().for_each(|it| {
                it.alone = Some(Alone { seconds: 1.0, completed: u64::from(completed), ..Alone::default() })
            });
        };
        rounds.iter_mut().for_each(alone);
        assert!(!look(&study, &rounds).is_enough());
    }

    #[test]
    fn where_it_lies_does_not_matter() {
        let study = study(&[("cpu_per_request", "2us")]);
        let shifted = |by: f64| {
            let of = |run: RunRecord| match run.variant.as_str() {
                "otel" => self::run(run.round, "otel", run.processes[0].cpu_ns.unwrap_or(0) as f64 / 1e6 + by),
                _ => run,
            };
            look(&study, &rounds(6, 2.5).into_iter().map(of).collect::<Vec<_>>())
        };
        assert_eq!(shifted(0.0), shifted(-99.0));
        assert_eq!(shifted(0.0).precisions[0].reached.as_deref(), Some("2.50 µs"));
    }

    #[test]
    fn all_metrics_must_be_narrow_and_the_worst_is_told_first() {
        let found = look(&study(&[("rss", "100KiB"), ("cpu_per_request", "1%")]), &rounds(6, 3.0));
        let rows: Vec<_> = found.precisions.iter().map(|it| (it.metric.as_str(), it.is_enough)).collect();
        assert_eq!(rows, [("CPU per request", false), ("memory (RSS)", true)]);
        assert_eq!(found.precisions[1].asked, "100 KiB");
        assert!(!found.is_enough());
    }

    #[test]
    fn a_variant_without_a_run_that_counts_is_not_waited_for_and_one_with_few_is() {
        let study = study(&[("cpu_per_request", "5%")]);
        let void = |round: u32| {
            move |mut run: RunRecord| {
                if run.variant == "otel" && run.round <= round {
                    run.void = Some(Notice::NoBaseline);
                }
                run
            }
        };
        let found = |of: u32, round| look(&study, &rounds(of, 1.0).into_iter().map(void(round)).collect::<Vec<_>>());
        assert!(!found(5, 5).is_enough(), "it may still come");
        assert!(found(6, 6).is_enough(), "nothing will come of it");
        let few = found(8, 3);
        assert_eq!((few.is_enough(), few.precisions[0].variant.as_str()), (false, "otel"));
        assert!(found(9, 3).is_enough());
        assert!(look(&study, &[]).precisions.iter().all(|it| !it.is_enough), "before the first round");
    }

    /// A study could ask for what nobody looks at, and would go on to its last round.
    #[test]
    fn every_metric_that_a_study_may_name_is_looked_at() {
        for metric in metrics::METRICS.iter().filter(|metric| !metric.name.starts_with("span_")) {
            assert!(Goal::new(metric.name, "5%").is_some(), "{}", metric.name);
        }
    }

    #[test]
    fn what_nobody_measures_is_not_waited_for_either() {
        let study = study(&[("heap", "1MiB")]);
        assert!(!look(&study, &rounds(5, 1.0)).is_enough());
        let found = look(&study, &rounds(6, 1.0));
        assert_eq!((found.is_enough(), found.precisions[0].reached.as_deref()), (true, None));
    }
}
