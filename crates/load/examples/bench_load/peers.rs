//! How each tool is told to make a load, and where it says what.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use unladen_load::plan::{Pacing, Plan, Protocol};

use crate::measure::{Case, Load, STREAMS, ToolReport};

/// A load generator.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    /// Arguments and standard input for a load; `None`: it has no such mode.
    arguments: fn(&Load) -> Option<(String, String)>,
    /// Reads what the tool says: its program, the folder it ran in, its standard output.
    pub(crate) read: fn(&Path, &Path, &str) -> ToolReport,
    /// Arguments that make it say its version.
    version: &'static str,
    /// Whether a figure is promised against it: it takes part in every round.
    pub(crate) close: bool,
}

impl Tool {
    /// Arguments and standard input; `None` if the tool is not there or has no such mode.
    pub(crate) fn command(&self, load: &Load) -> Option<(Vec<String>, String)> {
        if !self.program.exists() {
            return None;
        }
        let (words, input) = (self.arguments)(load)?;
        Some((words.split_whitespace().map(str::to_owned).collect(), input))
    }

    /// What it says when asked for its version.
    pub(crate) fn version(&self) -> Option<String> {
        if !self.program.exists() || self.version.is_empty() {
            return None;
        }
        let output = Command::new(&self.program).args(self.version.split_whitespace()).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_version = |word: &&str| {
            let word = word.trim_start_matches('v');
            word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
        };
        let found = text.split(|c: char| c.is_whitespace() || c == '/').find(is_version);
        found.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
    }
}

/// All tools; those that are not installed are left out by [`Tool::command`].
pub(crate) fn all(ours: &Path, peers: &Path) -> Vec<Tool> {
    let tool = |name, program: PathBuf, version, arguments, read| {
        let close = ["unladen", "wrk", "h2load", "gcannon", "zrk"].contains(&name);
        Tool { name, program, arguments, read, version, close }
    };
    let own = |name: &str| peers.join("bin").join(name);
    let system = |name: &str| Path::new("/usr/bin").join(name);
    vec![
        tool("unladen", ours.to_owned(), "", unladen, read_unladen),
        tool("wrk", system("wrk"), "-v", wrk, read_wrk),
        tool("gcannon", own("gcannon"), "", gcannon, read_gcannon),
        tool("zrk", own("zrk"), "--version", zrk, read_zrk),
        tool("wrk2", own("wrk2"), "", wrk2, read_wrk),
        tool("h2load", system("h2load"), "--version", h2load, read_h2load),
        tool("oha", own("oha"), "--version", oha, read_oha),
        tool("oha -q", own("oha"), "", oha_uncorrected, read_oha),
        tool("bombardier", own("bombardier"), "--version", bombardier, read_bombardier),
        tool("fortio", own("fortio"), "version", fortio, read_fortio),
        tool("vegeta", own("vegeta"), "-version", vegeta, read_vegeta),
        tool("hey", own("hey"), "", hey, read_hey),
        tool("k6", own("k6"), "version", k6, read_k6),
    ]
}

/// The URL of the server.
fn url(load: &Load) -> String {
    format!("http://127.0.0.1:{}/", load.port)
}

/// Arguments without input.
fn words(text: String) -> Option<(String, String)> {
    Some((text, String::new()))
}

fn unladen(load: &Load) -> Option<(String, String)> {
    let (connections, rate) = load.case.shape();
    let plan = Plan {
        pacing: rate.map_or(Pacing::Closed, |rate| Pacing::Constant { rate: f64::from(rate) }),
        connections,
        warmup_s: 0.0,
        window_s: f64::from(load.seconds),
        cores: vec![0],
        protocol: if load.case.is_http2() { Protocol::Http2 } else { Protocol::Http1 },
        streams: if load.case.is_http2() { STREAMS } else { 1 },
        ..Plan::new(url(load))
    };
    Some(("__load".to_owned(), serde_json::to_string(&plan).ok()?))
}

fn wrk(load: &Load) -> Option<(String, String)> {
    if load.case.is_http2() {
        return None;
    }
    let (connections, rate) = load.case.shape();
    // wrk knows no rate; against the server that stands still it shows what a closed loop says.
    if rate.is_some() && !matches!(load.case, Case::Frozen(_)) {
        return None;
    }
    words(format!("-t1 -c{connections} -d{}s --latency {}", load.seconds, url(load)))
}

fn wrk2(load: &Load) -> Option<(String, String)> {
    let (connections, rate) = load.case.shape();
    words(format!("-t1 -c{connections} -d{}s -R{} --latency {}", load.seconds, rate?, url(load)))
}

fn gcannon(load: &Load) -> Option<(String, String)> {
    let Case::Closed(connections) = load.case else { return None };
    words(format!("{} -t 1 -c {connections} -d {} --json", url(load), load.seconds))
}

/// Its closed loop is a rate that no server reaches.
fn zrk(load: &Load) -> Option<(String, String)> {
    if load.case.is_http2() {
        return None;
    }
    let (connections, rate) = load.case.shape();
    let rate = rate.unwrap_or(400_000);
    words(format!(
        "-t 1 -c {connections} -d {}s -R {rate} --plain --format json -o zrk.json {}",
        load.seconds,
        url(load)
    ))
}

