//! The few facts of Linux that `subject` and `probe` both need: sets of CPUs, what `/proc` says about a process, which
//! processes belong to a service, control groups; and network namespaces.
//!
//! It knows neither of its two users, nor the study. Nothing here keeps time or decides anything.

pub mod cgroup;
pub mod clock;
pub mod cpu_set;
pub mod netns;
pub mod process;
pub mod tree;
pub mod userns;

pub use cgroup::{Cgroup, Version};
pub use clock::monotonic_ns;
pub use cpu_set::CpuSet;
pub use netns::Netns;
