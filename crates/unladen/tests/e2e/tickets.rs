//! The study `ticket-master` in miniature: a Kafka broker and four services start, every seat is sold once, and every request that the
//! load generator has marked leaves the spans that are due.

use std::collections::BTreeMap;
use std::fs;

use unladen_journal::record::RunRecord;

use crate::harness::{CliOutput, Scratch, build, on_a_core, study};

/// Reservations of the profile `ci`, and seats of its four areas: more is wanted than there is.
const RESERVATIONS: f64 = 1_500.0;
const SEATS: f64 = 4.0 * 400.0;

/// Runs the study in a profile; a run folder must come of it.
fn run(scratch: &Scratch, profile: &str, more: &[&str]) -> (CliOutput, Vec<RunRecord>) {
    build("tickets");
    let (path, profile) = (study("ticket-master").display().to_string(), format!("profile={profile}"));
    let arguments = [&["run", path.as_str(), "--set", profile.as_str(), "--out", "out", "--plain"], more].concat();
    let output = scratch.command(&arguments).env("TMPDIR", scratch.path("")).output().expect("unladen starts");
    let output = CliOutput::new(&output).ends_with(0);
    println!("{}", output.out);
    scratch.assert_nothing_left();
    (output, scratch.runs())
}

/// What the check has found. It fails if a seat was sold twice, or a reservation has no result or two; then it says nothing.
fn books(run: &RunRecord) -> &BTreeMap<String, f64> {
    run.reported_numbers.get("books").unwrap_or_else(|| panic!("{}: {:?}", run.variant, run.void))
}

/// Spans of the load, by service and operation.
fn spans(run: &RunRecord) -> BTreeMap<(&str, &str), u64> {
    let operations = &run.sink.as_ref().expect("the sink's summary").operations;
    operations.iter().map(|it| ((it.service.as_str(), it.operation.as_str()), it.of_load)).collect()
}

/// Bare over HTTP/2, and traced over HTTP/1.1. `make tickets` builds the shop.
#[test]
fn the_ticket_shop_sells_every_seat_once() {
    let _turn = on_a_core();
    let scratch = Scratch::new();
    let (output, runs) = run(&scratch, "ci", &["--only", "http1-otel-10"]);
    let variants: Vec<&str> = runs.iter().map(|run| run.variant.as_str()).collect();
    assert!(variants.contains(&"baseline") && variants.contains(&"http1-otel-10"), "{variants:?}\n{}", output.err);
    for run in &runs {
        let load = run.load.as_ref().expect("a load");
        assert_eq!(load.errors, 0, "{}: {:?}", run.variant, load.error_classes);
        let books = books(run);
        let number = |name: &str| books.get(name).copied().unwrap_or_else(|| panic!("no {name} in {books:?}"));
        assert_eq!(number("accepted"), RESERVATIONS);
        assert_eq!(number("reserved") + number("refused"), RESERVATIONS, "{books:?}");
        assert!(number("reserved") >= SEATS / 4.0 && number("refused") > 0.0, "{books:?}");
        assert!((SEATS * 0.95..=SEATS).contains(&number("seats")), "{books:?}");
        let mut names: Vec<&str> = run.processes.iter().map(|it| it.service.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["broker", "event", "reservation", "ticket", "ticket"]);
        assert!(!scratch.path("out").join(&run.dir).join("ticket-0").exists(), "the state of a service is left");
    }
    for run in runs.iter().filter(|run| run.variant != "baseline") {
        let ledger = run.ledger.as_ref().expect("a ledger");
        assert_eq!((ledger.missing, ledger.unasked, ledger.duplicates), (0, 0, 0), "{ledger:?}");
        let spans = spans(run);
        let of = |service, operation| spans.get(&(service, operation)).copied().unwrap_or(0);
        let (wishes, results) =
            (of("ticket", "POST /v1/event/{event}/reservation"), of("ticket", "GET /v1/reservation/{id}"));
        assert_eq!(wishes + results, run.load.as_ref().expect("a load").sampled_total, "{spans:?}");
        // Made by hand: whoever asks for a result looks up who has it, and it is fetched there; half of them elsewhere.
        assert_eq!(of("ticket", "key lookup"), results, "{spans:?}");
        assert_eq!(of("ticket", "fetch from here"), results, "{spans:?}");
        let elsewhere = of("ticket", "fetch from other host");
        assert_eq!(of("ticket", "GET /v1/local/reservation/{id}"), elsewhere, "{spans:?}");
        assert!(elsewhere > 0 && elsewhere < results, "{spans:?}");
        assert!(of("ticket", "resume") > 0, "{spans:?}");
        // Made by the agent: wishes and results go through Kafka, and their traces with them.
        for (service, operation) in [
            ("ticket", "create-reservation publish"),
            ("reservation", "create-reservation process"),
            ("ticket", "reservation-results process"),
        ] {
            assert_eq!(of(service, operation), wishes, "{service} {operation}: {spans:?}");
        }
        assert!(of("event", "area-commands process") > 0, "{spans:?}");
        // What the spans of a tenth say of the latencies stands beside what clients saw of all.
        let findings = scratch.findings();
        for name in ["reserve", "result"] {
            let named = run.load.iter().flat_map(|load| &load.named).find(|it| it.name == name).expect("the request");
            let sampled = findings.sampled.iter().find(|it| it.variant == run.variant && it.request == name);
            let sampled = sampled.unwrap_or_else(|| panic!("{name}: {:?}", findings.sampled));
            assert_eq!((sampled.requests, sampled.spans), (named.requests, named.sampled_us.count), "{sampled:?}");
            assert!((0.07..0.13).contains(&sampled.ratio) && sampled.sampling_p95.is_some(), "{sampled:?}");
        }
    }
}

/// Nothing is lost and nothing doubled when the broker is killed (-9) ten times in the midst of a burst, and comes back.
#[test]
#[ignore = "some minutes: `make tickets-crash`"]
fn a_ticket_shop_whose_broker_is_killed_keeps_its_books() {
    let _turn = on_a_core();
    let scratch = Scratch::new();
    let (output, runs) = run(&scratch, "crash", &["--only", "http1"]);
    assert_eq!(runs.len(), 2, "{}", output.err);
    for run in &runs {
        let log = scratch.path("out").join(&run.dir).join("logs/broker.log");
        let log = fs::read_to_string(&log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        assert_eq!(log.matches("killed the broker").count(), 10, "{log}");
        assert_eq!(log.matches("broker is running").count(), 11, "{log}");
        let books = books(run);
        assert_eq!(books.get("accepted"), Some(&30_000.0), "{books:?}");
        assert!(books.get("reserved").is_some_and(|&reserved| reserved >= SEATS / 4.0), "{books:?}");
    }
}
