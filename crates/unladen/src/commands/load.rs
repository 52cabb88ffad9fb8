//! `load`: the load generator used alone.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use unladen_journal::units::Time;
use unladen_load::capacity::{self, Capacity, Search};
use unladen_load::outcome::{Event, Outcome, Quantiles};
use unladen_load::pace::{Arrivals, Stage};
use unladen_load::plan::{Check, Grpc, Pacing, Plan, Protocol, Tls, Trace, TraceHeader};
use unladen_load::threshold::Threshold;
use unladen_load::{merge, shard, summary, targets};
use unladen_measure::load_plan;
use unladen_study::spec::script::Script;

use super::{COULD_NOT_RUN, interrupt_flag};
use crate::cli::load::{self as cli, Load, Merge, Request};

/// First rate of `--capacity` without a `--rate`, requests per second.
const FIRST_RATE: f64 = 100.0;
/// The slot of `--pace slot`, µs: what is chosen by itself at 10,000 requests a second.
const USUAL_SLOT_US: f64 = 200.0;
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
    if let Some(conditions) = &options.capacity.conditions {
        return capacity(options, &plan, conditions, &stop);
    }
    if let Some(other) = &options.against {
        return super::against::against(&plan, other, options.block, options.output.json.as_deref(), &stop);
    }
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

