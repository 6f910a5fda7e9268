//! On a server whose truth is known, the truth must come out.

use dyno_model::Arrivals;
use dyno_units::{Nanoseconds, Seed};
use dyno_workload::ErrorClass;
use proptest::prelude::*;

use super::*;
use crate::fixture::{closed, open, reads};
use crate::{Interval, OUTCOMES, Outcomes, Phase};

mod pauses;
mod roles;
mod rows;
mod steady;

const MS: Nanoseconds = Nanoseconds::from_millis(1);

trait Times {
    fn times(self, n: u64) -> Nanoseconds;
}

impl Times for Nanoseconds {
    fn times(self, n: u64) -> Nanoseconds {
        Nanoseconds(self.0 * n)
    }
}

struct Seen {
    totals: StepTotals,
    intervals: Vec<Interval>,
    phases: Vec<(Phase, Nanoseconds)>,
}

fn simulate(spec: &StepSpec, server: &SimulatedServer) -> Seen {
    try_simulate(spec, server, 1).expect("the step runs")
}

fn try_simulate(
    spec: &StepSpec,
    server: &SimulatedServer,
    n_kinds: usize,
) -> Result<Seen, LoadError> {
    try_simulate_workload(spec, server, &reads(n_kinds))
}

fn try_simulate_workload(
    spec: &StepSpec,
    server: &SimulatedServer,
    workload: &MadeWorkload,
) -> Result<Seen, LoadError> {
    let clock = Arc::new(ManualClock::new());
    clock.advance_to(Nanoseconds::from_millis(12_345));
    let (mut intervals, mut phases) = (Vec::new(), Vec::new());
    let totals = run_simulated_step(spec, workload, server, &clock, &mut |event| match event {
        StepEvent::Connected { .. } => {}
        StepEvent::PhaseBegan { phase, at } => phases.push((phase, at)),
        StepEvent::Interval(interval) => intervals.push(interval.clone()),
    })?;
    Ok(Seen { totals, intervals, phases })
}

fn exponential(mean: Nanoseconds) -> ServiceTime {
    ServiceTime::Exponential(mean)
}

fn mean_response_ms(totals: &StepTotals) -> f64 {
    totals.measured.kinds[0].response.mean() / 1e6
}

fn outcome(totals: &StepTotals, name: &str) -> u64 {
    let idx = OUTCOMES.iter().position(|outcome| *outcome == name).expect("it is an outcome");
    totals.measured.kinds.iter().map(|kind| kind.outcomes.0[idx]).sum()
}

#[track_caller]
fn check_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= tolerance, "{what}: {found}, in theory {expected}");
}

/// Erlang's C formula, the probability that an arrival waits: `c` places, offered load `a` = λ/μ
/// (Kleinrock 1975, Queueing Systems I, section 3.5).
fn erlang_c(c: u32, a: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 0.0;
    for k in 0..c {
        sum += term;
        term *= a / f64::from(k + 1);
    }
    let waits = term * f64::from(c) / (f64::from(c) - a);
    waits / (sum + waits)
}

#[test]
fn mean_response_of_m_m_1_is_that_of_theory() {
    let spec = open(500.0, Arrivals::Poisson, 200, 400);
    let seen = simulate(&spec, &SimulatedServer::new(1, exponential(MS)));
    // 1 / (μ − λ)
    check_close("mean response, ms", mean_response_ms(&seen.totals), 2.0, 0.05);
    assert_eq!(seen.totals.measured.missed, 0);
}

#[test]
fn m_m_1_response_is_exponential() {
    let spec = open(500.0, Arrivals::Poisson, 200, 400);
    let seen = simulate(&spec, &SimulatedServer::new(1, exponential(MS)));
    let response = &seen.totals.measured.kinds[0].response;
    for quantile in [0.5, 0.9, 0.99] {
        let expected = -2e6 * f64::ln(1.0 - quantile);
        let found = response.value_at_quantile(quantile) as f64;
        check_close(&format!("quantile {quantile}, ns"), found, expected, 0.08);
    }
}

