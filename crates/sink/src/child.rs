//! The sink as a process of its own, driven through its standard streams: one line of JSON in, one line of JSON out per
//! event. For `unladen __sink`, which is this and nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, oneshot};

use crate::config::Config;
use crate::error::SinkError;
use crate::server::run;
use unladen_ledger::summary::Event;

/// Exit code of a sink that could not start or go on.
const FAILED: u8 = 2;
/// Longest line taken for a configuration.
const MAX_CONFIG: u64 = 1 << 20;

/// Reads a [`Config`] from the first line of `stdin` and runs the sink until SIGTERM, SIGINT, the end of `stdin` or the
/// end of whoever reads `stdout`. Exit code 0, or 2 with a message on `stderr`.
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
    thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            // An error ends it as well as the end does: either way nobody is there any more.
            let _ = std::io::copy(&mut stdin, &mut std::io::sink());
            drop(ended);
        })
        .map_err(SinkError::Runtime)?;
    let unread = Rc::new(Notify::new());
    let reader_gone = Rc::clone(&unread);
    let stop = async move {
        tokio::select! {
            () = told_to_stop() => {}
            _ = stdin_ended => {}
            () = reader_gone.notified() => {}
        }
    };
    let mut report = |event: Event| -> std::io::Result<()> {
        serde_json::to_writer(&mut stdout, &event)?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    };
    run(&config, |event| report(event).unwrap_or_else(|_| unread.notify_one()), stop)?;
    Ok(())
}

/// Ends with SIGTERM or SIGINT; never if neither can be listened to, so that they end the process the plain way.
pub async fn told_to_stop() {
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
