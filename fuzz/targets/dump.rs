//! Fuzzes: folders that dyno restore reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_database::fuzz::dump(input));
