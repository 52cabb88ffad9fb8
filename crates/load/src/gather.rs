//! Adds up what the threads of a load wrote down: live seconds while it runs, the outcome at its end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::bodies;
use crate::error::LoadError;
use crate::histogram::{Histograms, add, quantiles};
use crate::merge::add_counts;
use crate::named::NamedRows;
use crate::outcome::{Iterations, Kind, Little, Named, NamedSecond, Outcome, Second, Tested};
use crate::pace::{SECOND, Span};
use crate::record::Recorder;
use crate::request::Failure;
use crate::script::Script;
use crate::second::SecondPart;
use crate::warning::judge_little;

/// Seconds of which some threads' parts are in.
#[derive(Debug, Default)]
struct Parts(BTreeMap<u32, (usize, SecondPart)>);

impl Parts {
    /// Adds one thread's part; returns the whole second if it was the last of `threads`.
    fn add(&mut self, part: SecondPart, threads: usize) -> Option<SecondPart> {
        let number = part.row.second;
        match self.0.get_mut(&number) {
            Some((count, sum)) => {
                *count += 1;
                sum.add(&part);
            }
            None => {
                self.0.insert(number, (1, part));
            }
        }
        let (count, _) = self.0.get(&number)?;
        if *count < threads { None } else { self.0.remove(&number).map(|(_, whole)| whole) }
    }
}

/// Collects the seconds of all threads.
#[derive(Debug)]
pub(crate) struct Seconds {
    threads: usize,
    passed: Parts,
    closed: Parts,
    rows: BTreeMap<u32, Second>,
    named: NamedRows,
}

/// The row of a second, with its quantiles.
fn row(part: SecondPart) -> Second {
    let found = quantiles(&part.latency);
    Second { p50_us: found.p50, p99_us: found.p99, ..part.row }
}

impl Seconds {
    /// For a load of so many threads, with so many names, of so many seconds.
    pub(crate) fn new(threads: usize, names: usize, seconds: u64) -> Self {
        let named = NamedRows::new(names, seconds);
        Self { threads, passed: Parts::default(), closed: Parts::default(), rows: BTreeMap::new(), named }
    }

    /// A thread's view of a second that has just passed; the row once all threads have told theirs.
    pub(crate) fn passed(&mut self, part: SecondPart) -> Option<Second> {
        let mut row = row(self.passed.add(part, self.threads)?);
        if row.first_index == u64::MAX {
            row.first_index = 0;
        }
        Some(row)
    }

    /// A thread's part of a second that can no longer change.
    pub(crate) fn closed(&mut self, part: SecondPart) {
        if let Some(whole) = self.closed.add(part, self.threads) {
            self.named.closed(whole.row.second, &whole.named);
            self.rows.insert(whole.row.second, row(whole));
        }
    }

    /// Every second of the load, those without requests too; and the rows by name.
    fn finish(mut self, span: &Span) -> (Vec<Second>, Vec<Vec<NamedSecond>>) {
        // Threads that were interrupted need not have opened the same last second.
        for (number, (_, part)) in std::mem::take(&mut self.closed.0) {
            self.named.closed(number, &part.named);
            self.rows.insert(number, row(part));
        }
        let length = span.window_end.saturating_sub(span.start).div_ceil(SECOND) as u32;
        let mut next_index = 0;
        let rows = (0..length)
            .map(|second| {
                let mut row = self.rows.remove(&second).unwrap_or(Second { second, ..Second::default() });
                if row.sent == 0 {
                    row.first_index = next_index;
                }
                next_index = row.first_index + row.sent;
                row
            })
            .collect();
        (rows, self.named.finish())
    }
}

/// How many there are of one to one of the other; nothing where there is none of the other.
fn ratio(count: u64, of: f64) -> f64 {
    if of > 0.0 { count as f64 / of } else { 0.0 }
}

