//! One target under observation: its readers, and what they have read so far.

use std::collections::BTreeMap;

use unladen_journal::record::ProcessRecord;
use unladen_linux::monotonic_ns;
use unladen_stats::estimate::halves;

use super::cpu::{Cpu, CpuReader};
use super::files::{Written, descriptors};
use super::jvm::{self, Jvms};
use super::memory::{Memory, pss};
use super::network::{Bytes, Traffic};
use super::observation::LiveProcess;
use super::switches::Switches;
use super::target::Target;
use super::throttle::Throttle;
use super::timeline::Row;
use super::tree::Tree;

/// Counters are stretched or shrunk to the window when they were read over a time that differs from it by more than
/// this share. Below it the plain difference stands, which anybody can check in the timeline.
const SCALE_ABOVE: f64 = 0.001;

/// Least time from one sample to the next over which it is told how many cores were used.
const MIN_STEP_NS: u64 = 500_000_000;
/// Steps that each half of a window must have for the two to be compared.
const HALF: usize = 2;

/// One target.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) target: Target,
    tree: Tree,
    cpu: CpuReader,
    throttle: Throttle,
    first: Option<Cpu>,
    last: Option<Reading>,
    start: Option<Edge>,
    end: Option<Edge>,
    /// Seconds since the window's start, bytes.
    rss: Vec<(f64, u64)>,
    /// What the last collection has left, likewise.
    heap: Vec<(f64, u64)>,
    /// Cores that it used in each step of the window, in turn.
    cores: Vec<f64>,
    peak: Option<u64>,
    pss: Option<u64>,
    threads: Option<u64>,
    /// Since the window's start.
    pub(super) network: Option<Traffic>,
    jvms: Jvms,
    descriptors: Option<u64>,
    vanished: bool,
}

/// What the CPU time did since the sample before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CpuStep {
    /// Used since the sample before, ns.
    used_ns: Option<u64>,
    /// Time since the sample before, ns.
    elapsed_ns: u64,
    /// Used since the first sample, ns.
    total_ns: Option<u64>,
}

/// A reading of the CPU time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at_ns: u64,
    cpu: Cpu,
}

/// What is read at the two ends of the window.
#[derive(Debug)]
struct Edge {
    reading: Option<Reading>,
    switches: Switches,
    written: Written,
    throttled: Vec<Option<u64>>,
}

/// Where a sample stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Before,
    Start,
    Within,
    End,
}

impl Watch {
    pub(super) fn new(target: Target) -> Self {
        let cpu = CpuReader::new(target.cgroup.as_ref());
        let throttle = Throttle::new(target.cgroup.as_ref());
        let tree = Tree::new(target.family.clone());
        Self {
            target,
            tree,
            cpu,
            throttle,
            first: None,
            last: None,
            start: None,
            end: None,
            rss: Vec::new(),
            heap: Vec::new(),
            cores: Vec::new(),
            peak: None,
            pss: None,
            threads: None,
            network: None,
            jvms: Jvms::default(),
            descriptors: None,
            vanished: false,
        }
    }

    /// Reads the CPU time. All targets are read before anything dearer is, so that their instants are close together.
    pub(super) fn read_cpu(&mut self, place: Place) -> CpuStep {
        let cpu = self.cpu.read(&mut self.tree);
        let at_ns = monotonic_ns();
        let reading = cpu.map(|cpu| Reading { at_ns, cpu });
        let before = self.last;
        if let Some(cpu) = cpu {
            self.first.get_or_insert(cpu);
        }
        self.last = reading;
        let edge = || Edge {
            reading,
            switches: Switches::default(),
            written: Written::default(),
            throttled: self.throttle.read(),
        };
        match place {
            Place::Start => self.start = Some(edge()),
            Place::End => self.end = Some(edge()),
            Place::Before | Place::Within => {}
        }
        CpuStep {
            used_ns: reading.zip(before).map(|(now, before)| now.cpu.total_ns.saturating_sub(before.cpu.total_ns)),
            elapsed_ns: before.map_or(0, |before| at_ns.saturating_sub(before.at_ns)),
            total_ns: cpu.zip(self.first).map(|(now, first)| now.total_ns.saturating_sub(first.total_ns)),
        }
    }

