use proptest::prelude::*;
use rmp::encode::{write_i32, write_i64, write_nil, write_sint, write_u64};

use super::*;
use crate::datadog::message::Message;
use crate::testing::broken;

const TRACE: u64 = 0xf8ca_fe00_dead_beef;
const HIGH: &str = "5eed5eed5eed5eed";

/// Two spans of one trace, of which only the second has the high half of its id, then one with neither id nor anything else.
fn message() -> Vec<u8> {
    let mut message = Message::default();
    message.array(2).array(2);
    message
        .map(11)
        .text("service")
        .text("pets")
        .text("name")
        .text("servlet.request")
        .text("resource")
        .text("GET /vets");
    message
        .text("type")
        .text("web")
        .text("trace_id")
        .number(TRACE)
        .text("span_id")
        .number(7)
        .text("parent_id")
        .number(0);
    message.text("start").number(1_556_604_172_355_737_001).text("duration").number(1_431).text("error").number(0);
    message.text("meta").map(2).text("http.method").text("GET").text("http.status_code").text("200");
    message.map(12).text("service").text("db").text("name").text("mysql.query").text("resource").text("SELECT");
    message
        .text("type")
        .text("sql")
        .text("trace_id")
        .number(TRACE)
        .text("span_id")
        .number(8)
        .text("parent_id")
        .number(7);
    message.text("start").number(1_556_604_172_355_738_000).text("duration").number(400).text("error").number(1);
    message.text("meta").map(2).text("_dd.p.tid").text(HIGH).text("span.kind").text("client");
    message.text("metrics").map(1).text("_sampling_priority_v1").real(1.0);
    message.array(1).map(1).text("meta_struct").map(1).text("x").array(0);
    message.bytes
}

/// The same in version 0.5.
fn message_with_table() -> Vec<u8> {
    let texts = [
        "",
        "pets",
        "servlet.request",
        "GET /vets",
        "web",
        "http.method",
        "GET",
        "http.status_code",
        "200",
        "db",
        "mysql.query",
        "SELECT",
        "sql",
        "_dd.p.tid",
        HIGH,
        "span.kind",
        "client",
        "_sampling_priority_v1",
    ];
    let mut message = Message::default();
    message.array(2).array(texts.len() as u32);
    for text in texts {
        message.text(text);
    }
    message.array(2).array(2);
    message.array(12).number(1).number(2).number(3).number(TRACE).number(7).number(0);
    message.number(1_556_604_172_355_737_001).number(1_431).number(0);
    message.map(2).number(5).number(6).number(7).number(8).map(0).number(4);
    message.array(12).number(9).number(10).number(11).number(TRACE).number(8).number(7);
    message.number(1_556_604_172_355_738_000).number(400).number(1);
    message.map(2).number(13).number(14).number(15).number(16).map(1).number(17).real(1.0).number(12);
    message.array(1).array(12);
    for _ in 0..9 {
        message.number(0);
    }
    message.map(0).map(0).number(0);
    message.bytes
}

#[test]
fn both_versions_say_the_same() {
    let arena = Bump::new();
    let (message, with_table) = (message(), message_with_table());
    assert_eq!((chunks(&message), chunks_behind_table(&with_table), chunks(b"x")), (2, 2, 0));
    let batches = [decode(&message, &arena), decode_with_table(&with_table, &arena)];
    for batch in batches.map(|batch| batch.expect("sound")) {
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (2, 1, Some(IDS[0])));
        let [server, client] = [batch.spans[0], batch.spans[1]];
        let id = (0x5eed_5eed_5eed_5eed_u128 << 64 | u128::from(TRACE)).to_be_bytes();
        assert_eq!((server.trace_id, client.trace_id), (id, id), "the whole chunk has the high half");
        assert_eq!((server.parent_id, client.parent_id), (None, Some(7_u64.to_be_bytes())));
        assert_eq!((server.span_id, client.span_id), (7_u64.to_be_bytes(), 8_u64.to_be_bytes()));
        assert_eq!((server.kind, client.kind), (Kind::Server, Kind::Client), "by type, by meta");
        assert_eq!((server.status, client.status), (Status::Unset, Status::Error));
        assert_eq!((server.start_ns, server.duration_ns), (1_556_604_172_355_737_001, 1_431));
        assert_eq!((server.operation, client.operation), (&b"GET /vets"[..], &b"SELECT"[..]));
        assert_eq!(batch.sources[server.source as usize].service, b"pets");
        assert_eq!(batch.sources[client.source as usize].service, b"db");
        assert_eq!(
            server.attributes.json(),
            r#"{"http.method":"GET","http.status_code":"200","operation.name":"servlet.request","span.type":"web"}"#
        );
        assert_eq!(
            client.attributes.json(),
            format!(
                r#"{{"_dd.p.tid":"{HIGH}","span.kind":"client","_sampling_priority_v1":1.0,"operation.name":"mysql.query","span.type":"sql"}}"#
            )
        );
    }
}

