//! Waits for the parts of a load.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Meeting;
use super::connection::Connection;
use crate::error::LoadError;

/// Between two looks at who has come.
const PAUSE: Duration = Duration::from_millis(5);

impl Meeting {
    /// All parts, in their order, with their clocks known.
    pub(super) fn gather(&self, stop: &AtomicBool) -> Result<Vec<Connection>, LoadError> {
        let failed = |message: String| LoadError::Parts { message };
        let listener = TcpListener::bind(self.listen)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| failed(format!("cannot listen at {} for them: {error}", self.listen)))?;
        let deadline = Instant::now() + Duration::from_secs_f64(self.patience_s);
        let mut all: Vec<Option<Connection>> = (0..self.parts).map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            if stop.load(Ordering::Relaxed) {
                return Err(failed("interrupted before all parts were there".to_owned()));
            }
            if Instant::now() > deadline {
                let missing = (1..).zip(&all).filter(|(_, part)| part.is_none()).map(|(number, _): (u32, _)| number);
                return Err(failed(format!(
                    "of the load, parts {:?} of {} have not come to {} within {} s. Can they reach this address?",
                    missing.collect::<Vec<_>>(),
                    self.parts,
                    self.listen,
                    self.patience_s
                )));
            }
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            // Who does not say what a part says is none.
            let Ok(part) = stream.set_nonblocking(false).and_then(|()| Connection::open(stream)) else { continue };
            if let Some(place) = self.admit(&part)?.and_then(|number| all.get_mut(number)) {
                // One that was started again comes in the place of the one before.
                *place = Some(part);
            }
        }
        let mut all: Vec<Connection> = all.into_iter().flatten().collect();
        all.iter_mut().try_for_each(|part| part.meet(stop))?;
        Ok(all)
    }

    /// The place of a part; `None`: it is a stranger.
    fn admit(&self, part: &Connection) -> Result<Option<usize>, LoadError> {
        let hello = &part.hello;
        let refuse = |message: String| Err(LoadError::Parts { message });
        if hello.secret != self.secret || !(1..=self.parts).contains(&hello.number) {
            let whose = part.address().map_or_else(|error| error.to_string(), |address| address.to_string());
            eprintln!("a connection from {whose} is no part of this load: closed");
            return Ok(None);
        }
        let version = env!("CARGO_PKG_VERSION");
        if hello.version != version {
            return refuse(format!(
                "{} is unladen {}, this is {version}: use the same image",
                part.name(),
                hello.version
            ));
        }
        if !self.subject.is_empty() && hello.machine == self.subject {
            return refuse(format!(
                "{} is on the node of the service, whose CPU time it would take: let it run on another node",
                part.name()
            ));
        }
        Ok(Some(hello.number as usize - 1))
    }
}
