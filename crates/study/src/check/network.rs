//! Networks of the variants' own, and what services reach from there.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::Network;
use super::Check;

impl Check<'_> {
    pub(super) fn network(&mut self) {
        let study = self.study;
        let path = KeyPath::of(&["reach"]);
        if study.network == Some(Network::Host) && !study.reach.is_empty() {
            let remedy = "on the machine's own network services reach everything anyway; remove `reach`";
            self.say(path.clone(), ProblemKind::Contradiction { one: "network: host", other: "reach", remedy });
        }
        for (index, address) in study.reach.iter().enumerate() {
            let path = path.item(index);
            if study.reach[..index].contains(address) {
                self.say(path.clone(), ProblemKind::ValueTwice { value: address.clone() });
            }
            if let Some(address) = self.with_samples(address).filter(|address| !is_reachable(address)) {
                self.say(path.clone(), ProblemKind::BadReach { found: address });
            }
        }
    }
}

/// Whether a relay can listen there: names are known only outside.
fn is_reachable(address: &str) -> bool {
    let port = address.strip_prefix("localhost:").or_else(|| address.strip_prefix("[::1]:"));
    let address = port.map_or_else(|| address.to_owned(), |port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
    address.parse::<SocketAddrV4>().is_ok_and(|address| address.port() != 0 && !address.ip().is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::is_reachable;

    #[test]
    fn an_address_has_a_port_and_is_a_number_or_this_machine() {
        for address in ["127.0.0.1:5432", "localhost:1", "[::1]:80", "10.0.0.7:9092"] {
            assert!(is_reachable(address), "{address}");
        }
        for address in ["", "5432", ":5432", "127.0.0.1", "127.0.0.1:0", "0.0.0.0:80", "db:5432", "[2001:db8::1]:80"] {
            assert!(!is_reachable(address), "{address}");
        }
    }
}
