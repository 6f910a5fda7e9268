//! Roles side by side, each with its own pacing and quota.

use dyno_model::{Load, Pacing, Role};

use super::*;
use crate::EndedBy;
use crate::fixture::{by_role, role, roles};

const CLOSED: Pacing = Pacing::Closed;

fn roomy() -> SimulatedServer {
    SimulatedServer::new(1000, ServiceTime::Constant(MS))
}

fn run(spec: &StepSpec, server: &SimulatedServer) -> Seen {
    let Load::Roles(all) = &spec.load else { panic!("a step with roles") };
    try_simulate_workload(spec, server, &by_role(all.len())).expect("the step runs")
}

fn commits(seen: &Seen, role: usize) -> Vec<u64> {
    seen.intervals.iter().map(|i| i.kinds[role].outcomes.committed()).collect()
}

fn lengths_ms(seen: &Seen) -> Vec<u64> {
    seen.intervals.iter().map(|i| i.length.0 / 1_000_000).collect()
}

#[test]
fn a_step_ends_when_its_quota_is_done() {
    let check = |quota: u64, expected_lengths: &[u64]| {
        let seen = run(&roles(vec![role("all", 4, CLOSED, quota)], 60), &roomy());
        assert_eq!(lengths_ms(&seen), expected_lengths);
        let totals = &seen.totals;
        assert_eq!(totals.measured.committed(), 4 * quota);
        assert_eq!((totals.measured.due, totals.in_flight_at_end), (4 * quota, 0));
        assert_eq!((totals.ended_by, totals.aborted), (EndedBy::Quota, false));
        assert_eq!(totals.measured.length, MS.times(quota));
        assert_eq!(totals.measure_ended - totals.measure_began, MS.times(quota));
        let role = &totals.roles[0];
        assert_eq!((role.name.as_ref(), role.clients), ("all", 4));
        assert_eq!((role.committed, role.unfinished), (4 * quota, 0));
    };
    // One transaction a millisecond and client; the last is done at the very end.
    check(1000, &[1000]);
    check(999, &[999]);
    check(1001, &[1000, 1]);
    check(2500, &[1000, 1000, 500]);
    check(1, &[1]);
}

#[test]
fn the_last_client_ends_the_step_and_the_others_only_themselves() {
    let fast = role("fast", 2, CLOSED, 500);
    let slow = role("slow", 1, Pacing::Constant { rate: 10.0 }, 31);
    let reader = role("reader", 1, CLOSED, None);
    let seen = run(&roles(vec![fast, slow, reader], 60), &roomy());
    // Arrival 31 of `slow` is due after 3 s.
    assert_eq!(seen.totals.measured.length, MS.times(3001));
    assert_eq!(commits(&seen, 0), [1000, 0, 0, 0]);
    assert_eq!(commits(&seen, 1), [10, 10, 10, 1]);
    let committed: Vec<_> = seen.totals.roles.iter().map(|role| role.committed).collect();
    // The reader's commit of the same moment may come before or after.
    assert!(committed[..2] == [1000, 31] && (3000..=3001).contains(&committed[2]));
    assert!(seen.totals.in_flight_at_end <= 1);
}

#[test]
fn every_role_keeps_its_own_rate() {
    let step = vec![
        role("inserter", 4, Pacing::Constant { rate: 25.0 }, 250),
        role("deleter", 4, Pacing::Constant { rate: 25.0 }, 250),
        role("query", 2, Pacing::Poisson { rate: 300.0 }, None),
    ];
    let seen = run(&roles(step, 60), &roomy());
    // The last of 4 × 250 arrivals is due 10 ms before 10 s.
    assert_eq!(seen.totals.measured.length, MS.times(9991));
    assert_eq!(seen.intervals.len(), 10);
    for role in [0, 1] {
        assert_eq!(commits(&seen, role), [100; 10], "role {role}");
        assert_eq!(seen.totals.roles[role].committed, 1000);
        // The clients of a role take turns, so arrivals spread evenly.
        assert!(seen.intervals[..9].iter().all(|i| i.kinds[role].bins == [10; 10]));
    }
    check_close("queries", seen.totals.roles[2].committed as f64, 6000.0, 0.05);
    assert_eq!(seen.totals.measured.missed, 0);
}

