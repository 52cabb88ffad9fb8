//! What processes cost, read from the kernel while they run: CPU time, memory, threads, context switches, network and disk
//! bytes; what runtimes say of themselves (JVMs by their counters, others at
//! an endpoint); and what else goes on on the machine.
//!
//! It starts and stops nothing, knows no study, and computes no statistic beyond a difference and a median over its own
//! samples. A figure that cannot be had is `None`, never 0.
//!
//! ```text
//! Sampler::start(targets, schedule) ── a thread ──▶ one sample a second ──▶ finish() ──▶ Observation
//!     └── viewer(): the newest sample, for the screen
//! ```

pub mod cpu;
pub mod edges;
pub mod files;
pub mod host;
pub mod jvm;
pub mod memory;
pub mod network;
pub mod observation;
pub mod sampler;
pub mod scrape;
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
