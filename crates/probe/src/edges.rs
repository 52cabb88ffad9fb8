//! CPU times of many targets, and of the machine, read at instants that somebody else knows: between the turns of an alternating load,
//! by the process that sends it.
//!
//! Where JIT compilers are told apart, their CPU time is read as well, between two groups: a compiler at work is no cost of a request, and the
//! code that waits for it is interpreted meanwhile, so a group in which one was unusually busy does not count for anybody.

use std::path::Path;

use serde::{Deserialize, Serialize};
use unladen_linux::clock::{own_cpu_ns, process_cpu_ns};
use unladen_linux::process::Stat;
use unladen_linux::tree::Family;
use unladen_linux::{Cgroup, monotonic_ns};
use unladen_load::alternate::{Fate, Meter};
use unladen_stats::estimate::median;

use super::cpu::CpuReader;
use super::host::HostReader;
use super::jvm::JitClock;
use super::remote::RemoteCounters;
use super::target::Remote;
use super::tree::Tree;

/// Share of the machine that others may take while a group of turns lasts, before the group does not count …
const DISTURBED: f64 = 0.15;
/// … and how many times what they usually take, if that is more: on a machine that is always busy nothing would be left.
const UNUSUAL: f64 = 2.0;
/// The same for the share of its own CPU time that a target's JIT compilers may take.
const COMPILING: f64 = 0.2;

/// Whose CPU time is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its first process, and what its descendants can be told by.
    pub family: Family,
    /// Its control group; without one, the process tree is read.
    pub cgroup: Option<Cgroup>,
    /// The probe that reads it, if it is not this process. What its JIT compilers use is not told apart.
    #[serde(default)]
    pub remote: Option<Remote>,
}

/// What is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sources {
    /// Services, sinks and whatever else is ours.
    pub targets: Vec<Source>,
    /// unladen's own process: it reaps the orphans of the services, and what it uses is ours.
    pub unladen: u32,
    /// Whether JIT compilers are told apart.
    pub compilers: bool,
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
    /// CPU time of the JIT compilers by target, ns, at the edges between groups; empty at others, and where compilers are not told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiling_ns: Vec<u64>,
}

impl Edge {
    /// CPU time of a target's JIT compilers since an earlier edge, ns. `None`: it was not read.
    #[must_use]
    pub fn compiling_since(&self, earlier: &Self, target: usize) -> Option<u64> {
        Some(self.compiling_ns.get(target)?.saturating_sub(*earlier.compiling_ns.get(target)?))
    }

    /// The largest share of a target's CPU time since an earlier edge that was its JIT compilers'.
    fn compiling_share(&self, earlier: &Self) -> f64 {
        let share = |target: usize| {
            let used = self.cpu_ns[target]?.saturating_sub((*earlier.cpu_ns.get(target)?)?);
            (used > 0).then_some(self.compiling_since(earlier, target)? as f64 / used as f64)
        };
        (0..self.cpu_ns.len()).filter_map(share).fold(0.0, f64::max)
    }

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
    readers: Vec<Reader>,
    unladen: u32,
    machine: Machine,
    edges: Vec<Edge>,
    /// By target, if JIT compilers are told apart.
    compilers: Option<Vec<JitClock>>,
    /// Edge at which the group under way began.
    group: usize,
    /// What others took of the machine during the groups so far.
    taken: Usual,
    /// What JIT compilers took of a target's CPU time.
    compiled: Usual,
}

/// Who reads the counters of a target.
#[derive(Debug)]
enum Reader {
    Local(CpuReader, Tree),
    Remote(RemoteCounters),
}

impl Reader {
    fn of(Source { family, cgroup, remote }: Source, unladen: u32) -> Self {
        match remote {
            Some(remote) => Self::Remote(RemoteCounters::new(&remote)),
            None => Self::Local(CpuReader::new(cgroup.as_ref()), Tree::below(family, unladen)),
        }
    }

    fn remote(&self) -> Option<&RemoteCounters> {
        if let Self::Remote(remote) = self { Some(remote) } else { None }
    }
}

/// What is usual so far.
#[derive(Debug, Default)]
struct Usual(Vec<f64>);

impl Usual {
    /// Whether a further share is more than usual, and more than `least`.
    fn is_exceeded(&mut self, share: f64, least: f64) -> bool {
        let limit = least.max(UNUSUAL * median(&self.0).unwrap_or(0.0));
        self.0.push(share);
        share > limit
    }
}

