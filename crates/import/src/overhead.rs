//! OpenTelemetry's overhead tests (`benchmark-overhead` of opentelemetry-java-instrumentation, and its forks): `results.csv`,
//! one row per night or repetition, one column per agent and metric, `none:requestAvg`.

use super::foreign::{Fault, ForeignRun, tally};
use super::jmeter::broken;

/// Columns that are a metric of ours, and the factor to its unit. All others keep their names.
const KNOWN: [(&str, &str, f64); 7] = [
    ("startupDurationMs", "start_up", 1.0),
    ("requestAvg", "latency_mean", 1e3),
    ("requestP95", "latency_p95", 1e3),
    ("peakThreadCount", "threads", 1.0),
    ("totalGCTime", "gc_time", 1e-6),
    ("maxHeapUsed", "heap", 1.0),
    ("throughputAvg", "throughput", 1.0),
];

pub(super) fn rows(text: &str, agent: Option<&str>) -> Result<Vec<ForeignRun>, Fault> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let head = reader.headers().map_err(broken)?.clone();
    let agents = tally(head.iter().filter_map(|name| Some(name.rsplit_once(':')?.0)));
    let Some(agent) = agent.filter(|agent| agents.contains_key(agent)) else {
        let known: Vec<&str> = agents.keys().copied().collect();
        return Err(Fault::new(format!(
            "this file holds several agents; name one with `FILE#AGENT`: {}",
            known.join(", ")
        )));
    };
    let mut runs = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let mut run = ForeignRun::default();
        for (name, value) in head.iter().zip(&record) {
            let Some((_, metric)) = name.rsplit_once(':').filter(|(of, _)| *of == agent) else { continue };
            // Published files hold NaN where a test failed.
            let value = value.parse::<f64>().ok();
            match KNOWN.iter().find(|(theirs, ..)| *theirs == metric) {
                Some((_, ours, factor)) => run.put(ours, value.map(|value| value * factor)),
                None => run.put(metric, value),
            }
        }
        runs.push(run);
    }
    Ok(runs)
}
