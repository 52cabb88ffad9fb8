//! A plain CSV: one row per run, metrics as columns, in the units of `docs/reference/metrics.md`. A column `variant` tells several variants
//! apart (`FILE#VARIANT` picks one), `round` is allowed and only orders the rows, `requests` and `connections` tell what is behind
//! the numbers.

use super::foreign::{Fault, ForeignRun};
use super::jmeter::broken;

pub(super) fn rows(text: &str, variant: Option<&str>) -> Result<Vec<ForeignRun>, Fault> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let head = reader.headers().map_err(broken)?.clone();
    let of = head.iter().position(|name| name == "variant");
    if of.is_some() != variant.is_some() {
        return Err(Fault::new(if of.is_some() {
            "this file has a column `variant`; name the one that is meant with `FILE#VARIANT`"
        } else {
            "this file has no column `variant` to pick one from; leave out the `#…`"
        }));
    }
    let round = head.iter().position(|name| name == "round");
    let mut runs: Vec<(f64, ForeignRun)> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        if of.and_then(|index| record.get(index)) != variant {
            continue;
        }
        let line = record.position().map(csv::Position::line);
        let mut run = ForeignRun::default();
        let mut order = runs.len() as f64;
        for (index, (name, text)) in head.iter().zip(&record).enumerate() {
            if Some(index) == of || text.is_empty() {
                continue;
            }
            let value: f64 = text.parse().map_err(|_| Fault {
                line,
                message: format!(
                    "`{text}` in the column `{name}` is not a number; write plain numbers, leave out what was not measured"
                ),
            })?;
            match name {
                _ if Some(index) == round => order = value,
                "requests" => run.requests = Some(value as u64),
                "connections" => run.concurrency = Some(value),
                metric => run.put(metric, Some(value)),
            }
        }
        runs.push((order, run));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}
