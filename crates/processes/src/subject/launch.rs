//! What to start: plain data, filled in by `run`.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use unladen_linux::{CpuSet, Netns};

/// What a container is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// Its name: `postgres:17`, or `sha256:…`.
    pub name: String,
    /// What is mounted: `/host/path:/path`, `/host/path:/path:ro`, or `/path` for a volume that is made for the container and goes with it.
    pub volumes: Vec<String>,
    /// User or `user:group` in the container; `None`: the image's.
    pub user: Option<String>,
}

/// One process to start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// Name of its service, or of the instrument's part.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// Image of the container to run it in. `None`: it is a process of this machine.
    pub image: Option<Image>,
    /// Program first, then its arguments; of a container what replaces the image's own (`CMD`), if anything.
    pub command: Vec<String>,
    /// Environment on top of unladen's own, or of the image's.
    pub env: IndexMap<String, String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// File to which its output and its error output are appended, in the order in which they are written. It is made,
    /// with its folder, if it is not there.
    pub log: PathBuf,
    /// CPUs to run on; `limits.cpuset` goes before. `None`: those of unladen.
    pub cpus: Option<CpuSet>,
    /// Limits.
    pub limits: Limits,
    /// Network namespace to run in. `None`: that of unladen.
    pub network: Option<Arc<Netns>>,
    /// Length of the variable `UNLADEN_PAD`, 0 to 4095, at random for every run: the size of the environment shifts the
    /// stack, and with it alignments that can move a measurement by percents.
    pub pad: usize,
}

/// A service in the names of files: `shop/sidecar`, another container of the pods of `shop`, is `shop.sidecar`.
#[must_use]
pub fn file_name(service: &str) -> String {
    service.replace('/', ".")
}

/// Name of the file with the output of a service, one for each replica: `app.log`, `app-1.log`.
#[must_use]
pub fn log_name(service: &str, replica: u32) -> String {
    let service = file_name(service);
    match replica {
        0 => format!("{service}.log"),
        replica => format!("{service}-{replica}.log"),
    }
}

/// Limits on one process and all that it starts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    /// CPU time per second, in cores. Needs a control group.
    pub cpus: Option<f64>,
    /// Most memory, bytes, swap included. Needs a control group.
    pub memory: Option<u64>,
    /// CPUs to run on. Enforced by a control group where there is one, else by the inherited affinity alone.
    pub cpuset: Option<CpuSet>,
}

impl Limits {
    /// Whether any of them needs a control group.
    #[must_use]
    pub fn need_cgroup(&self) -> bool {
        self.cpus.is_some() || self.memory.is_some()
    }
}

/// Longest padding of the environment, bytes.
pub const LONGEST_PAD: usize = 4095;
