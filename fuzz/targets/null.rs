//! Fuzzes: what clients send to the null servers.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_database::fuzz::null(input));