/// The outcome of a load, and its histograms. `slot` is the least time between two wake-ups, nanoseconds.
pub(crate) fn outcome(
    records: &[Recorder],
    seconds: Seconds,
    planned: &Span,
    target_rate: Option<f64>,
    slot: u64,
    script: Option<&Script>,
) -> Result<(Outcome, Histograms), LoadError> {
    let mut histograms = Histograms::new()?;
    for record in records {
        histograms.add(&record.histograms);
    }
    // A load that has nothing left to send ends with its last answer, an interrupted one where the first thread noticed.
    let used_up = records.iter().all(|record| record.used_up);
    let window_end = if used_up {
        records.iter().map(|record| record.last_arrival).fold(planned.window_start, u64::max).min(planned.window_end)
    } else {
        records.iter().map(|record| record.span.window_end).fold(planned.window_end, u64::min)
    };
    let span = Span { window_end, ..*planned };
    let sum = |field: fn(&Recorder) -> u64| records.iter().map(field).sum::<u64>();
    let duration_s = window_end.saturating_sub(span.window_start) as f64 / SECOND as f64;
    let completed_in_window = sum(|record| record.completed_in_window);
    let mut error_classes = BTreeMap::new();
    for (class, name) in Failure::NAMES.into_iter().enumerate() {
        let count: u64 = records.iter().map(|record| record.failures[class]).sum();
        if count > 0 {
            error_classes.insert(name.to_owned(), count);
        }
    }
    let mut statuses = BTreeMap::new();
    for status in 0..1000 {
        let count: u64 = records.iter().map(|record| record.statuses[status]).sum();
        if count > 0 {
            statuses.insert(status as u16, count);
        }
    }
    let mut asked_again = BTreeMap::new();
    records.iter().for_each(|record| add_counts(&mut asked_again, record.asked_again.clone()));
    let mut grpc_statuses = BTreeMap::new();
    for (place, name) in crate::grpc::status::STATUSES.into_iter().enumerate() {
        let count: u64 = records.iter().map(|record| record.grpc_statuses[place]).sum();
        if count > 0 {
            grpc_statuses.insert(name.to_owned(), count);
        }
    }
    let (bodies, other_bodies) = bodies::merge(records.iter().map(|record| &record.bodies));
    let (seconds, rows) = seconds.finish(&span);
    let mut outcome = Outcome {
        requests: sum(|record| record.requests),
        errors: error_classes.values().sum(),
        error_classes,
        completed_in_window,
        sent_total: sum(|record| record.sent_total),
        answered_total: sum(|record| record.answered_total),
        sampled_total: sum(|record| record.sampled_total),
        target_rate,
        rate: ratio(sum(|record| record.answered_in_window), duration_s),
        duration_s,
        window_start_ns: span.window_start,
        window_end_ns: window_end,
        latency_us: quantiles(&histograms.latency),
        service_time_us: quantiles(&histograms.service_time),
        send_lag_us: quantiles(&histograms.send_lag),
        lateness_us: quantiles(&histograms.lateness),
        bytes_sent: sum(|record| record.bytes_sent),
        bytes_received: sum(|record| record.bytes_received),
        statuses,
        asked_again,
        grpc_statuses,
        bodies,
        other_bodies,
        reconnects: sum(|record| record.reconnects),
        resent: sum(|record| record.resent),
        redirected: sum(|record| record.redirected),
        cpu_us_per_request: ratio(sum(|record| record.cpu_ns), completed_in_window as f64 * 1e3),
        unanswered: sum(|record| record.unanswered),
        queued: sum(|record| record.queued),
        interrupted: !used_up && window_end < planned.window_end,
        busiest_thread: records
            .iter()
            .map(|record| ratio(record.cpu_ns + record.waited_ns, duration_s * 1e9).min(1.0))
            .fold(0.0, f64::max),
        seconds,
        named: Vec::new(),
        iterations: None,
        kinds: Vec::new(),
        tests: Vec::new(),
        little: Little::default(),
        shard: None,
        parts: Vec::new(),
        warnings: Vec::new(),
    };
    outcome.little = little(records, &outcome, slot);
    if let Some(script) = script {
        (outcome.named, outcome.tests) = named(records, script, rows, &mut histograms);
        outcome.kinds = kinds(records, script, &mut histograms);
        outcome.iterations = iterations(records, &mut histograms);
    }
    Ok((outcome, histograms))
}

/// Classes of errors in which there is no answer, so that nobody knows how long the request was on its way.
const WITHOUT_ANSWER: [Failure; 5] =
    [Failure::Connect, Failure::Timeout, Failure::Reset, Failure::Protocol, Failure::Unsent];

/// Both sides of Little's law.
fn little(records: &[Recorder], outcome: &Outcome, slot: u64) -> Little {
    let answers = outcome.statuses.values().sum();
    let rate = ratio(answers, outcome.duration_s);
    // Of all answers: those that are errors were on their way as well, and often for long.
    let mean_s = ratio(records.iter().map(|record| record.served_ns).sum(), answers as f64 * SECOND as f64);
    let samples = records.iter().map(|record| record.in_flight.1).max().unwrap_or(0);
    // Threads sample each for themselves; the means add up.
    let in_flight = records.iter().map(|record| ratio(record.in_flight.0, record.in_flight.1 as f64)).sum();
    let complete =
        WITHOUT_ANSWER.iter().all(|&class| records.iter().all(|record| record.failures[class as usize] == 0))
            && !outcome.interrupted;
    // An open loop sends what is due in a slot, at least one request, of each thread.
    let burst = outcome.target_rate.map_or(0.0, |rate| records.len() as f64 + rate * slot as f64 / SECOND as f64);
    let little = Little { in_flight, samples, expected: rate * mean_s, ..Little::default() };
    judge_little(little, burst, mean_s, outcome.duration_s, complete)
}

