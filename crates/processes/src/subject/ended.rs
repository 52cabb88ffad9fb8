//! How a process ended, in data and in words.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exit(i32),
    /// By a signal that unladen's last resort did not send.
    Signal(i32),
    /// The kernel killed it because its control group reached its memory limit.
    OutOfMemory,
    /// unladen killed it: it was still there this long after SIGTERM.
    Killed(Duration),
}

impl Ended {
    /// From what the kernel reports about a reaped child.
    #[must_use]
    pub fn from_status(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exit(code),
            (None, Some(signal)) => Self::Signal(signal),
            // Neither is possible for a child that has ended; -1 is no code of a real exit.
            (None, None) => Self::Exit(-1),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Signal(number) => match name(*number) {
                Some(name) => write!(f, "signal {number} ({name})"),
                None => write!(f, "signal {number}"),
            },
            Self::OutOfMemory => write!(f, "signal 9 (killed by the kernel: its memory limit was reached)"),
            Self::Killed(grace) if grace.subsec_millis() == 0 => write!(f, "killed after {} s", grace.as_secs()),
            Self::Killed(grace) => write!(f, "killed after {:.1} s", grace.as_secs_f64()),
        }
    }
}

/// What a signal means, in a word.
fn name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "hang-up",
        libc::SIGINT => "interrupted",
        libc::SIGQUIT => "quit",
        libc::SIGILL => "illegal instruction",
        libc::SIGABRT => "aborted",
        libc::SIGBUS => "bus error",
        libc::SIGFPE => "arithmetic error",
        libc::SIGKILL => "killed",
        libc::SIGSEGV => "segmentation fault",
        libc::SIGPIPE => "broken pipe",
        libc::SIGTERM => "terminated",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_end_has_its_words() {
        for (ended, words) in [
            (Ended::Exit(0), "exit 0"),
            (Ended::from_status(ExitStatus::from_raw(3 << 8)), "exit 3"),
            (Ended::from_status(ExitStatus::from_raw(9)), "signal 9 (killed)"),
            (Ended::Signal(40), "signal 40"),
            (Ended::Killed(Duration::from_secs(10)), "killed after 10 s"),
            (Ended::Killed(Duration::from_millis(250)), "killed after 0.2 s"),
            (Ended::OutOfMemory, "signal 9 (killed by the kernel: its memory limit was reached)"),
        ] {
            assert_eq!(ended.to_string(), words);
        }
    }
}
