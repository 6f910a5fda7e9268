//! Agents in threads of this process: on simulated servers with wrong clocks, and on pipes with wrong
//! answers.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{LazyLock, Mutex};

use dyno_database::Endpoint;
use dyno_load::simulation::{ServiceTime, SimulatedServer, run_simulated_slice};
use dyno_load::{Interval, LoadError, StepEvent, StepSpec};
use dyno_model::{Arrivals, Load, StepRequest};
use dyno_units::{ManualClock, Seed};
use dyno_workload::MadeWorkload;
use dyno_workload::catalog::Catalog;
use serde_json::Value;

use super::*;
use crate::agent::message::{TrialOrder, Work};
use crate::agent::{AgentSetup, RunSlice, read_frame, serve, write_frame};

const SECONDS: u64 = 4;

/// Where the controller's clock begins: clocks that are slow are not below zero.
const BEGAN: Nanoseconds = Nanoseconds::from_secs(20);

fn work() -> Work {
    Work {
        workload: "oltp_point_select".to_owned(),
        clients: 6,
        duration: Nanoseconds::SECOND,
        ..Work::default()
    }
}

fn workload() -> MadeWorkload {
    let work = work();
    let catalog = Catalog::built_in();
    let request = StepRequest { clients: work.clients, duration: work.duration };
    let spec = catalog.find(&work.workload).expect("there is such a workload");
    MadeWorkload::new(
        spec.plan(&work.options, request, Seed(work.seed)).expect("it can be planned"),
    )
}

fn step(load: Load) -> StepSpec {
    StepSpec {
        load,
        step: 0,
        warm_up: Nanoseconds::SECOND,
        duration: Nanoseconds::from_secs(SECONDS),
        until_steady: None,
        gone_limit: None,
        statement_timeout: Nanoseconds::from_secs(5),
        retries: 0,
        workers: 1,
        cpus: Vec::new(),
        seed: Seed(7),
    }
}

fn open() -> StepSpec {
    step(Load::Open { rate: 900.0, arrivals: Arrivals::Poisson, clients: 6 })
}

/// A clock that is wrong: ahead of the controller's by so much, and faster.
#[derive(Clone, Copy)]
struct Wrong {
    ahead_s: i64,
    ppm: i64,
}

const RIGHT: Wrong = Wrong { ahead_s: 0, ppm: 0 };

/// With a wrong clock. Its step takes the ordered time by that clock; the controller's advances as
/// much, corrected for drift.
fn agent(wrong: Wrong, controllers: &Arc<ManualClock>) -> (Option<PipedProcess>, Pipes) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let clock = Arc::new(ManualClock::new());
    let ahead = Nanoseconds::from_secs(BEGAN.as_secs_f64() as u64).0.cast_signed();
    let began = ahead + wrong.ahead_s * 1_000_000_000;
    clock.advance_to(Nanoseconds(began.cast_unsigned()));
    let (own, controllers) = (Arc::clone(&clock), Arc::clone(controllers));
    let run: RunSlice = Arc::new(move |spec, job, slice, begin, observe| {
        let server = SimulatedServer::new(4, ServiceTime::Exponential(Nanoseconds::from_millis(2)));
        let server = server.with_seed(Seed(slice.index as u64));
        let mut from = Nanoseconds::ZERO;
        let mut begin = |took| {
            from = begin(took)?;
            Ok(from)
        };
        let totals = run_simulated_slice(
            (spec, slice),
            &job.workload,
            (&server, &own),
            &mut begin,
            observe,
        )?;
        // All simulate the same time; the last one to end moves the clock that they share.
        let truly = (own.now().0.cast_signed() - began) * (1_000_000 - wrong.ppm) / 1_000_000;
        controllers.advance_to(Nanoseconds(BEGAN.0 + truly.cast_unsigned()));
        Ok(totals)
    });
    let setup =
        AgentSetup::new(clock, ("simulated".to_owned(), 2), Default::default()).running(run);
    thread::spawn(move || {
        let mut input = theirs.try_clone().expect("it has two ends");
        let _ = serve(&mut input, Box::new(theirs), setup, Box::new(|| {}));
    });
    (None, pipes(ours))
}

