//! The processes of a study: what is started, when it counts as ready, within which limits it runs, how it is stopped.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use unladen_journal::role::Role;
use unladen_journal::units::{Bytes, Time};

use super::spans::Count;
use super::texts::Texts;
use crate::scrape::Scrape;

/// How long a service lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Started afresh for every run.
    #[default]
    Run,
    /// Started once and shared by all runs (a database, say).
    Study,
}

/// A process (or several replicas of it) that unladen starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// What the service is in the study.
    #[serde(default)]
    pub role: Role,
    /// The service takes part only if this says something other than `no`: `${var.cache}`. Absent: it does.
    #[serde(default)]
    pub when: Option<String>,
    /// Program and arguments; a service without `command` and `image` comes from the Compose files or the cluster (`on`). A list is run as it is; a string is
    /// split into words like a shell would, but no shell runs. Of a container
    /// (`image`): what replaces the image's own, if anything.
    #[serde(default)]
    pub command: Command,
    /// Image of a container engine (Docker, Podman) to run the service from, instead of a program of this machine. It must be on this
    /// machine, and its containers use the machine's network.
    #[serde(default)]
    pub image: Option<String>,
    /// What the service is in the manifests of a Kubernetes cluster (`on`): `deployment/shop`, `statefulset/db`, `daemonset/agent`.
    #[serde(default)]
    pub workload: Option<String>,
    /// Which container of its pods the service is. Needed where they have several; the others are measured with it.
    #[serde(default)]
    pub container: Option<String>,
    /// What the container mounts: `/host/path:/path`, `/host/path:/path:ro` (the host's path relative to the study file if it begins with
    /// `./`), or `/path` for an empty volume that is the container's own.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// User of the container, `NAME`, `UID` or `UID:GID`. Absent: the image's.
    #[serde(default)]
    pub user: Option<String>,
    /// Arguments appended to the command.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment, on top of unladen's own; of a container on top of its image's.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Working directory; relative to the study file.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Command that builds the service, run once before the first run, in `cwd`.
    #[serde(default)]
    pub build: Option<Command>,
    /// When the service counts as ready.
    #[serde(default)]
    pub ready: Ready,
    /// What the service must have logged when the window begins, or 5 s after readiness if that is later: a regular expression,
    /// or a list of them, each for one line of output. A run in which a replica has not logged all of it does not count. Use it
    /// for the line by which an agent announces itself; `${…}` is not expanded.
    #[serde(default)]
    pub expect_log: Texts,
    /// Longest time that a `check` or a `setup` may take. Absent: 60 s.
    #[serde(default)]
    pub at_most: Option<Time>,
    /// Services that must be ready before this one starts.
    #[serde(default)]
    pub needs: Vec<String>,
    /// How many processes to start; `${replica}` is 0, 1, ….
    #[serde(default = "one")]
    pub replicas: u32,
    /// Fresh for every run, or one for the study.
    #[serde(default)]
    pub lifetime: Lifetime,
    /// Variants in which the service runs (a collector that only one of them needs, say). Absent: all of them. The
    /// placebo goes with the baseline.
    #[serde(default)]
    pub only: Vec<String>,
    /// Limits on each process's cgroup.
    #[serde(default)]
    pub limits: Limits,
    /// How the service is stopped.
    #[serde(default)]
    pub stop: Stop,
    /// Metrics to scrape from the service. Not needed for heap, threads, classes and collections of JVMs, which are detected.
    #[serde(default)]
    pub scrape: Option<Scrape>,
    /// Where a Go service gives its CPU profile, for `unladen run --profile`: `http://127.0.0.1:${port.app}/debug/pprof/profile`.
    #[serde(default)]
    pub pprof: Option<String>,
    /// How to ask a collector or storage for the number of spans it has received: the ledger counts these as arrived.
    #[serde(default)]
    pub count: Option<Count>,
}

impl Service {
    /// A subject with every default.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self {
            role: Role::default(),
            when: None,
            command,
            image: None,
            workload: None,
            container: None,
            volumes: Vec::new(),
            user: None,
            args: Vec::new(),
            env: IndexMap::new(),
            cwd: None,
            build: None,
            ready: Ready::default(),
            expect_log: Texts::default(),
            at_most: None,
            needs: Vec::new(),
            replicas: one(),
            lifetime: Lifetime::default(),
            only: Vec::new(),
            limits: Limits::default(),
            stop: Stop::default(),
            scrape: None,
            pprof: None,
            count: None,
        }
    }

    /// Whether it says nothing of what to run: the files that `on` names do.
    #[must_use]
    pub fn says_nothing_to_run(&self) -> bool {
        self.command.is_absent() && self.image.is_none()
    }

    /// Whether the service runs in a variant, by the variant's key.
    #[must_use]
    pub fn runs_in(&self, variant: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == variant)
    }
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Command {
    /// One line, split into words by the rules of POSIX shells (quotes, backslashes); no shell runs it.
    Line(String),
    /// Program first, then one string per argument.
    Words(Vec<String>),
}

impl Default for Command {
    fn default() -> Self {
        Self::Words(Vec::new())
    }
}

impl Command {
    /// Whether it says nothing: a container then does what its image says.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

// By hand, because an untagged enum can only say "data did not match any variant".
impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Command;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command line such as `java -jar app.jar`, or a list of words")
            }
            fn visit_str<E: de::Error>(self, line: &str) -> Result<Command, E> {
                Ok(Command::Line(line.to_owned()))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut words: A) -> Result<Command, A::Error> {
                let mut list = Vec::new();
                while let Some(word) = words.next_element()? {
                    list.push(word);
                }
                Ok(Command::Words(list))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// When a service counts as ready. All conditions that are given must hold; with none, when the health check of its
/// container says so, or, without one, when it has been alive for 100 ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ready {
    /// A URL that must answer with a status below 400.
    pub http: Option<String>,
    /// A `host:port` that must accept connections.
    pub tcp: Option<String>,
    /// A text that must appear in a line of its output.
    pub log: Option<String>,
    /// The health check of its container must pass. Without any condition, this is the default for containers that have one.
    pub healthy: bool,
    /// How long to wait at most.
    pub timeout: Time,
}

/// Limits on a process's cgroup. They need root (or a delegated cgroup); without it, all except `cpuset: all` are refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// CPU time per second, in cores: `1.5`.
    pub cpus: Option<f64>,
    /// Cores to run on, as a Linux list: `0-1,3`; or `all`, those of the instrument as well. Default: the cores that the instrument
    /// leaves free.
    pub cpuset: Option<String>,
    /// Most memory: `512MiB`.
    pub memory: Option<Bytes>,
}

impl Limits {
    /// Whether it may run on all cores; that takes no cgroup.
    #[must_use]
    pub fn on_all_cores(&self) -> bool {
        self.cpuset.as_deref() == Some("all")
    }

    /// Whether there is anything to be limited.
    #[must_use]
    pub fn are_any(&self) -> bool {
        self.cpus.is_some() || self.memory.is_some() || (self.cpuset.is_some() && !self.on_all_cores())
    }
}

/// How a service is stopped: SIGTERM, and SIGKILL after the grace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Time between SIGTERM and SIGKILL.
    pub grace: Time,
}

impl Default for Ready {
    fn default() -> Self {
        Self { http: None, tcp: None, log: None, healthy: false, timeout: Time::seconds(30.0) }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self { grace: Time::seconds(10.0) }
    }
}

/// Replicas, unless a service says how many.
fn one() -> u32 {
    1
}
