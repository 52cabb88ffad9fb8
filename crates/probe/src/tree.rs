//! A service as a process tree, followed from sample to sample.
//!
//! Processes are found from the first one downwards, and among the orphans that were handed to unladen; who was seen once
//! is kept in sight wherever it goes. What ended children used is kept too: a parent that waits for a child takes
//! over its time, and of a child that nobody waited for the last reading counts.

use std::collections::{HashMap, HashSet};

use unladen_linux::clock::{TICK_NS, process_cpu_ns};
use unladen_linux::process::{self, Identity, Stat};
use unladen_linux::tree::{Family, MARK};

use super::cpu::Cpu;

/// A process as it was seen last.
#[derive(Debug, Clone, Copy)]
struct ProcessSnapshot {
    parent: u32,
    /// CPU time of its threads, ended ones included, ns.
    own_ns: u64,
    /// CPU time of children that it waited for, ns, in whole ticks.
    waited_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
}

/// A process tree.
#[derive(Debug)]
pub struct Tree {
    family: Family,
    /// The process to which orphans are handed.
    reaper: u32,
    snapshots: HashMap<Identity, ProcessSnapshot>,
    /// Orphans of unladen that were looked at: whether they belong here.
    judged: HashMap<Identity, bool>,
    /// CPU time of processes that have ended and that nobody waited for, ns.
    unclaimed_ns: u64,
}

impl Tree {
    /// The tree below a service's first process.
    #[must_use]
    pub fn new(family: Family) -> Self {
        Self::below(family, std::process::id())
    }

    /// The same, where orphans are handed to the process `reaper`.
    #[must_use]
    pub fn below(family: Family, reaper: u32) -> Self {
        Self { family, reaper, snapshots: HashMap::new(), judged: HashMap::new(), unclaimed_ns: 0 }
    }

    /// Its processes, zombies included.
    pub fn processes(&mut self) -> Vec<Stat> {
        let mut found: HashMap<u32, Stat> = HashMap::new();
        let mut queue: Vec<Stat> = Vec::new();
        let first = Stat::read(self.family.root.pid).filter(|stat| stat.identity() == self.family.root);
        queue.extend(first);
        queue.extend(self.orphans());
        queue.extend(
            self.snapshots
                .keys()
                .filter_map(|&identity| Stat::read(identity.pid).filter(|stat| stat.identity() == identity)),
        );
        while let Some(stat) = queue.pop() {
            if found.insert(stat.pid, stat).is_some() {
                continue;
            }
            match process::children(stat.pid) {
                Some(children) => queue.extend(children.into_iter().filter_map(Stat::read)),
                // A kernel that does not list children: every process has to be looked at.
                None => return self.family.members(),
            }
        }
        found.into_values().collect()
    }

    /// CPU time of all its processes so far, ended ones included; `None` when none of them was ever there.
    pub fn cpu(&mut self) -> Option<Cpu> {
        let now: HashMap<Identity, ProcessSnapshot> = self
            .processes()
            .into_iter()
            .filter_map(|stat| {
                let snapshot = ProcessSnapshot {
                    parent: stat.parent,
                    own_ns: process_cpu_ns(stat.pid)?,
                    waited_ns: (stat.waited_user_ticks + stat.waited_system_ticks) * TICK_NS,
                    user_ticks: stat.user_ticks + stat.waited_user_ticks,
                    system_ticks: stat.system_ticks + stat.waited_system_ticks,
                };
                Some((stat.identity(), snapshot))
            })
            .collect();
        self.unclaimed_ns += unclaimed(&self.snapshots, &now);
        let ever = !now.is_empty() || !self.snapshots.is_empty() || self.unclaimed_ns > 0;
        self.snapshots = now;
        let total_ns = self.unclaimed_ns + self.snapshots.values().map(|one| one.own_ns + one.waited_ns).sum::<u64>();
        let user = self.snapshots.values().map(|one| one.user_ticks).sum();
        let system = self.snapshots.values().map(|one| one.system_ticks).sum();
        ever.then_some(Cpu { total_ns, parts: Some((user, system)) })
    }

    /// The processes that the last [`Self::cpu`] saw.
    #[must_use]
    pub fn last_pids(&self) -> Vec<u32> {
        self.snapshots.keys().map(|identity| identity.pid).collect()
    }

