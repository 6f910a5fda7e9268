//! Records whose limit is known, and what the rule says of them.

use std::collections::BTreeMap;

use dyno_record::{
    MemberFacts, MemberRole, OwnStepRecord, PlaceFacts, ProductFacts, RoleRecord, Run, StepSummary,
};
use dyno_units::IoLimit;

use super::*;
use crate::fixtures::{make_open, run, wobble};
use crate::{Options, analyse};

fn uses(demand: Demand, known: &[(Resource, f64)], missing: &[(Resource, &str)]) -> TrialUses {
    let known = known.iter().map(|(of, used)| (*of, Ok(*used)));
    let missing = missing.iter().map(|(of, why)| (*of, Err((*why).to_owned())));
    TrialUses { demand, uses: known.chain(missing).collect() }
}

const BUSY: Demand = Demand::Clients { pausing: Some(0.0) };

#[test]
fn a_trial_is_bound_by_what_is_at_its_limit_and_by_nothing_only_if_all_is_known() {
    use Resource::{DataDisk, Generator, HostCpus, Locks, ServerThread, VolumeLimit};
    let check = |trial: &TrialUses, expected: Bound| assert_eq!(trial.bound(), expected);
    let at = |known: &[(Resource, f64)], missing: &[(Resource, &str)]| {
        uses(BUSY, known, missing).bound()
    };
    let resources = |all: &[Resource]| Bound::Resources(all.to_vec());
    assert_eq!(at(&[(VolumeLimit, 0.97), (HostCpus, 0.3)], &[]), resources(&[VolumeLimit]));
    // What else is missing does not take away what is known.
    assert_eq!(at(&[(VolumeLimit, 0.9)], &[(DataDisk, "x")]), resources(&[VolumeLimit]));
    // Two at most, the nearest first; locks have a scale of their own.
    let three = [(HostCpus, 0.92), (VolumeLimit, 0.99), (ServerThread, 0.91)];
    assert_eq!(at(&three, &[]), resources(&[VolumeLimit, HostCpus]));
    assert_eq!(at(&[(Locks, 0.6), (HostCpus, 0.7)], &[]), resources(&[Locks]));
    assert_eq!(at(&[(Locks, 1.0), (HostCpus, 1.0)], &[]), resources(&[Locks, HostCpus]));
    // One that would be at its limit if there were a little more of the first.
    assert_eq!(
        at(&[(VolumeLimit, 0.95), (HostCpus, 0.86)], &[]),
        resources(&[VolumeLimit, HostCpus])
    );
    assert_eq!(at(&[(VolumeLimit, 0.95), (HostCpus, 0.85)], &[]), resources(&[VolumeLimit]));
    assert_eq!(at(&[(Locks, 0.15), (HostCpus, 0.6)], &[]), Bound::Clients);
    let near = "near a limit, but not at it (CPUs of the host: 80 %)";
    assert_eq!(at(&[(HostCpus, 0.8)], &[]), Bound::Unknown(near.to_owned()));
    let missing = at(&[(HostCpus, 0.2)], &[(Generator, "it was not recorded")]);
    assert_eq!(missing, Bound::Unknown("it was not recorded".to_owned()));
    // What clients do not ask for cannot be what limits them.
    let pausing = Demand::Clients { pausing: Some(0.95) };
    check(&uses(pausing, &[(HostCpus, 0.93)], &[(DataDisk, "x")]), Bound::Clients);
    check(&uses(Demand::Rate { undone: 0.01 }, &[(HostCpus, 0.95)], &[]), Bound::Rate);
    let overloaded = Demand::Rate { undone: 0.2 };
    check(&uses(overloaded, &[(HostCpus, 0.95)], &[]), resources(&[HostCpus]));
    let why =
        "20 % of the arrivals were not done, and no resource that is recorded was at its limit";
    check(&uses(overloaded, &[(HostCpus, 0.2)], &[]), Bound::Unknown(why.to_owned()));
    check(&uses(Demand::Mixed, &[(HostCpus, 0.95)], &[]), resources(&[HostCpus]));
    let mixed = uses(Demand::Mixed, &[(HostCpus, 0.2)], &[]).bound();
    assert!(matches!(mixed, Bound::Unknown(_)), "{mixed:?}");
}

