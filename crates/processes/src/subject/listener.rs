//! Listening to what a process writes into its log, without reading anything twice.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

/// Longest part of an unfinished line that is kept: what has no end is no line.
const LONGEST_LINE: usize = 64 << 10;

/// What is listened for.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// A text somewhere in a line.
    Text(Vec<u8>),
    /// A pattern that matches a line, taken without its end.
    Pattern(Regex),
}

/// Listens to one log from where a process began to write there.
#[derive(Debug, Clone)]
pub struct Listener {
    log: PathBuf,
    /// Byte in the file that is to be read next.
    next: u64,
    /// The last line as far as it is written.
    line: Vec<u8>,
    wanted: Wanted,
    matched: bool,
}

impl Listener {
    /// For the log from its byte `start` on. [`super::Running::listen_for`] knows where its process began.
    #[must_use]
    pub fn new(log: &Path, start: u64, wanted: Wanted) -> Self {
        Self { log: log.to_owned(), next: start, line: Vec::new(), wanted, matched: false }
    }

    /// The log that is listened to.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Whether it has been said by now. What was heard once stays heard.
    pub fn has_matched(&mut self) -> bool {
        if self.matched {
            return true;
        }
        // A log that cannot be read holds nothing yet; it is there, the launch has made it.
        let new = self.read().unwrap_or_default();
        self.next += new.len() as u64;
        self.line.extend_from_slice(&new);
        self.matched = !new.is_empty() && self.wanted.is_in(&self.line);
        // Only the unfinished line can still be completed.
        let finished = self.line.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let too_long = self.line.len().saturating_sub(LONGEST_LINE);
        self.line.drain(..finished.max(too_long));
        self.matched
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.next))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(text)
    }
}

impl Wanted {
    fn is_in(&self, lines: &[u8]) -> bool {
        match self {
            Self::Text(text) => lines.windows(text.len().max(1)).any(|window| window == text.as_slice()),
            Self::Pattern(pattern) => {
                let mut lines = lines.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
                lines.any(|line| pattern.is_match(line))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    fn pattern(text: &str) -> Wanted {
        Wanted::Pattern(Regex::new(text).expect("a pattern"))
    }

    fn write(log: &Path, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(log).expect("a log");
        file.write_all(text.as_bytes()).expect("it is written");
    }

    #[test]
    fn a_line_is_heard_however_it_is_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("app.log");
        write(&log, "Load agent done\n");
        let start = std::fs::metadata(&log).expect("a log").len();
        let mut listeners = [
            Listener::new(&log, start, Wanted::Text(b"agent done".to_vec())),
            Listener::new(&log, start, pattern("^Load .* done$")),
        ];
        assert!(listeners.iter_mut().all(|it| !it.has_matched()), "that was another process");
        for piece in ["starting\nLoad ag", "ent 2.2", " do"] {
            write(&log, piece);
            assert!(listeners.iter_mut().all(|it| !it.has_matched()), "{piece}");
        }
        write(&log, "ne\r\nup\n");
        assert!(listeners[1].has_matched());
        assert!(!listeners[0].has_matched(), "another text");
        write(&log, "the agent done\n");
        assert!(listeners.iter_mut().all(Listener::has_matched));
        std::fs::remove_file(&log).expect("the log is there");
        assert!(listeners.iter_mut().all(Listener::has_matched), "what was heard stays heard");
    }

    #[test]
    fn patterns_are_held_to_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("app.log");
        write(&log, "one\ntwo\n");
        assert!(!Listener::new(&log, 0, pattern("one\\s+two")).has_matched());
        assert!(Listener::new(&log, 0, pattern("^two$")).has_matched());
        assert!(!Listener::new(&folder.path().join("none.log"), 0, pattern("x")).has_matched());
    }

    #[test]
    fn what_has_no_end_is_not_kept_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("app.log");
        let mut listener = Listener::new(&log, 0, Wanted::Text(b"found".to_vec()));
        for _ in 0..4 {
            write(&log, &"x".repeat(LONGEST_LINE));
            assert!(!listener.has_matched());
            assert!(listener.line.len() <= LONGEST_LINE);
        }
        write(&log, "fou");
        assert!(!listener.has_matched());
        write(&log, "nd");
        assert!(listener.has_matched());
    }
}
