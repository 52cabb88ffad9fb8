//! Reads the lines of `journal.jsonl` back.
//!
//! Tolerant where a crash can have been at work (a last line cut short by `kill -9` is a notice, not an error) and strict
//! where guessing would be wrong (a newer format). It judges nothing: which runs count is the judge's business.

use std::path::PathBuf;

use super::record::{Calibration, CalibrationRecord, NoticeRecord, RunRecord, SCHEMA};
use crate::notices::Notice;

/// A run folder that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing or unreadable.
    #[error("cannot read {}: {source}. Give the folder that `unladen run` wrote", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The resolved study is not a study.
    #[error("{} is not a resolved study: {message}", path.display())]
    Study {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The journal was written by a newer unladen.
    #[error("line {line} of the journal has format {found}, this unladen reads up to {known}. Update unladen")]
    Newer {
        /// Line, from 1.
        line: usize,
        /// Version found.
        found: u64,
        /// Newest version known.
        known: u32,
    },
}

/// Reads the lines of a journal.
///
/// Every line ends with a newline that is written together with it, so a last line without one is what a crash left.
/// A writer that went on after a crash without noticing has glued its next line to the fragment: the glued line is
/// found again and only the fragment is lost.
///
/// # Errors
/// When a line has a newer format than [`SCHEMA`].
pub fn lines(journal: &[u8]) -> Result<Lines, ReadError> {
    let mut read = Lines::default();
    let mut lines = journal.split(|&byte| byte == b'\n').enumerate().peekable();
    while let Some((index, bytes)) = lines.next() {
        let line = index + 1;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let torn = lines.peek().is_none();
        match parse(bytes, line)? {
            Ok(record) => read.add(record),
            Err(_) if torn => read.notices.push(Notice::JournalTorn { line }),
            Err(message) => {
                read.notices.push(Notice::JournalUnreadable { line, message });
                if let Some(glued) = last_start(bytes).filter(|&at| at > 0)
                    && let Ok(record) = parse(&bytes[glued..], line)?
                {
                    read.add(record);
                }
            }
        }
    }
    Ok(read)
}

/// What the lines of a journal say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lines {
    /// The runs, in order.
    pub runs: Vec<RunRecord>,
    /// The calibrations; of a variant the last one.
    pub calibrations: Vec<Calibration>,
    /// Notices of the study as a whole, and of lines that could not be read.
    pub notices: Vec<Notice>,
}

/// One line.
enum Line {
    Run(Box<RunRecord>),
    Calibration(Box<Calibration>),
    Notice(Notice),
}

impl Lines {
    fn add(&mut self, line: Line) {
        match line {
            Line::Run(run) => {
                // A study that has gone on has not stopped.
                self.notices.retain(|notice| !matches!(notice, Notice::Stopped(_)));
                self.runs.push(*run);
            }
            Line::Calibration(calibration) => {
                self.calibrations.retain(|known| known.variant != calibration.variant);
                self.calibrations.push(*calibration);
            }
            // Each session of a study that is gone on with says it again.
            Line::Notice(notice) => {
                self.notices.retain(|known| known.code() != notice.code());
                self.notices.push(notice);
            }
        }
    }
}

/// One line; the outer error is fatal, the inner one concerns this line alone.
fn parse(bytes: &[u8], line: usize) -> Result<Result<Line, String>, ReadError> {
    // The version is looked at before the rest, which a newer version may have changed.
    let value: serde_json::Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(SCHEMA) => Err(ReadError::Newer { line, found, known: SCHEMA }),
        Some(_) if value.get("calibration").is_some() => {
            let record: Result<CalibrationRecord, _> = serde_json::from_value(value);
            Ok(record.map(|record| Line::Calibration(Box::new(record.calibration))).map_err(|error| error.to_string()))
        }
        Some(_) if value.get("notice").is_some() => {
            let record: Result<NoticeRecord, _> = serde_json::from_value(value);
            Ok(record.map(|record| Line::Notice(record.notice)).map_err(|error| error.to_string()))
        }
        Some(_) => {
            Ok(serde_json::from_value(value).map(|run| Line::Run(Box::new(run))).map_err(|error| error.to_string()))
        }
        None => Ok(Err("it has no `schema`".to_owned())),
    }
}

