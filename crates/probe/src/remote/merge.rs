//! What several probes have seen as one observation.

use unladen_journal::record::ProcessRecord;

use super::client::RemoteSampler;
use crate::observation::{HOST, Observation};

/// What this process has seen, with what probes elsewhere have: each target in its place, of which those of this process leave room for the others.
pub(crate) fn merge(mut own: Observation, remote: Vec<RemoteSampler>) -> Observation {
    let (mut elsewhere, mut theirs_s) = (None, 0.0);
    for one in remote {
        let (place, is_here) = (one.place, one.is_here);
        let mut seen = one.finish().unwrap_or_else(|why| Observation {
            processes: vec![ProcessRecord::default()],
            lost: Some(why),
            ..Observation::default()
        });
        let used_ns: u64 = seen.processes.iter().filter_map(|process| process.cpu_ns).sum();
        theirs_s += used_ns as f64 / 1e9;
        for process in seen.processes.drain(..) {
            own.processes.insert(place.min(own.processes.len()), process);
        }
        own.timeline.extend(seen.timeline.into_iter().filter(|row| row.role.is_some() || row.service != HOST));
        own.vanished.append(&mut seen.vanished);
        own.scraped.append(&mut seen.scraped);
        let (late, other) = (own.lateness, seen.lateness);
        own.lateness = (late.0.max(other.0), late.1.max(other.1));
        own.lost = own.lost.or(seen.lost);
        if !is_here && elsewhere.is_none() {
            elsewhere = Some((seen.host, used_ns as f64 / 1e9));
        }
    }
    // Where the services are, that is what else goes on. It knows of its own target already.
    if let Some((host, own_s)) = elsewhere {
        own.host = host;
        theirs_s -= own_s;
    }
    own.host.count_as_ours(theirs_s);
    own
}
