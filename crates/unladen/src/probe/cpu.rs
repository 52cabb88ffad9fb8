//! CPU time of a service: from its control group, or else summed over its process tree.
//!
//! A control group misses nothing. A tree misses what was used by processes that started and ended between two samples
//! without being waited for by a parent in the tree.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::tree::Tree;
use crate::journal::record::CpuSource;
use crate::linux::{Cgroup, Version};

/// CPU time since some start that is the same for all readings of one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpu {
    /// All of it, ns.
    pub total_ns: u64,
    /// In user mode and in the kernel, ns, where they are told apart. Most kernels share the total out by sampled
    /// ticks, so the sum is exact and the two are estimates.
    pub split: Option<(u64, u64)>,
}

impl Cpu {
    /// Shares out an exact total as two less exact parts say.
    #[must_use]
    pub fn shared(total_ns: u64, user: u64, system: u64) -> Self {
        let sum = u128::from(user) + u128::from(system);
        let split = (sum > 0).then(|| {
            // No overflow: the share is at most the total.
            let user_ns = (u128::from(total_ns) * u128::from(user) / sum) as u64;
            (user_ns, total_ns - user_ns)
        });
        Self { total_ns, split }
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
        let Some(cgroup) = cgroup else { return Self::Tree };
        let open = |name: &str| File::open(cgroup.accounting.join(name)).ok();
        let reader = match cgroup.version {
            Version::V2 => open("cpu.stat").map(Self::V2),
            Version::V1 => open("cpuacct.usage")
                .map(|usage| Self::V1 { usage, parts: open("cpuacct.usage_user").zip(open("cpuacct.usage_sys")) }),
        };
        reader.unwrap_or(Self::Tree)
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
        match self {
            Self::V2(file) => parse_v2(&text(file, &mut [0; 2048])?),
            Self::V1 { usage, parts } => {
                let total_ns = number(usage)?;
                let split = parts.as_ref().and_then(|(user, system)| Some((number(user)?, number(system)?)));
                Some(split.map_or(Cpu { total_ns, split: None }, |(user, system)| Cpu::shared(total_ns, user, system)))
            }
            Self::Tree => tree.cpu(),
        }
    }
}

/// `cpu.stat` of v2, in µs: `usage_usec`, `user_usec`, `system_usec`.
fn parse_v2(text: &str) -> Option<Cpu> {
    let field = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    let total_ns = field("usage_usec")?.checked_mul(1_000)?;
    Some(match field("user_usec").zip(field("system_usec")) {
        Some((user, system)) => Cpu::shared(total_ns, user, system),
        None => Cpu { total_ns, split: None },
    })
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
    fn v2_is_in_microseconds_and_the_parts_add_up() {
        let text = "usage_usec 1000\nuser_usec 600\nsystem_usec 399\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n";
        let cpu = parse_v2(text).expect("a usage");
        assert_eq!(cpu.total_ns, 1_000_000);
        let (user, system) = cpu.split.expect("both parts");
        assert_eq!((user + system, user), (1_000_000, 1_000_000 * 600 / 999));
        assert_eq!(parse_v2("user_usec 1\n"), None);
    }

    #[test]
    fn parts_that_were_never_sampled_are_unknown_not_zero() {
        assert_eq!(Cpu::shared(500, 0, 0), Cpu { total_ns: 500, split: None });
        assert_eq!(Cpu::shared(u64::MAX, u64::MAX, u64::MAX).split.map(|(user, _)| user), Some(u64::MAX / 2));
    }
}
