//! Free ports for the services of a study, chosen once and kept for all its runs; addresses that do not depend on them, and those
//! that services reach besides their own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use procfs_core::net::{TcpNetEntries, TcpState};
use procfs_core::{ExplicitSystemInfo, FromReadSI};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use regex::Regex;
use unladen_linux::Netns;
use unladen_linux::netns::within;
use unladen_load::target::Target;

/// Below Linux's default range for outgoing connections (32768 to 60999, `ip_local_port_range`): between two runs no
/// connection of the load generator or of a service can take a port away from the service that listens on it.
const RANGE: Range<u16> = 12_000..32_000;

/// No port is free.
#[derive(Debug, thiserror::Error)]
#[error("no free port between {} and {} on 127.0.0.1. Stop what listens there", RANGE.start, RANGE.end)]
pub struct NoPort;

/// What keeps the ports of this unladen from others, until it ends: nobody listens on them between two runs.
static RESERVED: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());

/// This many free ports, all different, and different from those of any other unladen in this network namespace.
///
/// # Errors
/// When none can be bound.
pub fn allocate(count: usize, seed: u64) -> Result<Vec<u16>, NoPort> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| (0..1_000).find_map(|_| free(random.random_range(RANGE))).ok_or(NoPort)).collect()
}

/// The port, if nobody listens on it and no unladen has it.
fn free(port: u16) -> Option<u16> {
    let reserved = reserve(port).ok()?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(reserved);
    Some(port)
}

/// Says to other unladens that a port is taken: an abstract socket of that name, which goes with the process however it ends.
fn reserve(port: u16) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&UnixAddress::from_abstract_name(format!("unladen-port-{port}"))?)
}

/// Whether something already answers at `host:port`, in this network namespace if one is given: then a service that is to
/// listen there cannot, and unladen would measure a stranger.
#[must_use]
pub fn taken(address: &str, network: Option<&Netns>) -> bool {
    let answers = |one: &SocketAddr| TcpStream::connect_timeout(one, Duration::from_millis(200)).is_ok();
    address.to_socket_addrs().is_ok_and(|all| {
        let all: Vec<SocketAddr> = all.collect();
        // What cannot be entered is met again, and told, when the service is started there.
        within(network, || all.iter().any(answers)).unwrap_or(false)
    })
}

/// `host:port` of a URL; `None` if it has none (a Unix socket).
#[must_use]
pub fn of_url(url: &str) -> Option<String> {
    let target = Target::parse(url).ok().filter(|target| target.unix.is_none())?;
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host };
    Some(format!("{host}:{}", target.port))
}

/// The addresses that are fixed: in both lists, one made with some ports and one with others. Two variants that are alive at once
/// would both listen there.
#[must_use]
pub fn fixed(some: &[String], others: &[String]) -> Vec<String> {
    some.iter().filter(|address| others.contains(address)).cloned().collect()
}

/// Addresses of this machine at which something listens now: all TCP sockets of the network namespace of this process. Nobody is
/// connected to: some servers would complain in their logs.
#[must_use]
pub fn listeners() -> Vec<SocketAddr> {
    // Of the system, addresses need the order of bytes only.
    let system = ExplicitSystemInfo {
        boot_time_secs: 0,
        ticks_per_second: 0,
        page_size: 0,
        is_little_endian: cfg!(target_endian = "little"),
    };
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| TcpNetEntries::from_file(path, &system));
    let sockets = tables.into_iter().flatten().flat_map(|entries| entries.0);
    sockets.filter(|socket| socket.state == TcpState::Listen).map(|socket| socket.local_address).collect()
}

/// Loopback addresses (`127.0.0.1:5432`, `localhost:5432`, `[::1]:5432`) that stand in the texts, which are a variant's commands, arguments
/// and environment with its variables filled in, and at which one of the `listeners` is. Those with the port of one of the variant's
/// `own` addresses are left out. Each once, as written, in the order in which they stand.
#[must_use]
pub fn reached_outside<'t>(
    texts: impl IntoIterator<Item = &'t str>,
    own: &[String],
    listeners: &[SocketAddr],
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for address in texts.into_iter().flat_map(loopback_addresses) {
        let is_own = own.iter().any(|own| port(own).is_some_and(|own| Some(own) == port(address)));
        if !is_own && !found.iter().any(|known| known == address) && is_among(address, listeners) {
            found.push(address.to_owned());
        }
    }
    found
}