/// Where the last record that begins within a line begins.
fn last_start(line: &[u8]) -> Option<usize> {
    const START: &[u8] = b"{\"schema\":";
    line.windows(START.len()).rposition(|window| window == START)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notices::{Look, Stopped, StoppedBy};

    /// A line as it is written: `schema` first.
    fn line(run: u32) -> String {
        let record = serde_json::json!({
            "schema": 1, "run": run, "round": 1, "slot": 1, "variant": "baseline", "kind": "baseline", "dir": "runs/01",
            "started": "2026-01-01T00:00:00Z", "void": null, "notices": [], "load": null, "sink": null, "ledger": null,
            "phases": {"start_s": 0.1, "warmup_s": 1.0, "window_s": 5.0, "drain_s": 0.0, "stop_s": 0.1},
            "processes": [], "instrument": [],
            "host": {"cores": 2, "busy_s": 1.0, "others_s": 0.0, "steal_s": 0.0, "cpu_pressure": null, "memory_available": 1},
        });
        let record: RunRecord = serde_json::from_value(record).expect("a record");
        serde_json::to_string(&record).expect("a record is JSON")
    }

    fn numbers(journal: &str) -> (Vec<u32>, Vec<Notice>) {
        let Lines { runs, notices, .. } = lines(journal.as_bytes()).expect("format is known");
        (runs.iter().map(|run| run.run).collect(), notices)
    }

    #[test]
    fn whole_lines_are_read_and_empty_ones_skipped() {
        assert_eq!(numbers(&format!("{}\n\n{}\n", line(1), line(2))), (vec![1, 2], vec![]));
        assert_eq!(numbers(""), (vec![], vec![]));
    }

    #[test]
    fn a_last_line_cut_short_is_a_notice() {
        let cut = &line(2)[..100];
        assert_eq!(numbers(&format!("{}\n{cut}", line(1))), (vec![1], vec![Notice::JournalTorn { line: 2 }]));
    }

    #[test]
    fn a_cut_inside_a_character_is_a_notice_too() {
        let mut journal = format!("{}\n{{\"schema\":1,\"variant\":\"caf", line(1)).into_bytes();
        journal.push(0xC3);
        let Lines { runs, notices, .. } = lines(&journal).expect("format is known");
        assert_eq!((runs.len(), notices), (1, vec![Notice::JournalTorn { line: 2 }]));
    }

    #[test]
    fn a_record_glued_to_a_fragment_is_found_again() {
        let (found, notices) = numbers(&format!("{}\n{}{}\n{}\n", line(1), &line(2)[..60], line(3), line(4)));
        assert_eq!(found, [1, 3, 4]);
        assert!(matches!(notices[..], [Notice::JournalUnreadable { line: 2, .. }]), "{notices:?}");
    }

    #[test]
    fn a_calibration_is_no_run_and_the_last_one_holds() {
        let calibration = |mean: f64| {
            let calibration = Calibration { variant: "otel".into(), mean, ..Calibration::default() };
            serde_json::to_string(&CalibrationRecord { schema: SCHEMA, calibration }).expect("a record is JSON")
        };
        let journal = format!("{}\n{}\n{}\n", calibration(3.0), calibration(4.0), line(1));
        let read = lines(journal.as_bytes()).expect("format is known");
        assert_eq!((read.runs.len(), read.notices), (1, vec![]));
        assert_eq!(read.calibrations.iter().map(|it| it.mean).collect::<Vec<_>>(), [4.0]);
    }

    #[test]
    fn a_study_that_went_on_has_not_stopped_and_of_each_notice_the_last_holds() {
        let notice = |notice: Notice| {
            serde_json::to_string(&NoticeRecord { schema: SCHEMA, notice }).expect("a record is JSON") + "\n"
        };
        let separate = |reason: &str| Notice::SeparateDesign { reason: reason.into() };
        let stopped = |rounds| {
            let look = Look { rounds, ..Look::default() };
            Notice::Stopped(Stopped { by: StoppedBy::Time, at_most_s: Some(90.0), look })
        };
        let first = notice(separate("a")) + &line(1) + "\n" + &notice(stopped(1));
        assert_eq!(numbers(&first), (vec![1], vec![separate("a"), stopped(1)]));
        let on = first + &notice(separate("b")) + &line(2) + "\n";
        assert_eq!(numbers(&on), (vec![1, 2], vec![separate("b")]));
        assert_eq!(numbers(&(on + &notice(stopped(2)) + &notice(stopped(2)))).1, [separate("b"), stopped(2)]);
    }

    #[test]
    fn a_newer_format_is_an_error_that_says_so() {
        let newer = line(1).replace("\"schema\":1", "\"schema\":7");
        let error = lines(format!("{newer}\n").as_bytes()).expect_err("format 7 is unknown");
        assert_eq!(error.to_string(), "line 1 of the journal has format 7, this unladen reads up to 1. Update unladen");
    }
}
