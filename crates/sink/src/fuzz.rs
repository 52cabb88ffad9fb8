//! The decoders as functions of bytes alone: what the fuzz targets in `crates/sink/fuzz` call, and the test that replays
//! their seeds. Not part of a sink that is built to be used.
//!
//! Beside not panicking, every span that a decoder gives must be fit to be counted and stored, and what a decoder
//! allocates must be in proportion to the message.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use bumpalo::Bump;
use unladen_decode::frames::Together;
use unladen_decode::newrelic::protobuf::Holds;
use unladen_decode::pinpoint::Agent;
use unladen_decode::span::{Batch, Decode, Span};
use unladen_decode::{
    azure, datadog, elastic, instana, jaeger, newrelic, otlp, pinpoint, sentry, skywalking, xray, zipkin,
};

use crate::body::{BodyError, Budget, Payload};
use crate::grpc;
use crate::h2;
use crate::inflate::{Encoding, Inflate, unpack};
use crate::store;

/// Bytes to which bodies are decompressed at most.
const LARGEST_BODY: usize = 1 << 20;
/// Memory that a decoder may take for each byte of a message.
const BYTES_PER_BYTE: usize = 100;
/// Memory that it may take for the smallest message: its first chunks.
const MIN_MEMORY_LIMIT: usize = 64 << 10;

/// A target's name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their executables and corpora.
pub const TARGETS: [Target; 24] = [
    ("otlp_protobuf", |bytes| {
        otlp_protobuf(bytes);
    }),
    ("otlp_json", |bytes| decoded(otlp::json::decode, bytes)),
    ("zipkin_json", |bytes| decoded(zipkin::json::decode, bytes)),
    ("zipkin_protobuf", |bytes| decoded(zipkin::protobuf::decode, bytes)),
    ("skywalking_protobuf", |bytes| {
        decoded(|bytes, arena| skywalking::segment::decode(Together::One(bytes), arena), bytes);
        decoded(skywalking::segment::decode_collection, bytes);
    }),
    ("skywalking_json", |bytes| {
        decoded(|bytes, arena| skywalking::json::decode(bytes, arena, true), bytes);
        decoded(|bytes, arena| skywalking::json::decode(bytes, arena, false), bytes);
    }),
    ("elastic_ndjson", |bytes| decoded(elastic::decode, bytes)),
    ("jaeger_thrift", |bytes| decoded(jaeger::thrift::decode, bytes)),
    ("jaeger_protobuf", |bytes| decoded(jaeger::model::decode, bytes)),
    ("datadog_msgpack", |bytes| {
        decoded(datadog::spans::decode, bytes);
        // A text may be used by every byte behind it.
        decoded_within(datadog::spans::decode_with_table, bytes, bytes.len() * bytes.len());
        decoded_within(datadog::streamed::decode, bytes, bytes.len() * bytes.len());
    }),
    ("datadog_losses", |bytes| {
        let _ = datadog::losses::telemetry(bytes, |_| ());
        datadog::losses::statsd(bytes, |_| ());
    }),
    ("metrics", |bytes| {
        let _ = otlp::metrics::visit(bytes, |_| ());
    }),
    ("body", decompressed),
    ("grpc_frame", |bytes| drop(grpc::unframe(bytes))),
    ("http2", h2::fuzz),
    ("log", logged),
    ("recover", recovered),
    ("sentry_envelope", |bytes| {
        decoded(|bytes, arena| sentry::spans::decode(bytes, arena, b"pets"), bytes);
        sentry::reports::visit(bytes, b"pets", |_| ());
    }),
    ("newrelic_json", |bytes| decoded(|bytes, arena| newrelic::json::decode(bytes, arena, b"pets"), bytes)),
    ("newrelic_protobuf", |bytes| {
        decoded(|bytes, arena| newrelic::protobuf::decode(Together::One(bytes), arena, Holds::One, b"pets"), bytes);
        decoded(|bytes, arena| newrelic::protobuf::decode(Together::One(bytes), arena, Holds::Many, b"pets"), bytes);
    }),
    ("pinpoint_protobuf", |bytes| {
        let _ = pinpoint::api(bytes);
        decoded(
            |bytes, arena| {
                pinpoint::decode(
                    Together::One(bytes),
                    arena,
                    Agent { service: b"pets", id: b"pets-1", apis: &HashMap::new() },
                )
            },
            bytes,
        );
    }),
    ("azure_json", |bytes| decoded(|bytes, arena| azure::decode(bytes, arena, &mut Default::default()), bytes)),
    ("instana_json", |bytes| {
        decoded(|bytes, arena| instana::decode(bytes, arena, b"17", &mut Vec::new()), bytes);
        let _ = instana::losses(bytes, |_| b"pets".to_vec(), |_| ());
    }),
    ("xray_json", |bytes| decoded(xray::decode, bytes)),
];

/// Runs one target; false if there is none of that name.
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    if let Some((_, run)) = target {
        run(bytes);
    }
    target.is_some()
}

/// Spans that an `ExportTraceServiceRequest` has, sound or not; `None` if it cannot be decoded.
pub fn otlp_protobuf(bytes: &[u8]) -> Option<u64> {
    let arena = Bump::new();
    let batch = otlp::protobuf::decode(bytes, &arena).ok()?;
    check(&batch);
    Some(batch.spans.len() as u64 + batch.rejected)
}

fn decoded(decode: Decode, bytes: &[u8]) {
    decoded_within(decode, bytes, 0);
}

