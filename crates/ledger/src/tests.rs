//! Every rule of the account, in tables small enough to check by hand, and its balance under arbitrary input.

use proptest::prelude::*;

use super::*;

fn second(first_index: u64, sent: u64, answered: u64, sampled: u64) -> SecondOfRequests {
    SecondOfRequests { first_index, sent, answered, sampled }
}

/// Spans of requests, run-length encoded as in [`Summary::spans_by_request`].
type Runs = &'static [(u32, u64)];

/// A load that has nothing beyond its seconds.
fn load(seconds: &[SecondOfRequests]) -> Load<'_> {
    let sum = |of: fn(&SecondOfRequests) -> u64| seconds.iter().map(of).sum();
    Load { seconds, sent: sum(|s| s.sent), answered: sum(|s| s.answered), sampled: sum(|s| s.sampled) }
}

fn summary(spans_by_request: &[(u32, u64)]) -> Summary {
    let saved = spans_by_request.iter().map(|(spans, requests)| u64::from(*spans) * requests).sum();
    Summary { saved, received: saved, spans_by_request: spans_by_request.to_vec(), ..Summary::default() }
}

fn balanced(ledger: Ledger) -> Ledger {
    let accounted = i128::from(ledger.sampled_out + ledger.saved + ledger.lost) + i128::from(ledger.unexplained);
    assert_eq!(i128::from(ledger.expected), accounted, "{ledger:?}");
    ledger
}

/// The numbers of an account that a table gives: expected, sampled out, saved, lost, unexplained.
fn account(ledger: &Ledger) -> (u64, u64, u64, u64, i64) {
    (ledger.expected, ledger.sampled_out, ledger.saved, ledger.lost, ledger.unexplained)
}

/// complete, partial, missing, unasked.
fn traces(ledger: &Ledger) -> (u64, u64, u64, u64) {
    (ledger.complete, ledger.partial, ledger.missing, ledger.unasked)
}

