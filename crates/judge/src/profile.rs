//! Where a variant spends its CPU, beside the baseline: frames by the difference of the time in them.

use std::collections::BTreeMap;
use std::fs;

use unladen_journal::profile::{self, Profiles, ServiceProfile};
use unladen_study::measured::Measured;

use super::findings::{FrameFindings, ProfileFindings};

/// Frames that are told.
const FRAMES: usize = 10;
const BASELINE: &str = "baseline";

/// Samples by frame at the top of the stack.
type Leaves = BTreeMap<String, u64>;

/// Every service of every variant that was sampled on both sides by the same profiler.
pub(super) fn compare(folder: &Measured) -> Vec<ProfileFindings> {
    let Some(baseline) = profile::read(&folder.dir, BASELINE) else { return Vec::new() };
    let variants = folder.study.variants.keys().filter(|name| *name != BASELINE);
    let variants = variants.filter_map(|name| profile::read(&folder.dir, name));
    variants.flat_map(|variant| services(folder, &baseline, &variant)).collect()
}

fn services(folder: &Measured, baseline: &Profiles, variant: &Profiles) -> Vec<ProfileFindings> {
    let leaves = |of: &ServiceProfile| Some(leaves(&fs::read_to_string(folder.dir.join(&of.file)).ok()?));
    let pairs = variant.services.iter().filter_map(|service| {
        let bare =
            baseline.services.iter().find(|it| it.service == service.service && it.profiler == service.profiler)?;
        Some((bare, leaves(bare)?, service, leaves(service)?))
    });
    let finding = |(bare, before, service, after): (&ServiceProfile, Leaves, &ServiceProfile, Leaves)| {
        let per_request = |of: &ServiceProfile, requests: u64| of.period_us / requests as f64;
        let scales = (per_request(bare, baseline.requests), per_request(service, variant.requests));
        ProfileFindings {
            variant: variant.variant.clone(),
            service: service.service.clone(),
            profiler: service.profiler.clone(),
            baseline_samples: before.values().sum(),
            samples: after.values().sum(),
            frames: frames(&before, &after, scales),
            baseline_file: bare.file.clone(),
            file: service.file.clone(),
            flame_graph: format!("{}/{}.svg", profile::folder(&variant.variant), service.service),
        }
    };
    let sampled = baseline.requests > 0 && variant.requests > 0;
    pairs.filter(|_| sampled).map(finding).collect()
}

/// `main;work;burn 42` and so on.
fn leaves(folded: &str) -> Leaves {
    let mut leaves = Leaves::new();
    for line in folded.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        let leaf = stack.rsplit(';').next().unwrap_or(stack);
        *leaves.entry(leaf.to_owned()).or_default() += count;
    }
    leaves
}

fn frames(before: &Leaves, after: &Leaves, scales: (f64, f64)) -> Vec<FrameFindings> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let of = |leaves: &Leaves, name: &String, scale: f64| leaves.get(name).copied().unwrap_or(0) as f64 * scale;
    let mut frames: Vec<FrameFindings> = names
        .into_iter()
        .map(|name| {
            let (baseline, value) = (of(before, name, scales.0), of(after, name, scales.1));
            FrameFindings { frame: name.clone(), baseline, value, difference: value - baseline }
        })
        .collect();
    frames.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
    frames.truncate(FRAMES);
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_ordered_by_the_difference_of_the_time_in_them() {
        let before = leaves("main;work 10\nmain;work;hash 20\nother;hash 5\n");
        let after = leaves("main;work 10\nmain;work;hash 22\nmain;trace::export 30\nnonsense\nmain;x y\n");
        assert_eq!(before["hash"], 25);
        // A sample is 5,000 µs; 1,000 requests on one side and 2,000 on the other.
        let found = frames(&before, &after, (5.0, 2.5));
        let found: Vec<_> = found.iter().map(|it| (it.frame.as_str(), it.baseline, it.value, it.difference)).collect();
        let expected = [("trace::export", 0.0, 75.0, 75.0), ("hash", 125.0, 55.0, -70.0), ("work", 50.0, 25.0, -25.0)];
        assert_eq!(found, expected);
    }
}
