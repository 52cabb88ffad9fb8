//! Every round, number by number, with the means that other reports print: a table for each metric that every table has, and one for
//! each request whose span the study names.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::{distinct, label, noted};
use super::sampled;
use crate::findings::{
    Cell, Column, Finding, Findings, Number, Place, SampledFindings, SampledQuantiles, SampledRound, Section, Topic,
};
use crate::units::{self, Scale};

const NOTE: &str = "Means are here because other reports print them; one outlier moves them, so no verdict uses them.";

/// A column for each round, and the mean.
pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let is_shown = |it: &&Finding| {
        let differs = it.rounds.iter().any(|it| it.baseline != 0.0 || it.value != 0.0);
        it.place != Place::Detail && it.is_of_whole() && differs
    };
    let shown = findings.variants.iter().flat_map(|variant| &variant.metrics).filter(is_shown);
    let metrics = distinct(shown.map(|it| (&it.metric, &it.title, &it.unit)));
    let of_metrics =
        metrics.into_iter().map(|(metric, title, unit)| section(title, unit, &of_metric(findings, metric)));
    let requests = distinct(findings.sampled.iter().map(|it| &it.request)).into_iter();
    let of_requests =
        requests.map(|request| section(&format!("Answers to {request}"), "us", &of_request(findings, request)));
    noted(of_metrics.chain(of_requests).collect(), NOTE)
}

/// A row of a table: its name, its rounds, and their mean.
struct Row {
    name: String,
    rounds: BTreeMap<u32, f64>,
    mean: f64,
}

fn section(title: &str, unit: &str, rows: &[Row]) -> Section {
    let rounds: BTreeSet<u32> = rows.iter().flat_map(|row| row.rounds.keys().copied()).collect();
    let values = rows.iter().flat_map(|row| row.rounds.values());
    let scale = Scale::of(unit, values.fold(0.0, |most, value| value.abs().max(most)), None);
    let number = |value: f64| Number::of(scale, value);
    let cells = |row: &Row| -> Vec<Cell> {
        let of_rounds = rounds.iter().map(|round| row.rounds.get(round).copied().map(number).into());
        [row.name.clone().into()].into_iter().chain(of_rounds).chain([number(row.mean).into()]).collect()
    };
    let heads = rounds.iter().map(u32::to_string).chain(["mean".to_owned()]).map(Column::right);
    let columns = [Column::left("variant")].into_iter().chain(heads).collect();
    let title = units::named(title, scale.unit());
    let (place, fold) = (Place::Detail, Some("Every round, number by number".to_owned()));
    Section { place, fold, ..Section::new(Topic::Rounds, title, columns, rows.iter().map(cells).collect()) }
}

fn of_metric(findings: &Findings, metric: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    // A baseline has a row before the first variant that is held against it; of a matrix there are several.
    let mut bare: Vec<usize> = Vec::new();
    for variant in &findings.variants {
        let Some(finding) = variant.finding(metric).filter(|it| !it.rounds.is_empty()) else { continue };
        let theirs: BTreeMap<u32, f64> = finding.rounds.iter().map(|it| (it.round, it.baseline)).collect();
        let known = bare.iter().copied().find(|&at| {
            let known = &rows[at].rounds;
            theirs.iter().all(|(round, value)| known.get(round).is_none_or(|known| known == value))
        });
        match known {
            // A variant may lack rounds that others have: the baseline's mean is that of the most.
            Some(at) if theirs.len() > rows[at].rounds.len() => {
                rows[at].rounds = theirs;
                rows[at].mean = finding.baseline_mean;
            }
            Some(_) => {}
            None => {
                bare.push(rows.len());
                rows.push(Row { name: "baseline".to_owned(), rounds: theirs, mean: finding.baseline_mean });
            }
        }
        let rounds = finding.rounds.iter().map(|it| (it.round, it.value)).collect();
        rows.push(Row { name: variant.label.clone(), rounds, mean: finding.value_mean });
    }
    rows
}

/// What spans say of a request, and below it what its clients saw.
fn of_request(findings: &Findings, request: &str) -> Vec<Row> {
    type InRound = fn(&SampledRound) -> SampledQuantiles;
    type Mean = fn(&SampledFindings) -> SampledQuantiles;
    let sides: [(&str, InRound, Mean); 2] = [
        ("in spans", |round| round.from_spans, |it| it.mean_from_spans),
        ("of clients", |round| round.from_clients, |it| it.mean_from_clients),
    ];
    let mut rows = Vec::new();
    for it in findings.sampled.iter().filter(|it| it.request == request) {
        for (name, of) in &sampled::COLUMNS[..3] {
            rows.extend(sides.map(|(side, from, mean)| Row {
                name: format!("{}: {name} {side}", label(findings, &it.variant)),
                rounds: it.rounds.iter().map(|round| (round.round, of(&from(round)))).collect(),
                mean: of(&mean(it)),
            }));
        }
    }
    rows
}
