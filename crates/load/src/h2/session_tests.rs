//! The session against scripted bytes: what no server of others can be made to do.

use proptest::prelude::*;

use super::Violation;
use super::captured::Wants;
use super::frame::code;
use super::frame::{self, HEAD, Head, PREFACE, flag, kind, setting};
use super::hpack;
use super::request::{Encoded, Fields};
use super::session::{Event, Session};
use crate::http1::response::Body;
use crate::request::{Failure, Request};

/// A frame as the server sends it.
fn put(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put_head(&mut bytes, payload.len(), kind, flags, stream);
    bytes.extend_from_slice(payload);
    bytes
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put_settings(&mut bytes, settings);
    bytes
}

fn encoded(body: usize) -> Encoded {
    let request = format!("POST /x HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n{}", "b".repeat(body));
    Encoded::new(&Fields::of_http1(request.as_bytes(), "http", None), None)
}

/// What the session says of some bytes.
fn events(session: &mut Session, input: &[u8]) -> Result<Vec<String>, Violation> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(event) = session.next(input, &mut at)? {
        found.push(match event {
            Event::Ready => "ready".to_owned(),
            Event::Answered { request, status, body, grpc_status, .. } => {
                let kind = if matches!(body, Body::Whole(_)) { "whole" } else { "pieces" };
                format!("{} answered {status} {kind} {} {grpc_status:?}", request.index, body.length())
            }
            Event::Failed { request, failure } => format!("{} failed {failure:?}", request.index),
            Event::Returned { request, tries } => format!("{} returned {tries}", request.index),
        });
    }
    Ok(found)
}

/// A session that is ready for so many streams, after these settings, with nothing left to send.
fn ready(streams: usize, from_server: &[(u16, u32)]) -> Session {
    let mut session = Session::new(streams, "POST");
    assert!(session.connection.out.starts_with(PREFACE) && !session.has_room());
    assert_eq!(events(&mut session, &settings(from_server)), Ok(vec!["ready".to_owned()]));
    session.connection.out.clear();
    session
}

fn send(session: &mut Session, index: u64, encoded: &Encoded) {
    session.send(Request { index, ..Request::default() }, 0, encoded);
}

/// Heads of the frames to be sent, with their payloads; nothing is left.
fn sent(session: &mut Session) -> Vec<(Head, Vec<u8>)> {
    let (bytes, mut frames, mut at) = (std::mem::take(&mut session.connection.out), Vec::new(), 0);
    while let Some(head) = Head::read(&bytes[at..]) {
        at += HEAD + head.length;
        frames.push((head, bytes[at - head.length..at].to_vec()));
    }
    frames
}

#[test]
fn answers_come_in_any_order_and_in_pieces() {
    let mut session = ready(4, &[]);
    for index in 0..4 {
        send(&mut session, index, &encoded(0));
    }
    assert!(!session.has_room());
    let input = [
        put(kind::HEADERS, flag::END_HEADERS, 5, &[0x88]),
        put(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, &[0x89]),
        put(kind::DATA, 0, 5, b"ab"),
        put(kind::HEADERS, flag::END_HEADERS, 1, &[0x88]),
        put(kind::DATA, flag::END_STREAM | flag::PADDED, 1, b"\x02xyz\0\0"),
        put(kind::DATA, flag::END_STREAM, 5, b"c"),
        put(kind::HEADERS, flag::PRIORITY | flag::PADDED, 7, &[1, 0, 0, 0, 0, 0, 0]),
        put(kind::CONTINUATION, 0, 7, &[]),
        put(kind::CONTINUATION, flag::END_HEADERS, 7, &[0x88]),
        put(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 7, b"\0\x0bgrpc-status\x015"),
    ]
    .concat();
    let expected = [
        "1 answered 204 whole 0 None",
        "0 answered 200 whole 3 None",
        "2 answered 200 pieces 3 None",
        "3 answered 200 whole 0 Some(5)",
    ];
    // Cut up anywhere, the rest of each cut given again with what follows.
    for cut in 0..=input.len() {
        let mut session = ready(4, &[]);
        for index in 0..4 {
            send(&mut session, index, &encoded(0));
        }
        let (mut at, mut held, mut found) = (0, Vec::new(), Vec::new());
        for part in [&input[..cut], &input[cut..]] {
            held.extend_from_slice(part);
            let before = at;
            found.extend(events_from(&mut session, &held, &mut at));
            assert!(at >= before);
        }
        assert_eq!(found, expected, "cut at {cut}");
        assert_eq!(session.in_flight(), 0);
    }
    assert_eq!(events(&mut session, &input).expect("well-formed"), expected);
}

