//! Journals of known content against the reports they must produce. `UNLADEN_BLESS=1` rewrites the expected files.

use std::fs;
use std::path::{Path, PathBuf};

use unladen::judge::findings::Findings;
use unladen::judge::judge;
use unladen::report::{Format, render};
use unladen::study::plan::ArmKind;

use crate::sketch::{Arm, Sketch, arm, ladder, late};

/// The findings of a sketch.
fn findings(sketch: &Sketch) -> Findings {
    let dir = tempfile::tempdir().expect("a temporary folder");
    sketch.write(dir.path());
    judge(dir.path()).expect("a whole run folder")
}

/// Compares with the expected files, or writes them.
fn check(name: &str, findings: &Findings, formats: &[(Format, &str)]) {
    for (format, extension) in formats {
        let path = golden(&format!("{name}.{extension}"));
        let printed = render(findings, *format);
        if std::env::var_os("UNLADEN_BLESS").is_some() {
            fs::write(&path, &printed).expect("the golden folder is writable");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if printed != expected {
            let got = std::env::temp_dir().join(format!("unladen-{name}.{extension}"));
            fs::write(&got, &printed).expect("a temporary file");
            panic!(
                "the report differs from {}; what came out is in {}. If it is right: UNLADEN_BLESS=1 cargo test",
                path.display(),
                got.display()
            );
        }
    }
}

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/golden").join(file)
}

#[test]
fn an_effect() {
    let sketch = Sketch {
        budgets: vec![("cpu_per_request", "10%"), ("rss", "50MiB"), ("latency_p99", "20%"), ("heap", "1MiB")],
        ..ladder()
    };
    check(
        "effect",
        &findings(&sketch),
        &[(Format::Text, "txt"), (Format::Markdown, "md"), (Format::Csv, "csv"), (Format::Html, "html")],
    );
}
