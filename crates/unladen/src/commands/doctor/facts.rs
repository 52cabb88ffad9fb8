//! What the machine says about itself, and two seconds of watching it. No judgement; what cannot be read is `None`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use unladen_journal::record::HostWindow;
use unladen_linux::hierarchy::Mounts;
use unladen_linux::process::{self, Stat};
use unladen_linux::{Awake, CpuSet, Netns, clock, idle};
use unladen_probe::host::{HostReader, available_memory, memory_limit, parse_pressure};
use unladen_processes::subject::compose::Tool;
use unladen_processes::subject::container::{self, ContainerError, Engine};
use unladen_processes::subject::kubernetes::kubeconfigs;
use unladen_processes::subject::{Launcher, LauncherOptions, Partition, Topology, partition};

/// How long the machine is watched.
const WATCH: Duration = Duration::from_secs(2);
/// How many processes that use the machine are named.
const NAMED: usize = 3;
/// Sleeps of a millisecond whose overshoot is measured.
const SLEEPS: usize = 300;

/// What the doctor looks at.
#[derive(Debug)]
pub(super) struct Facts {
    /// Who gets which CPUs.
    pub(super) partition: Partition,
    /// Whether hyper-threads are in use.
    pub(super) smt: Option<bool>,
    /// Governor of the first CPU's frequency.
    pub(super) governor: Option<String>,
    /// Whether the CPU may go beyond its nominal frequency.
    pub(super) turbo: Option<bool>,
    /// Driver of the CPUs' idle states.
    pub(super) idle_driver: Option<String>,
    /// Whether a study can keep idle CPUs awake.
    pub(super) keeps_awake: bool,
    /// Kind of the control groups, or why there are none.
    pub(super) cgroups: Result<String, String>,
    /// Why services cannot be limited; `None`: they can.
    pub(super) no_limits: Option<String>,
    /// Whether network namespaces can be made; why not, and what to do.
    pub(super) networks: Result<(), String>,
    /// The container engine in words; `Ok(None)` where none is running, which only studies with images need.
    pub(super) engine: Result<Option<String>, String>,
    /// The Compose tool in words; `Ok(None)` where there is none, which only studies of Compose files need.
    pub(super) compose: Result<Option<String>, String>,
    /// The file that tells where a cluster is; `Ok(None)` where there is none, which only studies of a cluster need.
    pub(super) kubeconfig: Result<Option<PathBuf>, String>,
    /// The smallest CPU quota around unladen, in cores.
    pub(super) quota_cores: Option<f64>,
    /// The smallest memory limit around unladen, bytes.
    pub(super) memory_limit: Option<u64>,
    /// What a study can have of the machine's memory and of these limits, bytes.
    pub(super) memory_left: Option<u64>,
    /// The machine while it was watched; nothing in it is unladen's.
    pub(super) window: HostWindow,
    /// How long it was watched, seconds.
    pub(super) watched_s: f64,
    /// Who used the machine meanwhile: command, pid, cores; the busiest first.
    pub(super) busiest: Vec<(String, u32, f64)>,
    /// Share of that time in which something waited for memory.
    pub(super) memory_pressure: Option<f64>,
    /// Share of that time in which something waited for a disk.
    pub(super) io_pressure: Option<f64>,
    /// Pages that were swapped meanwhile.
    pub(super) swapped: Option<u64>,
    /// Clock source of the kernel.
    pub(super) clock: Option<String>,
    /// How much later than asked for sleeps of a millisecond end, µs: median and 99th percentile.
    pub(super) overshoot_us: (f64, f64),
    /// Open files: soft and hard limit.
    pub(super) files: (u64, u64),
    /// `kernel.io_uring_disabled`.
    pub(super) io_uring_disabled: Option<u64>,
    /// `kernel.randomize_va_space`.
    pub(super) address_randomisation: Option<u64>,
}