#[test]
fn size_is_that_of_the_span_alone() {
    let (message, arena) = (message(), Bump::new());
    let batch = decode(&message, &arena).expect("sound");
    // Two heads of arrays before, and behind them the second chunk.
    let behind = b"\x91\x81\xabmeta_struct\x81\xa1x\x90".len();
    assert_eq!((batch.spans[0].size + batch.spans[1].size) as usize, message.len() - 2 - behind);
}

/// As encoders of other languages write them: nothing for any value, bytes for text, signs where there are none, floats.
#[test]
fn values_of_every_kind_are_taken() {
    let mut message = Message::default();
    message.array(1).array(1).map(9);
    message.text("service");
    message.binary(b"pets").text("name");
    write_nil(&mut message.bytes).expect("memory");
    message.text("trace_id");
    write_i64(&mut message.bytes, TRACE as i64).expect("memory");
    message.text("span_id");
    write_i32(&mut message.bytes, 7).expect("memory");
    message.text("parent_id");
    write_nil(&mut message.bytes).expect("memory");
    message.text("start");
    write_u64(&mut message.bytes, u64::MAX).expect("memory");
    message.text("duration");
    write_sint(&mut message.bytes, -3).expect("memory");
    message.text("error").real(1.0);
    message.text("metrics").map(1).text("count").number(3);
    let arena = Bump::new();
    let batch = decode(&message.bytes, &arena).expect("sound");
    let span = batch.spans[0];
    assert_eq!(batch.sources[0].service, b"pets");
    assert_eq!((span.trace_id, span.parent_id), (u128::from(TRACE).to_be_bytes(), None));
    assert_eq!((span.start_ns, span.duration_ns, span.status), (i64::MAX as u64, -3, Status::Error));
    assert_eq!((span.kind, span.attributes.json().as_str()), (Kind::Unspecified, r#"{"count":3.0}"#));
}

#[test]
fn what_is_no_payload_is_told_with_its_place() {
    let arena = Bump::new();
    let whole = [message(), vec![0xc0]].concat();
    let cases: [(&[u8], &'static str, usize); 7] = [
        (b"{}", CHUNKS, 0),
        (b"\x91\x01", CHUNK, 1),
        (b"\x91\x91\x01", "expected a span, a map of its fields", 2),
        (b"\x91\x91\x81\x01\x01", "expected a text", 3),
        (b"\x91\x91\x81\xa8trace_id\xa1x", "expected a number", 12),
        (b"\x91\x91\x81\xa4meta\x90", "expected meta, a map of texts", 8),
        (&whole, "expected the end of the message", whole.len() - 1),
    ];
    for (body, what, at) in cases {
        assert_eq!(decode(body, &arena).err(), Some(Broken::At { what, at }));
    }
    let beyond = "expected the index of a text, found one beyond the table";
    let cases: [(&[u8], &'static str, usize); 3] = [
        (b"\x90", "expected an array of two, texts and chunks", 1),
        (b"\x92\x90\x91\x91\x91\x00", "expected a span of 12 values", 5),
        (b"\x92\x90\x91\x91\x9c\x05\0\0\0\0\0\0\0\0\x80\x80\0", beyond, 6),
    ];
    for (body, what, at) in cases {
        assert_eq!(decode_with_table(body, &arena).err(), Some(Broken::At { what, at }));
    }
    let texts = [&b"\x92\xdd\0\x10\0\x01"[..], &vec![0xc0; (1 << 20) + 2]].concat();
    let text =
        [&b"\x92\x91\xdb\0\x80\0\0"[..], &vec![b'x'; 8 << 20], b"\x91\x91\x9c\0\0\0\x07\x07\0\0\0\0\x85", &[0; 12]]
            .concat();
    let long = "the texts of all spans together have more than 64 MiB; send smaller batches";
    let at = text.len() - 12 + 6;
    assert_eq!(decode_with_table(&text, &arena).err(), Some(Broken::At { what: long, at }));
    let many = "a message has more than 1048576 texts; send smaller batches";
    assert_eq!(decode_with_table(&texts, &arena).err(), Some(Broken::At { what: many, at: 6 }));
}

proptest! {
    #[test]
    fn broken_payloads(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let arena = Bump::new();
        for batch in [
            decode(&broken(&message(), at, byte, cut), &arena),
            decode_with_table(&broken(&message_with_table(), at, byte, cut), &arena),
        ].into_iter().flatten() {
            prop_assert!(batch.spans.len() as u64 + batch.rejected <= 3);
        }
    }
}
