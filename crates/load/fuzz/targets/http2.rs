//! HTTP/2 from anybody, cut up in any way.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| unladen_load::fuzz::http2(input));