impl Facts {
    /// Asks and watches.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub(super) fn gather() -> anyhow::Result<Self> {
        let available = CpuSet::allowed()?;
        let partition = partition(&available, &Topology::read(Path::new("/sys"), &available), 1);
        let launcher = |limits: bool| Launcher::new(&LauncherOptions::new(std::process::id().into(), limits));
        let counting = launcher(false)?;
        let cgroups = match (counting.cgroup_version(), counting.no_cgroups()) {
            (Some(version), _) => Ok(version.to_string()),
            (None, reason) => Err(reason.unwrap_or("none").to_owned()),
        };
        drop(counting);
        let no_limits = launcher(true)?.no_limits();
        let groups = Mounts::of_this_process().own_groups();
        let around = || groups.iter().flat_map(|group| group.ancestors());
        let watched = Watched::now()?;
        let overshoot_us = overshoot(&partition.instrument);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Ok(Self {
            smt: number("/sys/devices/system/cpu/smt/active").map(|active| active == 1),
            governor: word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            turbo: turbo(),
            idle_driver: idle::driver(),
            keeps_awake: Awake::keep().is_some(),
            partition,
            cgroups,
            no_limits,
            networks: Netns::is_possible(),
            engine: engine(),
            compose: compose(),
            kubeconfig: kubeconfig(std::env::var_os("KUBECONFIG").as_deref(), std::env::home_dir().as_deref()),
            quota_cores: around().filter_map(quota).reduce(f64::min),
            memory_limit: around().filter_map(memory_limit).min(),
            memory_left: available_memory(),
            window: watched.window,
            watched_s: watched.seconds,
            busiest: watched.busiest,
            memory_pressure: watched.memory_pressure,
            io_pressure: watched.io_pressure,
            swapped: watched.swapped,
            clock: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            overshoot_us,
            files: (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX)),
            io_uring_disabled: number("/proc/sys/kernel/io_uring_disabled"),
            address_randomisation: number("/proc/sys/kernel/randomize_va_space"),
        })
    }
}