/// A decoder that may take so much more memory.
fn decoded_within(decode: Decode, bytes: &[u8], more: usize) {
    let arena = Bump::new();
    let Ok(batch) = decode(bytes, &arena) else { return };
    check(&batch);
    let used = arena.allocated_bytes() + batch.spans.capacity() * size_of::<Span<'_>>();
    let limit = MIN_MEMORY_LIMIT + BYTES_PER_BYTE * bytes.len() + more;
    assert!(used <= limit, "{used} bytes of memory for a message of {}", bytes.len());
}

/// What the accounts and the store rely on.
fn check(batch: &Batch<'_>) {
    assert_eq!(batch.rejected > 0, batch.reason.is_some(), "who rejects says why");
    for span in &batch.spans {
        let source = &batch.sources[span.source as usize];
        assert!(span.trace_id != [0; 16] && span.span_id != [0; 8], "an id of zeros");
        store::fuzz::goes_through_the_log(span, source);
    }
    store::fuzz::goes_into_a_group(batch);
}

/// The first byte says how the others are compressed, and in how large pieces they come as a stream.
fn decompressed(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let encoding = match choice % 4 {
        0 => Encoding::Gzip,
        1 => Encoding::Deflate,
        2 => Encoding::Zstd,
        _ => Encoding::Identity,
    };
    let budget = Budget::new(4 * LARGEST_BODY);
    let mut body = Payload::new(&budget);
    if body.push(bytes, LARGEST_BODY).is_err() {
        return;
    }
    let whole = unpack(encoding, body, LARGEST_BODY, &budget);
    if let Ok(plain) = &whole {
        assert!(plain.bytes().len() <= LARGEST_BODY);
    }
    let streamed = streamed(encoding, bytes, usize::from(choice / 4) + 1, &budget);
    if let (Ok(whole), Ok(streamed)) = (whole, streamed) {
        assert_eq!(whole.bytes(), streamed.bytes(), "a stream is taken for what it is as a whole");
    }
}

fn streamed(encoding: Encoding, bytes: &[u8], pieces: usize, budget: &Rc<Budget>) -> Result<Payload, BodyError> {
    let mut inflate = Inflate::new(encoding)?;
    let mut out = Payload::new(budget);
    for mut piece in bytes.chunks(pieces) {
        let is_more = inflate.feed(&mut piece, &mut out, usize::MAX, LARGEST_BODY)?;
        assert!(!is_more && piece.is_empty());
    }
    inflate.finish(&mut out, LARGEST_BODY)?;
    Ok(out)
}

/// What stands in a block of the log.
fn logged(bytes: &[u8]) {
    store::fuzz::read_log(bytes);
}

/// A folder in which a sink that was killed, or a failing disk, has left the bytes; the first says as what.
fn recovered(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    // In memory where there is such a folder: nothing here needs to outlive the process.
    let parent =
        Some(Path::new("/dev/shm")).filter(|path| path.is_dir()).map_or_else(std::env::temp_dir, Path::to_owned);
    let out = parent.join(format!("unladen-sink-fuzz-{}-{:?}", std::process::id(), std::thread::current().id()));
    let spans = out.join("spans");
    let _ = fs::remove_dir_all(&out);
    let done = fs::create_dir_all(&spans).and_then(|()| match choice % 4 {
        0 => fs::write(spans.join("00001.parquet.partial"), bytes),
        1 => fs::write(spans.join("00001.parquet"), bytes),
        2 => fs::write(spans.join("spans.log"), bytes),
        _ => store::fuzz::write_log(&spans, bytes),
    });
    if done.is_ok() && crate::recover(&out).is_ok() {
        let again = crate::recover(&out);
        assert_eq!(again.ok(), Some(store::Recovered::default()), "nothing is left to be recovered");
    }
    let _ = fs::remove_dir_all(&out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every seed of a target, by name.
    fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
        let mut paths: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        paths.iter().map(|path| (path.display().to_string(), fs::read(path).expect("a seed"))).collect()
    }

    #[derive(Debug, Clone)]
    enum Change {
        Cut,
        Replace(u8),
        Insert(u8),
        Remove(usize),
        Repeat(usize),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            Just(Change::Cut),
            any::<u8>().prop_map(Change::Replace),
            any::<u8>().prop_map(Change::Insert),
            (1_usize..20).prop_map(Change::Remove),
            (1_usize..200).prop_map(Change::Repeat),
        ]
    }

    fn apply(change: &Change, at: usize, bytes: &mut Vec<u8>) {
        let end = |length: usize| (at + length).min(bytes.len());
        match change {
            Change::Cut => bytes.truncate(at),
            Change::Replace(byte) => bytes[at] = *byte,
            Change::Insert(byte) => bytes.insert(at, *byte),
            Change::Remove(length) => drop(bytes.drain(at..end(*length))),
            Change::Repeat(length) => {
                let part = bytes[at..end(*length)].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }

    proptest! {
        /// A short fuzzing of every target in every run of the tests.
        #[test]
        fn seeds_with_a_few_changes(
            choice in any::<prop::sample::Index>(),
            changes in prop::collection::vec((change(), any::<prop::sample::Index>()), 1..5),
        ) {
            for (name, run) in TARGETS {
                let seeds = seeds(name);
                let mut bytes = choice.get(&seeds).1.clone();
                for (change, at) in &changes {
                    if !bytes.is_empty() {
                        apply(change, at.index(bytes.len()), &mut bytes);
                    }
                }
                run(&bytes);
            }
        }
    }

    #[test]
    fn every_seed_is_taken_or_refused_in_peace() {
        for (name, run) in TARGETS {
            let seeds = seeds(name);
            assert!(seeds.len() >= 2, "{name} has no seeds");
            for (seed, bytes) in seeds {
                println!("{seed}");
                run(&bytes);
            }
        }
    }

    #[test]
    fn targets_are_found_by_their_names() {
        assert!(run("otlp_json", b"{}") && run("recover", b"") && !run("otlp", b""));
    }
}