/// [`events`] from a place on.
fn events_from(session: &mut Session, input: &[u8], at: &mut usize) -> Vec<String> {
    let mut used = 0;
    let mut counted = Vec::new();
    while let Some(event) = session.next(&input[*at..], &mut used).expect("well-formed") {
        if let Event::Answered { request, status, body, grpc_status, .. } = event {
            let kind = if matches!(body, Body::Whole(_)) { "whole" } else { "pieces" };
            counted.push(format!("{} answered {status} {kind} {} {grpc_status:?}", request.index, body.length()));
        }
    }
    *at += used;
    counted
}

#[test]
fn bodies_keep_to_both_windows_and_to_their_changes() {
    let mut session = ready(2, &[(setting::INITIAL_WINDOW_SIZE, 10)]);
    send(&mut session, 0, &encoded(25));
    let frames = sent(&mut session);
    assert_eq!(frames.iter().map(|(head, _)| (head.kind, head.length)).collect::<Vec<_>>()[1..], [(kind::DATA, 10)]);
    // Less than nothing: 10 sent, 4 allowed.
    events(&mut session, &settings(&[(setting::INITIAL_WINDOW_SIZE, 4)])).expect("well-formed");
    session.pump();
    assert_eq!(sent(&mut session).iter().map(|(head, _)| head.kind).collect::<Vec<_>>(), [kind::SETTINGS]);
    for (more, data) in [(6, None), (1, Some((1, 0))), (100, Some((14, flag::END_STREAM)))] {
        let mut update = Vec::new();
        frame::put_word(&mut update, kind::WINDOW_UPDATE, 1, more);
        events(&mut session, &update).expect("well-formed");
        session.pump();
        let frames = sent(&mut session);
        assert_eq!(frames.first().map(|(head, _)| (head.length, head.flags)), data, "{more} more");
    }
    // The window of the connection: 65,535 of which 25 are used.
    events(&mut session, &settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)])).expect("well-formed");
    session.connection.out.clear();
    send(&mut session, 1, &encoded(100_000));
    let length = |frames: &[(Head, Vec<u8>)]| {
        frames.iter().filter(|(head, _)| head.kind == kind::DATA).map(|(head, _)| head.length).sum::<usize>()
    };
    assert_eq!(length(&sent(&mut session)), 65_510);
    let mut update = Vec::new();
    frame::put_word(&mut update, kind::WINDOW_UPDATE, 0, 1 << 20);
    events(&mut session, &update).expect("well-formed");
    session.pump();
    let frames = sent(&mut session);
    assert_eq!(length(&frames), 34_490);
    assert!(frames.iter().all(|(head, _)| head.length <= frame::MAX_PAYLOAD));
    assert!(frames.last().is_some_and(|(head, _)| head.has(flag::END_STREAM)));
}

