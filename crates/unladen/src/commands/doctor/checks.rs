//! Facts about a machine judged: what is well, what disturbs, and the remedy. Pure.

use serde::Serialize;
use unladen_judge::units::Scale;
use unladen_measure::groups::{self, MAX_ALIVE};

use super::facts::Facts;

/// One line of the doctor's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Check {
    /// What was looked at.
    pub(super) what: &'static str,
    /// What was found.
    pub(super) found: String,
    /// What to do about it; `None`: nothing need be done.
    pub(super) remedy: Option<String>,
}

/// Shares of the machine above which other load and steal disturb: those above which a run carries a warning.
const BUSY_LIMIT: f64 = 0.05;
/// See [`BUSY_LIMIT`].
const STEAL_LIMIT: f64 = 0.01;
/// Share of the time in which something may wait.
const PRESSURE_LIMIT: f64 = 0.10;
/// Memory that a study should find free, bytes.
const MEMORY: u64 = 1 << 30;
/// Open files that a load with many connections needs.
const FILES: u64 = 4096;
/// How late a sleep may end, µs: a generator later than that voids its run.
const LATE_US: f64 = 1_000.0;
/// Clock sources that are read without a system call.
const FAST_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

/// Every check, in the order in which they are told.
pub(super) fn checks(facts: &Facts) -> Vec<Check> {
    let mut all = vec![cores(facts), smt(facts), frequency(facts), idle(facts), cgroups(facts), limits(facts)];
    all.extend([networks(facts), containers(facts), compose(facts), kubernetes(facts)]);
    all.extend([other_load(facts), steal(facts), pressure(facts), memory(facts), clock(facts), timer(facts)]);
    all.extend([files(facts), io_uring(facts), randomisation(facts)]);
    all
}

pub(super) fn check(what: &'static str, found: impl Into<String>, good: bool, remedy: &str) -> Check {
    Check { what, found: found.into(), remedy: (!good).then(|| remedy.to_owned()) }
}

fn cores(facts: &Facts) -> Check {
    let it = &facts.partition;
    let found = format!("subject on {}, instrument on {}", it.subject, it.instrument);
    let remedy =
        "With one CPU the load generator and the sink disturb the subject. Use a machine with two cores or more.";
    check("cores", found, it.apart, remedy)
}

fn smt(facts: &Facts) -> Check {
    let it = &facts.partition;
    let found = match (facts.smt, it.apart && it.shares_core) {
        (_, true) => "subject and instrument are hyper-threads of one core",
        (Some(true), false) => "hyper-threads in use; subject and instrument are on different cores",
        (Some(false), false) => "off, or one thread per core",
        (None, false) => "not reported by this kernel",
    };
    let remedy = "They share its execution units, so the load generator slows the subject. Use a machine with two cores or more, or switch them off: `echo off > /sys/devices/system/cpu/smt/control`.";
    check("SMT", found, !(it.apart && it.shares_core), remedy)
}

fn frequency(facts: &Facts) -> Check {
    let Some(governor) = &facts.governor else {
        return check("frequency", "managed elsewhere (no governor here, as in most virtual machines)", true, "");
    };
    let turbo = match facts.turbo {
        Some(true) => ", turbo on",
        Some(false) => ", turbo off",
        None => "",
    };
    let found = format!("governor {governor}{turbo}");
    if governor != "performance" {
        let remedy = "The frequency follows the load, so that a lighter variant runs slower per request: `cpupower frequency-set -g performance`.";
        return check("frequency", found, false, remedy);
    }
    let remedy = "The frequency follows how warm the CPU is and how many cores work. For the narrowest intervals: `echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo`, or `echo 0 > /sys/devices/system/cpu/cpufreq/boost`.";
    check("frequency", found, facts.turbo != Some(true), remedy)
}

fn idle(facts: &Facts) -> Check {
    let found = match (&facts.idle_driver, facts.keeps_awake) {
        (None, _) => {
            "managed elsewhere (the kernel has no driver of idle states, as in many virtual machines)".to_owned()
        }
        (Some(driver), true) => format!("kept awake in a study ({driver})"),
        (Some(driver), false) => format!("asleep ({driver})"),
    };
    let remedy =
        "Run as root: then a study keeps CPUs awake (`/dev/cpu_dma_latency`), and no request pays for waking one.";
    check("idle CPUs", found, facts.idle_driver.is_none() || facts.keeps_awake, remedy)
}

