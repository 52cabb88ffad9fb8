#![doc = include_str!("../README.md")]

pub mod ballast;
pub mod cgroup;
pub mod clock;
pub mod cpu_set;
pub mod hierarchy;
pub mod idle;
pub mod netns;
pub mod process;
pub mod tree;
pub mod userns;

pub use ballast::Ballast;
pub use cgroup::{Cgroup, Version};
pub use clock::monotonic_ns;
pub use cpu_set::CpuSet;
pub use idle::Awake;
pub use netns::Netns;
