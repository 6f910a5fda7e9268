//! Fuzzes: the settings of RonDB's autobench.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno::fuzz::autobench(input));
