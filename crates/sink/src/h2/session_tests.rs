//! The session against what clients send, and against what none should.

use std::time::Duration;

use proptest::prelude::*;
use unladen_http2::frame::{self, Head, flag, kind, word};
use unladen_http2::hpack::{Decoder, put_literal};

use super::*;
use crate::answer::Answer;

const LIMIT: usize = 100_000;

fn session() -> Session {
    Session::new(&Budget::new(1 << 20), LIMIT)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame::put_head(&mut frame, payload.len(), kind, flags, stream);
    frame.extend_from_slice(payload);
    frame
}

fn greeting() -> Vec<u8> {
    [frame::PREFACE, &frame(kind::SETTINGS, 0, 0, &[])].concat()
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let head = [(":method", "POST"), (":path", "/x"), (":scheme", "http")];
    head.iter().chain(fields).for_each(|(name, value)| put_literal(&mut block, name, value.as_bytes(), false));
    block
}

fn head(stream: u32, flags: u8) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flags, stream, &block(&[]))
}

fn started() -> Session {
    let mut session = session();
    session.feed(&greeting()).expect("HTTP/2");
    session.connection.out.clear();
    session
}

/// Frames as kind, flags, stream and payload.
fn frames(bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let (mut frames, mut rest) = (Vec::new(), bytes);
    while let Some(head) = Head::read(rest) {
        let end = frame::HEAD + head.length;
        frames.push((head.kind, head.flags, head.stream, rest[frame::HEAD..end].to_vec()));
        rest = &rest[end..];
    }
    assert!(rest.is_empty(), "whole frames only");
    frames
}

fn body(mut opened: Vec<Opened>) -> Option<Vec<u8>> {
    let opened = opened.pop().expect("a request");
    let whole = opened.request.into_body();
    let mut whole = Box::pin(async move { whole.whole(LIMIT, &Budget::new(0), Duration::MAX).await });
    // There is a clock, so it must be there.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _here = runtime.enter();
    match whole.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(body) => Some(body.expect("sound").bytes().to_vec()),
        std::task::Poll::Pending => None,
    }
}

/// A request in every shape that framing allows: padded, with priority, in pieces, with trailers.
fn requests() -> Vec<u8> {
    let block = block(&[("a", &"b".repeat(300))]);
    let (first, second) = block.split_at(100);
    [
        greeting(),
        frame(kind::PRIORITY, 0, 9, &[0; 5]),
        head(1, flag::END_STREAM),
        frame(kind::HEADERS, flag::PADDED | flag::PRIORITY, 3, &[&[2, 0, 0, 0, 0, 7], first, &[0, 0]].concat()),
        frame(kind::CONTINUATION, flag::END_HEADERS, 3, second),
        frame(kind::DATA, 0, 3, b"one "),
        frame(kind::PING, 0, 0, b"12345678"),
        frame(0xfa, 0, 0, b"unknown"),
        frame(kind::DATA, flag::PADDED, 3, &[&[3][..], b"two", &[0; 3]].concat()),
        frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, b"\x00\x01a\x01b"),
        head(5, 0),
        frame(kind::DATA, flag::END_STREAM, 5, &[7; 16_384]),
    ]
    .concat()
}

#[test]
fn requests_come_whole_whatever_the_pieces() {
    let input = requests();
    for piece in [1, 2, 9, 10, 100, input.len()] {
        let mut session = session();
        let mut bodies = Vec::new();
        for part in input.chunks(piece) {
            session.feed(part).expect("sound");
        }
        let opened: Vec<_> = session.opened().collect();
        for opened in opened {
            bodies.push((opened.stream, body(vec![opened]).expect("whole")));
        }
        assert_eq!(bodies, [(1, vec![]), (3, b"one two".to_vec()), (5, vec![7; 16_384])], "{piece}");
        let kinds: Vec<u8> = frames(&session.connection.out).iter().map(|frame| frame.0).collect();
        assert_eq!(kinds, [kind::SETTINGS, kind::WINDOW_UPDATE, kind::SETTINGS, kind::PING], "{piece}");
    }
}

