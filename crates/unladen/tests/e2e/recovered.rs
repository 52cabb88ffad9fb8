//! kill -9 within a run: the spans that were acknowledged are readable afterwards, and the study goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{CliOutput, Scratch, counting, demo_study};

const TRACED: &str = r#"  otel:
    spans_per_request: 4
    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: "http://${sink.otlp_grpc}", OTEL_BSP_SCHEDULE_DELAY: 50}, args: [--trace, otlp]}}
"#;

/// Starts the study and waits until the traced run, the first one by this seed, has stored spans; the study's process and the run's
/// folder.
fn storing(scratch: &Scratch) -> (Child, PathBuf) {
    let arguments = ["run", ".", "--out", "out", "--plain", "--rounds", "1", "--window", "20s"];
    let mut child = scratch
        .command(&[&arguments[..], &["--set", "placebo=false", "--set", "load.rate=500", "--seed", "3"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unladen starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        for folder in folders(scratch) {
            let is_run = folder.ends_with("01-otel") || folder.ends_with("02-otel");
            let bytes: u64 = files(&folder).iter().map(|file| fs::metadata(file).map_or(0, |it| it.len())).sum();
            if is_run && bytes > 20_000 {
                return (child, folder);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("no spans in 60 s");
}

fn folders(scratch: &Scratch) -> Vec<PathBuf> {
    fs::read_dir(scratch.path("out/runs")).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn files(run: &Path) -> Vec<PathBuf> {
    fs::read_dir(run.join("spans")).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Rows of the span files of a run, all of which must be whole.
fn rows(run: &Path) -> i64 {
    let count = |path: &PathBuf| {
        assert_eq!(path.extension().and_then(|it| it.to_str()), Some("parquet"), "{} is torn", path.display());
        let file = fs::File::open(path).expect("a span file");
        SerializedFileReader::new(file).expect("a whole Parquet file").metadata().file_metadata().num_rows()
    };
    files(run).iter().map(count).sum()
}

/// The sink of a run: its working directory is the run's folder for logs.
fn sink_of(run: &Path) -> Pid {
    let logs = run.join("logs").canonicalize().expect("a folder for logs");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let found = processes.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let here = fs::read_link(entry.path().join("cwd")).ok()? == logs;
        (here && String::from_utf8_lossy(&line).contains("__sink")).then(|| Pid::from_raw(pid))?
    });
    found.last().expect("a sink")
}

#[test]
fn a_sink_that_is_killed_loses_nothing_that_it_acknowledged() {
    let _turn = counting();
    let scratch = Scratch::with(&demo_study("sink-killed", TRACED));
    let (child, run) = storing(&scratch);
    kill_process(sink_of(&run), Signal::KILL).expect("a signal to the sink");
    let output = CliOutput::new(&child.wait_with_output().expect("it ends")).ends_with(2);
    let output = output.complains(&["unladen's own sink process failed", "was cut short: recovered"]);
    assert!(rows(&run) > 500, "{} rows: {}", rows(&run), output.err);
}

#[test]
fn a_study_that_is_killed_finishes_its_span_files_when_it_goes_on() {
    let _turn = counting();
    let scratch = Scratch::with(&demo_study("study-killed", TRACED));
    let (mut child, run) = storing(&scratch);
    // The sink as well: it would finish its files when it sees that unladen is gone.
    let sink = sink_of(&run);
    kill_process(Pid::from_child(&child), Signal::KILL).expect("a signal to unladen");
    kill_process(sink, Signal::KILL).expect("a signal to the sink");
    child.wait().expect("it ends");
    assert!(files(&run).iter().any(|file| file.extension().is_none_or(|it| it != "parquet")), "nothing was torn");
    std::thread::sleep(Duration::from_millis(500));

    let arguments = ["run", "--resume", "out", "--plain", "--rounds", "1", "--window", "1s"];
    // Whether the machine let it come to a verdict is not asked.
    let output = scratch.unladen(&arguments);
    let output = output.complains(&[run.file_name().and_then(|it| it.to_str()).expect("a name"), "recovered"]);
    assert!(!output.err.contains("calibration:"), "it was calibrated before: {}", output.err);
    assert!(rows(&run) > 500, "{} rows: {}", rows(&run), output.err);
    // The killed run keeps its folder: its repetition has another.
    let repeated: Vec<PathBuf> =
        folders(&scratch).into_iter().filter(|it| it != &run && it.to_string_lossy().ends_with("-otel")).collect();
    assert!(repeated.iter().any(|it| !it.ends_with("calibration-otel") && rows(it) > 0), "{repeated:?}");
}
