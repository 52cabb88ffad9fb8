//! Numbers that a study asks for over HTTP: what a backend has counted, what an agent's counters say. Asked before the load
//! and after it; the difference is the run's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use unladen_journal::notices::Notice;
use unladen_journal::record::Counted;
use unladen_journal::role::Role;
use unladen_linux::Netns;
use unladen_probe::query::{Query, QueryError};
use unladen_study::plan::PlannedVariant;
use unladen_study::resolve::ResolveError;
use unladen_study::spec::{Drain, Study};
use unladen_study::variables::resolve;

use super::error::RunError;
use super::setup::Site;
use super::stack::Hosts;

/// Between two looks at a backend's number.
const LOOK: Duration = Duration::from_millis(200);

/// A query, and the network namespace in which it is asked.
type Placed = (Query, Option<Arc<Netns>>);

/// A number that is asked for twice.
#[derive(Debug)]
pub(super) struct NumberQuery {
    /// Service that is counted, or stage of the loss.
    pub(super) name: String,
    /// Role of the service that is counted; `None` for a loss.
    role: Option<Role>,
    query: Query,
    /// Network namespace in which it is asked for.
    network: Option<Arc<Netns>>,
    each: f64,
    before: Result<f64, QueryError>,
    after: Option<Result<f64, QueryError>>,
    /// Whether it stood still at the end.
    is_steady: bool,
}

impl NumberQuery {
    fn new(name: &str, role: Option<Role>, (query, network): Placed, each: f64) -> Self {
        let before = query.ask(network.as_deref());
        Self { name: name.to_owned(), role, query, network, each, before, after: None, is_steady: true }
    }

    /// Asks once more, after the load.
    pub(super) fn ask_again(&mut self) {
        self.after = Some(self.query.ask(self.network.as_deref()));
    }

    /// How much the number has grown; `None`, with a notice, if it is not known.
    pub(super) fn number(&self, notices: &mut Vec<Notice>) -> Option<u64> {
        match (&self.before, &self.after) {
            (Ok(before), Some(Ok(after))) => Some((after - before).max(0.0).round() as u64),
            (Err(error), _) | (_, Some(Err(error))) => {
                notices.push(Notice::QueryFailed { what: self.name.clone(), error: error.to_string() });
                None
            }
            (Ok(_), None) => None,
        }
    }

    fn counted(&self) -> Option<Counted> {
        let (Some(role), Ok(before), Some(Ok(after))) = (self.role, &self.before, &self.after) else { return None };
        let spans = ((after - before).max(0.0) * self.each).round() as u64;
        Some(Counted {
            service: self.name.clone(),
            role,
            before: *before,
            after: *after,
            spans,
            steady: self.is_steady,
        })
    }
}

/// Services of a variant that are counted, and all that these need: they must live until they have been asked.
pub(super) fn counted_services(study: &Study, variant: &PlannedVariant) -> BTreeSet<String> {
    let is_counted = |name: &&String| study.services[*name].count.is_some() && variant.runs(name);
    let mut counted: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<&String> = study.services.keys().filter(is_counted).collect();
    while let Some(name) = open.pop() {
        if counted.insert(name.clone()) {
            open.extend(study.services.get(name).iter().flat_map(|service| &service.needs));
        }
    }
    counted
}

/// Asks for the numbers of the backends that run in a variant, before the load.
pub(super) fn backends(setup: Site<'_>, variant: &PlannedVariant, hosts: &Hosts) -> Result<Vec<NumberQuery>, RunError> {
    let mut queries = Vec::new();
    for (name, service) in &setup.plan().study.services {
        let Some(count) = service.count.as_ref().filter(|_| variant.runs(name)) else { continue };
        let path = format!("services.{name}.count");
        let query = query(
            setup,
            hosts,
            &path,
            count.http.as_deref(),
            (count.body.as_deref(), count.pointer.as_deref()),
            (count.prometheus.as_deref(), count.metric.as_deref()),
        )?;
        queries.extend(query.map(|it| NumberQuery::new(name, Some(service.role), it, count.each)));
    }
    Ok(queries)
}

