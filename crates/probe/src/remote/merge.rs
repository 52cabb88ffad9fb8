//! What several probes have seen as one observation.

use unladen_journal::record::ProcessRecord;

use super::client::RemoteSampler;
use crate::observation::{HOST, Observation};

/// What this process has seen, with what probes elsewhere have: each target in its place, of which those of this process leave room for the others.
pub(crate) fn merge(mut own: Observation, remote: Vec<RemoteSampler>) -> Observation {
    for one in remote {
        let place = one.place;
        let mut seen = one.finish().unwrap_or_else(|why| Observation {
            processes: vec![ProcessRecord::default()],
            lost: Some(why),
            ..Observation::default()
        });
        let used_ns: u64 = seen.processes.iter().filter_map(|process| process.cpu_ns).sum();
        // The machine is this one, and what they use of it is ours.
        own.host.count_as_ours(used_ns as f64 / 1e9);
        for process in seen.processes.drain(..) {
            own.processes.insert(place.min(own.processes.len()), process);
        }
        own.timeline.extend(seen.timeline.into_iter().filter(|row| row.role.is_some() || row.service != HOST));
        own.vanished.append(&mut seen.vanished);
        own.scraped.append(&mut seen.scraped);
        let (late, other) = (own.lateness, seen.lateness);
        own.lateness = (late.0.max(other.0), late.1.max(other.1));
        own.lost = own.lost.or(seen.lost);
    }
    own
}