pub(super) fn pipes(ours: UnixStream) -> Pipes {
    let input = ours.try_clone().expect("it has two ends");
    Pipes {
        input: Box::new(Closing(input)),
        output: Box::new(ours),
        errors: Box::new(std::io::empty()),
    }
}

/// A socket that is closed in both directions when it is dropped, as the input of a process is.
struct Closing(UnixStream);

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

fn names(n: usize) -> Vec<String> {
    (1..=n).map(|nth| format!("g{nth}")).collect()
}

/// Agents whose clocks are wrong in these ways.
fn generators(wrong: &[Wrong]) -> (Agents, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    clock.advance_to(BEGAN);
    let all = Mutex::new(wrong.iter());
    let start = |_: usize| {
        let wrong = *all.lock().expect("no panic").next().expect("there is one for each");
        Ok(agent(wrong, &clock))
    };
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
    let abort = AbortFlag::new();
    let generators = Agents::with(&names(wrong.len()), &start, &shared, (&abort, true));
    (generators.unwrap_or_else(|error| panic!("{error:?}")), clock)
}

fn request<'a>(workload: &'a MadeWorkload, abort: &'a AbortFlag) -> LoadRequest<'a> {
    static ENDPOINTS: LazyLock<[Endpoint; 1]> =
        LazyLock::new(|| [Endpoint::from_url("mysql://me@127.0.0.1:1/test").expect("it is a URL")]);
    LoadRequest {
        endpoints: &*ENDPOINTS,
        supports_named_statements: true,
        work: work(),
        workload,
        workers: Some(1),
        measures_network: false,
        abort,
    }
}

fn run(generators: &Agents, spec: &StepSpec) -> (Result<Generated, LoadError>, Vec<Interval>) {
    let (workload, abort) = (workload(), AbortFlag::new());
    let mut intervals = Vec::new();
    let result = generators.run_load(spec, &request(&workload, &abort), &mut |event| {
        if let StepEvent::Interval(interval) = event {
            intervals.push(interval.clone());
        }
    });
    (result, intervals)
}

fn committed(interval: &Interval) -> u64 {
    interval.kinds.iter().map(|kind| kind.outcomes.committed()).sum()
}

/// What was measured, without times of the clock.
fn measured(intervals: &[Interval]) -> Vec<String> {
    let start = intervals[0].start;
    let interval = |interval: &Interval| {
        let Interval { phase, length, kinds, lag, due, missed, tally, .. } = interval;
        let at = interval.start.saturating_sub(start);
        format!("{phase:?} {at} {length} {kinds:?} {lag:?} {due} {missed} {tally:?}")
    };
    intervals.iter().map(interval).collect()
}

#[test]
fn wrong_clocks_change_no_result_and_are_reported() {
    let (all, _) = generators(&[RIGHT; 3]);
    let (expected, right) = run(&all, &open());
    let expected = expected.expect("it runs");
    let n = committed(&expected.totals.measured);
    assert!((3200..4000).contains(&n), "{n}");
    assert_eq!(right.len() as u64, 1 + SECONDS);
    let wrong = [
        Wrong { ahead_s: 5, ppm: 50 },
        Wrong { ahead_s: -5, ppm: -50 },
        Wrong { ahead_s: 0, ppm: 0 },
    ];
    let (all, _) = generators(&wrong);
    let (found, intervals) = run(&all, &open());
    let found = found.expect("it runs");
    assert_eq!(measured(&intervals), measured(&right));
    assert_eq!(committed(&found.totals.measured), n);
    let before: Vec<_> = expected.hosts.iter().map(|host| (&host.kinds, host.due)).collect();
    let after: Vec<_> = found.hosts.iter().map(|host| (&host.kinds, host.due)).collect();
    assert_eq!(before, after);
    for (host, wrong) in found.hosts.iter().zip(wrong) {
        let clock = host.clock.as_ref().expect("it was measured");
        assert!((clock.wall_offset_ms - wrong.ahead_s as f64 * 1e3).abs() <= clock.wall_bound_ms);
        assert!(clock.bound_us < 1.0, "time stands still while it is measured: {clock:?}");
    }
}

