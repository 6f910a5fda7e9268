//! Fuzzes: other tools' output.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno::fuzz::import(input));
