//! The end of a process that is nobody's child here. Since Linux 6.15 its descriptor tells its exit status; before, only its parent knows it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use unladen_linux::process::Identity;

use crate::subject::ended::Ended;

/// A process is reaped so long after its end at most, mostly.
const REAPED: Duration = Duration::from_secs(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// `struct pidfd_info` as of Linux 6.15: see `linux/pidfd.h`.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroupid: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// `_IOWR(0xff, 11, struct pidfd_info)`
const PIDFD_GET_INFO: u64 = (3 << 30) | ((size_of::<PidfdInfo>() as u64) << 16) | (0xff << 8) | 11;
/// The field `exit_code` is wanted, or filled in.
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// A descriptor of exactly this process; `None`: it has gone.
pub(super) fn open(root: &Identity) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(root.pid).ok()?)?;
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Looked at afterwards: the descriptor then is of this process and not of a later one.
    root.is_alive().then_some(process)
}

/// Waits until the process has ended.
pub(super) fn wait(process: &OwnedFd) {
    while rustix::event::poll(&mut [PollFd::new(process, PollFlags::IN)], None) == Err(Errno::INTR) {}
}

/// How a process has ended whose end was waited for; `None`: the kernel does not tell.
pub(super) fn status(process: &OwnedFd) -> Option<Ended> {
    let deadline = Instant::now() + REAPED;
    while Instant::now() < deadline {
        let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
        // SAFETY: the request is for a structure of this size, which outlives the call.
        let is_told = unsafe { libc::ioctl(process.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) } == 0;
        if !is_told {
            return None;
        }
        if info.mask & PIDFD_INFO_EXIT != 0 {
            return Some(Ended::from_status(ExitStatus::from_raw(info.exit_code)));
        }
        // It is known once the parent has reaped it.
        std::thread::sleep(PAUSE);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_end_of_a_strangers_child_is_told() {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|it| it.parse::<u32>().ok());
        if (numbers.next(), numbers.next()) < (Some(6), Some(15)) {
            return eprintln!("\nSKIPPED: this kernel does not tell how strangers end (Linux 6.15 does)\n");
        }
        for (script, expected) in [("read x; exit 3", Ended::Exit(3)), ("read x; kill -9 $$", Ended::Signal(9))] {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(std::process::Stdio::piped());
            let mut child = command.spawn().expect("a shell");
            let process = open(&Identity::of(child.id()).expect("it is there")).expect("it lives");
            drop(child.stdin.take());
            wait(&process);
            let reaper = std::thread::spawn(move || child.wait());
            assert_eq!(status(&process), Some(expected));
            reaper.join().expect("no panic").expect("reaped");
        }
        assert!(open(&Identity { pid: std::process::id(), start_ticks: 0 }).is_none());
    }
}
