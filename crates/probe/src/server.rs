//! A probe in the pod of what it watches: the other end of [`super::remote`].

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use unladen_linux::clock::own_cpu_ns;
use unladen_linux::process::Identity;
use unladen_linux::tree::Family;
use unladen_linux::{Cgroup, Version, monotonic_ns};
use unladen_load::child::{line, read_line};

use super::cpu::CpuReader;
use super::remote::{Answer, Ask, Counters, Whose, Window};
use super::sampler::{Sampler, Schedule};
use super::target::Target;
use super::tree::Tree;

/// How often the flag is looked at while nobody wants to talk.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// A stranger may take so long to say who he is.
const INTRODUCTION: Duration = Duration::from_secs(1);
/// No question is longer, bytes.
const MAX_QUESTION: u64 = 1 << 20;

/// Answers everybody who knows the secret, until the flag is set.
///
/// # Errors
/// The listener cannot be used, or there is no container to watch: process 1 is this one.
pub fn serve(listener: &TcpListener, secret: &str, over: &AtomicBool) -> io::Result<()> {
    let container = watched_container()?;
    listener.set_nonblocking(true)?;
    while !over.load(Ordering::Relaxed) {
        // An error is a signal, mostly: then the flag is set.
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&LOOK));
        let Ok((stream, _)) = listener.accept() else { continue };
        let (secret, container) = (secret.to_owned(), container.clone());
        // Who goes away in the middle of a conversation is not missed.
        thread::spawn(move || stream.set_nonblocking(false).and_then(|()| converse(stream, &secret, &container)));
    }
    Ok(())
}

/// What is watched.
#[derive(Debug, Clone)]
struct Container {
    family: Family,
    /// Without one, the process tree is read.
    cgroup: Option<Cgroup>,
}

/// The container whose process namespace this process shares.
fn watched_container() -> io::Result<Container> {
    let alone = || io::Error::other("there is no container in this process namespace: process 1 is the probe itself");
    let root = Identity::of(1).filter(|_| std::process::id() != 1).ok_or_else(alone)?;
    let mark = "(none)".to_owned();
    Ok(Container { family: Family { root, mark }, cgroup: group(Path::new("/proc/1/root/sys/fs/cgroup")) })
}

/// The control group that a container has mounted for itself, as far as it can be read.
fn group(mounted: &Path) -> Option<Cgroup> {
    let at = |names: &[&str]| names.iter().map(|name| mounted.join(name)).find(|path| path.is_dir());
    if let Some(accounting) = at(&["cpuacct", "cpu,cpuacct", "cpuacct,cpu"]) {
        CpuReader::v1(&accounting)?;
        let (cpu, memory) = (at(&["cpu", "cpu,cpuacct", "cpuacct,cpu"]), at(&["memory"]));
        return Some(Cgroup { version: Version::V1, accounting, cpu, memory, cpuset: at(&["cpuset"]) });
    }
    CpuReader::v2(mounted)?;
    Some(Cgroup { version: Version::V2, accounting: mounted.to_owned(), cpu: None, memory: None, cpuset: None })
}

/// One conversation, to its end.
fn converse(mut stream: TcpStream, secret: &str, container: &Container) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(INTRODUCTION))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    match read_line(&mut reader, MAX_QUESTION)? {
        Some(Ask::Hello { secret: said, version }) if said == secret => {
            let own = env!("CARGO_PKG_VERSION");
            if version != own {
                let message = format!("it is unladen {own}, not {version}: use the same image");
                return line(&mut stream, &Answer::Failed(message));
            }
            line(&mut stream, &Answer::Hello)?;
        }
        _ => return Ok(()),
    }
    stream.set_read_timeout(None)?;
    let (cpu, mut tree) = (CpuReader::new(container.cgroup.as_ref()), Tree::new(container.family.clone()));
    let mut sampler: Option<Sampler> = None;
    while let Some(ask) = read_line(&mut reader, MAX_QUESTION)? {
        let answer = match ask {
            Ask::Clock => Answer::Clock(monotonic_ns()),
            Ask::Read => {
                let cpu_ns = cpu.read(&mut tree).map(|cpu| cpu.total_ns);
                Answer::Counters(Counters { cpu_ns, own_ns: own_cpu_ns() })
            }
            Ask::Watch { whose, window } => match watch(container, whose, window) {
                Ok(started) => {
                    sampler = Some(started);
                    Answer::Watching
                }
                Err(error) => Answer::Failed(error.to_string()),
            },
            Ask::Finish { now } => {
                let seen = sampler.take().and_then(|it| if now { it.finish_now() } else { it.finish() });
                seen.map_or_else(|| Answer::Failed("it has seen nothing".to_owned()), |it| Answer::Seen(Box::new(it)))
            }
            Ask::Hello { .. } => Answer::Failed("it has been greeted already".to_owned()),
        };
        line(&mut stream, &answer)?;
    }
    Ok(())
}

fn watch(container: &Container, whose: Whose, window: Window) -> io::Result<Sampler> {
    let Whose { service, replica, role, endpoint } = whose;
    let Container { family, cgroup } = container.clone();
    let schedule = Schedule {
        window_start_ns: window.start_ns,
        window_end_ns: window.end_ns,
        interval: Duration::from_nanos(window.interval_ns),
        cpus: None,
    };
    Sampler::start(vec![Target { service, replica, role, family, cgroup, endpoint, remote: None }], schedule)
}

#[cfg(test)]
mod tests;