#[test]
fn a_drift_is_found() {
    for ppm in [50, -50] {
        let (all, _) = generators(&[Wrong { ahead_s: 3, ppm }]);
        let (found, _) = run(&all, &open());
        let hosts = found.expect("it runs").hosts;
        let clock = hosts[0].clock.as_ref().expect("it was measured");
        let drift = clock.drift_ppm.expect("the step was long enough");
        assert!((drift - ppm as f64).abs() < 1.0, "{drift} of {ppm}");
    }
}

#[test]
fn shares_are_slices_of_the_clients_and_the_schedule() {
    let (all, _) = generators(&[RIGHT; 3]);
    let (found, intervals) = run(&all, &step(Load::Closed { clients: 7 }));
    let found = found.expect("it runs");
    let clients: Vec<u64> = found.hosts.iter().map(|host| host.clients).collect();
    assert_eq!(clients, [3, 2, 2]);
    assert_eq!(found.totals.roles[0].clients, 7);
    let of_hosts: u64 = found.hosts.iter().map(|host| host.kinds[0].outcomes["committed"]).sum();
    assert_eq!(of_hosts, committed(&found.totals.measured));
    let of_seconds: u64 =
        intervals.iter().skip(1).map(|one| one.kinds[0].outcomes.committed()).sum();
    assert_eq!(of_seconds, of_hosts);
    // The next load of the same agents.
    let constant = Load::Open { rate: 300.0, arrivals: Arrivals::Constant, clients: 6 };
    let (found, _) = run(&all, &step(constant));
    let due: Vec<u64> = found.expect("it runs").hosts.iter().map(|host| host.due).collect();
    assert_eq!(due, [100 * SECONDS; 3]);
}

#[test]
fn a_raised_flag_ends_the_load_before_its_time() {
    let (all, _) = generators(&[RIGHT; 2]);
    let (workload, abort) = (workload(), AbortFlag::new());
    abort.raise();
    let result = all.run_load(&open(), &request(&workload, &abort), &mut |_| {});
    let message = result.err().expect("it was stopped").0;
    assert!(message.contains("stopped"), "{message}");
    let (again, _) = run(&all, &open());
    assert!(again.is_ok(), "{:?}", again.err());
}

/// What is said of a host whose agent says these bytes and then closes.
fn said_of(bytes: &[u8]) -> String {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let start = |_: usize| {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
        let bytes = bytes.to_vec();
        thread::spawn(move || {
            let _ = theirs.write_all(&bytes);
            let _ = theirs.shutdown(std::net::Shutdown::Write);
            let _ = theirs.read_to_end(&mut Vec::new());
        });
        Ok((None, pipes(ours)))
    };
    let abort = AbortFlag::new();
    match Agents::with(&names(1), &start, &clock, (&abort, true)) {
        Err(StartError { error: TrialError::Failed { message, .. }, .. }) => message,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is no agent"),
    }
}

#[test]
fn what_is_no_agent_of_this_version_is_refused_with_its_host() {
    let check = |bytes: &[u8], parts: &[&str]| {
        let message = said_of(bytes);
        assert!(message.starts_with("host g1"), "{message}");
        parts.iter().for_each(|part| assert!(message.contains(part), "{message}"));
    };
    let frame = |answer: &Answer| {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, answer).expect("memory takes it");
        bytes
    };
    let hello = |protocol, dyno: &str| {
        frame(&Answer::Hello(Hello { protocol, dyno: dyno.to_owned(), ..Hello::default() }))
    };
    check(b"Last login: Monday\n", &["“Last login: Monday”", "must print nothing"]);
    check(b"", &["closed the connection"]);
    check(
        &hello(99, "7.1"),
        &["Dyno 7.1 (protocol 99)", &format!("Dyno {DYNO} (protocol {PROTOCOL})")],
    );
    check(&hello(PROTOCOL, "7.1"), &["install the same version there"]);
    check(&frame(&Answer::Connected { load: 1, clients: 1 }), &["did not say its version first"]);
    check(b"DynA\x02\0\0\0[]", &["cannot be decoded"]);
    check(b"DynA\xff\xff\xff\xff", &["too long"]);
    // What decoding complains of is quoted as any text of a host's.
    let text = serde_json::json!({ (format!("\u{1b}[2J{}", "x".repeat(1 << 20))): 1 });
    let mut bytes = Vec::new();
    write_frame(&mut bytes, &text).expect("memory takes it");
    let message = said_of(&bytes);
    assert!(message.contains("unknown variant") && message.len() < 5000, "{}", message.len());
    assert!(!message.contains(dyno_units::is_unsafe_char), "{message:?}");
}

