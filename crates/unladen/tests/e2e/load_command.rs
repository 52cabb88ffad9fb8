//! `unladen load` as a user types it, against the embedded provider.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assert_cmd::assert::Assert;

use crate::harness::{UNLADEN, counting};

/// A service that answers at once; it ends with the value.
struct Provider {
    child: Child,
    url: String,
}

impl Provider {
    fn start() -> Self {
        let mut child = Command::new(UNLADEN)
            .args(["__demo", "provider", "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the provider starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("its address");
        let url = line.split_whitespace().last().expect("an address").to_owned();
        Self { child, url }
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn load(arguments: &[&str]) -> Assert {
    assert_cmd::Command::new(UNLADEN).arg("load").args(arguments).env("NO_COLOR", "1").assert()
}

fn output(assert: &Assert) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&assert.get_output().stdout), text(&assert.get_output().stderr))
}

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let (_, err) = output(&load(arguments).code(2));
    for word in words {
        assert!(err.contains(word), "no `{word}` in:\n{err}");
    }
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let assert = load(&[arguments, &["--json", "-"]].concat()).success();
    serde_json::from_slice(&assert.get_output().stdout).expect("JSON on standard output, and nothing else")
}

#[test]
fn the_summary_has_rate_latency_and_errors() {
    let _turn = counting();
    let provider = Provider::start();
    let assert = load(&[&provider.path("/provider"), "--rate", "50", "-c", "4", "--duration", "1s"]).success();
    let (out, _) = output(&assert);
    for word in ["open loop, 50 requests/s", "p99", "requests", "of 50.0/s wanted", "errors", "200: 50"] {
        assert!(out.contains(word), "no `{word}` in:\n{out}");
    }
}

#[test]
fn capacity_is_searched_and_every_trial_shown() {
    let _turn = counting();
    let provider = Provider::start();
    let url = provider.path("/provider");
    let common = ["--rate", "20", "--most", "40", "--duration", "200ms", "-c", "4"];
    let assert = load(&[&[&url[..], "--capacity", "p50<5s"], &common[..]].concat()).success();
    let (out, _) = output(&assert);
    for word in ["a rate fails at p50>=5s or error-rate>0.1%", "wanted/s", "yes", "at least 40 requests/s"] {
        assert!(out.contains(word), "no `{word}` in:\n{out}");
    }
    // Nothing is answered within a microsecond.
    let assert = load(&[&[&url[..], "--capacity", "p50<1us,errors<1"], &common[..]].concat()).code(1);
    let (out, _) = output(&assert);
    assert!(out.contains("No capacity") && out.contains("p50 is"), "{out}");
    let found = json(&[&[&url[..], "--capacity", "p50<5s"], &common[..]].concat());
    assert_eq!((found["holds"].as_f64(), &found["fails"]), (Some(40.0), &serde_json::Value::Null));
    assert_eq!(found["trials"].as_array().map(Vec::len), Some(4));
    refused(&[&url, "--capacity", "p98<5s"], &["p98", "p99>50ms"]);
    refused(&[&url, "--capacity", "p99"], &["p99", "write one such as p99<20ms"]);
    refused(&[&url, "--capacity", "p99<5s", "--users", "5"], &["cannot be used with"]);
}

#[test]
fn a_script_is_sent_and_its_slips_are_told() {
    let _turn = counting();
    let provider = Provider::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let good = file(
        "two.yaml",
        "order: sequence\nrequests:\n  - name: first\n    path: /ready\n    capture: {word: {regex: 'r.*'}}\n    expect: {ready: {body_contains: ready}}\n  - name: second\n    path: /provider?{{word}}\n    kinds: {fine: {status: 200}}\n",
    );
    let assert = load(&[&provider.url, "--script", &good, "--requests", "20", "-c", "2"]).success();
    let (out, _) = output(&assert);
    for word in ["first", "second", "test       first: ready: 20 passed, 0 failed", "200: 40"].into_iter().chain([
        "kind       second: fine: 20",
        "kind       second: other: 0",
        "whole iterations",
        "20   0 failed, 0 not over",
    ]) {
        assert!(out.contains(word), "no `{word}` in:\n{out}");
    }
    let bad = file("bad.yaml", "requests:\n  - name: a\n    path: /{{id}}\n    weigth: 3\n");
    refused(&[&provider.url, "--script", &bad], &["bad.yaml:4", "weigth", "weight"]);
    let unknown = file("unknown.yaml", "requests:\n  - name: a\n    path: /{{id}}\n");
    refused(&[&provider.url, "--script", &unknown], &["unknown.yaml:3", "{{id}}"]);
    let empty = file("empty.yaml", "order: sequence\n");
    refused(&[&provider.url, "--script", &empty], &["empty.yaml", "`requests` is missing"]);
    refused(&[&provider.url, "--script", "/nowhere.yaml"], &["nowhere.yaml"]);
}

#[test]
fn users_wait_for_their_turn_and_stages_go_in_lines() {
    let _turn = counting();
    let provider = Provider::start();
    let url = provider.path("/provider");
    let users = json(&[&url, "--users", "5", "--think", "0s", "--rate", "40", "--duration", "1s"]);
    assert!(users["rate"].as_f64().expect("a rate") <= 44.0, "{users}");
    let stages = json(&[&url, "--stages", "500ms:40,500ms:0", "--duration", "1s"]);
    // Two triangles of half a second each, 40 at the top.
    let requests = stages["requests"].as_u64().expect("requests");
    assert!((17..=23).contains(&requests), "{requests}");
    for pace in [["--pace", "exact"], ["--pace", "slot"], ["--slot", "1ms"]] {
        let found = json(&[&[&url[..], "--rate", "50", "--duration", "500ms"], &pace[..]].concat());
        assert_eq!(found["requests"].as_u64(), Some(25), "{pace:?}");
    }
    refused(&[&url, "--rate", "5", "--burst", "5"], &["cannot be used with"]);
    refused(&[&url, "--stages", "fast"], &["names no stages"]);
}

#[test]
fn target_files_of_vegeta_are_read() {
    let _turn = counting();
    let provider = Provider::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("targets.txt");
    let text = format!("GET {}\nX-Id: 1\n\nGET {}\n", provider.path("/provider"), provider.path("/ready"));
    std::fs::write(&path, text).expect("written");
    let path: &Path = &path;
    let assert = load(&["--targets", &path.display().to_string(), "--requests", "40"]).success();
    let (out, _) = output(&assert);
    assert!(out.contains("GET /provider") && out.contains("GET /ready") && out.contains("200: 40"), "{out}");
}
