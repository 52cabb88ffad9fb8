//! Starts processes: each in its control group before it runs a single instruction, on its CPUs, in a session of its
//! own, its output in its log.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use unladen_linux::hierarchy::{Hierarchy, Mounts};
use unladen_linux::process::Identity;
use unladen_linux::tree::{Family, MARK};
use unladen_linux::{CpuSet, Version, userns};

use super::cgroups::{Cgroups, Refused};
use super::container::Container;
use super::error::SubjectError;
use super::executor::Process;
use super::guard::{self, Guard};
use super::launch::{Image, LONGEST_PAD, Launch};
use super::program;
use super::reaper;
use super::running::Running;
use super::shared::Shared;

/// What a launcher needs to know of the world.
#[derive(Debug, Clone)]
pub struct LauncherOptions {
    /// Random number that keeps the names of this study's groups and marks apart from any other's.
    pub random: u64,
    /// Whether any process will have a limit that needs a control group.
    pub limits: bool,
    /// Program and arguments of the guard.
    pub guard: Vec<OsString>,
    /// What the kernel says about control groups; `None`: do without.
    pub mounts: Option<Mounts>,
}

impl LauncherOptions {
    /// For a real study: this executable as its own guard, this process's control groups.
    #[must_use]
    pub fn new(random: u64, limits: bool) -> Self {
        Self {
            random,
            limits,
            // Not the path it was started by: that file may have been replaced by a newer build meanwhile.
            guard: vec!["/proc/self/exe".into(), guard::SUBCOMMAND.into()],
            mounts: Some(Mounts::of_this_process()),
        }
    }
}

/// Starts the processes of one study and cleans up behind all of them.
#[derive(Debug)]
pub struct Launcher {
    shared: Arc<Shared>,
    no_cgroups: Option<String>,
}

/// Ends of a process's standard input and output, where they are pipes.
type Pipes = (Option<ChildStdin>, Option<ChildStdout>);

/// A process whose standard input and output are pipes: a part of the instrument.
#[derive(Debug)]
pub struct Piped {
    /// The process.
    pub running: Running,
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output. Its error output goes to the log.
    pub stdout: ChildStdout,
}

