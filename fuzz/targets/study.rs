//! Fuzzes: study files.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_study::fuzz::study(input));
