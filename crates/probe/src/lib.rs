#![doc = include_str!("../README.md")]

pub mod ask;
pub mod cpu;
pub mod edges;
pub mod files;
pub mod host;
pub mod jvm;
pub mod memory;
pub mod network;
pub mod observation;
pub mod profile;
pub mod query;
pub mod remote;
pub mod sampler;
pub mod scrape;
pub mod server;
pub mod switches;
pub mod target;
pub mod throttle;
pub mod timeline;
pub mod tree;
mod watch;

pub use observation::{Cost, Live, LiveProcess, Observation};
pub use sampler::{Sampler, Schedule, Viewer};
pub use target::Target;
pub use timeline::Row;
