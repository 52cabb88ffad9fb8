//! HTTP/2 as the sink serves it: own framing over a socket, because receiving spans is what the sink is for, and a general
//! server costs seven times as much per request. Requests run on the connection's own task.

mod heads;
mod session;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::answer::Answer;
use crate::body::Budget;
use crate::inbound::Request;
pub(crate) use session::Session;

/// Bytes to be sent from which on no more are read: a client that does not listen is not heard either.
const MAX_UNSENT: usize = 256 << 10;
/// Requests under way from which on no more bytes are read: more than streams, if clients give streams up.
const MAX_RUNNING: usize = 2 * session::MAX_STREAMS;
/// How long a client may take to hang up once everything is said. Closed at once, a socket with unread bytes would take
/// the last answers with it.
const LINGER: Duration = Duration::from_millis(100);
/// Bytes read at once.
const READ: usize = 256 << 10;

/// The buffer that all connections read into, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Scratch(Rc<RefCell<Vec<u8>>>);

impl Scratch {
    /// Room for one read.
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(vec![0; READ])))
    }
}

/// Serves a connection of which `prefix` has been read, until it ends or `stop` is ready and everything is answered. While
/// the store `is_behind`, those who wait for it are not read from: TCP holds them back.
pub(crate) async fn serve<F: Future<Output = Answer>>(
    stream: TcpStream,
    prefix: &[u8],
    scratch: &Scratch,
    (budget, max_body): (&Rc<Budget>, usize),
    is_behind: impl Fn() -> bool,
    answer: impl Fn(Request) -> F,
    stop: impl Future<Output = ()>,
) {
    let mut session = Session::new(budget, max_body);
    let mut running = FuturesUnordered::new();
    let mut stop = std::pin::pin!(stop);
    let mut is_stopping = false;
    let mut fed = session.feed(prefix);
    loop {
        for opened in session.opened() {
            let answering = answer(opened.request);
            running.push(async move { (opened.stream, answering.await) });
        }
        if let Err(violation) = fed {
            session.close(Some(violation));
            // The client may be gone already.
            let _ = flush(&stream, &mut session.connection.out);
            return linger(stream, scratch).await;
        }
        // What can be answered at once is, before anybody waits for anything.
        std::future::poll_fn(|context| {
            while let Poll::Ready(Some((number, answer))) = running.poll_next_unpin(context) {
                session.answer(number, answer);
            }
            Poll::Ready(())
        })
        .await;
        session.settle();
        if flush(&stream, &mut session.connection.out).is_err() {
            return;
        }
        if session.is_done() && session.connection.out.is_empty() {
            return linger(stream, scratch).await;
        }
        // Who has sent a whole request and waits for its answer reads on once that is there.
        let is_read = session.connection.out.len() < MAX_UNSENT
            && running.len() < MAX_RUNNING
            && !(is_behind() && session.has_whole_request());
        tokio::select! {
            biased;
            () = stop.as_mut(), if !is_stopping => {
                is_stopping = true;
                session.close(None);
            }
            Some((number, answer)) = running.next(), if !running.is_empty() => session.answer(number, answer),
            ready = stream.readable(), if is_read => {
                let mut buffer = scratch.0.borrow_mut();
                match ready.and_then(|()| stream.try_read(&mut buffer)) {
                    Ok(0) => return,
                    Ok(read) => fed = session.feed(&buffer[..read]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
            ready = stream.writable(), if !session.connection.out.is_empty() => {
                if ready.is_err() {
                    return;
                }
            }
        }
    }
}

/// Writes as much as the socket takes.
fn flush(stream: &TcpStream, out: &mut Vec<u8>) -> io::Result<()> {
    let mut written = 0;
    while written < out.len() {
        match stream.try_write(&out[written..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => written += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    out.drain(..written);
    Ok(())
}

/// What a fuzz target does with bytes: a connection that begins as it should, whose requests are read and answered. The
/// first byte says how: with what, and in how large pieces the bytes come.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(bytes: &[u8]) {
    use unladen_http2::frame::PREFACE;
    const LARGEST_BODY: usize = 100_000;
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let budget = Budget::new(LARGEST_BODY);
    let mut session = Session::new(&budget, LARGEST_BODY);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut fed = session.feed(PREFACE);
    let mut open = Vec::new();
    for piece in bytes.chunks(usize::from(choice >> 2) * 7 + 1) {
        fed = fed.and_then(|()| session.feed(piece));
        open.extend(session.opened().map(|opened| (opened.stream, opened.request.into_body())));
        assert!(open.len() <= session::MAX_STREAMS + bytes.len());
        open.retain_mut(|(stream, body)| {
            let is_read = std::pin::pin!(body.piece(&budget)).poll(&mut context).is_ready();
            if is_read && choice & 1 == 0 {
                session.answer(*stream, Answer::Message(vec![7; usize::from(choice & 2) * 50_000]));
            }
            !is_read
        });
        session.settle();
        assert!(budget.used() <= LARGEST_BODY);
        if fed.is_err() {
            break;
        }
    }
    session.close(fed.err());
    drop(open);
    drop(session);
    assert_eq!(budget.used(), 0, "everything is given back");
}

/// Waits until the client hangs up, for a while.
async fn linger(mut stream: TcpStream, scratch: &Scratch) {
    let hung_up = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        while stream.readable().await.is_ok() {
            match stream.try_read(&mut scratch.0.borrow_mut()) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                _ => {}
            }
        }
    };
    // If not, it is closed all the same.
    let _ = timeout(LINGER, hung_up).await;
}
