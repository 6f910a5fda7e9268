//! Fuzzes: logs that become studies.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno::fuzz::capture(input));
