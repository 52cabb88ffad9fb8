//! Payloads that a broken or hostile sender may send, by protocol: what each is answered with, and what it adds to the counters.

use std::io::Write;

use flate2::Compression;
use unladen_decode::wire::put_bytes;

use crate::datadog;
use crate::senders::{METADATA, Way, elastic_event, field, framed};
use crate::support::gzip;

pub(crate) const LARGEST: usize = 16 << 20;
const TRACE: [u8; 16] = [7; 16];

/// What an answer should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// Taken as a whole.
    Taken,
    /// Refused for good, by HTTP status or gRPC's, saying this.
    Refused(u16, &'static str, &'static str),
}

/// What a case adds to the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Adds {
    pub(crate) undecodable: u64,
    pub(crate) rejected: u64,
    pub(crate) received: u64,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Vec<u8>,
    pub(crate) expect: Expect,
    pub(crate) adds: Adds,
}

fn case(name: &'static str, body: Vec<u8>, expect: Expect, adds: Adds) -> Case {
    Case { name, headers: Vec::new(), body, expect, adds }
}

pub(crate) const UNDECODABLE: Adds = Adds { undecodable: 1, rejected: 0, received: 0 };
pub(crate) const ONE: Adds = Adds { undecodable: 0, rejected: 0, received: 1 };

/// Puts a message into the frame that its way wants.
fn sent(way: Way, message: Vec<u8>) -> Vec<u8> {
    if way.is_grpc() { framed(&message) } else { message }
}

/// The sound message of one span, without gRPC's frame.
fn message(way: Way) -> Vec<u8> {
    let body = way.body(&[TRACE], 1);
    if way.is_grpc() { body[5..].to_vec() } else { body }
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = text.windows(from.len()).position(|window| window == from).expect("it is there");
    [&text[..at], to, &text[at + from.len()..]].concat()
}

/// What is the same for all.
pub(crate) fn general(way: Way) -> Vec<Case> {
    let sound = message(way);
    let broken = Expect::Refused(400, "3", "this is no");
    // A stream of events is not broken by a broken line; the error names it.
    let cut = match way {
        Way::Elastic => {
            let adds = Adds { rejected: 1, ..Adds::default() };
            let end = sound.len() - 3;
            case("cut", sound[..end].to_vec(), Expect::Refused(400, "", "a line is not a JSON object"), adds)
        }
        _ => case("cut", sent(way, sound[..sound.len() - 1].to_vec()), broken, UNDECODABLE),
    };
    let mut cases = vec![cut, case("noise", sent(way, b"\xff\xfe\xfd\xfc and more".to_vec()), broken, UNDECODABLE)];
    let name = |way: Way| match way {
        Way::OtlpGrpc | Way::OtlpHttp => &b"GET /vets"[..],
        Way::ZipkinJson | Way::ZipkinProtobuf => b"get /vets",
        Way::SkywalkingGrpc | Way::SkywalkingHttp => b"GET:/vets",
        _ => b"GET /vets",
    };
    let odd = replaced(&sound, name(way), b"\xff\xfe\x80 vets/");
    cases.push(case("invalid UTF-8", sent(way, odd), Expect::Taken, ONE));
    let large = Expect::Refused(413, "8", "send smaller batches");
    cases.push(case("too large", sent(way, vec![b' '; LARGEST + 1]), large, UNDECODABLE));
    let zeros = vec![b' '; 64 << 20];
    if way.is_grpc() {
        let mut bomb = framed(&gzip(&zeros));
        bomb[0] = 1;
        let headers = vec![("grpc-encoding", "gzip")];
        cases.push(Case { headers, ..case("gzip bomb", bomb, large, UNDECODABLE) });
        let lie = [&[0][..], &u32::MAX.to_be_bytes(), b"short"].concat();
        let short = if way.is_streamed() { large } else { Expect::Refused(0, "13", "shorter than its prefix") };
        cases.push(case("a length that lies", lie, short, UNDECODABLE));
        cases.push(case("no frame", vec![9; 3], Expect::Refused(0, "13", "ends"), UNDECODABLE));
    } else {
        let zlib = {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&zeros).and_then(|()| encoder.finish()).expect("writing to memory")
        };
        let zstd = zstd::bulk::compress(&zeros, 1).expect("writing to memory");
        for (name, encoding, bomb) in
            [("gzip bomb", "gzip", gzip(&zeros)), ("deflate bomb", "deflate", zlib), ("zstd bomb", "zstd", zstd)]
        {
            assert!(bomb.len() < 1 << 20, "{name}");
            let headers = vec![("content-encoding", encoding)];
            cases.push(Case { headers, ..case(name, bomb, large, UNDECODABLE) });
        }
        let headers = vec![("content-encoding", "gzip")];
        let scrap = Expect::Refused(400, "", "cannot be decompressed");
        cases.push(Case { headers, ..case("no gzip", sound, scrap, UNDECODABLE) });
    }
    cases
}

