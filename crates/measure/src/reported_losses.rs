//! What agents report of their own losses outside of OTLP: lines of a log by a pattern of the study, and counters in
//! Prometheus' text format.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use regex::Regex;
use unladen_journal::notices::Notice;
use unladen_journal::role::Role;
use unladen_ledger::summary::ReportedLoss;
use unladen_study::plan::PlannedVariant;
use unladen_study::spec::{Loss, Numbers};

use super::queries::NumberQuery;
use super::service::RunningService;

/// Longest part of a line that is looked at.
const LONGEST_LINE: u64 = 64 << 10;

/// Losses by service and stage, of everything that the variant names; what could not be read is told.
pub(super) fn read(
    variant: &PlannedVariant,
    services: &[RunningService],
    queries: &[NumberQuery],
    notices: &mut Vec<Notice>,
) -> Vec<ReportedLoss> {
    let mut losses = Vec::new();
    for (stage, loss) in &variant.losses {
        let mut add = |service: &str, number: u64| {
            let spans = (number as f64 * loss.each).round() as u64;
            losses.push(ReportedLoss { service: service.to_owned(), stage: stage.clone(), spans });
        };
        if loss.prometheus.is_some() {
            let found = queries.iter().find(|query| query.name == *stage).and_then(|query| query.number(notices));
            if let Some(number) = found {
                add(loss.service.as_deref().unwrap_or(stage), number);
            }
            continue;
        }
        let Some(pattern) = loss.log.as_deref().and_then(|pattern| Regex::new(pattern).ok()) else { continue };
        for service in services.iter().filter(|service| is_meant(loss, service)) {
            match in_log(service.running.log(), &pattern, loss.numbers) {
                Ok(number) => add(&service.process.service, number),
                Err(error) => notices.push(Notice::LossUnread {
                    service: service.process.service.clone(),
                    stage: stage.clone(),
                    error: error.to_string(),
                }),
            }
        }
    }
    losses
}

fn is_meant(loss: &Loss, service: &RunningService) -> bool {
    match &loss.service {
        Some(name) => service.process.service == *name,
        None => service.process.role == Role::Subject,
    }
}

fn in_log(path: &Path, pattern: &Regex, numbers: Numbers) -> io::Result<u64> {
    count(BufReader::new(File::open(path)?), pattern, numbers)
}

/// What the lines of a log say in all.
fn count(mut log: impl BufRead, pattern: &Regex, numbers: Numbers) -> io::Result<u64> {
    let mut total = 0_u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        if log.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(total);
        }
        let text = String::from_utf8_lossy(&line);
        let Some(found) = pattern.captures(text.trim_end()) else { continue };
        let number = match found.get(1).map(|group| group.as_str()) {
            // A group that is optional, and none at all: the line itself is the loss.
            None => 1,
            Some(group) => number(group).ok_or_else(|| {
                io::Error::other(format!("the group of `{pattern}` is `{group}`, which is not a number"))
            })?,
        };
        total = match numbers {
            Numbers::Sum => total.saturating_add(number),
            Numbers::Last => number,
        };
    }
}

/// `1234`, also as people group digits: `1,234`, `1_234`.
fn number(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(log: &str, pattern: &str, numbers: Numbers) -> u64 {
        count(log.as_bytes(), &Regex::new(pattern).expect(pattern), numbers).expect("numbers")
    }

    #[test]
    fn numbers_of_lines_add_up_or_the_last_one_holds() {
        // As zipkin-go, the OpenTelemetry SDK of Rust and go2sky write them.
        let log = "up\nbacklog too long, disposing 12 spans\nfine\nbacklog too long, disposing 1,030 spans\n";
        assert_eq!(counted(log, r"disposing ([\d,]+) spans", Numbers::Sum), 1_042);
        let log = "WARN name=\"BatchSpanProcessor.SpansDropped\" dropped_span_count=5\ndropped_span_count=17\n";
        assert_eq!(counted(log, r"dropped_span_count=(\d+)", Numbers::Last), 17);
        assert_eq!(
            counted("reach max send buffer\nx\nreach max send buffer", "reach max send buffer", Numbers::Sum),
            2
        );
        assert_eq!(counted("", "x", Numbers::Sum), 0);
        assert_eq!(counted("dropped\ndropped 5\n", r"dropped(?: (\d+))?", Numbers::Sum), 6, "the group is optional");
    }

    #[test]
    fn what_is_no_number_is_told() {
        let error = count(&b"dropped many\n"[..], &Regex::new(r"dropped (\w+)").expect("a pattern"), Numbers::Sum)
            .expect_err("no number");
        assert_eq!(error.to_string(), "the group of `dropped (\\w+)` is `many`, which is not a number");
    }

    #[test]
    fn endless_and_binary_lines_are_read_in_parts() {
        let mut log = vec![b'x'; 3 * LONGEST_LINE as usize];
        log.extend_from_slice(b"\xff\xfe\nlost 3\n");
        let pattern = Regex::new(r"^lost (\d+)$").expect("a pattern");
        assert_eq!(count(&log[..], &pattern, Numbers::Sum).expect("numbers"), 3);
    }
}
