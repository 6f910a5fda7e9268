//! Fuzzes: scripts of pgbench.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_pgbench::fuzz::pgbench_script(input));