    /// Reads everything else; returns whether the first process was found gone for the first time.
    pub(super) fn read_rest(
        &mut self,
        place: Place,
        step: CpuStep,
        pids: &[u32],
        t_s: f64,
        rows: &mut Vec<Row>,
    ) -> (LiveProcess, bool) {
        let memory = Memory::of(pids);
        self.threads = memory.map(|memory| memory.threads);
        self.peak = self.peak.max(memory.map(|memory| memory.peak.max(memory.rss)));
        if place != Place::Before {
            self.rss.extend(memory.map(|memory| (t_s, memory.rss)));
        }
        match (place, &mut self.start, &mut self.end) {
            (Place::Start, Some(edge), _) => (edge.switches, edge.written) = (Switches::of(pids), Written::of(pids)),
            (Place::End, _, Some(edge)) => {
                (edge.switches, edge.written) = (Switches::of(pids), Written::of(pids));
                self.descriptors = descriptors(pids);
                self.pss = pss(pids);
            }
            _ => {}
        }
        let alive = self.target.family.root.is_alive();
        let newly_gone = !alive && !self.vanished;
        self.vanished |= !alive;

        let cores = step.used_ns.filter(|_| step.elapsed_ns > 0).map(|used| used as f64 / step.elapsed_ns as f64);
        // What is left of the last second may be too short to tell anything.
        let is_whole = step.elapsed_ns >= MIN_STEP_NS && matches!(place, Place::Within | Place::End);
        self.cores.extend(cores.filter(|_| is_whole));
        let live = LiveProcess {
            service: self.target.service.clone(),
            replica: self.target.replica,
            role: self.target.role,
            cpu: cores,
            rss: memory.map(|memory| memory.rss),
            threads: memory.map(|memory| memory.threads),
            alive,
        };
        let values = [
            ("cpu_ns", step.total_ns.map(|ns| ns as f64)),
            ("cpu_cores", cores),
            ("rss", live.rss.map(|bytes| bytes as f64)),
            ("threads", live.threads.map(|threads| threads as f64)),
            ("network_received", self.network.map(|traffic| traffic.all.received as f64)),
            ("network_sent", self.network.map(|traffic| traffic.all.sent as f64)),
            ("telemetry_bytes", self.network.and_then(|traffic| traffic.telemetry).map(|bytes| bytes.total() as f64)),
        ];
        rows.extend(values.into_iter().filter_map(|(metric, value)| Some(self.row(t_s, metric, value?))));
        // The instrument is no JVM.
        if self.target.role.is_some() {
            let values = self.jvms.sample(pids, place != Place::Before, place == Place::End);
            if place != Place::Before {
                let left = values.iter().find(|(name, _)| *name == jvm::HEAP_AFTER_GC);
                self.heap.extend(left.map(|(_, bytes)| (t_s, *bytes as u64)));
            }
            rows.extend(values.into_iter().map(|(metric, value)| self.row(t_s, metric, value)));
        }
        (live, newly_gone)
    }

    /// A row of the timeline about this target.
    pub(super) fn row(&self, t_s: f64, metric: &'static str, value: f64) -> Row {
        Row {
            t_s,
            service: self.target.service.clone(),
            replica: self.target.replica,
            role: self.target.role,
            metric: metric.into(),
            value,
        }
    }

    /// Processes of the target now.
    pub(super) fn pids(&self) -> Vec<u32> {
        match &self.target.cgroup {
            Some(cgroup) if !matches!(self.cpu, CpuReader::Tree) => cgroup.processes(),
            _ => self.tree.last_pids(),
        }
    }

    /// How late the counters were read at the window's start and end, ns.
    pub(super) fn lateness(&self, window: (u64, u64)) -> (u64, u64) {
        let late = |edge: &Option<Edge>, due: u64| {
            edge.as_ref().and_then(|edge| edge.reading).map_or(0, |reading| reading.at_ns.saturating_sub(due))
        };
        (late(&self.start, window.0), late(&self.end, window.1))
    }

    /// CPU time over the window, ns.
    pub(super) fn cpu_ns(&self, (start_ns, end_ns): (u64, u64)) -> Option<u64> {
        let (start, end) = self.edges()?;
        let used = end.cpu.total_ns.saturating_sub(start.cpu.total_ns);
        Some(to_window(used, end.at_ns.saturating_sub(start.at_ns), end_ns.saturating_sub(start_ns)))
    }

    fn edges(&self) -> Option<(Reading, Reading)> {
        self.start.as_ref()?.reading.zip(self.end.as_ref()?.reading)
    }