#[test]
fn the_two_clients_of_a_poisson_role_have_schedules_of_their_own() {
    let draw = |seed, step| {
        let pacing = Pacing::Poisson { rate: 100.0 };
        let spec = roles(vec![role("a", 1, pacing, None), role("b", 1, pacing, None)], 20);
        let seen = run(&StepSpec { seed: Seed(seed), step, ..spec }, &roomy());
        (commits(&seen, 0), commits(&seen, 1))
    };
    let (a, b) = draw(1, 0);
    assert_ne!(a, b);
    assert_eq!((a.clone(), b), draw(1, 0));
    assert_ne!(draw(1, 1).0, a);
    assert_ne!(draw(2, 0).0, a);
}

#[test]
fn a_stall_shows_in_the_response_time_of_the_paced_role_only() {
    let step = vec![
        role("inserter", 1, Pacing::Constant { rate: 100.0 }, None),
        role("query", 1, CLOSED, None),
    ];
    let server = roomy().with_stall(Nanoseconds::from_secs(5), Nanoseconds::SECOND);
    let seen = run(&roles(step, 20), &server);
    let kinds = &seen.totals.measured.kinds;
    // 100 arrivals were due in the stall; half waited for more than 0.5 s.
    let waited =
        |role: usize, ms: u64| kinds[role].response.count_between(ms * 1_000_000, u64::MAX / 2);
    assert!((45..=60).contains(&waited(0, 500)), "{}", waited(0, 500));
    assert_eq!(waited(1, 500), 1);
    assert_eq!(kinds[0].service.count_between(500_000_000, u64::MAX / 2), 1);
    // All are caught up, since a client's arrivals wait for it.
    assert_eq!((kinds[0].outcomes.committed(), seen.totals.measured.missed), (2000, 0));
    assert_eq!(seen.intervals[5].kinds[0].outcomes.committed(), 0);
    assert_eq!(seen.totals.measured.lag.len(), 2000);
}

#[test]
fn one_client_s_arrivals_do_not_go_to_another() {
    // Each takes 10 ms and is asked every 8 ms: all fall behind.
    let pacing = Pacing::Constant { rate: 125.0 };
    let server = SimulatedServer::new(1000, ServiceTime::Constant(MS.times(10)));
    let seen = run(&roles(vec![role("r", 3, pacing, None)], 10), &server);
    let measured = &seen.totals.measured;
    assert_eq!(measured.due, 3 * 1250);
    let sent = measured.committed() + seen.totals.in_flight_at_end;
    assert_eq!(measured.due, sent + measured.missed);
    check_close("committed", measured.committed() as f64, 3000.0, 0.01);
}

#[test]
fn arrivals_of_a_client_that_have_waited_a_minute_are_given_up() {
    // The server does 100 of 1000 a second.
    let pacing = Pacing::Constant { rate: 1000.0 };
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS.times(10)));
    let seen = run(&roles(vec![role("r", 1, pacing, None)], 100), &server);
    assert!(seen.totals.measured.kinds[0].response.max() < 60_100_000_000);
    let missed: Vec<u64> = seen.intervals.iter().map(|interval| interval.missed).collect();
    assert_eq!(missed[..60].iter().sum::<u64>(), 0);
    assert!(missed[70..99].iter().all(|missed| (850..=950).contains(missed)), "{missed:?}");
    let measured = &seen.totals.measured;
    assert_eq!(measured.due, measured.committed() + seen.totals.in_flight_at_end + measured.missed);
}

#[test]
fn quotas_that_are_not_done_in_time_are_reported() {
    let step = vec![
        role("inserter", 3, CLOSED, 10_000),
        role("other", 1, CLOSED, 100),
        role("query", 2, CLOSED, None),
    ];
    let seen = run(&roles(step, 4), &roomy());
    let totals = &seen.totals;
    assert_eq!((totals.ended_by, totals.aborted), (EndedBy::Limit, false));
    assert_eq!(totals.measured.length, Nanoseconds::from_secs(4));
    let unfinished: Vec<_> = totals.roles.iter().map(|role| role.unfinished).collect();
    assert_eq!(unfinished, [3, 0, 0]);
    assert_eq!(totals.roles[0].committed, 3 * 3999);
}

