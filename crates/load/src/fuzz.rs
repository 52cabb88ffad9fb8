//! Entry points for fuzzing: hidden, and no part of what the crate promises. The same code replays the seeds in a test.

use crate::bodies::MAX_BODY;
use crate::h2::captured::{Captured, Wants};
use crate::h2::frame;
use crate::h2::request::{Encoded, Fields};
use crate::h2::session::{Event, Session};
use crate::http1::head::HeadReader;
use crate::http1::response::{Body, ResponseReader};
use crate::request::Request;
use crate::script::WholeAnswer;

/// What came of reading: status, length and hash of the body, and what was kept of it. `Err`: it is malformed.
type Parsed = Result<Option<(u16, u64, u64)>, ()>;

/// Reads an input in pieces of `piece` bytes.
fn read(method: &str, input: &[u8], piece: usize, ends: bool) -> Parsed {
    let (mut heads, mut reader) = (HeadReader::new(method), ResponseReader::new());
    reader.capture(true);
    let mut found = None;
    for bytes in input.chunks(piece.max(1)) {
        if found.is_some() {
            return Err(());
        }
        if let Some(response) = reader.push(&mut heads, bytes).map_err(|_| ())? {
            if let Body::Whole(body) = response.body {
                let _ = WholeAnswer::new(response.status, response.head, body);
            }
            let hash = response.body.hash();
            found = Some((response.status, hash.length(), hash.finish()));
        }
        assert!(reader.captured().1.len() <= MAX_BODY, "what is kept is bounded");
    }
    let late = if ends { reader.end() } else { None };
    let found = found.or_else(|| {
        let response = late?;
        let Body::Pieces(hash) = response.body else { return None };
        Some((response.status, hash.length(), hash.finish()))
    });
    let (head, body) = reader.captured();
    let _ = WholeAnswer::new(found.map_or(0, |found| found.0), head, body);
    Ok(found)
}

/// Reads a response: the first byte says how it is cut up, the second what it answers and whether the connection ends.
///
/// # Panics
/// If what is read depends on the cuts, or too much is kept: that is what fuzzing looks for.
pub fn response(input: &[u8]) {
    let [cut, how, rest @ ..] = input else { return };
    let method = if how & 1 == 0 { "GET" } else { "HEAD" };
    let ends = how & 2 != 0;
    let whole = read(method, rest, rest.len(), ends);
    let pieces = read(method, rest, usize::from(*cut), ends);
    assert_eq!(whole, pieces, "the cuts do not matter");
}

/// Whether the answer to the request with this index is kept.
fn is_captured(index: u64) -> bool {
    index % 2 == 1
}

/// Holds what was kept of an answer against the answer.
fn check_captured(request: &Request, status: u16, body: &Body<'_>, captured: &Captured) {
    assert_eq!(captured.head().is_empty(), !is_captured(request.index), "heads are kept where they are looked at");
    match body {
        Body::Pieces(hash) if is_captured(request.index) => {
            assert_eq!(
                captured.body().len() as u64,
                hash.length().min(MAX_BODY as u64),
                "bodies are kept up to a bound"
            );
        }
        Body::Whole(_) | Body::Pieces(_) => assert!(captured.body().is_empty(), "nothing is kept in vain"),
    }
    let _ = WholeAnswer::new(status, captured.head(), captured.body());
}

/// What a session of HTTP/2 says of a server's bytes, cut up in pieces of `piece` bytes. Requests are sent after every
/// event, as far as there is room.
fn converse(input: &[u8], piece: usize) -> Vec<(&'static str, u64, u64)> {
    let head = "POST /x HTTP/1.1\r\nHost: h\r\n\r\n0123456789";
    let encoded = Encoded::new(&Fields::of_http1(head.as_bytes(), "http", None), None);
    let mut session = Session::new(3, "POST");
    let (mut held, mut events, mut sent) = (Vec::new(), Vec::new(), 0);
    for bytes in input.chunks(piece.max(1)) {
        held.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            match session.next(&held, &mut at) {
                Ok(Some(Event::Ready)) => events.push(("ready", 0, 0)),
                Ok(Some(Event::Answered { request, status, body, captured, .. })) => {
                    check_captured(&request, status, &body, &captured);
                    events.push(("answered", request.index, body.hash().finish() ^ u64::from(status)));
                }
                Ok(Some(Event::Failed { request, failure })) => events.push(("failed", request.index, failure as u64)),
                Ok(Some(Event::Returned { request, tries })) => events.push(("returned", request.index, tries.into())),
                Ok(None) => break,
                Err(violation) => {
                    events.push(("broken", violation.code().into(), 0));
                    return events;
                }
            }
            // After an event and at no other time: when requests are sent must not depend on the cuts.
            while session.has_room() && sent < 50 {
                let request = Request { index: sent, ..Request::default() };
                if is_captured(sent) {
                    let wants = Wants { bodiless: false, captured: true };
                    session.send_rendered(request, 0, head.as_bytes(), "http", wants);
                } else {
                    session.send(request, 0, &encoded);
                }
                session.pump();
                sent += 1;
            }
            assert!(
                session.connection.out.len() <= 40 * (input.len() + 100),
                "what is said is bounded by what is heard"
            );
        }
        held.drain(..at);
        assert!(held.len() <= frame::HEAD + frame::MAX_PAYLOAD, "only the beginning of one frame is kept");
        let over = events.iter().filter(|(what, ..)| *what != "ready").count();
        assert_eq!(over + session.in_flight(), sent as usize, "every request is accounted for once");
    }
    events
}

/// Reads what a server of HTTP/2 says: the first byte says how it is cut up.
///
/// # Panics
/// If what is read depends on the cuts, a request is lost, or memory is not bounded: that is what fuzzing looks for.
pub fn http2(input: &[u8]) {
    let Some((&cut, rest)) = input.split_first() else { return };
    let whole = converse(rest, 16_384);
    let pieces = converse(rest, usize::from(cut));
    assert_eq!(whole, pieces, "the cuts do not matter");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Replays the seeds of a target, cut up in several ways.
    fn replay(folder: &str, target: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(folder);
        let mut count = 0;
        for file in std::fs::read_dir(folder).expect("the seeds are in the repository") {
            let bytes = std::fs::read(file.expect("listed").path()).expect("readable");
            target(&bytes);
            for cut in [1, 2, 3, 7, 255] {
                target(&[&[cut], &bytes[1.min(bytes.len())..]].concat());
            }
            count += 1;
        }
        assert!(count >= 20, "{count}");
    }

    #[test]
    fn the_corpus_of_responses_holds_no_surprise() {
        replay("response", super::response);
    }

    #[test]
    fn the_corpus_of_http2_holds_no_surprise() {
        replay("http2", super::http2);
    }
}