    /// The record of the window.
    pub(super) fn record(&self, window: (u64, u64)) -> ProcessRecord {
        let cpu_ns = self.cpu_ns(window);
        let edges = self.start.as_ref().zip(self.end.as_ref());
        let switches = edges.and_then(|(start, end)| end.switches.since(&start.switches));
        let split = self.edges().zip(cpu_ns).and_then(|((start, end), ns)| end.cpu.split_since(&start.cpu, ns));
        ProcessRecord {
            service: self.target.service.clone(),
            replica: self.target.replica,
            role: self.target.role,
            pid: self.target.family.root.pid,
            cpu_source: self.cpu.source(),
            cpu_ns,
            cpu_user_ns: split.map(|(user, _)| user),
            cpu_system_ns: split.map(|(_, system)| system),
            cpu_halves: halves(&self.cores, HALF),
            rss: median(&self.rss),
            rss_floor: floor(&self.rss),
            heap_floor: floor(&self.heap),
            rss_peak: self.peak,
            pss: self.pss,
            threads: self.threads,
            voluntary_switches: switches.map(|(voluntary, _)| voluntary),
            involuntary_switches: switches.map(|(_, involuntary)| involuntary),
            network_received: self.network.map(|traffic| traffic.all.received),
            network_sent: self.network.map(|traffic| traffic.all.sent),
            throttled_ns: edges.and_then(|(start, end)| Throttle::between(&start.throttled, &end.throttled)),
            ended: if self.vanished { "ended in the window" } else { "running" }.to_owned(),
            extra: self.extra(),
            ..ProcessRecord::default()
        }
    }
}

impl Watch {
    /// What has no field of its own in the record.
    fn extra(&self) -> BTreeMap<String, f64> {
        let edges = self.start.as_ref().zip(self.end.as_ref());
        let values = [
            ("descriptors", self.descriptors),
            ("disk_written", edges.and_then(|(start, end)| end.written.since(&start.written))),
            ("telemetry_bytes", self.network.and_then(|traffic| traffic.telemetry).map(Bytes::total)),
        ];
        let mut extra: BTreeMap<String, f64> =
            values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value? as f64))).collect();
        for (name, value) in self.jvms.numbers() {
            *extra.entry(name.to_owned()).or_default() += value;
        }
        extra
    }
}

/// A counter's difference over `over_ns`, as it would be over the window.
fn to_window(used: u64, over_ns: u64, window_ns: u64) -> u64 {
    let ratio = window_ns as f64 / over_ns as f64;
    if over_ns == 0 || (ratio - 1.0).abs() <= SCALE_ABOVE { used } else { (used as f64 * ratio).round() as u64 }
}

/// Most points of a floor: a line of the journal stays readable, and the slope of a run needs no more.
const FLOOR_POINTS: usize = 240;

/// The least of each stretch of samples, at the middle of its time. The stretches have one length, the least that leaves at
/// most [`FLOOR_POINTS`]; a remainder is left out, since fewer samples have a higher minimum.
fn floor(samples: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let per_stretch = samples.len().div_ceil(FLOOR_POINTS).max(1);
    let least = |stretch: &[(f64, u64)]| {
        let (first, last) = (stretch.first()?, stretch.last()?);
        Some((f64::midpoint(first.0, last.0), stretch.iter().map(|(_, bytes)| *bytes).min()?))
    };
    samples.chunks_exact(per_stretch).filter_map(least).collect()
}

/// The middle of the samples.
fn median(samples: &[(f64, u64)]) -> Option<u64> {
    let mut sorted: Vec<u64> = samples.iter().map(|(_, bytes)| *bytes).collect();
    sorted.sort_unstable();
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(lower.midpoint(upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_scaled_to_the_window_only_when_it_was_missed_by_much() {
        for (used, over_ns, window_ns, expected) in [
            (1_000_003, 5_000_000_000, 5_000_000_000, 1_000_003),
            (1_000_003, 5_004_000_000, 5_000_000_000, 1_000_003),
            (1_000_000, 5_500_000_000, 5_000_000_000, 909_091),
            (1_000_000, 2_500_000_000, 5_000_000_000, 2_000_000),
            (7, 0, 5_000_000_000, 7),
        ] {
            assert_eq!(to_window(used, over_ns, window_ns), expected, "{used} over {over_ns}");
        }
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        for (samples, expected) in [
            (vec![], None),
            (vec![5], Some(5)),
            (vec![9, 1], Some(5)),
            (vec![9, 1, 4], Some(4)),
            (vec![u64::MAX, 1, u64::MAX, 3], Some(3_u64.midpoint(u64::MAX))),
        ] {
            let timed: Vec<(f64, u64)> = samples.iter().map(|bytes| (0.0, *bytes)).collect();
            assert_eq!(median(&timed), expected, "{samples:?}");
        }
    }

    #[test]
    fn the_floor_keeps_short_windows_whole_and_long_ones_small() {
        let samples = |n: u32| -> Vec<(f64, u64)> { (0..n).map(|t| (f64::from(t), 100 + u64::from(t % 7))).collect() };
        assert_eq!(floor(&samples(20)), samples(20));
        assert_eq!(floor(&[]), []);
        // Twenty minutes: stretches of six seconds, at 2.5 s, 8.5 s, …, each with a 0 or a 1 of the seven teeth.
        let long = floor(&samples(1201));
        assert_eq!(long.len(), 200);
        assert_eq!(long[0], (2.5, 100));
        assert!(long.iter().all(|(_, bytes)| *bytes <= 101));
    }
}
