//! What is sent: the plan's request or requests, compiled; and where each iteration stands. No sockets, no clock.
//!
//! A plan with one request and no values keeps the fast path of [`Template`](crate::http1::request::Template): nothing but the trace ids changes. Everything
//! else is put together before the request's send instant.

mod answer;
mod redirect;
mod step;
mod text;
mod values;

use std::collections::HashMap;

use unladen_trace::mix;

use crate::error::LoadError;
use crate::plan::{NamedTest, Order, Plan, Request, Trace};
use crate::target::Target;
pub(crate) use answer::WholeAnswer;
use redirect::Origin;
use step::{Step, compile};
use text::Escape;
use values::ValueGenerator;

/// Kind of the good answers that are of none of the plan's kinds.
const OTHER: &str = "other";

/// What stands for a name.
#[derive(Debug, Clone)]
enum Name {
    Made(ValueGenerator),
    Captured,
}

/// Where an iteration stands; one per connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Number of the iteration.
    iteration: u64,
    /// Step at hand.
    pub(crate) step: usize,
    /// When its first request was due.
    pub(crate) begun: u64,
    /// Number of the kind of the last answer, if it was a good one and its request has kinds.
    pub(crate) kind: Option<usize>,
    /// How often it has been tried.
    tries: u32,
    /// Captures by the number of their name.
    captured: Vec<Vec<u8>>,
    /// Redirects of the step at hand that have been followed.
    hops: u32,
    /// Where the last one leads.
    redirected: Option<Redirected>,
}

/// The request that a redirect leads to.
#[derive(Debug, Clone)]
struct Redirected {
    /// Path and query.
    path: Vec<u8>,
    /// Whether it has no body and the method GET, whatever the step has.
    is_get: bool,
}

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The iteration is over.
    Done,
    /// The step at hand is to be sent after a pause (nanoseconds).
    Step(u64),
}

/// What an answer is worth beyond its status and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All tests hold and all captures were there.
    Good,
    /// It is not what is waited for, and will be asked for again.
    NotYet,
    /// It is a redirect that will be followed.
    Redirected,
    /// It is a redirect that leads elsewhere or nowhere, or one too many.
    CannotFollow,
    /// A test does not hold.
    TestFailed,
    /// A capture was not there.
    NothingToCapture,
}

/// The plan's requests, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    steps: Vec<Step>,
    order: Order,
    /// Sums of the weights.
    weights: Vec<f64>,
    seed: u64,
    names: Vec<Name>,
    /// Names of the tests: step and name.
    tests: Vec<(String, String)>,
    /// Names of the kinds: step and name.
    kinds: Vec<(String, String)>,
    trace: Option<Trace>,
    /// Redirects that are followed at most.
    max_redirects: u32,
    origin: Origin,
    /// Path and query of the plan's URL.
    own_path: String,
    /// The request at hand.
    bytes: Vec<u8>,
    body: Vec<u8>,
    /// The request at hand is this iteration's, put together ahead of its time, and whether it carries the sampled flag.
    ahead: Option<(u64, bool)>,
}

impl Script {
    /// Compiles the requests of a plan; `None`: it has a single one without values, for which `Template` is enough.
    ///
    /// # Errors
    /// [`LoadError`] that says what cannot be sent.
    pub(crate) fn new(plan: &Plan, target: &Target) -> Result<Option<Self>, LoadError> {
        if plan.requests.is_empty() && plan.values.is_empty() && plan.redirects == 0 {
            return Ok(None);
        }
        let own = Request { method: plan.method.clone(), body: plan.body.clone(), ..Request::new("request") };
        let requests = if plan.requests.is_empty() { std::slice::from_ref(&own) } else { &plan.requests[..] };
        let mut names = Vec::new();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for (name, value) in &plan.values {
            numbers.insert(name, names.len());
            names.push(Name::Made(ValueGenerator::new(name, value, plan.seed)?));
        }
        let sequence = plan.order == Order::Sequence;
        let mut script = Self {
            steps: Vec::new(),
            order: plan.order,
            weights: Vec::new(),
            seed: plan.seed,
            names: Vec::new(),
            tests: Vec::new(),
            kinds: Vec::new(),
            trace: plan.trace.clone(),
            max_redirects: plan.redirects,
            origin: Origin::new(plan, target),
            own_path: target.path.clone(),
            bytes: Vec::new(),
            body: Vec::new(),
            ahead: None,
        };
        for request in requests {
            let step = compile(plan, request, target, &numbers, (script.tests.len(), script.kinds.len()))?;
            if !request.kinds.is_empty() {
                let names = request.kinds.iter().map(|kind| kind.name.as_str()).chain([OTHER]);
                script.kinds.extend(names.map(|kind| (request.name.clone(), kind.to_owned())));
            }
            let refuse = |value: &str, remedy| LoadError::Plan { field: "requests", value: value.to_owned(), remedy };
            if let Some(kind) = twice(&request.kinds) {
                let remedy = "kinds of one request need names of their own, other than `other`";
                return Err(refuse(kind, remedy));
            }
            script.tests.extend(request.checks.iter().map(|check| (request.name.clone(), check.name.clone())));
            if !sequence && (!request.captures.is_empty() || request.until.is_some()) {
                return Err(refuse(&request.name, "captures and until need the order to be a sequence"));
            }
            script.steps.push(step);
            // Later steps may use what this one takes.
            for (capture, place) in request.captures.iter().zip(0..) {
                let number = *numbers.entry(&capture.name).or_insert_with(|| {
                    names.push(Name::Captured);
                    names.len() - 1
                });
                if matches!(names[number], Name::Made(_)) {
                    return Err(refuse(&capture.name, "a capture and a value have the same name; rename one"));
                }
                if let Some(taken) = script.steps.last_mut().and_then(|step| step.captures.get_mut(place)) {
                    taken.0 = number;
                }
            }
            let weight = request.weight;
            if !(weight > 0.0 && weight <= 1e9) {
                return Err(refuse(&format!("{}: weight {weight}", request.name), "write a weight above 0"));
            }
            script.weights.push(script.weights.last().copied().unwrap_or(0.0) + weight);
        }
        script.names = names;
        Ok(Some(script))
    }

