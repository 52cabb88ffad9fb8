//! What services must have said when the window begins: the sign that an agent is there. Without it a run would weigh the bare
//! service under the agent's name.

use std::path::Path;
use std::time::{Duration, Instant};

use regex::bytes::Regex;
use unladen_journal::notices::Notice;
use unladen_processes::subject::{Listener, Wanted};

use super::service::RunningService;

/// Time after readiness that a service has in any case, however short the warm-up.
const GRACE: Duration = Duration::from_secs(5);

/// What has not been heard yet.
#[derive(Debug)]
pub(super) struct Expected {
    lines: Vec<Line>,
    ready: Instant,
    in_window: bool,
}

/// One pattern of one process.
#[derive(Debug)]
struct Line {
    notice: Notice,
    listener: Listener,
}

impl Default for Expected {
    fn default() -> Self {
        Self { lines: Vec::new(), ready: Instant::now(), in_window: false }
    }
}

impl Expected {
    /// What these processes, which have just become ready, are to say. Logs are named from the run folder on.
    pub(super) fn of<'u>(services: impl Iterator<Item = &'u RunningService>, folder: &Path) -> Self {
        let lines = services.flat_map(|service| {
            // The study's check has refused what is no pattern.
            let patterns = service.process.expect_log.iter().filter_map(|text| Some((text, Regex::new(text).ok()?)));
            patterns.map(move |(text, pattern)| {
                let log = service.running.log();
                let notice = Notice::ExpectedLogMissing {
                    service: service.process.service.clone(),
                    replica: service.process.replica,
                    pattern: text.clone(),
                    log: log.strip_prefix(folder).unwrap_or(log).display().to_string(),
                };
                Line { notice, listener: service.running.listen_for(Wanted::Pattern(pattern)) }
            })
        });
        Self { lines: lines.collect(), ..Self::default() }
    }

    /// The window has begun.
    pub(super) fn window_begins(&mut self) {
        self.in_window = true;
    }

    /// What has not been said although it is time.
    pub(super) fn overdue(&mut self) -> Option<Notice> {
        if !self.in_window || self.ready.elapsed() < GRACE { None } else { self.missing() }
    }

    /// What has not been said by now.
    pub(super) fn missing(&mut self) -> Option<Notice> {
        self.lines.retain_mut(|line| !line.listener.has_matched());
        self.lines.first().map(|line| line.notice.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(log: &Path, patterns: &[&str]) -> Expected {
        let line = |text: &&str| Line {
            notice: Notice::ExpectedLogMissing {
                service: "consumer".to_owned(),
                replica: 0,
                pattern: (*text).to_owned(),
                log: "runs/02-agent/logs/consumer.log".to_owned(),
            },
            listener: Listener::new(log, 0, Wanted::Pattern(Regex::new(text).expect("a pattern"))),
        };
        Expected { lines: patterns.iter().map(line).collect(), ..Expected::default() }
    }

    #[test]
    fn what_is_missing_counts_from_the_window_and_the_grace_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("app.log");
        std::fs::write(&log, "agent loaded\n").expect("a log");
        let mut expected = expected(&log, &["^agent loaded$", "rules: \\d+"]);
        let Some(Notice::ExpectedLogMissing { pattern, .. }) = expected.missing() else { panic!("nothing is missing") };
        assert_eq!((pattern.as_str(), expected.lines.len()), ("rules: \\d+", 1));
        expected.ready = Instant::now().checked_sub(2 * GRACE).expect("a machine that is up for a while");
        assert_eq!(expected.overdue(), None, "still warming up");
        expected.window_begins();
        assert!(expected.overdue().is_some());
        expected.ready = Instant::now();
        assert_eq!(expected.overdue(), None, "it may still come");
        std::fs::write(&log, "agent loaded\nrules: 7\n").expect("a log");
        assert_eq!(expected.missing(), None);
    }

    #[test]
    fn nothing_expected_is_nothing_missing() {
        let mut nothing = Expected::default();
        nothing.window_begins();
        assert_eq!((nothing.overdue(), nothing.missing()), (None, None));
    }
}
