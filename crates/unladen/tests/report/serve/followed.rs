//! A run under way, as server-sent events.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;
use unladen::under_way::{FILE, LiveFile};
use unladen::under_way::{Live, Second, Service};
use unladen_linux::process::Identity;

use super::Server;
use crate::sketch::{self, ladder};

/// Events as they come.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(server: &Server, id: &str) -> Self {
        let mut stream = TcpStream::connect(&server.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        write!(stream, "GET /events/{id} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        Self(BufReader::new(stream))
    }

    /// The next event of this name; others are passed over.
    fn next(&mut self, name: &str) -> Value {
        let (mut event, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).expect("an event in time") > 0, "the stream ended before `{name}`");
            if let Some(named) = line.strip_prefix("event: ") {
                event = named.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ")
                && event == name
            {
                return serde_json::from_str(data).expect(data);
            }
        }
    }
}

/// Says that this process runs the study.
pub(super) fn under_way(dir: &Path, runs_done: usize) {
    let me = Identity::of(std::process::id()).expect("this process");
    let service = |service: &str, role: &str, cpu_cores, rss| Service {
        service: service.to_owned(),
        role: role.to_owned(),
        cpu_cores,
        rss: Some(rss),
    };
    let services =
        vec![service("shop", "subject", Some(0.25), 4 << 20), service("otelcol", "collector", None, 25 << 19)];
    let second = Some(Second { second: 2, answered: 100, errors: 0, p99_us: 900.0 });
    let mut live = Live::new("demo", &IndexMap::new());
    (live.runs_done, live.runs_of, live.round) = (runs_done, 48, 1);
    (live.variant, live.second, live.services) = ("otel".to_owned(), second, services);
    let content = LiveFile { pid: me.pid, start_ticks: me.start_ticks, live };
    fs::write(dir.join(".part"), serde_json::to_vec(&content).expect("JSON")).expect("a temporary folder");
    fs::rename(dir.join(".part"), dir.join(FILE)).expect("a temporary folder");
}

#[test]
fn runs_are_told_as_the_journal_gets_them_until_the_study_ends() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let dir = root.path().join("demo");
    fs::create_dir(&dir).expect("a temporary folder");
    let (sketch, all) = (ladder(), ladder().runs());
    sketch::write(&dir, &sketch.study(), &all[..2]);
    under_way(&dir, 2);
    let server = Server::start(root.path());
    assert!(server.ask("/").1.contains("under way"));
    assert!(server.ask("/live/demo").1.contains("data-events=\"/events/demo\""));

    let mut events = Events::of(&server, "demo");
    assert_eq!((events.next("run")["run"].as_u64(), events.next("run")["run"].as_u64()), (Some(1), Some(2)));
    assert_eq!(events.next("live")["runs_done"], 2);
    // A line that is half there is no run yet.
    let line = serde_json::to_string(&all[2]).expect("JSON") + "\n";
    let append = |text: &str| {
        let mut journal = fs::OpenOptions::new().append(true).open(dir.join("journal.jsonl")).expect("the journal");
        journal.write_all(text.as_bytes()).expect("a temporary folder");
    };
    append(&line[..100]);
    under_way(&dir, 3);
    assert_eq!(events.next("live")["runs_done"], 3);
    append(&line[100..]);
    let run = events.next("run");
    assert_eq!((run["run"].as_u64(), run["variant"].as_str()), (Some(3), Some(all[2].variant.as_str())));
    assert!(run["cpu_us_per_request"].as_f64().expect("a number") > 100.0);
    fs::write(dir.join("findings.json"), "{}").expect("a temporary folder");
    events.next("judged");
    fs::remove_file(dir.join(FILE)).expect("it was there");
    events.next("end");
}

#[test]
fn a_folder_whose_process_was_killed_is_not_under_way() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let dir = root.path().join("demo");
    fs::create_dir(&dir).expect("a temporary folder");
    sketch::write(&dir, &ladder().study(), &ladder().runs()[..2]);
    let me = Identity::of(std::process::id()).expect("this process");
    let content = LiveFile { pid: me.pid, start_ticks: me.start_ticks + 1, live: Live::default() };
    fs::write(dir.join(FILE), serde_json::to_vec(&content).expect("JSON")).expect("a temporary folder");
    let server = Server::start(root.path());
    assert!(server.ask("/").1.contains("stopped"));
    let mut events = Events::of(&server, "demo");
    events.next("run");
    events.next("end");
}
