//! A container of a pod as a service that runs: its first process is watched on this machine, and it is asked to end by way of its workload,
//! as a cluster does it. What has ended has ended: a container that is started anew is another one.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use unladen_linux::{Cgroup, CpuSet};
use unladen_probe::remote::Remote;

use super::api::{Api, Content, events};
use super::pods::Pod;
use super::wait::WatchedBy;
use super::{end, logs};
use crate::subject::ended::Ended;
use crate::subject::error::SubjectError;
use crate::subject::executor::{Executor, Health};

/// The last lines of a container are there so long after its end.
const LAST_LINES: Duration = Duration::from_secs(3);
/// The cluster knows how a container has ended after this time.
const KNOWN: Duration = Duration::from_secs(10);
/// The same of one that was killed, whose group says nothing of memory.
const REASON: Duration = Duration::from_secs(3);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(100);
/// The same about a container that is not on this machine.
const LONG_PAUSE: Duration = Duration::from_millis(300);

/// How a workload is told to have no pods any more.
#[derive(Debug)]
pub(super) struct Retirement {
    api: Arc<Api>,
    /// Path of the workload.
    path: String,
    how: How,
    is_done: AtomicBool,
}

/// See [`Retirement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Its controller deletes all pods together.
    Scale,
    /// Its controller would delete one after the other: they are deleted here as well.
    ScaleAndDelete,
    /// It has no count: it is deleted, and its pods go with it.
    Delete,
}

impl Retirement {
    pub(super) fn new(api: &Arc<Api>, path: String, how: How) -> Self {
        Self { api: Arc::clone(api), path, how, is_done: AtomicBool::new(false) }
    }

    /// Whether the cluster ends the pod now.
    fn retire(&self, pod: &str) -> bool {
        let first = !self.is_done.swap(true, Ordering::Relaxed);
        let done = match self.how {
            How::Scale | How::ScaleAndDelete if first => {
                self.api.patch(&self.path, Content::Merge, &json!({"spec": {"replicas": 0}})).map(drop)
            }
            How::Delete if first => self.api.delete(&format!("{}?propagationPolicy=Background", self.path)).map(drop),
            _ => Ok(()),
        };
        let done = done.and_then(|()| match self.how {
            How::ScaleAndDelete => self.api.delete(pod).map(drop),
            _ => Ok(()),
        });
        done.is_ok()
    }
}

/// A container of a pod.
#[derive(Debug)]
pub(super) struct Member {
    api: Arc<Api>,
    place: Place,
    image_id: String,
    watched_by: WatchedBy,
    cgroup: Option<Cgroup>,
    retirement: Arc<Retirement>,
    ended: Arc<Mutex<Option<Ended>>>,
    /// It is known that it is to end.
    is_ending: Arc<AtomicBool>,
    is_killed: bool,
}

/// Where a container is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Path of the pod.
    pub(super) pod: String,
    /// Path of its events.
    pub(super) events: String,
    /// Name.
    pub(super) container: String,
    /// Hexadecimal.
    pub(super) id: String,
}

impl Place {
    pub(super) fn log(&self) -> String {
        format!("{}/log?container={}", self.pod, self.container)
    }
}

impl Member {
    /// Watches a container, and follows its output.
    pub(super) fn watch(
        api: &Arc<Api>,
        place: Place,
        image_id: String,
        (watched_by, cgroup): (WatchedBy, Option<Cgroup>),
        retirement: Arc<Retirement>,
        log: File,
    ) -> Self {
        let (ended, is_ending) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let (tell, all_said) = mpsc::sync_channel(1);
        let has_gone = Arc::new(AtomicBool::new(false));
        let (seen, gone) = (watched_by.clone(), Arc::clone(&has_gone));
        let is_alive = move || match &seen {
            WatchedBy::ThisProcess(root) => root.is_alive(),
            WatchedBy::Probe(_) => !gone.load(Ordering::Relaxed),
        };
        logs::follow(api, place.log(), is_alive, Duration::MAX, log, tell);
        let watch = Watch {
            api: Arc::clone(api),
            place: place.clone(),
            process: watched_by.root().and_then(end::open),
            is_elsewhere: watched_by.root().is_none(),
            has_gone,
            cgroup: cgroup.clone(),
            is_ending: Arc::clone(&is_ending),
            all_said,
        };
        let told = Arc::clone(&ended);
        thread::spawn(move || watch.until_the_end(&told));
        let api = Arc::clone(api);
        Self { api, place, image_id, watched_by, cgroup, retirement, ended, is_ending, is_killed: false }
    }

    /// To its first process, if that is here.
    fn signal(&self, signal: Signal) {
        let _ = self.watched_by.root().map(|root| root.signal(signal));
    }

    fn pod(&self) -> Option<Pod> {
        self.api.get(&self.place.pod).ok().map(|pod| Pod::of(&pod))
    }

