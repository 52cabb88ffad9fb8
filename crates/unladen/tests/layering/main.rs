//! The rules of ARCHITECTURE.md that Cargo cannot hold, held by reading the sources.

mod circles;

use std::collections::{BTreeMap, BTreeSet};
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

/// Our own crates that a crate's manifest names as its dependencies, those of its tests apart.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let ours = manifest.split("[dependencies]").nth(1).unwrap_or_default().split("\n[").next().unwrap_or_default();
    ours.lines().filter_map(|line| line.strip_prefix("unladen-")?.split_once('.')).map(|(name, _)| name).collect()
}

#[test]
fn every_arrow_of_the_architecture_is_a_line_in_a_manifest() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the page");
    let rows: BTreeMap<&str, BTreeSet<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `crates/")?.split_once('`'))
        .map(|(name, rest)| {
            let knows = rest.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            (name, knows.split('`').skip(1).step_by(2).collect())
        })
        .collect();
    let names = crates();
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), names);
    for name in &names {
        let manifest = fs::read_to_string(root.join("crates").join(name).join("Cargo.toml")).expect("a manifest");
        assert_eq!(dependencies(&manifest), rows[name.as_str()], "{name}");
    }
}

#[test]
fn statistics_have_no_clock_and_no_input() {
    forbid("../stats/src", &["std::fs", "std::io", "std::net", "std::time", "std::process", "std::env"]);
}

#[test]
fn decoders_have_no_socket_no_disk_and_no_clock() {
    forbid(
        "../decode/src",
        &["std::fs", "std::io", "std::net", "std::os", "std::time", "std::process", "std::env", "Timestamp::now"],
    );
}

#[test]
fn measuring_estimates_and_judges_nothing() {
    forbid("../measure/src", &["unladen_stats::estimate", "unladen_stats::verdict", "unladen_stats::rank"]);
}

#[test]
fn judge_starts_no_process_and_reads_no_clock() {
    forbid("../judge/src", &["std::process", "Instant::now", "SystemTime::now", "Timestamp::now"]);
}

#[test]
fn serve_reads_and_computes_nothing() {
    let writing = ["fs::write", "File::create", "fs::remove"];
    forbid(
        "src/serve",
        &[&["unladen_stats", "unladen_processes", "unladen_probe", "unladen_measure", "crate::live"], &writing[..]]
            .concat(),
    );
    forbid("src/live", &["crate::serve"]);
}

/// The names of all crates, sorted.
fn crates() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = fs::read_dir(root).expect("the crates").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn no_leftovers() {
    for name in crates() {
        forbid(&format!("../{name}/src"), &["todo!(", "unimplemented!(", "dbg!(", "FIXME", "TODO", "XXX"]);
    }
}

/// How many lines each file below `dir` of a crate has; none if there is no such folder.
fn lines(name: &str, dir: &str) -> Vec<(PathBuf, usize)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join(dir);
    let files = if dir.exists() { sources(&dir) } else { Vec::new() };
    let counted = files.into_iter().map(|file| {
        let lines = fs::read_to_string(&file).expect("a source file").lines().count();
        (file, lines)
    });
    counted.collect()
}

#[test]
fn files_stay_small_enough_to_read() {
    for name in crates() {
        for (file, lines) in ["src", "tests", "examples", "fuzz/targets"].iter().flat_map(|dir| lines(&name, dir)) {
            assert!(lines <= 500, "{} has {lines} lines: split it by idea", file.display());
        }
    }
}

#[test]
fn crates_stay_small_enough_to_know() {
    for name in crates() {
        let lines: usize = lines(&name, "src").iter().map(|(_, lines)| lines).sum();
        assert!((1..=15_000).contains(&lines), "`{name}` has {lines} lines: split it by idea");
    }
}