impl Edges {
    /// Of these; nothing is read yet.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        let Sources { targets, unladen, compilers } = sources;
        let readers: Vec<_> = targets.into_iter().map(|source| Reader::of(source, unladen)).collect();
        let compilers = compilers.then(|| readers.iter().map(|_| JitClock::default()).collect());
        Self {
            readers,
            unladen,
            machine: Machine::new(),
            edges: Vec::new(),
            compilers,
            group: 0,
            taken: Usual::default(),
            compiled: Usual::default(),
        }
    }

    /// Puts what the JIT compilers have used so far into the last edge.
    fn read_compilers(&mut self) {
        let (Some(clocks), Some(edge)) = (&mut self.compilers, self.edges.last_mut()) else { return };
        let used = |(clock, reader): (&mut JitClock, &mut Reader)| match reader {
            Reader::Local(_, tree) => clock.read(&tree.processes().iter().map(Stat::identity).collect::<Vec<_>>()),
            Reader::Remote(_) => 0,
        };
        edge.compiling_ns = clocks.iter_mut().zip(&mut self.readers).map(used).collect();
    }

    /// Reads all counters now.
    pub fn read(&mut self) -> Edge {
        // First those elsewhere are asked: they read while this process does.
        for reader in &mut self.readers {
            if let Reader::Remote(remote) = reader {
                remote.begin();
            }
        }
        let mut of_probes = 0;
        let read = |reader: &mut Reader| match reader {
            Reader::Local(reader, tree) => Some(reader.read(tree)?.total_ns),
            Reader::Remote(remote) => {
                let seen = remote.counters()?;
                of_probes += seen.own_ns;
                seen.cpu_ns
            }
        };
        let cpu_ns: Vec<Option<u64>> = self.readers.iter_mut().map(read).collect();
        let (machine_ns, steal_ns) = self.machine.read();
        let of_unladen = if self.unladen == std::process::id() { 0 } else { process_cpu_ns(self.unladen).unwrap_or(0) };
        let ours_ns = cpu_ns.iter().flatten().sum::<u64>() + of_probes + of_unladen + own_cpu_ns();
        Edge { at_ns: monotonic_ns(), cpu_ns, ours_ns, machine_ns, steal_ns, compiling_ns: Vec::new() }
    }

    /// Why the counters of a target are missing whose probe is elsewhere.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.readers.iter().filter_map(Reader::remote).find_map(RemoteCounters::failure)
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
        if self.edges.len() == 1 {
            self.read_compilers();
        }
    }

    fn fate(&mut self) -> Fate {
        self.read_compilers();
        let (Some(start), Some(end)) = (self.edges.get(self.group), self.edges.last()) else { return Fate::Counts };
        let (taken, compiled) = (end.taken_since(start, self.machine.cores), end.compiling_share(start));
        self.group = self.edges.len() - 1;
        match (self.taken.is_exceeded(taken, DISTURBED), self.compiled.is_exceeded(compiled, COMPILING)) {
            (true, _) => Fate::Disturbed,
            (_, true) => Fate::Compiling,
            _ => Fate::Counts,
        }
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
            ..Edge::default()
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
        let mut edges = Edges::new(Sources { unladen: std::process::id(), ..Sources::default() });
        edges.machine.cores = 2.0;
        let (mut at, mut machine) = (0, 0);
        edges.edges.push(edge(0, 0, 0, 0));
        let mut group = |taken: f64| {
            at += 300;
            machine += (taken * 600.0) as u64;
            edges.edges.push(edge(at, 0, machine, 0));
            edges.fate() == Fate::Counts
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
    fn a_group_in_which_one_target_compiles_unusually_much_does_not_count() {
        let mut edges = Edges::new(Sources { unladen: std::process::id(), ..Sources::default() });
        let mut last = Edge { cpu_ns: vec![Some(0), None, Some(0)], compiling_ns: vec![0; 3], ..Edge::default() };
        edges.edges.push(last.clone());
        // Two targets use 100 ms each in a group, of which their compilers use so many.
        let mut group = |first_ms: u64, second_ms: u64| {
            last.at_ns += 300_000_000;
            for (target, ms) in [(0, first_ms), (2, second_ms)] {
                last.cpu_ns[target] = last.cpu_ns[target].map(|ns| ns + 100_000_000);
                last.compiling_ns[target] += ms * 1_000_000;
            }
            edges.edges.push(last.clone());
            edges.fate()
        };
        assert_eq!([group(0, 0), group(9, 0), group(0, 10), group(0, 0)], [Fate::Counts; 4]);
        assert_eq!([group(21, 0), group(0, 60)], [Fate::Compiling; 2]);
        // A compiler that never rests is part of the service.
        (0..12).for_each(|_| {
            group(0, 40);
        });
        assert_eq!([group(0, 40), group(0, 70), group(0, 90)], [Fate::Counts, Fate::Counts, Fate::Compiling]);
        let [one, other] = [&edges.edges[1], &edges.edges[2]];
        assert_eq!((other.compiling_since(one, 0), other.compiling_since(one, 3)), (Some(9_000_000), None));
    }

    #[test]
    fn this_process_is_read_by_its_tree() {
        let family = Family {
            root: unladen_linux::process::Identity::of(std::process::id()).expect("this process"),
            mark: String::new(),
        };
        let mut edges = Edges::new(Sources {
            targets: vec![Source { family, cgroup: None, remote: None }],
            unladen: 1,
            compilers: true,
        });
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
