//! The cost over a dose: what was found at each dose beside the line through all of them.

use crate::findings::{Cell, Column, DoseFindings, DosePoint, Findings, Number, Range, Section, Topic};
use crate::units::{self, Scale};

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    // What a void study found says nothing, and without intervals there is nothing to show.
    let has_differences =
        |found: &&DoseFindings| findings.void.is_none() && found.points.iter().any(|it| it.difference.is_some());
    findings.doses.iter().filter(has_differences).map(section).collect()
}

fn section(found: &DoseFindings) -> Section {
    let scale = scale(found);
    let estimate = |range: Option<Range>| range.map(|range| Number::estimate(scale, range));
    let relative =
        |range: Range| Number::estimate_with_unit(units::percent(range.magnitude(), range.half_width()), range);
    let row = |point: &DosePoint| {
        let note = if found.off_the_line.contains(&point.dose) { "*" } else { "" };
        let on_the_line = estimate(point.fitted).map(|number| Number { note: note.to_owned(), ..number });
        let name = units::chosen("", point.dose).into();
        vec![name, estimate(found_at(point)).into(), point.ratio.map(relative).into(), on_the_line.into()]
    };
    let per_unit = found.per_unit.map(|range| {
        let own = Scale::of_range(&found.unit, range);
        // Its unit may be another than the column's: a tenth of a MiB for each span is KiB.
        if own.unit() == scale.unit() { Number::estimate(own, range) } else { Number::estimate_with_unit(own, range) }
    });
    let line = |name: String, cell: Cell| vec![name.into(), Cell::Missing, Cell::Missing, cell];
    let mut rows: Vec<_> = found.points.iter().map(row).collect();
    rows.push(line("fixed (at 0)".to_owned(), estimate(found.fixed).into()));
    rows.push(line(format!("each unit of {}", found.axis), per_unit.into()));
    let columns = vec![
        Column::left("dose"),
        Column::on(scale, "found"),
        Column::right("relative"),
        Column::on(scale, "on the line"),
    ];
    Section::new(Topic::Parts, format!("{} over {}: {}", found.title, found.axis, found.label), columns, rows)
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
