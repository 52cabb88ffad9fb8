//! A set of logical CPUs, read and written as the kernel's lists do: `0-1,3`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Logical CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct CpuSet(BTreeSet<usize>);

/// A list of CPUs that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a list of CPUs such as `0-1,3` with numbers below {limit}", limit = CpuSet::LIMIT)]
pub struct CpuSetError {
    text: String,
}

impl CpuSet {
    /// CPU numbers are below this: the size of the kernel's classic affinity mask.
    pub const LIMIT: usize = rustix::thread::CpuSet::MAX_CPU;

    /// The CPUs that the calling thread may run on.
    ///
    /// # Errors
    /// What `sched_getaffinity` says.
    pub fn allowed() -> std::io::Result<Self> {
        let mask = rustix::thread::sched_getaffinity(None)?;
        Ok((0..Self::LIMIT).filter(|&cpu| mask.is_set(cpu)).collect())
    }

    /// Binds the calling thread (and the threads and children it will start) to these CPUs.
    ///
    /// # Errors
    /// What `sched_setaffinity` says: `EINVAL` when none of the CPUs may be used.
    pub fn bind_this_thread(&self) -> std::io::Result<()> {
        rustix::thread::sched_setaffinity(None, &self.mask()).map_err(Into::into)
    }

    /// The CPUs that a thread may run on.
    ///
    /// # Errors
    /// What `sched_getaffinity` says: `ESRCH` when there is no such thread.
    pub fn of_thread(thread: u32) -> rustix::io::Result<Self> {
        let mask = rustix::thread::sched_getaffinity(pid(thread))?;
        Ok((0..Self::LIMIT).filter(|&cpu| mask.is_set(cpu)).collect())
    }

    /// Binds a thread (and the threads and children it will start) to these CPUs.
    ///
    /// # Errors
    /// What `sched_setaffinity` says: `ESRCH` when there is no such thread, `EPERM` when it is another user's.
    pub fn bind_thread(&self, thread: u32) -> rustix::io::Result<()> {
        rustix::thread::sched_setaffinity(pid(thread), &self.mask())
    }

    /// As the mask that the system call takes; made before a fork, where nothing may be allocated.
    #[must_use]
    pub fn mask(&self) -> rustix::thread::CpuSet {
        let mut mask = rustix::thread::CpuSet::new();
        for &cpu in &self.0 {
            mask.set(cpu);
        }
        mask
    }

    /// Number of CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the CPU is in the set.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).copied().collect()
    }

    /// The CPUs that are in this set but not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.0.difference(&other.0).copied().collect()
    }

    /// The CPUs that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.0.union(&other.0).copied().collect()
    }
}

/// `None` means the calling thread, and so does 0: no thread of another process has either.
fn pid(thread: u32) -> Option<rustix::process::Pid> {
    i32::try_from(thread).ok().and_then(rustix::process::Pid::from_raw)
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().filter(|&cpu| cpu < Self::LIMIT).collect())
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let error = || CpuSetError { text: text.trim().to_owned() };
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| error())?;
            let last: usize = last.trim().parse().map_err(|_| error())?;
            if first > last || last >= Self::LIMIT {
                return Err(error());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for (text, cpus, written) in [
            ("0", vec![0], "0"),
            ("0-3", vec![0, 1, 2, 3], "0-3"),
            ("3,0-1\n", vec![0, 1, 3], "0-1,3"),
            ("0,1,2,7-8", vec![0, 1, 2, 7, 8], "0-2,7-8"),
        ] {
            let set: CpuSet = text.parse().expect(text);
            assert_eq!(set.iter().collect::<Vec<_>>(), cpus, "{text}");
            assert_eq!(set.to_string(), written);
        }
        for text in ["", "a", "3-1", "0-", "-1", "99999", "0,,1"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn a_thread_is_bound_to_its_set() {
        std::thread::spawn(|| {
            let all = CpuSet::allowed().expect("affinity can be read");
            let one: CpuSet = all.iter().take(1).collect();
            one.bind_this_thread().expect("affinity can be set");
            assert_eq!(CpuSet::allowed().expect("affinity can be read"), one);
        })
        .join()
        .expect("the bound thread ended well");
    }
}