#[test]
fn a_step_ends_when_all_clients_have_ended_by_themselves() {
    let workload = |ends_after| {
        let reads = crate::fixture::Reads { n_kinds: 1, ends_after, ..Default::default() };
        crate::fixture::reading(reads)
    };
    let check = |spec: &StepSpec, ends_after: u64, expected: (EndedBy, u64, &[u64])| {
        let seen = try_simulate_workload(spec, &roomy(), &workload(ends_after)).expect("it runs");
        let totals = &seen.totals;
        let shown = (totals.ended_by, totals.measured.committed(), &*lengths_ms(&seen));
        assert_eq!(shown, expected);
        assert!(!totals.aborted);
    };
    let spec = crate::fixture::closed(2, 60);
    check(&spec, 700, (EndedBy::Quota, 2100, &[1000, 400]));
    check(&roles(vec![role("r", 2, CLOSED, None)], 60), 700, (EndedBy::Quota, 2100, &[1000, 400]));
    let spec = crate::fixture::closed(2, 1);
    check(&spec, 600, (EndedBy::Time, 1599, &[1000]));
    let spec = StepSpec { warm_up: Nanoseconds::SECOND, ..crate::fixture::closed(1, 60) };
    let error = try_simulate_workload(&spec, &roomy(), &workload(700)).err().expect("too early");
    assert!(error.to_string().contains("before the warm-up ended"), "{error}");
}

#[test]
fn without_quotas_a_step_of_roles_ends_by_time() {
    let seen = run(&roles(vec![role("r", 2, CLOSED, None)], 3), &roomy());
    assert_eq!(seen.totals.ended_by, EndedBy::Time);
    assert_eq!(lengths_ms(&seen), [1000, 1000, 1000]);
}

#[test]
fn what_failed_for_good_does_not_count_for_the_quota() {
    let check = |pacing| {
        let server = roomy().with_errors(ErrorClass::DuplicateKey, 0.3);
        let seen = run(&roles(vec![role("r", 2, pacing, 500)], 60), &server);
        let measured = &seen.totals.measured;
        let failed = outcome(&seen.totals, "duplicate_key");
        assert_eq!((measured.committed(), seen.totals.ended_by), (1000, EndedBy::Quota));
        check_close("failed", failed as f64, 1000.0 * 0.3 / 0.7, 0.15);
        // No arrival more than needed.
        assert_eq!((measured.due, measured.missed), (1000 + failed, 0));
    };
    check(CLOSED);
    check(Pacing::Constant { rate: 200.0 });
    check(Pacing::Poisson { rate: 200.0 });
    // More than the server can do; arrivals beyond the quota never become due.
    check(Pacing::Constant { rate: 5000.0 });
    check(Pacing::Bursts { per_burst: 100 });
}

#[test]
fn what_is_rolled_back_as_meant_does_not_count_for_the_quota() {
    let workload = crate::fixture::reading(crate::fixture::Reads {
        n_kinds: 1,
        rolls_back_each: 2,
        ..crate::fixture::Reads::default()
    });
    let spec = roles(vec![role("r", 1, Pacing::Constant { rate: 100.0 }, 100)], 60);
    let seen = try_simulate_workload(&spec, &roomy(), &workload).expect("it runs");
    assert_eq!(seen.totals.measured.committed(), 100);
    assert_eq!((seen.totals.measured.due, outcome(&seen.totals, "rolled_back")), (199, 99));
}

#[test]
fn bursts_begin_a_second_apart_and_nothing_is_caught_up() {
    let spec = roles(vec![role("r", 1, Pacing::Bursts { per_burst: 5 }, None)], 8);
    let server = roomy().with_stall(MS.times(2500), MS.times(2000));
    let seen = run(&spec, &server);
    let bins: Vec<u32> = seen.intervals.iter().flat_map(|i| i.kinds[0].bins).collect();
    let bursts: Vec<_> = bins.iter().enumerate().filter(|(_, n)| **n > 0).collect();
    // The burst of second 3 ends with the stall at 4.5 s, after more than 0.95 s; so the next one
    // follows at once, and the one after that a second later.
    assert_eq!(bursts, [0, 10, 20, 45, 55, 65, 75].map(|at| (at, if at == 45 { &10 } else { &5 })));
    let kind = &seen.totals.measured.kinds[0];
    assert_eq!(kind.response.count_between(999_000, 1_001_000), kind.response.len() - 1);
    assert!(seen.totals.measured.lag.is_empty());
}