#[test]
fn mean_response_of_m_m_4_is_that_of_theory() {
    let spec = open(3000.0, Arrivals::Poisson, 400, 100);
    let seen = simulate(&spec, &SimulatedServer::new(4, exponential(MS)));
    let expected = 1.0 + erlang_c(4, 3.0) / (4.0 - 3.0);
    check_close("mean response, ms", mean_response_ms(&seen.totals), expected, 0.05);
}

#[test]
fn one_client_in_closed_loop_keeps_one_server_busy() {
    let seen = simulate(&closed(1, 10), &SimulatedServer::new(1, ServiceTime::Constant(MS)));
    let measured = &seen.totals.measured;
    assert_eq!(measured.kinds[0].outcomes.committed(), 9_999);
    assert_eq!(seen.totals.in_flight_at_end, 1);
    assert_eq!(measured.due, 10_000);
    assert!(measured.lag.is_empty());
}

#[test]
fn closed_loop_throughput_is_limited_by_clients_then_by_servers() {
    let check = |clients, expected: f64| {
        let server = SimulatedServer::new(4, exponential(MS));
        let seen = simulate(&closed(clients, 60), &server);
        let found = seen.totals.measured.committed() as f64 / 60.0;
        check_close(&format!("throughput of {clients} clients"), found, expected, 0.02);
    };
    check(1, 1000.0);
    check(3, 3000.0);
    check(4, 4000.0);
    check(64, 4000.0);
}

#[test]
fn a_stall_shows_in_response_time_and_not_in_service_time_of_others() {
    // One statement at a time: arrivals due in the stall wait in the generator.
    let spec = open(200.0, Arrivals::Constant, 1, 60);
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS))
        .with_stall(Nanoseconds::from_secs(30), Nanoseconds::SECOND);
    let seen = simulate(&spec, &server);
    let kind = &seen.totals.measured.kinds[0];
    // 200 of 12 000 arrivals are due within the stall.
    assert!(kind.response.value_at_quantile(0.999) > 900_000_000);
    assert!(kind.response.value_at_quantile(0.985) > 1_100_000);
    assert_eq!(kind.service.count_between(1_500_000, u64::MAX / 2), 1);
    assert_eq!(seen.totals.measured.missed, 0);
    assert_eq!(kind.outcomes.committed(), 12_000);
    let worst = seen.intervals.iter().max_by_key(|i| i.lag.max()).expect("there are intervals");
    assert_eq!(worst.start - seen.totals.measure_began, Nanoseconds::from_secs(31));
}

#[test]
fn a_stall_hides_from_a_closed_loop() {
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS))
        .with_stall(Nanoseconds::from_secs(30), Nanoseconds::SECOND);
    let seen = simulate(&closed(1, 60), &server);
    let response = &seen.totals.measured.kinds[0].response;
    assert_eq!(response.count_between(1_500_000, u64::MAX / 2), 1);
}

#[test]
fn under_overload_arrivals_are_missed_and_all_are_accounted_for() {
    let spec = open(2000.0, Arrivals::Poisson, 8, 20);
    let seen = simulate(&spec, &SimulatedServer::new(1, ServiceTime::Constant(MS)));
    let measured = &seen.totals.measured;
    check_close("arrivals", measured.due as f64, 40_000.0, 0.02);
    check_close("missed", measured.missed as f64, 20_000.0, 0.04);
    let sent = measured.committed() + seen.totals.in_flight_at_end;
    assert_eq!(measured.due, sent + measured.missed);
}

#[test]
fn arrivals_that_have_waited_a_minute_are_given_up() {
    // The server does 100 of 1000 a second: after 70 s the queue is longer than 60 s.
    let spec = open(1000.0, Arrivals::Constant, 1, 100);
    let seen = simulate(&spec, &SimulatedServer::new(1, ServiceTime::Constant(MS.times(10))));
    let worst = seen.totals.measured.kinds[0].response.max();
    assert!(worst < 60_100_000_000, "{worst}");
    let missed: Vec<u64> = seen.intervals.iter().map(|interval| interval.missed).collect();
    assert_eq!(missed[..60].iter().sum::<u64>(), 0);
    assert!(missed[70..99].iter().all(|missed| (850..=950).contains(missed)), "{missed:?}");
    let measured = &seen.totals.measured;
    let sent = measured.committed() + seen.totals.in_flight_at_end;
    assert_eq!(measured.due, sent + measured.missed);
}

