//! Progress on the terminal while a study runs: a picture that moves on a tty, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indexmap::IndexMap;
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use unladen_sink::{Recovered, SinkError};

use crate::journal::record::{Calibration, RunRecord};
use crate::judge;
use crate::judge::units::{self, Scale};
use crate::live::{Display, Live, Told, Variant};
use crate::run::watch::{Phase, Step};

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// A picture if standard error is a terminal, else lines.
    Auto,
    /// Lines.
    Plain,
    /// Nothing.
    Quiet,
}

/// A watcher for the terminal and for these. `labels` names the variants for people.
#[must_use]
pub fn watcher(
    show: Show,
    study: &str,
    labels: &IndexMap<String, String>,
    mut displays: Vec<Box<dyn Display>>,
) -> Told {
    match show {
        Show::Quiet => {}
        Show::Auto if std::io::stderr().is_terminal() => displays.push(Box::new(Picture::new())),
        Show::Auto | Show::Plain => displays.push(Box::new(Lines)),
    }
    Told::new(Live::new(study, labels), displays)
}

/// One line of a finished run: `OpenTelemetry  212.4 µs/request  p99 1.2 ms  8000 of 8000 spans`.
fn summary(record: &RunRecord, label: &str) -> String {
    if let Some(reason) = &record.void {
        return format!("{label}: does not count: {reason}");
    }
    let mut line = format!("{label:<24}");
    if let Some(cpu) = judge::cpu_us_per_request(record) {
        line += &format!(" {cpu:>8.1} µs CPU/request");
    }
    if let Some(load) = &record.load {
        line += &format!("  p99 {:>7.2} ms", load.latency_us.p99 / 1e3);
    }
    if let Some(ledger) = record.ledger.as_ref().filter(|ledger| ledger.expected > 0) {
        let wanted = ledger.expected - ledger.sampled_out;
        line += &format!("  {} of {wanted} spans", ledger.saved);
    }
    line
}

/// `calibration: OpenTelemetry makes 4 spans per request (consumer `GET` 3, consumer `GET /work` 1)`.
fn calibrated(label: &str, found: &Calibration) -> String {
    if found.mean == 0.0 {
        return format!("calibration: no span of {label} arrived in {} requests", found.requests);
    }
    let spans = (found.spans_per_request * 1_000.0).round() / 1_000.0;
    format!("calibration: {label} makes {spans} spans per request ({})", found.described())
}

/// `runs/03-otel was killed: 12000 spans in 1 torn file and 37 in the log are whole again`.
fn recovered(dir: &str, outcome: &Result<Recovered, SinkError>) -> String {
    match outcome {
        Ok(Recovered { files, rows, logged_rows }) => {
            let files = if *files == 1 { "1 torn file".to_owned() } else { format!("{files} torn files") };
            format!("{dir} was killed: {rows} spans in {files} and {logged_rows} in the log are whole again")
        }
        Err(error) => format!("{dir} was killed, and its spans cannot be made whole: {error}"),
    }
}

/// What is told once and stays on the screen, however progress is shown.
fn lasting(step: Step<'_>, live: &Live) -> Option<String> {
    match step {
        Step::Recovered { dir, outcome } => Some(recovered(dir, outcome)),
        Step::Calibrated { arm, calibration } => Some(calibrated(&arm.label, calibration)),
        Step::Again { round, reason, .. } => Some(format!("round {round} is done again: {reason}")),
        Step::Done { record, .. } => {
            let reason = record.void.as_ref()?;
            Some(format!("round {} of {} does not count: {reason}", record.round, live.label(&record.variant)))
        }
        _ => None,
    }
}

/// Progress as lines, for files and CI.
struct Lines;

impl Display for Lines {
    fn show(&mut self, step: Step<'_>, live: &Live) {
        match step {
            Step::Building { service, command } => eprintln!("building {service}: {command}"),
            Step::Begin { runs, load_s, .. } => eprintln!("{runs} runs of {load_s:.1} s each"),
            Step::Done { record, .. } => {
                let label = live.label(&record.variant);
                let (done, of) = (live.runs_done, live.runs_of);
                eprintln!("[{done:>3}/{of}] round {:>2}  {}", record.round, summary(record, label));
            }
            _ => {
                if let Some(line) = lasting(step, live) {
                    eprintln!("{line}");
                }
            }
        }
    }
}

