use proptest::prelude::*;

use super::*;
use crate::testing::{broken, message};
use crate::wire::{put_bytes, put_number, put_varint};

const START: u64 = 1_795_712_400_000;

fn apis() -> HashMap<i32, Box<[u8]>> {
    [(3, &b"Tomcat Servlet Process"[..]), (-4, b"query()")].map(|(number, name)| (number, name.into())).into()
}

fn with<T>(run: impl FnOnce(Agent<'_>) -> T) -> T {
    run(Agent { service: b"pets", id: b"pets-1", apis: &apis() })
}

fn fixed(field: u32, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&number.to_le_bytes());
    out
}

fn number(field: u32, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, field, number);
    out
}

fn nested(field: u32, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, field, &parts.concat());
    out
}

/// An event with a sequence and a depth, which starts so many ms after the one before; an `api` of 7 is −4.
fn event(sequence: u64, depth: u64, delay: u64, more: &[u8]) -> Vec<u8> {
    [number(1, sequence), number(2, depth), number(3, delay), number(4, 1), number(10, 7), more.to_vec()].concat()
}

fn transaction(agent: &[u8]) -> Vec<u8> {
    nested(2, &[&message(&[(1, agent)]), &number(2, 0x0123_4567_89ab_cdef), &number(3, u64::MAX - 1)])
}

fn span(transaction: &[u8], events: &[Vec<u8>]) -> Vec<u8> {
    let accepted = message(&[(1, b"/vets"), (2, b"127.0.0.1:80"), (3, b"127.0.0.2")]);
    let status = nested(10, &[&number(1, 46), &nested(2, &[&number(3, 200)])]);
    let mut parts = vec![
        number(1, 1),
        transaction.to_vec(),
        fixed(3, 2),
        fixed(4, 1),
        number(5, START),
        number(6, 12),
        number(7, 3),
    ];
    parts.extend([nested(9, &[&accepted]), status]);
    parts.extend(events.iter().map(|event| nested(13, &[event])));
    nested(1, &[&parts.concat()])
}

#[test]
fn a_span_and_the_tree_of_its_events() {
    let database =
        [number(5, 2 * 2_502), nested(12, &[&nested(1, &[&message(&[(2, b"db:5432"), (3, b"pets")])])])].concat();
    let called = nested(12, &[&nested(1, &[&fixed(1, 9)])]);
    let events =
        [event(0, 1, 1, &[]), event(1, 2, 2, &database), event(2, 0, 3, &nested(11, &[])), event(3, 1, 4, &called)];
    let (arena, body) = (Bump::new(), span(&transaction(OF_LOAD), &events));
    let batch = with(|agent| decode(Together::One(&body), &arena, agent)).expect("sound");
    assert_eq!(batch.sources, [Source { service: b"pets", instance: Some(b"pets-1") }]);
    let [server, method, query, failed, call] = batch.spans[..] else { panic!("five spans: {:?}", batch.spans) };
    let trace = [&0x0123_4567_89ab_cdef_u64.to_be_bytes()[..], &(u64::MAX - 1).to_be_bytes()].concat();
    assert!(batch.spans.iter().all(|span| span.trace_id[..] == trace));
    assert_eq!((server.span_id, server.parent_id), (2_u64.to_be_bytes(), Some(1_u64.to_be_bytes())));
    let parents = [method, query, failed, call].map(|event| event.parent_id);
    let expected = [server.span_id, method.span_id, method.span_id, server.span_id].map(Some);
    assert_eq!(parents, expected);
    let starts = [server, method, query, failed, call].map(|span| span.start_ns / 1_000_000 - START);
    assert_eq!(starts, [0, 1, 3, 6, 10]);
    let kinds = [server, method, query, failed, call].map(|span| span.kind);
    assert_eq!(kinds, [Kind::Server, Kind::Internal, Kind::Client, Kind::Internal, Kind::Client]);
    assert_eq!((failed.status, call.status, server.status), (Status::Error, Status::Unset, Status::Unset));
    assert_eq!((server.operation, query.operation), (&b"Tomcat Servlet Process"[..], &b"query()"[..]));
    assert_eq!((server.duration_ns, query.duration_ns), (12_000_000, 1_000_000));
    let expected = concat!(
        r#"{"url.path":"/vets","server.address":"127.0.0.1:80","client.address":"127.0.0.2","#,
        r#""http.response.status_code":200}"#
    );
    assert_eq!(server.attributes.json(), expected);
    assert_eq!(query.attributes.json(), r#"{"server.address":"db:5432","peer.service":"pets"}"#);
}

#[test]
fn chunks_go_on_where_their_span_is_or_beside_it() {
    let chunk = |more: &[u8]| {
        let of = [transaction(OF_LOAD), fixed(3, 2), number(7, START), more.to_vec()].concat();
        nested(2, &[&of, &nested(5, &[&event(0, 1, 1, &[])]), &nested(5, &[&event(1, 5, 0, &[])])])
    };
    let beside = |sequence| chunk(&nested(8, &[&number(1, 4), &number(2, sequence)]));
    let messages = [span(&transaction(OF_LOAD), &[]), chunk(&[]), beside(1), beside(2)];
    let framed =
        messages.iter().flat_map(|message| [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat());
    let (arena, body) = (Bump::new(), framed.collect::<Vec<_>>());
    let batch = with(|agent| decode(Together::Framed(&body), &arena, agent)).expect("sound");
    let mut ids: Vec<_> = batch.spans.iter().map(|span| span.span_id).collect();
    assert_eq!(ids.len(), 7);
    for pair in batch.spans[1..].chunks(2) {
        let [outer, inner] = pair else { panic!("pairs") };
        assert_eq!((outer.parent_id, inner.parent_id), (Some(2_u64.to_be_bytes()), Some(outer.span_id)));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 7, "each its own");
}

#[test]
fn traces_of_others_and_none() {
    let arena = Bump::new();
    let ids = [&b"other"[..], b"pets-1", b""].map(|agent| {
        let body = span(&transaction(agent), &[event(0, 1, 0, &[])]);
        with(|agent| decode(Together::One(arena.alloc_slice_copy(&body)), &arena, agent)).expect("sound").spans[0]
            .trace_id
    });
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[1], ids[2], "the agent's own id is left out");
    let body = span(&[], &[event(0, 1, 0, &[])]);
    let batch = with(|agent| decode(Together::One(&body), &arena, agent)).expect("sound");
    assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (0, 2, Some(NO_TRACE)));
}

#[test]
fn methods_have_numbers_and_names() {
    let body = [number(1, (-4_i32) as u64), message(&[(2, b"query()")]), number(3, 17)].concat();
    assert_eq!(api(&body).expect("sound"), (-4, &b"query()"[..]));
    assert!(api(&[8]).is_err());
    let (arena, body) = (Bump::new(), span(&transaction(OF_LOAD), &[]));
    let apis = HashMap::new();
    let batch = decode(Together::One(&body), &arena, Agent { service: b"", id: b"", apis: &apis }).expect("sound");
    assert_eq!(batch.spans[0].operation, b"api 3");
}

proptest! {
    #[test]
    fn broken_spans(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let body = span(&transaction(OF_LOAD), &[event(0, 1, 0, &[]), event(1, 900, 0, &[])]);
        let body = broken(&body, at, byte, cut);
        let _ = with(|agent| decode(Together::One(&body), &Bump::new(), agent).is_ok());
    }
}
