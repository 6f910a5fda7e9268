//! Fuzzes: options of dyno sysbench.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno::fuzz::sysbench_options(input));
