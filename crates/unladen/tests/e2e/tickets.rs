//! The study `ticket-master` in miniature: a Kafka broker and six services start, every seat is sold once, and every request that the
//! load generator has marked leaves the spans that are due.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use unladen::journal::read::read;
use unladen::journal::record::RunRecord;

use crate::harness::{Said, Scratch, assert_nothing_left, counting};

/// Reservations of the profile `ci`, and seats of its four areas: more is wanted than there is.
const RESERVATIONS: f64 = 1_500.0;
const SEATS: f64 = 4.0 * 400.0;

fn study() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../studies/ticket-master")
        .canonicalize()
        .expect("a study of the project")
}

/// Spans of the load, by service and operation.
fn spans(run: &RunRecord) -> BTreeMap<(&str, &str), u64> {
    let operations = &run.sink.as_ref().expect("the sink's summary").operations;
    operations.iter().map(|it| ((it.service.as_str(), it.operation.as_str()), it.of_load)).collect()
}

/// Bare over HTTP/2, and traced over HTTP/1.1. `make tickets` builds the shop.
#[test]
fn the_ticket_shop_sells_every_seat_once() {
    let folder = study();
    let built = Command::new(folder.join("../../subjects/tickets/build.sh")).status().expect("the shop's build starts");
    assert!(built.success(), "the shop is built: `make tickets`");
    let _turn = counting();
    let scratch = Scratch::new();
    let path = folder.display().to_string();
    let said = scratch
        .command(&["run", &path, "--set", "profile=ci", "--only", "http1-otel-10", "--out", "out", "--plain"])
        .env("TMPDIR", scratch.path(""))
        .output()
        .expect("unladen starts");
    let said = Said::new(&said).ends_with(0);
    let runs = read(&scratch.path("out")).expect("a run folder").runs;
    let variants: Vec<&str> = runs.iter().map(|run| run.variant.as_str()).collect();
    assert!(variants.contains(&"baseline") && variants.contains(&"http1-otel-10"), "{variants:?}\n{}", said.err);
    for run in &runs {
        let load = run.load.as_ref().expect("a load");
        assert_eq!(load.errors, 0, "{}: {:?}", run.variant, load.error_classes);
        // The check has seen no seat sold twice and no reservation without a result, else it would have said nothing.
        let books = run.said.get("books").unwrap_or_else(|| panic!("{}: {:?}", run.variant, run.void));
        let number = |name: &str| books.get(name).copied().unwrap_or_else(|| panic!("no {name} in {books:?}"));
        assert_eq!(number("accepted"), RESERVATIONS);
        assert_eq!(number("reserved") + number("sold_out") + number("failed"), RESERVATIONS, "{books:?}");
        assert!(number("reserved") >= SEATS / 4.0 && number("sold_out") > 0.0, "{books:?}");
        assert!((SEATS * 0.95..=SEATS).contains(&number("seats")), "{books:?}");
        let mut names: Vec<&str> = run.processes.iter().map(|it| it.service.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["broker", "event", "event", "reservation", "reservation", "ticket", "ticket"]);
        assert!(!scratch.path("out").join(&run.dir).join("state").exists(), "the state of the services is left");
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
    }
    assert_nothing_left("--shared-port");
    assert_nothing_left(&scratch.path("").display().to_string());
}
