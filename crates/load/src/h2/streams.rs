//! The streams in flight on a connection: a ring in which a stream's number is its place.
//!
//! A place that is still taken by a slow stream is skipped together with its number, which RFC 9113, 5.1.1 allows: so a lookup
//! costs one comparison, however long a stream takes.

use unladen_http2::flow::Flow;

use super::captured::Captured;
use crate::bodies::BodyHash;
use crate::request::Request;

/// The last stream number; a connection that has used it up is replaced.
const LAST: u32 = 0x7fff_ffff;

/// A request on its way and what has come of its answer.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    /// 0: free.
    pub(super) id: u32,
    pub(super) request: Request,
    /// How often servers have given the request back.
    pub(super) tries: u8,
    /// Status of the final response; 0: not there yet.
    pub(super) status: u16,
    /// Interim responses so far.
    pub(super) interim: u8,
    /// Whether its answer has no body whatever the head says.
    pub(super) bodiless: bool,
    /// Its `content-length`.
    pub(super) length: Option<u64>,
    /// From the headers, for answers that have no trailers.
    pub(super) grpc_status: Option<u16>,
    /// Body so far, if it did not come in one frame.
    pub(super) hash: BodyHash,
    /// Its fields and body, if they are to be looked at.
    pub(super) captured: Captured,
    /// What may still be sent either way.
    pub(super) flow: Flow,
    /// The part of the request's body that has not been sent.
    pub(super) unsent: Vec<u8>,
    /// Where in `unsent` that begins.
    pub(super) unsent_from: usize,
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    ring: Vec<Stream>,
    /// Number of the next stream.
    next: u32,
    taken: usize,
}

impl Streams {
    /// Room for so many streams at once.
    pub(super) fn new(most: usize) -> Self {
        let free = Stream {
            id: 0,
            request: Request::default(),
            tries: 0,
            status: 0,
            interim: 0,
            bodiless: false,
            length: None,
            grpc_status: None,
            hash: BodyHash::default(),
            captured: Captured::default(),
            flow: Flow::default(),
            unsent: Vec::new(),
            unsent_from: 0,
        };
        // Twice the room: slow streams make us skip few numbers.
        Self { ring: vec![free; (2 * most).next_power_of_two()], next: 1, taken: 0 }
    }

    /// Streams in flight.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// Whether there are numbers left for as many streams as there may be.
    #[inline]
    pub(super) fn has_numbers(&self) -> bool {
        self.next < LAST - 4 * self.ring.len() as u32
    }

    /// Place of a number.
    #[inline]
    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.ring.len() - 1)
    }

    /// Opens a stream. The caller has seen to it that there is room.
    #[inline]
    pub(super) fn open(&mut self, request: Request, tries: u8, flow: Flow) -> &mut Stream {
        let mut place = self.place(self.next);
        while self.ring[place].id != 0 {
            self.next += 2;
            place = self.place(self.next);
        }
        let stream = &mut self.ring[place];
        stream.id = self.next;
        stream.request = request;
        stream.tries = tries;
        stream.status = 0;
        stream.interim = 0;
        stream.length = None;
        stream.grpc_status = None;
        stream.hash = BodyHash::default();
        stream.flow = flow;
        self.next += 2;
        self.taken += 1;
        stream
    }

    /// The stream with this number, if it is in flight.
    #[inline]
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id);
        let stream = &mut self.ring[place];
        (stream.id == id && id != 0).then_some(stream)
    }

    /// Closes a stream that is in flight.
    #[inline]
    pub(super) fn close(&mut self, id: u32) {
        if let Some(stream) = self.get(id) {
            stream.id = 0;
            // Memory for large bodies is given back.
            stream.unsent = Vec::new();
            stream.captured = Captured::default();
            self.taken -= 1;
        }
    }

    /// All streams in flight, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.ring.iter().filter(|stream| stream.id != 0)
    }

    /// See [`Streams::iter`].
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.ring.iter_mut().filter(|stream| stream.id != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request = Request { index: 0, due: 0, sent: 0, sampled: false, waited: false, lane: 0 };

    #[test]
    fn a_slow_stream_keeps_its_place_while_others_pass() {
        let mut streams = Streams::new(3);
        let slow = streams.open(REQUEST, 0, Flow::default()).id;
        let mut seen = vec![slow];
        for _ in 0..1000 {
            let (a, b) = (streams.open(REQUEST, 0, Flow::default()).id, streams.open(REQUEST, 0, Flow::default()).id);
            assert_eq!(streams.len(), 3);
            for id in [b, a] {
                assert!(streams.get(id).is_some());
                streams.close(id);
                assert!(streams.get(id).is_none());
                seen.push(id);
            }
        }
        assert!(streams.get(slow).is_some());
        assert_eq!(streams.iter().count(), 1);
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((seen.len(), seen.iter().all(|id| id % 2 == 1)), (count, true), "odd, and none twice");
    }

    #[test]
    fn numbers_run_out_before_they_overflow() {
        let mut streams = Streams::new(4);
        streams.next = LAST - 64;
        while streams.has_numbers() {
            let id = streams.open(REQUEST, 0, Flow::default()).id;
            streams.close(id);
        }
        for _ in 0..4 {
            assert!(streams.open(REQUEST, 0, Flow::default()).id < LAST);
        }
        assert!(streams.get(0).is_none());
    }
}