/// The same for the counters of a variant's agent.
pub(super) fn losses(setup: Site<'_>, variant: &PlannedVariant, hosts: &Hosts) -> Result<Vec<NumberQuery>, RunError> {
    let mut queries = Vec::new();
    for (stage, loss) in &variant.losses {
        let path = format!("losses.{stage}");
        let prometheus = (loss.prometheus.as_deref(), loss.metric.as_deref());
        let query = query(setup, hosts, &path, None, (None, None), prometheus)?;
        queries.extend(query.map(|it| NumberQuery::new(stage, None, it, loss.each)));
    }
    Ok(queries)
}

/// The query that these keys of the study stand for, and the network in which it is asked; the study's check has seen to it that they go
/// together.
fn query(
    setup: Site<'_>,
    hosts: &Hosts,
    path: &str,
    http: Option<&str>,
    (body, pointer): (Option<&str>, Option<&str>),
    (prometheus, metric): (Option<&str>, Option<&str>),
) -> Result<Option<Placed>, RunError> {
    let variables = setup.variables(None);
    let fill = |what: &str, text: &str| {
        resolve(text, &variables).map_err(|source| ResolveError::Variable { path: format!("{path}.{what}"), source })
    };
    let place = |url: String| hosts.find(&url).unwrap_or_else(|| (url, setup.network().cloned()));
    Ok(match (http, prometheus, metric.and_then(|metric| metric.parse().ok())) {
        (Some(url), _, _) => {
            let (url, network) = place(fill("http", url)?);
            let body = body.map(|body| fill("body", body)).transpose()?;
            Some((Query::Json { url, body, pointer: pointer.unwrap_or_default().to_owned() }, network))
        }
        (None, Some(url), Some(selector)) => {
            let (url, network) = place(fill("prometheus", url)?);
            Some((Query::Prometheus { url, selector }, network))
        }
        _ => None,
    })
}

/// Asks the backends until their numbers stand still for the drain's quiet time, or all have the `wanted` spans, for at most the
/// drain's limit; what they have taken, and what could not be had. While a storage has fewer spans than a collector has taken, some
/// may be on their way between the two, however long nothing moves: a cold Elasticsearch shows them after half a minute.
pub(super) fn settle(
    backends: &mut [NumberQuery],
    drain: &Drain,
    wanted: Option<u64>,
    is_interrupted: impl Fn() -> bool,
    notices: &mut Vec<Notice>,
) -> Vec<Counted> {
    let started = Instant::now();
    let mut moved = started;
    let mut last: Vec<Option<u64>> = Vec::new();
    while !backends.is_empty() {
        backends.iter_mut().for_each(NumberQuery::ask_again);
        let now: Vec<Option<u64>> = backends.iter().map(|query| Some(query.counted()?.spans)).collect();
        let all_there = wanted.is_some_and(|wanted| now.iter().all(|spans| spans.is_some_and(|spans| spans >= wanted)));
        if now != last {
            (last, moved) = (now, Instant::now());
        }
        let is_steady = moved.elapsed() >= drain.quiet.0;
        let is_over = started.elapsed() >= drain.limit.0 || is_interrupted();
        if all_there || is_steady && !are_on_their_way(backends) || is_over {
            backends.iter_mut().for_each(|query| query.is_steady = all_there || is_steady);
            break;
        }
        thread::sleep(LOOK);
    }
    for query in &*backends {
        query.number(notices);
        if !query.is_steady {
            notices.push(Notice::StillCounting { service: query.name.clone(), limit_s: drain.limit.as_seconds() });
        }
    }
    backends.iter().filter_map(NumberQuery::counted).collect()
}

