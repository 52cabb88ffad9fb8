//! Reports on pages are what is printed today, of runs that are stored: the block below `<!-- sample: NAME -->` is parts of the report of
//! `tests/stored/NAME`, in their order, with lines of `…` where something is left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What `unladen report` prints of a stored run. It writes the report into the run folder, too, so it gets a copy.
fn printed(name: &str) -> String {
    let copy = tempfile::tempdir().expect("a temporary folder");
    for file in ["study.yaml", "host.json", "journal.jsonl"] {
        let stored = root().join("crates/unladen/tests/stored").join(name).join(file);
        fs::copy(&stored, copy.path().join(file)).unwrap_or_else(|error| panic!("{}: {error}", stored.display()));
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_unladen")).arg("report").arg(copy.path()).output().expect("the executable");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn reports_on_pages_are_what_is_printed() {
    let mut parts = 0;
    for page in ["README.md", "docs/how-to/read-a-report.md"] {
        let text = fs::read_to_string(root().join(page)).expect("the page");
        for sample in text.split("<!-- sample: ").skip(1) {
            let (name, rest) = sample.split_once(" -->\n```\n").expect("a name and a block");
            let block = rest.split("\n```").next().expect("the block");
            let report = printed(name);
            let mut from = 0;
            for part in block.split('…').map(|part| part.trim_matches('\n')).filter(|part| !part.is_empty()) {
                let Some(at) = report[from..].find(part) else {
                    panic!("{page}: not in `unladen report` of tests/stored/{name}, or not in this order:\n{part}");
                };
                from += at + part.len();
                parts += 1;
            }
        }
    }
    assert!(parts >= 8, "{parts} parts");
}
