//! The output of a container, followed into a file. The API server may go away meanwhile: it is asked again from where it stopped.

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use http_body_util::BodyExt;

use super::api::{Api, Failure};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(300);

/// Follows the output of a container for as long as it lives; then drops `ended`. After so much silence the server is asked again: a connection
/// may have died without a word.
///
/// `path`: where its log is, with the container as the only parameter.
pub(super) fn follow(
    api: &Arc<Api>,
    path: String,
    is_alive: impl Fn() -> bool + Send + 'static,
    silence: Duration,
    out: impl Write + Send + 'static,
    ended: SyncSender<()>,
) {
    let stream_of = Arc::downgrade(api);
    api.begin(async move {
        let _ended = ended;
        let mut lines = Lines::new(out);
        loop {
            // Asked before the log is: what it wrote last is in what comes then.
            let is_alive = is_alive();
            let Some(api) = stream_of.upgrade() else { break };
            let stream = api.stream(&format!("{path}&follow=true&timestamps=true{}", lines.resume()));
            // The conversation may end while this one waits.
            drop(api);
            match stream.await {
                Ok(mut body) => {
                    while let Ok(Some(Ok(frame))) = tokio::time::timeout(silence, body.frame()).await {
                        if let Some(data) = frame.data_ref() {
                            lines.feed(data);
                        }
                    }
                }
                // The pod, or the container, has gone.
                Err(Failure::Refused(400..500, _)) if !is_alive => break,
                Err(_) => {}
            }
            if !is_alive {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        lines.finish();
    });
}

/// Lines with the time of each in front, without it; none twice.
struct Lines<W> {
    out: W,
    part: Vec<u8>,
    /// Time of the last line.
    last: Vec<u8>,
    /// That of the last one before the server was asked again.
    known: Vec<u8>,
}

impl<W: Write> Lines<W> {
    fn new(out: W) -> Self {
        Self { out, part: Vec::new(), last: Vec::new(), known: Vec::new() }
    }

    /// What is asked for from now on, as a parameter.
    fn resume(&mut self) -> String {
        // A line that broke off comes again.
        self.part.clear();
        self.known = self.last.clone();
        match std::str::from_utf8(&self.last) {
            Ok(time) if !time.is_empty() => format!("&sinceTime={}", time.replace('+', "%2B")),
            _ => String::new(),
        }
    }

    fn feed(&mut self, data: &[u8]) {
        self.part.extend_from_slice(data);
        let Some(end) = self.part.iter().rposition(|&byte| byte == b'\n') else { return };
        let rest = self.part.split_off(end + 1);
        let whole = std::mem::replace(&mut self.part, rest);
        for line in whole.split_inclusive(|&byte| byte == b'\n') {
            self.write(line);
        }
    }

    fn write(&mut self, line: &[u8]) {
        let Some(space) = line.iter().position(|&byte| byte == b' ') else { return };
        let (time, text) = (&line[..space], &line[space + 1..]);
        // They have all the same length.
        if time <= self.known.as_slice() {
            return;
        }
        self.last = time.to_vec();
        // A log that cannot be written is no reason to stop.
        let _ = self.out.write_all(text);
    }

    fn finish(mut self) {
        let part = std::mem::take(&mut self.part);
        self.write(&part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_their_time_and_come_once() {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out);
        assert_eq!(lines.resume(), "");
        lines.feed(b"2026-11-27T01:00:00.000000001Z one\n2026-11-27T01:00:00.000000002Z t");
        lines.feed(b"wo\n2026-11-27T01:00:00.000000003Z thr");
        assert_eq!(lines.resume(), "&sinceTime=2026-11-27T01:00:00.000000002Z");
        // By whole seconds.
        lines.feed(b"2026-11-27T01:00:00.000000001Z one\n2026-11-27T01:00:00.000000002Z two\n");
        lines.feed(b"2026-11-27T01:00:00.000000003Z three\n\n2026-11-27T01:00:00.000000004Z \n2026-11-27T01:00:01.000000000Z end");
        lines.finish();
        assert_eq!(String::from_utf8(out).expect("text"), "one\ntwo\nthree\n\nend");
    }
}
