#![doc = include_str!("../README.md")]
//! ## Runs and rounds
//!
//! One file (or one row of a table) is one run; the first run of the baseline is paired with the first of every variant,
//! and so on.

mod foreign;
mod hyperfoil;
mod jmeter;
mod k6;
mod overhead;
mod table;
mod vegeta;
mod wrk;

use std::fs;
use std::path::{Path, PathBuf};

use unladen_journal::notices::Notice;
use unladen_journal::record::{Imported, RunRecord, SCHEMA, VariantKind};
use unladen_study::spec::{Command, Load, Service, Study, Variant};
use unladen_study::{BASELINE, PLACEBO};

use self::foreign::{Fault, ForeignRun};

/// Results that cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No known tool writes such a file.
    #[error(
        "{}: this is the output of no tool that unladen knows. It reads k6's summary JSON, the text of wrk and wrk2, vegeta's \
         report (text or JSON), JMeter's JTL as CSV, Hyperfoil's statistics JSON, results.csv of OpenTelemetry's overhead tests, and \
         a CSV with one row per run and metrics as columns",
        path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The file is of a known tool, but something in it is wrong.
    #[error("{}{}: {message}", path.display(), line.map_or_else(String::new, |line| format!(":{line}")))]
    Broken {
        /// The file.
        path: PathBuf,
        /// Line, from 1, where it is known.
        line: Option<u64>,
        /// What is wrong and what to do.
        message: String,
    },
    /// A side has no run.
    #[error("{side} has no run: {} holds none for it", path.display())]
    Nothing {
        /// `baseline` or the variant's name.
        side: String,
        /// The last file that was looked at.
        path: PathBuf,
    },
    /// A name that cannot be a variant's.
    #[error(
        "`{name}` cannot be the name of a variant here; use letters, digits, `-` and `_`, and not `baseline` or `placebo`"
    )]
    BadName {
        /// The name.
        name: String,
    },
}

/// What a tool wrote: runs, by column where one file holds several variants.
type Parsed = Vec<ForeignRun>;

/// A file, and which of its variants is meant: `results.csv`, or `results.csv#none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    path: PathBuf,
    column: Option<String>,
}

impl Source {
    /// From `FILE` or `FILE#COLUMN`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match text.rsplit_once('#') {
            Some((path, column)) if !Path::new(text).exists() => {
                Self { path: path.into(), column: Some(column.to_owned()) }
            }
            _ => Self { path: text.into(), column: None },
        }
    }

    /// The tool's name and the runs in the file.
    fn read(&self) -> Result<(&'static str, Parsed), ImportError> {
        let bytes =
            fs::read(&self.path).map_err(|source| ImportError::Unreadable { path: self.path.clone(), source })?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (tool, runs) =
            parse(text, self.column.as_deref()).ok_or_else(|| ImportError::Unknown { path: self.path.clone() })?;
        let broken =
            |fault: Fault| ImportError::Broken { path: self.path.clone(), line: fault.line, message: fault.message };
        Ok((tool, runs.map_err(broken)?))
    }
}

/// The tool whose output a text looks like, and what it holds. `None`: no tool's.
fn parse(text: &str, column: Option<&str>) -> Option<(&'static str, Result<Parsed, Fault>)> {
    let start = text.trim_start();
    if start.starts_with('{') {
        let json: serde_json::Value = match serde_json::from_str(start) {
            Ok(json) => json,
            Err(error) => {
                let line = Some(error.line() as u64);
                let message = format!("this is not whole JSON: {error}");
                return Some(("JSON", Err(Fault { line, message })));
            }
        };
        return match json {
            json if json.get("latencies").is_some() => Some(("vegeta", vegeta::json(&json).map(|run| vec![run]))),
            json if json.get("metrics").is_some() => Some(("k6", k6::summary(&json).map(|run| vec![run]))),
            json if json.get("stats").is_some() || json.get("statistics").is_some() => {
                Some(("Hyperfoil", hyperfoil::statistics(&json).map(|run| vec![run])))
            }
            _ => None,
        };
    }
    if text.contains("Requests/sec:") {
        return Some(("wrk", wrk::text(text).map(|run| vec![run])));
    }
    if text.contains("Latencies") && text.contains("Success") {
        return Some(("vegeta", vegeta::text(text).map(|run| vec![run])));
    }
    let head = start.lines().next()?;
    if head.starts_with("timeStamp,") || (head.contains(",elapsed,") && head.contains("success")) {
        return Some(("JMeter", jmeter::samples(start).map(|run| vec![run])));
    }
    if head.starts_with("timestamp,") && head.contains(':') {
        return Some(("OpenTelemetry overhead tests", overhead::rows(start, column)));
    }
    head.contains(',').then(|| ("CSV", table::rows(start, column)))
}