fn cgroups(facts: &Facts) -> Check {
    let remedy = "Run as root or in a delegated cgroup: `systemd-run --user --scope -p Delegate=yes unladen …`.";
    match (&facts.cgroups, &facts.no_limits) {
        (Ok(version), None) => check("cgroups", format!("{version}; services can be limited"), true, ""),
        (Ok(version), Some(reason)) => {
            let found = format!("{version}, for counting; `limits` that need more are refused: {reason}");
            check("cgroups", found, false, remedy)
        }
        (Err(reason), _) => {
            let found =
                format!("{reason}: CPU is read from the process tree, which misses children that end within a window");
            check("cgroups", found, false, remedy)
        }
    }
}

/// Limits around unladen hold for its services too.
fn limits(facts: &Facts) -> Check {
    let cpus = (facts.partition.subject.union(&facts.partition.instrument)).len() as f64;
    let quota = facts.quota_cores.map(|cores| format!("a CPU quota of {cores:.2} of {cpus} cores"));
    let memory = facts
        .memory_limit
        .map(|bytes| format!("a memory limit of {}", Scale::of("B", bytes as f64, None).with_unit(bytes as f64)));
    let binding = facts.quota_cores.is_some_and(|cores| cores < cpus);
    let found = match [quota, memory].into_iter().flatten().collect::<Vec<_>>() {
        none if none.is_empty() => "none around unladen".to_owned(),
        some => format!("{} around unladen", some.join(" and ")),
    };
    let remedy = "The quota holds for everything together, so the load generator is throttled with the subject. Raise it (`--cpus` of the container, `CPUQuota` of the unit), or run outside of it.";
    check("limits", found, !binding, remedy)
}

fn networks(facts: &Facts) -> Check {
    match &facts.networks {
        Ok(()) => check("networks", "each variant can have its own: fixed ports do not collide", true, ""),
        Err(why) => {
            let found = "a variant cannot have its own, so services with a fixed port run one after the other";
            check("networks", found, false, why)
        }
    }
}

fn containers(facts: &Facts) -> Check {
    match &facts.engine {
        Ok(Some(engine)) => check("containers", engine, true, ""),
        Ok(None) => check("containers", "no engine is running; only services with an `image` need one", true, ""),
        Err(why) => check("containers", "services with an `image` cannot be run", false, why),
    }
}

fn compose(facts: &Facts) -> Check {
    match &facts.compose {
        Ok(Some(tool)) => check("Compose", tool, true, ""),
        Ok(None) => check("Compose", "not installed; only studies of Compose files (`on`) need it", true, ""),
        Err(why) => check("Compose", why, false, "Reinstall `docker-compose-plugin` or `docker-compose`."),
    }
}

fn kubernetes(facts: &Facts) -> Check {
    match &facts.kubeconfig {
        Ok(Some(path)) => check("Kubernetes", path.display().to_string(), true, ""),
        Ok(None) => check("Kubernetes", "no kubeconfig; only studies of a cluster (`on`) need one", true, ""),
        Err(why) => check("Kubernetes", why, false, "Set KUBECONFIG to the file that tells where the cluster is."),
    }
}

fn other_load(facts: &Facts) -> Check {
    let share = share(facts, facts.window.busy_s);
    let names: Vec<String> = facts
        .busiest
        .iter()
        .map(|(name, pid, cores)| format!("{name} (pid {pid}) {:.0} % of a core", cores * 100.0))
        .collect();
    let who = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let found = format!("{:.1} % of the machine in {:.0} s{who}", share * 100.0, facts.watched_s);
    let remedy = "Stop other processes (builds, browsers, cron). Disturbed rounds are repeated, at most a third of them; beyond that, expect wide intervals.";
    check("other load", found, share <= BUSY_LIMIT, remedy)
}

fn steal(facts: &Facts) -> Check {
    let share = share(facts, facts.window.steal_s);
    let found = format!("{:.1} % of the machine in {:.0} s", share * 100.0, facts.watched_s);
    let remedy = "The hypervisor gives this machine's CPU time to others. Use a dedicated or larger instance, try at another time, or run more rounds.";
    check("steal", found, share <= STEAL_LIMIT, remedy)
}

fn share(facts: &Facts, seconds: f64) -> f64 {
    facts.window.share(seconds, facts.watched_s).unwrap_or(0.0)
}

/// Pressure stall information: how long something waited.
fn pressure(facts: &Facts) -> Check {
    let waits =
        [("a CPU", facts.window.cpu_pressure), ("memory", facts.memory_pressure), ("a disk", facts.io_pressure)];
    let parts: Vec<String> =
        waits.iter().filter_map(|(what, share)| Some(format!("{what} {:.1} %", (*share)? * 100.0))).collect();
    if parts.is_empty() {
        return check("pressure", "not reported by this kernel (boot with psi=1 to have it)", true, "");
    }
    let high = waits.iter().any(|(_, share)| share.is_some_and(|share| share > PRESSURE_LIMIT));
    let remedy = "Processes on this machine already wait for resources. Find it with `cat /proc/pressure/*` and `top`, and stop it.";
    check("pressure", format!("time in which something waited for {}", parts.join(", ")), !high, remedy)
}

