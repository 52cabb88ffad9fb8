//! The dependency rules of ARCHITECTURE.md, held by reading the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Every `.rs` file below `dir`.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("a source folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            files.extend(sources(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
    files
}

/// Lines of code below `dir` (comments apart) that contain one of `words`, as `file:line: text`.
fn uses(dir: &str, words: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let mut found = Vec::new();
    for file in sources(&root) {
        let text = fs::read_to_string(&file).expect("a source file");
        // Unit tests at the end of a file may use what the code may not.
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
        for (number, line) in code.lines().enumerate() {
            if !line.trim_start().starts_with("//") && words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    found
}

#[track_caller]
fn forbid(dir: &str, words: &[&str]) {
    let found = uses(dir, words);
    assert!(found.is_empty(), "{dir} must not use {words:?}:\n{}", found.join("\n"));
}

#[test]
fn the_libraries_know_nothing_of_each_other() {
    for (dir, others) in [
        ("../stats/src", ["unladen_load", "unladen_sink", "unladen::"]),
        ("../http2/src", ["unladen_load", "unladen_sink", "unladen::"]),
        ("../load/src", ["unladen_stats", "unladen_sink", "unladen::"]),
        ("../sink/src", ["unladen_stats", "unladen_load", "unladen::"]),
    ] {
        forbid(dir, &others);
    }
    for (library, speaks_http2) in [("stats", false), ("http2", false), ("load", true), ("sink", true)] {
        let manifest = format!("{}/../{library}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(manifest).expect("a manifest");
        let ours = text.lines().filter(|line| line.starts_with("unladen-") && !line.starts_with("unladen-http2."));
        assert_eq!(ours.count(), 0, "{library} depends on ours");
        assert_eq!(text.contains("unladen-http2."), speaks_http2, "{library}");
    }
}

#[test]
fn statistics_have_no_clock_and_no_input() {
    forbid("../stats/src", &["std::fs", "std::io", "std::net", "std::time", "std::process", "std::env"]);
}

#[test]
fn measuring_computes_no_statistic() {
    forbid("../measure/src", &["unladen_stats::estimate", "unladen_stats::verdict", "unladen_stats::rank"]);
}

#[test]
fn judge_starts_no_process_and_reads_no_clock() {
    forbid("../judge/src", &["std::process", "Instant::now", "SystemTime::now", "Timestamp::now"]);
}

#[test]
fn serve_reads_and_computes_nothing() {
    forbid(
        "src/serve",
        &[
            "unladen_stats",
            "unladen_processes::subject",
            "unladen_processes::probe",
            "fs::write",
            "File::create",
            "fs::remove",
        ],
    );
}

/// The source folder of every crate.
fn crates() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = fs::read_dir(root).expect("the crates").map(|entry| entry.expect("an entry").file_name());
    entries.map(|name| format!("../{}/src", name.to_string_lossy())).collect()
}

#[test]
fn no_leftovers() {
    for dir in crates() {
        forbid(&dir, &["todo!(", "unimplemented!(", "dbg!(", "FIXME", "TODO", "XXX"]);
    }
}

#[test]
fn files_stay_small_enough_to_read() {
    for dir in crates().into_iter().chain(["tests".to_owned()]) {
        for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)) {
            let lines = fs::read_to_string(&file).expect("a source file").lines().count();
            assert!(lines <= 600, "{} has {lines} lines: split it by idea", file.display());
        }
    }
}
