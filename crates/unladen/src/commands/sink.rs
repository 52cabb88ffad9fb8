//! `sink`: the span sink used alone, with a table that moves on a terminal, or plain lines.

use std::fs;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use unladen_ledger::summary::{Event as SinkEvent, Summary};
use unladen_sink::config::{Attributes as Stored, Config, Protocol, Sync as Durable};

use crate::cli::sink::{Attributes, Sink, Sync};
use crate::commands::sink_view::{Live, summary_text};

/// Between two plain lines.
const LINE: Duration = Duration::from_secs(10);

/// `unladen sink`
///
/// # Errors
/// When an address is taken or the folder cannot be written.
pub fn sink(options: &Sink) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(&options.out).with_context(|| format!("cannot make {}", options.out.display()))?;
    let config = config(options);
    let mut screen = Screen::new(!options.plain && io::stderr().is_terminal());
    let summary = unladen_sink::run(
        &config,
        |event| match event {
            SinkEvent::Ready { addresses } => {
                for (protocol, address) in addresses {
                    match protocol.as_str() {
                        "admin" => eprintln!("listening: http://{address}/metrics and /healthz"),
                        _ => eprintln!("listening: {protocol} on {address}"),
                    }
                }
                if let Some(faults) = &config.faults {
                    eprintln!("faults: this sink {faults}");
                }
                eprintln!("Ctrl-C ends and writes {}", options.out.join("summary.json").display());
            }
            SinkEvent::Live(summary) => screen.show(&summary),
            SinkEvent::Listening { .. } | SinkEvent::Tick { .. } | SinkEvent::Done(_) => {}
        },
        unladen_sink::child::stop_signal(),
    )?;
    screen.end();
    print!("{}", summary_text(&summary));
    Ok(ExitCode::SUCCESS)
}

fn config(options: &Sink) -> Config {
    let listen = [
        (Protocol::OtlpGrpc, Some(options.otlp_grpc)),
        (Protocol::OtlpHttp, Some(options.otlp_http)),
        (Protocol::Zipkin, options.zipkin),
        (Protocol::Skywalking, options.skywalking),
        (Protocol::Elastic, options.elastic),
        (Protocol::Jaeger, options.jaeger),
        (Protocol::Sentry, options.sentry),
        (Protocol::Azure, options.azure),
        (Protocol::Datadog, options.datadog),
        (Protocol::Xray, options.xray),
        (Protocol::Newrelic, options.newrelic),
        (Protocol::Pinpoint, options.pinpoint),
        (Protocol::Instana, options.instana),
    ];
    Config {
        listen: listen.into_iter().filter_map(|(protocol, address)| Some((protocol, address?))).collect(),
        admin: options.admin,
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
        faults: options.bad_day.faults().map(|faults| faults.of_sink()),
        live: true,
        ..Config::default()
    }
}

/// Where the live numbers go.
struct Screen {
    /// On a terminal.
    bar: Option<ProgressBar>,
    live: Live,
    last_line: Option<Instant>,
}

impl Screen {
    fn new(is_terminal: bool) -> Self {
        let bar = is_terminal.then(|| {
            let plain = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new_spinner().with_style(plain)
        });
        Self { bar, live: Live::default(), last_line: None }
    }

    fn show(&mut self, summary: &Summary) {
        let now = Instant::now();
        match &self.bar {
            Some(bar) => {
                bar.set_message(self.live.table(summary, now));
                bar.tick();
            }
            None if self.last_line.is_none_or(|last| now - last >= LINE) => {
                if let Some(line) = self.live.line(summary, now) {
                    eprintln!("{line}");
                }
                self.last_line = Some(now);
            }
            None => {}
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