impl Launcher {
    /// Starts the guard and makes the study's control group. That there is none is no error: see [`Self::no_cgroups`].
    ///
    /// # Errors
    /// The guard cannot be started.
    pub fn new(options: &LauncherOptions) -> Result<Self, SubjectError> {
        let id = format!("{}-{:08x}", std::process::id(), options.random & 0xffff_ffff);
        let guard = Guard::start(&options.guard).map_err(|source| SubjectError::Guard { source })?;
        guard.mark(&format!("{id}/"));
        // Processes whose own parents end are handed to unladen, so that they are found, and reaped. Where this is
        // refused they go to init, which reaps them too.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let made = match &options.mounts {
            None => Err("they were not asked for".to_owned()),
            Some(mounts) => Hierarchy::detect(mounts, options.limits).and_then(|hierarchy| {
                // Named before it is made: there is no instant at which it is there and the guard does not know it.
                for parent in hierarchy.parents() {
                    guard.cgroup(&parent.join(format!("unladen-{id}")));
                }
                Cgroups::create(hierarchy, &format!("unladen-{id}"))
            }),
        };
        let (cgroups, no_cgroups) = match made {
            Ok(cgroups) => (Some(cgroups), None),
            Err(reason) => (None, Some(reason)),
        };
        Ok(Self { shared: Arc::new(Shared::new(id, cgroups, guard)), no_cgroups })
    }

    /// Kind of the control groups; `None` without any.
    #[must_use]
    pub fn cgroup_version(&self) -> Option<Version> {
        self.shared.cgroups.as_ref().map(Cgroups::version)
    }

    /// Why there are no control groups; `None` when there are.
    #[must_use]
    pub fn no_cgroups(&self) -> Option<&str> {
        self.no_cgroups.as_deref()
    }

    /// Why `limits` of a service would be refused, all or some of them; `None`: each can be set.
    #[must_use]
    pub fn no_limits(&self) -> Option<String> {
        let missing = self.shared.cgroups.as_ref().map(Cgroups::missing_controllers).unwrap_or_default();
        let lacking = || format!("without the controllers: {}", missing.join(", "));
        self.no_cgroups.clone().or_else(|| (!missing.is_empty()).then(lacking))
    }

    /// Process id of the guard.
    #[must_use]
    pub fn guard_pid(&self) -> u32 {
        self.shared.guard.pid()
    }

    /// Starts a process. It runs when this returns; whether it is ready is another question.
    ///
    /// # Errors
    /// See [`SubjectError`]. Nothing is left behind then.
    pub fn launch(&self, launch: &Launch) -> Result<Running, SubjectError> {
        let log = open_log(launch)?;
        if let Some(image) = &launch.image {
            return self.start_container(launch, image, log);
        }
        let clone = || log.try_clone().map_err(|source| log_error(launch, source));
        let (running, _) = self.start(launch, [Stdio::null(), clone()?.into(), clone()?.into()], false)?;
        Ok(running)
    }

    /// Starts a process whose standard input and output are pipes; its error output goes to the log. It is a part of the instrument,
    /// so it may enter network namespaces as unladen may.
    ///
    /// # Errors
    /// See [`SubjectError`].
    pub fn launch_piped(&self, launch: &Launch) -> Result<Piped, SubjectError> {
        let log = open_log(launch)?;
        let (running, pipes) = self.start(launch, [Stdio::piped(), Stdio::piped(), log.into()], true)?;
        match pipes {
            (Some(stdin), Some(stdout)) => Ok(Piped { running, stdin, stdout }),
            _ => Err(SubjectError::Start {
                service: launch.service.clone(),
                source: io::Error::other("its pipes are missing"),
            }),
        }
    }

    /// Ends everything that this launcher has started and that is still there, removes the control groups and lets the
    /// guard go. Dropping the launcher does the same and keeps the error to itself. Every [`Running`] must have been stopped
    /// or dropped before.
    ///
    /// # Errors
    /// What could not be killed or removed.
    pub fn close(self) -> io::Result<()> {
        self.shared.close()
    }

    fn start(
        &self,
        launch: &Launch,
        [stdin, stdout, stderr]: [Stdio; 3],
        is_instrument: bool,
    ) -> Result<(Running, Pipes), SubjectError> {
        let service = || launch.service.clone();
        if !launch.cwd.is_dir() {
            return Err(SubjectError::WorkingDirectory { service: service(), cwd: launch.cwd.clone() });
        }
        let (word, arguments) =
            launch.command.split_first().ok_or_else(|| SubjectError::EmptyCommand { service: service() })?;
        let program = program::find(launch, word)?;
        let cpus = wanted_cpus(launch)?;
        let cgroup = self.make_cgroup(launch)?;
        let withdraw = || cgroup.as_ref().map(unladen_linux::Cgroup::remove);
        let entrance = cgroup.as_ref().map(Cgroups::open).transpose().map_err(|refused| {
            withdraw();
            refusal(launch, refused)
        })?;

        let mark = self.mark(launch);
        let mut command = Command::new(&program);
        command.arg0(word).args(arguments).envs(&launch.env).env(MARK, &mark);
        command.env("UNLADEN_PAD", "x".repeat(launch.pad.min(LONGEST_PAD))).current_dir(&launch.cwd);
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let doors: Vec<i32> = entrance.iter().flat_map(|e| &e.doors).map(AsRawFd::as_raw_fd).collect();
        let mask = cpus.as_ref().map(CpuSet::mask);
        let network = launch.network.clone();
        // SAFETY: between fork and exec only system calls are made on what was prepared before; nothing is allocated and
        // no lock is taken. The descriptors in `doors` are open until `entrance` is dropped, after the spawn.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                for &door in &doors {
                    // 0 stands for the writer itself.
                    rustix::io::write(std::os::fd::BorrowedFd::borrow_raw(door), b"0")?;
                }
                if let Some(network) = &network {
                    network.move_thread()?;
                }
                if is_instrument {
                    userns::lend()?;
                }
                // After the groups: entering a cpuset sets the affinity anew.
                if let Some(mask) = &mask {
                    rustix::thread::sched_setaffinity(None, mask)?;
                }
                Ok(())
            });
        }
        let log_start = fs::metadata(&launch.log).map_or(0, |log| log.len());
        let started = Instant::now();
        let spawned = reaper::spawn(&mut command);
        drop(entrance);
        let mut child = spawned.map_err(|source| {
            withdraw();
            match (source.raw_os_error(), &cpus) {
                // The one call between fork and exec that can find its argument invalid: setting the affinity.
                (Some(libc::EINVAL), Some(wanted)) => cpus_error(launch, wanted, "those of its cpuset"),
                _ => program::start_error(launch, &program, source),
            }
        })?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let pid = child.id();
        // It cannot have been reaped yet, so it is there, if only as a zombie.
        let root = Identity::of(pid).unwrap_or(Identity { pid, start_ticks: 0 });
        let family = Family { root, mark };
        self.shared.guard.process(&family);
        let service = launch.service.clone();
        let executor = Box::new(Process { service, child, root, cgroup: cgroup.clone() });
        let running = Running::new(launch, executor, family, cgroup, started, log_start, Arc::clone(&self.shared));
        Ok((running, pipes))
    }

    /// What the next process is marked with.
    fn mark(&self, launch: &Launch) -> String {
        format!("{}-{}-{}", self.shared.next_mark(), launch.service, launch.replica)
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A container of a project, as a service that runs.
    pub(super) fn running_of(
        &self,
        launch: &Launch,
        container: Container,
        family: Family,
        started: Instant,
        log_start: u64,
    ) -> Running {
        let cgroup = container.cgroup().cloned();
        let executor = Box::new(container);
        Running::new(launch, executor, family, cgroup, started, log_start, Arc::clone(&self.shared))
    }

    /// Starts a service as a container.
    fn start_container(&self, launch: &Launch, image: &Image, log: File) -> Result<Running, SubjectError> {
        let failed = |source| SubjectError::Container { service: launch.service.clone(), source };
        let engine = self.shared.engine().map_err(failed)?;
        let cpus = wanted_cpus(launch)?;
        let mark = self.mark(launch);
        let name = format!("unladen-{}", mark.replace('/', "-"));
        let log_start = log.metadata().map_or(0, |log| log.len());
        // Named before it is made: there is no instant at which it is there and the guard does not know it.
        self.shared.guard.container(engine.socket(), &name);
        let started = Instant::now();
        let (container, pid) =
            Container::start(&engine, &name, &mark, launch, image, cpus.as_ref(), log).map_err(|source| {
                self.shared.guard.removed(&name);
                failed(source)
            })?;
        let running = self.running_of(launch, container, Family::of_container(pid, mark), started, log_start);
        running.keep_to(cpus.as_ref())?;
        Ok(running)
    }

    fn make_cgroup(&self, launch: &Launch) -> Result<Option<unladen_linux::Cgroup>, SubjectError> {
        let Some(cgroups) = &self.shared.cgroups else {
            if launch.limits.need_cgroup() {
                let limit = if launch.limits.cpus.is_some() { "cpus" } else { "memory" };
                let reason =
                    format!("there are no control groups: {}", self.no_cgroups.as_deref().unwrap_or("unknown"));
                return Err(SubjectError::Limit { service: launch.service.clone(), limit, reason });
            }
            return Ok(None);
        };
        cgroups.make(&launch.service, launch.replica, &launch.limits).map(Some).map_err(|e| refusal(launch, e))
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Running processes still hold the rest; they clean up behind themselves and the last one closes.
        let _ = self.shared.close();
    }
}