#[test]
fn deadlocks_are_retried_under_the_first_due_time() {
    let spec = StepSpec { retries: 50, ..open(50.0, Arrivals::Constant, 50, 100) };
    let server =
        SimulatedServer::new(8, ServiceTime::Constant(MS)).with_errors(ErrorClass::Deadlock, 0.2);
    let seen = simulate(&spec, &server);
    let measured = &seen.totals.measured;
    let deadlocks = outcome(&seen.totals, "deadlock");
    assert_eq!(measured.retries, deadlocks);
    let left = seen.totals.in_flight_at_end;
    assert!(measured.committed() + left >= 4_999 && measured.missed == 0);
    check_close("deadlocks", deadlocks as f64, 5000.0 * 0.2 / 0.8, 0.1);
    // A retried transaction waited for the lost attempt, the rollback and the pause; its last
    // attempt took as long as any other.
    let kind = &measured.kinds[0];
    assert_eq!(kind.service.count_between(999_000, 1_001_000), kind.service.len());
    let retried = kind.response.count_between(3_000_000, u64::MAX / 2);
    check_close("retried transactions", retried as f64, 5000.0 * 0.2, 0.15);
    assert_eq!(
        seen.totals.error_examples.get("deadlock").map(String::as_str),
        Some("a failure was injected by the simulated server (deadlock)")
    );
}

#[test]
fn without_retries_a_deadlock_is_final() {
    let server =
        SimulatedServer::new(8, ServiceTime::Constant(MS)).with_errors(ErrorClass::Deadlock, 0.2);
    let seen = simulate(&open(50.0, Arrivals::Constant, 50, 100), &server);
    assert_eq!(seen.totals.measured.retries, 0);
    let deadlocks = outcome(&seen.totals, "deadlock");
    assert_eq!(seen.totals.measured.committed() + deadlocks, 5_000);
}

#[test]
fn outcomes_are_complete() {
    let server = SimulatedServer::new(2, exponential(MS))
        .with_errors(ErrorClass::DuplicateKey, 0.1)
        .with_errors(ErrorClass::Refused, 0.05)
        .with_errors(ErrorClass::LockTimeout, 0.1)
        .with_errors(ErrorClass::Disconnected, 0.01);
    let spec = StepSpec { retries: 1, ..closed(7, 50) };
    let seen = simulate(&spec, &server);
    let measured = &seen.totals.measured;
    let mut all = Outcomes::default();
    measured.kinds.iter().for_each(|kind| all.add(&kind.outcomes));
    let attempts = measured.due + measured.retries;
    let ended = all.committed() + all.failed();
    let open_ended = seen.totals.in_flight_at_end;
    // A retry that pauses at the end is counted, and never sent.
    assert!((ended + open_ended..=ended + open_ended + 7).contains(&attempts));
    for name in ["duplicate_key", "refused", "lock_timeout", "disconnected"] {
        assert!(outcome(&seen.totals, name) > 0, "{name}");
        assert!(seen.totals.error_examples.contains_key(name), "{name}");
    }
    let disconnected = outcome(&seen.totals, "disconnected");
    assert!(measured.reconnects >= disconnected, "{} < {disconnected}", measured.reconnects);
}

#[test]
fn statements_that_get_no_reply_run_out_of_their_time_limit() {
    let server =
        SimulatedServer::new(4, ServiceTime::Constant(MS)).with_errors(ErrorClass::TimedOut, 0.001);
    let spec = StepSpec { statement_timeout: MS.times(200), ..closed(4, 60) };
    let seen = simulate(&spec, &server);
    let timed_out = outcome(&seen.totals, "timed_out");
    assert!(timed_out > 100, "{timed_out}");
    assert!(seen.totals.measured.reconnects.abs_diff(timed_out) <= 4);
    // Each costs its client at least the limit, at most a quarter more.
    let committed = seen.totals.measured.committed() as f64;
    let lost = (4.0 * 60_000.0 - committed) / timed_out as f64;
    assert!((199.0..=262.0).contains(&lost), "{lost} ms a statement");
}

