//! Every round, number by number, as tables with the means that other reports print: one for each metric that every table has, and one
//! for each request whose span the study names.

use std::collections::{BTreeMap, BTreeSet};

use unladen_judge::findings::{Finding, Findings, Place, SampledFindings, SampledQuantiles, SampledRound};
use unladen_judge::units::Scale;

use super::view::{self, LadderTable};

/// All tables, in the form of a ladder's: a column for each round, and the mean.
pub(super) fn tables(findings: &Findings) -> Vec<LadderTable> {
    let mut metrics: Vec<&Finding> = Vec::new();
    for finding in findings.variants.iter().flat_map(|variant| &variant.metrics) {
        let differs = finding.rounds.iter().any(|it| it.baseline != 0.0 || it.value != 0.0);
        let is_shown = finding.place != Place::Detail && finding.is_of_whole() && differs;
        if is_shown && !metrics.iter().any(|known| known.metric == finding.metric) {
            metrics.push(finding);
        }
    }
    let mut requests: Vec<&str> = Vec::new();
    for sampled in &findings.sampled {
        if !requests.contains(&sampled.request.as_str()) {
            requests.push(&sampled.request);
        }
    }
    let of_metrics = metrics.into_iter().map(|metric| of_metric(findings, metric));
    of_metrics.chain(requests.into_iter().map(|request| of_request(findings, request))).collect()
}

/// A line of a table: its name, its rounds, and their mean.
struct Line {
    name: String,
    rounds: BTreeMap<u32, f64>,
    mean: f64,
}

fn table(title: &str, unit: &str, lines: &[Line]) -> LadderTable {
    let rounds: BTreeSet<u32> = lines.iter().flat_map(|line| line.rounds.keys().copied()).collect();
    let values = lines.iter().flat_map(|line| line.rounds.values());
    let scale = Scale::of(unit, values.fold(0.0, |most, value| value.abs().max(most)), None);
    let cells = |line: &Line| -> Vec<String> {
        let of_round =
            |round: &u32| line.rounds.get(round).map_or_else(|| view::NONE.to_owned(), |&it| scale.number(it));
        rounds.iter().map(of_round).chain([scale.number(line.mean)]).collect()
    };
    let unit = if scale.unit().is_empty() { String::new() } else { format!(", {}", scale.unit()) };
    LadderTable {
        title: format!("{title}{unit}"),
        columns: rounds.iter().map(u32::to_string).chain(["mean".to_owned()]).collect(),
        lines: lines.iter().map(|line| (line.name.clone(), cells(line))).collect(),
    }
}

fn of_metric(findings: &Findings, metric: &Finding) -> LadderTable {
    let mut lines: Vec<Line> = Vec::new();
    // A baseline has a line before the first variant that is held against it; of a matrix there are several.
    let mut bare: Vec<usize> = Vec::new();
    for variant in &findings.variants {
        let Some(finding) = variant.finding(&metric.metric).filter(|it| !it.rounds.is_empty()) else { continue };
        let theirs: BTreeMap<u32, f64> = finding.rounds.iter().map(|it| (it.round, it.baseline)).collect();
        let known = bare.iter().copied().find(|&at| {
            let known = &lines[at].rounds;
            theirs.iter().all(|(round, value)| known.get(round).is_none_or(|known| known == value))
        });
        match known {
            // A variant may lack rounds that others have: the baseline's mean is that of the most.
            Some(at) if theirs.len() > lines[at].rounds.len() => {
                lines[at].rounds = theirs;
                lines[at].mean = finding.baseline_mean;
            }
            Some(_) => {}
            None => {
                bare.push(lines.len());
                lines.push(Line { name: "baseline".to_owned(), rounds: theirs, mean: finding.baseline_mean });
            }
        }
        lines.push(Line {
            name: view::clean(&variant.label),
            rounds: finding.rounds.iter().map(|it| (it.round, it.value)).collect(),
            mean: finding.value_mean,
        });
    }
    table(&metric.title, &metric.unit, &lines)
}

/// What spans say of a request, and below it what its clients saw.
fn of_request(findings: &Findings, request: &str) -> LadderTable {
    type Of = fn(&SampledQuantiles) -> f64;
    type InRound = fn(&SampledRound) -> SampledQuantiles;
    type Mean = fn(&SampledFindings) -> SampledQuantiles;
    let quantiles: [(&str, Of); 3] = [("p50", |it| it.p50_us), ("p90", |it| it.p90_us), ("p95", |it| it.p95_us)];
    let mut lines = Vec::new();
    for it in findings.sampled.iter().filter(|it| it.request == request) {
        let label = view::label(findings, &it.variant);
        let sides: [(&str, InRound, Mean); 2] = [
            ("in spans", |round| round.from_spans, |it| it.mean_from_spans),
            ("of clients", |round| round.from_clients, |it| it.mean_from_clients),
        ];
        for (name, of) in quantiles {
            lines.extend(sides.map(|(side, from, mean)| Line {
                name: format!("{label}: {name} {side}"),
                rounds: it.rounds.iter().map(|round| (round.round, of(&from(round)))).collect(),
                mean: of(&mean(it)),
            }));
        }
    }
    table(&format!("Answers to {}", view::shortened(&view::clean(request), 40)), "us", &lines)
}
