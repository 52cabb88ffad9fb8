//! What a service says of itself at a Prometheus text endpoint, asked by a thread of its own: a slow answer must not
//! delay the other probes.
//!
//! The endpoint is asked at the window's start, every so often within it, and at its end. Of a gauge the run's number is the
//! median of the samples, of a counter what was added between the first and the last answer, stretched to the window.

pub mod text;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use text::Exposition;
use unladen_linux::{CpuSet, Netns, monotonic_ns};

use crate::ask;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// An endpoint and what to keep of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Where it is.
    pub url: String,
    /// Time between two questions.
    pub every: Duration,
    /// What to keep.
    pub keep: Vec<Wanted>,
    /// Network namespace in which it is asked. `None`: that of unladen.
    #[serde(skip)]
    pub network: Option<Arc<Netns>>,
}

/// A metric of an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Its name there.
    pub name: String,
    /// Only series with these labels.
    pub labels: Vec<(String, String)>,
    /// Its name in the journal.
    pub metric: String,
    /// What its numbers are multiplied by for the journal.
    pub factor: f64,
    /// Whether it only grows; `None`: as the endpoint says.
    pub counter: Option<bool>,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scraped {
    /// The run's numbers, by name.
    pub numbers: Vec<(String, f64)>,
    /// Every sample: instant (`CLOCK_MONOTONIC`, ns), name, value.
    pub samples: Vec<(u64, String, f64)>,
    /// Questions.
    pub attempts: u32,
    /// Of them, without an answer that could be read.
    pub failed: u32,
    /// Why the last of these failed.
    pub error: Option<String>,
    /// Names that no answer held.
    pub missing: Vec<String>,
}

/// A thread that asks one endpoint. Dropping it ends it, after the answer that it waits for.
#[derive(Debug)]
pub(super) struct Scraper {
    thread: Option<JoinHandle<Scraped>>,
    stop: Option<Sender<()>>,
}