#[test]
fn an_answer_before_the_end_of_the_request_ends_the_request() {
    let mut session = ready(1, &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    send(&mut session, 0, &encoded(10));
    session.connection.out.clear();
    let found = events(&mut session, &put(kind::HEADERS, 5, 1, &[0x88])).expect("well-formed");
    assert_eq!(found, ["0 answered 200 whole 0 None"]);
    let (head, payload) = sent(&mut session).remove(0);
    assert_eq!((head.kind, head.stream, frame::word(&payload)), (kind::RST_STREAM, 1, code::NO_ERROR));
    session.pump();
    assert!(session.connection.out.is_empty() && session.has_room());
}

#[test]
fn windows_are_opened_again_before_they_are_used_up_and_padding_counts() {
    let mut session = ready(1, &[]);
    send(&mut session, 0, &encoded(0));
    session.connection.out.clear();
    events(&mut session, &put(kind::HEADERS, flag::END_HEADERS, 1, &[0x88])).expect("well-formed");
    let mut padded = vec![100];
    padded.resize(frame::MAX_PAYLOAD, 0);
    let data = put(kind::DATA, flag::PADDED, 1, &padded);
    let (mut stream, mut connection) = (0, 0);
    for _ in 0..4096 {
        events(&mut session, &data).expect("within the window");
        for (head, payload) in sent(&mut session) {
            assert_eq!(head.kind, kind::WINDOW_UPDATE);
            *if head.stream == 0 { &mut connection } else { &mut stream } += frame::word(&payload) as usize;
        }
    }
    // 64 MiB have come; of each window at most half is not granted again.
    assert!((56 << 20..=64 << 20).contains(&stream), "{stream}");
    assert!((32 << 20..=64 << 20).contains(&connection), "{connection}");
}

#[test]
fn a_table_that_is_too_small_is_not_used_and_that_is_said_first() {
    for late in [false, true] {
        let small = [(setting::HEADER_TABLE_SIZE, 100)];
        let mut session = ready(8, if late { &[] } else { &small });
        let mut decoder = hpack::Decoder::new();
        if late {
            send(&mut session, 0, &encoded(0));
            for (_, block) in sent(&mut session) {
                decoder.decode(&block, |_, _| {}).expect("our own block");
            }
            events(&mut session, &settings(&small)).expect("well-formed");
            session.connection.out.clear();
        }
        for number in 0..3 {
            send(&mut session, 1 + number, &encoded(0));
            let (head, block) = sent(&mut session).remove(0);
            assert_eq!(head.flags, flag::END_HEADERS | flag::END_STREAM);
            assert_eq!(block[0] == 0x20, number == 0, "the size is set to 0 once, first of all");
            let changes = decoder.changes();
            let mut fields = 0;
            decoder.decode(&block, |_, _| fields += 1).expect("our own block");
            assert_eq!((fields, decoder.changes() - changes), (5, u64::from(number == 0)));
        }
    }
}

#[test]
fn going_away_gives_back_what_was_not_processed() {
    let mut session = ready(3, &[]);
    for index in 0..3 {
        send(&mut session, index, &encoded(0));
    }
    let goaway = |last: u32| put(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat());
    // First a warning, then the truth.
    assert_eq!(events(&mut session, &goaway(0x7fff_ffff)).expect("well-formed"), Vec::<String>::new());
    assert!(!session.has_room() && !session.is_drained());
    assert_eq!(events(&mut session, &goaway(3)).expect("well-formed"), ["2 returned 1"]);
    let rest = [put(kind::HEADERS, 5, 1, &[0x88]), put(kind::HEADERS, 5, 3, &[0x88])].concat();
    assert_eq!(events(&mut session, &rest).expect("well-formed").len(), 2);
    assert!(session.is_drained());
}

#[test]
fn a_cancelled_request_is_forgotten_but_its_answer_still_feeds_the_table() {
    let mut session = ready(2, &[]);
    send(&mut session, 0, &encoded(0));
    session.connection.out.clear();
    let mut given_up = Vec::new();
    session.cancel_overdue(|_| true, |request| given_up.push(request.index));
    assert_eq!(given_up, [0]);
    let (head, payload) = sent(&mut session).remove(0);
    assert_eq!((head.kind, frame::word(&payload)), (kind::RST_STREAM, code::CANCEL));
    let mut block = Vec::new();
    hpack::put_literal(&mut block, ":status", b"418", true);
    let late = [put(kind::HEADERS, 4, 1, &block), put(kind::DATA, 1, 1, b"late")].concat();
    assert_eq!(events(&mut session, &late).expect("allowed"), Vec::<String>::new());
    send(&mut session, 1, &encoded(0));
    assert_eq!(
        events(&mut session, &put(kind::HEADERS, 5, 3, &[0xbe])).expect("good"),
        ["1 answered 418 whole 0 None"]
    );
}

#[test]
fn interim_responses_are_skipped_but_not_for_ever() {
    let mut block = Vec::new();
    hpack::put_literal(&mut block, ":status", b"103", false);
    let interim = put(kind::HEADERS, flag::END_HEADERS, 1, &block);
    let mut session = ready(1, &[]);
    send(&mut session, 0, &encoded(0));
    let input = [interim.repeat(100), put(kind::HEADERS, 5, 1, &[0x88])].concat();
    assert_eq!(events(&mut session, &input).expect("well-formed"), ["0 answered 200 whole 0 None"]);
    send(&mut session, 1, &encoded(0));
    let third = put(kind::HEADERS, flag::END_HEADERS, 3, &block);
    assert_eq!(events(&mut session, &third.repeat(101)).expect("a stream's fault"), ["1 failed Protocol"]);
}

#[test]
fn what_is_kept_of_an_answer_is_bounded_and_has_its_fields_and_trailers() {
    let mut session = ready(1, &[]);
    let wants = Wants { bodiless: false, captured: true };
    session.send_rendered(Request::default(), 0, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "http", wants);
    session.connection.out.clear();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    hpack::put_literal(&mut first, ":status", b"200", false);
    hpack::put_literal(&mut first, "x-a", b"1", true);
    hpack::put_literal(&mut last, "grpc-status", b"5", false);
    assert_eq!(events(&mut session, &put(kind::HEADERS, flag::END_HEADERS, 1, &first)), Ok(Vec::new()));
    let data = put(kind::DATA, 0, 1, &[b'x'; frame::MAX_PAYLOAD]);
    for _ in 0..100 {
        assert_eq!(events(&mut session, &data), Ok(Vec::new()));
    }
    let trailers = put(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &last);
    let Ok(Some(Event::Answered { body, captured, .. })) = session.next(&trailers, &mut 0) else { panic!("an answer") };
    assert_eq!(body.length(), 100 * frame::MAX_PAYLOAD as u64);
    assert_eq!(captured.body().len(), crate::bodies::MAX_BODY);
    assert_eq!(captured.head(), b"HTTP/2 200\r\nx-a: 1\r\ngrpc-status: 5\r\n");
}

#[test]
fn pings_are_answered_and_acknowledgements_are_not() {
    let mut session = ready(1, &[]);
    let input =
        [put(kind::PING, 0, 0, b"12345678"), put(kind::PING, flag::ACK, 0, b"12345678"), settings(&[])].concat();
    events(&mut session, &input).expect("well-formed");
    let frames = sent(&mut session);
    assert_eq!(frames.len(), 2);
    assert_eq!((frames[0].0.kind, frames[0].0.flags, &frames[0].1[..]), (kind::PING, flag::ACK, &b"12345678"[..]));
    assert_eq!((frames[1].0.kind, frames[1].0.flags), (kind::SETTINGS, flag::ACK));
}

#[test]
fn a_stream_that_the_server_breaks_costs_only_its_request() {
    let mut session = ready(2, &[]);
    send(&mut session, 0, &encoded(0));
    send(&mut session, 1, &encoded(0));
    let input = [put(kind::DATA, 0, 1, b"no head yet"), put(kind::HEADERS, 5, 3, &[0x88])].concat();
    let expected = ["0 failed Protocol".to_owned(), "1 answered 200 whole 0 None".to_owned()];
    assert_eq!(events(&mut session, &input).expect("the connection goes on"), expected);
    assert_eq!(Failure::NAMES[Failure::Protocol as usize], "protocol");
}

proptest! {
    /// Whatever frames come, in whatever order: no panic, bounded output, and every request is accounted for once.
    #[test]
    fn any_frames_leave_the_session_sound(
        frames in proptest::collection::vec(
            (0u8..11, any::<u8>(), 0u32..12, proptest::collection::vec(any::<u8>(), 0..40)),
            0..60,
        ),
    ) {
        let mut session = ready(4, &[]);
        for index in 0..4 {
            send(&mut session, index, &encoded(30));
        }
        let mut over = 0;
        for (kind, flags, stream, payload) in frames {
            match events(&mut session, &put(kind, flags, stream, &payload)) {
                Ok(events) => over += events.len(),
                Err(_) => break,
            }
            session.pump();
            prop_assert_eq!(over + session.in_flight(), 4);
        }
        prop_assert!(session.connection.out.len() < 100_000);
    }
}
