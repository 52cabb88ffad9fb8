//! Context switches of processes, summed over their threads.
//!
//! Reading them costs one file per thread, so it is done at the two ends of the window only. Of a thread that ends within
//! the window, what it did after the window's start is missed: the figures are lower bounds then.

use std::collections::HashMap;

use unladen_linux::process::{read_into, threads};

/// Voluntary and involuntary switches by thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switches {
    by_thread: HashMap<u32, (u64, u64)>,
}

impl Switches {
    /// Of all threads of these processes.
    #[must_use]
    pub fn of(pids: &[u32]) -> Self {
        let mut buffer = [0_u8; 4096];
        let mut by_thread = HashMap::new();
        for &pid in pids {
            for thread in threads(pid) {
                let path = format!("/proc/{pid}/task/{thread}/status");
                if let Some(both) = read_into(&path, &mut buffer).and_then(parse) {
                    by_thread.insert(thread, both);
                }
            }
        }
        Self { by_thread }
    }

    /// Voluntary and involuntary switches since an earlier reading; `None` when no thread is left to tell.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<(u64, u64)> {
        self.by_thread
            .iter()
            .map(|(thread, &(voluntary, involuntary))| match earlier.by_thread.get(thread) {
                // A number that went down belongs to another thread that was given the same id.
                Some(&(v, i)) if v <= voluntary && i <= involuntary => (voluntary - v, involuntary - i),
                _ => (voluntary, involuntary),
            })
            .reduce(|a, b| (a.0 + b.0, a.1 + b.1))
    }
}

fn parse(text: &[u8]) -> Option<(u64, u64)> {
    let field = |name: &str| {
        // The two lines are the last ones.
        text.rsplit(|&byte| byte == b'\n')
            .find_map(|line| std::str::from_utf8(line.strip_prefix(name.as_bytes())?).ok()?.trim().parse::<u64>().ok())
    };
    Some((field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(threads: &[(u32, u64, u64)]) -> Switches {
        Switches { by_thread: threads.iter().map(|&(thread, v, i)| (thread, (v, i))).collect() }
    }

    #[test]
    fn new_threads_count_from_zero_and_ids_may_be_used_again() {
        let before = switches(&[(1, 100, 10), (2, 50, 5), (3, 70, 7)]);
        let after = switches(&[(1, 110, 11), (2, 4, 1), (4, 8, 2)]);
        assert_eq!(after.since(&before), Some((10 + 4 + 8, 1 + 1 + 2)));
        assert_eq!(switches(&[]).since(&before), None);
    }

    #[test]
    fn a_sleep_is_a_voluntary_switch_of_this_process() {
        let me = [std::process::id()];
        let before = Switches::of(&me);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let (voluntary, _) = Switches::of(&me).since(&before).expect("this thread is there");
        assert!(voluntary >= 1);
        assert_eq!(
            parse(b"Threads:\t1\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"),
            Some((150, 545))
        );
    }
}
