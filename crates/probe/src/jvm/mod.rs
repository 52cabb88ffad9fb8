//! JVMs among the processes of a service, found by themselves, and what they say about their heap.
//!
//! A HotSpot JVM (JDK 8 to 25) keeps its counters in a file that it has mapped. It is found in `/proc/PID/maps` and opened
//! by way of `/proc/PID/root`, so that neither another PID namespace (the file is named by the inner PID), nor another mount
//! namespace, nor another folder for temporary files hides it. Reading it costs the JVM nothing. With `-XX:-UsePerfData` or
//! `-XX:+PerfDisableSharedMem` there is no file, and nothing is known.

mod compiler;
pub mod counters;
pub mod heap;
pub mod mappings;
mod window;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use compiler::{Compiler, Used};
use counters::Counters;
use heap::Heap;
use window::Window;

use unladen_linux::process::Identity;

/// Heap that collections leave, in the timeline at the last one, in the journal at the lowest.
pub(super) const HEAP_AFTER_GC: &str = "heap_after_gc";
/// Largest file that is read; `-XX:PerfDataMemorySize` is 32 KiB by default.
const MAX_BYTES: u64 = 1 << 20;
/// How often a process is looked at before it is taken for none: a launcher may yet become a JVM.
const LOOKS: u32 = 3;

/// The JVMs of one target.
#[derive(Debug, Default)]
pub(super) struct Jvms {
    known: HashMap<Identity, Candidate>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Candidate {
    /// Looked at so often, without success.
    Unknown(u32),
    Jvm(Box<Jvm>),
}

#[derive(Debug)]
struct Jvm {
    file: File,
    compiler: Compiler,
    window: Window,
}

impl Jvms {
    /// Reads the JVMs among these processes and returns what they say together, by the names of the timeline.
    pub(super) fn sample(&mut self, pids: &[u32], in_window: bool, last: bool) -> Vec<(&'static str, f64)> {
        let identities: Vec<Identity> = pids.iter().filter_map(|&pid| Identity::of(pid)).collect();
        let mut sums: Vec<(&'static str, f64)> = Vec::new();
        for identity in identities {
            let candidate = self.known.entry(identity).or_insert(Candidate::Unknown(0));
            if let Candidate::Unknown(looks) = candidate
                && *looks < LOOKS
            {
                *looks += 1;
                if let Some(file) = find(identity.pid) {
                    *candidate = Candidate::Jvm(Box::new(Jvm {
                        file,
                        compiler: Compiler::default(),
                        window: Window::default(),
                    }));
                }
            }
            let Candidate::Jvm(jvm) = candidate else { continue };
            let Some(heap) = read(&jvm.file, &mut self.buffer) else { continue };
            let compiling_ns = jvm.compiler.read(identity.pid).running;
            if in_window {
                jvm.window.add(heap, compiling_ns);
            }
            if last {
                jvm.window.resident = mappings::of(identity.pid, heap.reserved);
            }
            for (name, value) in window::instant(&heap, compiling_ns) {
                match sums.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => *sum += value,
                    None => sums.push((name, value)),
                }
            }
        }
        sums
    }

    /// The numbers of the window by the names of the journal, summed over the JVMs.
    pub(super) fn numbers(&self) -> Vec<(&'static str, f64)> {
        let jvms = self.known.values().filter_map(|candidate| match candidate {
            Candidate::Jvm(jvm) => Some(jvm.window.numbers()),
            Candidate::Unknown(_) => None,
        });
        jvms.flatten().collect()
    }
}

/// What the JIT compilers of a service have used so far: it stands still once everything hot is compiled.
#[derive(Debug, Default)]
pub struct JitClock {
    compilers: HashMap<Identity, Compiler>,
}

impl JitClock {
    /// CPU time of the compiler threads of these processes so far, ns; 0 where there is no JVM.
    pub fn read(&mut self, processes: &[Identity]) -> u64 {
        self.used(processes).running
    }

    /// How long these threads had something to do so far, ns, whether they ran or waited for a CPU. On a machine that is busy a compiler
    /// may get next to none, for as long as that lasts.
    pub fn busy(&mut self, processes: &[Identity]) -> u64 {
        let used = self.used(processes);
        used.running + used.waiting
    }

    fn used(&mut self, processes: &[Identity]) -> Used {
        let read = |it: &Identity| self.compilers.entry(*it).or_default().read(it.pid);
        processes.iter().map(read).fold(Used::default(), |sum, used| sum + used)
    }
}

/// Opens the counters of a process, if it is a JVM.
#[must_use]
pub fn find(pid: u32) -> Option<File> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let path = maps.lines().find_map(|line| {
        let path = line.get(line.find(" /")? + 1..)?;
        path.contains("/hsperfdata_").then(|| path.trim_end_matches(" (deleted)"))
    })?;
    File::open(format!("/proc/{pid}/root{path}")).ok()
}

/// Reads the counters of a JVM as they are now.
#[must_use]
pub fn read(file: &File, buffer: &mut Vec<u8>) -> Option<Heap> {
    let length = file.metadata().ok()?.len().min(MAX_BYTES);
    buffer.resize(usize::try_from(length).ok()?, 0);
    let read = file.read_at(buffer, 0).ok()?;
    Heap::of(&Counters::parse(buffer.get(..read)?)?)
}
