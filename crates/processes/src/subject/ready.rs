//! When a process counts as ready: it answers over HTTP, accepts a connection, or has said so in its log.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::SubjectError;
use super::listener::{Listener, Wanted};
use super::running::Running;
use crate::linux::Netns;
use crate::linux::netns::within;

/// Pause between two looks; with the work of a look it stays below the promised 5 ms.
const PAUSE: Duration = Duration::from_millis(2);
/// With no condition, ready is what has been alive for this long.
const ALIVE: Duration = Duration::from_millis(100);
/// A server that has not answered by then is asked again.
const ANSWER: Duration = Duration::from_secs(1);
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
    /// How long to wait at most.
    pub timeout: Duration,
    /// Network namespace in which it is asked. `None`: that of unladen.
    pub network: Option<Arc<Netns>>,
}

impl Readiness {
    /// Whether there is any condition: else nobody knows when the process is ready.
    #[must_use]
    pub fn is_declared(&self) -> bool {
        self.http.is_some() || self.tcp.is_some() || self.log.is_some()
    }
}

/// A condition, with what has been seen of it so far.
enum Condition {
    Http { url: String, host: String, path: String, address: String, last_error: String },
    Tcp { address: String, last_error: String },
    Log { text: String, listener: Listener },
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
    let deadline = running.started() + readiness.timeout;
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
            url.parse().map_err(|_| bad(url, "it is no URL such as `http://127.0.0.1:8080/health`"))?;
        let authority =
            uri.authority().ok_or_else(|| bad(url, "it names no host; write `http://127.0.0.1:8080/health`"))?;
        if uri.scheme_str() != Some("http") {
            return Err(bad(url, "only `http://` is understood; use `tcp:` or `log:` for anything else"));
        }
        conditions.push(Condition::Http {
            url: url.clone(),
            host: authority.as_str().to_owned(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            address: format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80)),
            last_error: "no attempt yet".to_owned(),
        });
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
            Self::Log { listener, .. } => return listener.has_matched().then(Instant::now),
            Self::Tcp { address, last_error } => (connect(address).map(|_| Instant::now()), last_error),
            Self::Http { host, path, address, last_error, .. } => {
                let answer = get(address, host, path).and_then(|(status, at)| match status {
                    400.. => Err(io::Error::other(format!("it answers {status}"))),
                    _ => Ok(at),
                });
                (answer, last_error)
            }
        };
        outcome.inspect_err(|error| *last_error = error.to_string()).ok()
    }

    fn missing(&self) -> String {
        match self {
            Self::Http { url, last_error, .. } => format!("GET {url} has not answered below 400 ({last_error})"),
            Self::Tcp { address, last_error } => format!("{address} has not accepted a connection ({last_error})"),
            Self::Log { text, .. } => format!("its output has no line with `{text}`"),
            Self::Alive => "it has not lived for 100 ms".to_owned(),
        }
    }
}

/// Connects to the first address of a name that accepts.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match connect_to(address) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects from a port that is not the one connected to. The kernel may pick that very port as long as nobody listens:
/// the connection would then be to itself, pass for a service that accepts, and keep the port from the service.
fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, socket_with, sockopt};
    let (family, any): (_, SocketAddr) = match address {
        SocketAddr::V4(_) => (AddressFamily::INET, (Ipv4Addr::UNSPECIFIED, 0).into()),
        SocketAddr::V6(_) => (AddressFamily::INET6, (Ipv6Addr::UNSPECIFIED, 0).into()),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = loop {
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        bind(&socket, &any)?;
        let own = SocketAddr::try_from(getsockname(&socket)?)?;
        if own.port() != address.port() {
            break socket;
        }
    };
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS) => {
            let limit = Timespec { tv_sec: ANSWER.as_secs().cast_signed(), tv_nsec: 0 };
            if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&limit))? == 0 {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer to the connection request"));
            }
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Asks once; returns the status and the instant at which it was there.
fn get(address: &str, host: &str, path: &str) -> io::Result<(u16, Instant)> {
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: unladen\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut buffer = [0_u8; 4096];
    while !answer.contains(&b'\n') && answer.len() < 4096 {
        match stream.read(&mut buffer)? {
            0 => break,
            read => answer.extend_from_slice(&buffer[..read]),
        }
    }
    let at = Instant::now();
    let line = String::from_utf8_lossy(&answer);
    let status = line.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1)).and_then(|code| code.get(..3));
    let status = status
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "what it answers is not HTTP"))?;
    // The rest is read as far as it comes soon, so that the server does not see a reset connection.
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    for _ in 0..16 {
        if !matches!(stream.read(&mut buffer), Ok(read) if read > 0) {
            break;
        }
    }
    Ok((status, at))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers one connection with a text and returns what was asked.
    fn answer(text: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut buffer = [0_u8; 1024];
            let read = stream.read(&mut buffer).expect("a request");
            stream.write_all(text.as_bytes()).expect("it is read");
            String::from_utf8_lossy(&buffer[..read]).into_owned()
        });
        (address, server)
    }

    #[test]
    fn the_status_is_read_from_any_version_of_http() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Some(200)),
            ("HTTP/1.0 301 Moved\r\n\r\n", Some(301)),
            ("HTTP/1.1 503\r\n\r\n", Some(503)),
            ("SSH-2.0-OpenSSH_9.2\r\n", None),
            ("", None),
            ("HTTP/1.1 9\r\n", None),
        ] {
            let (address, server) = answer(text);
            let status = get(&address, "a.test", "/x?y=1").ok().map(|(status, _)| status);
            assert_eq!(status, expected, "{text:?}");
            let request = server.join().expect("the server ends well");
            assert!(request.starts_with("GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\n"), "{request}");
        }
    }

    #[test]
    fn nobody_there_is_refused_however_often_it_is_tried() {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        // Without care, one in some 28,000 attempts connects to itself.
        for _ in 0..2_000 {
            let error = connect(&format!("127.0.0.1:{port}")).expect_err("nobody listens");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        assert_eq!(connect("localhost:0").expect_err("no such port").kind(), io::ErrorKind::ConnectionRefused);
    }
}
