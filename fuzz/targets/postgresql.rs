//! Fuzzes: replies of PostgreSQL's protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_database::fuzz::postgresql(input));
