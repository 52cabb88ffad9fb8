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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Family {
    /// The first process; it leads a session of its own.
    pub root: Identity,
    /// Value of [`MARK`] in its environment.
    pub mark: String,
}

impl Family {
    /// Of a container whose first process this is. It may have ended already, and is nobody's then.
    #[must_use]
    pub fn of_container(pid: u32, mark: String) -> Self {
        Self { root: Identity::of(pid).unwrap_or(Identity { pid, start_ticks: 0 }), mark }
    }

    /// All living processes of the service, the first one included while it lives. Looks at every process of the
    /// machine, so it is for stopping, not for measuring.
    #[must_use]
    pub fn members(&self) -> Vec<Stat> {
        self.members_among(&process::all(), |pid| process::environment_starts(pid, MARK, &self.mark))
    }

    /// Whether the first process leads the session of this one. A container that has ended already has pid 0, and session 0 is that of
    /// everybody whose leader is in another PID namespace: nobody's.
    #[must_use]
    pub fn leads(&self, stat: &Stat) -> bool {
        self.root.pid != 0 && stat.session == self.root.pid
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
                if one.identity() == self.root || (root_is_ours && self.leads(one)) || marked(one.pid) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, session: u32, start_ticks: u64) -> Stat {
        Stat {
            pid,
            state: b'S',
            parent,
            group: session,
            session,
            user_ticks: 0,
            system_ticks: 0,
            waited_user_ticks: 0,
            waited_system_ticks: 0,
            threads: 1,
            start_ticks,
        }
    }

    fn pids(family: &Family, all: &[Stat], marked: &[u32]) -> Vec<u32> {
        let mut pids: Vec<u32> =
            family.members_among(all, |pid| marked.contains(&pid)).iter().map(|stat| stat.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn descendants_the_session_and_the_mark_make_a_family() {
        let family = Family { root: Identity { pid: 10, start_ticks: 100 }, mark: String::new() };
        let mut all = vec![
            stat(1, 0, 1, 1),
            stat(5, 1, 5, 50),
            // The service, a child, a grandchild in a session of its own, its child.
            stat(10, 5, 10, 100),
            stat(11, 10, 10, 101),
            stat(12, 11, 12, 102),
            stat(13, 12, 12, 103),
            // Orphans: one of the session, one with the mark, its child, and a stranger.
            stat(20, 1, 10, 104),
            stat(21, 1, 21, 105),
            stat(22, 21, 22, 106),
            stat(23, 1, 23, 107),
        ];
        assert_eq!(pids(&family, &all, &[21]), vec![10, 11, 12, 13, 20, 21, 22]);
        // A zombie is nothing to stop, but its children are.
        all[3].state = b'Z';
        assert_eq!(pids(&family, &all, &[]), vec![10, 12, 13, 20]);
        // The first process has ended: its session and what descends from it there is left.
        all.retain(|stat| stat.pid != 10);
        all[2].parent = 1;
        assert_eq!(pids(&family, &all, &[]), vec![12, 13, 20]);
    }

    #[test]
    fn nobody_belongs_to_a_process_without_a_number() {
        let family = Family { root: Identity { pid: 0, start_ticks: 0 }, mark: String::new() };
        assert_eq!(pids(&family, &[stat(1, 0, 1, 1), stat(10, 0, 0, 100)], &[]), Vec::<u32>::new());
    }

    #[test]
    fn a_later_process_with_the_same_pid_is_a_stranger() {
        let family = Family { root: Identity { pid: 10, start_ticks: 100 }, mark: String::new() };
        let all = [stat(1, 0, 1, 1), stat(10, 1, 10, 999), stat(11, 10, 10, 1000)];
        assert_eq!(pids(&family, &all, &[]), Vec::<u32>::new());
    }
}
