//! `load`: the load generator used alone.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use unladen_load::outcome::{Event, Outcome, Quantiles};
use unladen_load::pace::{Arrivals, Stage};
use unladen_load::plan::{Check, Grpc, Pacing, Plan, Protocol, Tls, Trace, TraceHeader};
use unladen_load::threshold::Threshold;
use unladen_load::{merge, shard, summary, targets};

use super::{COULD_NOT_RUN, interrupt_flag};
use crate::cli::load::{self as cli, Load, Merge, Request};

/// A condition of `--fail-if` holds.
const FAILED: u8 = 1;

/// `unladen load`
///
/// # Errors
/// When the load cannot be started or its result cannot be written.
pub fn load(options: &Load) -> anyhow::Result<ExitCode> {
    if let Some(Merge::Merge { dirs, json }) = &options.merge {
        let (outcome, _) = merge::folders(dirs)?;
        return show(&Plan::new("all parts"), &outcome, json.as_deref(), &[]);
    }
    let plan = plan(options)?;
    let stop = interrupt_flag()?;
    let live = io::stderr().is_terminal();
    let outcome = unladen_load::run(
        &plan,
        &mut |event| {
            if let (true, Event::Second(second)) = (live, event) {
                eprint!("\r{} ", summary::live(&second));
            }
        },
        &stop,
    )?;
    if live {
        eprintln!();
    }
    show(&plan, &outcome, options.output.json.as_deref(), &options.output.fail_if)
}

/// Prints the outcome; the exit code says whether it is good enough.
fn show(plan: &Plan, outcome: &Outcome, json: Option<&Path>, limits: &[Threshold]) -> anyhow::Result<ExitCode> {
    if let Some(path) = json {
        write_json(path, &json_of(outcome))?;
    }
    // Standard output belongs to the JSON if it was asked for there.
    if json != Some(Path::new("-")) {
        write!(anstream::stdout().lock(), "{}", summary::text(plan, outcome))?;
    }
    let broken: Vec<String> = limits.iter().filter_map(|limit| limit.broken_by(outcome)).collect();
    for line in &broken {
        eprintln!("fails: {line}");
    }
    Ok(match (outcome.requests, broken.is_empty()) {
        (0, _) => ExitCode::from(COULD_NOT_RUN),
        (_, true) => ExitCode::SUCCESS,
        (_, false) => ExitCode::from(FAILED),
    })
}

fn plan(options: &Load) -> anyhow::Result<Plan> {
    let mut plan = match &options.plan {
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            serde_json::from_str(&text).with_context(|| format!("{} is no plan", path.display()))?
        }
        None => typed(options)?,
    };
    if let Some(part) = &options.shard {
        plan.shard = Some(cli::shard(part)?);
    }
    if let Some(at) = options.start_at {
        let since_epoch = Duration::try_from(at.as_duration()).context("--start-at is before 1970")?;
        plan.start_at_ns = Some(shard::start_at(since_epoch).context("--start-at has passed")?);
    }
    if let Some(folder) = &options.output.hdr {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        plan.out = Some(folder.clone());
    }
    Ok(plan)
}

/// The plan that the options say.
fn typed(options: &Load) -> anyhow::Result<Plan> {
    let request = &options.request;
    let mut plan = Plan {
        method: request.method.clone(),
        headers: headers(&request.headers)?,
        body: request.body.clone(),
        pacing: pacing(options)?,
        connections: options.connections,
        cores: options.cores.clone(),
        warmup_s: options.warmup.as_seconds(),
        window_s: options.duration.as_seconds(),
        timeout_s: request.timeout.as_seconds(),
        trace: trace(request),
        check: Check { status: request.status, length: None },
        limit: options.pacing.requests,
        seed: options.pacing.seed,
        protocol: if request.http2 { Protocol::Http2 } else { Protocol::Http1 },
        streams: request.streams,
        tls: Tls { ca: request.ca.clone(), insecure: request.insecure, ..Tls::default() },
        grpc: grpc(request)?,
        ..Plan::new(options.url.clone().unwrap_or_default())
    };
    if let Some(path) = &request.targets {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let all = targets::parse(&text, folder).with_context(|| format!("{} is no target file", path.display()))?;
        plan.url = all.url;
        plan.requests = all.requests;
    }
    // Every user has a connection of its own.
    if let Pacing::Users { from, stages, .. } = &plan.pacing {
        let most = stages.iter().map(|stage| stage.to).fold(*from, f64::max);
        plan.connections = plan.connections.max(most.ceil() as u32);
    }
    Ok(plan)
}

