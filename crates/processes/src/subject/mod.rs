//! Starting, waiting for and stopping processes, each in a control group and a session of its own, so that what it
//! costs can be told apart and nothing of it is left behind, not even when unladen itself is killed.
//!
//! It measures nothing (that is `probe`) and knows no study: `run` hands it plain [`Launch`] structs.
//!
//! ```text
//! Launcher::new ── launch ──▶ Running ── wait_ready ──▶ … ── stop ──▶ Ended
//!     └── a guard process that cleans up if unladen dies
//! ```

pub mod cgroups;
pub mod compose;
pub mod container;
pub mod cores;
pub mod ended;
pub mod error;
mod executor;
pub mod guard;
pub mod kubernetes;
pub mod launch;
pub mod launcher;
pub mod listener;
mod placed;
mod program;
pub mod ready;
mod reaper;
pub mod running;
mod shared;

pub use cores::{Partition, Topology, partition};
pub use ended::Ended;
pub use error::SubjectError;
pub use launch::{Launch, Limits};
pub use launcher::{Launcher, LauncherOptions, Piped};
pub use listener::{Listener, Wanted};
pub use placed::Placed;
pub use ready::Readiness;
pub use running::Running;