#[test]
fn most_trials_decide_and_the_others_are_counted() {
    use Resource::{HostCpus, ServerThread, VolumeLimit};
    let of = |all: &[Resource]| Bound::Resources(all.to_vec());
    let unknown = || Bound::Unknown("x".to_owned());
    let check = |trials: &[Bound], expected: (Bound, u32)| assert_eq!(agreed(trials), expected);
    check(&[of(&[HostCpus])], (of(&[HostCpus]), 1));
    check(&[of(&[HostCpus]), of(&[HostCpus]), Bound::Clients], (of(&[HostCpus]), 2));
    let both = [VolumeLimit, HostCpus];
    check(&[of(&both), of(&both), of(&[HostCpus])], (of(&[HostCpus, VolumeLimit]), 2));
    // Each in most trials, both in one only.
    check(&[of(&both), of(&[VolumeLimit]), of(&[HostCpus])], (of(&[VolumeLimit]), 2));
    check(&[of(&both), of(&[HostCpus, ServerThread]), of(&[HostCpus])], (of(&[HostCpus]), 3));
    check(&[Bound::Clients, Bound::Clients, unknown()], (Bound::Clients, 2));
    check(&[Bound::Rate, Bound::Rate], (Bound::Rate, 2));
    check(&[unknown(), unknown()], (unknown(), 2));
    let differ = "the trials differ: the limit of the host's CPUs in 1, no limit in 1 of 2";
    check(&[of(&[HostCpus]), Bound::Clients], (Bound::Unknown(differ.to_owned()), 0));
    let differ = "the trials differ: no limit in 1, not known in 1 of 2";
    check(&[Bound::Clients, unknown()], (Bound::Unknown(differ.to_owned()), 1));
}

const QUIET: [(&str, f64); 5] = [
    ("cpu.busy_pct", 40.0),
    ("server.cpu_s_per_s", 1.2),
    ("server.busiest_thread_pct", 35.0),
    ("data_disk.busy_pct", 20.0),
    ("innodb.row_lock_wait_s_per_s", 0.1),
];

fn set(step: &mut StepSummary, readings: &[(&str, f64)]) {
    let n = step.intervals.start_s.len();
    for (name, value) in readings {
        step.readings.insert((*name).to_owned(), vec![Some(*value); n]);
    }
}

/// One variant, one load of 4 clients, 3 repetitions, with writes.
fn quiet() -> Run {
    let mut run = run(&["a"], &[4], 3, |v, s, r| 1_000.0 * wobble(v, s, r));
    each(&mut run, &mut |step| {
        step.writes = 100;
        set(step, &QUIET);
    });
    run
}

fn each(run: &mut Run, change: &mut dyn FnMut(&mut StepSummary)) {
    run.trials.iter_mut().flat_map(|trial| &mut trial.steps).for_each(change);
}

fn found(run: &Run) -> BoundFacts {
    let findings = analyse(std::slice::from_ref(run), &Options::default());
    findings.bound_by[0].clone()
}

#[track_caller]
fn check(run: &Run, text: &str, why: &str) {
    let found = found(run);
    assert_eq!(found.text, text, "{found:?}");
    assert_eq!(found.n, 3);
    let own = found.why.clone().unwrap_or_default();
    assert!(if why.is_empty() { own.is_empty() } else { own.contains(why) }, "{found:?}");
}

#[track_caller]
fn with(readings: &[(&str, f64)], text: &str, why: &str) {
    let mut run = quiet();
    each(&mut run, &mut |step| set(step, readings));
    check(&run, text, why);
}

#[track_caller]
fn without(reading: &str, why: &str) {
    let mut run = quiet();
    each(&mut run, &mut |step| drop(step.readings.remove(reading)));
    check(&run, "not known", why);
}

const NOTHING: &str = "nothing: the clients' own waiting";

