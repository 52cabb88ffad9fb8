//! `doctor`: can this machine measure? What stands in the way, and what to do about it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::print;
use crate::linux::CpuSet;
use crate::probe::host::HostReader;
use crate::subject::{Launcher, LauncherOptions, Topology, partition};

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Good,
    Care,
}

/// One line of the doctor's answer.
#[derive(Debug)]
struct Line {
    mark: Mark,
    what: &'static str,
    found: String,
    remedy: &'static str,
}

/// How long the doctor watches the machine.
const WATCH: Duration = Duration::from_secs(2);
/// Shares of the machine above which other load and steal disturb.
const BUSY_LIMIT: f64 = 0.05;
/// See [`BUSY_LIMIT`].
const STEAL_LIMIT: f64 = 0.01;
/// Open files that a load with many connections needs.
const FILES: u64 = 4096;

/// `unladen doctor`
///
/// # Errors
/// When `/proc` cannot be read.
pub fn doctor() -> anyhow::Result<ExitCode> {
    let mut lines = vec![cores()?, cgroup()?];
    lines.extend(quiet()?);
    lines.extend(governor());
    lines.push(clock_source());
    lines.push(files());
    let mut text = String::new();
    for line in &lines {
        let mark = if line.mark == Mark::Good { "ok  " } else { "care" };
        writeln!(text, "{mark}  {:<14} {}", line.what, line.found)?;
        if line.mark == Mark::Care {
            writeln!(text, "                     {}", line.remedy)?;
        }
    }
    let care = lines.iter().filter(|line| line.mark == Mark::Care).count();
    text += if care == 0 {
        "\nThis machine can measure. `unladen demo` shows which effect it can see."
    } else {
        "\nThis machine can measure, with the reservations above: the intervals will say how much they matter."
    };
    print(&text)
}

fn cores() -> anyhow::Result<Line> {
    let available = CpuSet::allowed()?;
    let partition = partition(&available, &Topology::read(Path::new("/sys"), &available), 1);
    Ok(Line {
        mark: if partition.apart { Mark::Good } else { Mark::Care },
        what: "cores",
        found: format!("subject on {}, instrument on {}", partition.subject, partition.instrument),
        remedy: "With one core the load generator and the sink disturb the subject. Use a machine with two or more.",
    })
}

fn cgroup() -> anyhow::Result<Line> {
    let launcher = Launcher::new(&LauncherOptions::new(std::process::id().into(), true))?;
    let found = match (launcher.cgroup_version(), launcher.no_cgroups()) {
        (Some(version), _) => version.to_string(),
        (None, reason) => reason.unwrap_or("none").to_owned(),
    };
    Ok(Line {
        mark: if launcher.no_cgroups().is_none() { Mark::Good } else { Mark::Care },
        what: "cgroups",
        found,
        remedy: "CPU is read from the process tree instead; limits are refused. Run as root or in a delegated cgroup (systemd-run --user --scope -p Delegate=yes).",
    })
}

/// Other load and steal, over two seconds in which the doctor does nothing.
fn quiet() -> anyhow::Result<[Line; 2]> {
    let reader = HostReader::new();
    let read = || reader.read().context("/proc/stat cannot be read");
    let before = read()?;
    std::thread::sleep(WATCH);
    let window = read()?.window(&before, WATCH.as_secs_f64(), 0.0);
    let capacity = f64::from(window.cores) * WATCH.as_secs_f64();
    let busy = window.busy_s / capacity;
    let steal = window.steal_s / capacity;
    Ok([
        Line {
            mark: if busy <= BUSY_LIMIT { Mark::Good } else { Mark::Care },
            what: "other load",
            found: format!("{:.1} % of the machine in {} s", busy * 100.0, WATCH.as_secs()),
            remedy: "Stop what runs beside (builds, browsers, cron), or expect wide intervals.",
        },
        Line {
            mark: if steal <= STEAL_LIMIT { Mark::Good } else { Mark::Care },
            what: "steal",
            found: format!("{:.1} % of the machine in {} s", steal * 100.0, WATCH.as_secs()),
            remedy: "The hypervisor gives this machine's time to others. Use a dedicated or larger instance, or more rounds.",
        },
    ])
}

fn governor() -> Option<Line> {
    let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok()?;
    let governor = governor.trim().to_owned();
    Some(Line {
        mark: if governor == "performance" { Mark::Good } else { Mark::Care },
        what: "frequency",
        found: format!("governor {governor}"),
        remedy: "The frequency follows the load, so an idle variant runs slower per request: `cpupower frequency-set -g performance`.",
    })
}

fn clock_source() -> Line {
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    let fast = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"].contains(&source.as_str());
    Line {
        mark: if fast { Mark::Good } else { Mark::Care },
        what: "clock",
        found: source,
        remedy: "Reading this clock is a slow system call, in the services too. Boot with clocksource=tsc if the CPU allows.",
    }
}

fn files() -> Line {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    Line {
        mark: if limit >= FILES { Mark::Good } else { Mark::Care },
        what: "open files",
        found: format!("at most {limit}"),
        remedy: "Loads with many connections need more: `ulimit -n 65536`.",
    }
}