impl Scraper {
    pub(super) fn start(endpoint: Endpoint, window: (u64, u64), cpus: Option<CpuSet>) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("scrape".to_owned()).spawn(move || {
            if let Some(cpus) = cpus {
                // Off its CPUs it still asks; only what it costs falls elsewhere.
                let _ = cpus.bind_this_thread();
            }
            Asker::new(endpoint).run(window, &stopped)
        })?;
        Ok(Self { thread: Some(thread), stop: Some(stop) })
    }

    /// Ends the window now, unless it has ended, and waits for the last answer.
    pub(super) fn finish(mut self) -> Scraped {
        // If the thread is gone already, the window has passed its planned end.
        let _ = self.stop.as_ref().map(|stop| stop.send(()));
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Asker {
    endpoint: Endpoint,
    scraped: Scraped,
    /// Instants and values of every metric.
    values: Vec<Vec<(u64, f64)>>,
    counters: Vec<bool>,
}

impl Asker {
    fn new(endpoint: Endpoint) -> Self {
        let metrics = endpoint.keep.len();
        Self {
            endpoint,
            scraped: Scraped::default(),
            values: vec![Vec::new(); metrics],
            counters: vec![false; metrics],
        }
    }

    fn run(mut self, (start, end): (u64, u64), stopped: &Receiver<()>) -> Scraped {
        let useless = |error| Scraped { attempts: 1, failed: 1, error: Some(error), ..Scraped::default() };
        let url: http::Uri = match self.endpoint.url.parse() {
            Ok(url) => url,
            Err(_) => return useless(format!("`{}` is not a URL", self.endpoint.url)),
        };
        // This thread does nothing else, so it may stay there.
        if let Err(error) = self.endpoint.network.as_ref().map_or(Ok(()), |network| network.move_thread()) {
            return useless(format!("its network namespace cannot be entered: {error}"));
        }
        let every = u64::try_from(self.endpoint.every.as_nanos()).unwrap_or(u64::MAX).max(10_000_000);
        let mut due = start;
        loop {
            match stopped.recv_timeout(Duration::from_nanos(due.saturating_sub(monotonic_ns()))) {
                Err(RecvTimeoutError::Timeout) => {}
                // The window ends before its planned end.
                Ok(()) => {
                    self.ask(&url);
                    return self.conclude((start, end.min(monotonic_ns())));
                }
                Err(RecvTimeoutError::Disconnected) => return self.scraped,
            }
            self.ask(&url);
            if due >= end {
                return self.conclude((start, end));
            }
            // Questions that a slow answer has overtaken are left out; none is nearer to the last than half an interval.
            due = due.saturating_add(every).max(monotonic_ns());
            due = if due.saturating_add(every / 2) > end { end } else { due };
        }
    }

    fn ask(&mut self, url: &http::Uri) {
        self.scraped.attempts += 1;
        let at_ns = monotonic_ns();
        let answer = match ask::get(url, PATIENCE) {
            Ok(answer) => answer,
            Err(error) => {
                self.scraped.failed += 1;
                self.scraped.error = Some(error.to_string());
                return;
            }
        };
        let answer = String::from_utf8_lossy(&answer);
        let exposition = Exposition::parse(&answer);
        for (index, wanted) in self.endpoint.keep.iter().enumerate() {
            let Some(value) = exposition.sum(&wanted.name, &wanted.labels) else { continue };
            let value = value * wanted.factor;
            self.counters[index] = wanted.counter.unwrap_or_else(|| exposition.is_counter(&wanted.name));
            self.values[index].push((at_ns, value));
            self.scraped.samples.push((at_ns, wanted.metric.clone(), value));
        }
    }

    fn conclude(mut self, (start, end): (u64, u64)) -> Scraped {
        for ((wanted, values), &counter) in self.endpoint.keep.iter().zip(&self.values).zip(&self.counters) {
            if values.is_empty() && self.scraped.failed < self.scraped.attempts {
                self.scraped.missing.push(wanted.name.clone());
            }
            let number = if counter { added(values, end.saturating_sub(start)) } else { median(values) };
            self.scraped.numbers.extend(number.map(|number| (wanted.metric.clone(), number)));
        }
        self.scraped
    }
}

/// What a counter grew by, stretched to `window_ns`. A counter that fell has been started anew: what it shows then was
/// added since.
fn added(values: &[(u64, f64)], window_ns: u64) -> Option<f64> {
    let (first, last) = (values.first()?, values.last()?);
    let elapsed = last.0.saturating_sub(first.0);
    let grown = values.windows(2).map(|pair| {
        let (before, after) = (pair[0].1, pair[1].1);
        if after >= before { after - before } else { after }
    });
    // Less than half of the window says too little about it.
    (elapsed > 0 && elapsed >= window_ns / 2).then(|| grown.sum::<f64>() * window_ns as f64 / elapsed as f64)
}

fn median(values: &[(u64, f64)]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().map(|&(_, value)| value).collect();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn counters_grow_over_the_window_also_when_started_anew() {
        for (values, expected) in [
            (vec![(0, 10.0), (500, 12.0), (1000, 30.0)], Some(20.0)),
            (vec![(0, 10.0), (500, 40.0), (1000, 5.0)], Some(35.0)),
            // Asked from 0 to 800 of a window of 1,000.
            (vec![(0, 10.0), (800, 18.0)], Some(10.0)),
            (vec![(0, 10.0), (400, 18.0)], None),
            (vec![(0, 10.0)], None),
            (vec![], None),
        ] {
            assert_eq!(added(&values, 1000), expected, "{values:?}");
        }
        assert_eq!(median(&[(0, 4.0), (1, 1.0), (2, 9.0), (3, 2.0)]), Some(3.0));
    }

    /// Answers so many questions, the n-th one with `answers(n)`.
    fn server(answers: impl Fn(u32) -> String + Send + 'static, count: u32) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for number in 0..count {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut buffer = [0_u8; 1024];
                let _ = stream.read(&mut buffer);
                let _ = stream.write_all(answers(number).as_bytes());
            }
        });
        format!("http://{address}/metrics")
    }

    fn wanted(name: &str, metric: &str, factor: f64) -> Wanted {
        Wanted { name: name.to_owned(), labels: Vec::new(), metric: metric.to_owned(), factor, counter: None }
    }

    fn scrape(endpoint: Endpoint, start_ns: u64, window_ms: u64) -> Scraped {
        let scraper = Scraper::start(endpoint, (start_ns, start_ns + window_ms * 1_000_000), None).expect("a thread");
        std::thread::sleep(Duration::from_millis(window_ms + 30));
        scraper.finish()
    }

    #[test]
    fn a_window_is_asked_from_start_to_end() {
        let url = server(
            |number| format!("HTTP/1.1 200 OK\r\n\r\n# TYPE g gauge\ng {}\nwork_total {}\n", 5 + number, 100 * number),
            100,
        );
        let keep = vec![wanted("g", "goroutines", 1.0), wanted("work_total", "work", 2.0), wanted("no", "no", 1.0)];
        let now = monotonic_ns();
        let endpoint = Endpoint { url, every: Duration::from_millis(20), keep, network: None };
        let scraped = scrape(endpoint, now, 200);
        assert!((3..=11).contains(&scraped.attempts), "{scraped:?}");
        assert_eq!((scraped.failed, &scraped.missing), (0, &vec!["no".to_owned()]), "{scraped:?}");
        let number = |name: &str| scraped.numbers.iter().find(|(known, _)| known == name).expect(name).1;
        assert!((number("goroutines") - (5.0 + f64::from(scraped.attempts - 1) / 2.0)).abs() < 1e-9, "{scraped:?}");
        // Every answer has 100 more, doubled; over the time between the first and the last one, about the window.
        let added = 200.0 * f64::from(scraped.attempts - 1);
        assert!((0.5..=1.1).contains(&(number("work") / added)), "{scraped:?}");
        assert_eq!(scraped.samples.len(), 2 * scraped.attempts as usize);
    }

    #[test]
    fn a_window_that_ends_early_is_asked_at_its_end() {
        let url = server(|number| format!("HTTP/1.1 200 OK\r\n\r\nwork_total {}\n", 10 * number), 100);
        let now = monotonic_ns();
        let endpoint = Endpoint {
            url,
            every: Duration::from_secs(3600),
            keep: vec![wanted("work_total", "work", 1.0)],
            network: None,
        };
        let scraper = Scraper::start(endpoint, (now, now + 7_200_000_000_000), None).expect("a thread");
        std::thread::sleep(Duration::from_millis(100));
        let scraped = scraper.finish();
        assert_eq!((scraped.attempts, scraped.failed), (2, 0), "{scraped:?}");
        assert!((9.0..=12.0).contains(&scraped.numbers[0].1), "{scraped:?}");
    }

    #[test]
    fn failures_are_told_and_the_rest_is_used() {
        let fail_once = |number| match number {
            1 => "HTTP/1.1 503 Busy\r\n\r\n".to_owned(),
            _ => "HTTP/1.1 200 OK\r\n\r\ng 7\n".to_owned(),
        };
        let endpoint = Endpoint {
            url: server(fail_once, 100),
            every: Duration::from_millis(20),
            keep: vec![wanted("g", "g", 1.0)],
            network: None,
        };
        let now = monotonic_ns();
        let scraped = scrape(endpoint, now, 100);
        assert_eq!((scraped.failed, scraped.error.as_deref()), (1, Some("it answers 503")));
        assert_eq!(scraped.numbers, [("g".to_owned(), 7.0)]);

        let gone = Endpoint {
            url: "http://127.0.0.1:1/".to_owned(),
            every: Duration::from_millis(50),
            keep: Vec::new(),
            network: None,
        };
        let scraped = Scraper::start(gone, (now, monotonic_ns()), None).expect("a thread").finish();
        assert_eq!(scraped.failed, scraped.attempts);
    }
}
