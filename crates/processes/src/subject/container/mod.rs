//! Services that run as containers of an engine on this machine: started from an image, in the network of this machine, on the
//! cores and within the limits of the study. Their CPU time is read from the control group that the engine made for them.

#[cfg(feature = "containers")]
pub(super) mod engine;
#[cfg(not(feature = "containers"))]
#[path = "left_out.rs"]
pub(super) mod engine;
pub(super) mod error;
mod known;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

pub use engine::{Engine, socket};
pub use error::ContainerError;
pub(super) use known::{Inspected, Member, PROJECT};

use unladen_linux::hierarchy::Mounts;
use unladen_linux::{Cgroup, CpuSet};

use super::ended::Ended;
use super::executor::{Executor, Health};
use super::launch::{Image, Launch};

/// A container that runs.
#[derive(Debug)]
pub(super) struct Container {
    engine: Arc<Engine>,
    name: String,
    image_id: String,
    stop_signal: String,
    /// The group that the engine made for it.
    cgroup: Option<Cgroup>,
    /// Filled by the thread that follows its output.
    ended: Arc<Mutex<Option<Ended>>>,
    follower: Option<JoinHandle<()>>,
    /// Whether it goes with a Compose project, which removes it.
    of_project: bool,
}

impl Container {
    /// Creates the container `name` and starts it. Returns it with the process id of its first process. What has been created when this
    /// fails is removed again.
    pub(super) fn start(
        engine: &Arc<Engine>,
        name: &str,
        mark: &str,
        launch: &Launch,
        image: &Image,
        cpus: Option<&CpuSet>,
        log: File,
    ) -> Result<(Self, u32), ContainerError> {
        if launch.network.is_some() {
            // Only the engine can put a container into a network, and only into its own.
            return Err(ContainerError::Unfit(
                "a container cannot be put into a network namespace of unladen's".to_owned(),
            ));
        }
        engine.create(name, launch, image, mark, cpus)?;
        let begun = Self::begin(engine, name, launch, log);
        begun.inspect_err(|_| {
            let _ = engine.remove(name);
        })
    }

    fn begin(engine: &Arc<Engine>, name: &str, launch: &Launch, log: File) -> Result<(Self, u32), ContainerError> {
        engine.start(name)?;
        let (container, inspected) = Self::adopt(engine, name, log)?;
        inspected.need_limits(&launch.limits)?;
        Ok((Self { of_project: false, ..container }, inspected.pid))
    }

    /// One that somebody else has made and removes: a Compose project.
    pub(super) fn adopt(engine: &Arc<Engine>, name: &str, log: File) -> Result<(Self, Inspected), ContainerError> {
        let inspected = seen(engine, name)?;
        let cgroup = Mounts::of_process(inspected.pid).group();
        let memory = watch_memory(inspected.pid, cgroup.clone());
        let ended = Arc::new(Mutex::new(None));
        let mut container = Self {
            engine: Arc::clone(engine),
            name: name.to_owned(),
            image_id: inspected.image_id.clone(),
            stop_signal: inspected.stop_signal.clone().unwrap_or_else(|| "SIGTERM".to_owned()),
            cgroup: cgroup.clone(),
            ended: Arc::clone(&ended),
            follower: None,
            of_project: true,
        };
        let (engine, name) = (engine.for_another_thread()?, name.to_owned());
        container.follower = Some(thread::spawn(move || {
            let how = follow(&engine, &name, log, memory);
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        }));
        Ok((container, inspected))
    }

    /// The group that the engine made for it.
    pub(super) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }
}

/// What the engine says of a container whose first process can be seen from here, or has ended. An engine takes a moment to notice an end.
fn seen(engine: &Engine, name: &str) -> Result<Inspected, ContainerError> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let inspected = engine.inspect(name)?;
        let pid = inspected.pid;
        if pid == 0 || Path::new("/proc").join(pid.to_string()).exists() {
            return Ok(inspected);
        }
        if Instant::now() >= deadline {
            return Err(ContainerError::Unseen { pid });
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Watches for the end of the first process of a container, and tells whether its memory had run out by then. Afterwards the engine removes
/// the group, and not every engine says it.
fn watch_memory(pid: u32, cgroup: Option<Cgroup>) -> Option<JoinHandle<bool>> {
    let (cgroup, pid) = (cgroup?, Pid::from_raw(i32::try_from(pid).ok()?)?);
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
    Some(thread::spawn(move || {
        while rustix::event::poll(&mut [PollFd::new(&process, PollFlags::IN)], None) == Err(Errno::INTR) {}
        cgroup.memory_ran_out()
    }))
}

/// Copies the output of a container to its log until it ends, and tells how.
fn follow(engine: &Engine, name: &str, log: File, memory: Option<JoinHandle<bool>>) -> Ended {
    let inspected = engine.follow(name, log);
    match inspected {
        Ok(mut inspected) => {
            inspected.out_of_memory |= memory.is_some_and(|watch| watch.join().unwrap_or(false));
            ended(&inspected)
        }
        // The engine has died, or somebody has removed the container. How it ended is lost.
        Err(_) => Ended::Exit(-1),
    }
}

fn ended(inspected: &Inspected) -> Ended {
    /// An exit code above is that of a process that a signal has ended.
    const SIGNAL: i32 = 128;
    match inspected.exit_code {
        _ if inspected.out_of_memory => Ended::OutOfMemory,
        code if (SIGNAL + 1..SIGNAL + 65).contains(&code) => Ended::Signal(code - SIGNAL),
        code => Ended::Exit(code),
    }
}

impl Executor for Container {
    fn poll(&mut self) -> Option<Ended> {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn terminate(&mut self) {
        let _ = self.engine.signal(&self.name, &self.stop_signal);
    }

    fn kill(&mut self) {
        let _ = self.engine.signal(&self.name, "SIGKILL");
    }

    fn remove(&mut self) -> Result<(), super::SubjectError> {
        let removed = if self.of_project { Ok(()) } else { self.engine.remove(&self.name) };
        if let Some(follower) = self.follower.take() {
            let _ = follower.join();
        }
        removed.map_err(|source| super::SubjectError::Container { service: self.name.clone(), source })
    }

    fn image(&self) -> Option<&str> {
        Some(&self.image_id)
    }

    fn container(&self) -> Option<&str> {
        (!self.of_project).then_some(&self.name)
    }

    /// Its control group is the engine's, and binds its threads whatever they ask for.
    fn confine(&self, cpus: &CpuSet) -> io::Result<()> {
        self.engine.confine(&self.name, cpus).or_else(|refused| {
            // Podman 4.3 does not know this call.
            let cgroup = self.cgroup.as_ref().ok_or_else(|| refused.to_string());
            let written = cgroup.and_then(|cgroup| cgroup.confine(cpus).map_err(|error| format!("{refused}; {error}")));
            written.map_err(io::Error::other)
        })
    }

    fn health(&self) -> Option<Health> {
        self.engine.inspect(&self.name).ok()?.health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_above_128_are_signals() {
        let of = |exit_code, out_of_memory| ended(&Inspected { exit_code, out_of_memory, ..Inspected::default() });
        assert_eq!(of(0, false), Ended::Exit(0));
        assert_eq!(of(137, false), Ended::Signal(9));
        assert_eq!(of(137, true), Ended::OutOfMemory);
        assert_eq!(of(255, false), Ended::Exit(255));
    }
}