    /// Orphans that were handed to the reaper and that belong to the service.
    fn orphans(&mut self) -> Vec<Stat> {
        let children = process::children(self.reaper).unwrap_or_default();
        let stats: Vec<Stat> = children.into_iter().filter_map(Stat::read).collect();
        let present: HashSet<Identity> = stats.iter().map(Stat::identity).collect();
        self.judged.retain(|identity, _| present.contains(identity));
        let family = &self.family;
        stats
            .into_iter()
            .filter(|stat| {
                *self
                    .judged
                    .entry(stat.identity())
                    .or_insert_with(|| family.leads(stat) || process::environment_starts(stat.pid, MARK, &family.mark))
            })
            .collect()
    }
}

/// CPU time of processes that were there before and are gone, and that no living ancestor has taken over by waiting.
fn unclaimed(before: &HashMap<Identity, ProcessSnapshot>, now: &HashMap<Identity, ProcessSnapshot>) -> u64 {
    let by_pid: HashMap<u32, Identity> = before.keys().map(|identity| (identity.pid, *identity)).collect();
    let mut left_to: HashMap<Option<Identity>, u64> = HashMap::new();
    for (identity, snapshot) in before {
        if now.contains_key(identity) {
            continue;
        }
        // Who waited for the parent has taken over its children's time with its own.
        let mut heir = by_pid.get(&snapshot.parent).copied();
        let mut steps = 0;
        while let Some(candidate) = heir
            && !now.contains_key(&candidate)
            && steps < before.len()
        {
            heir = before.get(&candidate).and_then(|snapshot| by_pid.get(&snapshot.parent)).copied();
            steps += 1;
        }
        let heir = heir.filter(|candidate| now.contains_key(candidate));
        *left_to.entry(heir).or_default() += snapshot.own_ns + snapshot.waited_ns;
    }
    left_to
        .into_iter()
        .map(|(heir, left)| {
            let taken =
                heir.and_then(|heir| Some(now.get(&heir)?.waited_ns.saturating_sub(before.get(&heir)?.waited_ns)));
            let missing = left.saturating_sub(taken.unwrap_or(0));
            // What a parent took over is shown in whole ticks, of user and of system time: so much may seem missing
            // although it is not.
            if heir.is_some() && missing <= 2 * TICK_NS { 0 } else { missing }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn tree(processes: &[(u32, u32, u64, u64)]) -> HashMap<Identity, ProcessSnapshot> {
        processes
            .iter()
            .map(|&(pid, parent, own_ms, waited_ms)| {
                let snapshot = ProcessSnapshot {
                    parent,
                    own_ns: own_ms * MS,
                    waited_ns: waited_ms * MS,
                    user_ticks: 0,
                    system_ticks: 0,
                };
                (Identity { pid, start_ticks: 1 }, snapshot)
            })
            .collect()
    }

    #[test]
    fn what_an_ended_child_used_is_counted_once() {
        // (pid, parent, own ms, waited ms) before and now; unclaimed ms
        type Processes = &'static [(u32, u32, u64, u64)];
        let table: [(&str, Processes, Processes, u64); 7] = [
            ("nobody ended", &[(1, 0, 5, 0), (2, 1, 70, 0)], &[(1, 0, 6, 0), (2, 1, 90, 0)], 0),
            ("waited for", &[(1, 0, 5, 0), (2, 1, 70, 0)], &[(1, 0, 5, 80)], 0),
            ("waited for, rounded down", &[(1, 0, 5, 0), (2, 1, 79, 0)], &[(1, 0, 5, 60)], 0),
            ("not waited for", &[(1, 0, 5, 0), (2, 1, 70, 0)], &[(1, 0, 5, 0)], 70),
            ("with its own child", &[(1, 0, 5, 0), (2, 1, 70, 10), (3, 2, 50, 0)], &[(1, 0, 5, 130)], 0),
            ("the parent went too", &[(1, 0, 5, 0), (2, 1, 70, 0), (3, 2, 50, 0)], &[(1, 0, 5, 70)], 50),
            ("the first one", &[(1, 0, 5, 30), (2, 1, 70, 0)], &[(2, 9, 70, 0)], 35),
        ];
        for (name, before, now, expected) in table {
            assert_eq!(unclaimed(&tree(before), &tree(now)), expected * MS, "{name}");
        }
    }
}
