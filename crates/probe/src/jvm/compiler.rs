//! CPU time of a JVM's JIT compiler: what its threads used. They are told by their names, which HotSpot gives them on Linux.
//!
//! It compiles what has become hot, once, whenever that comes. In a window soon after the start this may be half of a service's CPU, in
//! bursts, and says nothing of what a request costs.

use std::collections::HashMap;

use unladen_linux::process::{read_into, threads};

/// What the names of compiler threads begin with: the tiered compilers, and the one that is written in Java. The kernel keeps 15 bytes.
const NAMES: [&[u8]; 3] = [b"C1 Compiler", b"C2 Compiler", b"JVMCI"];

/// The threads of one JVM.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    /// By id: what those that compile have used so far; `None` for the others.
    threads: HashMap<u32, Option<Used>>,
}

/// Time of compiler threads, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Used {
    /// On a CPU.
    pub(super) running: u64,
    /// Runnable, but not running: others had the CPU.
    pub(super) waiting: u64,
}

impl Used {
    /// The first two numbers of `schedstat` (<https://docs.kernel.org/scheduler/sched-stats.html>).
    fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse);
        Some(Self { running: numbers.next()?.ok()?, waiting: numbers.next()?.ok()? })
    }

    /// Neither number ever falls.
    fn max(self, other: Self) -> Self {
        Self { running: self.running.max(other.running), waiting: self.waiting.max(other.waiting) }
    }
}

impl std::ops::Add for Used {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { running: self.running + other.running, waiting: self.waiting + other.waiting }
    }
}

impl Compiler {
    /// What all compiler threads have used so far. HotSpot ends some that have nothing to do; what they used is kept.
    pub(super) fn read(&mut self, pid: u32) -> Used {
        let mut buffer = [0; 128];
        // A thread is called as its process before it has a name of its own.
        let unnamed = read_into(&format!("/proc/{pid}/comm"), &mut buffer).map(<[u8]>::to_vec).unwrap_or_default();
        for thread in threads(pid) {
            let used = self.threads.get(&thread).copied().or_else(|| {
                let name = read_into(&format!("/proc/{pid}/task/{thread}/comm"), &mut buffer)?;
                let compiles = NAMES.iter().any(|start| name.starts_with(start));
                (compiles || name != unnamed).then_some(compiles.then(Used::default))
            });
            let Some(used) = used else { continue };
            let now = used.map(|before| {
                read_into(&format!("/proc/{pid}/task/{thread}/schedstat"), &mut buffer)
                    .and_then(Used::parse)
                    .map_or(before, |now| now.max(before))
            });
            self.threads.insert(thread, now);
        }
        self.threads.values().flatten().fold(Used::default(), |sum, used| sum + *used)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn only_threads_that_compile_are_counted() {
        let spin = |name: &str| {
            let named = std::thread::Builder::new().name(name.to_owned());
            let work = || {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(30) {}
                // Stays until it has been read.
                std::thread::park_timeout(Duration::from_secs(5));
            };
            named.spawn(work).expect("a thread")
        };
        let mut compiler = Compiler::default();
        let other = spin("worker");
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(compiler.read(std::process::id()), Used::default());
        let one = spin("C2 CompilerThread0");
        std::thread::sleep(Duration::from_millis(200));
        let used = compiler.read(std::process::id()).running;
        assert!((1_000_000..200_000_000).contains(&used), "{used} ns");
        for thread in [one, other] {
            thread.thread().unpark();
            thread.join().expect("it ends well");
        }
        assert!(compiler.read(std::process::id()).running >= used, "what an ended thread used is kept");
    }

    #[test]
    fn time_on_a_cpu_and_time_without_one() {
        assert_eq!(Used::parse(b"123456789 42 7\n"), Some(Used { running: 123_456_789, waiting: 42 }));
        assert_eq!((Used::parse(b""), Used::parse(b"1 y")), (None, None));
    }
}
