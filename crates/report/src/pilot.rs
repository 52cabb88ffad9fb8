//! What a pilot says, for a terminal of 100 columns.

use std::fmt::Write;

use anstyle::Style;
use unladen_judge::findings::MISSING;
use unladen_judge::pilot::{Goal, MetricNoise, Pilot};
use unladen_judge::units::{self, Scale};

use super::text::{self, Page};
use super::view;

/// The pilot as plain text.
#[must_use]
pub fn text(pilot: &Pilot) -> String {
    let mut out = format!(
        "{}: noise of {} baseline pairs, and the smallest effect that a number of rounds detects with 80 %\n\
         probability (with the noise as found; with the noise as large as it may be). *: the study.\n\n",
        view::clean(&pilot.study),
        pilot.pairs,
    );
    out += &table(pilot);
    let (separate, alternating) = (time(pilot.round_seconds.separate), time(pilot.round_seconds.alternating));
    let of_pilot = if pilot.design.is_separate() {
        format!("{separate} one after the other, as here ({alternating} alternating)")
    } else {
        format!("{alternating} alternating, as here ({separate} one after the other)")
    };
    let _ = write!(
        out,
        "\nA run takes {:.1} s, a round of {} runs {of_pilot};\nwaiting for spans may add to that.\n",
        pilot.seconds_per_run, pilot.variants,
    );
    out += &memory(pilot);
    let mut below = Page::default();
    let plain = Style::new();
    if let Some(variance) = &pilot.variance {
        let window = pilot.best_window_s.map(|it| format!(": windows of about {} make the most of the time", time(it)));
        below.wrapped("", "", &format!("{}{}.", variance.words, window.unwrap_or_default()), plain);
    }
    for metric in &pilot.metrics {
        if let Some(budget) = metric.budget {
            let goal = goal(budget);
            let title = &metric.title;
            let words = format!("Budget on {title}: to tell half the budget from all of it takes {goal}.");
            below.wrapped("", "", &words, plain);
        }
    }
    for notice in &pilot.notices {
        let tag = format!("{:<9}", notice.severity.name());
        below.wrapped(&tag, &" ".repeat(tag.len()), &view::clean(&notice.text), plain);
    }
    out + &below.text
}

/// `5 variants need about 320 MiB at the same time, and 18.5 GiB are there.`
fn memory(pilot: &Pilot) -> String {
    let memory = &pilot.memory;
    let bytes = |bytes: u64| Scale::of("B", bytes as f64, None).with_unit(bytes as f64);
    let most = memory.groups.iter().copied().max().unwrap_or(0);
    if memory.each == 0 || most == 0 {
        return String::new();
    }
    let need = bytes(memory.each * u64::from(most));
    let has = bytes(memory.available);
    match &memory.groups[..] {
        [_] => format!("Alternating, {most} variants need about {need} at the same time; {has} are available.\n"),
        groups => format!(
            "Alternating, they run in {} groups of up to {most}, each with the baseline: about {need} at the same time;\n{has} are available.\n",
            groups.len()
        ),
    }
}

fn table(pilot: &Pilot) -> String {
    let reach = || pilot.metrics.first().into_iter().flat_map(|metric| &metric.reach);
    let own = |rounds: u32| if rounds == pilot.rounds { "*" } else { "" };
    let head = |words: [&str; 3], after: Vec<String>, last: &str| {
        let first = words.into_iter().map(str::to_owned);
        first.chain(after).chain([last.to_owned()]).collect::<Vec<String>>()
    };
    let rounds = reach().map(|it| format!("{} rounds{}", it.rounds, own(it.rounds))).collect();
    let times = reach().map(|it| time(it.seconds)).collect();
    let heads = [head(["", "baseline", "noise"], rounds, "rounds to"), head([""; 3], times, "settle")];
    let noisy = pilot.metrics.iter().filter(|metric| metric.noise > 0.0).map(row);
    let lines = text::beneath_each_other(heads.into_iter().chain(noisy), |index| index > 0, 2);
    lines.into_iter().map(|line| line + "\n").collect()
}

fn row(metric: &MetricNoise) -> Vec<String> {
    let values = Scale::of(&metric.unit, metric.baseline, None);
    let largest = metric.reach.iter().map(|it| it.effect_at_most).chain([metric.noise_at_most]).fold(0.0, f64::max);
    let smallest = metric.reach.iter().map(|it| it.effect).filter(|effect| *effect > 0.0).reduce(f64::min);
    // In a share of the baseline, or in its unit; shares of shares are points.
    let unit = if metric.unit == "share" { "points" } else { &metric.unit };
    let is_beyond = |value: f64| metric.relative && value > 1.0;
    let largest = if is_beyond(largest) { 1.0 } else { largest };
    let scale = if metric.relative { units::percent(largest, smallest) } else { Scale::of(unit, largest, smallest) };
    let suffix = match scale.unit() {
        "" => String::new(),
        "percentage points" => " points".to_owned(),
        unit => format!(" {unit}"),
    };
    let both = |low: f64, high: f64| {
        let written = |value: f64| if is_beyond(value) { ">100".to_owned() } else { scale.number(value) };
        let (low, high) = (written(low), written(high));
        if low == high { format!("{low}{suffix}") } else { format!("{low}–{high}{suffix}") }
    };
    let reach = metric.reach.iter().map(|it| both(it.effect, it.effect_at_most));
    let margin = if metric.relative {
        units::chosen("%", metric.margin.precision)
    } else {
        Scale::of(unit, metric.margin.precision, None).with_unit(metric.margin.precision)
    };
    let settled = match (metric.margin.rounds, metric.margin.precision > 0.0) {
        (_, false) => MISSING.to_owned(),
        (Some(rounds), _) => format!("±{margin}: {rounds}"),
        (None, _) => format!("±{margin}: >200"),
    };
    let first = [
        view::shortened(&metric.title, 18),
        values.with_unit(metric.baseline),
        both(metric.noise, metric.noise_at_most),
    ];
    first.into_iter().chain(reach).chain([settled]).collect()
}

/// `about 12 rounds (4 min 10 s)`.
fn goal(goal: Goal) -> String {
    match (goal.rounds, goal.seconds) {
        (Some(rounds), Some(seconds)) => format!("about {rounds} rounds ({})", time(seconds)),
        _ => "more than 200 rounds: longer windows, or a quieter machine".to_owned(),
    }
}

/// `45 s`, `4 min 10 s`, `2 h 5 min`.
fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_two_units_at_most() {
        assert_eq!(
            [0.4, 45.0, 59.6, 250.0, 7_500.0, 7_204.0].map(time),
            ["0 s", "45 s", "1 min", "4 min 10 s", "2 h 5 min", "2 h"]
        );
    }
}