    /// Its steps or alternatives.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Names of the tests, each with its request's.
    pub(crate) fn tests(&self) -> &[(String, String)] {
        &self.tests
    }

    /// Names of the kinds, each with its request's.
    pub(crate) fn kinds(&self) -> &[(String, String)] {
        &self.kinds
    }

    /// Whether an iteration is more than one request, so that its own time says more.
    pub(crate) fn has_long_iterations(&self) -> bool {
        self.order == Order::Sequence && (self.steps.len() > 1 || self.steps.iter().any(|step| step.until.is_some()))
    }

    /// Whether only some requests carry the sampled flag.
    pub(crate) fn samples(&self) -> bool {
        self.trace.as_ref().is_some_and(Trace::samples_some)
    }

    /// Whether an iteration may have several requests.
    pub(crate) fn is_sequence(&self) -> bool {
        self.order == Order::Sequence || self.max_redirects > 0
    }

    /// Begins an iteration.
    pub(crate) fn begin(&self, progress: &mut Progress, iteration: u64) {
        progress.iteration = iteration;
        progress.tries = 0;
        progress.kind = None;
        (progress.hops, progress.redirected) = (0, None);
        progress.captured.iter_mut().for_each(Vec::clear);
        progress.step = match (self.order, self.weights.last()) {
            (Order::Weighted, Some(&total)) if self.steps.len() > 1 => {
                let random = mix(mix(self.seed ^ 0xc401ce) ^ iteration) >> 11;
                let place = random as f64 / (1u64 << 53) as f64 * total;
                self.weights.partition_point(|&sum| sum <= place).min(self.steps.len() - 1)
            }
            _ => 0,
        };
    }

    /// Puts the request of an iteration to come together, so that at its send instant there is nothing left to do. Only for
    /// alternatives: nothing is captured for them, and an iteration's request has its number.
    pub(crate) fn prepare(&mut self, iteration: u64) {
        if self.is_sequence() || self.ahead.is_some_and(|(ready, _)| ready == iteration) {
            return;
        }
        let mut progress = Progress::default();
        self.begin(&mut progress, iteration);
        self.ahead = None;
        let sampled = self.render(&progress, iteration).1;
        self.ahead = Some((iteration, sampled));
    }

