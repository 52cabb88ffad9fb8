//! What one thread writes down while it sends: counts, histograms, seconds. Memory does not grow with the number of requests.
//!
//! A request belongs to the window, and to a second, by the instant it was *due*, so what is in flight at a boundary is
//! counted once and a stall shows in the seconds that it hit.

use std::collections::{BTreeMap, VecDeque};

use hdrhistogram::Histogram;

use crate::bodies::Bodies;
use crate::error::LoadError;
use crate::grpc::status::{STATUSES, place};
use crate::histogram::{Histograms, empty};
use crate::pace::{SECOND, Span};
use crate::request::{Answer, Failure, Request};
use crate::script::Script;
use crate::second::SecondPart;

/// The requests of one name, due in the window.
#[derive(Debug)]
pub(crate) struct Named {
    /// Answered well.
    pub(crate) requests: u64,
    /// Failed, in any way.
    pub(crate) errors: u64,
    /// Of the well answered ones, nanoseconds.
    pub(crate) latency: Histogram<u64>,
    /// See `latency`.
    pub(crate) service_time: Histogram<u64>,
    /// The same of those with the sampled flag alone; `None` where all have it, or none.
    pub(crate) sampled: Option<Histogram<u64>>,
}

/// The good answers of one kind to requests due in the window.
#[derive(Debug)]
pub(crate) struct Kind {
    /// From the request's due instant, nanoseconds.
    pub(crate) latency: Histogram<u64>,
    /// From the due instant of its iteration's first request, if that was in the window, too.
    pub(crate) iteration: Histogram<u64>,
}

/// How an iteration of several requests ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Its last answer came at this instant, and was a good one.
    Well(u64),
    /// A request of it has failed.
    Failed,
    /// The window ended between two of its requests.
    Unfinished,
}

/// Iterations whose first request was due in the window.
#[derive(Debug)]
pub(crate) struct Iterations {
    pub(crate) failed: u64,
    pub(crate) unfinished: u64,
    /// Of those that came to their end well, nanoseconds.
    pub(crate) latency: Histogram<u64>,
}

/// What single requests took, nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// How late each was sent, and whether it waited for a connection.
    pub(crate) sent: Vec<(u64, bool)>,
    /// Latency and service time of the good answers.
    pub(crate) served: Vec<(u64, u64)>,
}

impl Samples {
    /// Hands them to histograms, or forgets them.
    pub(crate) fn settle(&mut self, into: Option<&mut Histograms>) {
        if let Some(histograms) = into {
            self.sent.iter().for_each(|(lag, waited)| histograms.sent(*lag, *waited));
            self.served.iter().for_each(|(latency, service_time)| histograms.served(*latency, *service_time));
        }
        self.sent.clear();
        self.served.clear();
    }
}

/// Everything that one thread writes down.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The parts of the load.
    pub(crate) span: Span,
    pub(crate) histograms: Histograms,
    pub(crate) bodies: Bodies,
    /// Answers of the window by status code.
    pub(crate) statuses: Box<[u64; 1000]>,
    /// Of those, the ones after which a step was sent again.
    pub(crate) asked_again: BTreeMap<u16, u64>,
    /// gRPC: answers of the window by status, see [`STATUSES`].
    pub(crate) grpc_statuses: [u64; STATUSES.len()],
    /// Errors of the window by [`Failure`].
    pub(crate) failures: [u64; Failure::NAMES.len()],
    /// Requests of the window answered well.
    pub(crate) requests: u64,
    /// How long the window's requests with an answer were on their way, well or not, ns in all.
    pub(crate) served_ns: u64,
    /// Answers that arrived within the window, well or not.
    pub(crate) answered_in_window: u64,
    /// Of these, the good ones.
    pub(crate) completed_in_window: u64,
    pub(crate) sent_total: u64,
    pub(crate) answered_total: u64,
    pub(crate) sampled_total: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) reconnects: u64,
    pub(crate) resent: u64,
    pub(crate) redirected: u64,
    pub(crate) unanswered: u64,
    pub(crate) queued: u64,
    /// By request of the script; empty without one.
    pub(crate) named: Vec<Named>,
    /// How often each test of the script held, and how often not, over the whole load.
    pub(crate) tests: Vec<(u64, u64)>,
    /// By kind of answer of the script.
    pub(crate) kinds: Vec<Kind>,
    /// Whole iterations; `None` where an iteration is a request.
    pub(crate) iterations: Option<Iterations>,
    /// Requests in flight in the window: the sum of the samples, and how many were taken while requests were due.
    pub(crate) in_flight: (u64, u64),
    /// When the last answer came, or the last request failed.
    pub(crate) last_arrival: u64,
    /// Whether the load ended because there was nothing left to send.
    pub(crate) used_up: bool,
    /// CPU time of the thread over the window, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Time in the window in which the thread was ready and waited for a core, nanoseconds.
    pub(crate) waited_ns: u64,
    /// Of a load that shares its time: the last instant of the turn under way. An answer that comes after it belongs to the turn.
    pub(crate) turn_last: u64,
    /// Likewise: what the turns of the group under way took, until it is known whether the group counts.
    pub(crate) samples: Option<Samples>,
    /// Seconds that may still change, in order.
    open: VecDeque<SecondPart>,
    /// Number of the first open second.
    first_open: u32,
}