fn memory(facts: &Facts) -> Check {
    let available = facts.memory_left.unwrap_or(facts.window.memory_available);
    let bytes = |bytes: f64| Scale::of("B", bytes, None).with_unit(bytes);
    let each = groups::room(available, MAX_ALIVE);
    let found =
        format!("{} available: {} for each of {MAX_ALIVE} variants at once", bytes(available as f64), bytes(each));
    match facts.swapped {
        Some(pages) if pages > 0 => {
            let remedy = "Swapping makes latencies those of the disk, and resident memory too small. Stop what holds memory, or `swapoff -a`.";
            check("memory", format!("{found}, {pages} pages swapped in {:.0} s", facts.watched_s), false, remedy)
        }
        _ => {
            let remedy = "Services that run short of memory are slowed by its reclaim, or killed. Free some.";
            check("memory", found, available >= MEMORY, remedy)
        }
    }
}

fn clock(facts: &Facts) -> Check {
    let source = facts.clock.clone().unwrap_or_else(|| "unknown".to_owned());
    let fast = FAST_CLOCKS.contains(&source.as_str());
    let remedy = "Reading this clock is a slow system call, in the services too, and a tracer reads it twice a span. Boot with `clocksource=tsc` if the CPU allows.";
    check("clock", source, fast, remedy)
}

fn timer(facts: &Facts) -> Check {
    let (median, late) = facts.overshoot_us;
    let found = format!("sleeps of 1 ms end {median:.0} µs late, {late:.0} µs at the 99th percentile");
    let remedy = "Requests would be sent as late as that, and a run whose generator is later than 1 ms does not count. Stop other load on the instrument's core, or use a machine whose hypervisor schedules it in time.";
    check("timer", found, late <= LATE_US, remedy)
}

fn files(facts: &Facts) -> Check {
    let (soft, hard) = facts.files;
    let remedy = if hard >= FILES {
        format!("Loads with many connections need more: `ulimit -n {}`.", hard.min(65_536))
    } else {
        "Loads with many connections need more, and the hard limit has to be raised first: `LimitNOFILE=65536` of the unit, or `nofile` in /etc/security/limits.conf.".to_owned()
    };
    check("open files", format!("at most {soft}"), soft >= FILES, &remedy)
}

/// unladen itself does without; a service may not.
fn io_uring(facts: &Facts) -> Check {
    let found = match facts.io_uring_disabled {
        Some(0) => "allowed",
        Some(1) => "for privileged processes only",
        Some(_) => "switched off",
        None => "not restricted by a setting (kernel before 6.6, or none)",
    };
    let remedy = "unladen does without it. A service that uses it in production takes another path here: `sysctl kernel.io_uring_disabled=0`.";
    check("io_uring", found, !matches!(facts.io_uring_disabled, Some(1..)), remedy)
}

