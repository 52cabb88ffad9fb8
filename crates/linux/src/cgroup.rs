//! One control group of a service, in the unified hierarchy (v2) or as one directory per controller (v1).
//!
//! Where it may be made is found out in `subject`; here it is only filled, listed, emptied and removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::cpu_set::CpuSet;
use super::process::Identity;

/// Which kind of hierarchy a group is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Version {
    /// One directory for all controllers.
    V2,
    /// One directory per controller.
    V1,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V2 => "cgroup v2",
            Self::V1 => "cgroup v1",
        })
    }
}

/// A control group: its directories. v2 has only `accounting`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cgroup {
    /// Kind of hierarchy.
    pub version: Version,
    /// Directory that accounts for CPU time: v2 the group itself, v1 the one of `cpuacct`.
    pub accounting: PathBuf,
    /// v1: directory of `cpu` (quota, throttling), if one was made.
    pub cpu: Option<PathBuf>,
    /// v1: directory of `memory`, if one was made.
    pub memory: Option<PathBuf>,
    /// v1: directory of `cpuset`, if one was made.
    pub cpuset: Option<PathBuf>,
}

impl Cgroup {
    /// All its directories, each once (v1 controllers may be mounted together).
    #[must_use]
    pub fn directories(&self) -> Vec<&Path> {
        let mut directories = vec![self.accounting.as_path()];
        for directory in [&self.cpu, &self.memory, &self.cpuset].into_iter().flatten() {
            if !directories.contains(&directory.as_path()) {
                directories.push(directory);
            }
        }
        directories
    }

    /// Lets what is inside use these cores and no others.
    ///
    /// # Errors
    /// What the kernel says, or that the group has no cores of its own.
    pub fn confine(&self, cpus: &CpuSet) -> io::Result<()> {
        let directory = match self.version {
            Version::V2 => Some(&self.accounting),
            Version::V1 => self.cpuset.as_ref(),
        };
        let none = || io::Error::new(io::ErrorKind::Unsupported, "it is in no group of the controller `cpuset`");
        fs::write(directory.ok_or_else(none)?.join("cpuset.cpus"), cpus.to_string())
    }

    /// Whether the kernel has killed something inside because the memory limit was reached.
    #[must_use]
    pub fn memory_ran_out(&self) -> bool {
        let v1 = self.memory.as_ref().map(|directory| directory.join("memory.oom_control"));
        let file = v1.unwrap_or_else(|| self.accounting.join("memory.events"));
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }

    /// Processes inside, those of groups that the service made below included.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        collect_processes(&self.accounting, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Kills everything inside and waits until nothing is left, at most `limit`. Returns how many processes were killed.
    ///
    /// # Errors
    /// `TimedOut` when something is left.
    pub fn kill(&self, limit: Duration) -> io::Result<usize> {
        kill_all(&self.accounting, limit)
    }

    /// Removes the directories, with those that the service made below. They must be empty of processes.
    ///
    /// # Errors
    /// What the kernel says when a directory stays: `EBUSY` when it is not empty.
    pub fn remove(&self) -> io::Result<()> {
        self.directories().into_iter().try_for_each(|directory| remove_tree(directory, SETTLING))
    }
}

/// Processes in a group and in all groups below it.
pub fn collect_processes(directory: &Path, found: &mut Vec<u32>) {
    if let Ok(text) = fs::read_to_string(directory.join("cgroup.procs")) {
        // 0 stands for a process that this PID namespace cannot see.
        found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|&pid| pid != 0));
    }
    for below in subdirectories(directory) {
        collect_processes(&below, found);
    }
}

/// Kills everything in a group and below it; see [`Cgroup::kill`].
///
/// # Errors
/// `TimedOut` if processes are left after `limit`; what the kernel says if one cannot be signalled.
pub fn kill_all(directory: &Path, limit: Duration) -> io::Result<usize> {
    let deadline = Instant::now() + limit;
    let mut killed = std::collections::HashSet::new();
    loop {
        let mut pids = Vec::new();
        collect_processes(directory, &mut pids);
        if pids.is_empty() {
            return Ok(killed.len());
        }
        // v2 kills a whole subtree at once, forks under way included; v1 is swept until it is empty.
        let at_once = fs::write(directory.join("cgroup.kill"), "1").is_ok();
        for identity in pids.into_iter().filter_map(Identity::of) {
            if !at_once {
                identity.signal(rustix::process::Signal::KILL)?;
            }
            killed.insert(identity);
        }
        if Instant::now() >= deadline {
            let message = format!("processes are left in {} after SIGKILL", directory.display());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The kernel lets go of a group a moment after its last process was reaped.
pub const SETTLING: Duration = Duration::from_secs(2);

/// Removes a group and all below it, with so much patience for each that is still busy. One that is not there is fine.
///
/// # Errors
/// What the kernel says: mostly `ResourceBusy`, if a process is still in it after `patience`.
pub fn remove_tree(directory: &Path, patience: Duration) -> io::Result<()> {
    for below in subdirectories(directory) {
        remove_tree(&below, patience)?;
    }
    let deadline = Instant::now() + patience;
    loop {
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The groups directly below.
pub fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect()
}
