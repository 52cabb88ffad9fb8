//! Progress on the terminal while a study runs: a picture that moves on a tty, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indexmap::IndexMap;
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use unladen_journal::record::{Calibration, Ledger, RunRecord};
use unladen_judge::findings::Range;
use unladen_judge::units::{self, Scale};
use unladen_measure::watch::{Phase, Step};
use unladen_sink::{Recovered, SinkError};

use crate::live::{Display, LiveWatcher};
use crate::under_way::{Live, Variant};

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
) -> LiveWatcher {
    match show {
        Show::Quiet => {}
        Show::Auto if std::io::stderr().is_terminal() => displays.push(Box::new(Picture::new())),
        Show::Auto | Show::Plain => displays.push(Box::new(Lines)),
    }
    LiveWatcher::new(Live::new(study, labels), displays)
}

/// One line of a finished run, its name as wide as the widest: `OpenTelemetry  212.4 µs CPU/request  p99 1.20 ms  8000 of 8000 spans`.
fn summary(record: &RunRecord, live: &Live) -> String {
    let label = live.label(&record.variant);
    if let Some(reason) = &record.void {
        return format!("{label}: does not count: {reason}");
    }
    let widest = live.variants.values().map(|it| it.label.width()).fold(label.width(), usize::max);
    let mut line = fitted(label, widest);
    if let Some(cpu) = unladen_judge::cpu_us_per_request(record) {
        line += &format!(" {cpu:>8.1} µs CPU/request");
    }
    if let Some(p99) = unladen_judge::latency_p99_us(record) {
        line += &format!("  p99 {:>7.2} ms", p99 / 1e3);
    }
    if let Some(ledger) = record.ledger.as_ref().filter(|ledger| ledger.expected > 0) {
        line += &if ledger.by_count || ledger.is_uniform() {
            format!("  {} of {} spans", ledger.saved, ledger.wanted())
        } else {
            // Some requests make few spans and some many: how many these ought to have made, nobody knows.
            let Ledger { saved, complete, missing, .. } = ledger;
            format!("  {saved} spans, {complete} of {} traces", complete + missing)
        };
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

/// `runs/03-otel was cut short: recovered 12000 spans from 1 torn file and 37 from the log`. By a signal to unladen or to its sink.
fn recovered(dir: &str, outcome: &Result<Recovered, SinkError>) -> String {
    match outcome {
        Ok(Recovered { files, rows, logged_rows }) => {
            let files = if *files == 1 { "1 torn file".to_owned() } else { format!("{files} torn files") };
            format!("{dir} was cut short: recovered {rows} spans from {files} and {logged_rows} from the log")
        }
        Err(error) => format!("{dir} was cut short, and its spans cannot be recovered: {error}"),
    }
}

/// What is told once and stays on the screen, however progress is shown.
fn lasting(step: Step<'_>, live: &Live) -> Option<String> {
    match step {
        Step::Recovered { dir, outcome } => Some(recovered(dir, outcome)),
        Step::Calibrated { variant, calibration } => Some(calibrated(&variant.label, calibration)),
        Step::Again { round, reason, .. } => Some(format!("round {round} is repeated: {reason}")),
        Step::Stopped(stopped) => Some(stopped.to_string()),
        Step::TurnsGivenUp { reason, .. } => Some(format!("from here on variants run one after the other: {reason}")),
        Step::LessAtOnce { fit, groups, .. } if groups > 1 => Some(format!(
            "there is memory for {fit} variants at once: they run in {groups} groups, each with the baseline"
        )),
        Step::LessAtOnce { fit, .. } => {
            Some(format!("there is memory for {fit} variants at once: from here on they run one after the other"))
        }
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
            Step::Begin { load_s: 0.0, is_open_ended: true, .. } => {}
            Step::Begin { load_s, is_open_ended: true, .. } => eprintln!("runs of at least {load_s:.1} s each"),
            Step::Begin { runs, load_s: 0.0, .. } => eprintln!("{runs} runs"),
            Step::Begin { runs, load_s, .. } => eprintln!("{runs} runs, at least {load_s:.1} s each"),
            Step::Done { record, .. } => {
                let of = if live.look.is_some() { String::new() } else { format!("/{}", live.runs_of) };
                eprintln!("[{:>3}{of}] round {:>2}  {}", live.runs_done, record.round, summary(record, live));
            }
            // The first look is before the first round.
            Step::Look { .. } if live.left_s.is_some() => eprintln!("{}", of_study(live)),
            Step::Look { .. } => {}
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
/// Narrower than this, bars and names are cut.
const NARROW: usize = 100;

/// Columns of the terminal; what most have had since the punched card, if it does not say.
fn terminal() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

impl Picture {
    fn new() -> Self {
        let all = MultiProgress::new();
        let line = |template: &str| {
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            all.add(ProgressBar::new(0).with_style(style.progress_chars("━╸─")))
        };
        let bar = if terminal() < NARROW { 12 } else { 30 };
        let study = line(&format!("{{bar:{bar}.cyan}} {{wide_msg}}"));
        let run = line(&format!("{{bar:{bar}.green}} {{wide_msg}}"));
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
        self.table.set_message(table(live, terminal()).join("\n"));
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
        None | Some(Phase::Start | Phase::Setup) => 0.0,
        Some(Phase::WarmUp | Phase::Window | Phase::Alone) => {
            live.second.map_or(0.0, |it| f64::from(it.second) + 1.0).min(live.load_s)
        }
        Some(Phase::Drain | Phase::Check | Phase::Saturation | Phase::Capacity | Phase::Stop) => live.load_s,
    }
}

/// `17 of 96 runs, about 8 minutes left`; `17 rounds, known to ±1.4 %, target ±1 %, about 3 minutes left`.
fn of_study(live: &Live) -> String {
    if let Some(preparing) = &live.preparing {
        return preparing.clone();
    }
    let left = live.left_s.filter(|_| !live.is_done).map(|left| Duration::from_secs_f64(left.max(1.0)));
    let left = left.map_or_else(String::new, |left| format!(", about {} left", HumanDuration(left)));
    match &live.look {
        None => format!("{} of {} runs{left}", live.runs_done, live.runs_of),
        Some(look) => {
            let rounds = look.rounds_in_words();
            let reached = look.in_short().map_or_else(String::new, |reached| format!(", {reached}"));
            format!("{rounds}{reached}{left}")
        }
    }
}

/// `round 5: OpenTelemetry, measuring  1,000 requests/s  p99 1.20 ms`.
fn of_run(live: &Live) -> String {
    let Some(phase) = live.phase else { return String::new() };
    let label = live.label(&live.variant);
    let mut line = format!("round {}: {}, {}", live.round, fitted(label, label.width().min(NAME)), phase.words());
    if let (Some(second), Phase::WarmUp | Phase::Window | Phase::Alone) = (live.second, phase) {
        line += &format!("  {} requests/s  p99 {:.2} ms", units::count(second.answered), second.p99_us / 1e3);
        if second.errors > 0 {
            line += &format!("  {} errors", units::count(second.errors));
        }
    }
    line
}

/// The variants so far, a line each under a head, no wider than the terminal; empty before the first run has ended.
fn table(live: &Live, terminal: usize) -> Vec<String> {
    let known: Vec<&Variant> = live.variants.values().filter(|it| it.runs + it.void > 0).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let long = known.iter().map(|it| it.label.width()).max().unwrap_or(0).clamp(12, NAME);
    let full = columns(&known, false);
    let is_full = long + full.iter().map(|column| 2 + column.width).sum::<usize>() <= terminal;
    let mut columns = if is_full { full } else { columns(&known, true) };
    let others = |columns: &[Column]| columns.iter().map(|column| 2 + column.width).sum::<usize>();
    // The names give way first, then what stands last.
    while columns.len() > 1 && others(&columns) + 12 > terminal {
        columns.pop();
    }
    let name = long.min(terminal.saturating_sub(others(&columns))).max(12);
    let line = |name: String, number: usize| {
        let cells = columns.iter().map(|column| column.cell(number));
        cells.fold(name, |line, cell| line + "  " + &cell).trim_end().to_owned()
    };
    let mut lines = vec![format!("\n{}", line(fitted("so far", name), 0))];
    lines.extend(known.iter().enumerate().map(|(at, it)| line(fitted(&it.label, name), at + 1)));
    lines
}

/// A column of the table: its head and its cells.
struct Column {
    cells: Vec<String>,
    width: usize,
    is_right: bool,
}

impl Column {
    fn new(head: &str, is_right: bool, known: &[&Variant], cell: impl Fn(&Variant) -> String) -> Self {
        let cells: Vec<String> =
            std::iter::once(head.to_owned()).chain(known.iter().map(|variant| cell(variant))).collect();
        let width = cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
        Self { cells, width, is_right }
    }

    fn cell(&self, number: usize) -> String {
        let (cell, width) = (&self.cells[number], self.width);
        if self.is_right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    }
}

/// The columns beside the name, on a narrow terminal with shorter words.
fn columns(known: &[&Variant], is_narrow: bool) -> Vec<Column> {
    let of = |wide: &'static str, narrow: &'static str| if is_narrow { narrow } else { wide };
    let microseconds = |value: Option<f64>| value.map_or_else(dash, |it| Scale::of("us", it, None).with_unit(it));
    let runs =
        |it: &Variant| if it.void > 0 { format!("{}−{}", it.runs + it.void, it.void) } else { it.runs.to_string() };
    let lost = |it: &Variant| {
        let (lost, wanted) = (units::count(it.lost), units::count(it.wanted));
        match it.lost {
            _ if it.wanted == 0 => dash(),
            0 if is_narrow => "none".to_owned(),
            0 => format!("none of {wanted}"),
            _ if is_narrow => format!("{lost} ({})", units::share(it.lost as f64 / it.wanted as f64)),
            _ => format!("{lost} of {wanted} ({})", units::share(it.lost as f64 / it.wanted as f64)),
        }
    };
    vec![
        Column::new("runs", true, known, runs),
        Column::new(of("CPU per request", "CPU/req"), true, known, |it| microseconds(it.cpu_us_per_request)),
        Column::new(of("vs. the baseline", "vs. baseline"), false, known, beside),
        Column::new(of("spans lost", "lost"), false, known, lost),
        Column::new("p99", true, known, |it| microseconds(it.p99_us)),
    ]
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
            scale.signed_range(Range { value: ratio, low, high })
        }
        None => units::percent(ratio, Some(0.01)).signed_with_unit(ratio),
    }
}

/// Cut or filled to a width on the screen.
fn fitted(name: &str, width: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    let whole = name.width() <= width;
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
    use unladen_journal::notices::{Look, Precision};

    use super::*;
    use crate::under_way::Second;

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
        let precision = Precision { asked: "1 %".into(), reached: Some("1.4 %".into()), ..Precision::default() };
        let look = |precisions| Look { rounds: 17, precisions, ..Look::default() };
        let mut open = live.clone();
        open.look = Some(look(vec![precision]));
        assert_eq!(of_study(&open), "17 rounds, known to ±1.4 %, target ±1 %, about 8 minutes left");
        open.look = Some(look(Vec::new()));
        assert_eq!(of_study(&open), "17 rounds, about 8 minutes left");
        assert_eq!(of_run(&live), "round 5: OpenTelemetry, measuring  12,000 requests/s  p99 1.20 ms  2 errors");
        assert_eq!(elapsed_s(&live), 4.0);
        assert_eq!(
            table(&live, 120),
            [
                "\nso far         runs  CPU per request  vs. the baseline      spans lost                   p99",
                "baseline          9           132 µs  –                     –                         850 µs",
                "OpenTelemetry   9−1           154 µs  +17.4 % [15.8, 19.4]  130 of 129,600 (0.10 %)  1.20 ms",
            ]
        );
    }

    #[test]
    fn what_is_wanted_is_told_where_it_is_known() {
        let line = |variant: &str, ledger| {
            summary(&RunRecord { variant: variant.into(), ledger: Some(ledger), ..RunRecord::empty() }, &live())
        };
        let whole = Ledger { expected: 10, sampled_out: 2, saved: 7, spans_per_request: 2.0, ..Ledger::default() };
        assert_eq!(line("otel", whole.clone()), "OpenTelemetry  7 of 8 spans");
        assert_eq!(line("baseline", whole.clone()), "baseline       7 of 8 spans");
        let mean = Ledger { spans_per_request: 2.5, complete: 3, missing: 1, ..whole };
        assert_eq!(line("otel", mean.clone()), "OpenTelemetry  7 spans, 3 of 4 traces");
        // Counts know nothing of traces.
        assert_eq!(line("otel", Ledger { by_count: true, ..mean }), "OpenTelemetry  7 of 8 spans");
    }

    #[test]
    fn the_table_is_never_wider_than_the_terminal() {
        let mut live = live();
        live.variants["otel"].label = "OpenTelemetry with a queue of 2048 and a batch of 512 spans".into();
        assert_eq!(
            table(&live, 80),
            [
                "\nso far                runs  CPU/req  vs. baseline          lost              p99",
                "baseline                 9   132 µs  –                     –              850 µs",
                "OpenTelemetry with …   9−1   154 µs  +17.4 % [15.8, 19.4]  130 (0.10 %)  1.20 ms",
            ]
        );
        for terminal in 20..130 {
            let widest = table(&live, terminal).iter().map(|line| line.trim_start().width()).max();
            assert!(widest <= Some(terminal), "{widest:?} of {terminal}");
        }
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
