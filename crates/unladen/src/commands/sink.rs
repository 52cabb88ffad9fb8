//! `sink`: the span sink used alone.

use std::fs;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Context;
use unladen_sink::config::{Attributes as Stored, Config, Sync as Durable};
use unladen_sink::summary::{Event as SinkEvent, Summary};

use crate::cli::{Attributes, Sink, Sync};

/// `unladen sink`
///
/// # Errors
/// When an address is taken or the folder cannot be written.
pub fn sink(options: &Sink) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(&options.out).with_context(|| format!("cannot make {}", options.out.display()))?;
    let config = Config {
        otlp_grpc: Some(options.otlp_grpc),
        otlp_http: Some(options.otlp_http),
        zipkin: options.zipkin,
        skywalking: options.skywalking,
        elastic: options.elastic,
        jaeger: options.jaeger,
        out: options.out.clone(),
        requests: None,
        attributes: match options.attributes {
            Attributes::None => Stored::None,
            Attributes::Few => Stored::Few,
            Attributes::All => Stored::All,
        },
        sync: match options.sync {
            Sync::Always => Durable::Always,
            Sync::Interval => Durable::Interval,
            Sync::End => Durable::End,
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
        unladen_sink::child::told_to_stop(),
    )?;
    if live {
        eprintln!();
    }
    print!("{}", summary_text(&summary));
    Ok(ExitCode::SUCCESS)
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
