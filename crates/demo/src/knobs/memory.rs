//! Memory that is really resident: written to, not only asked for.

use std::time::{Duration, Instant};

use anyhow::Context as _;

/// What a leak grows by, and how it is asked for: one block at a time, filled page by page.
const BLOCK: usize = 1 << 20;
const TICK: Duration = Duration::from_millis(100);

/// So many MiB of resident memory.
pub(super) fn hold(mib: u32) -> anyhow::Result<Vec<u8>> {
    let bytes = (mib as usize) << 20;
    let mut held = Vec::new();
    held.try_reserve_exact(bytes).with_context(|| format!("cannot hold {mib} MiB: lower --hold-mib"))?;
    // Not zeros: those can be had from the system as pages that are mapped on the first write only.
    held.resize(bytes, 0xA5);
    Ok(std::hint::black_box(held))
}

/// Leaks for ever, steadily, as a service does that forgets to let go.
pub(super) async fn leak(mib_per_minute: f64) {
    // A huge page makes 2 MiB resident at the touch of a byte: the leak would come in steps. Where it cannot be
    // switched off, it does.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let start = Instant::now();
    let mut leak = Leak::default();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        let due = start.elapsed().as_secs_f64() / 60.0 * mib_per_minute * (1 << 20) as f64;
        leak.grow_to(due as usize);
    }
}

/// Memory that only grows.
#[derive(Default)]
struct Leak {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Leak {
    fn grow_to(&mut self, bytes: usize) {
        while self.bytes < bytes {
            // A block is asked for whole but becomes resident only as far as it has been written.
            if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
                self.blocks.push(Vec::with_capacity(BLOCK));
            }
            let Some(block) = self.blocks.last_mut() else { return };
            let more = (bytes - self.bytes).min(BLOCK - block.len());
            block.resize(block.len() + more, 0xA5);
            self.bytes += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_memory_is_resident() {
        let held = hold(32).expect("32 MiB are to be had");
        assert_eq!(held.len(), 32 << 20);
        assert!(resident_kib(held.as_ptr()) >= 32 << 10);
    }

    #[test]
    fn a_leak_grows_by_what_is_due() {
        let mut leak = Leak::default();
        for bytes in [1, 5_000, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            leak.grow_to(bytes);
            assert_eq!(leak.blocks.iter().map(Vec::len).sum::<usize>(), bytes);
        }
        leak.grow_to(BLOCK);
        assert_eq!(leak.bytes, 3 * BLOCK + 7, "it never shrinks");
        assert!(leak.blocks.iter().all(|block| block.capacity() == BLOCK), "no block is ever copied");
    }

    /// Resident KiB of the mapping that holds `address`, from `/proc/self/smaps`.
    fn resident_kib(address: *const u8) -> u64 {
        let address = address as u64;
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let mut inside = false;
        for line in smaps.lines() {
            let word = line.split(' ').next().unwrap_or_default();
            if let Some((from, to)) = word.split_once('-') {
                let bound = |text| u64::from_str_radix(text, 16).expect("hexadecimal");
                inside = (bound(from)..bound(to)).contains(&address);
            } else if inside && word == "Rss:" {
                let kib = line.split_whitespace().nth(1).expect("a number");
                return kib.parse().expect("a number");
            }
        }
        panic!("no mapping holds the address");
    }
}