#[test]
fn commits_of_the_warm_up_count_for_the_quota() {
    let spec = StepSpec { warm_up: MS.times(1500), ..roles(vec![role("r", 2, CLOSED, 4000)], 60) };
    let seen = run(&spec, &roomy());
    assert_eq!(lengths_ms(&seen), [1000, 500, 1000, 1000, 500]);
    assert_eq!(seen.totals.measured.length, MS.times(2500));
    assert_eq!(seen.totals.roles[0].committed, 8000);
}

#[test]
fn a_quota_that_is_done_in_the_warm_up_is_an_error() {
    let spec = StepSpec { warm_up: MS.times(3000), ..roles(vec![role("r", 2, CLOSED, 500)], 60) };
    let error = try_simulate_workload(&spec, &roomy(), &by_role(1)).err().expect("it is too short");
    assert_eq!(
        error.to_string(),
        "all clients had done what they were to do before the warm-up ended, so nothing was measured; \
         shorten the warm-up or let them do more"
    );
}

#[test]
fn a_quota_is_done_in_spite_of_an_outage() {
    let server = roomy().with_outage(Nanoseconds::from_secs(2), Nanoseconds::from_secs(3));
    let pacing = Pacing::Constant { rate: 50.0 };
    let seen = run(&roles(vec![role("r", 4, pacing, 500)], 60), &server);
    assert_eq!(seen.totals.ended_by, EndedBy::Quota);
    assert_eq!(seen.totals.measured.committed(), 2000);
    // Arrivals caught up before the end.
    assert!(seen.totals.measured.length < Nanoseconds::from_secs(11));
}

#[test]
fn impossible_roles_are_refused() {
    let check = |roles_of: Vec<Role>, expected: &str| {
        let spec = roles(roles_of, 1);
        let error = try_simulate_workload(&spec, &roomy(), &by_role(1)).err().expect("refused");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(Vec::new(), "no clients");
    check(vec![role("r", 0, CLOSED, 1)], "no clients");
    check(vec![role("r", 1, CLOSED, 0)], "role r has a quota of 0");
    check(vec![role("r", 1, Pacing::Constant { rate: 0.0 }, 1)], "role r's offered rate is 0");
    check(vec![role("r", 1, Pacing::Poisson { rate: f64::INFINITY }, 1)], "offered rate is inf");
    check(vec![role("r", 1, Pacing::Bursts { per_burst: 0 }, 1)], "bursts of 0");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_interval_is_lost_however_a_step_ends(
        seed: u64,
        clients in 1_usize..6,
        quota in 1_u64..3000,
        rate in 50.0_f64..2000.0,
        pacing in 0_usize..4,
        error_share in 0.0_f64..0.2,
    ) {
        let pacing = [
            Pacing::Closed,
            Pacing::Constant { rate },
            Pacing::Poisson { rate },
            Pacing::Bursts { per_burst: rate as u64 },
        ][pacing];
        let all = vec![role("a", clients, pacing, quota), role("b", 1, CLOSED, None)];
        let spec = StepSpec { seed: Seed(seed), retries: 1, ..roles(all, 8) };
        let server = SimulatedServer::new(3, exponential(MS))
            .with_seed(Seed(seed))
            .with_errors(ErrorClass::Deadlock, error_share);
        let seen = run(&spec, &server);
        let totals = &seen.totals;
        let lengths: u64 = seen.intervals.iter().map(|i| i.length.0).sum();
        prop_assert_eq!(Nanoseconds(lengths), totals.measured.length);
        prop_assert_eq!(totals.measure_ended - totals.measure_began, totals.measured.length);
        let committed: u64 = commits(&seen, 0).iter().sum();
        prop_assert_eq!(totals.roles[0].committed, committed);
        let is_done = committed == quota * clients as u64;
        prop_assert_eq!(totals.ended_by == EndedBy::Quota, is_done);
        prop_assert_eq!(totals.roles[0].unfinished == 0, is_done);
        prop_assert!(committed <= quota * clients as u64);
        if let EndedBy::Limit = totals.ended_by {
            prop_assert_eq!(totals.measured.length, Nanoseconds::from_secs(8));
        }
        // Due arrivals were sent, are in flight, or were missed; a retry may pause at the end.
        let measured = &totals.measured;
        let failed = outcome(totals, "deadlock");
        let ended = measured.committed() + failed + totals.in_flight_at_end + measured.missed;
        let begun = measured.due + measured.retries;
        prop_assert!((ended..=ended + clients as u64 + 1).contains(&begun), "{begun} of {ended}");
    }
}