#[test]
fn by_the_flag_with_a_whole_number() {
    type Row = (&'static str, SecondOfRequests, Runs, (u64, u64, u64, u64, i64), (u64, u64, u64, u64));
    let rows: [Row; 10] = [
        ("everything arrived", second(0, 10, 10, 10), &[(4, 10)], (40, 0, 40, 0, 0), (10, 0, 0, 0)),
        ("a whole trace is missing", second(0, 10, 10, 10), &[(4, 9)], (40, 0, 36, 4, 0), (9, 0, 1, 0)),
        ("a trace is partial", second(0, 10, 10, 10), &[(4, 9), (1, 1)], (40, 0, 37, 3, 0), (9, 1, 0, 0)),
        ("everything is missing", second(0, 10, 10, 10), &[], (40, 0, 0, 40, 0), (0, 0, 10, 0)),
        ("six of ten are not sampled", second(0, 10, 10, 4), &[(0, 2), (4, 4)], (40, 24, 16, 0, 0), (4, 0, 0, 0)),
        ("an excess is never set off", second(0, 2, 2, 2), &[(7, 1), (1, 1)], (8, 0, 8, 3, -3), (1, 1, 0, 0)),
        ("an unanswered request has spans", second(0, 10, 9, 9), &[(4, 9), (2, 1)], (36, 0, 38, 0, -2), (9, 0, 0, 0)),
        ("an unanswered request has none", second(0, 10, 9, 9), &[(4, 9)], (36, 0, 36, 0, 0), (9, 0, 0, 0)),
        ("the sampler ignores the flag", second(0, 10, 10, 4), &[(4, 10)], (40, 24, 40, 0, -24), (4, 0, 0, 6)),
        (
            "spans beyond the last request",
            second(0, 1, 1, 1),
            &[(4, 1), (0, 7), (4, 1)],
            (4, 0, 8, 0, -4),
            (1, 0, 0, 1),
        ),
    ];
    for (name, second, runs, expected_account, expected_traces) in rows {
        let ledger = close(&summary(runs), &load(&[second]), Some(4.0), Sampling::Flag).expect(name);
        assert_eq!(account(&ledger), expected_account, "{name}");
        assert_eq!(traces(&ledger), expected_traces, "{name}");
        assert_eq!(ledger.lost_by_second, [ledger.lost], "{name}");
        balanced(ledger);
    }
}

#[test]
fn losses_fall_into_their_seconds() {
    let seconds = [second(0, 10, 10, 10), second(10, 10, 10, 5), second(20, 0, 0, 0), second(20, 10, 10, 10)];
    // Second 0 loses two traces, second 1 one span, second 3 everything.
    let runs = [(3, 8), (0, 2), (3, 4), (2, 1)];
    let ledger = balanced(close(&summary(&runs), &load(&seconds), Some(3.0), Sampling::Flag).expect("sound"));
    assert_eq!(ledger.lost_by_second, [6, 1, 0, 30]);
    assert_eq!(account(&ledger), (90, 15, 38, 37, 0));
    assert_eq!(traces(&ledger), (12, 1, 12, 0));
}

#[test]
fn a_lack_in_one_second_is_not_made_up_by_another() {
    let seconds = [second(0, 10, 10, 5), second(10, 10, 10, 5)];
    let ledger = balanced(close(&summary(&[(2, 10)]), &load(&seconds), Some(2.0), Sampling::Flag).expect("sound"));
    assert_eq!(ledger.lost_by_second, [0, 10]);
    assert_eq!((ledger.lost, ledger.unasked, ledger.unexplained), (10, 5, -10));
}

/// Sequences are all due at once, a few of them are under way at a time, and each request is numbered when it is sent.
#[test]
fn seconds_whose_numbers_mix_are_settled_together() {
    // Due in second 0: 0, 1, 2, 3, 5, 6, 8 and 10; in second 1: 4, 7 and 9; in second 2: 11 and 12. Sampled: 0, 1, 4, 5, 9, 10, 11.
    let seconds = [second(0, 8, 8, 4), second(4, 3, 3, 2), second(11, 2, 2, 1)];
    let close = |runs: Runs| close(&summary(runs), &load(&seconds), Some(3.0), Sampling::Flag).expect("sound");
    let whole = balanced(close(&[(3, 2), (0, 2), (3, 2), (0, 3), (3, 3), (0, 1)]));
    assert_eq!((traces(&whole), account(&whole)), ((7, 0, 0, 0), (39, 18, 21, 0, 0)));
    assert_eq!(whole.lost_by_second, [0, 0, 0]);
    // Without 4 and 10, in whichever of the two seconds they were due, and without a span of 11.
    let lacking = balanced(close(&[(3, 2), (0, 3), (3, 1), (0, 3), (3, 1), (0, 1), (2, 1), (0, 1)]));
    assert_eq!((traces(&lacking), lacking.lost, lacking.unexplained), ((4, 1, 2, 0), 7, 0));
    assert_eq!(lacking.lost_by_second, [4, 2, 1], "the third second has its numbers for itself");
}

#[test]
fn what_has_no_second_mixes_with_the_last_if_numbers_mix_at_all() {
    // Second 0: 0, 1 and 3; second 1: 2 and 5; without a second: 4. Of all, 5 is not sampled.
    let seconds = [second(0, 3, 3, 3), second(2, 2, 2, 1)];
    let load = Load { seconds: &seconds, sent: 6, answered: 6, sampled: 5 };
    let whole = close(&summary(&[(2, 5), (0, 1)]), &load, Some(2.0), Sampling::Flag).expect("sound");
    assert_eq!(traces(&balanced(whole)), (5, 0, 0, 0));
    let none = balanced(close(&summary(&[]), &load, Some(2.0), Sampling::Flag).expect("sound"));
    assert_eq!((none.lost, none.lost_by_second), (10, vec![6, 2]));
}

#[test]
fn requests_without_a_second_count_too() {
    let seconds = [second(0, 10, 10, 10)];
    let load = Load { seconds: &seconds, sent: 14, answered: 13, sampled: 13 };
    let ledger = balanced(close(&summary(&[(2, 11)]), &load, Some(2.0), Sampling::Flag).expect("sound"));
    assert_eq!(account(&ledger), (26, 0, 22, 4, 0));
    assert_eq!(ledger.lost_by_second, [0], "the rest has no second");
}

#[test]
fn spans_per_request_are_learned() {
    let rows: [(Runs, f64, f64); 3] =
        [(&[(4, 90), (3, 10)], 4.0, 0.9), (&[(0, 50), (1, 5)], 1.0, 1.0), (&[(2, 4), (6, 5)], 6.0, 5.0 / 9.0)];
    for (runs, per_request, agreement) in rows {
        let ledger =
            close(&summary(runs), &load(&[second(0, 100, 100, 100)]), None, Sampling::Flag).expect("some arrived");
        assert!(!ledger.declared);
        assert_eq!((ledger.spans_per_request, ledger.agreement), (per_request, agreement), "{runs:?}");
        balanced(ledger);
    }
}

#[test]
fn where_no_number_speaks_for_most_traces_only_missing_ones_are_lost() {
    // Of 100 requests, and so many that did not arrive.
    let rows: [(Runs, f64, u64); 4] = [
        (&[(2, 45), (6, 45)], 4.0, 10),
        (&[(2, 30), (6, 30), (7, 30)], 5.0, 10),
        (&[(2, 5), (6, 5)], 4.0, 90),
        (&[(1, 30), (2, 30), (3, 39)], 207.0 / 99.0, 1),
    ];
    for (runs, mean, missing) in rows {
        let ledger =
            close(&summary(runs), &load(&[second(0, 100, 100, 100)]), None, Sampling::Flag).expect("some arrived");
        assert_eq!(
            (ledger.spans_per_request, ledger.agreement, ledger.partial, ledger.missing),
            (mean, 0.0, 0, missing)
        );
        assert_eq!((ledger.lost, ledger.unexplained), ((mean * missing as f64).round() as u64, 0));
        balanced(ledger);
    }
}

#[test]
fn a_fractional_number_judges_only_missing_traces() {
    // 100 requests with 2 or 5 spans, 3.5 on average; 10 traces never arrived.
    let runs = [(2, 45), (5, 45)];
    let seconds = [second(0, 50, 50, 50), second(50, 50, 50, 50)];
    let load = &load(&seconds);
    let ledger = balanced(close(&summary(&runs), load, Some(3.5), Sampling::Flag).expect("sound"));
    assert_eq!(account(&ledger), (350, 0, 315, 35, 0));
    assert_eq!(traces(&ledger), (90, 0, 10, 0));
    assert_eq!(ledger.lost_by_second, [0, 35]);
    // The same with another mix: it is not called lost.
    let ledger = balanced(close(&summary(&[(2, 100)]), load, Some(3.5), Sampling::Flag).expect("sound"));
    assert_eq!(account(&ledger), (350, 0, 200, 0, 150));
}

#[test]
fn instrumentation_that_is_off_owes_nothing() {
    let ledger = close(&summary(&[]), &load(&[second(0, 9, 9, 9)]), Some(0.0), Sampling::Flag).expect("sound");
    assert_eq!((account(&ledger), traces(&ledger)), ((0, 0, 0, 0, 0), (0, 0, 0, 0)));
    let ledger =
        close(&summary(&[(2, 1)]), &load(&[second(0, 9, 9, 9)]), Some(0.0), Sampling::Own(1.0)).expect("sound");
    assert_eq!((account(&balanced(ledger.clone())), ledger.unasked), ((0, 0, 2, 0, -2), 1));
}

#[test]
fn a_service_that_samples_by_itself() {
    let seconds = [second(0, 5_000, 5_000, 0), second(5_000, 5_000, 5_000, 0)];
    let load = &load(&seconds);
    // 10 % of 10,000: 1,000 with a standard deviation of 30. Half of the traces in each second.
    let arrived = |first: u64, then: u64| summary(&[(3, first), (0, 5_000 - first), (3, then)]);
    let close =
        |summary: &Summary, share| balanced(close(summary, load, Some(3.0), Sampling::Own(share)).expect("sound"));

    let by_chance = close(&arrived(480, 430), 0.1);
    assert_eq!(account(&by_chance), (30_000, 30_000 - 3 * 910, 3 * 910, 0, 0));
    assert_eq!(traces(&by_chance), (910, 0, 0, 0));

    let too_few = close(&arrived(500, 300), 0.1);
    assert_eq!(too_few.missing, 80, "up to 1,000 less four standard deviations");
    assert_eq!((too_few.lost, too_few.unexplained), (240, 0));
    assert_eq!(too_few.lost_by_second, [0, 240], "only the second second lacks traces");

    let too_many = close(&arrived(500, 700), 0.1);
    assert_eq!((too_many.lost, too_many.unasked, too_many.unexplained), (0, 80, -240));

    let partial = close(&summary(&[(3, 500), (1, 500)]), 0.1);
    assert_eq!((partial.partial, partial.missing, partial.lost), (500, 0, 1_000), "a partial trace was recorded");

    let all = close(&arrived(5_000, 4_999), 1.0);
    assert_eq!(
        (all.sampled_out, all.missing, all.lost, all.unexplained),
        (0, 1, 3, 0),
        "no chance: every trace is due"
    );
    let none = close(&arrived(0, 0), 0.0);
    assert_eq!(account(&none), (30_000, 30_000, 0, 0, 0));
}

#[test]
fn what_the_sink_refused_is_a_stage() {
    let refused = Summary { rejected: 3, duplicates: 5, foreign: 7, ..summary(&[(2, 9)]) };
    let ledger = close(&refused, &load(&[second(0, 10, 10, 10)]), Some(2.0), Sampling::Flag).expect("sound");
    assert_eq!(ledger.by_stage, BTreeMap::from([("rejected".to_string(), 2)]), "no more than was lost");
    assert_eq!((ledger.duplicates, ledger.foreign), (5, 7));
}

#[test]
fn no_account_without_a_ground() {
    let seconds = [second(0, 10, 10, 10)];
    let load = &load(&seconds);
    let close = |summary: &Summary, spans, sampling| close(summary, load, spans, sampling).expect_err("no ground");
    assert_eq!(close(&summary(&[]), None, Sampling::Flag), LedgerError::NothingToLearnFrom);
    let untied = Summary { saved: 5, ..Summary::default() };
    assert_eq!(close(&untied, Some(2.0), Sampling::Flag), LedgerError::NotTied);
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(close(&summary(&[]), Some(wrong), Sampling::Flag), LedgerError::SpansPerRequest);
        assert_eq!(close(&summary(&[]), Some(1.0), Sampling::Own(wrong)), LedgerError::Share);
    }
}

