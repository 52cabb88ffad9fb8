//! Names and labels come from the study, bodies of notices from logs: none of it may act on whoever reads a report.

use unladen_journal::notices::Notice;
use unladen_journal::record::VariantKind;
use unladen_judge::findings::Findings;
use unladen_report::{Format, render, write_all};

use crate::sketch::{Sketch, SketchedVariant, findings, ladder, sketched};

const SCRIPT: &str = "<script>alert('x')</script>";

/// A study in which everything that a user or a log can fill is hostile.
fn hostile() -> Findings {
    let sketch = Sketch {
        change_run: |run| {
            if run.run == 5 {
                let log_tail = format!("{SCRIPT}\n\u{1b}[31m| a | b |\u{7}");
                run.void = Some(Notice::ServiceDied { service: "app".to_owned(), how: "exit 1".to_owned(), log_tail });
            }
        },
        ..Sketch::new("hostile", "<img src=x onerror=alert(1)> | `a` [b](http://evil) \u{1b}[2J")
    };
    let bad = sketched("=cmd|'/c calc'!A1", "@SUM(1,2) \"<b>\u{202e}</b>\" | x\n# y", VariantKind::Variant);
    let mut findings = findings(&sketch.with(SketchedVariant { cpu: 1.2, spans: 1.0, lost: 0.2, ..bad }));
    findings.load.url = format!("http://127.0.0.1/{SCRIPT}");
    findings
}

#[test]
fn html_is_escaped() {
    let html = render(&hostile(), Format::Html);
    assert!(html.contains("&lt;script&gt;"), "the log line is shown, as text");
    assert_eq!(html.matches("<script").count(), 3, "data, library and program: no other script");
    assert_eq!(html.matches("</script").count(), 3, "and none of them ends early");
    assert!(!html.contains("<img"), "no element from the question");
    assert!(!html.contains("http://evil\""), "no link");
    assert!(html.contains("<h2>Differences from the baseline</h2>"), "and it is the page, not its error");
    let attribute_breaks = html.match_indices("title=\"").filter(|(at, _)| {
        let rest = &html[at + 7..];
        rest[..rest.find('"').unwrap_or(0)].contains('<')
    });
    assert_eq!(attribute_breaks.count(), 0);
}

#[test]
fn html_asks_nothing_of_the_network() {
    let html = render(&findings(&ladder()), Format::Html);
    assert!(html.contains("content=\"default-src 'none';"), "and the browser would not let it");
    let elements = html.split("<script").next().expect("a page");
    for tag in ["<link", "<iframe", "<img", "@import", "url(", " src=", "href=\"http", "href=\"//"] {
        assert!(!elements.contains(tag), "{tag}");
    }
}

#[test]
fn svg_is_escaped() {
    let svg = render(&hostile(), Format::Svg);
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert!(
        !svg.contains("<script") && !svg.contains("<img") && !svg.contains("<b>") && svg.contains("&lt;b&gt;"),
        "{svg}"
    );
}

#[test]
fn markdown_is_escaped() {
    let markdown = render(&hostile(), Format::Markdown);
    assert!(!markdown.contains("<script") && !markdown.contains("<img") && !markdown.contains("<b>"));
    assert!(!markdown.contains("[b](http"), "no link");
    assert!(!markdown.contains('@'), "nobody is called");
    let (mut table, mut wanted) = (0, None);
    for line in markdown.lines() {
        let bars = line.replace("\\|", "").matches('|').count();
        // Every line of a table has as many cells as its head.
        wanted = line.starts_with('|').then(|| wanted.unwrap_or(bars));
        assert!(wanted.is_none_or(|wanted| wanted == bars), "{line}");
        table += usize::from(wanted.is_some());
    }
    assert!(table > 10);
    assert!(!markdown.lines().any(|line| line.starts_with("# ")), "no heading from a label");
}

#[test]
fn csv_cells_are_no_formulas() {
    let csv = render(&hostile(), Format::Csv);
    let mut lines = csv.lines();
    let columns = lines.next().map(|head| head.split(',').count()).expect("a head");
    for line in lines {
        let cells = cells(line);
        assert_eq!(cells.len(), columns, "{line}");
        for cell in cells {
            let number = cell.parse::<f64>().is_ok();
            assert!(number || !cell.starts_with(['=', '+', '-', '@']), "{cell}");
        }
    }
}

/// The cells of one line of CSV.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().expect("never empty").push(other),
        }
    }
    cells
}

#[test]
fn the_terminal_gets_no_control_characters() {
    let text = render(&hostile(), Format::Text);
    assert!(text.chars().all(|character| character == '\n' || !character.is_control()));
    assert!(text.contains("<script>alert('x')</script> "), "the log line is shown");
}

#[test]
fn passwords_in_urls_stay_at_home() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let sketch = Sketch::new("secret", "").with(sketched("otel", "", VariantKind::Variant));
    let study = sketch.study().replace("http://127.0.0.1", "http://admin:hunter2@127.0.0.1");
    crate::sketch::write(dir.path(), &study, &sketch.runs());
    let findings = unladen_judge::judge(dir.path()).expect("a whole run folder");
    assert_eq!(findings.load.url, "http://***@127.0.0.1:${port.app}/work");
    write_all(dir.path(), &findings).expect("a writable folder");
    for file in ["findings.json", "report.md", "report.html"] {
        let content = std::fs::read_to_string(dir.path().join(file)).expect("just written");
        assert!(!content.contains("hunter2"), "{file}");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("a folder").filter_map(Result::ok).collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().ends_with(".part")));
}
