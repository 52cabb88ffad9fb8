//! CPU time of a service: from its control group, or else summed over its process tree.
//!
//! A control group misses nothing. A tree misses what was used by processes that started and ended between two samples
//! without being waited for by a parent in the tree.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use unladen_journal::record::CpuSource;
use unladen_linux::{Cgroup, Version};

use super::tree::Tree;

/// CPU time since some start that is the same for all readings of one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpu {
    /// All of it, ns.
    pub total_ns: u64,
    /// In user mode and in the kernel, in any unit, where they are told apart. Most kernels sample them by ticks and
    /// count the total exactly: only their proportion is of use.
    pub parts: Option<(u64, u64)>,
}

impl Cpu {
    /// The total shared out to user mode and the kernel, ns, by what the parts did since an earlier reading. `None` when
    /// neither was ever sampled in between.
    #[must_use]
    pub fn split_since(&self, earlier: &Self, total_ns: u64) -> Option<(u64, u64)> {
        let (now, before) = (self.parts?, earlier.parts?);
        let (user, system) = (u128::from(now.0.saturating_sub(before.0)), u128::from(now.1.saturating_sub(before.1)));
        // No overflow: the share is at most the total.
        let user_ns = (u128::from(total_ns) * user).checked_div(user + system)? as u64;
        Some((user_ns, total_ns - user_ns))
    }
}

/// Reads the CPU time of one service.
#[derive(Debug)]
pub enum CpuReader {
    /// v2: `cpu.stat`.
    V2(File),
    /// v1: `cpuacct.usage`, and its parts in user mode and in the kernel.
    V1 {
        /// `cpuacct.usage`.
        usage: File,
        /// `cpuacct.usage_user` and `cpuacct.usage_sys`, since Linux 4.10.
        parts: Option<(File, File)>,
    },
    /// The process tree.
    Tree,
}

impl CpuReader {
    /// A reader for a control group; of the tree when there is none or it cannot be read.
    #[must_use]
    pub fn new(cgroup: Option<&Cgroup>) -> Self {
        let reader = cgroup.and_then(|cgroup| match cgroup.version {
            Version::V2 => Self::v2(&cgroup.accounting),
            Version::V1 => Self::v1(&cgroup.accounting),
        });
        reader.unwrap_or(Self::Tree)
    }

    /// A reader of a group's directory of v2; `None` if it cannot be read.
    #[must_use]
    pub fn v2(directory: &Path) -> Option<Self> {
        File::open(directory.join("cpu.stat")).ok().map(Self::V2)
    }

    /// The same of the controller `cpuacct` of v1.
    #[must_use]
    pub fn v1(directory: &Path) -> Option<Self> {
        let open = |name: &str| File::open(directory.join(name)).ok();
        let parts = open("cpuacct.usage_user").zip(open("cpuacct.usage_sys"));
        open("cpuacct.usage").map(|usage| Self::V1 { usage, parts })
    }

    /// Where the figures come from.
    #[must_use]
    pub fn source(&self) -> CpuSource {
        match self {
            Self::V2(_) => CpuSource::CgroupV2,
            Self::V1 { .. } => CpuSource::CgroupV1,
            Self::Tree => CpuSource::Schedstat,
        }
    }

    /// The CPU time so far; `None` when it cannot be had.
    pub fn read(&self, tree: &mut Tree) -> Option<Cpu> {
        if matches!(self, Self::Tree) { tree.cpu() } else { self.of_group() }
    }

    /// The CPU time of the control group so far; `None` without one.
    #[must_use]
    pub fn of_group(&self) -> Option<Cpu> {
        match self {
            Self::V2(file) => parse_v2(&text(file, &mut [0; 2048])?),
            Self::V1 { usage, parts } => {
                let total_ns = number(usage)?;
                let parts = parts.as_ref().and_then(|(user, system)| Some((number(user)?, number(system)?)));
                Some(Cpu { total_ns, parts })
            }
            Self::Tree => None,
        }
    }
}

/// `cpu.stat` of v2, in µs: `usage_usec`, `user_usec`, `system_usec`.
fn parse_v2(text: &str) -> Option<Cpu> {
    let field = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    let total_ns = field("usage_usec")?.checked_mul(1_000)?;
    Some(Cpu { total_ns, parts: field("user_usec").zip(field("system_usec")) })
}

/// The whole of a small file that stays open: the kernel makes its text anew for every read from its start.
fn text<'a>(file: &File, buffer: &'a mut [u8]) -> Option<std::borrow::Cow<'a, str>> {
    let length = file.read_at(buffer, 0).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]))
}

fn number(file: &File) -> Option<u64> {
    text(file, &mut [0; 32])?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v2_is_in_microseconds() {
        let text = "usage_usec 1000\nuser_usec 600\nsystem_usec 399\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n";
        assert_eq!(parse_v2(text), Some(Cpu { total_ns: 1_000_000, parts: Some((600, 399)) }));
        assert_eq!(parse_v2("user_usec 1\n"), None);
    }

    #[test]
    fn the_parts_add_up_to_the_total_and_are_unknown_when_never_sampled() {
        let cpu = |parts| Cpu { total_ns: 0, parts };
        for (before, now, total_ns, expected) in [
            (Some((0, 0)), Some((600, 399)), 1_000_000, Some((600_600, 399_400))),
            (Some((600, 399)), Some((601, 400)), 7, Some((3, 4))),
            (Some((1, 1)), Some((1, 1)), 500, None),
            (None, Some((1, 1)), 500, None),
            (Some((0, 0)), Some((u64::MAX, u64::MAX)), u64::MAX, Some((u64::MAX / 2, u64::MAX / 2 + 1))),
        ] {
            assert_eq!(cpu(now).split_since(&cpu(before), total_ns), expected, "{before:?} → {now:?}");
        }
    }
}