    /// What the kubelet has said last of its readiness.
    fn last_probe(&self) -> String {
        let mut latest = events(&self.api, &self.place.events).into_iter().rev();
        latest.find(|event| event.reason == "Unhealthy").map(|event| event.message).unwrap_or_default()
    }
}

/// What the thread needs that waits for the end of a container.
struct Watch {
    api: Arc<Api>,
    place: Place,
    process: Option<std::os::fd::OwnedFd>,
    /// It is not on this machine: the cluster is asked.
    is_elsewhere: bool,
    has_gone: Arc<AtomicBool>,
    cgroup: Option<Cgroup>,
    is_ending: Arc<AtomicBool>,
    all_said: Receiver<()>,
}

impl Watch {
    fn until_the_end(self, told: &Mutex<Option<Ended>>) {
        let mut known = None;
        let mut out_of_memory = false;
        if let Some(process) = &self.process {
            end::wait(process);
            // The group goes with the container.
            out_of_memory = self.cgroup.as_ref().is_some_and(Cgroup::memory_ran_out);
            known = end::status(process);
        }
        let ended = match known {
            Some(Ended::Signal(libc::SIGKILL)) if out_of_memory => Ended::OutOfMemory,
            Some(Ended::Signal(libc::SIGKILL)) if !self.is_asked_to() => {
                self.ask_for(REASON).unwrap_or(Ended::Signal(libc::SIGKILL))
            }
            Some(other) => other,
            None if self.is_elsewhere => self.ask_for(Duration::MAX).unwrap_or_else(|| {
                // Its pod has gone, and how it ended with it: by the signal that ends pods, if it was to end.
                Ended::Signal(if self.is_asked_to() { libc::SIGTERM } else { libc::SIGKILL })
            }),
            None => self.ask_for(KNOWN).unwrap_or(Ended::Exit(-1)),
        };
        self.has_gone.store(true, Ordering::Relaxed);
        if !self.is_asked_to() {
            // Whoever hears of the end reads the log.
            let _ = self.all_said.recv_timeout(LAST_LINES);
        }
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
    }

    fn is_asked_to(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// What the cluster knows of its end, once it does; `None`: the pod has gone, or the time is up.
    fn ask_for(&self, patience: Duration) -> Option<Ended> {
        let begun = Instant::now();
        let pause = if self.is_elsewhere { LONG_PAUSE } else { PAUSE };
        loop {
            match self.api.get(&self.place.pod) {
                Ok(pod) => {
                    let pod = Pod::of(&pod);
                    let ended = pod.container(&self.place.container).and_then(|it| it.end_of(&self.place.id));
                    if ended.is_some() {
                        return ended;
                    }
                }
                Err(failure) if failure.is_absence() => return None,
                Err(_) => {}
            }
            if begun.elapsed() >= patience {
                return None;
            }
            thread::sleep(pause);
        }
    }
}

impl Executor for Member {
    fn poll(&mut self) -> Option<Ended> {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn terminate(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        if !self.retirement.retire(&self.place.pod) {
            // The API server is away.
            self.signal(Signal::TERM);
        }
    }

    fn kill(&mut self) {
        if !self.is_ending.swap(true, Ordering::Relaxed) {
            // Else the kubelet starts it anew.
            self.retirement.retire(&self.place.pod);
        }
        if let Some(cgroup) = &self.cgroup {
            let _ = std::fs::write(cgroup.accounting.join("cgroup.kill"), "1");
        }
        self.signal(Signal::KILL);
        if self.watched_by.root().is_none() && !std::mem::replace(&mut self.is_killed, true) {
            let _ = self.api.delete(&format!("{}?gracePeriodSeconds=0", self.place.pod));
        }
    }

    fn probe(&self) -> Option<&Remote> {
        match &self.watched_by {
            WatchedBy::Probe(remote) => Some(remote),
            WatchedBy::ThisProcess(_) => None,
        }
    }

    /// The namespace is removed as a whole. The log gets its last lines meanwhile.
    fn remove(&mut self) -> Result<(), SubjectError> {
        Ok(())
    }

    fn image(&self) -> Option<&str> {
        Some(&self.image_id)
    }

    fn health(&self) -> Option<Health> {
        let pod = self.pod()?;
        let container = pod.container(&self.place.container)?;
        let first_after = container.asked_after?;
        let is_healthy = container.is_ready;
        let said = if is_healthy { String::new() } else { self.last_probe() };
        Some(Health { is_healthy, said, first_after })
    }

    /// Its control group is the kubelet's, and binds its threads whatever they ask for.
    fn confine(&self, cpus: &CpuSet) -> io::Result<()> {
        let Some(cgroup) = &self.cgroup else { return Ok(()) };
        match cgroup.confine(cpus) {
            Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::NotFound) => Ok(()),
            other => other,
        }
    }
}
