//! Bytes that a service receives and sends over TCP, loopback included: the sum of its sockets' own counters.
//!
//! Sockets are found once a second and belong to the process that holds them; those that are closed in between are told
//! by the kernel. A connection that opens *and* closes between two samples is known only by its ports: it belongs to the
//! service that listens on the local one. If its client cannot be told, all services that could be it are in doubt, and a
//! figure with more than 1 % of doubt is none.
//!
//! Telemetry is told from the service's own traffic by where it goes: to a port on which a collector, a storage or the span
//! sink listens. A backend that unladen has not started is not known as one.

pub mod diag;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use diag::{Diag, Socket};

use unladen_linux::Netns;
use unladen_linux::netns::within;
use unladen_linux::process::Identity;

/// Most doubt that a figure may have, as a share of it.
const MAX_UNCERTAIN: f64 = 0.01;

/// Bytes received and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// Received.
    pub received: u64,
    /// Sent and acknowledged.
    pub sent: u64,
}

/// What a service has carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// All of it.
    pub all: Bytes,
    /// Of it, over connections to whoever takes telemetry; `None` for the takers themselves.
    pub telemetry: Option<Bytes>,
}

/// Follows the sockets of several services.
#[derive(Debug)]
pub struct Network {
    diag: Option<Diag>,
    /// Network namespace whose sockets are followed, as the kernel calls it.
    name: Option<PathBuf>,
    ledger: Ledger,
}

/// The account of all sockets, without the system calls.
#[derive(Debug, Default)]
struct Ledger {
    sockets: HashMap<u64, Followed>,
    /// Ports that each service listens on.
    ports: Vec<HashSet<u16>>,
    /// Bytes of connections that no list has shown, by the service that listens on their local port.
    unlisted: Vec<Bytes>,
    /// The same for those whose local port nobody listens on: bytes by remote port.
    unattributed: HashMap<u16, u64>,
    /// Something was missed that cannot be made up for.
    broken: bool,
    /// Services whose sockets cannot be seen: in another network namespace, or another user's.
    unseen: HashSet<usize>,
    /// Services that take telemetry.
    takers: Vec<bool>,
}

/// A socket and what it has carried since it was first seen, or since it was opened if that was later.
#[derive(Debug, Clone, Copy)]
struct Followed {
    owner: Option<usize>,
    /// It was listed before it could be told whose it is: not yet accepted.
    unsettled: bool,
    remote_port: u16,
    base: Bytes,
    last: Bytes,
}

impl Network {
    /// Starts to follow the sockets of services, each of which takes telemetry or does not; from now on closed ones are
    /// told. `network` is the services' network namespace; `None`: that of unladen.
    #[must_use]
    pub fn new(takers: Vec<bool>, network: Option<&Netns>) -> Self {
        let ledger = Ledger {
            ports: vec![HashSet::new(); takers.len()],
            unlisted: vec![Bytes::default(); takers.len()],
            takers,
            ..Ledger::default()
        };
        let name = network.map_or_else(|| fs::read_link("/proc/self/ns/net"), Netns::name);
        Self { diag: within(network, Diag::open).and_then(|diag| diag).ok(), name: name.ok(), ledger }
    }

    /// Reads all sockets. `pids` are the processes of every service, in their order.
    pub fn sample(&mut self, pids: &[Vec<u32>], first: bool) {
        let Some(diag) = &self.diag else { return };
        let done = (|| {
            if first {
                self.ledger.unseen = unseen(pids, self.name.as_ref());
                // What was destroyed before the start is no matter.
                let _ = diag.destroyed();
                let owners = owners(pids);
                for socket in diag.listening()? {
                    if let Some(&owner) = owners.get(&socket.inode) {
                        self.ledger.ports[owner].insert(socket.local_port);
                    }
                }
            }
            // First the living, then the dead: who dies in between is in both, not in none.
            let listed = diag.connected()?;
            let destroyed = if first { Vec::new() } else { diag.destroyed()? };
            self.ledger.list(&listed, first, || owners(pids));
            self.ledger.bury(&destroyed);
            std::io::Result::Ok(())
        })();
        self.ledger.broken |= done.is_err();
    }

    /// What each service has carried since the first sample; `None` where it cannot be told.
    #[must_use]
    pub fn traffic(&self) -> Vec<Option<Traffic>> {
        let services = self.ledger.ports.len();
        match &self.diag {
            Some(_) if !self.ledger.broken => (0..services).map(|service| self.ledger.traffic(service)).collect(),
            _ => vec![None; services],
        }
    }
}