#[test]
fn the_record_shows_what_was_at_its_limit() {
    check(&quiet(), NOTHING, "");
    with(&[("data_disk.limit_used_pct", 99.0)], "the volume's limit", "");
    with(&[("cpu.busy_pct", 96.0)], "the limit of the host's CPUs", "");
    // Three quarters of a machine of which a fifth was given to others.
    with(&[("cpu.busy_pct", 75.0), ("cpu.steal_pct", 20.0)], "the limit of the host's CPUs", "");
    with(&[("server.busiest_thread_pct", 97.0)], "the limit of one thread of the server", "");
    let quota = ("cgroup.server.cpu_limit", 1.25);
    with(&[quota], "the limit of the server's CPUs", "");
    with(&[("cgroup.server.cpu_limit", 4.0)], NOTHING, "");
    with(&[("innodb.row_lock_wait_s_per_s", 3.0)], "the limit that locks set", "");
    with(&[("cpu.busy_pct", 82.0)], "not known", "near a limit, but not at it");
    with(&[("data_disk.busy_pct", 98.0)], "not known", "whether it could have done more");
    let both = "the volume's limit and the limit of the host's CPUs";
    with(&[("data_disk.limit_used_pct", 100.0), ("cpu.busy_pct", 93.0)], both, "");
}

#[test]
fn a_missing_reading_is_not_known_and_never_nothing() {
    without("cpu.busy_pct", "`cpu.busy_pct` was not recorded");
    without("data_disk.busy_pct", "`data_disk.busy_pct` was not recorded");
    without("innodb.row_lock_wait_s_per_s", "how many clients wait for locks");
    // More than one thread can have used so much.
    without("server.busiest_thread_pct", "`server.busiest_thread_pct` was not recorded");
    let mut run = quiet();
    each(&mut run, &mut |step| {
        step.readings.remove("server.busiest_thread_pct");
        set(step, &[("server.cpu_s_per_s", 0.4)]);
    });
    check(&run, NOTHING, "");
    // What is at its limit is known without it.
    each(&mut run, &mut |step| {
        step.readings.remove("data_disk.busy_pct");
        set(step, &[("cpu.busy_pct", 99.0)]);
    });
    check(&run, "the limit of the host's CPUs", "");
}

#[test]
fn one_client_waits_for_no_lock_and_readers_neither() {
    let mut run = quiet();
    each(&mut run, &mut |step| {
        step.writes = 0;
        step.readings.remove("innodb.row_lock_wait_s_per_s");
    });
    check(&run, NOTHING, "");
    each(&mut run, &mut |step| step.writes = 100);
    check(&run, "not known", "locks");
    run.manifest.steps[0].clients = 1;
    check(&run, NOTHING, "");
}

#[test]
fn the_generator_counts_on_every_host_and_an_embedded_database_is_not_the_generator() {
    let mut run = quiet();
    each(&mut run, &mut |step| step.generator.busiest_worker = 0.95);
    check(&run, "the limit of the load generator", "");
    for trial in &mut run.trials {
        trial.server.of_product =
            Some(ProductFacts { in_process: true, stores_data: true, ..ProductFacts::default() });
    }
    check(&run, "the limit of one thread of the server", "");
    let mut run = quiet();
    each(&mut run, &mut |step| step.generator.share_of_calibrated = Some(0.95));
    check(&run, "the limit of the load generator", "");
    each(&mut run, &mut |step| step.generator.calibration_disturbed = true);
    check(&run, NOTHING, "");
    run.manifest.design.insert("generator_cpus".to_owned(), "0".to_owned());
    each(&mut run, &mut |step| set(step, &[("generator.cpu_s_per_s", 0.97)]));
    check(&run, "the limit of the load generator", "");
}

#[test]
fn cpus_of_the_study_are_the_servers_limit() {
    let mut run = quiet();
    run.manifest.design.insert("server_cpus".to_owned(), "2".to_owned());
    check(&run, "the limit of the server's CPUs", "");
    run.manifest.design.insert("server_cpus".to_owned(), "1,2,3".to_owned());
    check(&run, NOTHING, "");
    let member = |name: &str| MemberFacts { name: name.to_owned(), ..MemberFacts::default() };
    for trial in &mut run.trials {
        trial.members = vec![member("primary"), member("replica-1")];
    }
    check(&run, "not known", "several servers share the CPUs");
}

