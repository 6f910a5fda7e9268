//! Fuzzes: records of runs.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno::fuzz::record(input));
