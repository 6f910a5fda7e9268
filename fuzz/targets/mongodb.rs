//! Fuzzes: replies of MongoDB's protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_database::fuzz::mongodb(input));