proptest! {
    /// Whatever the numbers, consistent or not: the books balance and nothing panics.
    #[test]
    fn the_ledger_always_balances(
        seconds in prop::collection::vec((0_u64..60, 0_u64..20, 0_u64..20, 0_u64..20), 0..6),
        runs in prop::collection::vec((0_u32..8, 0_u64..12), 0..20),
        totals in (0_u64..100, 0_u64..100, 0_u64..100),
        per_request in prop::option::of(prop_oneof![Just(0.0), Just(3.0), 0.0..6.0]),
        share in prop::option::of(0.0..=1.0),
    ) {
        let seconds: Vec<_> = seconds.into_iter().map(|(first, sent, answered, sampled)| second(first, sent, answered, sampled)).collect();
        let (sent, answered, sampled) = totals;
        let load = Load { seconds: &seconds, sent, answered, sampled };
        let sampling = share.map_or(Sampling::Flag, Sampling::Own);
        if let Ok(ledger) = close(&summary(&runs), &load, per_request, sampling) {
            let ledger = balanced(ledger);
            prop_assert_eq!(ledger.lost_by_second.len(), seconds.len());
            prop_assert!(ledger.lost_by_second.iter().sum::<u64>() <= ledger.lost);
            prop_assert!(ledger.sampled_out <= ledger.expected);
        }
    }

    /// The same whatever the order of the numbers, in whichever seconds: nothing is missing that is there.
    #[test]
    fn dropped_spans_are_lost_spans_in_any_order(
        requests in prop::collection::vec((0_usize..4, any::<bool>(), 0_u32..=3), 1..200),
    ) {
        let mut seconds = [second(0, 0, 0, 0); 4];
        for (number, (at, sampled, _)) in (0_u64..).zip(&requests) {
            let row = &mut seconds[*at];
            row.first_index = if row.sent == 0 { number } else { row.first_index };
            row.sent += 1;
            row.answered += 1;
            row.sampled += u64::from(*sampled);
        }
        let spans = |&(_, sampled, saved): &(usize, bool, u32)| if sampled { saved } else { 0 };
        let runs = crate::summary::run_lengths((0..).zip(requests.iter().map(spans)));
        let ledger = balanced(close(&summary(&runs), &load(&seconds), Some(3.0), Sampling::Flag).expect("sound"));
        let lost = |number: u32| requests.iter().filter(|(_, sampled, saved)| *sampled && *saved == number).count() as u64;
        prop_assert_eq!((ledger.lost, ledger.unexplained), (3 * lost(0) + 2 * lost(1) + lost(2), 0));
        prop_assert_eq!(traces(&ledger), (lost(3), lost(1) + lost(2), lost(0), 0));
        prop_assert_eq!(ledger.lost_by_second.iter().sum::<u64>(), ledger.lost);
    }

    /// The truth comes back: drop spans at random from a load that is sound, and exactly those are lost.
    #[test]
    fn dropped_spans_are_lost_spans(saved in prop::collection::vec(0_u32..=3, 1..200)) {
        let runs = crate::summary::run_lengths((0..).zip(saved.iter().copied()));
        let requests = saved.len() as u64;
        let seconds = [second(0, requests / 2, requests / 2, requests / 2),
            second(requests / 2, requests - requests / 2, requests - requests / 2, requests - requests / 2)];
        let ledger = close(&summary(&runs), &load(&seconds), Some(3.0), Sampling::Flag).expect("sound");
        let dropped: u64 = saved.iter().map(|saved| u64::from(3 - saved)).sum();
        prop_assert_eq!((ledger.lost, ledger.unexplained), (dropped, 0));
        prop_assert_eq!(ledger.lost_by_second.iter().sum::<u64>(), dropped);
    }
}

