//! When a process counts as ready: it answers over HTTP, accepts a connection, or has said so in its log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unladen_linux::Netns;
use unladen_linux::netns::within;
use unladen_probe::ask::{Question, connect};

use super::error::SubjectError;
use super::executor::Health;
use super::listener::{Listener, Wanted};
use super::running::Running;

/// Pause between two looks; with the work of a look it stays below the promised 5 ms.
const PAUSE: Duration = Duration::from_millis(2);
/// With no condition, ready is what has been alive for this long.
const ALIVE: Duration = Duration::from_millis(100);
/// A server that has not answered by then is asked again.
const ANSWER: Duration = Duration::from_secs(1);
/// Between two looks at a health check.
const HEALTH_PAUSE: Duration = Duration::from_millis(100);
/// Lines of the log that an error shows.
const TAIL: usize = 20;

/// Conditions that must all hold, each at some time after the start. With none, the process must be alive for 100 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Readiness {
    /// A `http://` URL that must answer with a status below 400.
    pub http: Option<String>,
    /// A `host:port` that must accept a connection.
    pub tcp: Option<String>,
    /// A text that must appear in a line of its output.
    pub log: Option<String>,
    /// The health check of its container must say that all is well. With no condition at all that is wanted of every container that has one.
    pub healthy: bool,
    /// How long to wait at most.
    pub timeout: Duration,
    /// Network namespace in which it is asked. `None`: that of unladen.
    pub network: Option<Arc<Netns>>,
}

impl Readiness {
    /// Whether there is any condition: else nobody knows when the process is ready.
    #[must_use]
    pub fn is_declared(&self) -> bool {
        self.http.is_some() || self.tcp.is_some() || self.log.is_some() || self.healthy
    }
}

/// A condition, with what has been seen of it so far.
enum Condition {
    Http { url: http::Uri, last_error: String },
    Tcp { address: String, last_error: String },
    Log { text: String, listener: Listener },
    Healthy { looked: Option<Instant>, last: Health },
    Alive,
}

/// See [`Running::wait_ready`].
pub(super) fn wait(
    running: &mut Running,
    readiness: &Readiness,
    interrupted: &AtomicBool,
) -> Result<Duration, SubjectError> {
    let service = running.service().to_owned();
    within(readiness.network.as_deref(), || wait_here(running, readiness, interrupted))
        .unwrap_or_else(|source| Err(SubjectError::Network { service, source }))
}

