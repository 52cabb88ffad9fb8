//! Lets the services of a network namespace reach what listens outside of it, at the same addresses: a database that all
//! variants share, say. A process of its own (`unladen __relay`), so that what it costs is not booked on the service.
//!
//! It listens inside, connects outside, and copies bytes both ways; it understands nothing of them. Each end is closed as the
//! other one was: half by half, or at once. TCP only.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use unladen_linux::Netns;
use unladen_linux::netns::add_address;

/// Exit code of a relay that could not start.
const FAILED: u8 = 2;
/// Pause when no connection can be taken, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(20);

/// What a relay is told, as one line of JSON on standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Network namespace to listen in ([`Netns::path`]).
    pub network: PathBuf,
    /// `host:port`, each listened at inside and connected to outside. A host is `localhost`, an IPv4 address, or `[::1]`.
    pub addresses: Vec<String>,
}

/// What a relay says, as a line of JSON on standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It listens at all addresses.
    Ready,
}

/// Why a relay cannot start.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error("the relay's configuration is not valid: {0}")]
    Config(String),
    #[error("the network namespace {} cannot be entered: {source}", path.display())]
    Network { path: PathBuf, source: io::Error },
    #[error("`{address}` is not an address to reach: {reason}. Write `127.0.0.1:5432`")]
    Address { address: String, reason: String },
    #[error(
        "cannot listen at {at} in the network namespace: {source}. If a service of the study listens there itself, take it out of `reach`"
    )]
    Listen { at: SocketAddr, source: io::Error },
    #[error("cannot start the asynchronous runtime: {0}")]
    Runtime(io::Error),
}

/// An address to reach.
#[derive(Debug, Clone)]
struct Way {
    /// As written.
    name: String,
    /// Where to listen, inside.
    inside: SocketAddr,
    /// Where to connect, outside: the first that accepts.
    outside: Arc<[SocketAddr]>,
}

/// Reads a [`Config`] from the first line of `stdin`, says [`Event::Ready`], and relays until SIGTERM, SIGINT or the end of `stdin`.
/// Exit code 0, or 2 with a message on standard error.
pub fn main(stdin: impl Read + Send + 'static, stdout: impl Write) -> ExitCode {
    match serve(stdin, stdout) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(FAILED)
        }
    }
}

fn serve(stdin: impl Read + Send + 'static, mut stdout: impl Write) -> Result<(), RelayError> {
    let mut stdin = BufReader::new(stdin);
    let mut line = String::new();
    let wrong = |error: &dyn ToString| RelayError::Config(error.to_string());
    stdin.read_line(&mut line).map_err(|error| wrong(&error))?;
    let config: Config = serde_json::from_str(&line).map_err(|error| wrong(&error))?;
    let ways = ways(&config.addresses)?;
    allow_descriptors();
    let network = |source| RelayError::Network { path: config.network.clone(), source };
    let listeners = Netns::open(&config.network).and_then(|it| it.enter(|| listen(&ways))).map_err(network)??;

    let (ended, stdin_ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        // An error ends it as well as the end does: either way unladen is not there any more.
        let _ = io::copy(&mut stdin, &mut io::sink());
        drop(ended);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RelayError::Runtime)?;
    runtime.block_on(async {
        for (way, listener) in ways.into_iter().zip(listeners) {
            let listener = TcpListener::from_std(listener).map_err(RelayError::Runtime)?;
            tokio::spawn(relay(listener, way));
        }
        let stopped = tokio::spawn(unladen_sink::child::stop_signal());
        // From here on it listens for the signals, too.
        tokio::task::yield_now().await;
        let event = serde_json::to_string(&Event::Ready).map_err(io::Error::other);
        if event.and_then(|event| writeln!(stdout, "{event}")).and_then(|()| stdout.flush()).is_err() {
            // Nobody is left to relay for.
            return Ok(());
        }
        tokio::select! {
            _ = stopped => {}
            _ = stdin_ended => {}
        }
        Ok(())
    })
}