#[test]
fn answers() {
    let mut session = started();
    session.feed(&[head(1, flag::END_STREAM), head(3, 0), head(5, flag::END_STREAM)].concat()).expect("sound");
    let opened = session.opened().count();
    session.answer(1, Answer::Message(b"hi".to_vec()));
    session.answer(3, Answer::Message(Vec::new()));
    session.answer(3, Answer::Message(Vec::new()));
    session.answer(5, crate::web::reply(http::StatusCode::NOT_FOUND, "text/plain", "no").into());
    let frames = frames(&session.connection.out);
    let shape: Vec<_> = frames.iter().map(|(kind, flags, stream, _)| (*kind, *flags, *stream)).collect();
    let whole = flag::END_HEADERS | flag::END_STREAM;
    let expected = [
        (kind::HEADERS, flag::END_HEADERS, 1),
        (kind::DATA, 0, 1),
        (kind::HEADERS, whole, 1),
        (kind::HEADERS, flag::END_HEADERS, 3),
        (kind::DATA, 0, 3),
        (kind::HEADERS, whole, 3),
        (kind::RST_STREAM, 0, 3),
        (kind::HEADERS, flag::END_HEADERS, 5),
        (kind::DATA, flag::END_STREAM, 5),
    ];
    assert_eq!((opened, shape), (3, expected.to_vec()));
    assert_eq!((frames[1].3.as_slice(), frames[8].3.as_slice()), (&b"\0\0\0\0\x02hi"[..], &b"no"[..]));
    let mut fields = Vec::new();
    let field =
        |name: &[u8], value: &[u8]| fields.push(String::from_utf8_lossy(&[name, b"=", value].concat()).into_owned());
    Decoder::new().decode(&frames[7].3, field).expect("a block");
    assert_eq!(fields, [":status=404", "content-type=text/plain"]);
    assert!(session.streams.is_empty());
}

#[test]
fn answers_wait_for_windows() {
    let mut session = session();
    let small =
        frame(kind::SETTINGS, 0, 0, &[&setting::INITIAL_WINDOW_SIZE.to_be_bytes()[..], &3_u32.to_be_bytes()].concat());
    session.feed(&[frame::PREFACE, &small, &head(1, flag::END_STREAM)].concat()).expect("sound");
    session.connection.out.clear();
    session.answer(1, Answer::Message(b"hello".to_vec()));
    let data = |session: &Session| -> Vec<u8> {
        frames(&session.connection.out)
            .iter()
            .filter(|frame| frame.0 == kind::DATA)
            .flat_map(|frame| frame.3.clone())
            .collect()
    };
    assert_eq!(data(&session), [0, 0, 0]);
    session.feed(&frame(kind::WINDOW_UPDATE, 0, 1, &2_u32.to_be_bytes())).expect("sound");
    assert_eq!(data(&session), [0, 0, 0, 0, 5]);
    let larger = [&setting::INITIAL_WINDOW_SIZE.to_be_bytes()[..], &8_u32.to_be_bytes()].concat();
    session.feed(&frame(kind::SETTINGS, 0, 0, &larger)).expect("sound");
    assert_eq!(data(&session), b"\0\0\0\0\x05hello");
    assert!(session.streams.is_empty());
}

#[test]
fn windows_are_given_back_as_bodies_are_taken() {
    let mut session = started();
    session.feed(&head(1, 0)).expect("sound");
    let opened: Vec<_> = session.opened().collect();
    let data = frame(kind::DATA, 0, 1, &[1; 16_384]);
    for _ in 0..32 {
        session.feed(&data).expect("within the window");
    }
    assert!(session.connection.out.is_empty(), "nobody reads");
    let beyond = session.feed(&frame(kind::DATA, 0, 1, &[1]));
    assert_eq!(beyond, Err(Violation::FlowControl));
    drop(opened);
    session.settle();
    let given = frames(&session.connection.out);
    assert_eq!(given.iter().map(|frame| (frame.0, frame.2)).collect::<Vec<_>>(), [(8, 0), (8, 1)]);
}

