//! What the study's own programs say of their work, held to the baseline's: a producer that sent less, a table that holds fewer
//! rows. Whoever did less was not cheaper.
//!
//! Medians are compared. The limit is 1 % of the baseline's, or three times what its own runs typically (median) differ from that,
//! whichever is more: the same as for answers.

use std::collections::BTreeSet;

use unladen_journal::record::RunRecord;
use unladen_stats::estimate::median;

use super::evidence::{Evidence, VariantRuns};
use super::findings::ReportedNumberFindings;
use super::units;
use super::work::{SCATTER, TOLERANCE};

/// All numbers of a variant and its baseline, by service and name.
pub(super) fn of(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Vec<ReportedNumberFindings> {
    let bare: Vec<&RunRecord> =
        evidence.bare(variant).into_iter().flat_map(|variant| variant.valid.values().copied()).collect();
    let runs: Vec<&RunRecord> = variant.valid.values().copied().collect();
    let all = bare.iter().chain(&runs).flat_map(|run| &run.reported_numbers);
    let names: BTreeSet<(&str, &str)> =
        all.flat_map(|(service, numbers)| numbers.keys().map(|name| (service.as_str(), name.as_str()))).collect();
    let finding = |(service, name): (&str, &str)| {
        let numbers = |runs: &[&RunRecord]| -> Vec<f64> {
            runs.iter().filter_map(|run| run.reported_numbers.get(service)?.get(name).copied()).collect()
        };
        let (theirs, ours) = (numbers(&bare), numbers(&runs));
        // A check may be there for some variants only.
        let runs_here = evidence.folder.study.services.get(service).is_none_or(|it| it.runs_in(variant.key()));
        let differs = !runs.is_empty() && runs_here && are_apart(&theirs, &ours);
        let (service, name) = (service.to_owned(), name.to_owned());
        ReportedNumberFindings { service, name, baseline: median(&theirs), value: median(&ours), differs }
    };
    names.into_iter().map(finding).collect()
}

/// Whether the numbers of the variant are not those of the baseline.
fn are_apart(theirs: &[f64], ours: &[f64]) -> bool {
    let Some(bare) = median(theirs) else { return false };
    let Some(value) = median(ours) else { return true };
    let off: Vec<f64> = theirs.iter().map(|number| (number - bare).abs()).collect();
    let scatter = median(&off).unwrap_or(0.0);
    (value - bare).abs() > f64::max(TOLERANCE * bare.abs(), SCATTER * scatter)
}

/// What differs, in words.
pub(super) fn differs(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Option<String> {
    let words = |it: &ReportedNumberFindings| {
        let number = |number: f64| units::chosen("", number);
        let bare = it.baseline.map_or_else(String::new, number);
        match it.value {
            Some(value) => {
                format!("{} reports `{}` {}, the baseline's reports {bare}", it.service, it.name, number(value))
            }
            None => format!("{} does not report `{}`, the baseline's reports {bare}", it.service, it.name),
        }
    };
    let all: Vec<String> = of(evidence, variant).iter().filter(|it| it.differs).map(words).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_more_or_less_is_the_same_and_nothing_at_all_is_not() {
        let stored = [12_000.0, 12_000.0, 12_000.0];
        for (ours, apart) in [(12_000.0, false), (11_881.0, false), (11_879.0, true), (12_121.0, true), (0.0, true)] {
            assert_eq!(are_apart(&stored, &[ours]), apart, "{ours}");
        }
        assert!(are_apart(&stored, &[]), "said nothing");
        assert!(!are_apart(&[], &[5.0]), "nothing to hold it to");
        assert!(are_apart(&[0.0, 0.0], &[1.0]) && !are_apart(&[0.0, 0.0], &[0.0]));
    }

    #[test]
    fn one_wild_run_decides_nothing_and_scatter_of_the_baseline_is_allowed_for() {
        assert!(!are_apart(&[100.0; 5], &[100.0, 100.0, 100.0, 7.0]));
        let retries = [0.0, 2.0, 1.0, 3.0, 1.0];
        assert!(!are_apart(&retries, &[4.0]));
        assert!(are_apart(&retries, &[5.0]));
    }
}
