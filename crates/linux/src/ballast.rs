//! Ballast: memory that is taken so that processes that start now get theirs in whole blocks.
//!
//! The free memory of a kernel that has run for a while is in pieces, and the buddy allocator hands out the smallest ones first. A process that
//! starts first then has its pages all over the place, one that starts later has whole blocks. In a virtual machine, where the host has a
//! second page table for the same memory, that alone made a service use up to twice the CPU time for the same requests, and one that started
//! first 10 % more than one that started second.
//!
//! Which frame a page is in is told by `/proc/PID/pagemap`, to those with `CAP_SYS_ADMIN` only
//! (<https://docs.kernel.org/admin-guide/mm/pagemap.html>).

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::ptr;
use std::thread;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;

use crate::CpuSet;

/// Bytes that are taken at most.
const MAX_TAKEN: u64 = 4 << 30;
/// The same as a part of the memory that is available.
const MAX_PART: u64 = 8;
/// Bytes that are taken at a time.
const CHUNK: usize = 4 << 20;
/// Bytes of a block: what a huge page has on x86-64, and the host's page tables keep together.
const BLOCK: usize = 2 << 20;
/// Blocks that a chunk may be in and still be whole.
const MAX_BLOCKS: usize = 3;
/// Whole chunks after which no piece is expected any more.
const WHOLE_CHUNKS: usize = 4;

/// Pieces of memory that nobody else gets for as long as this is there.
#[derive(Debug)]
pub struct Ballast {
    chunks: Vec<Chunk>,
}

impl Ballast {
    /// Has the kernel join what can be joined, then takes pieces until memory comes in whole blocks on each of these CPUs: 4 GiB at most, and
    /// an eighth of the `available` bytes. `None` where it is not told which frames it gets.
    #[must_use]
    pub fn take(cpus: &CpuSet, available: u64) -> Option<Self> {
        let pagemap = File::open("/proc/self/pagemap").ok()?;
        // A kernel without compaction leaves more pieces to be taken.
        let _ = fs::write("/proc/sys/vm/compact_memory", "1");
        let mut left = limit(available) / CHUNK;
        // Each CPU has a list of its own of pages that were given back on it. A thread that goes from one to the other does not come back.
        thread::scope(|scope| {
            let all = scope.spawn(move || {
                let mut chunks = Vec::new();
                for cpu in cpus.iter() {
                    CpuSet::from_iter([cpu]).bind_this_thread().ok()?;
                    let taken = pieces(&pagemap, left)?;
                    left -= taken.len();
                    chunks.extend(taken);
                }
                Some(Self { chunks })
            });
            all.join().ok()?
        })
    }

    /// How much it is, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.chunks.len() * CHUNK) as u64
    }
}

/// Bytes that may be taken of so many.
fn limit(available: u64) -> usize {
    usize::try_from((available / MAX_PART).min(MAX_TAKEN)).unwrap_or(usize::MAX)
}

/// Chunks up to the last that is in pieces, `most` of them.
fn pieces(pagemap: &File, most: usize) -> Option<Vec<Chunk>> {
    let (mut chunks, mut whole) = (Vec::new(), 0);
    while whole < WHOLE_CHUNKS && chunks.len() < most {
        let chunk = Chunk::new()?;
        whole = if chunk.blocks(pagemap)? <= MAX_BLOCKS { whole + 1 } else { 0 };
        chunks.push(chunk);
    }
    chunks.truncate(chunks.len() - whole);
    Some(chunks)
}

/// Some memory, every page of which has a frame.
#[derive(Debug)]
struct Chunk(*mut c_void);

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Chunk {}

impl Chunk {
    fn new() -> Option<Self> {
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), CHUNK, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let chunk = Self(start.ok()?);
        // SAFETY: advice on the mapping. A huge page is no piece. Kernels without them refuse the advice.
        let _ = unsafe { madvise(chunk.0, CHUNK, Advice::LinuxNoHugepage) };
        for at in (0..CHUNK).step_by(page_size()) {
            // SAFETY: within the mapping, which can be written and is nobody else's.
            unsafe { chunk.0.cast::<u8>().add(at).write_volatile(1) };
        }
        Some(chunk)
    }

    /// Blocks of physical memory that it is in; `None` if they are not told.
    fn blocks(&self, pagemap: &File) -> Option<usize> {
        let page = page_size();
        let mut entries = vec![0; CHUNK / page * 8];
        pagemap.read_exact_at(&mut entries, (self.0.addr() / page * 8) as u64).ok()?;
        blocks(&entries, page)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nothing refers to it.
        let _ = unsafe { munmap(self.0, CHUNK) };
    }
}

