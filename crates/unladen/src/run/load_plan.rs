//! From the load of a study to the plan of the load generator. Files that the load names are read here; nothing is sent.

use std::path::{Path, PathBuf};

use unladen_load::pace::{Arrivals, Stage as Line};
use unladen_load::plan::{self, Pacing, Plan, Protocol};

use crate::study::spec::script::{self, Script};
use crate::study::spec::{Arrival, Check, Load, Stage, TraceHeader};

/// A file of the load cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadFileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}. The load of the study names it", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no gap.
    #[error("{}:{line}: `{text}` is no gap between requests; write one number of microseconds a line", path.display())]
    Gap {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
}

/// The plan of a load without what each run adds: trace ids, start, lengths, cores. `dir` is where relative paths start.
///
/// # Errors
/// When a file that the load names cannot be read.
pub fn plan(load: &Load, seed: u64, dir: &Path) -> Result<Plan, LoadFileError> {
    let path = |text: &String| dir.join(text);
    let mut plan = Plan {
        method: load.method.clone(),
        headers: pairs(&load.headers),
        body: load.body.clone(),
        pacing: pacing(load, seed, dir)?,
        connections: load.most_connections(),
        timeout_s: load.timeout.as_seconds(),
        check: check(load.check),
        slot_us: load.slot.map(|slot| slot.as_seconds() * 1e6),
        seed,
        protocol: if load.http == 2 { Protocol::Http2 } else { Protocol::Http1 },
        streams: load.streams,
        redirects: load.redirects,
        tls: plan::Tls {
            ca: load.tls.ca.as_ref().map(path),
            insecure: load.tls.insecure,
            server_name: load.tls.server_name.clone(),
            client_certificate: load.tls.client_certificate.as_ref().map(path),
            client_key: load.tls.client_key.as_ref().map(path),
        },
        grpc: load.grpc.as_ref().map(|grpc| plan::Grpc {
            method: grpc.method.clone(),
            message: grpc.message.clone(),
            protos: grpc.protos.iter().map(path).collect(),
            includes: grpc.includes.iter().map(path).collect(),
            descriptors: grpc.descriptors.as_ref().map(path),
            status: grpc.status.clone(),
        }),
        ..Plan::new(&load.url)
    };
    if let Some(script) = &load.script {
        follow(&mut plan, script, dir);
    }
    Ok(plan)
}

/// Lets a plan send the requests of a script.
pub fn follow(plan: &mut Plan, script: &Script, dir: &Path) {
    plan.order = match script.order {
        script::Order::Weighted => plan::Order::Weighted,
        script::Order::Sequence => plan::Order::Sequence,
    };
    plan.values = script.values.iter().filter_map(|(name, value)| Some((name.clone(), made(value, dir)?))).collect();
    plan.requests = script.requests.iter().map(|request| step(request, dir)).collect();
}

/// When requests are due.
fn pacing(load: &Load, seed: u64, dir: &Path) -> Result<Pacing, LoadFileError> {
    if let Some(users) = &load.users {
        return Ok(Pacing::Users {
            from: users.count,
            stages: lines(&users.stages),
            think_s: users.think.as_seconds(),
            rate: users.rate,
        });
    }
    Ok(match (load.arrival, load.rate, load.burst, &load.replay) {
        (arrival, from, _, _) if !load.stages.is_empty() => Pacing::Stages {
            from: from.unwrap_or(0.0),
            stages: lines(&load.stages),
            arrivals: match arrival {
                Arrival::Constant => Arrivals::default(),
                Arrival::Poisson => Arrivals::Poisson { seed },
            },
        },
        (Arrival::Constant, Some(rate), _, _) => Pacing::Constant { rate },
        (Arrival::Poisson, Some(rate), _, _) => Pacing::Poisson { rate, seed },
        (_, None, Some(count), _) => Pacing::Burst { count },
        (_, None, None, Some(file)) => Pacing::Replay { gaps_us: gaps(&dir.join(file))? },
        (_, None, None, None) => Pacing::Closed,
    })
}