impl Recorder {
    /// An empty record.
    pub(crate) fn new(span: Span) -> Result<Self, LoadError> {
        Ok(Self {
            span,
            histograms: Histograms::new()?,
            bodies: Bodies::default(),
            statuses: Box::new([0; 1000]),
            asked_again: BTreeMap::new(),
            grpc_statuses: [0; STATUSES.len()],
            failures: [0; Failure::NAMES.len()],
            requests: 0,
            served_ns: 0,
            answered_in_window: 0,
            completed_in_window: 0,
            sent_total: 0,
            answered_total: 0,
            sampled_total: 0,
            bytes_sent: 0,
            bytes_received: 0,
            reconnects: 0,
            resent: 0,
            redirected: 0,
            unanswered: 0,
            queued: 0,
            named: Vec::new(),
            tests: Vec::new(),
            kinds: Vec::new(),
            iterations: None,
            in_flight: (0, 0),
            last_arrival: 0,
            used_up: false,
            cpu_ns: 0,
            waited_ns: 0,
            turn_last: u64::MAX,
            samples: None,
            open: VecDeque::new(),
            first_open: 0,
        })
    }

    /// With room for the requests, tests and kinds of a script.
    pub(crate) fn with_names(mut self, script: &Script) -> Result<Self, LoadError> {
        for _ in script.steps() {
            let sampled = if script.samples() { Some(empty()?) } else { None };
            let (latency, service_time) = (empty()?, empty()?);
            self.named.push(Named { requests: 0, errors: 0, latency, service_time, sampled });
        }
        self.tests = vec![(0, 0); script.tests().len()];
        for _ in script.kinds() {
            self.kinds.push(Kind { latency: empty()?, iteration: empty()? });
        }
        if script.has_long_iterations() {
            self.iterations = Some(Iterations { failed: 0, unfinished: 0, latency: empty()? });
        }
        Ok(self)
    }

    /// A request of the script has been answered well, in this way; its iteration's first request was due at `begun`.
    pub(crate) fn kind_answered(&mut self, kind: usize, begun: u64, request: &Request, answer: &Answer) {
        if let (true, true, Some(found)) =
            (answer.failure.is_none(), self.span.in_window(request.due), self.kinds.get_mut(kind))
        {
            found.latency.saturating_record(answer.arrived.saturating_sub(request.due));
            if self.iterations.is_some() && self.span.in_window(begun) {
                found.iteration.saturating_record(answer.arrived.saturating_sub(begun));
            }
        }
    }

    /// An iteration whose first request was due at `begun` is over.
    pub(crate) fn iteration_ended(&mut self, begun: u64, end: End) {
        let in_window = self.span.in_window(begun);
        let Some(iterations) = self.iterations.as_mut().filter(|_| in_window) else { return };
        match end {
            End::Well(arrived) => iterations.latency.saturating_record(arrived.saturating_sub(begun)),
            End::Failed => iterations.failed += 1,
            End::Unfinished => iterations.unfinished += 1,
        }
    }

    /// A request of the script has been answered.
    pub(crate) fn named_answered(&mut self, step: usize, request: &Request, answer: &Answer) {
        if answer.failure.is_some() {
            return self.named_failed(step, request.due);
        }
        if let Some(second) = self.second(request.due) {
            second.named.answered(step, answer.arrived.saturating_sub(request.due));
        }
        if let (true, Some(named)) = (self.span.in_window(request.due), self.named.get_mut(step)) {
            named.requests += 1;
            named.latency.saturating_record(answer.arrived.saturating_sub(request.due));
            let service_time = answer.arrived.saturating_sub(request.sent);
            named.service_time.saturating_record(service_time);
            if let (true, Some(sampled)) = (request.sampled, &mut named.sampled) {
                sampled.saturating_record(service_time);
            }
        }
    }

    /// A request of the script has failed.
    pub(crate) fn named_failed(&mut self, step: usize, due: u64) {
        if let Some(second) = self.second(due) {
            second.named.failed(step);
        }
        if let (true, Some(named)) = (self.span.in_window(due), self.named.get_mut(step)) {
            named.errors += 1;
        }
    }

