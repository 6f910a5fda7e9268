//! Real threads, descriptors and time, on a server in this process; never asserts on speed.

use std::sync::atomic::Ordering;

use super::*;
use dyno_model::{Arrivals, Pacing};

use crate::fixture::{by_role, closed, open, reads, role, roles};
use crate::load::client_plan;
use crate::null_server::{KernelClock, Log, NullServer};
use crate::{EndedBy, OUTCOMES};

const MS: fn(u64) -> Nanoseconds = Nanoseconds::from_millis;

fn job(connector: Connector) -> Job {
    let clock = Arc::new(KernelClock);
    Job { workload: reads(2), connector, clock, abort: AbortFlag::new() }
}

fn run(spec: &StepSpec, server: NullServer) -> (Result<StepTotals, LoadError>, Arc<Log>) {
    let (connector, log) = server.start();
    (run_step(spec, &job(connector), &mut |_| {}), log)
}

fn short(spec: StepSpec) -> StepSpec {
    StepSpec { duration: MS(250), ..spec }
}

fn outcome(totals: &StepTotals, name: &str) -> u64 {
    let idx = OUTCOMES.iter().position(|outcome| *outcome == name).expect("it is an outcome");
    totals.measured.kinds.iter().map(|kind| kind.outcomes.0[idx]).sum()
}

#[track_caller]
fn check_all_work(spec: &StepSpec, server: NullServer) -> (StepTotals, Arc<Log>) {
    let (result, log) = run(spec, server);
    let totals = result.expect("the step runs");
    let measured = &totals.measured;
    assert!(measured.committed() > 0 && !totals.aborted);
    assert_eq!(measured.due, measured.committed() + totals.in_flight_at_end + measured.missed);
    let reads: u64 = (1..=2).zip(&measured.kinds).map(|(n, k)| n * k.outcomes.committed()).sum();
    assert_eq!((measured.tally.reads, measured.tally.rows_received), (reads, reads));
    assert!(totals.error_examples.is_empty(), "{:?}", totals.error_examples);
    assert_eq!(log.n_connects.load(Ordering::SeqCst), spec.load.clients());
    (totals, log)
}

#[test]
fn many_clients_share_two_workers() {
    let spec = StepSpec { workers: 2, ..short(closed(9, 1)) };
    let (totals, log) = check_all_work(&spec, NullServer::default());
    let threads: Vec<String> = log.threads.lock().expect("no panic").iter().cloned().collect();
    assert_eq!(threads, ["dyno-load-0", "dyno-load-1"]);
    assert_eq!(totals.generator.workers, 2);
    assert!(totals.generator.cpu_user + totals.generator.cpu_system > Nanoseconds::ZERO);
    assert!(totals.generator.busiest_worker > 0.0);
}

#[test]
fn a_client_alone_reads_blocking() {
    check_all_work(&short(closed(1, 1)), NullServer::default());
    let spec = StepSpec { workers: 3, ..short(closed(3, 1)) };
    check_all_work(&spec, NullServer::default());
}

#[test]
fn replies_in_pieces_are_put_together() {
    let server = NullServer { in_pieces: true, ..NullServer::default() };
    check_all_work(&short(closed(4, 1)), server.clone());
    check_all_work(&short(closed(1, 1)), server);
}

#[test]
fn statements_larger_than_the_socket_s_buffer_are_written_as_it_empties() {
    let server = NullServer { padding: 1 << 20, ..NullServer::default() };
    check_all_work(&short(closed(3, 1)), server);
}

#[test]
fn open_load_sends_what_is_due() {
    let check = |clients, workers, arrivals| {
        let spec = StepSpec { workers, ..short(open(400.0, arrivals, clients, 1)) };
        let (totals, _) = check_all_work(&spec, NullServer::default());
        if arrivals == Arrivals::Constant {
            assert_eq!(totals.measured.due, 100);
        }
        assert!(totals.measured.lag.len() <= totals.measured.due);
    };
    check(6, 2, Arrivals::Constant);
    check(6, 1, Arrivals::Poisson);
    check(2, 2, Arrivals::Constant);
}

/// With real workers; returns the intervals as well.
fn run_roles(spec: &StepSpec, server: NullServer) -> (StepTotals, Vec<Interval>) {
    let (connector, _) = server.start();
    let job = Job { workload: by_role(3), ..job(connector) };
    let mut intervals = Vec::new();
    let totals = run_step(spec, &job, &mut |event| {
        if let StepEvent::Interval(interval) = event {
            intervals.push(interval.clone());
        }
    })
    .expect("the step runs");
    (totals, intervals)
}