/// Whether a collector has taken spans that a storage does not show.
fn are_on_their_way(backends: &[NumberQuery]) -> bool {
    let counted: Vec<Counted> = backends.iter().filter_map(NumberQuery::counted).collect();
    let of = |role: Role| counted.iter().filter(move |it| it.role == role).map(|it| it.spans);
    of(Role::Storage).min().is_some_and(|stored| of(Role::Collector).max().is_some_and(|taken| taken > stored))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use unladen_journal::units::Time;

    use super::*;

    /// A backend whose number is the next of these at every question, the last for ever; ends with the process.
    fn backend(numbers: &'static [u64]) -> Query {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/metrics", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            for position in 0.. {
                let (mut stream, _) = listener.accept().expect("a connection");
                let _ = stream.read(&mut [0; 4_096]).expect("a request");
                let body = format!("spans_total {}\n", numbers[position.min(numbers.len() - 1)]);
                let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all((head + &body).as_bytes()).expect("a reader");
            }
        });
        Query::Prometheus { url, selector: "spans_total".parse().expect("a selector") }
    }

    fn settled(numbers: &'static [u64], each: f64, wanted: Option<u64>, limit: f64) -> (Vec<Counted>, Vec<Notice>) {
        let mut notices = Vec::new();
        let mut backends = [NumberQuery::new("jaeger", Some(Role::Storage), (backend(numbers), None), each)];
        let drain = Drain { quiet: Time::seconds(0.5), limit: Time::seconds(limit) };
        let counted = settle(&mut backends, &drain, wanted, || false, &mut notices);
        (counted, notices)
    }

    #[test]
    fn the_difference_counts_once_it_stands_still() {
        let (counted, notices) = settled(&[100, 250, 300, 400], 3.0, None, 20.0);
        let found = Counted {
            service: "jaeger".into(),
            role: Role::Storage,
            before: 100.0,
            after: 400.0,
            spans: 900,
            steady: true,
        };
        assert_eq!((counted, notices), (vec![found], vec![]));
    }

    #[test]
    fn nobody_waits_for_more_than_is_wanted() {
        let started = Instant::now();
        let (counted, _) = settled(&[0, 40], 1.0, Some(40), 20.0);
        assert_eq!(counted[0].spans, 40);
        assert!(started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
    }

    #[test]
    fn what_a_collector_has_taken_is_waited_for_in_the_storage() {
        // Nothing moves for longer than the quiet time, and then the rest comes.
        const LATE: [u64; 12] = [0, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 50];
        let waited_for = |taken: &'static [u64]| {
            let mut backends = [
                NumberQuery::new("oap", Some(Role::Collector), (backend(taken), None), 1.0),
                NumberQuery::new("elasticsearch", Some(Role::Storage), (backend(&LATE), None), 1.0),
            ];
            let drain = Drain { quiet: Time::seconds(0.5), limit: Time::seconds(20.0) };
            let counted = settle(&mut backends, &drain, Some(60), || false, &mut Vec::new());
            counted.iter().map(|it| it.spans).collect::<Vec<_>>()
        };
        assert_eq!(waited_for(&[0, 50]), [50, 50]);
        assert_eq!(waited_for(&[0, 10]), [10, 10], "what nobody has taken is not waited for");
    }

    #[test]
    fn a_number_that_still_grows_at_the_limit_is_told() {
        const GROWING: [u64; 100] = {
            let mut numbers = [0; 100];
            let mut at = 0;
            while at < 100 {
                numbers[at] = at as u64;
                at += 1;
            }
            numbers
        };
        let (counted, notices) = settled(&GROWING, 1.0, None, 0.7);
        assert!(!counted[0].steady);
        assert!(matches!(&notices[..], [Notice::StillCounting { service, .. }] if service == "jaeger"), "{notices:?}");
    }

    #[test]
    fn a_backend_that_does_not_answer_is_told() {
        let query = Query::Prometheus {
            url: "http://127.0.0.1:1/".into(),
            selector: "spans_total".parse().expect("a selector"),
        };
        let mut notices = Vec::new();
        let mut backends = [NumberQuery::new("jaeger", Some(Role::Storage), (query, None), 1.0)];
        let drain = Drain { quiet: Time::seconds(0.0), limit: Time::seconds(0.0) };
        assert_eq!(settle(&mut backends, &drain, None, || false, &mut notices), []);
        assert!(matches!(&notices[..], [Notice::QueryFailed { what, .. }] if what == "jaeger"), "{notices:?}");
    }
}
