//! From the load of a study to the plan of the load generator. Files that the load names are read here; nothing is sent.

use std::path::{Path, PathBuf};

use unladen_journal::units::Time;
use unladen_load::pace::{Arrivals, Stage as Line};
use unladen_load::plan::{self, Pacing, Plan, Protocol};
use unladen_study::spec::script::{self, Script};
use unladen_study::spec::{Arrival, Check, Load, Stage, TraceHeader};

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
        connections: load.max_connections(),
        timeout_s: load.timeout.as_seconds(),
        connect_timeout_s: load.connect_timeout.map(Time::as_seconds),
        check: check(load.check),
        slot_us: load.slot.map(|slot| slot.as_seconds() * 1e6),
        seed,
        protocol: if load.http == 2 { Protocol::Http2 } else { Protocol::Http1 },
        streams: load.streams,
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
        redirects: load.redirects,
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
        TraceHeader::Sentry => Some(plan::TraceHeader::Sentry),
        TraceHeader::Xray => Some(plan::TraceHeader::Xray),
        TraceHeader::Pinpoint => Some(plan::TraceHeader::Pinpoint),
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
        checks: tests(&request.expect),
        kinds: tests(&request.kinds),
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

fn tests(conditions: &indexmap::IndexMap<String, script::Condition>) -> Vec<plan::NamedTest> {
    let named =
        |(name, holds): (&String, &script::Condition)| Some(plan::NamedTest { name: name.clone(), test: test(holds)? });
    conditions.iter().filter_map(named).collect()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use unladen_load::plan::{Capture, NamedTest, Request, Source, Test, Until, Value};

    use super::*;

    fn load(keys: serde_json::Value) -> Load {
        let mut all = serde_json::json!({"url": "http://127.0.0.1:1/"});
        let given = keys.as_object().expect("keys").clone();
        all.as_object_mut().expect("keys").extend(given);
        serde_json::from_value(all).expect("a load")
    }

    fn of(keys: serde_json::Value) -> Plan {
        plan(&load(keys), 7, Path::new("/study")).expect("a plan")
    }

    #[test]
    fn every_way_of_pacing_is_the_generators() {
        let line = |seconds, to| Line { seconds, to };
        for (keys, pacing) in [
            (serde_json::json!({}), Pacing::Closed),
            (serde_json::json!({"rate": 5.0}), Pacing::Constant { rate: 5.0 }),
            (serde_json::json!({"rate": 5.0, "arrival": "poisson"}), Pacing::Poisson { rate: 5.0, seed: 7 }),
            (
                serde_json::json!({"rate": 5.0, "stages": [{"duration": "2s", "target": 9.0}]}),
                Pacing::Stages { from: 5.0, stages: vec![line(2.0, 9.0)], arrivals: Arrivals::default() },
            ),
            (
                serde_json::json!({"arrival": "poisson", "stages": [{"duration": "0s", "target": 9.0}]}),
                Pacing::Stages { from: 0.0, stages: vec![line(0.0, 9.0)], arrivals: Arrivals::Poisson { seed: 7 } },
            ),
            (
                serde_json::json!({"users": {"count": 3.0, "think": "250ms", "rate": 10.0}}),
                Pacing::Users { from: 3.0, stages: Vec::new(), think_s: 0.25, rate: Some(10.0) },
            ),
            (serde_json::json!({"burst": 100}), Pacing::Burst { count: 100 }),
        ] {
            assert_eq!(of(keys.clone()).pacing, pacing, "{keys}");
        }
        let users = serde_json::json!({"users": {"stages": [{"duration": "1s", "target": 320.0}]}});
        assert_eq!(of(users.clone()).connections, 320, "one for each user");
        let mut streams = users;
        (streams["http"], streams["streams"]) = (2.into(), 32.into());
        assert_eq!(of(streams).connections, 10, "a stream for each user");
    }

    #[test]
    fn the_protocol_and_its_files_are_the_generators() {
        let plan = of(
            serde_json::json!({"http": 2, "streams": 8, "slot": "100us", "redirects": 3, "tls": {"ca": "ca.pem", "client_certificate": "me.pem"}}),
        );
        assert_eq!((plan.redirects, plan.tls.client_certificate.as_deref()), (3, Some(Path::new("/study/me.pem"))));
        assert_eq!((plan.protocol, plan.streams, plan.slot_us), (Protocol::Http2, 8, Some(100.0)));
        assert_eq!(plan.tls.ca.as_deref(), Some(Path::new("/study/ca.pem")));
        let grpc = serde_json::json!({"method": "a.B/C", "message": {"x": 1}, "protos": ["b.proto"]});
        let call = of(serde_json::json!({"grpc": grpc})).grpc.expect("a call");
        assert_eq!((call.method.as_str(), call.message), ("a.B/C", serde_json::json!({"x": 1})));
        assert_eq!(call.protos, [Path::new("/study/b.proto")]);
    }

    #[test]
    fn a_script_keeps_its_order_values_captures_and_checks() {
        let plan = of(serde_json::json!({"script": {
            "order": "sequence",
            "values": {
                "seats": {"integer": [1, 4]}, "n": {"counter": 5}, "t": {"text": 8}, "u": {"uuid": true},
                "user": {"csv": "users.csv", "column": "id", "random": true},
            },
            "requests": [
                {"name": "post", "method": "POST", "path": "/x", "headers": {"A": "b"}, "body_file": "body.json",
                 "expect": {"ok": {"status": 201}, "at": {"header": "Location", "equals": 7}},
                 "capture": {"id": {"json": "/id"}, "v": {"regex": "v=(.)"}}},
                {"name": "get", "path": "/x/{{id}}",
                 "kinds": {"reserved": {"json": "/state", "equals": "RESERVED"}, "busy": {"status": 202}},
                 "until": {"holds": {"json": "/state", "equals": "done"}, "pause": "20ms", "most": 50}},
            ],
        }}));
        assert_eq!(plan.order, plan::Order::Sequence);
        let file = PathBuf::from("/study/users.csv");
        let values = [
            ("n", Value::Counter { from: 5 }),
            ("seats", Value::Integer { min: 1, max: 4 }),
            ("t", Value::Text { length: 8 }),
            ("u", Value::Uuid),
            ("user", Value::Csv { file, column: "id".to_owned(), random: true }),
        ];
        assert_eq!(plan.values, values.map(|(name, value)| (name.to_owned(), value)).into());
        let named = |name: &str, test| NamedTest { name: name.to_owned(), test };
        let capture = |name: &str, from| Capture { name: name.to_owned(), from };
        let post = Request {
            method: "POST".to_owned(),
            path: Some("/x".to_owned()),
            headers: vec![("A".to_owned(), "b".to_owned())],
            body_file: Some(PathBuf::from("/study/body.json")),
            checks: vec![
                named("ok", Test::Status(201)),
                named("at", Test::HeaderEquals { name: "Location".to_owned(), value: "7".to_owned() }),
            ],
            captures: vec![
                capture("id", Source::Json("/id".to_owned())),
                capture("v", Source::Regex("v=(.)".to_owned())),
            ],
            ..Request::new("post")
        };
        let done = Test::JsonEquals { pointer: "/state".to_owned(), value: "done".into() };
        let get = Request {
            path: Some("/x/{{id}}".to_owned()),
            kinds: vec![
                named("reserved", Test::JsonEquals { pointer: "/state".to_owned(), value: "RESERVED".into() }),
                named("busy", Test::Status(202)),
            ],
            until: Some(Until { test: done, pause_s: 0.02, most: 50 }),
            ..Request::new("get")
        };
        assert_eq!(plan.requests, [post, get]);
    }

    #[test]
    fn recorded_gaps_are_read_and_slips_are_told_with_their_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("gaps.txt");
        fs::write(&file, "# recorded on Monday\n100\n\n 250.5 \n").expect("written");
        assert_eq!(gaps(&file).expect("gaps"), [100.0, 250.5]);
        fs::write(&file, "100\n-1\n").expect("written");
        let error = gaps(&file).expect_err("a negative gap").to_string();
        assert!(error.contains("gaps.txt:2: `-1`"), "{error}");
        let missing = load(serde_json::json!({"replay": "none.txt"}));
        let error = plan(&missing, 1, folder.path()).expect_err("no file").to_string();
        assert!(error.contains("none.txt"), "{error}");
    }
}
