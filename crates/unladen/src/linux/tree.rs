//! Which processes belong to a service when no control group says so.
//!
//! A process belongs when it descends from the service's first process, or is of its session, or was started with the
//! service's mark in its environment. A daemon that forks twice, leaves the session and clears its environment has
//! none of the three: only a control group holds it.

use std::collections::HashMap;

use super::process::{self, Identity, Stat};

/// The variable whose value marks every process of a study: `STUDY/NUMBER-SERVICE-REPLICA`.
pub const MARK: &str = "UNLADEN_RUN";

/// A service's first process and what its descendants can be told by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// The first process; it leads a session of its own.
    pub root: Identity,
    /// Value of [`MARK`] in its environment.
    pub mark: String,
}

impl Family {
    /// All living processes of the service, the first one included while it lives. Looks at every process of the
    /// machine, so it is for stopping, not for measuring.
    #[must_use]
    pub fn members(&self) -> Vec<Stat> {
        self.members_among(&process::all(), |pid| process::environment_starts(pid, MARK, &self.mark))
    }

    /// [`Self::members`] among processes already read; `marked` tells whether a process carries the mark.
    #[must_use]
    pub fn members_among(&self, all: &[Stat], marked: impl Fn(u32) -> bool) -> Vec<Stat> {
        let by_pid: HashMap<u32, &Stat> = all.iter().map(|stat| (stat.pid, stat)).collect();
        let root_is_ours = by_pid.get(&self.root.pid).is_none_or(|stat| stat.identity() == self.root);
        let mut belongs: HashMap<u32, bool> = HashMap::new();
        for stat in all {
            let mut path = Vec::new();
            let mut next = Some(stat);
            let mut verdict = false;
            while let Some(one) = next {
                if let Some(&known) = belongs.get(&one.pid) {
                    verdict = known;
                    break;
                }
                // A loop cannot be, but two readings at different instants can look like one.
                if path.contains(&one.pid) {
                    break;
                }
                path.push(one.pid);
                // While members of a session live, its number is not given to another process. It is only
                // misleading when a later process has the first one's pid.
                if one.identity() == self.root || (root_is_ours && one.session == self.root.pid) || marked(one.pid) {
                    verdict = true;
                    break;
                }
                next = by_pid.get(&one.parent).copied();
            }
            // Everything on the path descends from its last process, so the verdict holds for all of it.
            belongs.extend(path.into_iter().map(|pid| (pid, verdict)));
        }
        all.iter().filter(|stat| stat.is_alive() && belongs.get(&stat.pid) == Some(&true)).copied().collect()
    }
}
