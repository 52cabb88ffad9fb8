//! The machine as a whole: how busy, what the hypervisor took, how long something waited for a CPU, memory left.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use unladen_journal::record::HostWindow;

use unladen_linux::clock::TICKS_PER_SECOND;
use unladen_linux::hierarchy::Mounts;

/// Reads the machine's counters; keeps the files open.
#[derive(Debug)]
pub struct HostReader {
    stat: Option<File>,
    pressure: Option<File>,
    memory: Option<File>,
}

/// The machine's counters at one instant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Host {
    /// Busy time since boot by core (user, nice, system, irq, softirq), seconds; guests are in user time already.
    pub busy_s: Vec<f64>,
    /// Time that the hypervisor took since boot, seconds, all cores together.
    pub steal_s: f64,
    /// Time since boot in which something waited for a CPU, µs. `None` where the kernel does not keep it.
    pub pressure_us: Option<u64>,
    /// Memory that can be had without swapping, bytes.
    pub memory_available: Option<u64>,
}

impl HostReader {
    /// Opens what is there.
    #[must_use]
    pub fn new() -> Self {
        let open = |path| File::open(path).ok();
        Self { stat: open("/proc/stat"), pressure: open("/proc/pressure/cpu"), memory: open("/proc/meminfo") }
    }

    /// Reads all of it; `None` without `/proc/stat`.
    #[must_use]
    pub fn read(&self) -> Option<Host> {
        let mut host = parse_stat(&text(self.stat.as_ref()?)?)?;
        host.pressure_us = self.pressure.as_ref().and_then(text).and_then(|text| parse_pressure(&text));
        host.memory_available = self.memory.as_ref().and_then(text).and_then(|text| parse_available(&text));
        Some(host)
    }
}

impl Default for HostReader {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Busy time of all cores since an earlier reading, seconds.
    fn busy_since(&self, earlier: &Self) -> f64 {
        (self.busy_s.iter().sum::<f64>() - earlier.busy_s.iter().sum::<f64>()).max(0.0)
    }

    /// The window between two readings that are `elapsed_s` apart, in which the study and the instrument used `ours_s`.
    #[must_use]
    pub fn window(&self, start: &Self, elapsed_s: f64, ours_s: f64) -> HostWindow {
        let busy_s = self.busy_since(start);
        let pressure = self.pressure_us.zip(start.pressure_us);
        HostWindow {
            cores: u32::try_from(self.busy_s.len()).unwrap_or(u32::MAX),
            busy_s,
            // Busy time is sampled by ticks and ours is exact, so a quiet machine can come out a little below nothing.
            others_s: (busy_s - ours_s).max(0.0),
            steal_s: (self.steal_s - start.steal_s).max(0.0),
            cpu_pressure: pressure
                .filter(|_| elapsed_s > 0.0)
                .map(|(end, start)| (end.saturating_sub(start) as f64 / 1e6 / elapsed_s).clamp(0.0, 1.0)),
            memory_available: self.memory_available.unwrap_or(0),
        }
    }
}

/// The `cpu` lines of `/proc/stat`; see proc_stat(5).
fn parse_stat(text: &str) -> Option<Host> {
    let mut host = Host::default();
    for line in text.lines().take_while(|line| line.starts_with("cpu")) {
        let mut fields = line.split_ascii_whitespace();
        let name = fields.next()?;
        let mut ticks = [0_u64; 8];
        for (tick, field) in ticks.iter_mut().zip(fields) {
            *tick = field.parse().ok()?;
        }
        let [user, nice, system, _idle, _waiting, irq, softirq, steal] = ticks;
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SECOND as f64;
        if name == "cpu" {
            host.steal_s = seconds(steal);
        } else {
            host.busy_s.push(seconds(user + nice + system + irq + softirq));
        }
    }
    (!host.busy_s.is_empty()).then_some(host)
}

/// `some … total=µs` of a file in `/proc/pressure`, as the kernel writes it.
#[must_use]
pub fn parse_pressure(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("some ")?.rsplit_once("total=")?.1.trim().parse().ok())
}

