//! The few facts of Linux that `subject` and `probe` both need: sets of CPUs, what `/proc` says about a process, which
//! processes belong to a service, control groups.
//!
//! It knows neither of its two users, nor the study. Nothing here keeps time or decides anything.

pub mod cgroup;
pub mod cpu_set;
pub mod process;
pub mod tree;

pub use cgroup::{Cgroup, Version};
pub use cpu_set::CpuSet;

/// Now, by `CLOCK_MONOTONIC`, in ns: the clock that all processes of a study share.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