/// The engine that containers would be started by.
fn engine() -> Result<Option<String>, String> {
    match container::socket().and_then(|socket| Engine::connect(&socket)) {
        Ok(engine) => Ok(Some(engine.words().to_owned())),
        Err(ContainerError::NoEngine { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The tool that Compose files would be started by.
fn compose() -> Result<Option<String>, String> {
    let Ok(tool) = Tool::find() else { return Ok(None) };
    let version = tool.version().map_err(|error| format!("{} does not run: {error}", tool.program().display()))?;
    Ok(Some(format!("Compose {version} ({})", tool.program().display())))
}

/// The kubeconfig that studies of a cluster would go by: what the variable names, or the file in the home folder.
fn kubeconfig(named: Option<&OsStr>, home: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let found = kubeconfigs(named, home).into_iter().find(|path| path.is_file());
    match named.filter(|named| found.is_none() && !named.is_empty()) {
        Some(named) => Err(format!("KUBECONFIG is {}, which is not there", named.display())),
        None => Ok(found),
    }
}

/// The machine over [`WATCH`], while the doctor does nothing.
struct Watched {
    window: HostWindow,
    seconds: f64,
    busiest: Vec<(String, u32, f64)>,
    memory_pressure: Option<f64>,
    io_pressure: Option<f64>,
    swapped: Option<u64>,
}

impl Watched {
    fn now() -> anyhow::Result<Self> {
        let reader = HostReader::new();
        let read = || reader.read().context("/proc/stat cannot be read");
        let ticks = || -> BTreeMap<(u32, u64), u64> {
            let used = |it: &Stat| ((it.pid, it.start_ticks), it.user_ticks + it.system_ticks);
            process::all().iter().map(used).collect()
        };
        let waited = || ["memory", "io"].map(|what| parse_pressure(&file(&format!("/proc/pressure/{what}"))));
        let (processes, pressures, pages) = (ticks(), waited(), swapped());
        let (before, started) = (read()?, Instant::now());
        std::thread::sleep(WATCH);
        let seconds = started.elapsed().as_secs_f64();
        let window = read()?.window(&before, seconds, 0.0);
        let share = |index: usize| {
            let (end, start): (Option<u64>, Option<u64>) = (waited()[index], pressures[index]);
            Some((end?.saturating_sub(start?)) as f64 / 1e6 / seconds)
        };
        let mut busiest: Vec<(String, u32, f64)> = ticks()
            .into_iter()
            .filter(|((pid, _), _)| *pid != std::process::id())
            .filter_map(|(identity, used)| {
                let used = used - processes.get(&identity).copied().unwrap_or(used).min(used);
                let cores = used as f64 / clock::TICKS_PER_SECOND as f64 / seconds;
                let name = word(&format!("/proc/{}/comm", identity.0))?;
                (cores >= 0.01).then_some((name, identity.0, cores))
            })
            .collect();
        busiest.sort_by(|a, b| b.2.total_cmp(&a.2));
        busiest.truncate(NAMED);
        let swapped = swapped().zip(pages).map(|(end, start)| end.saturating_sub(start));
        Ok(Self { window, seconds, busiest, memory_pressure: share(0), io_pressure: share(1), swapped })
    }
}

/// The CPU quota of a control group, in cores; `None` without one.
fn quota(group: &Path) -> Option<f64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<f64>().ok();
    let (quota, period) = match fs::read_to_string(group.join("cpu.max")) {
        Ok(line) => {
            let mut words = line.split_ascii_whitespace();
            (words.next()?.parse::<f64>().ok()?, words.next()?.parse::<f64>().ok()?)
        }
        Err(_) => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Intel and everybody else say it in opposite ways.
fn turbo() -> Option<bool> {
    let off = number("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == 0);
    off.or_else(|| number("/sys/devices/system/cpu/cpufreq/boost").map(|on| on == 1))
}

/// Pages swapped in and out since boot.
fn swapped() -> Option<u64> {
    let text = file("/proc/vmstat");
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(of("pswpin ")? + of("pswpout ")?)
}

/// How much later than asked for sleeps of a millisecond end on these CPUs: median and 99th percentile, µs. That is how late the
/// load generator's requests would be sent.
fn overshoot(cpus: &CpuSet) -> (f64, f64) {
    let cpus = cpus.clone();
    let measure = move || {
        // Where it may not be bound it is measured all the same.
        let _ = cpus.bind_this_thread();
        let sleep = Duration::from_millis(1);
        let mut late: Vec<f64> = (0..SLEEPS)
            .map(|_| {
                let started = Instant::now();
                std::thread::sleep(sleep);
                started.elapsed().saturating_sub(sleep).as_secs_f64() * 1e6
            })
            .collect();
        late.sort_by(f64::total_cmp);
        (late[SLEEPS / 2], late[SLEEPS * 99 / 100])
    };
    std::thread::spawn(measure).join().unwrap_or_default()
}

/// A file of `/proc` or `/sys`; empty where it cannot be read.
fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn word(path: &str) -> Option<String> {
    Some(file(path).trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(path: &str) -> Option<u64> {
    word(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_is_what_the_variable_names_or_that_of_the_home_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = folder.path();
        let named = |names: &[&str]| std::env::join_paths(names.iter().map(|name| home.join(name))).expect("paths");
        assert_eq!(kubeconfig(None, Some(home)), Ok(None));
        assert!(kubeconfig(Some(&named(&["absent"])), Some(home)).is_err_and(|why| why.contains("absent")));
        fs::create_dir(home.join(".kube")).expect("a folder");
        for name in [".kube/config", "other"] {
            fs::write(home.join(name), "").expect("a file");
        }
        assert_eq!(kubeconfig(Some(OsStr::new("")), Some(home)), Ok(Some(home.join(".kube/config"))));
        assert_eq!(kubeconfig(Some(&named(&["absent", "other"])), None), Ok(Some(home.join("other"))));
    }

    #[test]
    fn quotas_and_limits_are_read_in_both_versions() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        assert_eq!((quota(folder.path()), memory_limit(folder.path())), (None, None));
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "100000\n");
        write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!((quota(folder.path()), memory_limit(folder.path())), (None, None));
        write("cpu.cfs_quota_us", "150000\n");
        write("memory.limit_in_bytes", "1048576\n");
        assert_eq!((quota(folder.path()), memory_limit(folder.path())), (Some(1.5), Some(1 << 20)));
        write("cpu.max", "max 100000\n");
        write("memory.max", "max\n");
        assert_eq!(quota(folder.path()), None);
        write("cpu.max", "50000 100000\n");
        write("memory.max", "4096\n");
        assert_eq!((quota(folder.path()), memory_limit(folder.path())), (Some(0.5), Some(4096)));
    }
}
