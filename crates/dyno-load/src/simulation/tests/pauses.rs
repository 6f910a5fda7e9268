//! Keying and think time, and transactions that are rolled back as designed.

use super::*;
use crate::fixture::{Reads, reading};

fn workload(keying: Nanoseconds, thinking: Nanoseconds) -> MadeWorkload {
    reading(Reads { n_kinds: 1, keying, thinking, ..Reads::default() })
}

/// On a server without delay.
fn throughput(clients: usize, workload: &MadeWorkload) -> (f64, StepTotals) {
    let server = SimulatedServer::new(1000, ServiceTime::Constant(MS));
    let totals =
        try_simulate_workload(&closed(clients, 100), &server, workload).expect("it runs").totals;
    (totals.measured.committed() as f64 / 100.0, totals)
}

#[test]
fn think_time_lowers_throughput_as_little_s_law_says() {
    let check = |clients: usize, keying_ms: u64, thinking_ms: u64| {
        let workload = workload(MS.times(keying_ms), MS.times(thinking_ms));
        let (found, totals) = throughput(clients, &workload);
        // N / (R + Z), with R = 1 ms.
        let expected = clients as f64 / (0.001 * (1 + keying_ms + thinking_ms) as f64);
        check_close(&format!("{clients}, {keying_ms}, {thinking_ms}"), found, expected, 0.02);
        // The pause is not in the response time.
        let response = &totals.measured.kinds[0].response;
        assert_eq!(response.count_between(999_000, 1_001_000), response.len());
        assert!(totals.in_flight_at_end <= clients as u64);
    };
    check(10, 0, 9);
    check(10, 9, 0);
    check(40, 15, 24);
    check(3, 0, 0);
}

#[test]
fn a_pause_of_constant_length_is_kept_to_the_nanosecond() {
    let (_, totals) = throughput(1, &workload(MS.times(9), Nanoseconds::ZERO));
    // One every 10 ms; the one due at the very end does not count.
    assert_eq!((totals.measured.committed(), totals.in_flight_at_end), (9_999, 1));
}

#[test]
fn under_open_load_there_are_no_pauses() {
    let server = SimulatedServer::new(8, ServiceTime::Constant(MS));
    let workload = workload(Nanoseconds::from_secs(1), Nanoseconds::from_secs(1));
    let spec = open(500.0, Arrivals::Constant, 8, 10);
    let totals = try_simulate_workload(&spec, &server, &workload).expect("it runs").totals;
    assert_eq!((totals.measured.committed(), totals.measured.missed), (5_000, 0));
}

#[test]
fn a_rollback_that_is_meant_is_neither_a_commit_nor_a_failure() {
    let workload = reading(Reads { n_kinds: 1, rolls_back_each: 10, ..Reads::default() });
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS));
    let totals = try_simulate_workload(&closed(1, 11), &server, &workload).expect("ok").totals;
    // Nine commits of 1 ms and a rollback of 2 ms; the last rollback is cut off.
    let outcomes = totals.measured.kinds[0].outcomes;
    assert_eq!((outcomes.committed(), outcome(&totals, "rolled_back")), (9_000, 999));
    assert_eq!(outcomes.failed(), 0);
    assert_eq!(totals.measured.kinds[0].response.len(), 9_000);
    assert_eq!(totals.measured.retries, 0);
    assert!(totals.error_examples.is_empty());
}
