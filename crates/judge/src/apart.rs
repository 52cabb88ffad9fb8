//! Rounds in which a variant behaved unlike in all its others: told, never left out.
//!
//! An agent that spins in one start of four has two costs, and the interval over its rounds is wide for a reason that more rounds
//! do not mend.

use std::collections::BTreeSet;

use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_stats::apart::apart;
use unladen_stats::estimate::median;

use super::evidence::{Evidence, VariantRuns};
use super::metrics::{Metric, Of, Place};
use super::units::Scale;
use super::words;

/// A notice for every variant and set of rounds; of services and the whole, and of several metrics, the first that shows it.
pub(super) fn notices<M: AsRef<Metric>>(evidence: &Evidence<'_>, metrics: &[M]) -> Vec<Notice> {
    let services = evidence.subjects();
    let places: Vec<Option<&str>> = services.iter().map(|it| Some(it.as_str())).chain([None]).collect();
    let headline = |metric: &&Metric| metric.of == Of::Subject && metric.place == Place::Sentence;
    let mut notices = Vec::new();
    for variant in evidence.all_variants() {
        let mut seen = BTreeSet::new();
        for metric in metrics.iter().map(AsRef::as_ref).filter(headline) {
            for service in &places {
                if let Some((rounds, notice)) = of_variant(variant, metric, *service)
                    && seen.insert(rounds)
                {
                    notices.push(notice);
                }
            }
        }
    }
    notices
}

/// The rounds of a variant that are unlike its others in one metric, and what to say of them.
fn of_variant(variant: &VariantRuns<'_>, metric: &Metric, service: Option<&str>) -> Option<(Vec<u32>, Notice)> {
    let runs = variant.valid.iter().filter_map(|(round, run)| Some((*round, run.run, metric.value(run, service)?)));
    let runs: Vec<(u32, u32, f64)> = runs.collect();
    let values: Vec<f64> = runs.iter().map(|(_, _, value)| *value).collect();
    let unlike: BTreeSet<usize> = apart(&values).into_iter().collect();
    let typical = |is_unlike: bool| {
        let of = values.iter().enumerate().filter(|(index, _)| unlike.contains(index) == is_unlike);
        median(&of.map(|(_, value)| *value).collect::<Vec<_>>())
    };
    let (there, elsewhere) = (typical(true)?, typical(false)?);
    let apart_runs: Vec<&(u32, u32, f64)> = unlike.iter().map(|&index| &runs[index]).collect();
    let rounds: Vec<u32> = apart_runs.iter().map(|run| run.0).collect();
    let numbers: Vec<u32> = apart_runs.iter().map(|run| run.1).collect();
    let printed = |value: f64| Scale::of(metric.unit, value, None).with_unit(value);
    let place = service.map(|service| format!(" in {service}")).unwrap_or_default();
    let notice = RoundsNotice::RoundsApart {
        rounds: format!("{} ({})", numbered("round", &rounds), numbered("run", &numbers)),
        took: format!(
            "{} took {} {}{place}, and {} in the others",
            variant.name,
            printed(there),
            metric.phrase,
            printed(elsewhere)
        ),
    };
    Some((rounds, notice.into()))
}

/// `round 5`, `rounds 5, 8 and 10`.
fn numbered(noun: &str, numbers: &[u32]) -> String {
    let plural = if numbers.len() == 1 { "" } else { "s" };
    format!("{noun}{plural} {}", words::list(numbers.iter().map(ToString::to_string)))
}
