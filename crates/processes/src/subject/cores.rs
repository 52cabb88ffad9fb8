//! Which CPUs the subject gets and which the instrument: apart wherever the machine allows it.
//!
//! Pure: what the kernel says about the machine comes in as data. Two hyper-threads of one core share its execution
//! units and caches, so a core is never split between the two while there is another.

use std::fs;
use std::path::Path;

use unladen_linux::CpuSet;

/// Which logical CPUs are hyper-threads of the same core.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// One set per physical core.
    pub cores: Vec<CpuSet>,
}

/// Who gets which CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// For the services of the study.
    pub subject: CpuSet,
    /// For unladen itself, its load generator and its sink.
    pub instrument: CpuSet,
    /// Whether the two have no CPU in common.
    pub apart: bool,
    /// Whether the two share a physical core: hyper-threads of one core slow each other down although they are apart.
    pub shares_core: bool,
}

impl Topology {
    /// Reads the siblings of these CPUs below `sys` (`/sys`). A CPU about which nothing is said counts as a core.
    #[must_use]
    pub fn read(sys: &Path, cpus: &CpuSet) -> Self {
        let mut cores: Vec<CpuSet> = Vec::new();
        for cpu in cpus.iter() {
            if cores.iter().any(|core| core.contains(cpu)) {
                continue;
            }
            let folder = sys.join(format!("devices/system/cpu/cpu{cpu}/topology"));
            // The first is the name since Linux 5.4, the second the one before.
            let siblings = ["core_cpus_list", "thread_siblings_list"]
                .into_iter()
                .find_map(|name| fs::read_to_string(folder.join(name)).ok()?.parse::<CpuSet>().ok());
            cores.push(siblings.unwrap_or_default().union(&[cpu].into_iter().collect()));
        }
        Self { cores }
    }
}

/// Divides `available` CPUs: the instrument gets `wanted` whole cores from the front (at least one, and never so many
/// that the subject has fewer than half), the subject the others. With one core, its hyper-threads are divided; with
/// one CPU, both have it.
#[must_use]
pub fn partition(available: &CpuSet, topology: &Topology, wanted: usize) -> Partition {
    let mut cores: Vec<CpuSet> =
        topology.cores.iter().map(|core| core.intersection(available)).filter(|core| !core.is_empty()).collect();
    // CPUs of which the topology does not speak.
    let known = cores.iter().fold(CpuSet::default(), |all, core| all.union(core));
    cores.extend(available.difference(&known).iter().map(|cpu| [cpu].into_iter().collect()));
    cores.sort();

    let (units, shares_core): (Vec<CpuSet>, bool) = match cores.as_slice() {
        [only] => (only.iter().map(|cpu| [cpu].into_iter().collect()).collect(), true),
        _ => (cores, false),
    };
    if units.len() < 2 {
        return Partition {
            subject: available.clone(),
            instrument: available.clone(),
            apart: false,
            shares_core: true,
        };
    }
    let count = wanted.clamp(1, units.len() / 2);
    let join = |sets: &[CpuSet]| sets.iter().fold(CpuSet::default(), |all, set| all.union(set));
    Partition { instrument: join(&units[..count]), subject: join(&units[count..]), apart: true, shares_core }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().expect(text)
    }

    #[test]
    fn cores_are_divided_whole_and_the_subject_never_gets_the_smaller_part() {
        struct Row(&'static str, &'static [&'static str], usize, &'static str, &'static str, bool, bool);
        // available, cores, wanted → instrument, subject, apart, shares a core
        for Row(available, cores, wanted, instrument, subject, apart, shares_core) in [
            Row("0", &["0"], 1, "0", "0", false, true),
            Row("0-1", &["0", "1"], 1, "0", "1", true, false),
            Row("0-1", &["0-1"], 1, "0", "1", true, true),
            Row("0-3", &["0,2", "1,3"], 1, "0,2", "1,3", true, false),
            Row("0-3", &["0", "1", "2", "3"], 1, "0", "1-3", true, false),
            Row("0-3", &["0", "1", "2", "3"], 9, "0-1", "2-3", true, false),
            // A mask that leaves one thread of each core.
            Row("2-3", &["0,2", "1,3"], 1, "2", "3", true, false),
            Row("4,6-7", &[], 1, "4", "6-7", true, false),
            Row("0-7", &["0,4", "1,5", "2,6", "3,7"], 2, "0-1,4-5", "2-3,6-7", true, false),
        ] {
            let topology = Topology { cores: cores.iter().map(|core| set(core)).collect() };
            let expected = Partition { subject: set(subject), instrument: set(instrument), apart, shares_core };
            assert_eq!(partition(&set(available), &topology, wanted), expected, "{available} of {cores:?}");
        }
    }

    #[test]
    fn siblings_are_read_from_sys_by_either_name() {
        let sys = tempfile::tempdir().expect("a temporary folder");
        for (cpu, name, siblings) in
            [(0, "core_cpus_list", "0,2\n"), (1, "thread_siblings_list", "1,3\n"), (2, "core_cpus_list", "0,2\n")]
        {
            let folder = sys.path().join(format!("devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(name), siblings).expect("a file");
        }
        let topology = Topology::read(sys.path(), &set("0-2,5"));
        assert_eq!(topology.cores, vec![set("0,2"), set("1,3"), set("5")]);
    }
}