#[test]
fn clients_come_back_after_an_outage() {
    let server = SimulatedServer::new(4, ServiceTime::Constant(MS))
        .with_outage(Nanoseconds::from_secs(3), Nanoseconds::from_secs(4));
    let seen = simulate(&closed(8, 20), &server);
    let committed: Vec<u64> = seen.intervals.iter().map(Interval::committed).collect();
    assert!(committed[..3].iter().all(|n| *n > 3_900), "{committed:?}");
    assert_eq!(committed[4..7], [0, 0, 0]);
    assert!(committed[9..].iter().all(|n| *n > 3_900), "{committed:?}");
    assert_eq!(outcome(&seen.totals, "disconnected"), 8);
    assert_eq!(seen.totals.measured.reconnects, 8);
}

#[test]
fn a_server_that_stays_away_ends_the_step() {
    let server = SimulatedServer::new(4, ServiceTime::Constant(MS))
        .with_outage(Nanoseconds::from_secs(3), Nanoseconds::from_secs(3600));
    let Err(error) = try_simulate(&closed(8, 600), &server, 1) else {
        panic!("the step ran on without a server");
    };
    assert_eq!(
        error.to_string(),
        "the server went away: nothing has committed for 10 s; \
         cannot connect to the simulated server: it has an outage"
    );
}

#[test]
fn a_server_that_is_expected_to_be_away_does_not_end_the_step() {
    let server = SimulatedServer::new(4, ServiceTime::Constant(MS))
        .with_outage(Nanoseconds::from_secs(3), Nanoseconds::from_secs(20));
    let spec = StepSpec { gone_limit: None, ..closed(8, 30) };
    let committed: Vec<u64> =
        simulate(&spec, &server).intervals.iter().map(Interval::committed).collect();
    assert_eq!(committed[4..23], [0; 19]);
    assert!(committed[25..].iter().all(|n| *n > 3_900), "{committed:?}");
}

#[test]
fn a_server_that_is_not_there_is_reported_at_once() {
    let server = SimulatedServer::new(4, ServiceTime::Constant(MS))
        .with_outage(Nanoseconds::ZERO, Nanoseconds::SECOND);
    let error = try_simulate(&closed(8, 10), &server, 1).err().expect("connections are refused");
    assert_eq!(
        error.to_string(),
        "client 1 of 8: cannot connect to the simulated server: it has an outage"
    );
}

#[test]
fn impossible_steps_are_refused() {
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS));
    let check = |spec: StepSpec, expected: &str| {
        let error = try_simulate(&spec, &server, 1).err().expect("it cannot be run");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(closed(0, 1), "no clients");
    check(StepSpec { workers: 3, ..closed(2, 1) }, "3 workers for 2 clients");
    check(closed(1, 0), "no duration");
    check(open(0.0, Arrivals::Poisson, 1, 1), "offered rate is 0");
    check(open(f64::NAN, Arrivals::Poisson, 1, 1), "offered rate is NaN");
}

#[test]
fn warm_up_is_reported_apart_and_is_not_in_the_totals() {
    let spec = StepSpec { warm_up: MS.times(1500), ..closed(1, 3) };
    let seen = simulate(&spec, &SimulatedServer::new(1, ServiceTime::Constant(MS)));
    let began = Nanoseconds::from_millis(12_345);
    assert_eq!(seen.phases, [(Phase::WarmUp, began), (Phase::Measure, began + MS.times(1500))]);
    let spans: Vec<(Phase, u64)> =
        seen.intervals.iter().map(|i| (i.phase, i.length.0 / 1_000_000)).collect();
    use Phase::{Measure, WarmUp};
    assert_eq!(
        spans,
        [(WarmUp, 1000), (WarmUp, 500), (Measure, 1000), (Measure, 1000), (Measure, 1000)]
    );
    assert_eq!(seen.totals.measured.committed(), 3_000);
    assert_eq!(seen.totals.measured.length, Nanoseconds::from_secs(3));
    assert_eq!(seen.totals.measure_began, began + MS.times(1500));
    assert_eq!(seen.totals.measure_ended, began + MS.times(4500));
    assert!(!seen.totals.aborted);
}