fn h2load(load: &Load) -> Option<(String, String)> {
    let (connections, rate) = load.case.shape();
    if rate.is_some() {
        return None;
    }
    let protocol = if load.case.is_http2() { format!("-m{STREAMS}") } else { "--h1".to_owned() };
    words(format!("{protocol} -t1 -c{connections} -D{} {}", load.seconds, url(load)))
}

fn oha(load: &Load) -> Option<(String, String)> {
    let (connections, rate) = load.case.shape();
    let rate = rate.map_or(String::new(), |rate| format!("-q {rate} --latency-correction"));
    let protocol = if load.case.is_http2() { format!("--http2 -p {STREAMS}") } else { String::new() };
    words(format!(
        "--no-tui --output-format json -c {connections} -z {}s {rate} {protocol} {}",
        load.seconds,
        url(load)
    ))
}

fn oha_uncorrected(load: &Load) -> Option<(String, String)> {
    let (Case::Frozen(connections), (_, Some(rate))) = (load.case, load.case.shape()) else { return None };
    words(format!("--no-tui --output-format json -c {connections} -z {}s -q {rate} {}", load.seconds, url(load)))
}

fn bombardier(load: &Load) -> Option<(String, String)> {
    if load.case.is_http2() {
        return None;
    }
    let (connections, rate) = load.case.shape();
    let rate = rate.map_or(String::new(), |rate| format!("-r {rate}"));
    words(format!("-c {connections} -d {}s {rate} -l -o json -p r {}", load.seconds, url(load)))
}

fn fortio(load: &Load) -> Option<(String, String)> {
    if load.case.is_http2() {
        return None;
    }
    let (connections, rate) = load.case.shape();
    let rate = rate.map_or("-qps 0".to_owned(), |rate| format!("-qps {rate} -uniform -nocatchup=false"));
    words(format!("load -quiet -json - -r 0.00001 -p 90,99 -c {connections} -t {}s {rate} {}", load.seconds, url(load)))
}

fn vegeta(load: &Load) -> Option<(String, String)> {
    if load.case.is_http2() {
        return None;
    }
    let (connections, rate) = load.case.shape();
    let rate = match rate {
        Some(rate) => format!("-rate {rate}/s"),
        None => format!("-rate 0 -max-workers {connections}"),
    };
    let workers = format!("-workers {connections} -connections {connections}");
    Some((
        format!("attack {rate} {workers} -duration {}s -output results.gob", load.seconds),
        format!("GET {}\n", url(load)),
    ))
}

fn hey(load: &Load) -> Option<(String, String)> {
    if load.case.is_http2() {
        return None;
    }
    let (connections, rate) = load.case.shape();
    // Its limit is per worker and it does not reach high rates.
    let rate = match (load.case, rate) {
        (Case::Open(_), _) => return None,
        (_, Some(rate)) => format!("-q {}", f64::from(rate) / f64::from(connections)),
        (_, None) => String::new(),
    };
    words(format!("-c {connections} -z {}s {rate} {}", load.seconds, url(load)))
}

fn k6(load: &Load) -> Option<(String, String)> {
    if load.case.is_http2() {
        return None;
    }
    let (connections, rate) = load.case.shape();
    let seconds = load.seconds;
    let scenario = match rate {
        Some(rate) => format!(
            "executor: 'constant-arrival-rate', rate: {rate}, timeUnit: '1s', duration: '{seconds}s', \
             preAllocatedVUs: {connections}, maxVUs: {connections}"
        ),
        None => format!("executor: 'constant-vus', vus: {connections}, duration: '{seconds}s'"),
    };
    let script = format!(
        "import http from 'k6/http'; export const options = {{ discardResponseBodies: true, scenarios: {{ a: {{ {scenario} }} }}, \
         summaryTrendStats: ['p(90)', 'p(99)', 'max'] }}; export default function () {{ http.get('{}'); }}",
        url(load)
    );
    Some(("run -q --no-usage-report --summary-export summary.json -".to_owned(), script))
}

/// Milliseconds from a JSON number times a factor.
fn milliseconds(value: &Value, factor: f64) -> Option<f64> {
    value.as_f64().map(|value| value * factor)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn read_unladen(_: &Path, _: &Path, text: &str) -> ToolReport {
    let done = json(text.lines().last().unwrap_or_default());
    ToolReport {
        p90_ms: milliseconds(&done["latency_us"]["p90"], 1e-3),
        p99_ms: milliseconds(&done["latency_us"]["p99"], 1e-3),
        max_ms: milliseconds(&done["latency_us"]["max"], 1e-3),
        lag_p99_us: done["send_lag_us"]["p99"].as_f64(),
        dropped: None,
        answered: done["answered_total"].as_u64(),
    }
}

/// `99%    1.23ms`, the way wrk prints it.
fn read_wrk(_: &Path, _: &Path, text: &str) -> ToolReport {
    let at = |name: &str, place| {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(name))?;
        let value = line.split_whitespace().nth(place)?;
        let digits = value.trim_end_matches(char::is_alphabetic);
        let factor = match &value[digits.len()..] {
            "us" => 1e-3,
            "ms" => 1.0,
            "s" => 1e3,
            _ => return None,
        };
        Some(digits.parse::<f64>().ok()? * factor)
    };
    // wrk writes 90%, wrk2 90.000%.
    let share = |plain, long| at(plain, 1).or_else(|| at(long, 1));
    ToolReport {
        p90_ms: share("90% ", "90.000% "),
        p99_ms: share("99% ", "99.000% "),
        max_ms: at("Latency ", 3),
        ..ToolReport::default()
    }
}