#[test]
fn an_agent_that_is_lost_or_wrong_ends_the_load_with_its_name() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let hello = Hello { protocol: PROTOCOL, dyno: DYNO.to_owned(), ..Hello::default() };
    let check = |answers: Vec<Answer>, part: &str| {
        let answers = Mutex::new(Some(answers));
        let start = |_: usize| {
            let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
            let answers = answers.lock().expect("no panic").take().expect("one agent");
            let hello = hello.clone();
            thread::spawn(move || {
                let _: Result<Order, _> = read_frame(&mut theirs);
                let _ = write_frame(&mut theirs, &Answer::Hello(hello));
                while let Ok(order) = read_frame::<Order>(&mut theirs) {
                    if let Order::Load(_) = order {
                        answers.iter().for_each(|answer| drop(write_frame(&mut theirs, answer)));
                        return;
                    }
                }
            });
            Ok((None, pipes(ours)))
        };
        let abort = AbortFlag::new();
        let all = Agents::with(&names(1), &start, &clock, (&abort, true));
        let all = all.unwrap_or_else(|error| panic!("{error:?}"));
        let message = run(&all, &open()).0.err().expect("it cannot go on").0;
        assert!(message.contains("host g1") && message.contains(part), "{message}");
    };
    let failed = |load, message: &str| Answer::Failed { load, message: message.to_owned() };
    check(vec![failed(1, "client 1 of 6: refused")], "client 1 of 6: refused");
    check(vec![failed(7, "of another load")], "closed the connection");
    check(vec![Answer::Interval { load: 1, idx: 0, part: Default::default() }], "out of turn");
    check(vec![Answer::Connected { load: 1, clients: 6 }], "");
}

/// A relay in front of an agent: shows each order to `ordered`, and passes each answer through `pass`, which may
/// replace it.
fn relayed(
    (_, agent): (Option<PipedProcess>, Pipes),
    mut ordered: impl FnMut(&Value) + Send + 'static,
    mut pass: impl FnMut(Value, &mut dyn FnMut(&Value)) + Send + 'static,
) -> (Option<PipedProcess>, Pipes) {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut orders = theirs.try_clone().expect("it has two ends");
    let Pipes { mut input, mut output, .. } = agent;
    thread::spawn(move || {
        while let Ok(order) = read_frame::<Value>(&mut orders) {
            ordered(&order);
            let _ = write_frame(&mut input, &order);
        }
    });
    thread::spawn(move || {
        while let Ok(answer) = read_frame::<Value>(&mut *output) {
            pass(answer, &mut |answer| drop(write_frame(&mut theirs, answer)));
        }
    });
    (None, pipes(ours))
}

/// An agent that says hello and reads nothing after that, but goes on to speak without being asked.
fn deaf(clock: &Arc<ManualClock>) -> (Option<PipedProcess>, Pipes) {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    let clock = Arc::clone(clock);
    thread::spawn(move || {
        let hello = Hello { protocol: PROTOCOL, dyno: DYNO.to_owned(), ..Hello::default() };
        let sample = Answer::Sampled { id: 0, sample: Default::default() };
        let mut said = write_frame(&mut theirs, &Answer::Hello(hello));
        while said.is_ok() {
            clock.advance_to(clock.now() + Nanoseconds::from_millis(1));
            said = write_frame(&mut theirs, &sample);
        }
    });
    (None, pipes(ours))
}