#[test]
fn commits_are_counted_by_the_tenth_of_a_second_in_which_they_were_done() {
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS.times(30)))
        .with_stall(MS.times(1350), MS.times(400));
    let seen = simulate(&StepSpec { duration: MS.times(2250), ..closed(1, 1) }, &server);
    let bins: Vec<_> = seen.intervals.iter().map(|interval| interval.kinds[0].bins).collect();
    // Done at 30, 60, 90; 120 … 180; 210 …; 1000 belongs to the next second.
    assert_eq!(bins[0], [3, 3, 3, 4, 3, 3, 4, 3, 3, 4]);
    // One at 1350, when the stall begins; the next at 1780, 30 ms after its end.
    assert_eq!(bins[1], [3, 3, 4, 2, 0, 0, 0, 1, 3, 4]);
    assert_eq!(bins[2][3..], [0; 7]);
    let sum: u32 = bins.iter().flatten().sum();
    assert_eq!(u64::from(sum), seen.totals.measured.committed());
}

#[test]
fn drift_slows_a_server_down() {
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS)).with_drift(3600.0 / 50.0);
    let seen = simulate(&closed(1, 50), &server);
    let committed: Vec<u64> = seen.intervals.iter().map(Interval::committed).collect();
    check_close("first second", committed[0] as f64, 1000.0, 0.02);
    check_close("last second", committed[49] as f64, 500.0, 0.02);
}

#[test]
fn noise_is_autocorrelated_and_keeps_the_mean() {
    let noise = Noise { deviation: 0.1, correlation: 0.8 };
    let server = SimulatedServer::new(1, ServiceTime::Constant(MS.times(4))).with_noise(noise);
    let seen = simulate(&closed(1, 1200), &server);
    let speeds: Vec<f64> = seen.intervals.iter().map(|i| (i.committed() as f64).ln()).collect();
    let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
    let variance = speeds.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / speeds.len() as f64;
    let covariance =
        speeds.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / speeds.len() as f64;
    check_close("deviation", variance.sqrt(), 0.1, 0.15);
    check_close("correlation", covariance / variance, 0.8, 0.1);
}