#[test]
fn workers_end_together_when_the_last_quota_is_done() {
    let check = |clients: [usize; 3], workers, rate, is_immediate| {
        let spec = roles(
            vec![
                role("inserter", clients[0], Pacing::Closed, 500),
                role("deleter", clients[1], Pacing::Constant { rate }, 60),
                role("query", clients[2], Pacing::Closed, None),
            ],
            3600,
        );
        let spec = StepSpec { workers, ..spec };
        let server = NullServer { is_immediate, ..NullServer::default() };
        let (totals, intervals) = run_roles(&spec, server);
        assert_eq!((totals.ended_by, totals.aborted), (EndedBy::Quota, false));
        let measured = &totals.measured;
        let committed = |role: usize| measured.kinds[role].outcomes.committed();
        assert_eq!((committed(0), committed(1)), (500 * clients[0] as u64, 60 * clients[1] as u64));
        for (idx, role) in totals.roles.iter().enumerate() {
            assert_eq!((role.clients, role.unfinished), (clients[idx], 0));
            assert_eq!(role.committed, committed(idx));
        }
        // No interval is lost, and the last one ends with the step.
        let lengths: u64 = intervals.iter().map(|interval| interval.length.0).sum();
        assert_eq!(totals.measure_began + Nanoseconds(lengths), totals.measure_ended);
        assert_eq!(measured.length, Nanoseconds(lengths));
        let reported: u64 = intervals.iter().map(Interval::committed).sum();
        assert_eq!(reported, measured.committed());
        let bins = |interval: &Interval| -> u64 {
            interval.kinds.iter().flat_map(|kind| kind.bins).map(u64::from).sum()
        };
        assert!(intervals.iter().all(|interval| bins(interval) == interval.committed()));
        // A deleter's last arrival is due after 59 gaps at the earliest.
        let least = Nanoseconds((59e9 / rate) as u64);
        assert!(measured.length >= least, "{} after {least}", measured.length);
    };
    check([4, 4, 2], 2, 100.0, false);
    check([3, 1, 1], 3, 400.0, false);
    // A worker with one client, which reads blocking, and workers without clients.
    check([1, 1, 1], 3, 50.0, false);
    check([1, 1, 1], 1, 400.0, false);
    check([2, 2, 2], 2, 400.0, true);
}

#[test]
fn clients_of_every_role_are_dealt_fairly() {
    let spec =
        roles(vec![role("a", 5, Pacing::Closed, None), role("b", 4, Pacing::Closed, None)], 1);
    for workers in 1..=9 {
        let mut n = vec![[0_usize; 2]; workers];
        for (worker, n) in n.iter_mut().enumerate() {
            let slice = Slice::WHOLE.part(worker, workers);
            for slot in 0..slice.share_of(9) {
                n[client_plan(&spec.load, slice.index + slot * slice.count).role] += 1;
            }
        }
        for (role, clients) in [5_usize, 4].into_iter().enumerate() {
            let share = clients / workers..=clients.div_ceil(workers);
            assert!(n.iter().all(|n| share.contains(&n[role])), "{workers} workers: {n:?}");
        }
    }
}

#[test]
fn a_quota_that_a_silent_server_prevents_ends_at_the_limit() {
    let spec = StepSpec {
        workers: 2,
        statement_timeout: MS(50),
        duration: MS(1500),
        ..roles(
            vec![role("stuck", 2, Pacing::Closed, 1 << 40), role("done", 2, Pacing::Closed, 10)],
            1,
        )
    };
    let (totals, _) = run_roles(&spec, NullServer { silent: 1, ..NullServer::default() });
    assert_eq!(totals.ended_by, EndedBy::Limit);
    assert_eq!((totals.roles[0].unfinished, totals.roles[1].unfinished), (2, 0));
    assert_eq!(totals.measured.length, MS(1500));
}

