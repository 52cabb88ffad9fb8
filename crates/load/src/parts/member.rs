//! A part of a load: a process that dials in where the parts meet, does what it is asked for, and dials in again for the next load.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::{ALONE, Answer, Ask, Hello, Returned};
use crate::alternate::{self, Alternation, Event, Members, Senders};
use crate::child::line;
use crate::error::LoadError;
use crate::histogram;
use crate::plan::{Plan, Shard};
use crate::ready::Ready;
use crate::sys;

/// Between two tries to dial in.
const PAUSE: Duration = Duration::from_millis(50);
/// A connection that does not stand after this time is tried again.
const DIALLING: Duration = Duration::from_secs(1);

/// Who a part is, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Where the parts meet: [`super::Meeting::listen`].
    pub meeting: SocketAddr,
    /// [`super::Meeting::secret`].
    pub secret: String,
    /// Which part it is, from 1.
    pub number: u32,
    /// Name of the machine that it is on.
    pub machine: String,
}

/// Sends its part of every load, until the flag is set. Between loads nobody is at the meeting: it dials until somebody is. What goes wrong
/// is told there, and to `log`.
pub fn serve(member: &Member, over: &AtomicBool, log: &mut dyn FnMut(String)) {
    while !over.load(Ordering::Relaxed) {
        match TcpStream::connect_timeout(&member.meeting, DIALLING) {
            Ok(stream) => {
                if let Err(error) = attend(member, &stream, over) {
                    log(error.to_string());
                }
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// One load.
fn attend(member: &Member, stream: &TcpStream, over: &AtomicBool) -> Result<(), LoadError> {
    let lost = LoadError::system("speak to the meeting");
    let (mut writer, reader) =
        match stream.set_nodelay(true).and_then(|()| Ok((stream.try_clone()?, stream.try_clone()?))) {
            Ok(both) => both,
            Err(error) => return Err(lost(error)),
        };
    let hello = Hello {
        secret: member.secret.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        number: member.number,
        machine: member.machine.clone(),
    };
    line(&mut writer, &hello).map_err(lost)?;
    let (writer, stop) = (Mutex::new(writer), AtomicBool::new(false));
    let say = |answer: &Answer| {
        let mut writer = writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        line(&mut *writer, answer).map_err(LoadError::system("answer the meeting"))
    };
    thread::scope(|scope| {
        let (send, asked) = mpsc::channel();
        let hears = scope.spawn(|| hear(reader, &say, &stop, over, send));
        let result = Part { number: member.number, asked: &asked, say: &say }.attend(&stop);
        if let Err(error) = &result {
            // If nobody listens any more, nobody needs to know.
            let _ = say(&Answer::Failed { message: error.to_string() });
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let _ = hears.join();
        result
    })
}

/// Passes on what is asked for. What needs no load is done at once: the clock is told, and the load ended; also when nobody is there any more.
fn hear(
    reader: TcpStream,
    say: &(dyn Fn(&Answer) -> Result<(), LoadError> + Sync),
    stop: &AtomicBool,
    over: &AtomicBool,
    send: mpsc::Sender<Ask>,
) {
    for line in BufReader::new(reader).lines() {
        let Some(ask) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
        let goes_on = match ask {
            Ask::Clock => say(&Answer::Clock { at_ns: sys::monotonic_ns() }).is_ok(),
            Ask::Stop => {
                stop.store(true, Ordering::Relaxed);
                true
            }
            other => send.send(other).is_ok(),
        };
        if !goes_on || over.load(Ordering::Relaxed) {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
}

/// The conversation of one load.
struct Part<'p> {
    number: u32,
    asked: &'p Receiver<Ask>,
    say: &'p (dyn Fn(&Answer) -> Result<(), LoadError> + Sync),
}

impl Part<'_> {
    fn attend(&self, stop: &AtomicBool) -> Result<(), LoadError> {
        // A meeting that ends before it has begun is none.
        let Ok(Ask::Connect { alternation, of }) = self.asked.recv() else { return Ok(()) };
        alternate::check(&alternation)?;
        let shard = Some(Shard { number: self.number, of });
        let ready = |at| Ready::new(&Plan { shard, ..alternation.plan(at) }, stop);
        let readies: Vec<Ready<'_>> = (0..alternation.targets.len()).map(ready).collect::<Result<_, _>>()?;
        sys::prepare_thread(None).map_err(LoadError::system("prepare a thread"))?;
        let members = Members::connect(&readies)?;
        (self.say)(&Answer::Ready)?;
        self.take_turns(&alternation, members)
    }

    fn take_turns(&self, alternation: &Alternation, mut members: Members<'_>) -> Result<(), LoadError> {
        while let Ok(ask) = self.asked.recv() {
            match ask {
                Ask::Begin { at_ns } => members.begin(at_ns)?,
                Ask::Take { turn, at_ns } if turn.target < alternation.targets.len() => {
                    members.wait_until(at_ns);
                    let taken = members.take(&turn)?;
                    let mut seconds = Vec::new();
                    members.emit(turn.target, &mut |event| {
                        if let Event::Second(_, second) = event {
                            seconds.push(second);
                        }
                    });
                    (self.say)(&Answer::Taken { taken, seconds })?;
                }
                Ask::Settle { targets, fate } => members.settle(&targets, fate)?,
                Ask::Conclude => {
                    let all = members.conclude_all()?;
                    let returned = all.into_iter().map(returned).collect::<Result<_, _>>()?;
                    return (self.say)(&Answer::Done(returned));
                }
                _ => return Err(LoadError::Parts { message: "the meeting asks what nobody understands".to_owned() }),
            }
        }
        Ok(())
    }
}

fn returned(one: alternate::Concluded) -> Result<Returned, LoadError> {
    let mut all = one.histograms.tagged();
    all.extend(one.alone.iter().map(|alone| (ALONE.to_owned(), alone)));
    let window = Duration::from_secs_f64(one.outcome.duration_s);
    let text = histogram::log(&all, Duration::ZERO, window).ok().and_then(|text| String::from_utf8(text).ok());
    let histograms = text.ok_or_else(|| LoadError::Parts { message: "histograms cannot be encoded".to_owned() })?;
    Ok(Returned { outcome: Box::new(one.outcome), histograms })
}
