//! The body of a request between the connection that receives it and the receiver that reads it. Both live on one thread.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::body::{BodyError, Budget, Payload};

/// Bytes that readers have taken, by stream: its sender may send as many more.
pub(crate) type Taken = Rc<RefCell<Vec<(u32, usize)>>>;

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Nobody has begun.
    NotYet,
    /// As a whole: what comes counts as taken.
    Whole,
    /// Piece by piece: what is not taken holds its sender back.
    Pieces,
    /// Nobody will: what comes is thrown away.
    Never,
}

/// What of a body is here and not yet taken.
#[derive(Debug)]
struct Inbox {
    stream: u32,
    payload: Payload,
    limit: usize,
    reading: Reading,
    is_ended: bool,
    error: Option<BodyError>,
    waker: Option<Waker>,
    taken: Taken,
}

/// The connection's end.
#[derive(Debug)]
pub(crate) struct Writer(Rc<RefCell<Inbox>>);

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct Reader(Rc<RefCell<Inbox>>);

/// The two ends of an empty body of at most `limit` bytes at once.
pub(crate) fn inbox(stream: u32, limit: usize, budget: &Rc<Budget>, taken: &Taken) -> (Writer, Reader) {
    let inbox = Rc::new(RefCell::new(Inbox {
        stream,
        payload: Payload::new(budget),
        limit,
        reading: Reading::NotYet,
        is_ended: false,
        error: None,
        waker: None,
        taken: Rc::clone(taken),
    }));
    (Writer(Rc::clone(&inbox)), Reader(inbox))
}

impl Inbox {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn take(&self, bytes: usize) {
        if bytes > 0 {
            self.taken.borrow_mut().push((self.stream, bytes));
        }
    }

    /// Nothing more is kept, and what is there goes.
    fn give_up(&mut self, reading: Reading) {
        if matches!(self.reading, Reading::NotYet | Reading::Pieces) {
            self.take(self.payload.bytes().len());
        }
        self.reading = reading;
        self.payload.clear();
    }

    fn poll_whole(&mut self, limit: usize, context: &Context<'_>) -> Poll<Result<Payload, BodyError>> {
        if self.reading == Reading::NotYet {
            self.reading = Reading::Whole;
            self.limit = limit;
            self.take(self.payload.bytes().len());
            if self.payload.bytes().len() > limit {
                return Poll::Ready(Err(BodyError::TooLarge));
            }
        }
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        if self.is_ended {
            return Poll::Ready(Ok(self.payload.replace()));
        }
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn poll_piece(&mut self, context: &Context<'_>) -> Poll<Result<Option<Payload>, BodyError>> {
        if self.reading == Reading::NotYet {
            self.reading = Reading::Pieces;
        }
        let bytes = self.payload.bytes().len();
        if bytes > 0 {
            self.take(bytes);
            return Poll::Ready(Ok(Some(self.payload.replace())));
        }
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        if self.is_ended {
            return Poll::Ready(Ok(None));
        }
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Writer {
    /// Adds bytes; how many of them count as taken at once.
    pub(crate) fn push(&self, bytes: &[u8]) -> usize {
        let inbox = &mut *self.0.borrow_mut();
        if inbox.reading != Reading::Never && inbox.error.is_none() {
            // Most bodies are one message of gRPC and say at their beginning how long it is.
            if inbox.payload.bytes().is_empty()
                && let Some([_, length @ ..]) = bytes.first_chunk::<5>()
            {
                inbox.payload.expect((u32::from_be_bytes(*length) as usize).saturating_add(5).min(inbox.limit));
            }
            if let Err(error) = inbox.payload.push(bytes, inbox.limit) {
                inbox.error = Some(error);
                let reading = inbox.reading;
                inbox.give_up(reading);
            } else if inbox.reading != Reading::Whole {
                if inbox.reading == Reading::Pieces {
                    inbox.wake();
                }
                return 0;
            } else {
                return bytes.len();
            }
            inbox.wake();
        }
        bytes.len()
    }

    /// The body is whole.
    pub(crate) fn end(&self) {
        let inbox = &mut *self.0.borrow_mut();
        inbox.is_ended = true;
        inbox.wake();
    }

    /// The body will never be whole.
    pub(crate) fn fail(&self) {
        let inbox = &mut *self.0.borrow_mut();
        inbox.error.get_or_insert(BodyError::Connection);
        inbox.wake();
    }
}

impl Reader {
    /// All of the body, if that is at most `limit` bytes.
    pub(crate) async fn whole(self, limit: usize) -> Result<Payload, BodyError> {
        poll_fn(|context| self.0.borrow_mut().poll_whole(limit, context)).await
    }

    /// Tells how many bytes are here, while somebody else reads.
    pub(crate) fn watch(&self) -> impl Fn() -> usize + use<> {
        let inbox = Rc::clone(&self.0);
        move || inbox.borrow().payload.bytes().len()
    }

    /// What came since the last call, at least a byte; `None` at the end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Payload>, BodyError> {
        poll_fn(|context| self.0.borrow_mut().poll_piece(context)).await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.borrow_mut().give_up(Reading::Never);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut future = std::pin::pin!(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_whole_body_is_taken_as_it_comes() {
        let (budget, taken) = (Budget::new(100), Taken::default());
        let (writer, reader) = inbox(7, 100, &budget, &taken);
        assert_eq!(writer.push(b"one "), 0, "nobody reads yet");
        let mut whole = Box::pin(reader.whole(10));
        assert!(poll(whole.as_mut()).is_none());
        assert_eq!(*taken.borrow(), [(7, 4)]);
        assert_eq!(writer.push(b"two"), 3);
        writer.end();
        assert_eq!(poll(whole).expect("ended").expect("sound").bytes(), b"one two");
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn pieces_hold_their_sender_back() {
        let (budget, taken) = (Budget::new(100), Taken::default());
        let (writer, mut reader) = inbox(7, 100, &budget, &taken);
        assert_eq!((writer.push(b"one "), writer.push(b"two")), (0, 0));
        let piece = poll(reader.piece()).expect("there").expect("sound").expect("not the end");
        assert_eq!(piece.bytes(), b"one two");
        drop(piece);
        assert_eq!(*taken.borrow(), [(7, 7)]);
        assert!(poll(reader.piece()).is_none());
        writer.push(b"three");
        drop(reader);
        assert_eq!(*taken.borrow(), [(7, 7), (7, 5)], "what nobody reads is no reason to wait");
        assert_eq!((writer.push(b"four"), budget.used()), (4, 0));
    }

    #[test]
    fn bounds() {
        let (budget, taken) = (Budget::new(10), Taken::default());
        let (writer, reader) = inbox(7, 100, &budget, &taken);
        writer.push(b"too much");
        assert!(matches!(poll(reader.whole(7)), Some(Err(BodyError::TooLarge))));
        let (writer, reader) = inbox(7, 100, &budget, &taken);
        writer.push(b"eight ..");
        assert_eq!(writer.push(b"more"), 4, "beyond all bodies together: thrown away");
        assert!(matches!(poll(reader.whole(100)), Some(Err(BodyError::Busy))));
        let (writer, reader) = inbox(7, 100, &budget, &taken);
        writer.fail();
        assert!(matches!(poll(reader.whole(100)), Some(Err(BodyError::Connection))));
        assert_eq!(budget.used(), 0);
    }
}
