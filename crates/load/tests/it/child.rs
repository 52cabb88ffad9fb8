//! The generator as its parent sees it: JSON in, JSON lines out, a signal in between.

use unladen_load::child;
use unladen_load::outcome::Event;
use unladen_load::plan::{Pacing, Plan};

use crate::server::{Behaviour, GOOD, Server};

/// Runs a plan and returns its events, raising SIGTERM at the first line if wanted.
fn events(plan: &Plan, terminate: bool) -> Vec<Event> {
    struct Output {
        bytes: Vec<u8>,
        terminate: bool,
    }
    impl std::io::Write for Output {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.bytes.extend_from_slice(bytes);
            if std::mem::take(&mut self.terminate) {
                signal_hook::low_level::raise(signal_hook::consts::SIGTERM)?;
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut output = Output { bytes: Vec::new(), terminate };
    let input = serde_json::to_vec(plan).expect("a plan is data");
    child::main(&input[..], &mut output);
    let text = String::from_utf8(output.bytes).expect("JSON is text");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is an event")).collect()
}

#[test]
fn events_come_as_lines_and_sigterm_ends_the_load_early() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let mut plan = Plan { pacing: Pacing::Constant { rate: 100.0 }, warmup_s: 0.0, ..Plan::new(server.url()) };
    plan.window_s = 1.25;
    let received = events(&plan, false);
    assert_eq!(received[0], Event::Ready);
    assert!(matches!(&received[1], Event::Second(second) if second.second == 0 && second.sent <= 100));
    let [_, _, Event::Done(outcome)] = &received[..] else { panic!("ready, one second, done: {received:?}") };
    assert_eq!((outcome.requests, outcome.seconds.len(), outcome.interrupted), (125, 2, false));

    plan.window_s = 600.0;
    let received = events(&plan, true);
    let Some(Event::Done(outcome)) = received.last() else { panic!("done at the end: {received:?}") };
    assert!(outcome.interrupted && outcome.duration_s < 60.0);
    assert_eq!(outcome.sent_total + 125, server.requests());
}

#[test]
fn a_plan_that_cannot_be_read_or_run_says_so_and_prints_no_event() {
    for text in ["", "{}", r#"{"url": "http://127.0.0.1:1/"}"#] {
        let mut output = Vec::new();
        let code = child::main(text.as_bytes(), &mut output);
        assert_eq!(format!("{code:?}"), format!("{:?}", std::process::ExitCode::from(2)), "{text}");
        assert!(output.is_empty());
    }
}