#[test]
fn a_device_is_at_its_limit_if_more_requests_in_flight_do_no_more() {
    let mut run = run(&["a"], &[4, 16], 3, |v, s, r| 1_000.0 * wobble(v, s, r));
    let mut disk = |queue: f64, reads: f64| {
        each(&mut run, &mut |step| {
            set(step, &QUIET);
            let [light, heavy] = [(3.0, 1_000.0), (queue, reads)];
            let (queue, reads) = if step.step == 0 { light } else { heavy };
            set(
                step,
                &[
                    ("data_disk.busy_pct", 99.0),
                    ("data_disk.queue", queue),
                    ("data_disk.reads_per_s", reads),
                    ("data_disk.writes_per_s", 0.0),
                    ("data_disk.read_bytes_per_s", reads * 4096.0),
                    ("data_disk.write_bytes_per_s", 0.0),
                ],
            );
        });
        let findings = analyse(std::slice::from_ref(&run), &Options::default());
        let texts = findings.bound_by.iter().map(|found| found.text.clone());
        texts.collect::<Vec<String>>()
    };
    let limit = "the limit of the data disk";
    assert_eq!(disk(12.0, 1_020.0), [limit, limit]);
    assert_eq!(disk(12.0, 2_500.0), ["not known", "not known"], "it had capacity left");
    assert_eq!(disk(3.5, 1_020.0), ["not known", "not known"], "nothing more was asked of it");
}

#[test]
fn a_volume_has_its_limit_in_words_and_one_in_memory_has_no_disk() {
    let mut run = quiet();
    let mut on = |limit: IoLimit, survives: bool| {
        for trial in &mut run.trials {
            let place = PlaceFacts {
                survives_power_failure: Some(survives),
                limit: Some(limit).filter(|limit| !limit.is_none()),
                ..PlaceFacts::default()
            };
            trial.members = vec![MemberFacts { place: Some(place), ..MemberFacts::default() }];
        }
        run.clone()
    };
    let reads = IoLimit { read_iops: Some(500), ..IoLimit::default() };
    let mut limited = on(reads, true);
    each(&mut limited, &mut |step| set(step, &[("data_disk.limit_used_pct", 101.0)]));
    check(&limited, "the volume's limit of 500 reads/s", "");
    let both = IoLimit { write_iops: Some(200), ..reads };
    let mut limited = on(both, true);
    each(&mut limited, &mut |step| set(step, &[("data_disk.limit_used_pct", 97.0)]));
    check(&limited, "the volume's limit (500 reads/s, 200 writes/s)", "");
    // In dips there is a limit, and it is reached.
    each(&mut limited, &mut |step| {
        let used = step.readings.get_mut("data_disk.limit_used_pct").expect("it is set");
        let n = used.len();
        used[..n - 3].fill(None);
    });
    check(&limited, NOTHING, "");
    let mut memory = on(IoLimit::default(), false);
    each(&mut memory, &mut |step| drop(step.readings.remove("data_disk.busy_pct")));
    check(&memory, NOTHING, "");
}

#[test]
fn a_pool_with_a_queue_in_most_seconds_is_at_its_limit() {
    let mut run = quiet();
    for trial in &mut run.trials {
        let role = MemberRole::Router;
        trial.members =
            vec![MemberFacts { name: "pooler".to_owned(), role, ..MemberFacts::default() }];
    }
    each(&mut run, &mut |step| set(step, &[("pooler.busiest_thread_pct", 30.0)]));
    check(&run, "not known", "how many clients wait in it");
    each(&mut run, &mut |step| set(step, &[("pgbouncer.clients_waiting", 2.0)]));
    check(&run, "the limit of the connection pool", "");
    each(&mut run, &mut |step| set(step, &[("pgbouncer.clients_waiting", 0.0)]));
    check(&run, NOTHING, "");
    each(&mut run, &mut |step| set(step, &[("pooler.busiest_thread_pct", 98.0)]));
    check(&run, "the limit of one thread of the router", "");
}

#[test]
fn hosts_have_their_own_cpus_and_a_network_that_nobody_measured() {
    let mut run = quiet();
    for trial in &mut run.trials {
        let host = Some(dyno_record::MemberHost::default());
        trial.members = vec![MemberFacts { host, ..MemberFacts::default() }];
    }
    check(&run, "not known", "`cpu.busy_pct` was not recorded");
    each(&mut run, &mut |step| set(step, &[("host.db1.cpu.busy_pct", 50.0)]));
    check(&run, "not known", "the capacity of the network");
    each(&mut run, &mut |step| set(step, &[("host.db1.cpu.busy_pct", 97.0)]));
    check(&run, "the limit of the host's CPUs", "");
    each(&mut run, &mut |step| {
        set(step, &[("host.db1.cpu.busy_pct", 50.0), ("host.db1.data_disk.limit_used_pct", 95.0)]);
    });
    check(&run, "the volume's limit", "");
}