/// Memory that can be had without swapping, bytes, by the machine and by the limits of the control groups around this process; `None`: the
/// kernel does not say.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let machine = parse_available(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = Mounts::of_this_process().own_groups();
    groups.iter().flat_map(|group| group.ancestors()).filter_map(left_in_group).chain([machine]).min()
}

/// The memory limit of a control group, bytes; `None` without one.
#[must_use]
pub fn memory_limit(group: &Path) -> Option<u64> {
    // Version 1 writes "no limit" as the largest whole number of pages.
    const UNLIMITED: u64 = 1 << 60;
    either(group, "memory.max", "memory.limit_in_bytes").filter(|limit| *limit < UNLIMITED)
}

/// What is left of a control group's limit, bytes. File pages that nobody has used for a while are given back before anybody is killed.
fn left_in_group(group: &Path) -> Option<u64> {
    let limit = memory_limit(group)?;
    let used = either(group, "memory.current", "memory.usage_in_bytes")?;
    let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let idle = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let idle = idle("total_inactive_file ").or_else(|| idle("inactive_file ")).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(idle)))
}

/// A number of a control group, by its name in version 2 and in version 1.
fn either(group: &Path, v2: &str, v1: &str) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    read(v2).or_else(|| read(v1))
}

fn parse_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok()?.checked_mul(1024)
}

/// As much as is needed of a file that stays open: the lines of 500 cores fit.
fn text(file: &File) -> Option<String> {
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], length as u64).ok()? {
            0 => break,
            read => length += read,
        }
    }
    buffer.truncate(length);
    Some(String::from_utf8_lossy(&buffer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_groups_limit_does_not_count_idle_file_pages() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        assert_eq!(left_in_group(folder.path()), None);
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "700\n");
        assert_eq!(left_in_group(folder.path()), None);
        write("memory.limit_in_bytes", "1000\n");
        write("memory.stat", "inactive_file 50\ntotal_inactive_file 100\n");
        assert_eq!(left_in_group(folder.path()), Some(400));
        write("memory.max", "800\n");
        write("memory.current", "900\n");
        write("memory.stat", "inactive_file 50\n");
        assert_eq!(left_in_group(folder.path()), Some(0));
    }

    const STAT: &str = "cpu  300 20 100 5000 7 30 40 50 9 0\ncpu0 100 10 50 2500 3 10 20 25 9 0\n\
                        cpu1 200 10 50 2500 4 20 20 25 0 0\nintr 12345 0 0\nctxt 99\n";

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let mut start = parse_stat(STAT).expect("two cores");
        assert_eq!((start.busy_s.clone(), start.steal_s), (vec![1.9, 3.0], 0.5));
        start.pressure_us = Some(1_000_000);
        let mut end = start.clone();
        end.busy_s = vec![2.9, 4.5];
        end.steal_s = 0.75;
        end.pressure_us = Some(3_000_000);
        end.memory_available = Some(42);
        let window = end.window(&start, 5.0, 2.0);
        assert_eq!(window.cores, 2);
        assert!((window.busy_s - 2.5).abs() < 1e-9 && (window.others_s - 0.5).abs() < 1e-9);
        assert!((window.steal_s - 0.25).abs() < 1e-9);
        assert_eq!((window.cpu_pressure, window.memory_available), (Some(0.4), 42));
        // Ticks are sampled, ours is not: never less than nothing.
        assert!(end.window(&start, 5.0, 3.0).others_s.abs() < 1e-9);
        start.pressure_us = None;
        assert_eq!(end.window(&start, 5.0, 2.0).cpu_pressure, None, "unknown is not zero");
    }

    #[test]
    fn the_other_files_are_read_as_the_kernel_writes_them() {
        let text =
            "some avg10=0.00 avg60=0.06 avg300=0.25 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse_pressure(text), Some(1_234_567));
        assert_eq!(parse_pressure(""), None);
        assert_eq!(parse_available("MemTotal:  100 kB\nMemFree:  3 kB\nMemAvailable:   50 kB\n"), Some(51_200));
        assert_eq!(parse_stat("ctxt 99\n"), None);
        let host = HostReader::new().read().expect("this is Linux");
        assert!(!host.busy_s.is_empty() && host.memory_available.is_some_and(|bytes| bytes > 1 << 20));
    }
}
