//! Free ports for the services of a study, chosen once and kept for all its runs.

use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Below Linux's default range for outgoing connections (32768 to 60999, `ip_local_port_range`): between two runs no
/// connection of the load generator or of a service can take a port away from the service that listens on it.
const RANGE: Range<u16> = 12_000..32_000;

/// No port is free.
#[derive(Debug, thiserror::Error)]
#[error("no free port between {} and {} on 127.0.0.1. Stop what listens there", RANGE.start, RANGE.end)]
pub struct NoPort;

/// This many free ports, all different.
///
/// # Errors
/// When none can be bound.
pub fn allocate(count: usize, seed: u64) -> Result<Vec<u16>, NoPort> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // Held until all are chosen, so that none is chosen twice.
    let mut held = Vec::new();
    for _ in 0..count {
        let listener = (0..1_000)
            .find_map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, random.random_range(RANGE))).ok())
            .ok_or(NoPort)?;
        held.push(listener);
    }
    held.iter().map(|listener| Ok(listener.local_addr().map_err(|_| NoPort)?.port())).collect()
}

/// Whether something already answers at `host:port`: then a service that is to listen there cannot, and unladen would
/// measure a stranger.
#[must_use]
pub fn taken(address: &str) -> bool {
    address
        .to_socket_addrs()
        .is_ok_and(|mut all| all.any(|one| TcpStream::connect_timeout(&one, Duration::from_millis(200)).is_ok()))
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
    }

    #[test]
    fn a_listener_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        assert!(taken(&address));
        drop(listener);
        assert!(!taken(&address));
    }
}
