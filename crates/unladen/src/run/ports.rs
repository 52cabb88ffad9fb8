//! Free ports for the services of a study, chosen once and kept for all its runs.

use std::collections::HashMap;
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

/// A free port for each name.
///
/// # Errors
/// When none can be bound.
pub fn allocate(names: &[String], seed: u64) -> Result<HashMap<String, u16>, NoPort> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // Held until all are chosen, so that no two names get the same port.
    let mut held = Vec::new();
    let mut ports = HashMap::new();
    for name in names {
        let listener = (0..1_000)
            .find_map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, random.random_range(RANGE))).ok())
            .ok_or(NoPort)?;
        ports.insert(name.clone(), listener.local_addr().map_err(|_| NoPort)?.port());
        held.push(listener);
    }
    Ok(ports)
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
    fn every_name_gets_a_port_of_its_own() {
        let names: Vec<String> = (0..50).map(|name| name.to_string()).collect();
        let ports = allocate(&names, 7).expect("free ports");
        let mut numbers: Vec<u16> = ports.into_values().collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
        assert!(numbers.iter().all(|port| RANGE.contains(port)));
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