    /// Makes sure that the second of an instant is open. Called once a second, off the hot path.
    pub(crate) fn open_second_of(&mut self, at: u64) -> Result<(), LoadError> {
        while self.first_open + self.open.len() as u32 <= self.span.second_of(at) {
            self.open.push_back(SecondPart::new(self.first_open + self.open.len() as u32)?);
        }
        Ok(())
    }

    /// The open second of an instant. Requests are due in order and end before their second is closed, so it is there.
    fn second(&mut self, due: u64) -> Option<&mut SecondPart> {
        let at = self.span.second_of(due).checked_sub(self.first_open)?;
        // A request may be due in the next second before the once-a-second work has opened it.
        if at as usize >= self.open.len() {
            self.open_second_of(due).ok()?;
        }
        self.open.get_mut(at as usize)
    }

    /// A request has been taken on: from now on it is either answered or failed.
    #[inline]
    pub(crate) fn taken(&mut self, index: u64, due: u64) {
        self.sent_total += 1;
        if let Some(second) = self.second(due) {
            second.row.sent += 1;
            second.row.first_index = second.row.first_index.min(index);
        }
    }

    /// A request was due while every connection was busy.
    #[inline]
    pub(crate) fn queued(&mut self, due: u64) {
        if self.span.in_window(due) {
            self.queued += 1;
        }
    }

    /// A request has been sent.
    #[inline]
    pub(crate) fn sent(&mut self, request: &Request) {
        if self.span.in_window(request.due) {
            let lag = request.sent.saturating_sub(request.due);
            match &mut self.samples {
                None => self.histograms.sent(lag, request.waited),
                Some(samples) => samples.sent.push((lag, request.waited)),
            }
        }
    }

    /// A request has been answered.
    #[inline]
    pub(crate) fn answered(&mut self, request: &Request, answer: &Answer) {
        let latency = answer.arrived.saturating_sub(request.due);
        let good = answer.failure.is_none();
        self.last_arrival = self.last_arrival.max(answer.arrived);
        self.answered_total += 1;
        self.sampled_total += u64::from(request.sampled);
        if let Some(second) = self.second(request.due) {
            second.row.answered += 1;
            second.row.sampled += u64::from(request.sampled);
            second.row.errors += u64::from(!good);
            if good {
                second.latency.saturating_record(latency);
            }
        }
        if self.span.in_window(answer.arrived.min(self.turn_last)) {
            self.answered_in_window += 1;
            self.completed_in_window += u64::from(good);
        }
        if self.span.in_window(request.due) {
            let service_time = answer.arrived.saturating_sub(request.sent);
            self.served_ns += service_time;
            self.statuses[usize::from(answer.status) % 1000] += 1;
            if answer.asks_again {
                *self.asked_again.entry(answer.status).or_default() += 1;
            } else {
                self.bodies.count(answer.class);
            }
            match answer.failure {
                None => {
                    self.requests += 1;
                    match &mut self.samples {
                        None => self.histograms.served(latency, service_time),
                        Some(samples) => samples.served.push((latency, service_time)),
                    }
                }
                Some(failure) => self.failures[failure as usize] += 1,
            }
        }
    }

    /// A gRPC call has ended with a status.
    #[inline]
    pub(crate) fn grpc_status(&mut self, due: u64, status: Option<u16>) {
        if self.span.in_window(due) {
            self.grpc_statuses[place(status)] += 1;
        }
    }

    /// A request has failed without a complete answer.
    #[cold]
    pub(crate) fn failed(&mut self, due: u64, failure: Failure) {
        if let Some(second) = self.second(due) {
            second.row.errors += 1;
        }
        if self.span.in_window(due) {
            self.failures[failure as usize] += 1;
        }
    }

    /// A request has ended without an answer at this instant.
    #[cold]
    pub(crate) fn ended(&mut self, at: u64) {
        self.last_arrival = self.last_arrival.max(at);
    }

    /// A request was given up on at the end of the load.
    #[cold]
    pub(crate) fn unanswered(&mut self, due: u64) {
        if self.span.in_window(due) {
            self.unanswered += 1;
        }
    }

    /// What is known of a second so far; `None` if it is closed.
    pub(crate) fn peek(&self, second: u32) -> Option<&SecondPart> {
        self.open.get(second.checked_sub(self.first_open)? as usize)
    }

