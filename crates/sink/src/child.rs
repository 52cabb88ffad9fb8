//! The sink as a process of its own, driven through its standard streams: one line of JSON in, one line of JSON out per
//! event. For `unladen __sink`, which is this and nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;

use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc, oneshot};
use unladen_ledger::summary::Event;

use crate::config::Config;
use crate::error::SinkError;
use crate::server::run_in;

/// Exit code of a sink that could not start or go on.
const FAILED: u8 = 2;
/// Longest line taken for a configuration.
const MAX_CONFIG: u64 = 1 << 20;

/// A further line of `stdin`: the sink is to listen in another network namespace as well, at the same addresses. It answers with
/// [`Event::Listening`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenIn {
    /// The namespace, as a file: `/proc/PID/fd/N`.
    pub network: PathBuf,
}

/// Reads a [`Config`] from the first line of `stdin` and runs the sink until SIGTERM, SIGINT, the end of `stdin` or the
/// end of whoever reads `stdout`. Further lines are [`ListenIn`]. Exit code 0, or 2 with a message on `stderr`.
pub fn main(stdin: impl Read + Send + 'static, stdout: impl Write, mut stderr: impl Write) -> ExitCode {
    match serve(stdin, stdout) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to be told if this fails.
            let _ = writeln!(stderr, "{error}");
            ExitCode::from(FAILED)
        }
    }
}

fn serve(stdin: impl Read + Send + 'static, mut stdout: impl Write) -> Result<(), SinkError> {
    let mut stdin = BufReader::new(stdin);
    let mut line = Vec::new();
    let wrong = |error: &dyn ToString| SinkError::Config(error.to_string());
    stdin.by_ref().take(MAX_CONFIG).read_until(b'\n', &mut line).map_err(|error| wrong(&error))?;
    let config: Config = serde_json::from_slice(&line).map_err(|error| wrong(&error))?;

    let (ended, stdin_ended) = oneshot::channel::<()>();
    let (ask, networks) = mpsc::unbounded_channel();
    thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            // An error ends it as well as the end does: either way nobody is there any more.
            for line in stdin.lines().map_while(Result::ok) {
                let Ok(ListenIn { network }) = serde_json::from_str(&line) else { continue };
                let _ = ask.send(network);
            }
            drop(ended);
        })
        .map_err(SinkError::Runtime)?;
    let unread = Rc::new(Notify::new());
    let reader_gone = Rc::clone(&unread);
    let stop = async move {
        tokio::select! {
            () = stop_signal() => {}
            _ = stdin_ended => {}
            () = reader_gone.notified() => {}
        }
    };
    let mut report = |event: Event| -> std::io::Result<()> {
        serde_json::to_writer(&mut stdout, &event)?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    };
    run_in(&config, |event| report(event).unwrap_or_else(|_| unread.notify_one()), stop, networks)?;
    Ok(())
}

/// Ends with SIGTERM or SIGINT; never if neither can be listened to, so that they end the process the plain way.
pub async fn stop_signal() {
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}