fn lines(stages: &[Stage]) -> Vec<Line> {
    stages.iter().map(|stage| Line { seconds: stage.duration.as_seconds(), to: stage.target }).collect()
}

/// Recorded gaps, one number of microseconds a line; empty lines and `#` comments are left out.
///
/// # Errors
/// When the file cannot be read, or a line is no number.
pub fn gaps(path: &Path) -> Result<Vec<f64>, LoadFileError> {
    let text = std::fs::read_to_string(path).map_err(|source| LoadFileError::Read { path: path.to_owned(), source })?;
    let written = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    written
        .map(|(line, number)| {
            let gap = line.parse().ok().filter(|gap: &f64| gap.is_finite() && *gap >= 0.0);
            gap.ok_or_else(|| LoadFileError::Gap { path: path.to_owned(), line: number, text: line.to_owned() })
        })
        .collect()
}

fn pairs(headers: &indexmap::IndexMap<String, String>) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn check(check: Check) -> plan::Check {
    plan::Check { status: check.status, length: check.length }
}

/// Which header carries the trace; `None`: none does.
#[must_use]
pub fn header(trace: TraceHeader) -> Option<plan::TraceHeader> {
    match trace {
        TraceHeader::None => None,
        TraceHeader::W3c => Some(plan::TraceHeader::W3c),
        TraceHeader::B3 => Some(plan::TraceHeader::B3),
        TraceHeader::Sw8 => Some(plan::TraceHeader::Sw8),
    }
}

/// `None` for a value that is none, which the check of the study refuses.
fn made(value: &script::Value, dir: &Path) -> Option<plan::Value> {
    let of_file = |file: &String| plan::Value::Csv {
        file: dir.join(file),
        column: value.column.clone().unwrap_or_default(),
        random: value.random,
    };
    let integer = |range: &Vec<i64>| match range[..] {
        [min, max] => Some(plan::Value::Integer { min, max }),
        _ => None,
    };
    let counter = value.counter.map(|from| plan::Value::Counter { from });
    counter
        .or_else(|| value.integer.as_ref().and_then(integer))
        .or_else(|| value.text.map(|length| plan::Value::Text { length }))
        .or_else(|| value.uuid.then_some(plan::Value::Uuid))
        .or_else(|| value.csv.as_ref().map(of_file))
}

fn step(request: &script::Request, dir: &Path) -> plan::Request {
    plan::Request {
        weight: request.weight,
        method: request.method.clone(),
        path: request.path.clone(),
        headers: pairs(&request.headers),
        body: request.body.clone(),
        body_file: request.body_file.as_ref().map(|file| dir.join(file)),
        check: request.check.map(check),
        checks: request
            .expect
            .iter()
            .filter_map(|(name, holds)| Some(plan::NamedTest { name: name.clone(), test: test(holds)? }))
            .collect(),
        captures: request
            .capture
            .iter()
            .filter_map(|(name, from)| Some(plan::Capture { name: name.clone(), from: source(from)? }))
            .collect(),
        until: request.until.as_ref().and_then(|until| {
            Some(plan::Until { test: test(&until.holds)?, pause_s: until.pause.as_seconds(), most: until.most })
        }),
        ..plan::Request::new(request.name.clone())
    }
}

/// `None` for a condition that is none, which the check of the study refuses.
fn test(condition: &script::Condition) -> Option<plan::Test> {
    let equals = || condition.equals.clone().unwrap_or_default();
    let as_text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    let status = condition.status.map(plan::Test::Status);
    status
        .or_else(|| condition.body_contains.clone().map(plan::Test::BodyContains))
        .or_else(|| condition.body_matches.clone().map(plan::Test::BodyMatches))
        .or_else(|| condition.json.clone().map(|pointer| plan::Test::JsonEquals { pointer, value: equals() }))
        .or_else(|| condition.header.clone().map(|name| plan::Test::HeaderEquals { name, value: as_text(equals()) }))
}

fn source(source: &script::Source) -> Option<plan::Source> {
    let json = source.json.clone().map(plan::Source::Json);
    json.or_else(|| source.header.clone().map(plan::Source::Header))
        .or_else(|| source.regex.clone().map(plan::Source::Regex))
}
