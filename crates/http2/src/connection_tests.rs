//! Both sides against each other, and against what neither should send.

use super::*;

const LIMITS: Limits =
    Limits { stream_window: 100_000, connection_window: 200_000, max_idle_frames: 1_000, max_waiting: 1 << 20 };

fn put(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::put_head(&mut bytes, payload.len(), kind, flags, stream);
    bytes.extend_from_slice(payload);
    bytes
}

/// What a side says of some bytes, as text.
fn told(connection: &mut Connection, input: &[u8]) -> Result<Vec<String>, Violation> {
    let (mut at, mut told) = (0, Vec::new());
    while let Some(frame) = connection.next(input, &mut at)? {
        told.push(match frame {
            Frame::Data { stream, is_last, bytes, size } => {
                format!("{stream}: {} of {size} bytes, {is_last}", bytes.len())
            }
            Frame::Block { stream, is_last, block } => format!("{stream}: block of {}, {is_last}", block.len()),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(at, input.len(), "whole frames");
    Ok(told)
}

/// Both sides after their settings, with nothing left to send.
fn pair() -> (Connection, Connection) {
    let mut client = Connection::new(Role::Client, LIMITS, &[(setting::ENABLE_PUSH, 0)]);
    let mut server = Connection::new(Role::Server, LIMITS, &[(setting::MAX_CONCURRENT_STREAMS, 7)]);
    for _ in 0..2 {
        let (from_client, from_server) = (std::mem::take(&mut client.out), std::mem::take(&mut server.out));
        told(&mut server, &from_client).expect("a client");
        told(&mut client, &from_server).expect("a server");
    }
    assert!(client.is_ready() && server.is_ready() && client.out.is_empty() && server.out.is_empty());
    assert_eq!(client.max_streams, 7);
    (client, server)
}

#[test]
fn a_body_passes_as_far_as_both_windows_let_it() {
    let (mut client, mut server) = pair();
    client.last = 1;
    let (mut sending, mut receiving) = (client.new_flow(), server.new_flow());
    client.out.extend(put(kind::HEADERS, flag::END_HEADERS, 1, b"\x83"));
    let body = vec![7; 150_000];
    let mut sent = client.put_data(1, &mut sending, &body, true);
    assert_eq!((sent, client.room(&sending)), (100_000, 0));
    let (mut at, mut got) = (0, 0);
    let input = std::mem::take(&mut client.out);
    while let Some(frame) = server.next(&input, &mut at).expect("sound") {
        match frame {
            Frame::Block { stream, is_last, .. } => {
                assert_eq!((stream, is_last), (1, false));
                server.last = 1;
            }
            Frame::Data { bytes, size, is_last, .. } => {
                assert!(receiving.receive(size) && !is_last);
                server.give(size);
                server.give_on(1, &mut receiving, size);
                got += bytes.len();
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got, sent);
    let input = std::mem::take(&mut server.out);
    let mut at = 0;
    while let Some(frame) = client.next(&input, &mut at).expect("sound") {
        let Frame::WindowUpdate { stream, more } = frame else { panic!("{frame:?}") };
        assert!(stream == 0 || sending.grow(i64::from(more)));
    }
    sent += client.put_data(1, &mut sending, &body[sent..], true);
    assert_eq!(sent, body.len());
    let frames = told(&mut server, &client.out).expect("sound");
    assert!(frames.last().is_some_and(|last| last.ends_with("true")), "{frames:?}");
}

#[test]
fn a_block_is_put_together_and_padding_is_left_out() {
    let (_, mut server) = pair();
    let input = [
        put(kind::HEADERS, flag::PADDED | flag::PRIORITY, 3, &[2, 0, 0, 0, 0, 9, 1, 2, 0, 0]),
        put(kind::CONTINUATION, 0, 3, &[]),
        put(kind::CONTINUATION, flag::END_HEADERS, 3, &[3]),
        put(kind::PRIORITY, 0, 9, &[0; 5]),
        put(99, 0, 0, b"unknown"),
    ];
    assert_eq!(told(&mut server, &input.concat()), Ok(vec!["3: block of 3, false".to_owned()]));
    server.last = 3;
    let data = put(kind::DATA, flag::PADDED | flag::END_STREAM, 3, &[1, 7, 7, 0]);
    assert_eq!(told(&mut server, &data), Ok(vec!["3: 2 of 4 bytes, true".to_owned()]));
    assert!(server.out.is_empty());
}

#[test]
fn what_a_frame_lacks_is_told_so_that_it_can_be_put_together() {
    let mut server = Connection::new(Role::Server, LIMITS, &[]);
    assert_eq!((server.lacks(b""), server.lacks(&PREFACE[..20])), (24, 4));
    let settings = put(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 9]);
    assert_eq!(told(&mut server, PREFACE), Ok(Vec::new()));
    assert_eq!((server.lacks(&settings[..2]), server.lacks(&settings[..9]), server.lacks(&settings)), (7, 6, 0));
    let mut at = 0;
    assert!(server.next(&settings[..14], &mut at).expect("a beginning").is_none());
    assert_eq!(at, 0);
    let whole = told(&mut server, &settings).expect("sound");
    assert_eq!(whole, [format!("Settings {{ change: {}, is_first: true }}", 9 - 65_535)]);
}

#[test]
fn what_neither_side_may_do() {
    let update = |stream: u32, more: u32| put(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    let setting =
        |id: u16, value: u32| put(kind::SETTINGS, 0, 0, &[&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
    let cases: Vec<(&str, Vec<u8>, u32)> = vec![
        ("a frame too large", put(kind::DATA, 0, 1, &[0; 16_385]), code::FRAME_SIZE_ERROR),
        ("DATA on no stream", put(kind::DATA, 0, 0, b"x"), code::PROTOCOL_ERROR),
        ("DATA on an idle stream", put(kind::DATA, 0, 9, b"x"), code::PROTOCOL_ERROR),
        ("padding beyond the end", put(kind::DATA, flag::PADDED, 1, &[9, 0]), code::PROTOCOL_ERROR),
        ("a stream of nobody's", put(kind::HEADERS, flag::END_HEADERS, 2, b"\x83"), code::PROTOCOL_ERROR),
        ("CONTINUATION alone", put(kind::CONTINUATION, 0, 1, b""), code::PROTOCOL_ERROR),
        ("an interrupted block", [put(kind::HEADERS, 0, 1, b"\x83"), update(0, 1)].concat(), code::PROTOCOL_ERROR),
        (
            "a block without end",
            [put(kind::HEADERS, 0, 1, b"\x83"), put(kind::CONTINUATION, 0, 1, &[0; 16_000]).repeat(5)].concat(),
            code::ENHANCE_YOUR_CALM,
        ),
        (
            "a block of nothing",
            [put(kind::HEADERS, 0, 1, b"\x83"), put(kind::CONTINUATION, 0, 1, &[]).repeat(2_000)].concat(),
            code::ENHANCE_YOUR_CALM,
        ),
        ("a flood of pings", put(kind::PING, 0, 0, &[0; 8]).repeat(1_001), code::ENHANCE_YOUR_CALM),
        ("a short PING", put(kind::PING, 0, 0, &[0; 7]), code::FRAME_SIZE_ERROR),
        ("PING on a stream", put(kind::PING, 0, 1, &[0; 8]), code::PROTOCOL_ERROR),
        ("a push", put(kind::PUSH_PROMISE, 0, 1, &[0; 4]), code::PROTOCOL_ERROR),
        ("a short RST_STREAM", put(kind::RST_STREAM, 0, 1, &[0; 3]), code::FRAME_SIZE_ERROR),
        ("RST_STREAM on an idle stream", put(kind::RST_STREAM, 0, 9, &[0; 4]), code::PROTOCOL_ERROR),
        ("a short GOAWAY", put(kind::GOAWAY, 0, 0, &[0; 7]), code::FRAME_SIZE_ERROR),
        ("a short PRIORITY", put(kind::PRIORITY, 0, 1, &[0; 4]), code::FRAME_SIZE_ERROR),
        ("half a setting", put(kind::SETTINGS, 0, 0, &[0; 5]), code::FRAME_SIZE_ERROR),
        ("SETTINGS on a stream", put(kind::SETTINGS, 0, 1, &[]), code::PROTOCOL_ERROR),
        ("an acknowledgement of something", put(kind::SETTINGS, flag::ACK, 0, &[0; 6]), code::FRAME_SIZE_ERROR),
        ("a push allowed twice", setting(setting::ENABLE_PUSH, 2), code::PROTOCOL_ERROR),
        ("a window that cannot be", setting(setting::INITIAL_WINDOW_SIZE, 1 << 31), code::FLOW_CONTROL_ERROR),
        ("a small MAX_FRAME_SIZE", setting(setting::MAX_FRAME_SIZE, 16_383), code::PROTOCOL_ERROR),
        ("a window of nothing", update(0, 0), code::PROTOCOL_ERROR),
        ("a window without end", update(0, 0x7fff_ffff), code::FLOW_CONTROL_ERROR),
        ("more than the window holds", put(kind::DATA, 0, 1, &[0; 16_384]).repeat(13), code::FLOW_CONTROL_ERROR),
    ];
    for (name, input, code) in cases {
        let (mut client, mut server) = pair();
        (client.last, server.last) = (1, 1);
        for side in [&mut client, &mut server] {
            let violation = told(side, &input).expect_err(name);
            assert_eq!(violation.code(), code, "{name}: {violation}");
            side.out.clear();
            side.go_away(Some(violation));
            let last = if side.role == Role::Server { 1 } else { 0 };
            assert_eq!((frame::word(&side.out[9..]), frame::word(&side.out[13..])), (last, code), "{name}");
        }
    }
}

#[test]
fn what_is_no_http2_is_told_before_its_length_is_believed() {
    let mut client = Connection::new(Role::Client, LIMITS, &[]);
    assert_eq!(told(&mut client, b"HTTP/1.1 400 Bad Request\r\n"), Err(Violation::NotHttp2));
    let mut server = Connection::new(Role::Server, LIMITS, &[]);
    assert_eq!(told(&mut server, b"GET / HTTP/1.1\r\n"), Err(Violation::NotHttp2));
    let mut server = Connection::new(Role::Server, LIMITS, &[]);
    let early = [PREFACE, &put(kind::SETTINGS, flag::ACK, 0, &[])].concat();
    assert_eq!(told(&mut server, &early), Err(Violation::NotHttp2));
    // A server's own rule: it may not switch pushes on.
    let mut client = Connection::new(Role::Client, LIMITS, &[]);
    assert!(matches!(told(&mut client, &put(kind::SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 1])), Err(Violation::Rules(_))));
}
