//! Fuzzes: messages between a controller and its agents.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dyno_lab::fuzz::agent_messages(input));