#[test]
fn what_was_offered_and_done_is_bound_by_nothing_else() {
    let mut run = quiet();
    make_open(&mut run);
    each(&mut run, &mut |step| set(step, &[("cpu.busy_pct", 95.0)]));
    check(&run, "nothing: the offered rate", "");
    each(&mut run, &mut |step| step.due += step.due / 10);
    check(&run, "the limit of the host's CPUs", "");
    each(&mut run, &mut |step| set(step, &[("cpu.busy_pct", 30.0)]));
    check(&run, "not known", "of the arrivals were not done");
}

#[test]
fn roles_at_a_rate_are_no_closed_load() {
    let role = |rate: Option<f64>| RoleRecord {
        name: "r".to_owned(),
        clients: 2,
        pacing: if rate.is_some() { "constant" } else { "closed" }.to_owned(),
        rate,
        quota: None,
        kinds: Vec::new(),
    };
    let with = |roles: Vec<RoleRecord>| {
        let mut run = quiet();
        run.manifest.steps[0].own =
            Some(OwnStepRecord { roles, ends_by_quota: false, settle_s: 0.0 });
        run
    };
    let mut paced = with(vec![role(Some(50.0)), role(Some(20.0))]);
    each(&mut paced, &mut |step| set(step, &[("cpu.busy_pct", 95.0)]));
    check(&paced, "nothing: the offered rate", "");
    each(&mut paced, &mut |step| step.due += step.due / 10);
    check(&paced, "the limit of the host's CPUs", "");
    let mixed = with(vec![role(Some(50.0)), role(None)]);
    check(&mixed, "not known", "some clients send at a rate");
    check(&with(vec![role(None), role(None)]), NOTHING, "");
}

#[test]
fn a_use_that_is_no_number_is_not_known() {
    let mut run = quiet();
    run.manifest.design.insert("server_cpus".to_owned(), "2".to_owned());
    each(&mut run, &mut |step| {
        step.readings.remove("server.cpu_s_per_s");
        step.server_cpu_s = Some(f64::NAN);
    });
    check(&run, "not known", "`server.cpu_s_per_s` was not recorded");
}

#[test]
fn clients_that_pause_are_bound_by_their_pauses_and_failed_attempts_leave_that_open() {
    let mut run = quiet();
    // 4 clients inside a transaction, of 100.
    run.manifest.steps[0].clients = 100;
    each(&mut run, &mut |step| set(step, &[("cpu.busy_pct", 95.0)]));
    check(&run, NOTHING, "");
    let mut outcome = |name: &str| {
        each(&mut run, &mut |step| {
            let own: &mut BTreeMap<String, u64> = &mut step.kinds[0].outcomes;
            own.insert(name.to_owned(), 7);
        });
        found(&run).text
    };
    assert_eq!(outcome("rolled_back"), NOTHING);
    assert_eq!(outcome("timed_out"), "the limit of the host's CPUs");
}

#[test]
fn trials_that_disagree_are_counted_and_a_simulated_server_has_no_resources() {
    let mut run = quiet();
    set(&mut run.trials[0].steps[0], &[("cpu.busy_pct", 97.0)]);
    let one = found(&run);
    assert_eq!((one.text.as_str(), one.agreeing, one.n), (NOTHING, 2, 3));
    set(&mut run.trials[1].steps[0], &[("cpu.busy_pct", 97.0)]);
    let two = found(&run);
    assert_eq!((two.resources.as_slice(), two.agreeing), ([Resource::HostCpus].as_slice(), 2));
    let cpus = two.uses.iter().find(|used| used.resource == Resource::HostCpus);
    assert_eq!(cpus.and_then(|used| used.share), Some(0.97));
    for trial in &mut run.trials {
        trial.server.of_product = Some(ProductFacts { simulated: true, ..ProductFacts::default() });
    }
    check(&run, "not known", "simulated");
}
