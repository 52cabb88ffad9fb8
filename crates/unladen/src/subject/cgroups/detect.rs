//! Where control groups can be made: from what is mounted, where unladen itself is, and what it may write.
//!
//! v2 is preferred when it has the `cpu` controller here. A machine may mount the controllers as v1 and a v2 hierarchy
//! without controllers beside them: v1 it is then. A v2 group counts CPU time even without any controller, so as a last
//! resort it serves for counting, and only limits are refused.

use std::fs;
use std::path::{Path, PathBuf};

use procfs::FromBufRead;
use procfs::process::MountInfos;

/// What the kernel says about control groups, as text: `/proc/self/mountinfo` and `/proc/self/cgroup`.
#[derive(Debug, Clone, Default)]
pub struct Mounts {
    /// Content of `/proc/self/mountinfo`.
    pub mountinfo: String,
    /// Content of `/proc/self/cgroup`.
    pub own: String,
}

/// Where groups are made: below the group that unladen itself is in, so that limits around unladen hold for its services
/// too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hierarchy {
    /// The unified hierarchy.
    V2 {
        /// The group below which the study's own is made.
        parent: PathBuf,
        /// Controllers that can be given to it.
        controllers: Vec<String>,
    },
    /// One hierarchy per controller (some may be mounted together).
    V1 {
        /// Accounting.
        cpuacct: PathBuf,
        /// Quota.
        cpu: Option<PathBuf>,
        /// Memory limit.
        memory: Option<PathBuf>,
        /// CPUs.
        cpuset: Option<PathBuf>,
    },
}

/// Controllers that limits need.
const WANTED: [&str; 3] = ["cpu", "memory", "cpuset"];

impl Mounts {
    /// Of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { mountinfo: read("/proc/self/mountinfo"), own: read("/proc/self/cgroup") }
    }
}

impl Hierarchy {
    /// Finds out where groups can be made. With `limits`, a place is looked for where controllers can be enabled.
    ///
    /// # Errors
    /// Why there is none, in words that end a sentence starting with "no control groups: ".
    pub fn detect(mounts: &Mounts, limits: bool) -> Result<Self, String> {
        let mounted = MountInfos::from_buf_read(mounts.mountinfo.as_bytes())
            .map_err(|error| format!("/proc/self/mountinfo cannot be read ({error})"))?;
        let v1 = |controller: &str| {
            mounted
                .iter()
                .filter(|mount| mount.fs_type == "cgroup" && mount.super_options.contains_key(controller))
                .find_map(|mount| own_group(&mount.mount_point, &mount.root, own_path(&mounts.own, Some(controller))?))
        };
        let v2 = mounted.iter().find(|mount| mount.fs_type == "cgroup2").and_then(|mount| {
            let own = own_group(&mount.mount_point, &mount.root, own_path(&mounts.own, None)?)?;
            Some((mount.mount_point.clone(), own))
        });

        let mut reasons = Vec::new();
        let mut last_resort = None;
        if let Some((top, own)) = v2 {
            let parent = if limits { with_controllers(&top, &own) } else { None }.unwrap_or(own);
            match may_make(&parent) {
                Ok(()) => {
                    let controllers = words(&parent.join("cgroup.controllers"));
                    let complete = controllers.iter().any(|name| name == "cpu");
                    let found = Self::V2 { parent, controllers };
                    if complete {
                        return Ok(found);
                    }
                    last_resort = Some(found);
                }
                Err(reason) => reasons.push(reason),
            }
        }
        if let Some(cpuacct) = v1("cpuacct") {
            match may_make(&cpuacct) {
                Ok(()) => {
                    let usable = |controller| v1(controller).filter(|group| may_make(group).is_ok());
                    let (cpu, memory, cpuset) = (usable("cpu"), usable("memory"), usable("cpuset"));
                    return Ok(Self::V1 { cpuacct, cpu, memory, cpuset });
                }
                Err(reason) => reasons.push(reason),
            }
        }
        last_resort.ok_or_else(|| {
            if reasons.is_empty() { "no cgroup hierarchy is mounted".to_owned() } else { reasons.join("; ") }
        })
    }

    /// The groups below which the study's own are made, each once.
    #[must_use]
    pub fn parents(&self) -> Vec<&Path> {
        match self {
            Self::V2 { parent, .. } => vec![parent],
            Self::V1 { cpuacct, cpu, memory, cpuset } => {
                let mut parents: Vec<&Path> = vec![cpuacct];
                for parent in [cpu, memory, cpuset].into_iter().flatten() {
                    if !parents.contains(&parent.as_path()) {
                        parents.push(parent);
                    }
                }
                parents
            }
        }
    }
}

/// The path of this process's group by `/proc/self/cgroup`: of a v1 controller, or of v2.
fn own_path<'a>(text: &'a str, controller: Option<&str>) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let here = match controller {
            None => controllers.is_empty(),
            Some(name) => controllers.split(',').any(|have| have == name),
        };
        here.then_some(path)
    })
}

/// Directory of this process's group: the mount may show only a part of the hierarchy (in a container, its own).
fn own_group(mount_point: &Path, root: &str, path: &str) -> Option<PathBuf> {
    let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path));
    let own = mount_point.join(below.strip_prefix("/").unwrap_or(below));
    // A path outside of the namespace (`/../x`) or of another mount is not there: the top of what can be seen is used.
    let inside = below.components().all(|part| part != std::path::Component::ParentDir);
    [own, mount_point.to_path_buf()].into_iter().skip(usize::from(!inside)).find(|directory| directory.is_dir())
}

/// The nearest group, from `own` upwards, that can give all wanted controllers to groups below it: it does already, or
/// it holds no process itself (only such a group may), or is the top of the hierarchy (which is exempt).
fn with_controllers(top: &Path, own: &Path) -> Option<PathBuf> {
    own.ancestors().take_while(|group| group.starts_with(top)).find_map(|group| {
        let (have, given) = (words(&group.join("cgroup.controllers")), words(&group.join("cgroup.subtree_control")));
        let all_in = |list: &[String]| WANTED.iter().all(|wanted| list.iter().any(|name| name == wanted));
        // The top of the real hierarchy has no `cgroup.type`; that of a namespace has one and follows the rule.
        let exempt = group == top && !group.join("cgroup.type").exists();
        let empty = fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| text.trim().is_empty());
        let fits = all_in(&given) || (all_in(&have) && (exempt || empty));
        (fits && may_make(group).is_ok()).then(|| group.to_path_buf())
    })
}

/// Whether a group can be made here and processes be moved into it.
fn may_make(parent: &Path) -> Result<(), String> {
    let refused = |path: &Path, error: std::io::Error| format!("{} may not be written ({error})", path.display());
    rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).map_err(|error| refused(parent, error.into()))?;
    // Moving between two groups of v2 needs this right in the group that holds both; opening asks for it.
    let door = parent.join("cgroup.procs");
    fs::OpenOptions::new().write(true).open(&door).map(drop).map_err(|error| refused(&door, error))
}

fn words(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect()
}
