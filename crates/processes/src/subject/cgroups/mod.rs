//! The control groups of one study: `unladen-<pid>-<random>/<service>-<replica>`, with limits.
//!
//! Where they can be made is found by [`Hierarchy::detect`]; a process is put into its group between fork and exec (see
//! `launcher`), so that none of its CPU time is missed.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unladen_linux::cgroup::{SETTLING, kill_all, remove_tree, subdirectories};
use unladen_linux::hierarchy::Hierarchy;
use unladen_linux::{Cgroup, CpuSet, Version};

use super::launch::Limits;

/// Period of the CPU quota, µs: the kernel's own default.
const PERIOD_US: u64 = 100_000;

/// The control groups of this study.
#[derive(Debug)]
pub struct Cgroups {
    hierarchy: Hierarchy,
    /// Name of the study's own group in every hierarchy.
    name: String,
}

/// Why a group could not be made.
#[derive(Debug)]
pub enum Refused {
    /// A limit cannot be set: its name in the study, and why.
    Limit(&'static str, String),
    /// The kernel refused at this path.
    Kernel(PathBuf, io::Error),
}

/// A group that is filled by the next process: its directories, opened so that a forked child can enter.
#[derive(Debug)]
pub struct Entrance {
    /// `cgroup.procs` of every directory, open for writing.
    pub doors: Vec<fs::File>,
}

impl Cgroups {
    /// Makes the study's own group `name` in a hierarchy that was found usable, and removes what earlier studies left there that
    /// were killed together with their guards.
    ///
    /// # Errors
    /// Why the kernel refuses, in words.
    pub fn create(hierarchy: Hierarchy, name: &str) -> Result<Self, String> {
        for parent in hierarchy.parents() {
            remove_orphans(parent, |pid| Path::new("/proc").join(pid.to_string()).exists());
        }
        let cgroups = Self { hierarchy, name: name.to_owned() };
        let own = cgroups.accounting_parent().join(name);
        let refused = |error: io::Error| format!("{} cannot be made ({error})", own.display());
        fs::create_dir(&own).map_err(refused)?;
        Ok(cgroups)
    }

    /// Which kind of hierarchy it is.
    #[must_use]
    pub fn version(&self) -> Version {
        match self.hierarchy {
            Hierarchy::V2 { .. } => Version::V2,
            Hierarchy::V1 { .. } => Version::V1,
        }
    }

    /// Controllers of limits that are not available.
    #[must_use]
    pub fn missing_controllers(&self) -> Vec<&'static str> {
        self.hierarchy.missing_controllers()
    }

    /// The study's own groups, as they may have to be emptied and removed by somebody else.
    #[must_use]
    pub fn roots(&self) -> Vec<PathBuf> {
        let mut roots: Vec<PathBuf> = self.hierarchy.parents().into_iter().map(|p| p.join(&self.name)).collect();
        roots.dedup();
        roots
    }

    /// Makes the group of one process and sets its limits.
    ///
    /// # Errors
    /// See [`Refused`]. Nothing is left behind then.
    pub fn make(&self, service: &str, replica: u32, limits: &Limits) -> Result<Cgroup, Refused> {
        let name = self.free_name(service, replica);
        let own = |parent: &Path| parent.join(&self.name).join(&name);
        let cgroup = match &self.hierarchy {
            Hierarchy::V2 { parent, .. } => {
                Cgroup { version: Version::V2, accounting: own(parent), cpu: None, memory: None, cpuset: None }
            }
            Hierarchy::V1 { cpuacct, cpu, memory, cpuset } => {
                // A directory of `cpu` also changes how the scheduler shares the machine, and one of `memory` how it
                // is charged: they are made for those only who asked for a limit.
                let wanted =
                    |is_requested: bool, parent: &Option<PathBuf>| parent.as_deref().filter(|_| is_requested).map(own);
                Cgroup {
                    version: Version::V1,
                    accounting: own(cpuacct),
                    cpu: wanted(limits.cpus.is_some(), cpu),
                    memory: wanted(limits.memory.is_some(), memory),
                    cpuset: wanted(limits.cpuset.is_some(), cpuset),
                }
            }
        };
        self.fill(&cgroup, limits).inspect_err(|_| {
            let _ = cgroup.remove();
        })?;
        Ok(cgroup)
    }

    /// Opens a group for a process to come.
    ///
    /// # Errors
    /// What the kernel says, with the path.
    pub fn open(cgroup: &Cgroup) -> Result<Entrance, Refused> {
        let doors = cgroup
            .directories()
            .into_iter()
            .map(|directory| {
                let path = directory.join("cgroup.procs");
                fs::OpenOptions::new().write(true).open(&path).map_err(|error| Refused::Kernel(path, error))
            })
            .collect::<Result<_, _>>()?;
        Ok(Entrance { doors })
    }

    /// Kills everything that is left inside and removes the study's groups.
    ///
    /// # Errors
    /// What stays.
    pub fn remove(&self) -> io::Result<()> {
        clean(&self.roots())
    }

    fn accounting_parent(&self) -> &Path {
        match &self.hierarchy {
            Hierarchy::V2 { parent, .. } => parent,
            Hierarchy::V1 { cpuacct, .. } => cpuacct,
        }
    }