#[test]
fn stages_are_believed_up_to_what_is_lost() {
    use crate::summary::ReportedLoss;
    let loss = |stage: &str, spans| ReportedLoss { service: "shop".into(), stage: stage.into(), spans };
    type Row = (u64, Vec<ReportedLoss>, &'static [(&'static str, u64)]);
    let rows: [Row; 4] = [
        (0, vec![], &[]),
        (2, vec![loss("queue", 30)], &[("rejected", 2), ("queue", 30)]),
        (0, vec![loss("export", 10), loss("queue", 20)], &[("export", 10), ("queue", 20)]),
        (0, vec![loss("export", 1_000), loss("queue", 1_000)], &[("export", 40)]),
    ];
    for (rejected, reported_losses, expected) in rows {
        // Ten of a hundred requests of four spans are missing.
        let summary = Summary { rejected, reported_losses, ..summary(&[(4, 90)]) };
        let seconds = [second(0, 100, 100, 100)];
        let ledger = balanced(close(&summary, &load(&seconds), Some(4.0), Sampling::Flag).expect("sound"));
        let expected: BTreeMap<String, u64> = expected.iter().map(|(stage, spans)| ((*stage).into(), *spans)).collect();
        assert_eq!((ledger.lost, ledger.by_stage), (40, expected));
    }
}