fn pacing(options: &Load) -> anyhow::Result<Pacing> {
    let pacing = &options.pacing;
    let (seed, think_s) = (pacing.seed, pacing.think.as_seconds());
    let arrivals = if pacing.poisson { Arrivals::Poisson { seed } } else { Arrivals::default() };
    Ok(if let Some(rate) = pacing.rate {
        if pacing.poisson { Pacing::Poisson { rate, seed } } else { Pacing::Constant { rate } }
    } else if let Some(stages) = &pacing.stages {
        Pacing::Stages { from: 0.0, stages: Stage::parse_list(stages)?, arrivals }
    } else if let Some(users) = pacing.users {
        Pacing::Users { from: f64::from(users), stages: Vec::new(), think_s, rate: None }
    } else if let Some(stages) = &pacing.user_stages {
        Pacing::Users { from: 0.0, stages: Stage::parse_list(stages)?, think_s, rate: None }
    } else if let Some(count) = pacing.burst {
        Pacing::Burst { count }
    } else if let Some(path) = &pacing.replay {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let gap = |(line, number): (&str, usize)| {
            line.trim().parse().with_context(|| format!("{}:{number}: `{line}` is no number of µs", path.display()))
        };
        Pacing::Replay { gaps_us: text.lines().zip(1..).map(gap).collect::<anyhow::Result<_>>()? }
    } else {
        Pacing::Closed
    })
}

fn headers(texts: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let header = |text: &String| {
        let (name, value) =
            text.split_once(':').with_context(|| format!("`{text}` is no header; write it as 'Name: value'"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    texts.iter().map(header).collect()
}

fn trace(request: &Request) -> Option<Trace> {
    request.trace.map(|share| Trace {
        header: match request.trace_header {
            cli::TraceHeader::W3c => TraceHeader::W3c,
            cli::TraceHeader::B3 => TraceHeader::B3,
            cli::TraceHeader::Sw8 => TraceHeader::Sw8,
        },
        // Alone, nobody recognises the ids later: any tag and key will do.
        tag: u64::from(std::process::id()) << 32 | 1,
        key: 0x756e_6c61_6465_6e00,
        sampled: share.0,
    })
}

fn grpc(request: &Request) -> anyhow::Result<Option<Grpc>> {
    let Some(method) = &request.grpc else { return Ok(None) };
    Ok(Some(Grpc {
        method: method.clone(),
        message: serde_json::from_str(&request.message).context("--message is no JSON")?,
        protos: request.protos.clone(),
        includes: Vec::new(),
        descriptors: None,
        status: None,
    }))
}

fn write_json(path: &Path, value: &serde_json::Value) -> anyhow::Result<()> {
    let text = serde_json::to_string(value)?;
    if path == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// The stable JSON for scripts.
fn json_of(outcome: &Outcome) -> serde_json::Value {
    let quantiles = |q: &Quantiles| {
        serde_json::json!({"mean": q.mean, "p50": q.p50, "p75": q.p75, "p90": q.p90, "p95": q.p95, "p99": q.p99,
            "p999": q.p999, "max": q.max})
    };
    serde_json::json!({
        "requests": outcome.requests,
        "errors": outcome.errors + outcome.unanswered,
        "error_classes": outcome.error_classes,
        "rate": outcome.rate,
        "target_rate": outcome.target_rate,
        "duration_s": outcome.duration_s,
        "latency_us": quantiles(&outcome.latency_us),
        "service_time_us": quantiles(&outcome.service_time_us),
        "send_lag_us": quantiles(&outcome.send_lag_us),
        "cpu_us_per_request": outcome.cpu_us_per_request,
        "bytes_sent": outcome.bytes_sent,
        "bytes_received": outcome.bytes_received,
        "statuses": outcome.statuses,
        "reconnects": outcome.reconnects,
    })
}
