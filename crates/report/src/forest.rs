//! The forest plot alone, as SVG: for a pull request or a slide. The template is `forest.svg.j2`.

use serde::Serialize;
use unladen_judge::findings::Findings;

use super::{plot, template, view};

const TEMPLATE: &str = include_str!("forest.svg.j2");
/// Of the whole drawing, pixels.
const WIDTH: f64 = 880.0;
/// What a panel has beside its rows: title, ticks, and room to the next.
const AROUND: f64 = 64.0;
/// One line of the heading, and of the note below.
const HEADING: f64 = 20.0;
const NOTE: f64 = 15.0;
/// Characters of a label that have room beside the plot.
const LABEL: usize = 30;

#[derive(Serialize)]
struct Drawing {
    title: String,
    heading: Vec<String>,
    width: f64,
    height: f64,
    panels: Vec<Placed>,
    note: Vec<String>,
}

#[derive(Serialize)]
struct Placed {
    top: f64,
    panel: plot::Panel,
}

pub(super) fn render(findings: &Findings) -> String {
    // As with the page: the template is part of the program, and its failure a bug that is shown.
    draw(findings).unwrap_or_else(|error| format!("<!-- {} -->", format!("{error:#}").replace("--", "- -")))
}

fn draw(findings: &Findings) -> Result<String, minijinja::Error> {
    let title = view::clean(if findings.question.is_empty() { &findings.study } else { &findings.question });
    let heading = wrapped(&title, 95, 3);
    let mut top = 24.0 + HEADING * heading.len() as f64;
    let placed = plot::panels(findings).into_iter().map(|panel| {
        let placed = Placed { top, panel: panel.with_short_labels(LABEL) };
        top += placed.panel.height() + AROUND;
        placed
    });
    let panels = placed.collect();
    let void = findings.void.as_ref().map(|reason| format!("No verdict: {reason}"));
    let mut note = wrapped(&view::clean(&void.unwrap_or_else(|| view::setting(findings))), 150, 3);
    note.push(
        "Line: interval; large dot: estimate; small dots: the rounds; shaded: noise floor; dashed: budget.".to_owned(),
    );
    let height = top + 20.0 + NOTE * note.len() as f64;
    let drawing = Drawing { title, heading, width: WIDTH, height, panels, note };
    template::render(TEMPLATE, drawing)
}

/// Lines of at most `width` characters; the last of `most` lines is cut off.
fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = view::lines(text, width);
    if lines.len() > most {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|line| view::shortened(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_the_last_one_is_cut() {
        assert_eq!(wrapped("one two three four", 8, 2), ["one two", "three f…"]);
        assert_eq!(wrapped("unbreakable", 5, 2), ["unbr…"]);
        assert_eq!(wrapped("", 5, 2), Vec::<String>::new());
    }
}
