//! Fuzzes: answers of ClickHouse.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_database::fuzz::clickhouse(input));
