//! Where control groups can be made: from what is mounted, where unladen itself is, and what it may write.
//!
//! v2 is preferred when it has the `cpu` controller here. A machine may mount the controllers as v1 and a v2 hierarchy
//! without controllers beside them: v1 it is then. A v2 group counts CPU time even without any controller, so as a last
//! resort it serves for counting, and only limits are refused.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use procfs_core::FromBufRead;
use procfs_core::process::{MountInfo, MountInfos};

use crate::{Cgroup, Version};

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

/// A group that this process is in.
struct Own {
    /// Options of its hierarchy, the v1 controllers among them; `None`: v2.
    v1: Option<HashMap<String, Option<String>>>,
    /// Where the hierarchy is mounted.
    top: PathBuf,
    /// The group's directory.
    group: PathBuf,
}

impl Mounts {
    /// Of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { mountinfo: read("/proc/self/mountinfo"), own: read("/proc/self/cgroup") }
    }

    /// Of another process, as this process sees its groups.
    #[must_use]
    pub fn of_process(pid: u32) -> Self {
        let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Self { own, ..Self::of_this_process() }
    }

    /// The group that the process is in, with its v1 controllers where those count; `None` if it is in the top one, or in none that can
    /// be seen.
    #[must_use]
    pub fn group(&self) -> Option<Cgroup> {
        let groups: Vec<Own> = self.groups().ok()?.into_iter().filter(|own| own.group != own.top).collect();
        let v1 = |controller: &str| v1_group(&groups, controller);
        if let Some(accounting) = v1("cpuacct") {
            let (cpu, memory, cpuset) = (v1("cpu"), v1("memory"), v1("cpuset"));
            return Some(Cgroup { version: Version::V1, accounting, cpu, memory, cpuset });
        }
        let v2 = groups.into_iter().find(|own| own.v1.is_none())?;
        Some(Cgroup { version: Version::V2, accounting: v2.group, cpu: None, memory: None, cpuset: None })
    }

    /// Directories of the groups that this process is in, one per hierarchy that is mounted; none where the kernel does not
    /// say.
    #[must_use]
    pub fn own_groups(&self) -> Vec<PathBuf> {
        self.groups().unwrap_or_default().into_iter().map(|own| own.group).collect()
    }

    /// The same with their hierarchies, in the order of the mounts.
    fn groups(&self) -> Result<Vec<Own>, String> {
        let mounted = MountInfos::from_buf_read(self.mountinfo.as_bytes())
            .map_err(|error| format!("/proc/self/mountinfo cannot be read ({error})"))?;
        let own = |mount: MountInfo| {
            let v1 = match mount.fs_type.as_str() {
                "cgroup" => Some(mount.super_options),
                "cgroup2" => None,
                _ => return None,
            };
            let group = own_group(&mount.mount_point, &mount.root, own_path(&self.own, v1.as_ref())?)?;
            Some(Own { v1, top: mount.mount_point, group })
        };
        Ok(mounted.into_iter().filter_map(own).collect())
    }
}