    /// Closes and returns the first open second if it ended by `before`: nothing that was due in it is outstanding.
    pub(crate) fn close_second(&mut self, before: u64) -> Option<SecondPart> {
        let end = self.span.start + u64::from(self.first_open + 1) * SECOND;
        if end > before {
            return None;
        }
        let closed = self.open.pop_front();
        self.first_open += u32::from(closed.is_some());
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load from 1 s on the clock: warm-up of 1 s, window of 2 s.
    fn recorder() -> Recorder {
        let span = Span { start: SECOND, window_start: 2 * SECOND, window_end: 4 * SECOND };
        Recorder::new(span).expect("bounds are good")
    }

    fn request(index: u64, due: u64) -> Request {
        Request { index, due, sent: due + 10, sampled: true, ..Request::default() }
    }

    fn good(arrived: u64) -> Answer {
        Answer { arrived, status: 200, class: None, failure: None, asks_again: false }
    }

    #[test]
    fn a_request_belongs_to_the_window_by_its_due_time_and_completes_in_it_by_its_arrival() {
        let mut recorder = recorder();
        // Due in the warm-up, answered in the window; due and answered in it; due in it and answered after.
        for (index, due, arrived) in [
            (0, 2 * SECOND - 5, 2 * SECOND + 100),
            (1, 2 * SECOND, 2 * SECOND + 100),
            (2, 4 * SECOND - 1, 4 * SECOND + 100),
        ] {
            recorder.taken(index, due);
            recorder.sent(&request(index, due));
            recorder.answered(&request(index, due), &good(arrived));
        }
        assert_eq!(recorder.requests, 2);
        assert_eq!(recorder.completed_in_window, 2);
        assert_eq!((recorder.sent_total, recorder.answered_total, recorder.sampled_total), (3, 3, 3));
        assert_eq!(recorder.histograms.latency.len(), 2);
        assert_eq!(recorder.histograms.send_lag.len(), 2);
        assert_eq!((recorder.histograms.latency.min(), recorder.histograms.service_time.min()), (100, 90));
    }

    /// Of 2 s to 4 s: what began before is nobody's time, and what the end cuts off is told.
    #[test]
    fn iterations_belong_to_the_window_by_their_first_request_and_answers_by_their_own() {
        let mut recorder = recorder();
        recorder.iterations = Some(Iterations { failed: 0, unfinished: 0, latency: empty().expect("good") });
        recorder.kinds.push(Kind { latency: empty().expect("good"), iteration: empty().expect("good") });
        for (begun, due) in [(SECOND, 3 * SECOND), (2 * SECOND, 3 * SECOND), (SECOND, SECOND + 7)] {
            let arrived = due + 1000;
            recorder.kind_answered(0, begun, &request(0, due), &good(arrived));
            recorder.iteration_ended(begun, End::Well(arrived));
        }
        let bad = Answer { failure: Some(Failure::Check), ..good(3 * SECOND + 5) };
        recorder.kind_answered(0, 2 * SECOND, &request(0, 3 * SECOND), &bad);
        recorder.iteration_ended(2 * SECOND, End::Failed);
        recorder.iteration_ended(4 * SECOND - 1, End::Unfinished);
        let kind = &recorder.kinds[0];
        assert_eq!((kind.latency.len(), kind.latency.max(), kind.iteration.len()), (2, 1000, 1));
        let iterations = recorder.iterations.as_ref().expect("they are kept");
        assert_eq!((iterations.latency.len(), iterations.failed, iterations.unfinished), (1, 1, 1));
        assert_eq!(iterations.latency.max() / 1_000_000, 1000, "from 2 s to 3 s");
    }

    #[test]
    fn failures_are_counted_by_class_and_not_timed() {
        let mut recorder = recorder();
        for (index, due) in [(0, SECOND), (1, 3 * SECOND), (2, 3 * SECOND)] {
            recorder.taken(index, due);
        }
        recorder.failed(SECOND, Failure::Reset);
        recorder.failed(3 * SECOND, Failure::Timeout);
        let bad = Answer { status: 500, failure: Some(Failure::Status), ..good(3 * SECOND + 25) };
        recorder.answered(&request(2, 3 * SECOND), &bad);
        assert_eq!(recorder.failures, [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!((recorder.requests, recorder.histograms.latency.len(), recorder.statuses[500]), (0, 0, 1));
        assert_eq!((recorder.answered_in_window, recorder.completed_in_window), (1, 0));
        assert_eq!(recorder.served_ns, 15, "it was on its way all the same");
    }

    #[test]
    fn seconds_close_in_order_when_nothing_is_outstanding() {
        let mut recorder = recorder();
        recorder.taken(0, SECOND + 1);
        recorder.taken(1, 2 * SECOND + 1);
        recorder.answered(&request(1, 2 * SECOND + 1), &good(2 * SECOND + 501));
        assert!(recorder.close_second(SECOND + 1).is_none(), "request 0 is outstanding");
        recorder.failed(SECOND + 1, Failure::Timeout);
        let first = recorder.close_second(3 * SECOND).expect("over");
        let second = recorder.close_second(3 * SECOND).expect("over");
        assert!(recorder.close_second(3 * SECOND).is_none());
        assert_eq!((first.row.second, first.row.first_index, first.row.sent, first.row.errors), (0, 0, 1, 1));
        assert_eq!((second.row.second, second.row.first_index, second.row.answered), (1, 1, 1));
        assert_eq!(second.latency.len(), 1);
    }
}
