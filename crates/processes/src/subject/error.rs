//! Everything that can go wrong with a process, each with what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::compose::error::ComposeError;
use super::container::error::ContainerError;
use super::ended::Ended;
use super::kubernetes::KubernetesError;

/// An error with those that it comes from, for errors of crates that say little by themselves.
#[must_use]
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        // Some repeat the one that they come from.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

/// Why a process could not be started, made ready or stopped.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The command has no words.
    #[error("{service} has an empty command: name the program to start")]
    EmptyCommand {
        /// Service.
        service: String,
    },
    /// The program is in none of the directories of `PATH`.
    #[error(
        "cannot start {service}: `{program}` is in none of the directories of PATH ({searched}). Install it, or write its path"
    )]
    ProgramNotFound {
        /// Service.
        service: String,
        /// The program as written.
        program: String,
        /// `PATH` as searched.
        searched: String,
    },
    /// A program given by path is not there.
    #[error("cannot start {service}: there is no file {}. Build it first, or correct the path (relative paths start in the service's `cwd`)", path.display())]
    ProgramMissing {
        /// Service.
        service: String,
        /// The file looked for.
        path: PathBuf,
    },
    /// The file cannot be executed.
    #[error("cannot start {service}: {} is not executable. `chmod +x` it, or start it through its interpreter", path.display())]
    NotExecutable {
        /// Service.
        service: String,
        /// The file.
        path: PathBuf,
    },
    /// The file is there, but the kernel cannot run it.
    #[error("cannot start {service}: the kernel cannot run {} ({source}). It is built for another machine, or is a script whose first line names no interpreter that exists", path.display())]
    NotRunnable {
        /// Service.
        service: String,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The working directory is not there.
    #[error("cannot start {service}: its working directory {} is not there. Create it, or correct `cwd`", cwd.display())]
    WorkingDirectory {
        /// Service.
        service: String,
        /// The directory.
        cwd: PathBuf,
    },
    /// Its log cannot be written.
    #[error("cannot start {service}: its log {} cannot be written ({source}). Choose another output folder with `--out`", path.display())]
    Log {
        /// Service.
        service: String,
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A limit needs a control group that cannot be had.
    #[error(
        "cannot limit {limit} of {service}: {reason}. Run as root or in a delegated cgroup (`systemd-run --user --scope -p Delegate=yes …`), or remove the limit"
    )]
    Limit {
        /// Service.
        service: String,
        /// Name of the limit in the study: `cpus`, `memory`, `cpuset`.
        limit: &'static str,
        /// Why.
        reason: String,
    },
    /// The control group of the service cannot be made or removed although there is a usable hierarchy.
    #[error("the control group of {service} cannot be changed: {} ({source}). Is another tool working on the hierarchy?", path.display())]
    Cgroup {
        /// Service.
        service: String,
        /// The directory or file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// None of the wanted CPUs may be used.
    #[error("cannot start {service} on CPUs {wanted}: unladen may only use {allowed}. Correct `limits.cpuset`")]
    Cpus {
        /// Service.
        service: String,
        /// CPUs asked for.
        wanted: String,
        /// CPUs that may be used.
        allowed: String,
    },
    /// Starting failed in another way.
    #[error("cannot start {service}: {source}")]
    Start {
        /// Service.
        service: String,
        /// What the system said.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{service} ended before it was ready ({ended}). The end of its log ({}):\n{log_tail}", log.display())]
    DiedAtStart {
        /// Service.
        service: String,
        /// How.
        ended: Ended,
        /// Where its log is.
        log: PathBuf,
        /// Last lines of its output.
        log_tail: String,
    },
    /// It did not become ready in time.
    #[error("{service} was not ready after {:.1} s: {missing}. Raise `ready.timeout` or correct the condition. The end of its log ({}):\n{log_tail}", timeout.as_secs_f64(), log.display())]
    NotReady {
        /// Service.
        service: String,
        /// How long it had.
        timeout: Duration,
        /// What was still missing.
        missing: String,
        /// Where its log is.
        log: PathBuf,
        /// Last lines of its output.
        log_tail: String,
    },
    /// The network namespace of the service cannot be entered.
    #[error(
        "cannot ask {service} whether it is ready: its network namespace cannot be entered ({source}). Is unladen short of threads or memory?"
    )]
    Network {
        /// Service.
        service: String,
        /// What the system said.
        source: io::Error,
    },
    /// A readiness condition cannot be understood.
    #[error("`{text}` cannot be used to tell whether {service} is ready: {reason}")]
    Condition {
        /// Service.
        service: String,
        /// As written.
        text: String,
        /// Why, and what would do.
        reason: &'static str,
    },
    /// The user interrupted.
    #[error("interrupted while waiting for {service}")]
    Interrupted {
        /// Service.
        service: String,
    },
    /// Something is left after SIGKILL.
    #[error(
        "{service} cannot be stopped: {left} processes are left after SIGKILL (pids {pids}). They hang in the kernel; look at `dmesg`"
    )]
    Unstoppable {
        /// Service.
        service: String,
        /// How many.
        left: usize,
        /// Which.
        pids: String,
    },
    /// The guard process cannot be started.
    #[error("cannot start the guard that cleans up if unladen is killed: {source}")]
    Guard {
        /// What the system said.
        source: io::Error,
    },
    /// The container engine did not do what it was asked for.
    #[error("{service} as a container: {source}")]
    Container {
        /// Service.
        service: String,
        /// What is wrong, and what to do.
        source: ContainerError,
    },
    /// The engine has not bound a container to its cores, and unladen cannot.
    #[error(
        "the engine has not bound {service} to the cores {wanted}: it may use {allowed}, and its threads cannot be moved ({source}). Run unladen as root, or enable the controller `cpuset` for the engine (`docker info` says what it lacks)"
    )]
    Loose {
        /// Service.
        service: String,
        /// Its cores.
        wanted: String,
        /// Where it is.
        allowed: String,
        /// What the system said.
        source: io::Error,
    },
    /// A Compose project cannot be started.
    #[error(transparent)]
    Compose(#[from] ComposeError),
    /// Workloads cannot be started in a cluster.
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
}