/// CPUs to bind to: the limit's, else the launch's, as far as they may be used.
fn wanted_cpus(launch: &Launch) -> Result<Option<CpuSet>, SubjectError> {
    let Some(wanted) = launch.limits.cpuset.as_ref().or(launch.cpus.as_ref()) else { return Ok(None) };
    let allowed = CpuSet::allowed().unwrap_or_else(|_| wanted.clone());
    // unladen itself may be bound to the instrument's CPUs; a child may leave them again, but not the machine's.
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok().and_then(|text| text.parse().ok());
    let possible: CpuSet = online.unwrap_or_else(|| allowed.clone());
    if wanted.intersection(&possible).len() == wanted.len() && !wanted.is_empty() {
        return Ok(Some(wanted.clone()));
    }
    Err(cpus_error(launch, wanted, &possible.to_string()))
}

fn cpus_error(launch: &Launch, wanted: &CpuSet, allowed: &str) -> SubjectError {
    SubjectError::Cpus { service: launch.service.clone(), wanted: wanted.to_string(), allowed: allowed.to_owned() }
}

pub(super) fn open_log(launch: &Launch) -> Result<File, SubjectError> {
    let open = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        File::options().create(true).append(true).open(path)
    };
    open(&launch.log).map_err(|source| log_error(launch, source))
}

fn log_error(launch: &Launch, source: io::Error) -> SubjectError {
    SubjectError::Log { service: launch.service.clone(), path: launch.log.clone(), source }
}

fn refusal(launch: &Launch, refused: Refused) -> SubjectError {
    let service = launch.service.clone();
    match refused {
        Refused::Limit(limit, reason) => SubjectError::Limit { service, limit, reason },
        Refused::Kernel(path, source) => SubjectError::Cgroup { service, path, source },
    }
}