/// Loopback addresses with a port that stand in a text.
fn loopback_addresses(text: &str) -> impl Iterator<Item = &str> {
    // A pattern that is wrong finds nothing, and a test fails.
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?:^|[^\w.-])((?:127(?:\.\d{1,3}){3}|localhost|\[::1\]):\d{1,5})\b").ok());
    PATTERN
        .iter()
        .flat_map(|pattern| pattern.captures_iter(text))
        .filter_map(|found| found.get(1))
        .map(|found| found.as_str())
        .filter(|address| port(address).is_some_and(|port| port != 0))
}

fn port(address: &str) -> Option<u16> {
    address.rsplit_once(':')?.1.parse().ok()
}

/// Whether one of the listeners takes connections to an address.
fn is_among(address: &str, listeners: &[SocketAddr]) -> bool {
    let takes = |listener: &SocketAddr, to: SocketAddr| {
        let fits = listener.ip() == to.ip() || listener.ip().is_unspecified() && (to.is_ipv4() || listener.is_ipv6());
        listener.port() == to.port() && fits
    };
    let addresses = address.to_socket_addrs().into_iter().flatten();
    addresses.into_iter().any(|to| listeners.iter().any(|listener| takes(listener, to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ports_are_different() {
        let mut ports = allocate(50, 7).expect("free ports");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| RANGE.contains(port)));
        // The same lots, but what was drawn before is taken, though nobody listens there.
        let others = allocate(50, 7).expect("free ports");
        assert!(others.iter().all(|port| !ports.contains(port)), "{ports:?} {others:?}");
    }

    #[test]
    fn a_listener_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        assert!(taken(&address, None));
        drop(listener);
        assert!(!taken(&address, None));
    }
    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn an_address_that_depends_on_no_port_is_fixed() {
        let some = texts(&["127.0.0.1:8080", "127.0.0.1:12001"]);
        assert_eq!(fixed(&some, &texts(&["127.0.0.1:8080", "127.0.0.1:31000"])), ["127.0.0.1:8080"]);
        assert_eq!(fixed(&some, &[]), texts(&[]));
        assert_eq!(of_url("http://127.0.0.1:8080/x").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(of_url("https://localhost/").as_deref(), Some("localhost:443"));
        assert_eq!(of_url("http://[::1]:81/").as_deref(), Some("[::1]:81"));
        assert_eq!(of_url("unix:/run/app.sock:/"), None);
    }

    #[test]
    fn addresses_are_found_in_texts() {
        for (text, found) in [
            ("jdbc:postgresql://localhost:5432/shop?x=1", vec!["localhost:5432"]),
            ("127.0.0.1:9092,127.0.0.1:9093;127.1.2.3:1", vec!["127.0.0.1:9092", "127.0.0.1:9093", "127.1.2.3:1"]),
            ("--redis=redis://me:secret@[::1]:6379", vec!["[::1]:6379"]),
            ("10.127.0.0.1:80 mylocalhost:1 db.localhost:2 127.0.0.1:0 127.0.0.1:99999 localhost: 127.0.0.1", vec![]),
        ] {
            assert_eq!(loopback_addresses(text).collect::<Vec<_>>(), found, "{text}");
        }
    }

    #[test]
    fn only_what_listens_outside_and_is_not_the_variants_own_is_reached() {
        let listening: Vec<SocketAddr> =
            ["127.0.0.1:5432", "0.0.0.0:6379", "[::]:9092", "127.0.0.1:8080", "[::1]:7000"]
                .map(|address| address.parse().expect("an address"))
                .to_vec();
        let commands = [
            "java -Ddb=jdbc:postgresql://localhost:5432/x -Dserver.port=8080",
            "127.0.0.1:6379",
            "127.0.0.1:9092 localhost:5432",
            "http://localhost:8080 http://localhost:4318 127.0.0.1:7000",
        ];
        let own = texts(&["127.0.0.1:8080"]);
        let found = reached_outside(commands, &own, &listening);
        assert_eq!(found, ["localhost:5432", "127.0.0.1:6379", "127.0.0.1:9092"]);
    }

    #[test]
    fn what_listens_now_is_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        assert!(listeners().contains(&address));
        drop(listener);
        assert!(!listeners().contains(&address));
    }
}
