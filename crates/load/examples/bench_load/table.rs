//! The table in `bench/README.md`, from the runs that are there. Medians over rounds; ratios are paired within a round.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::measure::{self, Case, Run, STREAMS};
use crate::peers::Tool;

/// The table stands between these lines.
const MARKS: (&str, &str) = ("<!-- bench-load: begin -->", "<!-- bench-load: end -->");

/// Middle value; the mean of the two middle ones if their number is even.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// Runs of one case, by tool.
struct Series<'a>(Vec<&'a Run>);

impl Series<'_> {
    /// Median of a number over the runs of a tool that have it.
    fn median(&self, tool: &str, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(self.0.iter().filter(|run| run.tool == tool).filter_map(|run| of(run)).collect())
    }

    /// Median over the rounds of our cost over a tool's.
    fn paired(&self, tool: &str) -> Option<f64> {
        let cost = |name: &str, round| {
            self.0.iter().find(|run| run.tool == name && run.round == round).map(|run| per_request(run))
        };
        let rounds = self.0.iter().map(|run| run.round).collect::<std::collections::BTreeSet<_>>();
        median(rounds.into_iter().filter_map(|round| Some(cost("unladen", round)? / cost(tool, round)?)).collect())
    }
}

/// CPU µs per request.
fn per_request(run: &Run) -> f64 {
    run.cpu_us / run.requests.max(1) as f64
}

/// A number with a unit's usual digits, or a dash.
fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

/// The rows of a case.
fn case(text: &mut String, name: &str, runs: Vec<&Run>, tools: &[Tool]) {
    let series = Series(runs);
    let Some(case) = Case::parse(name) else { return };
    let seconds = series.0.first().map_or(0, |run| run.seconds);
    let (connections, _) = case.shape();
    let _ = match case {
        Case::Closed(_) => write!(
            text,
            "\n### Closed loop, {connections} connections, {seconds} s\n\n| tool | requests/s | CPU µs/request (least) | ours / its, paired | peak RSS MiB | runs |\n|---|---:|---:|---:|---:|---:|\n"
        ),
        Case::Http2(_) | Case::Nghttpd(_) => write!(
            text,
            "\n### HTTP/2 in the clear, {connections} connections of {STREAMS} streams, {}, {seconds} s\n\n| tool | requests/s | CPU µs/request (least) | ours / its, paired | peak RSS MiB | runs |\n|---|---:|---:|---:|---:|---:|\n",
            if matches!(case, Case::Http2(_)) { "our own server" } else { "nghttpd (requests by the tools' count)" }
        ),
        Case::Open(rate) => write!(
            text,
            "\n### Open loop, {rate} requests/s over {connections} connections, {seconds} s\n\n| tool | requests/s | CPU µs/request (least) | says: send lag p99 µs | server saw: off schedule p99 µs | says: latency p99 ms | dropped | peak RSS MiB | runs |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        ),
        Case::Frozen(_) => write!(
            text,
            "\n### A server that stands still for 200 ms in every second: 1,000 requests/s over {connections} connections, {seconds} s\n\nTruth: p90 100 ms, p99 190 ms, largest 200 ms.\n\n| tool | requests/s | says: p90 ms | says: p99 ms | says: largest ms | dropped | runs |\n|---|---:|---:|---:|---:|---:|---:|\n"
        ),
    };
    for tool in tools {
        let count = series.0.iter().filter(|run| run.tool == tool.name).count();
        if count == 0 {
            continue;
        }
        let rate = cell(series.median(tool.name, |run| Some(run.requests as f64 / f64::from(run.seconds))), 0);
        let least = series.0.iter().filter(|run| run.tool == tool.name).map(|run| per_request(run)).reduce(f64::min);
        let cost = format!("{} ({})", cell(series.median(tool.name, |run| Some(per_request(run))), 2), cell(least, 2));
        let memory = cell(series.median(tool.name, |run| Some(run.rss_kib as f64 / 1024.0)), 1);
        let p90 = cell(series.median(tool.name, |run| run.p90_ms), 2);
        let p99 = cell(series.median(tool.name, |run| run.p99_ms), 2);
        let max = cell(series.median(tool.name, |run| run.max_ms), 2);
        let lag = cell(series.median(tool.name, |run| run.lag_p99_us), 0);
        let off = cell(series.median(tool.name, |run| run.off_schedule_p99_us), 0);
        let dropped = cell(series.median(tool.name, |run| run.dropped.map(|count| count as f64)), 0);
        let ratio = if tool.name == "unladen" { "1".to_owned() } else { cell(series.paired(tool.name), 2) };
        let _ = match case {
            Case::Closed(_) | Case::Http2(_) | Case::Nghttpd(_) => {
                writeln!(text, "| {} | {rate} | {cost} | {ratio} | {memory} | {count} |", tool.name)
            }
            Case::Open(_) => writeln!(
                text,
                "| {} | {rate} | {cost} | {lag} | {off} | {p99} | {dropped} | {memory} | {count} |",
                tool.name
            ),
            Case::Frozen(_) => {
                writeln!(text, "| {} | {rate} | {p90} | {p99} | {max} | {dropped} | {count} |", tool.name)
            }
        };
    }
}

/// First value of a key in a file of `key : value` lines.
fn line_of(path: &str, key: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let found = text.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key));
    found.map_or("unknown".to_owned(), |(_, value)| value.trim().to_owned())
}

/// What a command prints, on one line.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Replaces the table in the README.
pub(crate) fn write(readme: &Path, runs: &Path, tools: &[Tool]) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("cannot use {}: {error}", path.display());
    let runs = measure::read(runs)?;
    let mut cases: BTreeMap<(u8, u32, String), Vec<&Run>> = BTreeMap::new();
    for run in &runs {
        let order = match Case::parse(&run.case) {
            Some(Case::Closed(number)) => (0, number),
            Some(Case::Open(number)) => (1, number),
            Some(Case::Frozen(number)) => (2, number),
            Some(Case::Http2(number)) => (3, number),
            Some(Case::Nghttpd(number)) => (4, number),
            None => return Err(format!("{} is no case", run.case)),
        };
        cases.entry((order.0, order.1, run.case.clone())).or_default().push(run);
    }
    let versions: Vec<String> =
        tools.iter().filter_map(|tool| Some(format!("{} {}", tool.name, tool.version()?))).collect();
    let mut text = format!(
        "{}, {} cores, kernel {}, congestion control {}, {}. {}.\n",
        line_of("/proc/cpuinfo", "model name"),
        std::thread::available_parallelism().map_or(0, usize::from),
        output("uname", &["-r"]),
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default().trim(),
        output("date", &["-u", "+%d %B %Y"]),
        versions.join(", ")
    );
    for ((_, _, name), runs) in cases {
        case(&mut text, &name, runs, tools);
    }
    let old = std::fs::read_to_string(readme).map_err(|error| failed(readme, error))?;
    let (before, rest) = old.split_once(MARKS.0).ok_or("the README has no place for the table")?;
    let (_, after) = rest.split_once(MARKS.1).ok_or("the README has no end of the table")?;
    let new = format!("{before}{}\n\n{text}\n{}{after}", MARKS.0, MARKS.1);
    std::fs::write(readme, new).map_err(|error| failed(readme, error))
}
