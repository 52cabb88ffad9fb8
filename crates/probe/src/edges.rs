//! CPU times of many targets, and of the machine, read at instants that somebody else knows: between the turns of an alternating load,
//! by the process that sends it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use unladen_linux::clock::{own_cpu_ns, process_cpu_ns};
use unladen_linux::tree::Family;
use unladen_linux::{Cgroup, monotonic_ns};
use unladen_load::alternate::Meter;
use unladen_stats::estimate::median;

use super::cpu::CpuReader;
use super::host::HostReader;
use super::tree::Tree;

/// Share of the machine that others may take while a group of turns lasts, before the group does not count …
const DISTURBED: f64 = 0.15;
/// … and how many times what they usually take, if that is more: on a machine that is always busy nothing would be left.
const UNUSUAL: f64 = 2.0;

/// Whose CPU time is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its first process, and what its descendants can be told by.
    pub family: Family,
    /// Its control group; without one, the process tree is read.
    pub cgroup: Option<Cgroup>,
}

/// What is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sources {
    /// Services, sinks and whatever else is ours.
    pub targets: Vec<Source>,
    /// unladen's own process: it reaps the orphans of the services, and what it uses is ours.
    pub unladen: u32,
}

/// The counters at one instant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Edge {
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// CPU time by target, ns; `None`: it cannot be had.
    pub cpu_ns: Vec<Option<u64>>,
    /// CPU time of everything that is ours: the targets, unladen, and the process that reads; ns.
    pub ours_ns: u64,
    /// CPU time of the whole machine, ns.
    pub machine_ns: u64,
    /// Time that the hypervisor took, ns.
    pub steal_ns: u64,
}

impl Edge {
    /// Share of the machine that others (the hypervisor, too) took since an earlier edge.
    #[must_use]
    pub fn taken_since(&self, earlier: &Self, cores: f64) -> f64 {
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let all = since(self.at_ns, earlier.at_ns) * cores;
        let others = since(self.machine_ns, earlier.machine_ns) - since(self.ours_ns, earlier.ours_ns);
        if all > 0.0 { (others.max(0.0) + since(self.steal_ns, earlier.steal_ns)) / all } else { 0.0 }
    }
}

/// Reads edges and keeps them.
#[derive(Debug)]
pub struct Edges {
    readers: Vec<(CpuReader, Tree)>,
    unladen: u32,
    machine: Machine,
    edges: Vec<Edge>,
    /// Edge at which the group under way began.
    group: usize,
    /// What others took during the groups so far.
    taken: Vec<f64>,
}

impl Edges {
    /// Of these; nothing is read yet.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        let Sources { targets, unladen } = sources;
        let reader = |source: Source| (CpuReader::new(source.cgroup.as_ref()), Tree::below(source.family, unladen));
        let readers = targets.into_iter().map(reader).collect();
        Self { readers, unladen, machine: Machine::new(), edges: Vec::new(), group: 0, taken: Vec::new() }
    }

    /// Reads all counters now.
    pub fn read(&mut self) -> Edge {
        let cpu_ns: Vec<Option<u64>> =
            self.readers.iter_mut().map(|(reader, tree)| Some(reader.read(tree)?.total_ns)).collect();
        let (machine_ns, steal_ns) = self.machine.read();
        let of_unladen = if self.unladen == std::process::id() { 0 } else { process_cpu_ns(self.unladen).unwrap_or(0) };
        let ours_ns = cpu_ns.iter().flatten().sum::<u64>() + of_unladen + own_cpu_ns();
        Edge { at_ns: monotonic_ns(), cpu_ns, ours_ns, machine_ns, steal_ns }
    }

    /// What was read so far.
    #[must_use]
    pub fn into_edges(self) -> Vec<Edge> {
        self.edges
    }
}

impl Meter for Edges {
    fn edge(&mut self) {
        let edge = self.read();
        self.edges.push(edge);
    }

    fn was_undisturbed(&mut self) -> bool {
        let (Some(start), Some(end)) = (self.edges.get(self.group), self.edges.last()) else { return true };
        let taken = end.taken_since(start, self.machine.cores);
        self.group = self.edges.len() - 1;
        let limit = DISTURBED.max(UNUSUAL * median(&self.taken).unwrap_or(0.0));
        self.taken.push(taken);
        taken <= limit
    }
}

