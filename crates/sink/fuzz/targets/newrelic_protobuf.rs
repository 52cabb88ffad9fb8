//! Fuzz target: see `unladen_sink::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    unladen_sink::fuzz::run("newrelic_protobuf", bytes);
});