impl Ledger {
    /// Takes a list of living sockets. Whose they are is asked only when there are new ones.
    fn list(&mut self, listed: &[Socket], first: bool, owners: impl FnOnce() -> HashMap<u32, usize>) {
        let open = |ledger: &Self, socket: &Socket| {
            ledger.sockets.get(&socket.cookie).is_none_or(|known| known.unsettled && socket.inode != 0)
        };
        let owners = if listed.iter().any(|socket| open(self, socket)) { owners() } else { HashMap::new() };
        for socket in listed {
            let now = Bytes { received: socket.received, sent: socket.sent };
            let unsettled = open(self, socket);
            // What was carried before the first sample is not counted; a later connection counts from its start.
            let base = if first { now } else { Bytes::default() };
            let new = Followed { owner: None, unsettled, remote_port: socket.remote_port, base, last: now };
            let followed = self.sockets.entry(socket.cookie).or_insert(new);
            followed.last = now;
            if unsettled {
                followed.owner = owners.get(&socket.inode).copied();
                followed.unsettled = socket.inode == 0;
            }
        }
    }

    /// Takes sockets that are gone, with their last counters.
    fn bury(&mut self, destroyed: &[Socket]) {
        for socket in destroyed {
            let last = Bytes { received: socket.received, sent: socket.sent };
            if let Some(followed) = self.sockets.get_mut(&socket.cookie).filter(|followed| !followed.unsettled) {
                followed.last = last;
                continue;
            }
            let base = self.sockets.remove(&socket.cookie).map_or(Bytes::default(), |followed| followed.base);
            let carried = last.since(base);
            match self.ports.iter().position(|ports| ports.contains(&socket.local_port)) {
                Some(owner) => self.unlisted[owner].add(carried),
                None => *self.unattributed.entry(socket.remote_port).or_default() += carried.received + carried.sent,
            }
        }
    }

    fn traffic(&self, service: usize) -> Option<Traffic> {
        let all = self.bytes(service)?;
        if self.takers[service] {
            return Some(Traffic { all, telemetry: None });
        }
        let to_taker =
            |port: u16| self.ports.iter().zip(&self.takers).any(|(ports, &takes)| takes && ports.contains(&port));
        let mut telemetry = Bytes::default();
        for followed in self.sockets.values() {
            if followed.owner == Some(service) && to_taker(followed.remote_port) {
                telemetry.add(followed.last.since(followed.base));
            }
        }
        Some(Traffic { all, telemetry: Some(telemetry) })
    }

    fn bytes(&self, service: usize) -> Option<Bytes> {
        if self.unseen.contains(&service) {
            return None;
        }
        let mut sum = self.unlisted[service];
        for followed in self.sockets.values().filter(|followed| followed.owner == Some(service)) {
            sum.add(followed.last.since(followed.base));
        }
        // A service is not its own client.
        let others = self.unattributed.iter().filter(|(port, _)| !self.ports[service].contains(port));
        let unattributed: u64 = others.map(|(_, bytes)| bytes).sum();
        (unattributed as f64 <= (sum.received + sum.sent) as f64 * MAX_UNCERTAIN).then_some(sum)
    }
}

impl Bytes {
    fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
    }

    /// Both ways together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.received + self.sent
    }

    /// What was carried since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { received: self.received.saturating_sub(earlier.received), sent: self.sent.saturating_sub(earlier.sent) }
    }
}

/// Which service holds a socket, by inode. Of a socket that two services share, the first counts.
fn owners(pids: &[Vec<u32>]) -> HashMap<u32, usize> {
    let mut owners = HashMap::new();
    for (service, pids) in pids.iter().enumerate() {
        for pid in pids {
            let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            for entry in entries.flatten() {
                let link = fs::read_link(entry.path()).unwrap_or_default();
                let inode =
                    link.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
                if let Some(inode) = inode {
                    owners.entry(inode).or_insert(service);
                }
            }
        }
    }
    owners
}