    /// Puts the request at hand together, unless it is; `index` is for its trace ids. Returns the bytes and whether it carries
    /// the sampled flag.
    pub(crate) fn render(&mut self, progress: &Progress, index: u64) -> (&[u8], bool) {
        if let Some((iteration, sampled)) = self.ahead.take()
            && (iteration, iteration) == (progress.iteration, index)
        {
            return (&self.bytes, sampled);
        }
        let (bytes, body) = (&mut self.bytes, &mut self.body);
        let Some(step) = self.steps.get(progress.step) else { return (&[], false) };
        let names = &self.names;
        let write = |number: usize, into: &mut Vec<u8>| match names.get(number) {
            Some(Name::Made(maker)) => maker.write(progress.iteration, into),
            Some(Name::Captured) => into.extend(progress.captured.get(number).into_iter().flatten()),
            None => {}
        };
        bytes.clear();
        body.clear();
        let redirected = progress.redirected.as_ref();
        let is_get = redirected.is_some_and(|redirected| redirected.is_get);
        bytes.extend_from_slice(if is_get { b"GET" } else { step.method.as_bytes() });
        bytes.push(b' ');
        let from = bytes.len();
        match redirected {
            Some(redirected) => bytes.extend_from_slice(&redirected.path),
            None => step.path.render(bytes, Escape::Path, write),
        }
        if step.path_is_value && !bytes[from..].starts_with(b"/") {
            let place = self.origin.resolve(&self.own_path, &bytes[from..]);
            bytes.truncate(from);
            bytes.extend_from_slice(&place.map_or_else(|| b"/".to_vec(), |place| place.path));
        }
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        let head = if is_get { &step.bare_head } else { &step.head };
        head.render(bytes, Escape::Header, write);
        if !is_get {
            step.body.render(body, Escape::None, write);
        }
        if step.has_body && !is_get {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        let mut sampled = false;
        if let Some(trace) = &self.trace {
            let ids = trace.ids(index);
            bytes.extend_from_slice(trace.header.name().as_bytes());
            bytes.extend_from_slice(b": ");
            let from = bytes.len();
            bytes.extend_from_slice(trace.header.placeholder().as_bytes());
            trace.header.write(&mut bytes[from..], ids);
            bytes.extend_from_slice(b"\r\n");
            sampled = ids.sampled;
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        (bytes, sampled)
    }

    /// Looks at an answer to the step at hand: counts its tests and takes its captures.
    pub(crate) fn look(&self, progress: &mut Progress, answer: &WholeAnswer<'_>, counts: &mut [(u64, u64)]) -> Verdict {
        let Some(step) = self.steps.get(progress.step) else { return Verdict::Good };
        if step.follows && step.check.status != Some(answer.status) && matches!(answer.status, 301..=303 | 307 | 308) {
            return self.follow(step, progress, answer);
        }
        progress.redirected = None;
        if let Some((test, _, most)) = &step.until
            && !test.holds(answer)
        {
            return if progress.tries + 1 < *most { Verdict::NotYet } else { Verdict::TestFailed };
        }
        let mut verdict = Verdict::Good;
        for (test, at) in step.tests.iter().zip(step.first_test..) {
            let holds = test.holds(answer);
            if let Some(count) = counts.get_mut(at) {
                count.0 += u64::from(holds);
                count.1 += u64::from(!holds);
            }
            if !holds {
                verdict = Verdict::TestFailed;
            }
        }
        for (number, taker) in &step.captures {
            let Some(taken) = taker.take(answer) else { return Verdict::NothingToCapture };
            if progress.captured.len() <= *number {
                progress.captured.resize(number + 1, Vec::new());
            }
            progress.captured[*number] = taken;
        }
        if verdict == Verdict::Good && !step.kinds.is_empty() {
            // Behind the last stands `other`.
            let kind = step.kinds.iter().position(|kind| kind.holds(answer)).unwrap_or(step.kinds.len());
            progress.kind = Some(step.first_kind + kind);
        }
        verdict
    }

    /// Looks at a redirect.
    fn follow(&self, step: &Step, progress: &mut Progress, answer: &WholeAnswer<'_>) -> Verdict {
        let before = progress.redirected.take();
        if progress.hops >= self.max_redirects {
            return Verdict::CannotFollow;
        }
        let current = before.as_ref().map_or_else(|| self.path_of(step, progress), |before| before.path.clone());
        let place = answer
            .header("location")
            .and_then(|location| self.origin.resolve(&String::from_utf8_lossy(&current), location))
            .filter(|place| place.here);
        let Some(place) = place else { return Verdict::CannotFollow };
        // RFC 9110, 15.4: 303 asks for GET; after 301 and 302, POST becomes GET, as browsers have always done.
        let changes = match answer.status {
            303 => step.method != "HEAD",
            301 | 302 => step.method == "POST",
            _ => false,
        };
        let is_get = changes || before.is_some_and(|before| before.is_get);
        progress.hops += 1;
        progress.redirected = Some(Redirected { path: place.path, is_get });
        Verdict::Redirected
    }

    /// The path of a step's own request.
    fn path_of(&self, step: &Step, progress: &Progress) -> Vec<u8> {
        let mut path = Vec::new();
        step.path.render(&mut path, Escape::Path, |number, into| self.write(number, progress, into));
        path
    }

    /// Writes what stands for a name.
    fn write(&self, number: usize, progress: &Progress, into: &mut Vec<u8>) {
        match self.names.get(number) {
            Some(Name::Made(maker)) => maker.write(progress.iteration, into),
            Some(Name::Captured) => into.extend(progress.captured.get(number).into_iter().flatten()),
            None => {}
        }
    }

    /// Moves on after an answer; `good` says whether it was one.
    pub(crate) fn advance(&self, progress: &mut Progress, good: bool, again: bool) -> Next {
        progress.kind = None;
        if good && progress.redirected.is_some() {
            return Next::Step(0);
        }
        (progress.hops, progress.redirected) = (0, None);
        let until = self.steps.get(progress.step).and_then(|step| step.until.as_ref());
        if let (true, Some((_, pause, _))) = (again, until) {
            progress.tries += 1;
            return Next::Step(*pause);
        }
        progress.tries = 0;
        progress.step += 1;
        if good && self.order == Order::Sequence && progress.step < self.steps.len() {
            Next::Step(0)
        } else {
            Next::Done
        }
    }
}

/// The name of a kind that stands for another already.
fn twice(kinds: &[NamedTest]) -> Option<&str> {
    let names = || kinds.iter().map(|kind| kind.name.as_str());
    names()
        .enumerate()
        .find(|(at, name)| *name == OTHER || names().take(*at).any(|it| it == *name))
        .map(|found| found.1)
}

#[cfg(test)]
mod tests;