/// Ids of the wrong length, time running backwards, a million attributes, values in values without end.
pub(crate) fn particular(way: Way) -> Vec<Case> {
    let sound = message(way);
    let rejected = Adds { rejected: 1, ..Adds::default() };
    let million = 1_000_000;
    let mut cases = Vec::new();
    let mut add = |name, message, expect, adds| cases.push(case(name, sent(way, message), expect, adds));
    let deep = |inner: &str| [inner.as_bytes(), &vec![b'['; 100_000]].concat();
    let broken = Expect::Refused(400, "3", "nested too deeply");
    let hex = "07".repeat(16);
    match way {
        Way::OtlpGrpc | Way::OtlpHttp => {
            let wrap = |span: Vec<u8>| field(1, &field(2, &field(2, &span)));
            let ids = [field(1, &TRACE), field(2, &[1; 8])].concat();
            add(
                "ids of the wrong length",
                wrap([field(1, &[1; 15]), field(2, &[1; 8])].concat()),
                Expect::Taken,
                rejected,
            );
            let mut back = ids.clone();
            back.extend([&[0x39][..], &u64::MAX.to_le_bytes(), &[0x41], &[0; 8]].concat());
            add("time running backwards", wrap(back), Expect::Taken, ONE);
            let mut many = [field(1, &TRACE), field(2, &[2; 8])].concat();
            (0..million).for_each(|number: u32| put_bytes(&mut many, 9, &field(1, &number.to_le_bytes())));
            add("a million attributes", wrap(many), Expect::Taken, ONE);
            let mut nested = field(1, b"x");
            (0..2_000).for_each(|_| nested = field(5, &field(1, &nested)));
            let attribute = [field(1, b"deep"), field(2, &nested)].concat();
            let deep = [field(1, &TRACE), field(2, &[3; 8]), field(9, &attribute)].concat();
            add("deep nesting", wrap(deep), Expect::Taken, ONE);
        }
        Way::OtlpJson => {
            let text = String::from_utf8(sound).expect("JSON");
            add("ids of the wrong length", text.replace(&hex, "0707").into(), Expect::Taken, rejected);
            let back = text.replace("\"endTimeUnixNano\":\"17", "\"endTimeUnixNano\":\"1").replace("0001\"", "0002\"");
            add("time running backwards", back.into(), Expect::Taken, ONE);
            let many = vec![r#"{"key":"","x":{}}"#; 900_000].join(",");
            let many =
                text.replace("\"attributes\":[{\"key\":\"http", &format!("\"attributes\":[{many},{{\"key\":\"http"));
            add("a million attributes", many.replace("0001\"", "0003\"").into(), Expect::Taken, ONE);
            add("deep nesting", deep("{\"x\":"), broken, UNDECODABLE);
        }
        Way::ZipkinJson => {
            let text = String::from_utf8(sound).expect("JSON");
            add("ids of the wrong length", text.replace(&hex, &"7".repeat(33)).into(), Expect::Taken, rejected);
            let back = text.replace("\"duration\":1000", "\"duration\":-1").replace("0001\"", "0002\"");
            add("time running backwards", back.into(), Expect::Taken, ONE);
            let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
            let many = text.replace("\"tags\":{", &format!("\"tags\":{{{many}")).replace("0001\"", "0003\"");
            add("a million attributes", many.into(), Expect::Taken, ONE);
            add("deep nesting", deep("[{\"x\":"), broken, UNDECODABLE);
        }
        Way::ZipkinProtobuf => {
            let ids = [field(1, &[1; 17]), field(3, &[1; 8])].concat();
            add("ids of the wrong length", field(1, &ids), Expect::Taken, rejected);
            let mut many = [field(1, &TRACE), field(3, &[2; 8])].concat();
            (0..million).for_each(|number: u32| put_bytes(&mut many, 11, &field(1, &number.to_le_bytes())));
            add("a million attributes", field(1, &many), Expect::Taken, ONE);
        }
        Way::SkywalkingGrpc => {
            let names = [field(1, b"trace"), field(2, b"segment")].concat();
            add("no ids", field(3, &[]), Expect::Taken, rejected);
            add("time running backwards", [names.clone(), field(3, &[0x18, 9, 0x20, 1])].concat(), Expect::Taken, ONE);
            let mut many = Vec::new();
            (0..million).for_each(|number: u32| put_bytes(&mut many, 12, &field(1, &number.to_le_bytes())));
            add(
                "a million attributes",
                [field(2, b"many"), field(1, b"t"), field(3, &many)].concat(),
                Expect::Taken,
                ONE,
            );
            let small = [names, [0x1a, 0].repeat(1_000_000)].concat();
            let adds = Adds { rejected: 1_000_000 - 65_536, received: 65_536, ..Adds::default() };
            add("a million spans of two bytes", small, Expect::Taken, adds);
        }
        Way::SkywalkingHttp => {
            let text = String::from_utf8(sound).expect("JSON");
            add("no ids", text.replace(&hex, "").into(), Expect::Taken, rejected);
            let small = vec!["{}"; 1_000_000].join(",");
            let small = format!(r#"[{{"traceId":"t","traceSegmentId":"u","spans":[{small}]}}]"#);
            let adds = Adds { rejected: 1_000_000 - 65_536, received: 65_536, ..Adds::default() };
            add("a million spans of two bytes", small.into(), Expect::Taken, adds);
            add("deep nesting", deep("[{\"x\":"), broken, UNDECODABLE);
        }
        Way::Elastic => {
            let refused = |text| Expect::Refused(400, "", text);
            let event = elastic_event(&hex, 5);
            let short = format!("{METADATA}{}", event.replace(&hex, "07"));
            add("ids of the wrong length", short.into(), refused("trace_id is not 32"), rejected);
            let back = format!("{METADATA}{}", event.replace("\"duration\":1.0", "\"duration\":-1e300"));
            add("time running backwards", back.into(), Expect::Taken, ONE);
            let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
            let event = elastic_event(&hex, 6).replace("\"tags\":{", &format!("\"tags\":{{{many}"));
            add("a million attributes", format!("{METADATA}{event}").into(), Expect::Taken, ONE);
            let nested = [METADATA.as_bytes(), &deep("{\"span\":")].concat();
            add("deep nesting", nested, refused("a line is not a JSON object"), rejected);
            add(
                "a million broken lines",
                format!("{METADATA}{}", "x\n".repeat(1_000_000)).into(),
                refused("a line"),
                Adds { rejected: 1_000_000, ..Adds::default() },
            );
        }
        Way::JaegerThrift => {
            let zeros = replaced(&sound, &[7; 8], &[0; 8]);
            let zeros = replaced(&zeros, &[7; 8], &[0; 8]);
            add("ids of zeros", zeros, Expect::Taken, rejected);
            let mut endless = vec![15, 0, 2, 12];
            endless.extend(i32::MAX.to_be_bytes());
            endless.extend([0; 1_000]);
            add("a list without end", endless, Expect::Refused(400, "", "ends in the middle"), UNDECODABLE);
            let deep = [12, 0, 9].repeat(100_000);
            add("deep nesting", deep, broken, UNDECODABLE);
        }
        Way::JaegerGrpc => {
            let ids = [field(1, &[1; 17]), field(2, &[1; 8])].concat();
            add("ids of the wrong length", field(1, &field(1, &ids)), Expect::Taken, rejected);
            let mut many = [field(1, &TRACE), field(2, &[2; 8])].concat();
            (0..million).for_each(|number: u32| put_bytes(&mut many, 8, &field(1, &number.to_le_bytes())));
            add("a million attributes", field(1, &field(1, &many)), Expect::Taken, ONE);
        }
        Way::Sentry | Way::Azure | Way::Newrelic | Way::Instana => {
            let all = match way {
                Way::Sentry => crate::sentry::hostile(&hex),
                Way::Azure => crate::azure::hostile(&hex),
                Way::Instana => crate::instana::hostile(&hex),
                _ => crate::newrelic::hostile(&hex),
            };
            all.into_iter().for_each(|(name, body, expect, adds)| add(name, body.into(), expect, adds));
        }
        Way::Datadog | Way::DatadogTable | Way::DatadogStreamed | Way::NewrelicStreamed | Way::Pinpoint => {
            let cases = match way {
                Way::NewrelicStreamed => crate::newrelic::hostile_streamed(&hex),
                Way::Pinpoint => crate::pinpoint::hostile(&TRACE),
                Way::DatadogStreamed => datadog::hostile_streamed(),
                _ => datadog::hostile(way == Way::DatadogTable),
            };
            cases.into_iter().for_each(|(name, message, expect, adds)| add(name, message, expect, adds));
        }
    }
    cases
}