/// Services with a process whose sockets cannot be seen: outside this network namespace.
fn unseen(pids: &[Vec<u32>], network: Option<&PathBuf>) -> HashSet<usize> {
    let hidden = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/ns/net")).ok().as_ref() != network
            || fs::read_dir(format!("/proc/{pid}/fd")).is_err()
    };
    let gone = |pid: &u32| !Identity::of(*pid).is_some_and(|identity| identity.is_alive());
    let with_hidden = |pids: &Vec<u32>| pids.iter().any(|pid| hidden(pid) && !gone(pid));
    pids.iter().enumerate().filter(|(_, pids)| with_hidden(pids)).map(|(service, _)| service).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(cookie: u64, inode: u32, ports: (u16, u16), received: u64, sent: u64) -> Socket {
        Socket { cookie, inode, local_port: ports.0, remote_port: ports.1, received, sent }
    }

    /// Service 0 listens on 80 and holds the inodes 10 to 19, service 1 those from 20 on.
    fn ledger() -> Ledger {
        Ledger {
            ports: vec![HashSet::from([80]), HashSet::new()],
            unlisted: vec![Bytes::default(); 2],
            takers: vec![true, false],
            ..Ledger::default()
        }
    }

    fn owners() -> HashMap<u32, usize> {
        (10..20).map(|inode| (inode, 0)).chain((20..30).map(|inode| (inode, 1))).collect()
    }

    fn bytes(received: u64, sent: u64) -> Option<Bytes> {
        Some(Bytes { received, sent })
    }

    #[test]
    fn connections_count_from_the_first_sample_or_from_their_start() {
        let mut ledger = ledger();
        ledger.list(&[socket(1, 10, (80, 5000), 100, 1000), socket(2, 20, (5000, 80), 1000, 100)], true, owners);
        assert_eq!((ledger.bytes(0), ledger.bytes(1)), (bytes(0, 0), bytes(0, 0)));
        let second = [
            socket(1, 10, (80, 5000), 150, 1700),
            socket(2, 20, (5000, 80), 1700, 150),
            // New: a third, and one that has not been accepted yet.
            socket(3, 11, (6000, 9000), 7, 8),
            socket(4, 0, (80, 5001), 30, 0),
        ];
        ledger.list(&second, false, owners);
        assert_eq!((ledger.bytes(0), ledger.bytes(1)), (bytes(57, 708), bytes(700, 50)));
        // It is accepted, and counts from its start.
        ledger.list(&[socket(4, 12, (80, 5001), 40, 5)], false, owners);
        assert_eq!(ledger.bytes(0), bytes(97, 713));
        // Nothing is new: nobody is asked again.
        ledger.list(&second[..3], false, || panic!("asked although all are known"));
    }

    #[test]
    fn what_goes_to_a_taker_is_telemetry() {
        let mut ledger = ledger();
        ledger.list(&[], true, owners);
        let to_taker = socket(1, 20, (5000, 80), 10, 700);
        let sockets = [socket(2, 10, (80, 5000), 700, 10), to_taker, socket(3, 21, (90, 6000), 40, 50)];
        ledger.list(&sockets, false, owners);
        // Closed, it still counts.
        ledger.bury(&[socket(1, 0, (5000, 80), 12, 800)]);
        let all = Bytes { received: 52, sent: 850 };
        assert_eq!(ledger.traffic(1), Some(Traffic { all, telemetry: bytes(12, 800) }));
        let all = Bytes { received: 700, sent: 10 };
        assert_eq!(ledger.traffic(0), Some(Traffic { all, telemetry: None }));
    }

    #[test]
    fn closed_connections_keep_their_last_count() {
        let mut ledger = ledger();
        ledger.list(&[socket(1, 10, (80, 5000), 100, 1000)], true, owners);
        ledger.bury(&[socket(1, 0, (80, 5000), 160, 1900)]);
        assert_eq!(ledger.bytes(0), bytes(60, 900));
        // Opened and closed between two lists: by the port that somebody listens on.
        ledger.bury(&[socket(9, 0, (80, 5002), 40, 100)]);
        assert_eq!(ledger.bytes(0), bytes(100, 1000));
    }

    #[test]
    fn a_client_that_cannot_be_told_puts_all_in_doubt_but_the_server() {
        let mut ledger = ledger();
        ledger.list(&[socket(1, 10, (80, 5000), 0, 0), socket(2, 20, (5000, 80), 0, 0)], true, owners);
        ledger.list(&[socket(1, 10, (80, 5000), 500, 500), socket(2, 20, (5000, 80), 500, 500)], false, owners);
        ledger.bury(&[socket(8, 0, (5003, 80), 5, 5)]);
        assert_eq!((ledger.bytes(0), ledger.bytes(1)), (bytes(500, 500), bytes(500, 500)), "1 % is let pass");
        ledger.bury(&[socket(9, 0, (5004, 80), 1, 0)]);
        assert_eq!((ledger.bytes(0), ledger.bytes(1)), (bytes(500, 500), None));
        ledger.bury(&[socket(7, 0, (5005, 443), 999, 0)]);
        assert_eq!((ledger.bytes(0), ledger.bytes(1)), (None, None));
    }
}
