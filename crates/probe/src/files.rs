//! Open file descriptors of processes, and what they have written to disk.

use std::collections::HashMap;
use std::fs;

use unladen_linux::process::read_into;

/// Open descriptors of these processes; `None` if none of them shows any.
#[must_use]
pub fn descriptors(pids: &[u32]) -> Option<u64> {
    let count = |pid: &u32| Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64);
    pids.iter().filter_map(count).reduce(|a, b| a + b)
}

/// Bytes that processes have caused to be written to disk since they started, by process.
///
/// They count when a page is made dirty (`write_bytes` of proc_pid_io(5)), not when the kernel writes it later. Files in
/// memory (tmpfs) count nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    by_process: HashMap<u32, u64>,
}

impl Written {
    /// Of these processes.
    #[must_use]
    pub fn of(pids: &[u32]) -> Self {
        let mut buffer = [0_u8; 512];
        let mut one = |&pid: &u32| Some((pid, parse(read_into(&format!("/proc/{pid}/io"), &mut buffer)?)?));
        Self { by_process: pids.iter().filter_map(&mut one).collect() }
    }

    /// Bytes since an earlier reading; `None` when no process is left to tell. A process that is new counts from its start.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<u64> {
        let one = |(pid, &now): (&u32, &u64)| now.saturating_sub(earlier.by_process.get(pid).copied().unwrap_or(0));
        self.by_process.iter().map(one).reduce(|a, b| a + b)
    }
}

fn parse(text: &[u8]) -> Option<u64> {
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"write_bytes:"))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_written_to_a_file_counts_and_an_open_file_is_a_descriptor() {
        let me = [std::process::id()];
        let before = Written::of(&me);
        // In the target folder, which is on a disk, unlike the folder for temporary files on many machines.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&vec![7; 1 << 20]).and_then(|()| file.sync_all()).expect("it is written");
        // Other tests of this process open and close files, too: more are held than they do.
        let held: Vec<_> = (0..300).map(|_| std::fs::File::open("/dev/null").expect("it is there")).collect();
        let files = descriptors(&me).expect("this process has some");
        assert!(files > held.len() as u64, "{files}");
        let written = Written::of(&me).since(&before).expect("this process is there");
        assert!(written >= 1 << 20, "{written}");
    }

    #[test]
    fn new_processes_count_from_their_start() {
        let written = |pairs: &[(u32, u64)]| Written { by_process: pairs.iter().copied().collect() };
        assert_eq!(written(&[(1, 50), (2, 7)]).since(&written(&[(1, 20), (9, 99)])), Some(37));
        assert_eq!(written(&[]).since(&written(&[(1, 20)])), None);
        assert_eq!(
            parse(b"rchar: 5\nwchar: 6\nread_bytes: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"),
            Some(4096)
        );
        assert_eq!(parse(b"rchar: 5\n"), None);
    }
}
