//! How long a CPU quota held a service back: its own, or one around unladen (a container's), which holds back both.

use std::fs;
use std::path::{Path, PathBuf};

use unladen_linux::{Cgroup, Version};

/// Reads the throttled time of a control group and of those around it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Throttle {
    /// `cpu.stat` files, the group's own first.
    files: Vec<PathBuf>,
}

impl Throttle {
    /// Of a control group; empty when nothing is known about quotas.
    #[must_use]
    pub fn new(cgroup: Option<&Cgroup>) -> Self {
        let group = cgroup.and_then(|cgroup| match cgroup.version {
            Version::V2 => Some(&cgroup.accounting),
            Version::V1 => cgroup.cpu.as_ref(),
        });
        let around = group.into_iter().flat_map(|group| group.ancestors());
        let files = around.map(|group| group.join("cpu.stat")).take_while(|file| file.exists());
        Self { files: files.collect() }
    }

    /// Throttled time so far, ns, of each group that says so.
    #[must_use]
    pub fn read(&self) -> Vec<Option<u64>> {
        self.files.iter().map(|file| throttled(file)).collect()
    }

    /// Throttled time between two readings, ns: the longest of all groups, for they hold back at the same time.
    /// `None` when no group says.
    #[must_use]
    pub fn between(start: &[Option<u64>], end: &[Option<u64>]) -> Option<u64> {
        start.iter().zip(end).filter_map(|(start, end)| Some((*end)?.saturating_sub((*start)?))).max()
    }
}

/// v1 writes `throttled_time` in ns, v2 `throttled_usec` in µs.
fn throttled(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_time", ns) => ns.trim().parse().ok(),
        ("throttled_usec", us) => us.trim().parse::<u64>().ok()?.checked_mul(1_000),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_around_the_group_count_and_silence_is_unknown() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let own = top.path().join("study/app-0");
        fs::create_dir_all(&own).expect("a folder");
        fs::write(own.join("cpu.stat"), "usage_usec 5\nnr_throttled 1\nthrottled_usec 7\n").expect("a file");
        fs::write(own.join("../cpu.stat"), "nr_periods 9\nnr_throttled 3\nthrottled_time 9000\n").expect("a file");
        fs::write(top.path().join("cpu.stat"), "usage_usec 5\n").expect("a file");
        let cgroup = Cgroup { version: Version::V2, accounting: own, cpu: None, memory: None, cpuset: None };
        let throttle = Throttle::new(Some(&cgroup));
        let reading = throttle.read();
        assert_eq!(reading, vec![Some(7_000), Some(9_000), None]);
        assert_eq!(Throttle::between(&[Some(1_000), Some(8_500), None], &reading), Some(6_000));
        assert_eq!(Throttle::between(&[], &[]), None);
        assert_eq!(Throttle::new(None), Throttle::default());
    }
}