/// The addresses, names looked up: what a name stands for is known outside.
fn ways(addresses: &[String]) -> Result<Vec<Way>, RelayError> {
    let mut ways = Vec::new();
    for address in addresses {
        let bad = |reason: String| RelayError::Address { address: address.clone(), reason };
        let found: Vec<SocketAddr> = address.to_socket_addrs().map_err(|error| bad(error.to_string()))?.collect();
        if let Some(far) = found.iter().find(|it| it.is_ipv6() && !it.ip().is_loopback()) {
            return Err(bad(format!("{} cannot be given to a loopback interface", far.ip())));
        }
        let outside: Arc<[SocketAddr]> = found.as_slice().into();
        let way = |inside| Way { name: address.clone(), inside, outside: Arc::clone(&outside) };
        ways.extend(found.iter().map(|&inside| way(inside)));
    }
    // `localhost` may stand beside what it stands for.
    let mut seen = BTreeSet::new();
    ways.retain(|way| seen.insert(way.inside));
    Ok(ways)
}

/// Listens at all of them, in the namespace of the calling thread.
fn listen(ways: &[Way]) -> Result<Vec<std::net::TcpListener>, RelayError> {
    let far: BTreeSet<Ipv4Addr> = ways
        .iter()
        .filter_map(|way| match way.inside.ip() {
            IpAddr::V4(address) if !address.is_loopback() => Some(address),
            _ => None,
        })
        .collect();
    for (number, address) in far.into_iter().enumerate() {
        let at = SocketAddr::from((address, 0));
        add_address(number, address).map_err(|source| RelayError::Listen { at, source })?;
    }
    let open = |at: SocketAddr| {
        let listener = std::net::TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    ways.iter().map(|way| open(way.inside).map_err(|source| RelayError::Listen { at: way.inside, source })).collect()
}

/// Takes connections for ever.
async fn relay(listener: TcpListener, way: Way) {
    let reported = Arc::new(AtomicBool::new(false));
    loop {
        match listener.accept().await {
            Ok((inside, _)) => {
                let (way, reported) = (way.clone(), Arc::clone(&reported));
                tokio::spawn(async move { pass(inside, &way, &reported).await });
            }
            // Out of descriptors: some will be closed.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Carries one connection to its end.
async fn pass(mut inside: TcpStream, way: &Way, reported: &AtomicBool) {
    let mut outside = match TcpStream::connect(&*way.outside).await {
        Ok(outside) => outside,
        Err(error) => {
            if !reported.swap(true, Ordering::Relaxed) {
                eprintln!("{} was asked for, and nothing answers there outside: {error}", way.name);
            }
            // The nearest to a refused connection that is left: it is reset.
            let _ = inside.set_zero_linger();
            return;
        }
    };
    for stream in [&inside, &outside] {
        // What is small is passed on at once, as it was sent; and a control that paces (BBR) would spend a timer on every send.
        let _ = (stream.set_nodelay(true), set_tcp_congestion(stream, "reno"));
    }
    if tokio::io::copy_bidirectional(&mut inside, &mut outside).await.is_err() {
        let _ = (inside.set_zero_linger(), outside.set_zero_linger());
    }
}

/// As many connections as the system allows: each takes two descriptors.
fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(addresses: &[&str]) -> Result<Vec<(String, usize)>, String> {
        let addresses: Vec<String> = addresses.iter().map(|&address| address.to_owned()).collect();
        let ways = ways(&addresses).map_err(|error| error.to_string())?;
        Ok(ways.iter().map(|way| (way.inside.to_string(), way.outside.len())).collect())
    }

    #[test]
    fn addresses_are_reached_at_what_they_stand_for() {
        let one = |address: &str| (address.to_owned(), 1);
        assert_eq!(found(&["127.0.0.1:5432", "[::1]:80"]), Ok(vec![one("127.0.0.1:5432"), one("[::1]:80")]));
        assert_eq!(found(&["127.0.0.1:5432", "127.0.0.1:5432"]), Ok(vec![one("127.0.0.1:5432")]));
        let local = found(&["localhost:9", "127.0.0.1:9"]).expect("every machine knows it");
        let listeners = local.iter().filter(|way| way.0 == "127.0.0.1:9").count();
        assert_eq!(listeners, 1, "{local:?}");
    }

    #[test]
    fn what_cannot_be_reached_is_told() {
        assert!(found(&["127.0.0.1"]).expect_err("no port").contains("`127.0.0.1` is not an address to reach"));
        assert!(found(&["[2001:db8::1]:80"]).expect_err("not IPv4").contains("loopback interface"));
    }
}
