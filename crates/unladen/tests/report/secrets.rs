//! Secrets of a study, by way of the real executable: nothing that a run leaves has them in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What must not be found anywhere.
const SECRETS: [&str; 3] = ["tok-5up3r", "p4ssw0rd", "h34d3r"];

const STUDY: &str = "
study: secretive
rounds: 1
warmup: 200ms
window: 500ms
placebo: false
services:
  app:
    command: ['${unladen}', __demo, provider, --port, '${port.app}']
    env:
      API_TOKEN: tok-5up3r
      DATABASE_URL: postgres://shop:p4ssw0rd@127.0.0.1:5432/shop
    ready: {http: 'http://127.0.0.1:${port.app}/ready'}
variants:
  baseline: {}
  other:
    services: {app: {env: {SECOND_TOKEN: tok-5up3r, UPSTREAM: 'http://me:p4ssw0rd@127.0.0.1:9'}}}
load:
  url: http://127.0.0.1:${port.app}/provider
  headers: {Authorization: Bearer h34d3r}
  rate: 100
  connections: 2
calibration: null
";

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn no_file_of_a_run_has_them() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    fs::write(dir.path().join("study.yaml"), STUDY).expect("a writable folder");
    let unladen = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_unladen"))
            .args(arguments)
            .current_dir(dir.path())
            .output()
            .expect("it starts");
        [output.stdout, output.stderr].concat()
    };
    let with_password = "load.url=http://me:p4ssw0rd@127.0.0.1:${port.app}/provider";
    let mut outputs = vec![
        (PathBuf::from("what run says"), unladen(&["run", ".", "--out", "out", "--plain"])),
        // Refused by the load generator, which must not say too much either.
        (PathBuf::from("run --set"), unladen(&["run", ".", "--out", "refused", "--plain", "--set", with_password])),
    ];
    let refused = String::from_utf8_lossy(&outputs[1].1);
    assert!(refused.contains("belong in an Authorization header"), "{refused}");
    for format in ["text", "markdown", "json", "csv", "html", "svg"] {
        outputs.push((PathBuf::from(format), unladen(&["report", "out", "--format", format])));
    }
    let journal = fs::read_to_string(dir.path().join("out/journal.jsonl")).expect("a journal");
    let stdout = String::from_utf8_lossy(&outputs[0].1);
    // More where a busy machine made runs void.
    assert!(journal.lines().filter(|line| line.contains("\"slot\":")).count() >= 2, "two runs: {stdout}");
    for folder in ["out", "refused"] {
        let files = files(&dir.path().join(folder)).into_iter();
        outputs.extend(files.map(|path| (path.clone(), fs::read(path).expect("a file"))));
    }
    assert!(outputs.iter().any(|(path, _)| path.ends_with("out/report.html")), "there is a page");
    for (path, content) in &outputs {
        let text = String::from_utf8_lossy(content);
        for secret in SECRETS {
            assert!(!text.contains(secret), "{} has {secret}", path.display());
        }
    }
}
