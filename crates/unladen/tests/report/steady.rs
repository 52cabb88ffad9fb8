//! Windows in which something still moves: what is told, and what has no verdict.

use unladen_journal::record::RunRecord;
use unladen_judge::findings::{Findings, Verdict};

use crate::sketch::{Sketch, findings, ladder};
use crate::verdicts::{changed, codes, finding, of_runs, variant};

#[test]
fn windows_that_were_not_warm_are_told() {
    let findings = changed(&ladder(), "otel", |run| {
        for (index, second) in run.load.as_mut().expect("measured").seconds.iter_mut().enumerate() {
            second.p50_us *= 1.0 - 0.04 * index as f64;
        }
    });
    let notices = findings.notices.iter().find(|it| it.code == "not_steady").expect("told");
    assert!(notices.text.starts_with("in otel the median latency changed by −"), "{}", notices.text);
    assert_eq!(codes(&findings).iter().filter(|code| **code == "not_steady").count(), 1, "the others were");
}

/// A heap that shrinks in the middle of all windows, for instance.
#[test]
fn cpu_that_moves_a_little_is_told_and_has_its_verdict() {
    let rises = |run: &mut RunRecord| run.processes[0].cpu_halves = Some([0.4, 0.46]);
    let told = |findings: &Findings| -> Vec<String> {
        findings.notices.iter().filter(|it| it.code == "not_steady").map(|it| it.text.clone()).collect()
    };
    let otel = changed(&ladder(), "otel", rises);
    assert_eq!(finding(&otel, "otel", "cpu_per_request").verdict, Verdict::Costs);
    let text = told(&otel).concat();
    assert!(text.starts_with("in otel CPU per request changed by +15 %"), "{text}");
    // What all of them have is told once.
    let mut runs = ladder().runs();
    runs.iter_mut().for_each(rises);
    let all = told(&of_runs(&ladder(), &runs));
    assert!(all.len() == 1 && all[0].starts_with("in baseline CPU per request"), "{all:?}");
}

/// A compiler that is still at work makes of whoever starts sooner the cheaper one.
#[test]
fn cpu_that_still_falls_within_the_windows_has_no_verdict() {
    let cpu = |findings: &Findings, name: &str| finding(findings, name, "cpu_per_request").verdict;
    let falls = |run: &mut RunRecord| run.processes[0].cpu_halves = Some([0.4, 0.2]);
    let falling = changed(&ladder(), "otel", falls);
    assert_eq!(cpu(&falling, "otel"), Verdict::CannotTell);
    let refused = finding(&falling, "otel", "cpu_per_request").refused.clone().expect("a reason");
    assert!(refused.starts_with("CPU per request of otel changed by −50 %"), "{refused}");
    assert_eq!(codes(&falling).iter().filter(|code| **code == "unsteady").count(), 1);
    // All else is what it was, and so are the others.
    let sound = findings(&ladder());
    assert_eq!(cpu(&sound, "otel"), Verdict::Costs);
    for metric in ["rss", "latency_p50"] {
        assert_eq!(finding(&falling, "otel", metric).verdict, finding(&sound, "otel", metric).verdict, "{metric}");
    }
    assert!(variant(&falling, "otel").refused.is_none());
    // Of the baseline it concerns everybody, and is told once.
    let all = changed(&ladder(), "baseline", falls);
    assert!(all.variants.iter().all(|it| cpu(&all, &it.name) == Verdict::CannotTell));
    assert_eq!(codes(&all).iter().filter(|code| **code == "unsteady").count(), 1);
    // Half the CPU for half the answers is as much per answer.
    let slows = changed(&ladder(), "otel", |run| {
        run.processes[0].cpu_halves = Some([0.4, 0.2]);
        let seconds = &mut run.load.as_mut().expect("measured").seconds;
        let half = seconds.len() - 3;
        seconds[half..].iter_mut().for_each(|second| second.answered /= 2);
    });
    assert_eq!(cpu(&slows, "otel"), Verdict::Costs);
}

/// Who comes last in a burst waits longest, and it has done all of its work at its end.
#[test]
fn a_burst_is_not_meant_to_be_steady() {
    let falls = |run: &mut RunRecord| {
        run.processes[0].cpu_halves = Some([0.4, 0.2]);
        let seconds = &mut run.load.as_mut().expect("measured").seconds;
        let half = seconds.len() / 2;
        seconds[half..].iter_mut().for_each(|second| second.p50_us /= 2.0);
    };
    let moves = |findings: &Findings| codes(findings).into_iter().filter(|code| code.contains("steady")).count();
    let window = changed(&ladder(), "otel", falls);
    assert!(variant(&window, "otel").refused.is_some() && moves(&window) > 0);
    let burst = changed(&Sketch { rate: None, more: "  burst: 8000\n", ..ladder() }, "otel", falls);
    assert_eq!((&variant(&burst, "otel").refused, moves(&burst)), (&None, 0));
}

/// An agent that spins in some of its starts: the rounds are named with their runs, and none is left out.
#[test]
fn rounds_unlike_all_others_are_told() {
    let rounds = |findings: &Findings| -> Vec<String> {
        let notices = findings.notices.iter().filter(|it| it.code == "rounds_apart");
        notices.map(|it| it.text.clone()).collect()
    };
    assert_eq!(rounds(&findings(&ladder())), [] as [String; 0]);
    let spun = changed(&ladder(), "otel", |run| {
        if [2, 5].contains(&run.round) {
            run.processes[0].cpu_ns = run.processes[0].cpu_ns.map(|cpu| 9 * cpu);
        }
    });
    let notices = rounds(&spun);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].starts_with("in rounds 2 and 5 (runs "), "{}", notices[0]);
    assert!(notices[0].contains(") otel took ") && notices[0].contains("of CPU per request, and "), "{}", notices[0]);
    assert_eq!(finding(&spun, "otel", "cpu_per_request").rounds.len(), spun.rounds as usize);
}
