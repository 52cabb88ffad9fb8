//! `make bench-load`: unladen's load generator side by side with its peers, on the same machine, in the same run.
//!
//! Every tool is a process on one core, the server ([`stub_server`](../stub_server.rs)) is on another. Tools take turns within
//! each round, so that a slow phase of the machine hits them all. Cost is the CPU time of the whole process (`wait4`) over the
//! requests that the *server* counted. Runs are appended to a file of JSON lines; `table` renders what is there, so that a
//! series may be made in parts.

mod measure;
mod peers;
mod table;

use std::path::PathBuf;

use measure::{Case, Load};

/// What the command line says.
struct Options {
    /// With the seconds of each.
    cases: Vec<(Case, Option<u32>)>,
    rounds: u32,
    peer_rounds: u32,
    seconds: u32,
    only: Option<Vec<String>>,
    ours: PathBuf,
    peers: PathBuf,
    stub: PathBuf,
    runs: PathBuf,
    readme: Option<PathBuf>,
}

const USAGE: &str = "usage: bench_load [CASE[:SECONDS]…] [--rounds N] [--peer-rounds N] [--seconds S] [--only TOOL,…] --ours PATH --peers DIR --stub PATH --runs FILE [--table README]
cases: closed-N (connections), open-R (requests a second over 64 connections), frozen-N (1,000 a second over N connections,
the server stands still for 200 ms in every second), http2-N and nghttpd-N (connections of 32 streams each)
rounds of one call are numbered on from those in the file; only runs of the same round are paired";

fn options() -> Result<Options, String> {
    let mut found = Options {
        cases: Vec::new(),
        rounds: 5,
        peer_rounds: u32::MAX,
        seconds: 5,
        only: None,
        ours: PathBuf::new(),
        peers: PathBuf::new(),
        stub: PathBuf::new(),
        runs: PathBuf::new(),
        readme: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value\n{USAGE}"));
        let number = |text: String| text.parse::<u32>().map_err(|_| format!("{text} is not a number\n{USAGE}"));
        // Tools run in a folder of their own.
        let path = |text: String| std::path::absolute(&text).map_err(|error| format!("{text}: {error}"));
        match word.as_str() {
            "--rounds" => found.rounds = number(value()?)?,
            "--peer-rounds" => found.peer_rounds = number(value()?)?,
            "--seconds" => found.seconds = number(value()?)?,
            "--only" => found.only = Some(value()?.split(',').map(str::to_owned).collect()),
            "--ours" => found.ours = path(value()?)?,
            "--peers" => found.peers = path(value()?)?,
            "--stub" => found.stub = path(value()?)?,
            "--runs" => found.runs = value()?.into(),
            "--table" => found.readme = Some(value()?.into()),
            case => {
                let (name, seconds) = match case.split_once(':') {
                    Some((name, seconds)) => (name, Some(number(seconds.to_owned())?)),
                    None => (case, None),
                };
                found.cases.push((Case::parse(name).ok_or_else(|| format!("{case} is no case\n{USAGE}"))?, seconds));
            }
        }
    }
    Ok(found)
}

fn main() -> Result<(), String> {
    let options = options()?;
    let before = measure::read(&options.runs)?;
    for turn in 1..=options.rounds {
        for (case, seconds) in &options.cases {
            let known = before.iter().filter(|run| run.case == case.name()).map(|run| run.round).max();
            let round = known.unwrap_or(0) + turn;
            let tools: Vec<_> = peers::all(&options.ours, &options.peers)
                .into_iter()
                .filter(|tool| options.only.as_ref().is_none_or(|only| only.iter().any(|name| name == tool.name)))
                .filter(|tool| tool.close || turn <= options.peer_rounds)
                .filter(|tool| tool.command(&Load { case: *case, port: 1, seconds: 1 }).is_some())
                .collect();
            // Another tool goes first in every round.
            for place in 0..tools.len() {
                let tool = &tools[(place + round as usize) % tools.len()];
                let run = measure::run(tool, *case, round, seconds.unwrap_or(options.seconds), &options.stub)?;
                eprintln!(
                    "{:<10} {round} {:<11} {:>9} requests  {:>7.2} µs  {:>7} KiB  p99 {}",
                    case.name(),
                    tool.name,
                    run.requests,
                    run.cpu_us / run.requests.max(1) as f64,
                    run.rss_kib,
                    run.p99_ms.map_or("-".to_owned(), |ms| format!("{ms:.3} ms"))
                );
                measure::append(&options.runs, &run)?;
            }
        }
    }
    match &options.readme {
        Some(readme) => table::write(readme, &options.runs, &peers::all(&options.ours, &options.peers)),
        None => Ok(()),
    }
}
