//! The cost over a dose as a table: what was found at each dose beside the line through all of them.

use unladen_judge::findings::{DoseFindings, DosePoint, Findings, Range};
use unladen_judge::units::{self, Scale};

use super::view;

/// A dose as a table, in the form of a ladder's: a title, heads of the columns, lines of a name and cells.
pub(super) fn tables(findings: &Findings) -> Vec<view::LadderTable> {
    // What a void study found says nothing, and without intervals there is nothing to show.
    let has_differences =
        |found: &&DoseFindings| findings.void.is_none() && found.points.iter().any(|it| it.difference.is_some());
    findings.doses.iter().filter(has_differences).map(table).collect()
}

fn table(found: &DoseFindings) -> view::LadderTable {
    let scale = scale(found);
    let unit = if scale.unit().is_empty() { String::new() } else { format!(", {}", scale.unit()) };
    let cell = |range: Option<Range>| range.map_or_else(|| view::NONE.to_owned(), |range| with_ends(scale, range));
    let line = |point: &DosePoint| {
        let relative = point.ratio.map_or_else(
            || view::NONE.to_owned(),
            |range| {
                let percent = units::percent(range.magnitude(), range.half_width());
                format!(
                    "{} % [{}, {}]",
                    percent.signed(range.value),
                    percent.number(range.low),
                    percent.number(range.high)
                )
            },
        );
        let off = if found.off_the_line.contains(&point.dose) { " *" } else { "" };
        let cells = vec![cell(found_at(point)), relative, format!("{}{off}", cell(point.fitted))];
        (units::chosen("", point.dose), cells)
    };
    let mut lines: Vec<(String, Vec<String>)> = found.points.iter().map(line).collect();
    let none = || view::NONE.to_owned();
    lines.push(("fixed (at 0)".to_owned(), vec![none(), none(), cell(found.fixed)]));
    let per_unit = found.per_unit.map_or_else(none, |range| with_ends(Scale::of_range(&found.unit, range), range));
    let unit_of_slope = found.per_unit.map_or("", |range| Scale::of_range(&found.unit, range).unit());
    // Its unit may be another than the column's: a tenth of a MiB for each span is KiB.
    let per_unit = if unit_of_slope == scale.unit() { per_unit } else { format!("{per_unit} {unit_of_slope}") };
    lines.push((format!("each unit of {}", view::clean(&found.axis)), vec![none(), none(), per_unit]));
    view::LadderTable {
        title: format!("{} over {}: {}", found.title, view::clean(&found.axis), view::clean(&found.label)),
        columns: vec![format!("found{unit}"), "relative".to_owned(), format!("on the line{unit}")],
        lines,
    }
}

fn found_at(point: &DosePoint) -> Option<Range> {
    Some(Range { value: point.difference?, low: point.difference_low?, high: point.difference_high? })
}

/// One scale for the points and the line.
fn scale(found: &DoseFindings) -> Scale {
    let ranges =
        || found.points.iter().flat_map(|point| [found_at(point), point.fitted]).chain([found.fixed]).flatten();
    let magnitude = ranges().map(Range::magnitude).fold(0.0, f64::max);
    Scale::of(&found.unit, magnitude, ranges().filter_map(Range::half_width).reduce(f64::min))
}

fn with_ends(scale: Scale, range: Range) -> String {
    format!("{} [{}, {}]", scale.signed(range.value), scale.number(range.low), scale.number(range.high))
}
