//! What `/proc` says about one process, read with as little work as possible: these files are read every second while
//! something is being measured.
//!
//! A process that has gone is `None`, never zero.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The parts of `/proc/PID/stat` that are of use here; see proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: u32,
    /// `R`, `S`, `D`, …; `Z` is a zombie: it has ended and waits to be reaped.
    pub state: u8,
    /// Parent.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// Session.
    pub session: u32,
    /// User-mode time of the whole thread group, ended threads included, in ticks.
    pub user_ticks: u64,
    /// The same in the kernel.
    pub system_ticks: u64,
    /// User-mode time of the children that ended and were waited for, in ticks.
    pub waited_user_ticks: u64,
    /// The same in the kernel.
    pub waited_system_ticks: u64,
    /// Threads.
    pub threads: u64,
    /// When it started, in ticks since boot. With the pid it names a process for good.
    pub start_ticks: u64,
}

/// A process that cannot be mistaken for a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// When it started, in ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads `/proc/PID/stat`; `None` when there is no such process.
    #[must_use]
    pub fn read(pid: u32) -> Option<Self> {
        let mut buffer = [0_u8; 1024];
        Self::parse(read_into(&format!("/proc/{pid}/stat"), &mut buffer)?)
    }

    /// Parses a line of `/proc/PID/stat`. The name may hold any byte, spaces and brackets too, so what follows it counts
    /// from the last bracket.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let space = line.iter().position(|&byte| byte == b' ')?;
        let bracket = line.iter().rposition(|&byte| byte == b')')?;
        let pid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        let mut fields = std::str::from_utf8(&line[bracket + 1..]).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        // From field 4 of the manual page to field 22.
        let mut numbers = [0_u64; 19];
        for number in &mut numbers {
            // Some fields between those that are kept may be negative; no kept one ever is.
            *number = fields.next()?.parse().unwrap_or(0);
        }
        Some(Self {
            pid,
            state,
            parent: u32::try_from(numbers[0]).ok()?,
            group: u32::try_from(numbers[1]).ok()?,
            session: u32::try_from(numbers[2]).ok()?,
            user_ticks: numbers[10],
            system_ticks: numbers[11],
            waited_user_ticks: numbers[12],
            waited_system_ticks: numbers[13],
            threads: numbers[16],
            start_ticks: numbers[18],
        })
    }

    /// Whether it can still do anything: neither a zombie nor dead.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// What names the process for good.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start_ticks: self.start_ticks }
    }
}

impl Identity {
    /// Of the process that has this pid now.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Stat::read(pid).map(|stat| stat.identity())
    }

    /// Whether the process is still there and no zombie.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.identity() == *self && stat.is_alive())
    }

    /// Sends a signal to exactly this process. A process that has gone is not an error.
    ///
    /// # Errors
    /// What the kernel says, `EPERM` mostly.
    pub fn signal(&self, signal: rustix::process::Signal) -> std::io::Result<()> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
        let gone = |error: rustix::io::Errno| if error == rustix::io::Errno::SRCH { Ok(()) } else { Err(error.into()) };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(error) => return gone(error),
        };
        // Looked at after the handle was opened: the handle then is of this process and not of a later one.
        if !self.is_alive() {
            return Ok(());
        }
        pidfd_send_signal(handle, signal).or_else(gone)
    }
}

/// Every process of the machine that can be seen.
#[must_use]
pub fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        .filter_map(Stat::read)
        .collect()
}

/// The threads of a process.
#[must_use]
pub fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect()
}

/// The children of a process, over all its threads. Needs a kernel with `CONFIG_PROC_CHILDREN`: `None` without.
#[must_use]
pub fn children(pid: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in threads(pid) {
        match fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) {
            Ok(text) => found.extend(text.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok())),
            // A thread that has just ended looks the same as a kernel without the file.
            Err(_) if Path::new("/proc/thread-self/children").exists() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// Whether the environment that a process was started with holds `NAME=` followed by a value that starts with `prefix`.
/// False also when it may not be read (another user's process) or is gone (a zombie's).
#[must_use]
pub fn environment_starts(pid: u32, name: &str, prefix: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|&byte| byte == 0).any(|variable| {
        variable
            .strip_prefix(name.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .is_some_and(|value| value.starts_with(prefix.as_bytes()))
    })
}

/// Reads a small file of `/proc` into a buffer on the stack. What does not fit is left out.
pub fn read_into<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut file = File::open(path).ok()?;
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]).ok()? {
            0 => break,
            read => length += read,
        }
    }
    Some(&buffer[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_brackets_and_bytes_does_not_shift_the_fields() {
        let line = b"4711 (a) b(\xff) S 42 4711 4710 0 -1 4194304 1 2 3 4 50 60 7 8 20 0 9 0 12345 1000 100 184467";
        let stat = Stat::parse(line).expect("a whole line");
        assert_eq!(
            stat,
            Stat {
                pid: 4711,
                state: b'S',
                parent: 42,
                group: 4711,
                session: 4710,
                user_ticks: 50,
                system_ticks: 60,
                waited_user_ticks: 7,
                waited_system_ticks: 8,
                threads: 9,
                start_ticks: 12345,
            }
        );
        assert!(stat.is_alive());
        assert_eq!(Stat::parse(b"1 (x) S 2 3"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn this_process_is_found_with_its_threads() {
        let me = std::process::id();
        let stat = Stat::read(me).expect("this process is there");
        assert_eq!(stat.pid, me);
        assert!(stat.identity().is_alive());
        assert!(threads(me).contains(&me));
        assert!(all().iter().any(|other| other.identity() == stat.identity()));
        let later = Identity { pid: me, start_ticks: stat.start_ticks + 1 };
        assert!(!later.is_alive(), "another start is another process");
    }
}