#[test]
fn an_agent_that_speaks_and_does_not_read_is_not_waited_for() {
    let clock = Arc::new(ManualClock::new());
    let start = |_: usize| Ok(deaf(&clock));
    let (abort, of_all): (AbortFlag, Arc<dyn Clock>) = (AbortFlag::new(), clock.clone());
    let agents = Agents::with(&names(1), &start, &of_all, (&abort, false));
    let agents = agents.unwrap_or_else(|error| panic!("{error:?}"));
    let channel = Arc::clone(&agents.channels.0[0]);
    // Far more than a pipe holds.
    let order = TrialOrder {
        study: "x".repeat(4 << 20),
        files: Default::default(),
        seed: 1,
        number: 1,
        variant: "base".to_owned(),
        data_folder: None,
        reuse: false,
        fetch: false,
        keep_bytes: 0,
        keep_for: Nanoseconds::ZERO,
    };
    channel.say(&Order::Trial(Box::new(order)));
    let lost = loop {
        match channel.lost() {
            Some(why) => break why,
            None => thread::yield_now(),
        }
    };
    assert!(lost.contains("its agent has not read what it was told for 10 s"), "{lost}");
    agents.stop();
}

#[test]
fn a_host_neither_connects_nor_ends_for_another_one() {
    for forged in ["connected", "ended"] {
        let clock = Arc::new(ManualClock::new());
        clock.advance_to(BEGAN);
        let start = |nth: usize| {
            let agent = agent(RIGHT, &clock);
            Ok(match nth {
                0 => relayed(
                    agent,
                    |_: &Value| {},
                    move |answer, say| {
                        say(&answer);
                        if answer.get(forged).is_some() {
                            say(&answer);
                        }
                    },
                ),
                // The second host says it only once the load is stopped.
                _ => {
                    let (stop, stopped) = channel::<()>();
                    let mut stop = Some(stop);
                    let ordered = move |order: &Value| {
                        stop.take_if(|_| order == "stop");
                    };
                    relayed(agent, ordered, move |answer, say| {
                        if answer.get(forged).is_some() {
                            let _ = stopped.recv();
                        }
                        say(&answer);
                    })
                }
            })
        };
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let abort = AbortFlag::new();
        let all = Agents::with(&names(2), &start, &shared, (&abort, true));
        let all = all.unwrap_or_else(|error| panic!("{error:?}"));
        let message = run(&all, &open()).0.err().expect("it is refused").0;
        assert_eq!(message, "host g1: its agent answered out of turn", "{forged}");
    }
}

#[test]
fn a_host_that_never_connects_is_not_waited_for_without_end() {
    let clock = Arc::new(ManualClock::new());
    let late = Arc::clone(&clock);
    let start = |_: usize| {
        let late = Arc::clone(&late);
        Ok(relayed(
            agent(RIGHT, &clock),
            |_: &Value| {},
            move |answer, say| match answer.get("connected") {
                Some(_) => late.advance_to(Nanoseconds::from_secs(3600)),
                None => say(&answer),
            },
        ))
    };
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
    let abort = AbortFlag::new();
    let all = Agents::with(&names(1), &start, &shared, (&abort, true));
    // Its heart would notice an hour of silence.
    let all = Agents { heart: None, ..all.unwrap_or_else(|error| panic!("{error:?}")) };
    let message = run(&all, &open()).0.err().expect("it is given up").0;
    assert!(message.starts_with("host g1: its clients are not connected after"), "{message}");
}

#[test]
fn servers_that_other_hosts_cannot_reach_are_refused() {
    let (all, _) = generators(&[RIGHT]);
    let all = Agents { is_local: false, ..all };
    let (workload, abort) = (workload(), AbortFlag::new());
    let url = "mysql://me@localhost/test?socket=/run/server.sock";
    let endpoints = [Endpoint::from_url(url).expect("it is a URL")];
    let request = LoadRequest { endpoints: &endpoints, ..request(&workload, &abort) };
    let message = all.run_load(&open(), &request, &mut |_| {}).err().expect("it is refused").0;
    assert!(message.contains("Unix socket of this machine"), "{message}");
}

#[test]
fn a_router_has_the_next_host_or_if_there_is_none_the_first_one() {
    let check = |has_further: bool, left: &[usize], expected: &[usize]| {
        let wanted = Wanted { least: 2, most: 2, has_further };
        assert_eq!(wanted.choose(left), expected);
    };
    check(false, &[0, 1, 2], &[0, 1]);
    check(true, &[0, 1, 2], &[0, 1, 2]);
    check(true, &[0, 2, 3], &[0, 2, 3]);
    check(true, &[1, 2], &[1, 2, 1]);
    check(true, &[], &[]);
}
