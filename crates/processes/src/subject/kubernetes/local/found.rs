//! The processes of pods on this machine: a kubelet puts each container into a control group whose path holds the UID of the pod and the id
//! of the container.

use std::collections::BTreeMap;
use std::fs;

use unladen_linux::process::{self, Identity, Stat};

/// Programs that become a container's first process once its namespaces are there.
const STARTERS: [&str; 3] = ["runc", "crun", "youki"];

/// Where a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// UID of its pod.
    pub(super) pod: String,
    /// Id of its container.
    pub(super) container: String,
}

/// The containers of pods that have processes here: the first process of each, by UID of the pod and id of the container.
pub(super) fn first_processes() -> BTreeMap<(String, String), Identity> {
    let mut found: BTreeMap<(String, String), Stat> = BTreeMap::new();
    for stat in process::all().into_iter().filter(Stat::is_alive) {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", stat.pid)).unwrap_or_default();
        let Some(Member { pod, container }) = member(&groups) else { continue };
        if is_being_started(stat.pid) {
            continue;
        }
        // What a container starts, and what a kubelet starts in it, is younger.
        let age = |stat: &Stat| (stat.start_ticks, stat.pid);
        let known = found.entry((pod, container)).or_insert(stat);
        if age(&stat) < age(known) {
            *known = stat;
        }
    }
    found.into_iter().map(|(key, stat)| (key, stat.identity())).collect()
}

/// Its namespaces may still be those of the node.
fn is_being_started(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    // What cannot be read has ended, or is not to be entered either.
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    is_starter(&name, &program.to_string_lossy())
}

/// Whether a process has not yet become the program of a container. Its name may be just the number of the file that it was started from,
/// its program a copy in memory.
fn is_starter(name: &str, program: &str) -> bool {
    let file = program.strip_suffix(" (deleted)").unwrap_or(program);
    let file = file.rsplit('/').next().unwrap_or_default();
    let is_of = |starter: &&str| {
        name.starts_with(*starter) || file == *starter || program.starts_with(&format!("/memfd:{starter}"))
    };
    STARTERS.iter().any(is_of)
}

/// Which pod and container `/proc/PID/cgroup` tells of: `…/kubepods/burstable/pod1b4e28ba-…/3f2a…`, or by systemd's driver
/// `…/kubepods-burstable-pod1b4e28ba_….slice/cri-containerd-3f2a….scope`.
pub(super) fn member(groups: &str) -> Option<Member> {
    groups.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let mut parts = path.split('/');
        let pod = parts.by_ref().find_map(uid)?;
        Some(Member { pod, container: container_id(parts.next()?)? })
    })
}

fn uid(part: &str) -> Option<String> {
    const LENGTH: usize = 36;
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let start = part.len().checked_sub(LENGTH)?;
    let (before, uid) = (part.get(..start)?, part.get(start..)?.replace('_', "-"));
    let is_uid = uid.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (is_uid && (before == "pod" || before.ends_with("-pod"))).then_some(uid)
}

/// That of a monitor beside a container, as CRI-O has them, is none.
fn container_id(part: &str) -> Option<String> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let id = part.rsplit('-').next()?;
    let is_id = id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && !part.contains("conmon")).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
    const ID: &str = "3f2ab4c0d1e2f3a4b5c6d7e8f90123456789abcdef0123456789abcdef012345";

    #[test]
    fn both_drivers_and_both_versions_tell_the_pod_and_the_container() {
        let systemd = UID.replace('-', "_");
        for groups in [
            format!("12:pids:/\n5:cpuacct,cpu:/unladen-cluster/kubepods/burstable/pod{UID}/{ID}\n0::/\n"),
            format!("0::/kubepods/pod{UID}/{ID}\n"),
            format!(
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{systemd}.slice/cri-containerd-{ID}.scope\n"
            ),
            format!("0::/kubepods.slice/kubepods-pod{systemd}.slice/crio-{ID}.scope\n"),
            format!("0::/../kubepods/besteffort/pod{UID}/{ID}/below/it\n"),
            format!("0::/system.slice/docker-{ID}.scope/kubelet/kubepods/pod{UID}/{ID}\n"),
            // A node that is itself a container.
            format!(
                "0::/docker/{ID}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{systemd}.slice/cri-containerd-{ID}.scope\n"
            ),
        ] {
            let expected = Member { pod: UID.to_owned(), container: ID.to_owned() };
            assert_eq!(member(&groups), Some(expected), "{groups}");
        }
    }

    #[test]
    fn what_starts_a_container_is_not_yet_in_it() {
        for (name, program) in [
            ("runc:[2:INIT]\n", "/usr/bin/runc"),
            ("6\n", "/opt/bin/runc"),
            ("exe\n", "/memfd:runc_cloned:/proc/self/exe (deleted)"),
            ("crun\n", ""),
            ("4\n", "/usr/sbin/crun (deleted)"),
        ] {
            assert!(is_starter(name, program), "{name} {program}");
        }
        for (name, program) in
            [("truncate\n", "/usr/bin/truncate"), ("java\n", "/opt/runc/bin/java"), ("pod\n", "/pod")]
        {
            assert!(!is_starter(name, program), "{name} {program}");
        }
    }

    #[test]
    fn whatever_is_no_container_of_a_pod_is_nobody() {
        for groups in [
            "0::/user.slice/user-0.slice/session-1.scope\n".to_owned(),
            format!("0::/system.slice/docker-{ID}.scope\n"),
            format!("0::/kubepods/burstable/pod{UID}\n"),
            format!("0::/kubepods/burstable/pod{UID}/short\n"),
            format!("0::/kubepods/burstable/{UID}/{ID}\n"),
            format!("0::/kubepods.slice/kubepods-pod{}.slice/crio-conmon-{ID}.scope\n", UID.replace('-', "_")),
            // A static pod: its UID is a hash.
            format!("0::/kubepods/burstable/pod{}/{ID}\n", "ab".repeat(16)),
            String::new(),
        ] {
            assert_eq!(member(&groups), None, "{groups}");
        }
        assert!(first_processes().values().all(|it| it.pid != std::process::id()));
    }
}
