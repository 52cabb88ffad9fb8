//! Resident memory and threads of processes, from `/proc/PID/status` and `smaps_rollup`.

use unladen_linux::process::{Identity, read_into};

/// Memory and threads of a service at one instant, summed over its processes. Pages that several of them share count
/// several times in the resident figures, and once in the proportional one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Resident memory, bytes.
    pub rss: u64,
    /// Largest resident memory of every process since its start, bytes, summed.
    pub peak: u64,
    /// Threads.
    pub threads: u64,
}

impl Memory {
    /// Of these processes; `None` when none of them has any memory (all have ended).
    #[must_use]
    pub fn of(pids: &[u32]) -> Option<Self> {
        let mut buffer = [0_u8; 4096];
        pids.iter().filter_map(|pid| parse_status(read_into(&format!("/proc/{pid}/status"), &mut buffer)?)).reduce(
            |sum, one| Self { rss: sum.rss + one.rss, peak: sum.peak + one.peak, threads: sum.threads + one.threads },
        )
    }
}

/// Of `/proc/PID/status`. A zombie has no memory and is left out.
fn parse_status(text: &[u8]) -> Option<Memory> {
    let field = |name: &str| {
        text.split(|&byte| byte == b'\n').find_map(|line| {
            let value = std::str::from_utf8(line.strip_prefix(name.as_bytes())?).ok()?;
            value.trim().trim_end_matches(" kB").parse::<u64>().ok()
        })
    };
    Some(Memory { rss: field("VmRSS:")? * 1024, peak: field("VmHWM:")? * 1024, threads: field("Threads:")? })
}

/// Proportional set size of these processes, bytes. It walks all their page tables, so it is for the window's end
/// only. `None` when it cannot be had of one that lives (another user's process).
#[must_use]
pub fn pss(pids: &[u32]) -> Option<u64> {
    let mut sum = None;
    for &pid in pids {
        let mut buffer = [0_u8; 4096];
        let one = read_into(&format!("/proc/{pid}/smaps_rollup"), &mut buffer).and_then(parse_pss);
        match one {
            Some(bytes) => sum = Some(sum.unwrap_or(0) + bytes),
            None if Identity::of(pid).is_some_and(|identity| identity.is_alive()) => return None,
            None => {}
        }
    }
    sum
}

fn parse_pss(text: &[u8]) -> Option<u64> {
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Pss:"))?;
    let kib: u64 = std::str::from_utf8(line).ok()?.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_and_a_zombie_has_no_memory() {
        let text =
            b"Name:\tjava\nUmask:\t0022\nVmPeak:\t  999 kB\nVmHWM:\t   300 kB\nVmRSS:\t   200 kB\nThreads:\t17\n";
        assert_eq!(parse_status(text), Some(Memory { rss: 200 * 1024, peak: 300 * 1024, threads: 17 }));
        assert_eq!(parse_status(b"Name:\tjava\nState:\tZ (zombie)\nThreads:\t1\n"), None);
        assert_eq!(Memory::of(&[]), None);
        assert_eq!(
            parse_pss(b"00-ff ---p 0 0 0 [rollup]\nRss:   9 kB\nPss:   7 kB\nPss_Dirty: 1 kB\n"),
            Some(7 * 1024)
        );
    }

    #[test]
    fn this_process_has_memory_and_threads() {
        let me = [std::process::id()];
        let memory = Memory::of(&me).expect("this process is there");
        assert!(memory.rss > 100_000 && memory.peak >= memory.rss / 2 && memory.threads >= 1, "{memory:?}");
        let pss = pss(&me).expect("one's own is readable");
        assert!(pss > 50_000 && pss < memory.peak * 2, "{pss}");
    }
}
