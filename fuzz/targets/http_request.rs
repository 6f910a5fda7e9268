//! Fuzzes: requests to dyno serve and --metrics.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno::fuzz::http_request(input));