fn read_gcannon(_: &Path, _: &Path, text: &str) -> ToolReport {
    let found = json(text);
    ToolReport {
        p90_ms: milliseconds(&found["latency_us"]["p90"], 1e-3),
        p99_ms: milliseconds(&found["latency_us"]["p99"], 1e-3),
        answered: found["responses"].as_u64(),
        ..ToolReport::default()
    }
}

fn read_zrk(_: &Path, folder: &Path, _: &str) -> ToolReport {
    let found = json(&std::fs::read_to_string(folder.join("zrk.json")).unwrap_or_default());
    ToolReport {
        p90_ms: milliseconds(&found["latency_us"]["p90"], 1e-3),
        p99_ms: milliseconds(&found["latency_us"]["p99"], 1e-3),
        max_ms: milliseconds(&found["latency_us"]["max"], 1e-3),
        answered: found["requests"].as_u64(),
        ..ToolReport::default()
    }
}

/// `requests: 10 total, 10 started, 10 done, …`, the way h2load prints it.
fn read_h2load(_: &Path, _: &Path, text: &str) -> ToolReport {
    let line = text.lines().find_map(|line| line.strip_prefix("requests: "));
    let done = line.and_then(|line| line.split(", ").find_map(|part| part.strip_suffix(" done")));
    ToolReport { answered: done.and_then(|count| count.parse().ok()), ..ToolReport::default() }
}

fn read_oha(_: &Path, _: &Path, text: &str) -> ToolReport {
    let output = json(text);
    let found = &output["latencyPercentiles"];
    let statuses = output["statusCodeDistribution"].as_object();
    ToolReport {
        p90_ms: milliseconds(&found["p90"], 1e3),
        p99_ms: milliseconds(&found["p99"], 1e3),
        max_ms: milliseconds(&output["summary"]["slowest"], 1e3),
        answered: statuses.map(|all| all.values().filter_map(Value::as_u64).sum()),
        ..ToolReport::default()
    }
}

fn read_bombardier(_: &Path, _: &Path, text: &str) -> ToolReport {
    let found = &json(text)["result"]["latency"];
    let share = |name| milliseconds(&found["percentiles"][name], 1e-3);
    ToolReport {
        p90_ms: share("90"),
        p99_ms: share("99"),
        max_ms: milliseconds(&found["max"], 1e-3),
        ..ToolReport::default()
    }
}

fn read_fortio(_: &Path, _: &Path, text: &str) -> ToolReport {
    let found = json(text);
    let at = |share: f64| {
        let all = found["DurationHistogram"]["Percentiles"].as_array()?;
        milliseconds(&all.iter().find(|one| one["Percentile"].as_f64() == Some(share))?["Value"], 1e3)
    };
    let max_ms = milliseconds(&found["DurationHistogram"]["Max"], 1e3);
    ToolReport { p90_ms: at(90.0), p99_ms: at(99.0), max_ms, ..ToolReport::default() }
}

fn read_vegeta(program: &Path, folder: &Path, _: &str) -> ToolReport {
    let report = Command::new(program).args(["report", "-type", "json", "results.gob"]).current_dir(folder).output();
    let found = report.map_or(Value::Null, |output| json(&String::from_utf8_lossy(&output.stdout)));
    let at = |name| milliseconds(&found["latencies"][name], 1e-6);
    ToolReport { p90_ms: at("90th"), p99_ms: at("99th"), max_ms: at("max"), ..ToolReport::default() }
}

/// `99%% in 0.0012 secs`, the way hey prints it.
fn read_hey(_: &Path, _: &Path, text: &str) -> ToolReport {
    let at = |name: &str, place| {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(place)?.parse::<f64>().ok()? * 1e3)
    };
    ToolReport { p90_ms: at("90%", 2), p99_ms: at("99%", 2), max_ms: at("Slowest:", 1), ..ToolReport::default() }
}

fn read_k6(_: &Path, folder: &Path, _: &str) -> ToolReport {
    let found = json(&std::fs::read_to_string(folder.join("summary.json")).unwrap_or_default());
    let duration = &found["metrics"]["http_req_duration"];
    ToolReport {
        p90_ms: duration["p(90)"].as_f64(),
        p99_ms: duration["p(99)"].as_f64(),
        max_ms: duration["max"].as_f64(),
        dropped: found["metrics"]["dropped_iterations"]["count"].as_u64(),
        ..ToolReport::default()
    }
}