fn randomisation(facts: &Facts) -> Check {
    let found = match facts.address_randomisation {
        Some(0) => "addresses are the same in every process",
        Some(_) => "addresses are randomised for every process",
        None => "not reported by this kernel",
    };
    let remedy = "With a fixed layout, one variant can be favoured in every round, and no number of rounds reveals it: `sysctl kernel.randomize_va_space=2`.";
    check("layout", found, facts.address_randomisation != Some(0), remedy)
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::HostWindow;
    use unladen_linux::CpuSet;
    use unladen_processes::subject::Partition;

    use super::*;

    fn cpus(list: &str) -> CpuSet {
        list.parse().expect("a list of CPUs")
    }

    /// A machine without a fault.
    fn quiet() -> Facts {
        Facts {
            partition: Partition { subject: cpus("1-3"), instrument: cpus("0"), apart: true, shares_core: false },
            smt: Some(false),
            governor: Some("performance".to_owned()),
            turbo: Some(false),
            idle_driver: Some("intel_idle".to_owned()),
            keeps_awake: true,
            cgroups: Ok("cgroup v2".to_owned()),
            no_limits: None,
            networks: Ok(()),
            engine: Ok(None),
            compose: Ok(None),
            kubeconfig: Ok(None),
            quota_cores: None,
            memory_limit: None,
            memory_left: None,
            window: HostWindow {
                cores: 4,
                busy_s: 0.1,
                cpu_pressure: Some(0.01),
                memory_available: 8 << 30,
                ..HostWindow::default()
            },
            watched_s: 2.0,
            busiest: Vec::new(),
            memory_pressure: Some(0.0),
            io_pressure: Some(0.0),
            swapped: Some(0),
            clock: Some("tsc".to_owned()),
            overshoot_us: (60.0, 90.0),
            files: (1 << 20, 1 << 20),
            io_uring_disabled: Some(0),
            address_randomisation: Some(2),
        }
    }

    fn care(facts: &Facts) -> Vec<&'static str> {
        checks(facts).iter().filter(|check| check.remedy.is_some()).map(|check| check.what).collect()
    }

    #[test]
    fn a_quiet_machine_needs_no_remedy() {
        assert!(care(&quiet()).is_empty(), "{:?}", care(&quiet()));
        let virtual_machine = Facts {
            governor: None,
            turbo: None,
            idle_driver: None,
            keeps_awake: false,
            smt: None,
            swapped: None,
            ..quiet()
        };
        assert!(care(&virtual_machine).is_empty(), "{:?}", care(&virtual_machine));
    }

    #[test]
    fn every_fault_has_its_own_remedy() {
        let one_core = || Partition { subject: cpus("1"), instrument: cpus("0"), apart: true, shares_core: true };
        let no_core = || Partition { subject: cpus("0"), instrument: cpus("0"), apart: false, shares_core: true };
        let window = |change: fn(&mut HostWindow)| {
            let mut window = quiet().window;
            change(&mut window);
            window
        };
        for (what, facts) in [
            ("cores", Facts { partition: no_core(), ..quiet() }),
            ("SMT", Facts { partition: one_core(), ..quiet() }),
            ("frequency", Facts { governor: Some("powersave".to_owned()), ..quiet() }),
            ("frequency", Facts { turbo: Some(true), ..quiet() }),
            ("idle CPUs", Facts { keeps_awake: false, ..quiet() }),
            ("cgroups", Facts { cgroups: Err("no write access".to_owned()), ..quiet() }),
            ("cgroups", Facts { no_limits: Some("no controller".to_owned()), ..quiet() }),
            ("networks", Facts { networks: Err("Run as root".to_owned()), ..quiet() }),
            ("containers", Facts { engine: Err("Start it".to_owned()), ..quiet() }),
            ("Compose", Facts { compose: Err("it does not run".to_owned()), ..quiet() }),
            ("Kubernetes", Facts { kubeconfig: Err("it is not there".to_owned()), ..quiet() }),
            ("limits", Facts { quota_cores: Some(1.5), ..quiet() }),
            ("other load", Facts { window: window(|it| it.busy_s = 0.5), ..quiet() }),
            ("steal", Facts { window: window(|it| it.steal_s = 0.1), ..quiet() }),
            ("pressure", Facts { io_pressure: Some(0.3), ..quiet() }),
            ("pressure", Facts { window: window(|it| it.cpu_pressure = Some(0.9)), ..quiet() }),
            ("memory", Facts { swapped: Some(7), ..quiet() }),
            ("memory", Facts { memory_left: Some(64 << 20), ..quiet() }),
            ("clock", Facts { clock: Some("hpet".to_owned()), ..quiet() }),
            ("timer", Facts { overshoot_us: (80.0, 4_000.0), ..quiet() }),
            ("open files", Facts { files: (1024, 1 << 20), ..quiet() }),
            ("io_uring", Facts { io_uring_disabled: Some(2), ..quiet() }),
            ("layout", Facts { address_randomisation: Some(0), ..quiet() }),
        ] {
            assert_eq!(care(&facts), [what], "{facts:?}");
        }
    }

    #[test]
    fn whoever_uses_the_machine_is_named() {
        let busiest = vec![("rustc".to_owned(), 4711, 0.97)];
        let facts = Facts { busiest, window: HostWindow { busy_s: 2.0, ..quiet().window }, ..quiet() };
        let checks = checks(&facts);
        let load = checks.iter().find(|check| check.what == "other load").expect("it is told");
        assert_eq!(load.found, "25.0 % of the machine in 2 s: rustc (pid 4711) 97 % of a core");
    }

    #[test]
    fn a_quota_that_does_not_bind_is_only_told() {
        let facts = Facts { quota_cores: Some(4.0), memory_limit: Some(2 << 30), ..quiet() };
        assert!(care(&facts).is_empty());
        let limits = checks(&facts).into_iter().find(|check| check.what == "limits").expect("it is told");
        assert!(limits.found.contains("4.00 of 4 cores") && limits.found.contains("2.00 GiB"), "{}", limits.found);
    }
}
