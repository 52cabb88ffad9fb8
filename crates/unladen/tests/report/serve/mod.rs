//! `unladen serve` as browsers and others see it: pages, files, who may ask, trends, comparisons, a run under way.

mod browser;
mod followed;
mod requests;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use unladen_journal::record::VariantKind;
use unladen_judge::judge;
use unladen_report::write_all;

use crate::sketch::{self, Sketch, SketchedVariant, sketched};

/// A server of its own; ends with the value.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_unladen"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .arg(dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the executable");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("it says where it listens");
        let address = line.trim_end().trim_end_matches('/').rsplit_once("http://").expect(&line).1.to_owned();
        Self { child, address }
    }

    /// What comes back for a path that is sent as it is.
    fn ask(&self, path: &str) -> (u16, String) {
        self.ask_as(&self.address, path)
    }

    fn ask_as(&self, host: &str, path: &str) -> (u16, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }

    fn send(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers and closes");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect(&answer);
        (status, answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A study with one variant that costs this much.
fn study(id: &str, name: &'static str, cpu: f64) -> Sketch {
    let otel = sketched("otel", "Open <b>Telemetry</b>", VariantKind::Variant);
    let sketch = Sketch { noise: 0.002, seed: id.len() as u64, ..Sketch::new(name, "What does it cost?") };
    let sketch = sketch.with(SketchedVariant { cpu, memory: 9.0, spans: 4.0, ..otel });
    Sketch { budgets: vec![("cpu_per_request", "20%")], ..sketch }
}

/// A run folder below `root` as `unladen run` leaves it, less the files of its runs.
fn run_folder(root: &Path, id: &str, name: &'static str, started: &str, cpu: f64) {
    let sketch = study(id, name, cpu);
    let dir = root.join(id);
    fs::create_dir_all(&dir).expect("a temporary folder");
    sketch::write(&dir, &sketch.study(), &sketch.runs());
    let host = serde_json::json!({"cpu": "Example CPU", "cores": 4, "started": started, "commit": id});
    fs::write(dir.join("host.json"), host.to_string()).expect("a temporary folder");
    write_all(&dir, &judge(&dir).expect("a whole run folder")).expect("a writable folder");
}

/// Four results of one study, of which the third is dearer, and one of another.
fn history() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (id, started, cpu) in [
        ("shop-1", "2026-03-01T12:00:00Z", 1.105),
        ("shop-2", "2026-03-02T12:00:00Z", 1.105),
        ("old/shop 3", "2026-03-03T12:00:00Z", 1.305),
        ("shop-4", "2026-03-04T12:00:00Z", 1.305),
    ] {
        run_folder(root.path(), id, "shop & co", started, cpu);
    }
    run_folder(root.path(), "other", "other", "2026-02-01T12:00:00Z", 1.05);
    root
}