/// Progress as a picture: two bars, and a table of the variants so far.
struct Picture {
    study: ProgressBar,
    run: ProgressBar,
    table: ProgressBar,
}

/// Widest a variant's name is shown.
const NAME: usize = 28;

impl Picture {
    fn new() -> Self {
        let all = MultiProgress::new();
        let line = |template: &str| {
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            all.add(ProgressBar::new(0).with_style(style.progress_chars("━╸─")))
        };
        let study = line("{bar:30.cyan} {msg}");
        let run = line("{bar:30.green} {msg}");
        let table = line("{msg}");
        Self { study, run, table }
    }
}

impl Display for Picture {
    fn show(&mut self, step: Step<'_>, live: &Live) {
        if let Some(line) = lasting(step, live) {
            self.study.suspend(|| eprintln!("{line}"));
        }
        self.study.set_length(live.runs_of as u64);
        self.study.set_position(live.runs_done as u64);
        self.study.set_message(of_study(live));
        // Tenths of a second, so that the bar can be full also when the time is no whole number.
        self.run.set_length((live.load_s * 10.0).round().max(1.0) as u64);
        self.run.set_position((elapsed_s(live) * 10.0).round() as u64);
        self.run.set_message(of_run(live));
        self.table.set_message(table(live).join("\n"));
        if live.is_done {
            for bar in [&self.run, &self.table, &self.study] {
                bar.finish_and_clear();
            }
        }
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // Also of a study that was interrupted nothing half drawn stays.
        for bar in [&self.run, &self.table, &self.study] {
            bar.finish_and_clear();
        }
    }
}

/// How far the load of the run under way has come, s.
fn elapsed_s(live: &Live) -> f64 {
    match live.phase {
        None | Some(Phase::Start) => 0.0,
        Some(Phase::WarmUp | Phase::Window) => {
            live.second.map_or(0.0, |it| f64::from(it.second) + 1.0).min(live.load_s)
        }
        Some(Phase::Drain | Phase::Saturation | Phase::Capacity | Phase::Stop) => live.load_s,
    }
}

/// `17 of 96 runs, about 8 minutes left`.
fn of_study(live: &Live) -> String {
    if let Some(preparing) = &live.preparing {
        return preparing.clone();
    }
    let left = live.left_s.filter(|_| !live.is_done).map(|left| Duration::from_secs_f64(left.max(1.0)));
    let left = left.map_or_else(String::new, |left| format!(", about {} left", HumanDuration(left)));
    format!("{} of {} runs{left}", live.runs_done, live.runs_of)
}

/// `round 5: OpenTelemetry, measuring  1,000 requests/s  p99 1.20 ms`.
fn of_run(live: &Live) -> String {
    let Some(phase) = live.phase else { return String::new() };
    let mut line = format!("round {}: {}, {}", live.round, live.label(&live.variant), phase.words());
    if let (Some(second), Phase::WarmUp | Phase::Window) = (live.second, phase) {
        line += &format!("  {} requests/s  p99 {:.2} ms", units::count(second.answered), second.p99_us / 1e3);
        if second.errors > 0 {
            line += &format!("  {} errors", units::count(second.errors));
        }
    }
    line
}

/// The variants so far, a line each under a head; empty before the first run has ended.
fn table(live: &Live) -> Vec<String> {
    let known: Vec<&Variant> = live.variants.values().filter(|it| it.runs + it.void > 0).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let width = known.iter().map(|it| unicode_width::UnicodeWidthStr::width(it.label.as_str())).max();
    let width = width.unwrap_or(0).clamp(12, NAME);
    let mut lines = vec![format!(
        "\n{:<width$} {:>5} {:>16}  {:<22} {:>9}  {}",
        "so far", "runs", "CPU per request", "beside the baseline", "p99", "spans lost"
    )];
    lines.extend(known.iter().map(|it| {
        let cpu = it.cpu_us_per_request.map_or_else(dash, |cpu| Scale::of("us", cpu, None).with_unit(cpu));
        let p99 = it.p99_us.map_or_else(dash, |p99| Scale::of("us", p99, None).with_unit(p99));
        let lost = if it.wanted == 0 {
            dash()
        } else if it.lost == 0 {
            format!("none of {}", units::count(it.wanted))
        } else {
            format!(
                "{} of {} ({})",
                units::count(it.lost),
                units::count(it.wanted),
                units::share(it.lost as f64 / it.wanted as f64)
            )
        };
        let runs = if it.void > 0 { format!("{}−{}", it.runs + it.void, it.void) } else { it.runs.to_string() };
        format!("{} {runs:>5} {cpu:>16}  {:<22} {p99:>9}  {lost}", fitted(&it.label, width), beside(it))
    }));
    lines
}