/// CPU time of the whole machine.
#[derive(Debug)]
struct Machine {
    host: HostReader,
    /// The root of the control groups counts exactly; `/proc/stat` may count by ticks.
    root: Option<CpuReader>,
    cores: f64,
}

impl Machine {
    fn new() -> Self {
        let host = HostReader::new();
        let cores = host.read().map_or(1, |host| host.busy_s.len()).max(1) as f64;
        Self { host, root: root(), cores }
    }

    /// Busy and stolen, ns.
    fn read(&mut self) -> (u64, u64) {
        let host = self.host.read().unwrap_or_default();
        let exact = self.root.as_ref().and_then(CpuReader::of_group).map(|cpu| cpu.total_ns);
        let ticks = (host.busy_s.iter().sum::<f64>() * 1e9) as u64;
        (exact.unwrap_or(ticks), (host.steal_s * 1e9) as u64)
    }
}

/// A reader of the root of the control groups, if this is the machine's and not a container's.
fn root() -> Option<CpuReader> {
    let v1 = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"];
    let reader =
        v1.iter().map(Path::new).find_map(CpuReader::v1).or_else(|| CpuReader::v2(Path::new("/sys/fs/cgroup")))?;
    let busy_s = HostReader::new().read()?.busy_s.iter().sum::<f64>();
    let counted_s = reader.of_group()?.total_ns as f64 / 1e9;
    // A group of a container has seen less than the machine has done; one that was made late, too.
    (counted_s >= 0.5 * busy_s).then_some(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(at_ms: u64, ours_ms: u64, machine_ms: u64, steal_ms: u64) -> Edge {
        let ns = |ms: u64| ms * 1_000_000;
        Edge {
            at_ns: ns(at_ms),
            ours_ns: ns(ours_ms),
            machine_ns: ns(machine_ms),
            steal_ns: ns(steal_ms),
            cpu_ns: Vec::new(),
        }
    }

    #[test]
    fn what_is_neither_ours_nor_idle_was_taken() {
        let start = edge(1_000, 50, 500, 0);
        for (end, taken) in [
            (edge(1_300, 150, 600, 0), 0.0),
            (edge(1_300, 150, 660, 0), 0.1),
            (edge(1_300, 150, 600, 60), 0.1),
            // Ours is exact and the machine's may be sampled: a little less than nothing is nothing.
            (edge(1_300, 150, 590, 0), 0.0),
            (start.clone(), 0.0),
        ] {
            assert!((end.taken_since(&start, 2.0) - taken).abs() < 1e-9, "{end:?}");
        }
    }

    #[test]
    fn a_group_that_is_more_disturbed_than_usual_does_not_count() {
        let mut edges = Edges::new(Sources { targets: Vec::new(), unladen: std::process::id() });
        edges.machine.cores = 2.0;
        let (mut at, mut machine) = (0, 0);
        edges.edges.push(edge(0, 0, 0, 0));
        let mut group = |taken: f64| {
            at += 300;
            machine += (taken * 600.0) as u64;
            edges.edges.push(edge(at, 0, machine, 0));
            edges.was_undisturbed()
        };
        assert!(group(0.0) && group(0.1) && group(0.02) && group(0.05));
        assert!(!group(0.5), "far more than usual");
        // On a machine that is always half busy nothing is thrown away once that is the rule.
        (0..12).for_each(|_| {
            group(0.5);
        });
        assert!(group(0.5) && group(0.6) && !group(1.2));
    }

    #[test]
    fn this_process_is_read_by_its_tree() {
        let family = Family {
            root: unladen_linux::process::Identity::of(std::process::id()).expect("this process"),
            mark: String::new(),
        };
        let mut edges = Edges::new(Sources { targets: vec![Source { family, cgroup: None }], unladen: 1 });
        let before = edges.read();
        let burnt = unladen_linux::clock::thread_cpu_ns() + 30_000_000;
        while unladen_linux::clock::thread_cpu_ns() < burnt {}
        let after = edges.read();
        let used = after.cpu_ns[0].expect("its CPU") - before.cpu_ns[0].expect("its CPU");
        // Other tests run beside this one.
        assert!(used >= 30_000_000, "{used} ns");
        assert!(after.machine_ns - before.machine_ns >= 10_000_000 && after.at_ns > before.at_ns);
    }
}