#[test]
fn connections_without_a_descriptor_take_turns() {
    let server = NullServer { is_immediate: true, ..NullServer::default() };
    let (_, log) = check_all_work(&short(closed(4, 1)), server.clone());
    let sent: Vec<usize> = log
        .immediate
        .lock()
        .expect("no panic")
        .iter()
        .map(|n_sent| n_sent.load(Ordering::SeqCst))
        .collect();
    // A transaction has 1.5 statements on average.
    let (least, most) = (sent.iter().min().expect("four"), sent.iter().max().expect("four"));
    assert!(*most as f64 / *least as f64 <= 1.5, "{sent:?}");
    check_all_work(&short(closed(1, 1)), server);
}

/// Until something is committed and a connection replaced: some seconds on a busy machine.
fn until_reconnected(spec: &StepSpec, server: NullServer) -> (StepTotals, Arc<Log>) {
    let (connector, log) = server.start();
    let job = job(connector);
    let (abort, mut seen) = (job.abort.clone(), (0, 0));
    let totals = run_step(spec, &job, &mut |event| {
        if let StepEvent::Interval(interval) = event {
            seen.0 += interval.committed();
            seen.1 += interval.reconnects;
            if seen.0 > 0 && seen.1 > 0 {
                abort.raise();
            }
        }
    });
    let totals = totals.expect("the step runs");
    assert!(seen.0 > 0 && seen.1 > 0, "{seen:?}");
    (totals, log)
}

#[test]
fn lost_connections_are_replaced() {
    let check = |spec: StepSpec| {
        let n_clients = spec.load.clients();
        let server = NullServer {
            replies_before_close: 20,
            refused: n_clients..n_clients + 3,
            ..NullServer::default()
        };
        let (totals, log) = until_reconnected(&spec, server);
        let reconnects = totals.measured.reconnects;
        assert!(outcome(&totals, "disconnected") >= reconnects);
        assert!(totals.error_examples.contains_key("disconnected"));
        assert!(log.n_connects.load(Ordering::SeqCst) >= n_clients + 4);
    };
    check(StepSpec { workers: 2, ..closed(8, 60) });
    check(StepSpec { workers: 1, ..closed(1, 60) });
    check(open(2000.0, Arrivals::Poisson, 4, 60));
}

#[test]
fn statements_without_a_reply_time_out() {
    let check = |clients, n_silent| {
        let spec = StepSpec { statement_timeout: MS(80), ..closed(clients, 60) };
        let server = NullServer { silent: n_silent, ..NullServer::default() };
        let (totals, _) = until_reconnected(&spec, server);
        // On a busy machine others may be as slow.
        assert!(outcome(&totals, "timed_out") >= n_silent as u64);
    };
    check(1, 1);
    check(4, 3);
}

#[test]
fn a_silent_server_does_not_hold_up_the_end() {
    let check = |clients| {
        let spec = StepSpec { statement_timeout: MS(10_000), ..short(closed(clients, 1)) };
        let (connector, _) = NullServer { silent: 100, ..NullServer::default() }.start();
        let job = job(connector);
        let abort = job.abort.clone();
        let mut n_intervals = 0;
        let totals = run_step(&spec, &job, &mut |event| {
            if let StepEvent::Interval(_) = event {
                n_intervals += 1;
                abort.raise();
            }
        })
        .expect("the step runs");
        assert_eq!((n_intervals, totals.in_flight_at_end), (1, clients as u64));
        assert!(!totals.aborted, "it was over when the flag was raised");
    };
    check(1);
    check(3);
}

#[test]
fn a_raised_flag_stops_the_step() {
    let (connector, _) = NullServer::default().start();
    let job = job(connector);
    let abort = job.abort.clone();
    let spec = StepSpec { workers: 2, warm_up: MS(50), ..closed(4, 3600) };
    let mut phases = Vec::new();
    let totals = run_step(&spec, &job, &mut |event| {
        if let StepEvent::PhaseBegan { phase, .. } = event {
            phases.push(phase);
            if phase == Phase::Measure {
                abort.raise();
            }
        }
    })
    .expect("the load had begun");
    assert!(totals.aborted);
    assert_eq!(phases, [Phase::WarmUp, Phase::Measure]);
    assert_eq!(totals.measured.length, totals.measure_ended - totals.measure_began);
}

#[test]
fn a_flag_raised_before_there_are_connections_is_an_error() {
    let (connector, _) = NullServer::default().start();
    let job = job(connector);
    job.abort.raise();
    let error = run_step(&closed(2, 1), &job, &mut |_| {}).expect_err("nothing has run");
    assert_eq!(error.to_string(), "stopped while the connections were opened");
}