#[test]
fn the_same_seed_gives_the_same_step_to_the_nanosecond() {
    let run = |seed| {
        let spec = StepSpec { seed: Seed(seed), ..open(300.0, Arrivals::Poisson, 9, 5) };
        let server = SimulatedServer::new(1, exponential(MS)).with_seed(Seed(seed));
        let totals = simulate(&spec, &server).totals;
        (totals.measured.due, totals.measured.kinds[0].response.clone())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn kinds_are_recorded_apart() {
    let server = SimulatedServer::new(8, ServiceTime::Constant(MS));
    let seen = try_simulate(&closed(4, 30), &server, 3).expect("the step runs");
    let measured = &seen.totals.measured;
    for (idx, kind) in measured.kinds.iter().enumerate() {
        let expected = (idx as f64 + 1.0) * 1e6;
        check_close("service, ns", kind.service.mean(), expected, 0.001);
        check_close("committed", kind.outcomes.committed() as f64, 20_000.0, 0.05);
    }
    let reads: u64 = (1..=3).zip(&measured.kinds).map(|(n, k)| n * k.outcomes.committed()).sum();
    assert_eq!((measured.tally.reads, measured.tally.rows_received), (reads, reads));
}

#[test]
fn ten_thousand_clients_share_a_worker() {
    let server = SimulatedServer::new(10_000, exponential(MS.times(1000)));
    let seen = simulate(&closed(10_000, 5), &server);
    check_close("committed", seen.totals.measured.committed() as f64, 50_000.0, 0.02);
}

fn add(sum: &mut Interval, other: &Interval) {
    for (mine, theirs) in sum.kinds.iter_mut().zip(&other.kinds) {
        mine.outcomes.add(&theirs.outcomes);
        mine.response.add(&theirs.response).unwrap();
        mine.service.add(&theirs.service).unwrap();
        mine.bins.iter_mut().zip(theirs.bins).for_each(|(mine, theirs)| *mine += theirs);
    }
    sum.lag.add(&other.lag).unwrap();
    sum.due += other.due;
    sum.missed += other.missed;
    sum.retries += other.retries;
    sum.tally.add(&other.tally);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn intervals_add_up_to_the_totals(
        seed: u64,
        clients in 1_usize..20,
        is_open: bool,
        warm_up_ms in 0_u64..2500,
        error_share in 0.0_f64..0.3,
    ) {
        let base = if is_open {
            open(3000.0, Arrivals::Poisson, clients, 3)
        } else {
            closed(clients, 3)
        };
        let spec = StepSpec { seed: Seed(seed), warm_up: MS.times(warm_up_ms), retries: 2, ..base };
        let server = SimulatedServer::new(2, exponential(MS))
            .with_seed(Seed(seed))
            .with_errors(ErrorClass::Deadlock, error_share);
        let Seen { totals, intervals, .. } = try_simulate(&spec, &server, 2).expect("it runs");
        let mut sum = Interval::empty(2);
        intervals.iter().filter(|i| i.phase == Phase::Measure).for_each(|i| add(&mut sum, i));
        let measured = &totals.measured;
        for (mine, theirs) in sum.kinds.iter().zip(&measured.kinds) {
            prop_assert_eq!(mine.outcomes, theirs.outcomes);
            prop_assert_eq!(&mine.response, &theirs.response);
            prop_assert_eq!(&mine.service, &theirs.service);
            prop_assert_eq!(mine.response.len(), mine.outcomes.committed());
            prop_assert_eq!(mine.bins, theirs.bins);
            let binned: u64 = mine.bins.iter().copied().map(u64::from).sum();
            prop_assert_eq!(binned, mine.outcomes.committed());
        }
        prop_assert_eq!(&sum.lag, &measured.lag);
        prop_assert_eq!(
            (sum.due, sum.missed, sum.retries, sum.tally),
            (measured.due, measured.missed, measured.retries, measured.tally)
        );
        prop_assert!(measured.missed <= measured.due);
        if is_open {
            // Each transaction has one lag, retried or not.
            prop_assert!(measured.lag.len() <= measured.due + 2 * clients as u64 + 3 * 3000);
        }
        let lengths: u64 = intervals.iter().map(|i| i.length.0).sum();
        prop_assert_eq!(lengths, (spec.warm_up + spec.duration).0);
    }
}

/// Each reading takes this long.
struct SlowToRead(Arc<ManualClock>, Nanoseconds);

impl Clock for SlowToRead {
    fn now(&self) -> Nanoseconds {
        let now = self.0.now();
        self.0.advance_to(now + self.1);
        now
    }

    fn unix_millis(&self) -> u64 {
        self.0.unix_millis()
    }

    fn sleep_until(&self, until: Nanoseconds) {
        self.0.advance_to(until);
    }
}

#[test]
fn arrivals_that_the_end_overtakes_on_their_way_to_a_client_are_missed() {
    let check = |read_us, arrivals| {
        let spec = StepSpec { duration: MS.times(50), ..open(4000.0, arrivals, 16, 1) };
        let server = SimulatedServer::new(1, ServiceTime::Constant(Nanoseconds::from_micros(100)));
        let clock = Arc::new(ManualClock::new());
        let read = Arc::new(SlowToRead(Arc::clone(&clock), Nanoseconds::from_micros(read_us)));
        let totals =
            run_with(&spec, &reads(1), &server, (&clock, read, Slice::WHOLE), &mut |_| {}).unwrap();
        let measured = &totals.measured;
        let accounted = measured.committed() + totals.in_flight_at_end + measured.missed;
        assert_eq!(measured.due, accounted, "{read_us} µs a reading, {arrivals:?}");
    };
    for read_us in 20..120 {
        check(read_us, Arrivals::Constant);
        check(read_us, Arrivals::Poisson);
    }
}
