//! Groups and limits, written to a folder in the place of the kernel.

use std::fs;
use std::path::Path;

use super::*;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| format!("{}: {error}", path.display()))
}

fn limits() -> Limits {
    Limits { cpus: Some(1.5), memory: Some(64 << 20), cpuset: Some([1, 2, 3].into_iter().collect()) }
}

fn refusal(outcome: Result<Cgroup, Refused>) -> (&'static str, String) {
    match outcome {
        Err(Refused::Limit(limit, reason)) => (limit, reason),
        other => panic!("a limit should have been refused: {other:?}"),
    }
}

#[test]
fn v2_limits_are_written_where_the_kernel_reads_them() {
    let top = tempfile::tempdir().expect("a temporary folder");
    let controllers = ["cpu", "memory", "cpuset"].map(str::to_owned).to_vec();
    let hierarchy = Hierarchy::V2 { parent: top.path().to_owned(), controllers };
    let cgroups = Cgroups::create(hierarchy, "unladen-1-ab").expect("a folder can be made");
    let cgroup = cgroups.make("app", 2, &limits()).expect("the folder takes anything");
    let own = top.path().join("unladen-1-ab/app-2");
    assert_eq!((cgroup.version, &cgroup.accounting), (Version::V2, &own));
    assert_eq!(read(&own.join("cpu.max")), "150000 100000");
    assert_eq!(read(&own.join("memory.max")), "67108864");
    assert_eq!(read(&own.join("memory.swap.max")), "0");
    assert_eq!(read(&own.join("cpuset.cpus")), "1-3");
    for level in [top.path(), &top.path().join("unladen-1-ab")] {
        // The last of three: each is asked for by itself.
        assert_eq!(read(&level.join("cgroup.subtree_control")), "+cpuset");
    }
    assert_eq!(cgroups.roots(), vec![top.path().join("unladen-1-ab")]);
}

#[test]
fn v1_makes_directories_only_for_the_limits_that_are_asked_for() {
    let top = tempfile::tempdir().expect("a temporary folder");
    let parent = |name: &str| {
        let path = top.path().join(name);
        fs::create_dir_all(&path).expect("a folder");
        path
    };
    let hierarchy = Hierarchy::V1 {
        cpuacct: parent("cpuacct"),
        cpu: Some(parent("cpu")),
        memory: Some(parent("memory")),
        cpuset: Some(parent("cpuset")),
    };
    fs::write(top.path().join("cpuset/cpuset.cpus"), "0-3\n").expect("a file");
    fs::write(top.path().join("cpuset/cpuset.mems"), "0\n").expect("a file");
    let cgroups = Cgroups::create(hierarchy, "unladen-1-ab").expect("a folder can be made");

    let plain = cgroups.make("app", 0, &Limits::default()).expect("no limit");
    assert_eq!(plain.directories(), vec![top.path().join("cpuacct/unladen-1-ab/app-0")]);

    let bound = cgroups.make("db", 0, &limits()).expect("the folders take anything");
    assert_eq!(bound.directories().len(), 4);
    let file = |controller: &str, name: &str| read(&top.path().join(format!("{controller}/unladen-1-ab/{name}")));
    assert_eq!(file("cpu", "db-0/cpu.cfs_quota_us"), "150000");
    assert_eq!(file("cpu", "db-0/cpu.cfs_period_us"), "100000");
    assert_eq!(file("memory", "db-0/memory.limit_in_bytes"), "67108864");
    assert_eq!((file("cpuset", "cpuset.cpus"), file("cpuset", "cpuset.mems")), ("0-3".to_owned(), "0".to_owned()));
    assert_eq!(
        (file("cpuset", "db-0/cpuset.cpus"), file("cpuset", "db-0/cpuset.mems")),
        ("1-3".to_owned(), "0".to_owned())
    );

    // A group of the same name that is still there is not shared.
    let again = cgroups.make("app", 0, &Limits::default()).expect("no limit");
    assert_eq!(again.accounting, top.path().join("cpuacct/unladen-1-ab/app-0-2"));
    let odd = cgroups.make("../evil", 0, &Limits::default()).expect("no limit");
    assert_eq!(odd.accounting.parent(), plain.accounting.parent(), "{}", odd.accounting.display());
}

#[test]
fn a_limit_without_its_controller_is_refused_by_name() {
    let top = tempfile::tempdir().expect("a temporary folder");
    let counting = Hierarchy::V2 { parent: top.path().to_owned(), controllers: vec!["cpu".to_owned()] };
    let cgroups = Cgroups::create(counting, "unladen-2-ab").expect("a folder can be made");
    let (limit, reason) = refusal(cgroups.make("app", 0, &limits()));
    assert!(limit == "memory" && reason.contains("`memory` is not available"), "{limit}: {reason}");

    let v1 = Hierarchy::V1 { cpuacct: top.path().to_owned(), cpu: None, memory: None, cpuset: None };
    let cgroups = Cgroups::create(v1, "unladen-3-ab").expect("a folder can be made");
    let (limit, reason) = refusal(cgroups.make("app", 0, &limits()));
    assert!(limit == "cpus" && reason.contains("`cpu` is not mounted"), "{limit}: {reason}");
    // Cores need no controller: the affinity that a process inherits binds it too.
    let cores = Limits { cpuset: limits().cpuset, ..Limits::default() };
    assert!(cgroups.make("app", 0, &cores).is_ok());
}

#[test]
fn what_a_killed_study_left_is_removed_and_nothing_else() {
    let top = tempfile::tempdir().expect("a temporary folder");
    for path in ["unladen-7-ab/app-0", "unladen-8-ab/app-0", "unladen-9-ab/app-0", "unladen-sink-7", "other-7-ab"] {
        fs::create_dir_all(top.path().join(path)).expect("a folder");
    }
    // A folder with a file in it cannot be removed, as a group with a process cannot.
    fs::write(top.path().join("unladen-9-ab/app-0/cgroup.procs"), "99").expect("a file");
    remove_orphans(top.path(), |pid| pid == 8);
    let mut left = subdirectories(top.path());
    left.sort_unstable();
    let kept = ["other-7-ab", "unladen-8-ab", "unladen-9-ab", "unladen-sink-7"];
    assert_eq!(left, kept.map(|name| top.path().join(name)));
}
