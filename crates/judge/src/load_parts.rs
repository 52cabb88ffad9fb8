//! A load that several processes sent, from other machines.

use std::collections::BTreeMap;

use unladen_load::outcome::PartSeen;

use super::findings::LoadPartFindings;

/// Each part over all runs. One that was on another machine later is told of twice.
pub(super) fn load_parts<'a>(seen: impl Iterator<Item = &'a PartSeen>) -> Vec<LoadPartFindings> {
    let mut all: BTreeMap<(u32, &str), LoadPartFindings> = BTreeMap::new();
    for PartSeen { number, machine, sent, clock_bound_us, late_us } in seen {
        let known = all.entry((*number, machine)).or_default();
        known.part = *number;
        known.machine.clone_from(machine);
        known.requests += sent;
        known.clock_bound_us = known.clock_bound_us.max(*clock_bound_us);
        known.late_us = known.late_us.max(*late_us);
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_over_the_runs() {
        let seen = |number, machine: &str, sent, late_us| PartSeen {
            number,
            machine: machine.to_owned(),
            sent,
            clock_bound_us: 50.0,
            late_us,
        };
        let runs = [seen(2, "b", 10, 1.0), seen(1, "a", 11, 7.0), seen(1, "a", 20, 3.0), seen(2, "c", 5, 0.0)];
        let found = load_parts(runs.iter());
        let plain: Vec<_> = found.iter().map(|it| (it.part, it.machine.as_str(), it.requests, it.late_us)).collect();
        assert_eq!(plain, [(1, "a", 31, 7.0), (2, "b", 10, 1.0), (2, "c", 5, 0.0)]);
    }
}
