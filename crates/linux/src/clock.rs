//! Clocks of the kernel: the monotonic one that all processes of a study share, and the CPU clock of a process.

/// Ticks per second in `/proc` (`USER_HZ`), which is 100 on every Linux that Rust runs on.
pub const TICKS_PER_SECOND: u64 = 100;

/// One tick, ns.
pub const TICK_NS: u64 = 1_000_000_000 / TICKS_PER_SECOND;

/// Now, by `CLOCK_MONOTONIC`, in ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// CPU time of the calling thread, ns.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
}

/// CPU time of this process, ended threads included, ns.
#[must_use]
pub fn own_cpu_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime))
}

/// CPU time of any process, ns: the sum that `/proc/PID/task/*/schedstat` shows, with that of the threads that have ended,
/// in one system call. `None` when there is no such process.
#[must_use]
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|&pid| pid > 0)?;
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls only fill what they are given a pointer to.
    unsafe {
        if libc::clock_getcpuclockid(pid, &raw mut clock) != 0 || libc::clock_gettime(clock, &raw mut time) != 0 {
            return None;
        }
    }
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// CPU time of the children of this process that have ended and were waited for, and of theirs, ns (`RUSAGE_CHILDREN` of
/// getrusage(2)).
#[must_use]
pub fn reaped_cpu_ns() -> u64 {
    // SAFETY: all zeroes are a valid value of this structure of numbers, and the call only fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_process_is_its_own_also_after_its_threads_have_ended() {
        let spin = || {
            let before = thread_cpu_ns();
            while thread_cpu_ns() < before + 5_000_000 {}
        };
        let me = std::process::id();
        let before = process_cpu_ns(me).expect("this process is there");
        std::thread::spawn(spin).join().expect("the thread ends well");
        let after = process_cpu_ns(me).expect("this process is there");
        assert!(after - before >= 5_000_000, "{} ns of an ended thread are lost", after - before);
        assert!(own_cpu_ns() >= after);
        assert_eq!(process_cpu_ns(u32::MAX), None);
    }

    #[test]
    fn a_child_is_counted_when_it_has_been_waited_for() {
        let before = reaped_cpu_ns();
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let status = std::process::Command::new("sh").args(["-c", busy]).status().expect("a shell");
        assert!(status.success());
        assert!(reaped_cpu_ns() - before >= 1_000_000, "{} ns", reaped_cpu_ns() - before);
    }
}
