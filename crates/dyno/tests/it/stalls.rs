//! Stalls made by the test: a stopped server, a full redo log.

use std::sync::mpsc;
use std::time::Duration;

use dyno_units::Clock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::foreign::TestClock;
use crate::support::{Workbench, server_pid, trial_folder};

/// A busy machine can disturb a load.
const ATTEMPTS: usize = 4;

/// As known to the test.
#[derive(Debug)]
struct Stop {
    /// In seconds since the measurement phase began.
    start_s: f64,
    length_s: f64,
}

/// Returns the time of the stop and the stalls found.
fn stop_for_a_second(product: &str) -> (Stop, Vec<Value>) {
    let bench = Workbench::new();
    let mut running = bench.start(&[
        "bench",
        "oltp_point_select",
        "--on",
        product,
        "--rate",
        "2000",
        "--clients",
        "4",
        "--table-size",
        "2000",
        "--warm-up",
        "1s",
        "--duration",
        "9s",
        "--out",
        "record",
    ]);
    running.wait_for(&["measuring"]);
    let clock = TestClock::start();
    let family = family(server_pid(&trial_folder(&bench.path("record"), 1)));
    wait(Duration::from_millis(3_700));
    let stopped = Stopped::new(family, clock.as_ref());
    wait(Duration::from_secs(1));
    let stop = stopped.go_on(clock.as_ref());
    assert_eq!(running.end(), 0);
    (stop, stalls(&bench))
}

/// The time itself is what the test needs.
fn wait(time: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    assert_eq!(receiver.recv_timeout(time), Err(mpsc::RecvTimeoutError::Timeout));
}

fn family(pid: i32) -> Vec<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let children = children.split_whitespace().map(|child| child.parse().unwrap());
    std::iter::once(pid).chain(children).filter_map(Pid::from_raw).collect()
}

/// Continued on drop, also when a test fails.
struct Stopped {
    family: Vec<Pid>,
    since_s: f64,
}

impl Stopped {
    fn new(family: Vec<Pid>, clock: &dyn Clock) -> Stopped {
        let stopped = Stopped { family, since_s: clock.now().as_secs_f64() };
        stopped.signal(Signal::STOP);
        stopped
    }

    /// Returns when they did not run.
    fn go_on(self, clock: &dyn Clock) -> Stop {
        let start_s = self.since_s;
        let length_s = clock.now().as_secs_f64() - start_s;
        drop(self);
        Stop { start_s, length_s }
    }

    /// A child may have ended.
    fn signal(&self, signal: Signal) {
        for pid in &self.family {
            let _ = kill_process(*pid, signal);
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
    }
}

/// From the findings.
fn stalls(bench: &Workbench) -> Vec<Value> {
    let answer = bench.dyno_good(&["report", "record", "--format", "json"]);
    let findings: Value = serde_json::from_str(&answer.out).expect("findings are JSON");
    findings["stalls"].as_array().expect("findings list stalls").clone()
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("{name} of {of:#}"))
}

/// Whether a reading with this sign moved near a stall.
fn has_sign(stall: &Value, sign: &str) -> bool {
    stall["moved_first"].as_array().unwrap().iter().any(|moved| moved["sign_of"] == sign)
}

/// None if the stop and its stall agree.
fn difference(stop: &Stop, stalls: &[Value]) -> Option<String> {
    // A busy machine may stall the load at other times, too.
    let end_s = stop.start_s + stop.length_s;
    let overlap = |stall: &&Value| {
        let start_s = number(stall, "start_s");
        end_s.min(start_s + number(stall, "length_s")) - stop.start_s.max(start_s)
    };
    let Some(stall) = stalls.iter().max_by(|a, b| overlap(a).total_cmp(&overlap(b))) else {
        return Some("no stall".to_owned());
    };
    // Tests on simulated servers check the exact length.
    let is_as_long = |found_s: f64| (0.85..3.0).contains(&(found_s / stop.length_s));
    let missing_s = number(stall, "missing") / number(stall, "level");
    let is_as_deep = is_as_long(missing_s) && stall["gap"] == true;
    let is_as_long = is_as_long(number(stall, "length_s"));
    let is_of_server = |moved: &Value| {
        moved["sign_of"] == "a server that waits or is suspended"
            && moved["reading"].as_str().is_some_and(|name| name.starts_with("server."))
            && moved["meaning"].as_str().is_some_and(|text| !text.is_empty())
    };
    let is_named = stall["moved_first"].as_array().unwrap().iter().any(is_of_server);
    (!(is_as_long && is_as_deep && is_named)).then(|| format!("{stall:#}"))
}

#[track_caller]
fn check_stop(product: &str) {
    // A busy machine may stall the load right before or after the stop.
    let differences: Vec<String> = (0..ATTEMPTS)
        .map_while(|_| {
            let (stop, stalls) = stop_for_a_second(product);
            difference(&stop, &stalls).map(|found| format!("{stop:?}, found {found}"))
        })
        .collect();
    assert!(differences.len() < ATTEMPTS, "{product}: {}", differences.join("\n"));
}

#[test]
fn a_mariadb_that_is_stopped_for_a_second_is_found_and_named() {
    check_stop("mariadb");
}

#[test]
#[ignore = "matrix stalls: as a MariaDB, which is in the suite"]
fn a_postgresql_that_is_stopped_for_a_second_is_found_and_named() {
    check_stop("postgresql");
}

#[test]
#[ignore = "matrix stalls: a load of 20 s, up to four times"]
fn a_full_redo_log_is_reported_by_its_checkpoint_age() {
    // The smallest redo log, flushed only when full. Compressing written pages slows flushing on
    // any disk.
    let settings = [
        "innodb_log_file_size=4MiB",
        "innodb_buffer_pool_size=64MiB",
        "innodb_adaptive_flushing=OFF",
        "innodb_max_dirty_pages_pct=99",
        "innodb_io_capacity=100",
        "innodb_compression_default=ON",
        "innodb_compression_level=9",
        "innodb_flush_log_at_trx_commit=0",
    ];
    let load = ["oltp_update_non_index", "--on", "mariadb", "--rate", "1000", "--clients", "8"];
    let rows = ["--table-size", "60000", "--distribution", "uniform", "--warm-up", "1s"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--setting", setting]).collect();
    // On a busy machine the log fills later, and the stall may drown in others.
    let filled = ["20s", "40s", "80s"].into_iter().find_map(|seconds| {
        let bench = Workbench::new();
        let times = ["--duration", seconds, "--out", "record"];
        let result = bench.bench(&[&load[..], &rows, &times, &settings].concat());
        let stalls = result["stalls"].as_array().expect("bench lists stalls");
        let is_found = stalls.iter().any(|stall| has_sign(stall, "checkpoint age at its limit"));
        is_found.then_some(bench)
    });
    let bench = filled.expect("there is a stall of a full log");
    // It was full: waiting begins at the server's own limit.
    let folder = trial_folder(&bench.path("record"), 1);
    let summary = crate::support::read_json(&folder.join("summary.json"));
    let ages = summary["steps"][0]["readings"]["innodb.checkpoint_age_percent"].as_array().unwrap();
    let most = ages.iter().filter_map(Value::as_f64).fold(0.0, f64::max);
    assert!((90.0..110.0).contains(&most), "{ages:?}");
}