#[test]
fn violations_end_the_connection() {
    let with = |more: &[Vec<u8>]| [greeting(), more.concat()].concat();
    let cases: Vec<(&str, Vec<u8>, u32)> = vec![
        ("no preface", b"GET / HTTP/1.1\r\n\r\n".to_vec(), code::PROTOCOL_ERROR),
        ("no settings", [frame::PREFACE, &head(1, 0)].concat(), code::PROTOCOL_ERROR),
        ("an even stream", with(&[head(2, 0)]), code::PROTOCOL_ERROR),
        ("DATA on an idle stream", with(&[frame(kind::DATA, 0, 1, b"x")]), code::PROTOCOL_ERROR),
        ("DATA on no stream", with(&[frame(kind::DATA, 0, 0, b"x")]), code::PROTOCOL_ERROR),
        ("DATA after the end", with(&[head(1, flag::END_STREAM), frame(kind::DATA, 0, 1, b"x")]), code::PROTOCOL_ERROR),
        (
            "padding beyond the end",
            with(&[head(1, 0), frame(kind::DATA, flag::PADDED, 1, &[9, 0])]),
            code::PROTOCOL_ERROR,
        ),
        (
            "an interrupted block",
            with(&[frame(kind::HEADERS, 0, 1, b"\x83"), frame(kind::PING, 0, 0, &[0; 8])]),
            code::PROTOCOL_ERROR,
        ),
        ("CONTINUATION alone", with(&[frame(kind::CONTINUATION, 0, 1, b"")]), code::PROTOCOL_ERROR),
        ("a push", with(&[frame(kind::PUSH_PROMISE, 0, 1, &[0; 4])]), code::PROTOCOL_ERROR),
        ("a frame too large", with(&[frame(kind::DATA, 0, 1, &[0; 16_385])]), code::FRAME_SIZE_ERROR),
        ("a short PING", with(&[frame(kind::PING, 0, 0, &[0; 7])]), code::FRAME_SIZE_ERROR),
        ("a window of nothing", with(&[frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4])]), code::PROTOCOL_ERROR),
        (
            "a window without end",
            with(&[frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255])]),
            code::FLOW_CONTROL_ERROR,
        ),
        (
            "broken HPACK",
            with(&[frame(kind::HEADERS, flag::END_HEADERS, 1, &[0xff, 0xff, 0xff, 0xff, 0xff])]),
            code::COMPRESSION_ERROR,
        ),
        ("a flood of pings", with(&vec![frame(kind::PING, 0, 0, &[0; 8]); 5_000]), code::ENHANCE_YOUR_CALM),
        (
            "a flood of resets",
            with(
                &(0..5_000)
                    .map(|n| [head(2 * n + 1, 0), frame(kind::RST_STREAM, 0, 2 * n + 1, &[0; 4])].concat())
                    .collect::<Vec<_>>(),
            ),
            code::ENHANCE_YOUR_CALM,
        ),
        (
            "empty CONTINUATIONs",
            with(
                &[vec![frame(kind::HEADERS, 0, 1, b"\x83")], vec![frame(kind::CONTINUATION, 0, 1, b""); 2_000]]
                    .concat(),
            ),
            code::ENHANCE_YOUR_CALM,
        ),
        (
            "a block without end",
            with(
                &[vec![frame(kind::HEADERS, 0, 1, b"\x83")], vec![frame(kind::CONTINUATION, 0, 1, &[0; 16_000]); 5]]
                    .concat(),
            ),
            code::ENHANCE_YOUR_CALM,
        ),
    ];
    for (name, input, code) in cases {
        let mut session = session();
        let violation = session.feed(&input).expect_err(name);
        session.close(Some(violation));
        let frames = frames(&session.connection.out);
        let last = frames.last().expect("a farewell");
        assert_eq!((last.0, word(&last.3[4..])), (kind::GOAWAY, code), "{name}");
    }
}

#[test]
fn bad_requests_end_their_stream_only() {
    let mut session = started();
    let mut nameless = Vec::new();
    put_literal(&mut nameless, ":method", b"POST", false);
    let sized = frame(kind::HEADERS, flag::END_HEADERS, 3, &block(&[("content-length", "5")]));
    let input =
        [frame(kind::HEADERS, flag::END_HEADERS, 1, &nameless), sized, frame(kind::DATA, flag::END_STREAM, 3, b"four")];
    session.feed(&input.concat()).expect("sound");
    let expected = [1, 3].map(|stream| (kind::RST_STREAM, 0, stream, code::PROTOCOL_ERROR.to_be_bytes().to_vec()));
    assert_eq!(frames(&session.connection.out), expected);
    session.connection.out.clear();
    // As many streams as are allowed, and one more.
    for number in 0..=MAX_STREAMS as u32 {
        session.feed(&head(101 + 2 * number, 0)).expect("sound");
    }
    let last = 101 + 2 * MAX_STREAMS as u32;
    assert_eq!(
        frames(&session.connection.out),
        [(kind::RST_STREAM, 0, last, code::REFUSED_STREAM.to_be_bytes().to_vec())]
    );
}

#[test]
fn closing_answers_what_has_come() {
    let mut session = started();
    session.feed(&head(1, flag::END_STREAM)).expect("sound");
    session.close(None);
    session.feed(&[head(3, 0), frame(kind::DATA, flag::END_STREAM, 3, b"late")].concat()).expect("sound");
    assert_eq!((session.opened().count(), session.is_done()), (1, false));
    session.answer(1, Answer::Message(Vec::new()));
    assert!(session.is_done());
    assert_eq!(frames(&session.connection.out)[0], (kind::GOAWAY, 0, 0, [1_u32.to_be_bytes(), [0; 4]].concat()));
}

proptest! {
    /// Neither broken nor arbitrary input brings it down or makes it keep more than it may.
    #[test]
    fn hostile_input(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..200),
        piece in 1_usize..2_000,
    ) {
        let mut input = requests();
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        input.extend_from_slice(&noise);
        let budget = Budget::new(1 << 20);
        let mut session = Session::new(&budget, LIMIT);
        for part in input.chunks(piece) {
            if session.feed(part).is_err() {
                break;
            }
            let opened: Vec<_> = session.opened().collect();
            for opened in opened {
                session.answer(opened.stream, Answer::Message(Vec::new()));
            }
            prop_assert!(session.streams.len() <= MAX_STREAMS && session.partial.len() <= frame::HEAD + frame::MAX_PAYLOAD);
        }
        frames(&session.connection.out);
        drop(session);
        prop_assert_eq!(budget.used(), 0);
    }
}