#[test]
fn connections_that_cannot_be_had_are_reported() {
    let check = |server: NullServer, expected: &str| {
        let (result, _) = run(&StepSpec { workers: 1, ..closed(4, 3600) }, server);
        assert_eq!(result.expect_err("it cannot run").to_string(), expected);
    };
    check(
        NullServer { refused: 2..3, ..NullServer::default() },
        "client 3 of 4: cannot connect to null: connections are refused",
    );
    check(
        NullServer { refuses_prepare: true, ..NullServer::default() },
        "client 1 of 4: cannot prepare its statements: no such table (42)",
    );
}

#[test]
fn workers_are_bound_to_cpus_that_exist() {
    let first = (0..CpuSet::MAX_CPU)
        .find(|cpu| rustix::thread::sched_getaffinity(None).is_ok_and(|set| set.is_set(*cpu)))
        .expect("this thread may run somewhere");
    let spec = StepSpec { cpus: vec![first as u32], ..short(closed(2, 1)) };
    check_all_work(&spec, NullServer::default());
    let (result, _) = run(&StepSpec { cpus: vec![5000], ..closed(1, 1) }, NullServer::default());
    let error = result.expect_err("there is no such CPU");
    assert_eq!(error.to_string(), "cannot bind a worker to CPU 5000: there is no such CPU");
}

#[test]
fn generators_with_slices_run_a_step_as_one() {
    let spec = StepSpec { workers: 1, ..short(open(400.0, Arrivals::Constant, 6, 1)) };
    let merged = |n: usize| {
        let mut merge = crate::StepMerge::new(&spec, Nanoseconds::ZERO, n, 2);
        for index in 0..n {
            let (connector, log) = NullServer::default().start();
            let (job, slice) = (job(connector), Slice { index, count: n });
            let (mut idx, mut began) = (0, Nanoseconds::ZERO);
            let mut observe = |event: StepEvent<'_>| {
                if let StepEvent::Interval(interval) = event {
                    let part = crate::IntervalPart::of(interval);
                    merge
                        .add((index, job.clock.now()), (idx, &part), &mut |_| {})
                        .expect("it comes in its turn");
                    idx += 1;
                }
            };
            let mut begin = |_| {
                began = job.clock.now() + MS(50);
                Ok(began)
            };
            let totals = run_slice(&spec, &job, slice, &mut begin, &mut observe);
            let totals = totals.expect("the slice runs");
            assert_eq!(totals.measure_began, began);
            assert_eq!(log.n_connects.load(Ordering::SeqCst), slice.share_of(6));
            merge.end(&crate::SliceEnd::of(&totals)).expect("it was counted");
        }
        merge.finish().expect("all have ended")
    };
    let (one, three) = (merged(1), merged(3));
    assert_eq!((one.measured.due, three.measured.due), (100, 100));
    assert_eq!((one.roles[0].clients, three.roles[0].clients), (6, 6));
    assert_eq!((one.generator.workers, three.generator.workers), (1, 3));
    for totals in [one, three] {
        let committed: u64 =
            totals.measured.kinds.iter().map(|kind| kind.outcomes.committed()).sum();
        assert_eq!(committed + totals.in_flight_at_end + totals.measured.missed, 100);
        let times: u64 = totals.measured.kinds.iter().map(|kind| kind.response.len()).sum();
        assert_eq!((times, totals.measured.lag.len()), (committed, 100 - totals.measured.missed));
    }
}

#[test]
fn slices_that_cannot_be_run_are_refused() {
    let (connector, _) = NullServer::default().start();
    let job = job(connector);
    let check = |spec: &StepSpec, slice: Slice, part: &str| {
        let mut begin = |_| Ok(Nanoseconds::ZERO);
        let error = run_slice(spec, &job, slice, &mut begin, &mut |_| {}).unwrap_err();
        assert!(error.0.contains(part), "{error}");
    };
    let third = Slice { index: 2, count: 3 };
    check(&closed(2, 1), third, "at least one client");
    check(&StepSpec { workers: 3, ..closed(6, 1) }, third, "3 workers of generator 3 of 3");
    let steady = StepSpec { until_steady: Some(MS(5000)), ..closed(6, 9) };
    check(&steady, third, "end by time");
    check(&roles(vec![role("r", 6, Pacing::Closed, None)], 1), third, "have no roles");
}