/// A side of the comparison: its name and its files.
#[derive(Debug, Clone)]
pub struct Side {
    /// Key of the variant.
    pub name: String,
    /// Its files, in the order of the rounds.
    pub sources: Vec<Source>,
}

/// The study that the numbers stand for, and its journal.
#[derive(Debug)]
pub struct ForeignStudy {
    /// A study that says what is compared; it cannot be run.
    pub study: Study,
    /// The runs.
    pub runs: Vec<RunRecord>,
}

/// Reads all files of all sides.
///
/// # Errors
/// When a file cannot be read, is of no known tool or broken, a side has no run, or a name is none.
pub fn read(study_name: &str, baseline: &[Source], variants: &[Side]) -> Result<ForeignStudy, ImportError> {
    let mut study = Study::new(study_name, Load::new("http://127.0.0.1/"));
    study.placebo = false;
    let names: Vec<&str> = variants.iter().map(|side| side.name.as_str()).collect();
    study.question = format!("What do the imported results say of {}?", names.join(", "));
    study.services.insert("imported".to_owned(), Service::new(Command::Words(vec!["imported".to_owned()])));
    study.variants.insert(BASELINE.to_owned(), Variant::default());
    let mut runs = Vec::new();
    read_side(&mut runs, BASELINE, VariantKind::Baseline, baseline)?;
    for side in variants {
        let fits = unladen_study::variables::is_name(&side.name) && ![BASELINE, PLACEBO].contains(&side.name.as_str());
        if !fits || study.variants.contains_key(&side.name) {
            return Err(ImportError::BadName { name: side.name.clone() });
        }
        study.variants.insert(side.name.clone(), Variant::default());
        read_side(&mut runs, &side.name, VariantKind::Variant, &side.sources)?;
    }
    study.rounds = runs.iter().map(|run| run.round).max().unwrap_or(1);
    for (run, number) in runs.iter_mut().zip(1..) {
        run.run = number;
    }
    Ok(ForeignStudy { study, runs })
}

fn read_side(runs: &mut Vec<RunRecord>, name: &str, kind: VariantKind, sources: &[Source]) -> Result<(), ImportError> {
    let mut round = 0;
    for source in sources {
        let (tool, parsed) = source.read()?;
        for run in parsed {
            round += 1;
            runs.push(record(name, kind, round, tool, source, run));
        }
    }
    let path = sources.last().map(|source| source.path.clone()).unwrap_or_default();
    if round == 0 { Err(ImportError::Nothing { side: name.to_owned(), path }) } else { Ok(()) }
}

fn record(name: &str, kind: VariantKind, round: u32, tool: &str, source: &Source, run: ForeignRun) -> RunRecord {
    let under_way = run.numbers.get("throughput").zip(run.numbers.get("latency_mean")).map(|(x, r)| x * r / 1e6);
    // Little's law: more requests under way than could be is arithmetic that does not hold (a mean of something else).
    let impossible = run.concurrency.zip(under_way).filter(|(most, under_way)| *under_way > 1.05 * most);
    let void = impossible.map(|(most, under_way)| Notice::ImportedImpossible { under_way, most });
    RunRecord {
        schema: SCHEMA,
        round,
        slot: 1,
        variant: name.to_owned(),
        kind,
        void,
        imported: Some(Imported {
            tool: tool.to_owned(),
            file: source.path.display().to_string(),
            requests: run.requests,
            numbers: run.numbers,
        }),
        ..RunRecord::empty()
    }
}