    /// `<service>-<replica>`, with a number behind it while a group of that name is still there.
    fn free_name(&self, service: &str, replica: u32) -> String {
        // A name becomes one directory, whatever it holds.
        let plain: String = service.chars().map(|c| if c == '/' || c == '\0' { '_' } else { c }).collect();
        let name = format!("{plain}-{replica}");
        let taken = |name: &str| self.accounting_parent().join(&self.name).join(name).exists();
        if !taken(&name) {
            return name;
        }
        (2_u32..).map(|number| format!("{name}-{number}")).find(|name| !taken(name)).unwrap_or(name)
    }

    fn fill(&self, cgroup: &Cgroup, limits: &Limits) -> Result<(), Refused> {
        for directory in cgroup.directories() {
            fs::create_dir_all(directory).map_err(|error| Refused::Kernel(directory.to_path_buf(), error))?;
        }
        match &self.hierarchy {
            Hierarchy::V2 { parent, controllers } => {
                let missing = |controller: &str| {
                    format!("the controller `{controller}` is not available at {}", parent.display())
                };
                let enable = |limit: &'static str, controller: &'static str| {
                    if !controllers.iter().any(|have| have == controller) {
                        return Err(Refused::Limit(limit, missing(controller)));
                    }
                    for level in [parent.clone(), parent.join(&self.name)] {
                        let control = level.join("cgroup.subtree_control");
                        let refused = |error| Refused::Limit(limit, format!("{}: {error}", control.display()));
                        fs::write(&control, format!("+{controller}")).map_err(refused)?;
                    }
                    Ok(())
                };
                let group = &cgroup.accounting;
                if let Some(cores) = limits.cpus {
                    enable("cpus", "cpu")?;
                    set("cpus", &group.join("cpu.max"), &format!("{} {PERIOD_US}", quota_us(cores)))?;
                }
                if let Some(bytes) = limits.memory {
                    enable("memory", "memory")?;
                    set("memory", &group.join("memory.max"), &bytes.to_string())?;
                    // A service that swaps measures the disk; not every kernel has the file.
                    let _ = fs::write(group.join("memory.swap.max"), "0");
                }
                if let Some(cpus) = &limits.cpuset
                    && enable("cpuset", "cpuset").is_ok()
                {
                    set("cpuset", &group.join("cpuset.cpus"), &cpus.to_string())?;
                }
            }
            Hierarchy::V1 { cpuset, .. } => {
                if let Some(cores) = limits.cpus {
                    let group = cgroup.cpu.as_ref().ok_or_else(|| absent("cpus", "cpu"))?;
                    set("cpus", &group.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                    set("cpus", &group.join("cpu.cfs_quota_us"), &quota_us(cores).to_string())?;
                }
                if let Some(bytes) = limits.memory {
                    let group = cgroup.memory.as_ref().ok_or_else(|| absent("memory", "memory"))?;
                    set("memory", &group.join("memory.limit_in_bytes"), &bytes.to_string())?;
                    // Memory and swap together; only with swap accounting.
                    let _ = fs::write(group.join("memory.memsw.limit_in_bytes"), bytes.to_string());
                }
                if let (Some(cpus), Some(group), Some(parent)) = (&limits.cpuset, &cgroup.cpuset, cpuset) {
                    fill_cpuset(parent, &parent.join(&self.name), group, cpus)?;
                }
            }
        }
        Ok(())
    }
}

/// Kills everything in these groups and removes them. Goes on after an error and returns the first.
pub(crate) fn clean(roots: &[PathBuf]) -> io::Result<()> {
    let mut outcome = Ok(());
    for root in roots {
        let done = kill_all(root, Duration::from_secs(5)).and_then(|_| remove_tree(root, SETTLING));
        outcome = outcome.and(done);
    }
    outcome
}

/// Removes the groups `unladen-<pid>-…` below `parent` whose unladen is gone and in which nothing runs any more. What cannot be
/// removed stays: somebody may be at it.
fn remove_orphans(parent: &Path, is_there: impl Fn(u32) -> bool) {
    for group in subdirectories(parent) {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        let owner =
            name.strip_prefix("unladen-").and_then(|rest| rest.split_once('-')).and_then(|(pid, _)| pid.parse().ok());
        if owner.is_some_and(|pid| !is_there(pid)) {
            let _ = remove_tree(&group, Duration::ZERO);
        }
    }
}

/// A v1 cpuset has no CPUs and no memory nodes until it is told, on every level.
fn fill_cpuset(parent: &Path, own: &Path, group: &Path, cpus: &CpuSet) -> Result<(), Refused> {
    let read = |name: &str| {
        fs::read_to_string(parent.join(name)).map_err(|error| Refused::Limit("cpuset", format!("{name}: {error}")))
    };
    let (all, nodes) = (read("cpuset.cpus")?, read("cpuset.mems")?);
    set("cpuset", &own.join("cpuset.mems"), nodes.trim())?;
    set("cpuset", &own.join("cpuset.cpus"), all.trim())?;
    set("cpuset", &group.join("cpuset.mems"), nodes.trim())?;
    set("cpuset", &group.join("cpuset.cpus"), &cpus.to_string())
}

fn set(limit: &'static str, path: &Path, value: &str) -> Result<(), Refused> {
    fs::write(path, value)
        .map_err(|error| Refused::Limit(limit, format!("writing `{value}` to {}: {error}", path.display())))
}

fn absent(limit: &'static str, controller: &str) -> Refused {
    Refused::Limit(limit, format!("the cgroup controller `{controller}` is not mounted or may not be used"))
}

/// CPU time per period, µs. The kernel takes no less than 1 ms.
fn quota_us(cores: f64) -> u64 {
    ((cores * PERIOD_US as f64).round() as u64).max(1_000)
}