fn dash() -> String {
    "–".to_owned()
}

/// `+17.4 % [15.8, 19.4]`.
fn beside(variant: &Variant) -> String {
    let Some(ratio) = variant.ratio else { return dash() };
    match variant.ratio_interval {
        Some((low, high)) => {
            let scale = units::percent(ratio.abs().max(low.abs()).max(high.abs()), Some((high - low) / 2.0));
            format!("{} [{}, {}]", scale.signed_with_unit(ratio), scale.number(low), scale.number(high))
        }
        None => units::percent(ratio, Some(0.01)).signed_with_unit(ratio),
    }
}

/// Cut or filled to a width on the screen.
fn fitted(name: &str, width: usize) -> String {
    use unicode_width::UnicodeWidthChar;
    let (mut text, mut used) = (String::new(), 0);
    let whole = unicode_width::UnicodeWidthStr::width(name) <= width;
    for character in name.chars().filter(|it| !it.is_control()) {
        let wide = character.width().unwrap_or(0);
        if used + wide > width - usize::from(!whole) {
            break;
        }
        text.push(character);
        used += wide;
    }
    if !whole {
        text.push('…');
        used += 1;
    }
    text + &" ".repeat(width - used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Second;

    fn live() -> Live {
        let labels = [("baseline", "baseline"), ("otel", "OpenTelemetry")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let mut live = Live::new("shop", &labels.into_iter().collect());
        (live.runs_done, live.runs_of, live.left_s, live.load_s) = (17, 96, Some(480.0), 7.0);
        (live.round, live.variant, live.phase) = (5, "otel".into(), Some(Phase::Window));
        live.second = Some(Second { second: 3, answered: 12_000, errors: 2, p99_us: 1204.0 });
        let bare = &mut live.variants["baseline"];
        (bare.runs, bare.cpu_us_per_request, bare.p99_us) = (9, Some(131.6), Some(850.0));
        let otel = &mut live.variants["otel"];
        (otel.runs, otel.void, otel.cpu_us_per_request, otel.p99_us) = (8, 1, Some(154.1), Some(1204.0));
        (otel.ratio, otel.ratio_interval) = (Some(0.174), Some((0.158, 0.194)));
        (otel.wanted, otel.saved, otel.lost) = (129_600, 129_470, 130);
        live
    }

    #[test]
    fn what_a_user_sees() {
        let live = live();
        assert_eq!(of_study(&live), "17 of 96 runs, about 8 minutes left");
        assert_eq!(of_run(&live), "round 5: OpenTelemetry, measuring  12,000 requests/s  p99 1.20 ms  2 errors");
        assert_eq!(elapsed_s(&live), 4.0);
        assert_eq!(
            table(&live),
            [
                "\nso far         runs  CPU per request  beside the baseline          p99  spans lost",
                "baseline          9           132 µs  –                         850 µs  –",
                "OpenTelemetry   9−1           154 µs  +17.4 % [15.8, 19.4]     1.20 ms  130 of 129,600 (0.10 %)",
            ]
        );
    }

    #[test]
    fn the_bar_of_a_run_is_empty_full_and_never_more() {
        let mut live = live();
        live.phase = Some(Phase::Start);
        assert_eq!(elapsed_s(&live), 0.0);
        (live.phase, live.second) = (Some(Phase::Window), Some(Second { second: 9, ..Second::default() }));
        assert_eq!(elapsed_s(&live), 7.0);
        live.phase = Some(Phase::Stop);
        assert_eq!(elapsed_s(&live), 7.0);
    }

    #[test]
    fn names_are_fitted_by_what_they_take_on_the_screen() {
        assert_eq!(fitted("short", 8), "short   ");
        assert_eq!(fitted("much too long", 8), "much to…");
        assert_eq!(fitted("代理程序很长", 7), "代理程…");
        assert_eq!(fitted("代理程序很长", 8), "代理程… ");
    }
}