/// [`wait`] in the network namespace of the service.
fn wait_here(running: &mut Running, readiness: &Readiness, interrupted: &AtomicBool) -> Result<Duration, SubjectError> {
    let mut open = conditions(running, readiness)?;
    let deadline = running.started() + readiness.timeout + head_start(&open);
    let mut last = running.started();
    loop {
        if let Some(ended) = running.alive() {
            return Err(SubjectError::DiedAtStart {
                service: running.service().to_owned(),
                ended,
                log: running.log().to_path_buf(),
                log_tail: running.log_tail(TAIL),
            });
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(SubjectError::Interrupted { service: running.service().to_owned() });
        }
        open.retain_mut(|condition| match condition.holds(running) {
            Some(since) => {
                last = last.max(since);
                false
            }
            None => true,
        });
        if open.is_empty() {
            // A process that has died in the meantime would otherwise pass for ready: another one answers on its port.
            if running.alive().is_none() {
                return Ok(last - running.started());
            }
            continue;
        }
        if Instant::now() >= deadline {
            return Err(SubjectError::NotReady {
                service: running.service().to_owned(),
                timeout: readiness.timeout,
                missing: open.iter().map(Condition::missing).collect::<Vec<_>>().join("; "),
                log: running.log().to_path_buf(),
                log_tail: running.log_tail(TAIL),
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// A health check is first made when its interval is over.
fn head_start(conditions: &[Condition]) -> Duration {
    let of = |condition: &Condition| match condition {
        Condition::Healthy { last, .. } => last.first_after,
        _ => Duration::ZERO,
    };
    conditions.iter().map(of).max().unwrap_or_default()
}

fn conditions(running: &Running, readiness: &Readiness) -> Result<Vec<Condition>, SubjectError> {
    let service = running.service();
    let bad =
        |text: &str, reason| SubjectError::Condition { service: service.to_owned(), text: text.to_owned(), reason };
    let mut conditions = Vec::new();
    // The cheapest first: a server is not asked over HTTP before its log says that it listens.
    if let Some(text) = &readiness.log {
        if text.is_empty() {
            return Err(bad(text, "an empty text is in every line; write a part of the line that says it"));
        }
        let listener = running.listen_for(Wanted::Text(text.clone().into_bytes()));
        conditions.push(Condition::Log { text: text.clone(), listener });
    }
    if let Some(address) = &readiness.tcp {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        port.filter(|&port| port != 0).ok_or_else(|| bad(address, "write host and port, such as `127.0.0.1:8080`"))?;
        conditions.push(Condition::Tcp { address: address.clone(), last_error: "no attempt yet".to_owned() });
    }
    if let Some(url) = &readiness.http {
        let uri: http::Uri =
            url.parse().map_err(|_| bad(url, "it is not a URL such as `http://127.0.0.1:8080/health`"))?;
        if uri.authority().is_none() {
            return Err(bad(url, "it names no host; write `http://127.0.0.1:8080/health`"));
        }
        if uri.scheme_str() != Some("http") {
            return Err(bad(url, "only `http://` is understood; use `tcp:` or `log:` for anything else"));
        }
        conditions.push(Condition::Http { url: uri, last_error: "no attempt yet".to_owned() });
    }
    let is_asked = readiness.healthy || conditions.is_empty();
    match is_asked.then(|| running.health()).flatten() {
        Some(last) => conditions.push(Condition::Healthy { looked: None, last }),
        None if readiness.healthy => {
            let reason = "it has no health check, neither by its image or Compose file nor by a `readinessProbe`; write `http:` or `tcp:`";
            return Err(bad("healthy", reason));
        }
        None => {}
    }
    if conditions.is_empty() {
        conditions.push(Condition::Alive);
    }
    Ok(conditions)
}

impl Condition {
    /// When it was seen to hold; `None` if it does not.
    fn holds(&mut self, running: &Running) -> Option<Instant> {
        let (outcome, last_error) = match self {
            Self::Alive => return (running.started().elapsed() >= ALIVE).then(Instant::now),
            Self::Healthy { looked, last } => {
                // An engine is asked, not a process.
                if looked.is_none_or(|looked| looked.elapsed() >= HEALTH_PAUSE) {
                    *looked = Some(Instant::now());
                    *last = running.health().unwrap_or_else(|| last.clone());
                }
                return last.is_healthy.then(Instant::now);
            }
            Self::Log { listener, .. } => return listener.has_matched().then(Instant::now),
            Self::Tcp { address, last_error } => (connect(address, ANSWER).map(|_| Instant::now()), last_error),
            Self::Http { url, last_error } => {
                let answer = Question::get(url, ANSWER).status().and_then(|(status, at)| match status.as_u16() {
                    status @ 400.. => Err(io::Error::other(format!("it answers {status}"))),
                    _ => Ok(at),
                });
                (answer, last_error)
            }
        };
        outcome.inspect_err(|error| *last_error = error.to_string()).ok()
    }

    fn missing(&self) -> String {
        match self {
            Self::Http { url, last_error } => format!("GET {url} has not answered below 400 ({last_error})"),
            Self::Tcp { address, last_error } => format!("{address} has not accepted a connection ({last_error})"),
            Self::Log { text, .. } => format!("its output has no line with `{text}`"),
            Self::Healthy { last, .. } if last.said.is_empty() => "its health check has not passed".to_owned(),
            Self::Healthy { last, .. } => format!("its health check has not passed (`{}`)", last.said),
            Self::Alive => "it has not lived for 100 ms".to_owned(),
        }
    }
}
