//! `load` and `sink`: the instrument's parts used alone.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use unladen_load::outcome::{Event, Outcome, Quantiles};
use unladen_load::plan::{Check, Pacing, Plan, Trace, TraceHeader};
use unladen_sink::config::{Attributes as Stored, Config};
use unladen_sink::summary::{Event as SinkEvent, Summary};

use super::{COULD_NOT_RUN, interrupt_flag};
use crate::cli::{Attributes, Load, Sink};

/// `unladen load`
///
/// # Errors
/// When the load cannot be started or its result cannot be written.
pub fn load(options: &Load) -> anyhow::Result<ExitCode> {
    let plan = load_plan(options)?;
    let stop = interrupt_flag()?;
    let live = io::stderr().is_terminal();
    let mut show = |event: Event| {
        if let (true, Event::Second(second)) = (live, event) {
            eprint!(
                "\r{:>5} s  {:>8} requests/s  p50 {:>8.3} ms  p99 {:>8.3} ms  {:>5} errors ",
                second.second + 1,
                second.answered,
                second.p50_us / 1e3,
                second.p99_us / 1e3,
                second.errors
            );
        }
    };
    let outcome = unladen_load::run(&plan, &mut show, &stop)?;
    if live {
        eprintln!();
    }
    let json = options.json.as_deref();
    if let Some(path) = json {
        write_json(path, &json_of(&outcome))?;
    }
    // Standard output belongs to the JSON if it was asked for there.
    if json != Some(Path::new("-")) {
        let mut out = anstream::stdout().lock();
        write!(out, "{}", text_of(&outcome, options))?;
    }
    Ok(if outcome.requests == 0 { ExitCode::from(COULD_NOT_RUN) } else { ExitCode::SUCCESS })
}

fn load_plan(options: &Load) -> anyhow::Result<Plan> {
    let headers = options
        .headers
        .iter()
        .map(|header| {
            let (name, value) = header
                .split_once(':')
                .with_context(|| format!("`{header}` is no header; write it as 'Name: value'"))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect::<anyhow::Result<_>>()?;
    if let Some(folder) = &options.hdr {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(Plan {
        url: options.url.clone(),
        method: options.method.clone(),
        headers,
        body: options.body.clone(),
        pacing: options.rate.map_or(Pacing::Closed, |rate| Pacing::Constant { rate }),
        connections: options.connections,
        start_at_ns: None,
        warmup_s: options.warmup.as_seconds(),
        window_s: options.duration.as_seconds(),
        timeout_s: options.timeout.as_seconds(),
        // Alone, nobody recognises the ids later: any tag and key will do.
        trace: options.trace.map(|share| Trace {
            header: TraceHeader::W3c,
            tag: u64::from(std::process::id()) << 32 | 1,
            key: 0x756e_6c61_6465_6e00,
            sampled: share.0,
        }),
        check: Check::default(),
        out: options.hdr.clone(),
        ..Plan::new("")
    })
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
    let quantiles = |q: &Quantiles| serde_json::json!({"mean": q.mean, "p50": q.p50, "p75": q.p75, "p90": q.p90, "p95": q.p95, "p99": q.p99, "p999": q.p999, "max": q.max});
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

fn text_of(outcome: &Outcome, options: &Load) -> String {
    let pacing = match options.rate {
        Some(rate) => format!("open loop, {rate} requests/s"),
        None => "closed loop".to_owned(),
    };
    let row = |name: &str, q: &Quantiles| {
        format!(
            "{name:<22}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>10.3}\n",
            q.mean / 1e3,
            q.p50 / 1e3,
            q.p90 / 1e3,
            q.p99 / 1e3,
            q.p999 / 1e3,
            q.max / 1e3
        )
    };
    let mut text = format!(
        "{} for {:.1} s, {} connections, {pacing}\n\n  {:<20}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
        options.url, outcome.duration_s, options.connections, "ms", "mean", "p50", "p90", "p99", "p99.9", "max"
    );
    let from = if options.rate.is_some() { "  latency, from due" } else { "  latency" };
    text += &row(from, &outcome.latency_us);
    text += &row("  service time", &outcome.service_time_us);
    if options.rate.is_some() {
        text += &row("  send lag", &outcome.send_lag_us);
    }
    text += &format!(
        "\n  requests   {:>12}    {:.1}/s    {} received\n",
        outcome.requests,
        outcome.rate,
        indicatif::HumanBytes(outcome.bytes_received)
    );
    let failed = outcome.errors + outcome.unanswered;
    let classes: Vec<String> = outcome.error_classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
    text += &format!("  errors     {failed:>12}    {}\n", classes.join(", "));
    let statuses: Vec<String> = outcome.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    text += &format!("  statuses   {}\n", statuses.join(", "));
    text += &format!("  generator  {:>12.2} µs of CPU per request\n", outcome.cpu_us_per_request);
    if options.rate.is_none() {
        text += "  A closed loop waits for the service: its latencies leave out the requests that a stall kept from being sent.\n";
    }
    text
}

/// `unladen sink`
///
/// # Errors
/// When an address is taken or the folder cannot be written.
pub fn sink(options: &Sink) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(&options.out).with_context(|| format!("cannot make {}", options.out.display()))?;
    let config = Config {
        otlp_grpc: Some(options.otlp_grpc),
        otlp_http: Some(options.otlp_http),
        out: options.out.clone(),
        requests: None,
        attributes: match options.attributes {
            Attributes::None => Stored::None,
            Attributes::Few => Stored::Few,
            Attributes::All => Stored::All,
        },
        ..Config::default()
    };
    let live = io::stderr().is_terminal();
    let summary = unladen_sink::run(
        &config,
        |event| match event {
            SinkEvent::Ready { addresses } => {
                for (protocol, address) in addresses {
                    eprintln!("listening: {protocol} on {address}");
                }
                eprintln!("Ctrl-C ends and writes {}", options.out.join("summary.json").display());
            }
            SinkEvent::Tick { received, saved, .. } if live => {
                eprint!("\r{received:>12} spans received  {saved:>12} stored ")
            }
            SinkEvent::Tick { .. } | SinkEvent::Done(_) => {}
        },
        interrupted(),
    )?;
    if live {
        eprintln!();
    }
    print!("{}", summary_text(&summary));
    Ok(ExitCode::SUCCESS)
}

/// Ends with Ctrl-C or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without handlers the signals end unladen the plain way.
        _ => std::future::pending().await,
    }
}

fn summary_text(summary: &Summary) -> String {
    let mut text = format!(
        "{} spans received, {} stored, {} duplicates, {} rejected, {} requests undecodable\n",
        summary.received, summary.saved, summary.duplicates, summary.rejected, summary.undecodable
    );
    if !summary.operations.is_empty() {
        text += &format!("\n  {:<24}{:<40}{:>10}{:>12}{:>12}\n", "service", "operation", "spans", "p50 ms", "p99 ms");
    }
    for row in &summary.operations {
        text += &format!(
            "  {:<24}{:<40}{:>10}{:>12.3}{:>12.3}\n",
            row.service,
            row.operation,
            row.spans,
            row.p50_us / 1e3,
            row.p99_us / 1e3
        );
    }
    text
}
