//! The few facts of Linux that `subject` and `probe` both need: sets of CPUs, what `/proc` says about a process, which
//! processes belong to a service, control groups.
//!
//! It knows neither of its two users, nor the study. Nothing here keeps time or decides anything.

pub mod cgroup;
pub mod clock;
pub mod cpu_set;
pub mod process;
pub mod tree;

pub use cgroup::{Cgroup, Version};
pub use clock::monotonic_ns;
pub use cpu_set::CpuSet;