/// What became of the requests and tests of a script. Their histograms go with the load's.
fn named(
    records: &[Recorder],
    script: &Script,
    rows: Vec<Vec<NamedSecond>>,
    all: &mut Histograms,
) -> (Vec<Named>, Vec<Tested>) {
    let mut named = Vec::new();
    let mut rows = rows.into_iter();
    for (at, step) in script.steps().iter().enumerate() {
        let seconds = rows.next().unwrap_or_default();
        let mut found = Named { name: step.name.clone(), seconds, ..Named::default() };
        let mut sums: Option<(Histogram<u64>, Histogram<u64>)> = None;
        for part in records.iter().filter_map(|record| record.named.get(at)) {
            found.requests += part.requests;
            found.errors += part.errors;
            match &mut sums {
                None => sums = Some((part.latency.clone(), part.service_time.clone())),
                Some((latency, service_time)) => {
                    add(latency, &part.latency);
                    add(service_time, &part.service_time);
                }
            }
        }
        if let Some(sums) = sums {
            (found.latency_us, found.service_time_us) = (quantiles(&sums.0), quantiles(&sums.1));
            all.named.push(sums);
        }
        let mut sampled = records.iter().filter_map(|record| record.named.get(at)?.sampled.as_ref());
        if let Some(mut sum) = sampled.next().cloned() {
            sampled.for_each(|part| add(&mut sum, part));
            found.sampled_us = quantiles(&sum);
            all.sampled.push(sum);
        }
        named.push(found);
    }
    let tests = script.tests().iter().enumerate().map(|(at, (request, name))| {
        let counts = || records.iter().filter_map(|record| record.tests.get(at));
        Tested {
            request: request.clone(),
            name: name.clone(),
            passed: counts().map(|count| count.0).sum(),
            failed: counts().map(|count| count.1).sum(),
        }
    });
    (named, tests.collect())
}

/// Good answers by kind. Their histograms go with the load's.
fn kinds(records: &[Recorder], script: &Script, all: &mut Histograms) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (at, (request, name)) in script.kinds().iter().enumerate() {
        let mut parts = records.iter().filter_map(|record| record.kinds.get(at));
        let Some(first) = parts.next() else { continue };
        let (mut latency, mut iteration) = (first.latency.clone(), first.iteration.clone());
        for part in parts {
            add(&mut latency, &part.latency);
            add(&mut iteration, &part.iteration);
        }
        kinds.push(Kind {
            request: request.clone(),
            name: name.clone(),
            requests: latency.len(),
            latency_us: quantiles(&latency),
            iteration_us: quantiles(&iteration),
        });
        all.kinds.push((latency, iteration));
    }
    kinds
}

/// Whole iterations, where they are more than a request.
fn iterations(records: &[Recorder], all: &mut Histograms) -> Option<Iterations> {
    let mut parts = records.iter().filter_map(|record| record.iterations.as_ref());
    let first = parts.next()?;
    let (mut latency, mut failed, mut unfinished) = (first.latency.clone(), first.failed, first.unfinished);
    for part in parts {
        add(&mut latency, &part.latency);
        failed += part.failed;
        unfinished += part.unfinished;
    }
    let found = Iterations { completed: latency.len(), failed, unfinished, latency_us: quantiles(&latency) };
    all.iterations = Some(latency);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(second: u32, first_index: u64, sent: u64) -> SecondPart {
        let mut part = SecondPart::new(second).expect("bounds are good");
        (part.row.first_index, part.row.sent) = (first_index, sent);
        part
    }

    #[test]
    fn seconds_wait_for_all_threads_and_gaps_are_filled() {
        let mut seconds = Seconds::new(2, 0, 4);
        assert!(seconds.passed(part(0, 1, 5)).is_none());
        let row = seconds.passed(part(0, 0, 5)).expect("both threads");
        assert_eq!((row.first_index, row.sent), (0, 10));
        for (second, first_index, sent) in [(0, 1, 5), (0, 0, 5), (2, u64::MAX, 0), (2, 10, 1), (1, u64::MAX, 0)] {
            seconds.closed(part(second, first_index, sent));
        }
        let span = Span { start: 0, window_start: 0, window_end: 3 * SECOND + 1 };
        let rows: Vec<_> = seconds.finish(&span).0.iter().map(|row| (row.second, row.first_index, row.sent)).collect();
        assert_eq!(rows, [(0, 0, 10), (1, 10, 0), (2, 10, 1), (3, 11, 0)]);
    }
}