/// Blocks that the frames of these entries of a pagemap are in; `None` if one has no frame that is told.
fn blocks(entries: &[u8], page: usize) -> Option<usize> {
    const FRAME: u64 = (1 << 55) - 1;
    let frames = entries.chunks_exact(8).map(|entry| {
        let entry: [u8; 8] = entry.try_into().expect("eight bytes");
        u64::from_ne_bytes(entry) & FRAME
    });
    let blocks = frames.map(|frame| (frame != 0).then_some(frame * page as u64 / BLOCK as u64));
    Some(blocks.collect::<Option<BTreeSet<_>>>()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_by_frames() {
        const PRESENT: u64 = 1 << 63;
        let entries =
            |frames: &[u64]| frames.iter().flat_map(|frame| (PRESENT | frame).to_ne_bytes()).collect::<Vec<_>>();
        assert_eq!(blocks(&entries(&[512, 513, 1023]), 4096), Some(1));
        assert_eq!(blocks(&entries(&[511, 512, 1024, 512]), 4096), Some(3));
        assert_eq!(blocks(&entries(&[512, 0]), 4096), None, "not told");
    }

    /// As on a machine with so much memory, bytes.
    const AVAILABLE: u64 = 8 << 30;

    /// Leaves memory in pieces: every other page of 64 MiB has been given back.
    fn pieces_left() -> Vec<Chunk> {
        let holey: Vec<Chunk> = (0..16).map(|_| Chunk::new().expect("memory")).collect();
        for chunk in &holey {
            for at in (0..CHUNK).step_by(2 * page_size()) {
                // SAFETY: a page of the mapping, to which nothing refers.
                let gone = unsafe { madvise(chunk.0.add(at), page_size(), Advice::LinuxDontNeed) };
                gone.expect("a page of its own");
            }
        }
        holey
    }

    #[test]
    fn with_it_memory_comes_in_whole_blocks() {
        let pagemap = File::open("/proc/self/pagemap").expect("Linux");
        let Some(_) = Chunk::new().expect("memory").blocks(&pagemap) else {
            return eprintln!("frames are told to root only");
        };
        let cpu = CpuSet::from_iter(CpuSet::allowed().expect("it runs somewhere").iter().take(1));
        thread::scope(|scope| {
            scope.spawn(|| {
                cpu.bind_this_thread().expect("a CPU that is allowed");
                let blocks = || Chunk::new().and_then(|chunk| chunk.blocks(&pagemap)).expect("it was told before");
                // Others give memory back at the same time.
                let is_whole = (0..10).any(|_| {
                    let holey = pieces_left();
                    assert!(blocks() > MAX_BLOCKS, "pages that were given back are the next that are handed out");
                    let ballast = Ballast::take(&cpu, AVAILABLE).expect("frames are told");
                    let is_whole = blocks() <= MAX_BLOCKS;
                    // More is in pieces, right after a build for instance, than may be taken.
                    let is_all = ballast.chunks.len() == limit(AVAILABLE) / CHUNK;
                    drop((holey, ballast));
                    is_whole || is_all
                });
                assert!(is_whole, "there is no piece left");
            });
        });
    }

    #[test]
    fn no_more_is_taken_than_allowed() {
        let cpus = CpuSet::allowed().expect("it runs somewhere");
        assert_eq!(Ballast::take(&cpus, 0).map_or(0, |ballast| ballast.bytes()), 0);
        let ballast = Ballast::take(&cpus, 160 << 20);
        assert!(ballast.is_none_or(|ballast| ballast.bytes() <= 20 << 20));
        assert_eq!((limit(160 << 20), limit(1 << 40)), (20 << 20, 4 << 30));
    }
}
