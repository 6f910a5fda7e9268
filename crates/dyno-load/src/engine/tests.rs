//! Tests of real threads, descriptors and time, on a server in this process. They say that
//! everything is there and adds up, never that it is fast.

use std::sync::atomic::Ordering;

use super::*;
use crate::fixture::{closed, open, reads};
use crate::null_server::{KernelClock, Log, NullServer};
use crate::{Arrivals, OUTCOMES};

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

/// All clients do transactions, and every one is accounted for.
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
    // A transaction has one statement or two, 1.5 on average.
    let (least, most) = (sent.iter().min().expect("four"), sent.iter().max().expect("four"));
    assert!(*most as f64 / *least as f64 <= 1.5, "{sent:?}");
    check_all_work(&short(closed(1, 1)), server);
}

#[test]
fn lost_connections_are_replaced() {
    let check = |spec: StepSpec| {
        let n_clients = spec.load.clients();
        let server = NullServer {
            replies_before_close: 20,
            // The first reconnects fail.
            refused: n_clients..n_clients + 3,
            ..NullServer::default()
        };
        let (result, log) = run(&StepSpec { duration: MS(500), ..spec }, server);
        let totals = result.expect("the step runs");
        let measured = &totals.measured;
        let (committed, reconnects) = (measured.committed(), measured.reconnects);
        assert!(committed > 0 && reconnects > 0, "{committed}, {reconnects}");
        assert!(outcome(&totals, "disconnected") >= reconnects);
        assert!(totals.error_examples.contains_key("disconnected"));
        assert!(log.n_connects.load(Ordering::SeqCst) >= n_clients + 4);
    };
    check(StepSpec { workers: 2, ..short(closed(8, 1)) });
    check(StepSpec { workers: 1, ..short(closed(1, 1)) });
    check(short(open(2000.0, Arrivals::Poisson, 4, 1)));
}

#[test]
fn statements_without_a_reply_time_out() {
    let check = |clients, n_silent| {
        let spec = StepSpec { statement_timeout: MS(80), ..short(closed(clients, 1)) };
        let (result, _) = run(&spec, NullServer { silent: n_silent, ..NullServer::default() });
        let totals = result.expect("the step runs");
        // On a busy machine, others may be that slow as well.
        assert!(outcome(&totals, "timed_out") >= n_silent as u64);
        assert!(totals.measured.reconnects > 0);
        assert!(totals.measured.committed() > 0);
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
fn connections_that_cannot_be_had_are_told() {
    let check = |server: NullServer, expected: &str| {
        let (result, _) = run(&StepSpec { workers: 1, ..closed(4, 3600) }, server);
        assert_eq!(result.expect_err("it cannot run").to_string(), expected);
    };
    check(
        NullServer { refused: 2..3, ..NullServer::default() },
        "client 3 of 4: cannot connect to null: told to refuse",
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