/// Searches the highest rate at which the conditions hold, and prints every trial.
fn capacity(options: &Load, plan: &Plan, conditions: &cli::Conditions, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let search = Search {
        from: options.pacing.rate.unwrap_or(FIRST_RATE).min(options.capacity.most),
        most: options.capacity.most,
        precision: options.capacity.precision.0,
    };
    let json = options.output.json.as_deref();
    // Standard output belongs to the JSON if it was asked for there.
    let quiet = json == Some(Path::new("-"));
    if !quiet {
        let until = conditions.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        println!(
            "{}\n  trials of {}, {} connections; a rate fails at {until}\n",
            plan.url, options.duration, plan.connections
        );
        println!(
            "  {:>12}{:>12}{:>12}{:>12}{:>10}  {:<6}  why",
            "wanted/s", "achieved/s", "p50 ms", "p99 ms", "errors", "holds"
        );
    }
    let mut trials = Vec::new();
    let after = |rate: f64, outcome: &Outcome, held: bool| {
        if !quiet {
            println!("{}", trial_line(rate, outcome, held, &conditions.0));
        }
        trials.push(serde_json::json!({"rate": rate, "held": held, "outcome": json_of(outcome)}));
    };
    let found = capacity::measure(plan, &search, &conditions.0, after, stop)?;
    if let Some(path) = json {
        let value = serde_json::json!({"holds": found.holds, "fails": found.fails, "trials": trials});
        write_json(path, &value)?;
    }
    let interrupted = stop.load(Ordering::Relaxed);
    if !quiet {
        println!("\n{}", capacity_text(&found, interrupted));
    }
    Ok(if found.holds.is_some() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// One trial in a line.
fn trial_line(rate: f64, outcome: &Outcome, held: bool, conditions: &[Threshold]) -> String {
    let all = (outcome.requests + outcome.errors).max(1);
    let broken: Vec<String> = conditions.iter().filter_map(|limit| limit.broken_by(outcome)).collect();
    let why = match (held, broken.is_empty()) {
        (true, _) => String::new(),
        (false, true) => "the rate was not reached".to_owned(),
        (false, false) => broken.join(", "),
    };
    let line = format!(
        "  {rate:>12.1}{:>12.1}{:>12.3}{:>12.3}{:>8.2} %  {:<6}  {why}",
        outcome.rate,
        outcome.latency_us.p50 / 1e3,
        outcome.latency_us.p99 / 1e3,
        100.0 * outcome.errors as f64 / all as f64,
        if held { "yes" } else { "no" },
    );
    line.trim_end().to_owned()
}

/// What the search found, in a sentence.
fn capacity_text(found: &Capacity, interrupted: bool) -> String {
    let early = if interrupted { " The search was ended early." } else { "" };
    match (found.holds, found.fails) {
        (Some(holds), Some(fails)) => format!("Capacity: {holds:.0} requests/s held, {fails:.0} did not.{early}"),
        (Some(holds), None) => format!("Capacity: at least {holds:.0} requests/s; nothing higher was tried.{early}"),
        (None, Some(fails)) => format!("No capacity: not even {fails:.1} requests/s held.{early}"),
        (None, None) => format!("No rate was tried often enough to tell.{early}"),
    }
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
        connect_timeout_s: request.connect_timeout.map(Time::as_seconds),
        trace: trace(request),
        check: Check { status: request.status, length: None },
        slot_us: match (options.pacing.slot, options.pacing.pace) {
            (Some(slot), _) => Some(slot.as_seconds() * 1e6),
            (None, Some(cli::Pace::Exact | cli::Pace::Spin)) => Some(0.0),
            (None, Some(cli::Pace::Slot)) => Some(USUAL_SLOT_US),
            (None, None) => None,
        },
        spin: options.pacing.pace == Some(cli::Pace::Spin),
        limit: options.pacing.requests,
        seed: options.pacing.seed,
        protocol: if request.http2 { Protocol::Http2 } else { Protocol::Http1 },
        streams: request.streams,
        tls: Tls {
            ca: request.ca.clone(),
            insecure: request.insecure,
            client_certificate: request.cert.clone(),
            client_key: request.key.clone(),
            ..Tls::default()
        },
        redirects: request.redirects,
        grpc: grpc(request)?,
        ..Plan::new(options.url.clone().unwrap_or_default())
    };
    if let Some(path) = &request.targets {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let all = targets::parse(&text, folder).with_context(|| format!("{} is not a target file", path.display()))?;
        plan.url = all.url;
        plan.requests = all.requests;
    }
    if let Some(path) = &request.script {
        load_plan::follow(&mut plan, &Script::read(path)?, path.parent().unwrap_or(Path::new(".")));
    }
    // Every user has a connection of its own, or a stream.
    if let Pacing::Users { from, stages, .. } = &plan.pacing {
        let most = stages.iter().map(|stage| stage.to).fold(*from, f64::max);
        plan.connections = (most / f64::from(plan.streams)).ceil() as u32;
    }
    Ok(plan)
}

fn pacing(options: &Load) -> anyhow::Result<Pacing> {
    let pacing = &options.pacing;
    let (seed, think_s) = (pacing.seed, pacing.think.as_seconds());
    let arrivals = if pacing.poisson { Arrivals::Poisson { seed } } else { Arrivals::default() };
    Ok(if let Some(stages) = &pacing.stages {
        Pacing::Stages { from: 0.0, stages: Stage::parse_list(stages)?, arrivals }
    } else if let Some(users) = pacing.users {
        Pacing::Users { from: f64::from(users), stages: Vec::new(), think_s, rate: pacing.rate }
    } else if let Some(stages) = &pacing.user_stages {
        Pacing::Users { from: 0.0, stages: Stage::parse_list(stages)?, think_s, rate: pacing.rate }
    } else if let Some(count) = pacing.burst {
        Pacing::Burst { count }
    } else if let Some(path) = &pacing.replay {
        Pacing::Replay { gaps_us: load_plan::gaps(path)? }
    } else if let Some(rate) = pacing.rate {
        if pacing.poisson { Pacing::Poisson { rate, seed } } else { Pacing::Constant { rate } }
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
            cli::TraceHeader::Sentry => TraceHeader::Sentry,
            cli::TraceHeader::Xray => TraceHeader::Xray,
            cli::TraceHeader::Pinpoint => TraceHeader::Pinpoint,
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

pub(super) fn write_json(path: &Path, value: &serde_json::Value) -> anyhow::Result<()> {
    let text = serde_json::to_string(value)?;
    if path == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// The stable JSON for scripts.
pub(super) fn json_of(outcome: &Outcome) -> serde_json::Value {
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
