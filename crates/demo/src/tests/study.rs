//! The embedded study: it is read as any study is, and what it starts is what the demo understands.

use clap::Parser as _;
use unladen_journal::role::Role;
use unladen_journal::units::Ratio;
use unladen_study::spec::{Command, Study};

use crate::options::{ConsumerOptions, Knobs, Options, ProviderOptions, Trace};

#[derive(clap::Parser)]
struct CommandLine {
    #[command(subcommand)]
    unladen: Unladen,
}

#[derive(clap::Subcommand)]
enum Unladen {
    #[command(name = "__demo", subcommand)]
    Demo(Options),
}

fn study() -> Study {
    unladen_study::read::parse(crate::STUDY, "study.yaml", &[]).expect("a well-formed study")
}

/// What a service of the study is told, `more` arguments appended.
fn options(study: &Study, service: &str, more: &[String]) -> Options {
    let service = &study.services[service];
    let Command::Words(words) = &service.command else { panic!("a list of words") };
    assert_eq!(words[0], "${unladen}");
    let words = words.iter().chain(&service.args).chain(more);
    let words = words.map(|word| word.replace("${port.provider}", "8001").replace("${port.consumer}", "8002"));
    let Unladen::Demo(options) = CommandLine::try_parse_from(words).expect("words that the demo knows").unladen;
    options
}

#[test]
fn the_services_are_told_what_they_understand() {
    let study = study();
    assert_eq!(study.services["provider"].role, Role::Dependency);
    assert!(matches!(options(&study, "provider", &[]), Options::Provider(ProviderOptions { port: 8001, .. })));
    assert_eq!(study.services["consumer"].role, Role::Subject);
    assert_eq!(study.services["consumer"].needs, ["provider"]);
    let Options::Consumer(consumer) = options(&study, "consumer", &[]) else { panic!("a consumer") };
    let ConsumerOptions { port, listen: _, provider, iterations, trace, spans, knobs } = *consumer;
    assert_eq!((port, provider.to_string().as_str()), (8002, "http://127.0.0.1:8001/provider"));
    assert_eq!((iterations, trace, spans), (10_000, Trace::None, 4));
    let Knobs {
        burn_us, hold_mib, leak_mib_per_minute, delay_us, slower_us_per_second, error_share, body_extra, ..
    } = knobs;
    assert_eq!((burn_us, hold_mib, delay_us, slower_us_per_second, body_extra), (0, 0, 0, 0, 0));
    assert_eq!((leak_mib_per_minute, error_share), (0.0, 0.0));
    assert_eq!((knobs.slow_start_ms, knobs.die_after_s, knobs.ignore_sigterm), (0, None, false));
}

#[test]
fn the_variants_are_the_bare_service_and_three_rungs() {
    let study = study();
    let names: Vec<_> = study.variants.keys().map(String::as_str).collect();
    assert_eq!(names, ["baseline", "otel", "otel-10pct", "otel-unsampled"]);
    assert!(study.placebo);
    assert!(study.variants["baseline"].services.is_empty());
    let sampled: Vec<_> = study.variants.values().skip(1).map(|variant| variant.sampled).collect();
    assert_eq!(sampled, [None, Some(Ratio(0.1)), Some(Ratio(0.0))]);
    for variant in study.variants.values().skip(1) {
        assert_eq!(variant.spans_per_request, Some(4.0));
        let Options::Consumer(consumer) = options(&study, "consumer", &variant.services["consumer"].args) else {
            panic!("a consumer")
        };
        assert_eq!((consumer.trace, consumer.spans), (Trace::Otlp, 4));
    }
}

#[test]
fn the_demo_takes_less_than_two_minutes() {
    let study = study();
    let runs = f64::from(study.rounds) * (study.variants.len() + 1) as f64;
    // Starting and stopping take well below half a second a run.
    let run = study.warmup.as_seconds() + study.window.as_seconds() + study.drain.quiet.as_seconds() + 0.5;
    assert!(runs * run <= 110.0, "{runs} runs of {run} s");
}

#[test]
fn what_the_consumer_cannot_do_is_refused_with_a_remedy() {
    for (words, remedy) in [
        ("--provider provider", "give a URL such as http://"),
        ("--provider https://127.0.0.1/", "give a URL such as http://"),
        ("--provider http://127.0.0.1/ --error-share 2", "give a share from 0 to 1"),
        ("--provider http://127.0.0.1/ --leak-mib-per-minute NaN", "give a number from 0"),
        ("--provider http://127.0.0.1/ --spans 0", "1..=1000"),
    ] {
        let words = ["unladen", "__demo", "consumer", "--port", "0"].into_iter().chain(words.split(' '));
        let error = CommandLine::try_parse_from(words).map(|_| ()).expect_err("refused").to_string();
        assert!(error.contains(remedy), "{error}");
    }
}
