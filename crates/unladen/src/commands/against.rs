//! `load --against`: one load on two addresses that take turns.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use unladen_journal::units::Time;
use unladen_load::alternate::{self, Alternation, Lengths, NoMeter, Outcomes};
use unladen_load::outcome::{Outcome, Quantiles};
use unladen_load::plan::Plan;
use unladen_load::summary;

use super::COULD_NOT_RUN;
use super::load::{json_of, write_json};

/// Sends the same load to two addresses in turns, and prints both and the difference.
pub(super) fn against(
    plan: &Plan,
    other: &str,
    block: Time,
    json: Option<&Path>,
    stop: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let lengths = Lengths {
        warmup_s: plan.warmup_s,
        window_s: plan.window_s,
        block_s: block.as_seconds(),
        in_halves: false,
        alone_s: 0.0,
    };
    let targets = vec![plan.clone(), Plan { url: other.to_owned(), out: None, ..plan.clone() }];
    let alternation = Alternation {
        turns: alternate::schedule(targets.len(), &lengths, plan.seed),
        targets,
        start_at_ns: plan.start_at_ns,
        pause_s: 0.0,
        core: plan.cores.first().copied(),
    };
    let Outcomes { targets: outcomes, .. } = alternate::run(&alternation, &mut NoMeter, &mut |_| {}, stop)?;
    if let Some(path) = json {
        write_json(path, &serde_json::Value::Array(outcomes.iter().map(json_of).collect()))?;
    }
    if json != Some(Path::new("-")) {
        let mut out = anstream::stdout().lock();
        for (plan, outcome) in alternation.targets.iter().zip(&outcomes) {
            writeln!(out, "{}", summary::text(plan, outcome))?;
        }
        if let [one, other] = &outcomes[..] {
            write!(out, "{}", difference(one, other))?;
        }
    }
    let answered = outcomes.iter().all(|outcome| outcome.requests > 0);
    Ok(if answered { ExitCode::SUCCESS } else { ExitCode::from(COULD_NOT_RUN) })
}

/// The difference of the two in words.
fn difference(one: &Outcome, other: &Outcome) -> String {
    type Quantile = fn(&Quantiles) -> f64;
    let quantiles: [(&str, Quantile); 4] =
        [("mean", |it| it.mean), ("p50", |it| it.p50), ("p75", |it| it.p75), ("p90", |it| it.p90)];
    let mut text = "Difference, the second to the first\n".to_owned();
    for (name, of) in quantiles {
        let (one, other) = (of(&one.latency_us), of(&other.latency_us));
        let percent = if one > 0.0 { 100.0 * (other / one - 1.0) } else { f64::NAN };
        text += &format!("  {name:<6}{:>+10.3} ms {percent:>+8.1} %\n", (other - one) / 1e3);
    }
    text + "Two processes that were running, one look: `unladen compare` starts fresh ones and gives an interval.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_of_the_second_to_the_first() {
        let of = |p50: f64| Outcome {
            latency_us: Quantiles { p50, mean: 1000.0, ..Quantiles::default() },
            ..Outcome::default()
        };
        let text = difference(&of(1000.0), &of(1250.0));
        assert!(text.contains("p50       +0.250 ms    +25.0 %"), "{text}");
        assert!(text.contains("mean      +0.000 ms     +0.0 %"), "{text}");
    }
}