impl Hierarchy {
    /// Finds out where groups can be made. With `limits`, a place is looked for where controllers can be enabled.
    ///
    /// # Errors
    /// Why there is none, in words that end a sentence starting with "no control groups: ".
    pub fn detect(mounts: &Mounts, limits: bool) -> Result<Self, String> {
        let groups = mounts.groups()?;
        let v1 = |controller: &str| v1_group(&groups, controller);
        let v2 = groups.iter().find(|own| own.v1.is_none());

        let mut reasons = Vec::new();
        let mut last_resort = None;
        if let Some(Own { top, group, .. }) = v2 {
            let parent = if limits { with_controllers(top, group) } else { None }.unwrap_or_else(|| group.clone());
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

    /// Controllers of limits that are not available, of `cpu`, `memory` and `cpuset`.
    #[must_use]
    pub fn missing_controllers(&self) -> Vec<&'static str> {
        let is_there = |name: &str| match self {
            Self::V2 { controllers, .. } => controllers.iter().any(|have| have == name),
            Self::V1 { cpu, memory, cpuset, .. } => match name {
                "cpu" => cpu.is_some(),
                "memory" => memory.is_some(),
                _ => cpuset.is_some(),
            },
        };
        ["cpu", "memory", "cpuset"].into_iter().filter(|name| !is_there(name)).collect()
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

/// Directory of the group in the v1 hierarchy of a controller.
fn v1_group(groups: &[Own], controller: &str) -> Option<PathBuf> {
    let has = |own: &&Own| own.v1.as_ref().is_some_and(|options| options.contains_key(controller));
    groups.iter().find(has).map(|own| own.group.clone())
}

/// The path of this process's group by `/proc/self/cgroup`: in the v1 hierarchy with these options, or in v2.
fn own_path<'a>(text: &'a str, v1: Option<&HashMap<String, Option<String>>>) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let here = match v1 {
            None => controllers.is_empty(),
            Some(options) => controllers.split(',').any(|name| options.contains_key(name)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine in a temporary folder: groups with their files, and what the kernel would say about them.
    struct Machine {
        folder: tempfile::TempDir,
        mounts: Mounts,
    }

    impl Machine {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().expect("a temporary folder"), mounts: Mounts::default() }
        }

        fn path(&self, group: &str) -> PathBuf {
            self.folder.path().join(group)
        }

        /// A mount point at `group` that shows the hierarchy from `root` on.
        fn mount(mut self, group: &str, root: &str, kind: &str, options: &str) -> Self {
            let point = self.path(group);
            self.mounts.mountinfo +=
                &format!("35 24 0:30 {root} {} rw,nosuid - {kind} {kind} rw,{options}\n", point.display());
            self.group(group, &[])
        }

        /// A group with files; all have a `cgroup.procs`.
        fn group(self, group: &str, files: &[(&str, &str)]) -> Self {
            let path = self.path(group);
            fs::create_dir_all(&path).expect("a folder");
            for (name, text) in [("cgroup.procs", "")].iter().chain(files) {
                fs::write(path.join(name), text).expect("a file");
            }
            self
        }

        fn own(mut self, lines: &str) -> Self {
            self.mounts.own = lines.to_owned();
            self
        }

        fn detect(&self, limits: bool) -> Result<Hierarchy, String> {
            Hierarchy::detect(&self.mounts, limits)
        }
    }

    const ALL: &str = "cpuset cpu io memory pids\n";

    #[test]
    fn what_a_limit_lacks_is_known() {
        let v2 = |controllers: &[&str]| Hierarchy::V2 {
            parent: PathBuf::from("/sys/fs/cgroup"),
            controllers: controllers.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(v2(&["cpuset", "cpu", "io", "memory"]).missing_controllers(), [""; 0]);
        assert_eq!(v2(&[]).missing_controllers(), ["cpu", "memory", "cpuset"]);
        let some = PathBuf::from("/sys/fs/cgroup/cpu");
        let v1 = Hierarchy::V1 { cpuacct: some.clone(), cpu: Some(some), memory: None, cpuset: None };
        assert_eq!(v1.missing_controllers(), ["memory", "cpuset"]);
    }

    #[test]
    fn a_delegated_v2_group_is_used_where_unladen_is() {
        let machine = Machine::new()
            .mount("cg", "/", "cgroup2", "nsdelegate")
            .group("cg/user.slice/run", &[("cgroup.controllers", ALL), ("cgroup.procs", "12\n")])
            .own("0::/user.slice/run\n");
        let Ok(Hierarchy::V2 { parent, controllers }) = machine.detect(false) else { panic!("v2 is there") };
        assert_eq!(parent, machine.path("cg/user.slice/run"));
        assert!(controllers.contains(&"memory".to_owned()));
    }

    #[test]
    fn for_limits_the_nearest_group_that_can_give_controllers_is_taken() {
        let build = |slice_procs: &str, given: &str| {
            Machine::new()
                .mount("cg", "/", "cgroup2", "rw")
                .group("cg", &[("cgroup.controllers", ALL), ("cgroup.type", "domain")])
                .group("cg", &[("cgroup.procs", "1\n"), ("cgroup.subtree_control", "cpu pids\n")])
                .group("cg/slice", &[("cgroup.controllers", ALL), ("cgroup.procs", slice_procs)])
                .group("cg/slice", &[("cgroup.subtree_control", given), ("cgroup.procs", slice_procs)])
                .group("cg/slice/run", &[("cgroup.controllers", ALL), ("cgroup.procs", "12\n")])
                .own("0::/slice/run\n")
        };
        let parent = |machine: &Machine, limits| match machine.detect(limits) {
            Ok(Hierarchy::V2 { parent, .. }) => parent.strip_prefix(machine.folder.path()).expect("inside").to_owned(),
            other => panic!("{other:?}"),
        };
        // unladen's own group holds unladen itself, so it cannot give controllers to groups below it.
        assert_eq!(parent(&build("", ""), true), Path::new("cg/slice"), "empty: it may be asked to give them");
        assert_eq!(parent(&build("7\n", "cpu memory cpuset\n"), true), Path::new("cg/slice"), "it gives them already");
        assert_eq!(parent(&build("7\n", "memory\n"), true), Path::new("cg/slice/run"), "nobody can: counting only");
        assert_eq!(parent(&build("", ""), false), Path::new("cg/slice/run"), "without limits nothing is moved");
    }

    #[test]
    fn v1_is_used_beside_a_v2_that_has_no_controllers() {
        let machine = Machine::new()
            .mount("cg/cpu,cpuacct", "/", "cgroup", "cpu,cpuacct")
            .mount("cg/memory", "/", "cgroup", "memory")
            .mount("cg/unified", "/", "cgroup2", "rw")
            .group("cg/unified", &[("cgroup.controllers", "hugetlb\n")])
            .group("cg/memory/app", &[])
            .own("4:memory:/app\n2:cpu,cpuacct:/\n0::/\n");
        let together = machine.path("cg/cpu,cpuacct");
        let expected = Hierarchy::V1 {
            cpuacct: together.clone(),
            cpu: Some(together.clone()),
            memory: Some(machine.path("cg/memory/app")),
            cpuset: None,
        };
        assert_eq!(machine.detect(true), Ok(expected.clone()));
        let groups = ["cg/cpu,cpuacct", "cg/memory/app", "cg/unified"].map(|group| machine.path(group));
        assert_eq!(machine.mounts.own_groups(), groups, "limits are looked for in all of them");
        assert_eq!(expected.parents(), vec![together.as_path(), machine.path("cg/memory/app").as_path()]);
    }

    #[test]
    fn a_containers_group_is_where_the_kernel_says_whatever_made_it() {
        // Docker by `cgroupfs` and by systemd, Podman by both.
        for group in [
            "docker/4f1c",
            "system.slice/docker-4f1c.scope",
            "libpod_parent/libpod-4f1c",
            "machine.slice/libpod-4f1c.scope/container",
        ] {
            let v2 = Machine::new()
                .mount("cg", "/", "cgroup2", "rw")
                .group(&format!("cg/{group}"), &[])
                .own(&format!("0::/{group}\n"));
            let found = v2.mounts.group().expect("a group");
            assert_eq!((found.version, found.accounting), (Version::V2, v2.path(&format!("cg/{group}"))));

            let controllers = ["cpu", "cpuacct", "cpuset", "memory"];
            let mut v1 =
                Machine::new().mount("cg/unified", "/", "cgroup2", "rw").group(&format!("cg/unified/{group}"), &[]);
            let mut own = format!("9:name=systemd:/{group}\n0::/{group}\n");
            for (controller, number) in controllers.iter().zip(1..) {
                v1 = v1.mount(&format!("cg/{controller}"), "/", "cgroup", controller);
                v1 = v1.group(&format!("cg/{controller}/{group}"), &[]);
                own += &format!("{number}:{controller}:/{group}\n");
            }
            let v1 = v1.own(&own);
            let directory = |controller: &str| v1.path(&format!("cg/{controller}/{group}"));
            let [cpu, cpuacct, cpuset, memory] = controllers.map(directory);
            let (cpu, memory, cpuset) = (Some(cpu), Some(memory), Some(cpuset));
            let expected = Cgroup { version: Version::V1, accounting: cpuacct, cpu, memory, cpuset };
            assert_eq!(v1.mounts.group(), Some(expected));
        }
    }

    #[test]
    fn a_v2_without_controllers_serves_for_counting() {
        let machine =
            Machine::new().mount("cg", "/", "cgroup2", "rw").group("cg", &[("cgroup.controllers", "\n")]).own("0::/\n");
        let expected = Hierarchy::V2 { parent: machine.path("cg"), controllers: Vec::new() };
        assert_eq!(machine.detect(false), Ok(expected));
    }

    #[test]
    fn a_container_sees_a_part_of_the_hierarchy_only() {
        // Mounted from the container's own group: its path is cut off. Outside of the namespace: the top is used.
        for own in ["0::/docker/abc\n", "0::/../../elsewhere\n", "0::/not/here\n"] {
            let machine = Machine::new()
                .mount("cg", "/docker/abc", "cgroup2", "rw")
                .group("cg", &[("cgroup.controllers", ALL)])
                .own(own);
            match machine.detect(false) {
                Ok(Hierarchy::V2 { parent, .. }) => assert_eq!(parent, machine.path("cg"), "{own}"),
                other => panic!("{own}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        assert_eq!(Machine::new().detect(false), Err("no cgroup hierarchy is mounted".to_owned()));
        let machine = Machine::new().mount("cg", "/", "cgroup2", "rw").own("0::/\n");
        fs::remove_file(machine.path("cg/cgroup.procs")).expect("it was there");
        let reason = machine.detect(false).expect_err("nothing can be moved in");
        assert!(reason.contains("cgroup.procs may not be written"), "{reason}");
    }
}
