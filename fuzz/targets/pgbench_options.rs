//! Fuzzes: options of dyno pgbench.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno::fuzz::pgbench_options(input));
