//! Where the CPU goes, if it was sampled: the frames with the largest difference.

use crate::findings::{Column, Findings, FrameFindings, Number, ProfileFindings, Section, Topic};
use crate::units::{self, Scale};

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    findings.profiles.iter().map(section).collect()
}

fn section(profile: &ProfileFindings) -> Section {
    let largest = profile.frames.iter().map(|frame| frame.difference.abs()).fold(0.0, f64::max);
    let scale = Scale::of("us", largest.min(999.0), None);
    let row = |it: &FrameFindings| {
        let numbers =
            [Number::of(scale, it.baseline), Number::of(scale, it.value), Number::difference(scale, it.difference)];
        [it.frame.clone().into()].into_iter().chain(numbers.map(Into::into)).collect()
    };
    let numbers = ["baseline", "variant", "difference"].map(|title| Column::on(scale, title));
    let columns = [Column::left("frame")].into_iter().chain(numbers).collect();
    let title = format!(
        "Where the CPU of {} goes under {}: per request in each frame itself, by the difference ({} of the baseline and {} samples by {})",
        profile.service,
        profile.variant,
        units::count(profile.baseline_samples),
        units::count(profile.samples),
        profile.profiler
    );
    let rows = profile.frames.iter().map(row).collect();
    let (fold, drawing) = (Some(title.clone()), Some(profile.flame_graph.clone()));
    Section { fold, drawing, ..Section::new(Topic::Variants, title, columns, rows) }
}