#[test]
fn a_calibration_tells_which_operation_lacks_spans() {
    use crate::summary::Operation;
    let operation = |name: &str, of_load| Operation {
        service: "shop".into(),
        operation: name.into(),
        spans: of_load + 1,
        of_load,
        p50_us: 0.0,
        p90_us: 0.0,
        p99_us: 0.0,
    };
    let calibration = Summary {
        operations: vec![operation("buy", 100), operation("sql", 300), operation("start", 0)],
        ..summary(&[(4, 100)])
    };
    let learned = learn(&calibration).expect("it arrived");
    assert_eq!((learned.spans_per_request, learned.agreement, learned.mean), (4.0, 1.0, 4.0));
    let per_request: Vec<_> = learned.operations.iter().map(|o| (o.operation.as_str(), o.spans_per_request)).collect();
    assert_eq!(per_request, [("buy", 1.0), ("sql", 3.0)]);

    let run = Summary {
        operations: vec![operation("buy", 1_000), operation("sql", 2_900)],
        ..summary(&[(4, 900), (3, 100)])
    };
    let seconds = [second(0, 1_000, 1_000, 1_000)];
    let ledger = close(&run, &load(&seconds), Some(learned.spans_per_request), Sampling::Flag).expect("sound");
    let shortfalls = learned.shortfalls(&ledger, &run);
    assert_eq!(shortfalls.len(), 1);
    assert_eq!((shortfalls[0].operation.as_str(), shortfalls[0].due, shortfalls[0].saved), ("sql", 3_000.0, 2_900));
    assert_eq!(learn(&Summary::default()), Err(LedgerError::NothingToLearnFrom));
}
