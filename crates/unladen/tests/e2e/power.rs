//! What alternating rounds find: a little more of the real work, in as many rounds as a study has by default. Too long for every commit:
//! `make power`.
//!
//! The work is not measured out by a CPU clock, which would follow the machine's pace: it is more of what the service does anyway, and how
//! much more a logarithm is, is learned from a variant with a large dose. `UNLADEN_DESIGN=separate` shows what the other design finds.

use std::process::{Child, Command, Stdio};

use unladen_judge::findings::{Finding, Verdict};

use crate::harness::{Scratch, UNLADEN, demo_study, finding, on_all_cores, with_ballast};

/// Studies of each kind.
const STUDIES: usize = 10;
/// Logarithms per request by which the price of one is learned: about a third of the service's own.
const DOSE: f64 = 10_000.0;

/// The finding of a variant that adds up so many logarithms more, by a study of so many rounds of four seconds.
fn weigh(logarithms: f64, rounds: &str) -> Finding {
    let design = std::env::var("UNLADEN_DESIGN").unwrap_or_else(|_| "alternating".to_owned());
    let extra = logarithms.round().to_string();
    let variants = format!("  more:\n    services: {{consumer: {{args: [--extra-work, '{extra}']}}}}\n");
    let scratch = Scratch::with(&with_ballast(&demo_study("power", &variants)).replace("rate: 300", "rate: 500"));
    let usual = ["--design", &design, "--set", "placebo=false", "--warmup", "1s", "--window", "4s", "--alone", "200ms"];
    scratch.run(&[&usual[..], &["--rounds", rounds]].concat()).ends_with(0);
    finding(&scratch.findings(), "more", "cpu_per_request").clone()
}

/// How many logarithms are this share of the CPU per request.
fn dose(share: f64) -> f64 {
    let large = weigh(DOSE, "8").ratio.expect("eight rounds");
    println!("{DOSE} logarithms are {:.1} % of a request's CPU", large * 100.0);
    assert!((0.05..1.0).contains(&large), "{large} of a request's CPU is no dose to learn from");
    DOSE * share / large
}

/// In how many of the studies so much more work "costs".
fn found(share: f64) -> usize {
    let logarithms = dose(share);
    let costs = (1..=STUDIES).filter(|number| {
        let found = weigh(logarithms, "12");
        let percent = |it: Option<f64>| it.unwrap_or(f64::NAN) * 100.0;
        let (middle, low, high) = (percent(found.ratio), percent(found.ratio_low), percent(found.ratio_high));
        println!("study {number}: {middle:+.2} % [{low:.2}, {high:.2}], {}", found.verdict.words());
        found.verdict == Verdict::Costs
    });
    let count = costs.count();
    println!("+{} % of real work: \"costs\" in {count} of {STUDIES} studies of 12 rounds of 4 s", share * 100.0);
    count
}

/// Nothing else may use the machine. With a standard deviation of a round of 0.8 %, 96 of 100 studies find it, and fewer than 8 of 10 do in
/// 6 of 1,000 runs; with 1 %, 85 and 173 (simulated). So this is a measurement, and no test that may stop a commit.
#[test]
#[ignore = "takes half an hour of a quiet machine: make power"]
fn a_hundredth_more_work_is_found() {
    let _turn = on_all_cores();
    let count = found(0.01);
    assert!(count >= 8, "{count} of {STUDIES}");
}

/// Uses half a core until it is dropped: the embedded service, which need not be asked.
struct HalfCore(Child);

impl HalfCore {
    fn start() -> Self {
        let arguments = [
            "__demo",
            "consumer",
            "--port",
            "0",
            "--provider",
            "http://127.0.0.1:1",
            "--idle-burn-ms-per-second",
            "500",
        ];
        let mut command = Command::new(UNLADEN);
        Self(command.args(arguments).stdout(Stdio::null()).spawn().expect("unladen starts"))
    }
}

impl Drop for HalfCore {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "takes half an hour: make power"]
fn a_twentieth_more_work_is_found_beside_other_work() {
    let _turn = on_all_cores();
    let _other = HalfCore::start();
    let count = found(0.05);
    assert_eq!(count, STUDIES);
}
