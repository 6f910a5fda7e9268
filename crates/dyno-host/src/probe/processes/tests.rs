//! A made-up `/proc`, and this very process.

use std::fs;

use tempfile::TempDir;

use super::*;

struct Fixture {
    folder: TempDir,
    probe: ProcessesProbe,
    second: u64,
}

#[derive(Clone, Copy, Default)]
struct Fake {
    pid: i32,
    parent: i32,
    own_ticks: u64,
    reaped_ticks: u64,
    start_ticks: u64,
    written: u64,
    switches: u64,
    n_threads: u64,
    is_stopped: bool,
}

impl Fixture {
    fn new(pids: &[i32], has_descendants: bool) -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let group = ProcessGroup { name: "server".into(), pids: pids.to_vec(), has_descendants };
        let probe = ProcessesProbe::new(folder.path(), vec![group], &ThreadKinds::default());
        Fixture { folder, probe, second: 0 }
    }

    fn set(&self, fake: Fake) {
        let path = self.folder.path().join(fake.pid.to_string());
        fs::create_dir_all(&path).expect("made");
        let write = |name: &str, text: String| fs::write(path.join(name), text).expect("written");
        write(
            "stat",
            format!(
                "{} (server) {} {} 1 1 0 -1 0 1 2 3 4 {} 0 {} 0 20 0 {} 0 {} 1000 50 0",
                fake.pid,
                if fake.is_stopped { 'T' } else { 'S' },
                fake.parent,
                fake.own_ticks,
                fake.reaped_ticks,
                fake.n_threads,
                fake.start_ticks
            ),
        );
        write(
            "status",
            format!(
                "Name:\tserver\nRssAnon:\t100 kB\nRssShmem:\t{} kB\nvoluntary_ctxt_switches:\t{}\n\
                 nonvoluntary_ctxt_switches:\t3\n",
                fake.pid, fake.switches
            ),
        );
        write("schedstat", "0 0 1\n".into());
        write("io", format!("rchar: 1\nread_bytes: 0\nwrite_bytes: {}\n", fake.written));
    }

    fn end(&self, pid: i32) {
        fs::remove_dir_all(self.folder.path().join(pid.to_string())).expect("removed");
    }

    fn end_thread(&self, tid: i32) {
        let path = self.folder.path().join(format!("10/task/{tid}"));
        fs::remove_dir_all(path).expect("removed");
    }

    /// One second later.
    fn read(&mut self) -> Readings {
        self.second += 1;
        let mut readings = Readings::new();
        self.probe.read(Nanoseconds::from_secs(self.second), &mut readings);
        readings
    }
}

/// When a process began, in ticks, that is younger than any read.
const LATER: u64 = 1 << 40;

fn ticks(seconds: u64) -> u64 {
    seconds * rustix::param::clock_ticks_per_second()
}

#[test]
fn a_group_is_its_processes_and_their_descendants() {
    let mut fixture = Fixture::new(&[10], true);
    for (pid, parent) in [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1)] {
        fixture.set(Fake { pid, parent, ..Fake::default() });
    }
    let readings = fixture.read();
    let check = |name: &str, expected: f64| assert_eq!(readings[name], expected, "{name}");
    check("server.processes", 3.0);
    check("server.threads", 0.0);
    check("server.rss_bytes", 150.0 * rustix::param::page_size() as f64);
    check("server.anon_bytes", 300.0 * 1024.0);
    check("server.shared_bytes", 12.0 * 1024.0);
    assert!(!readings.contains_key("server.cpu_s_per_s"), "no rate without a read before");

    // Init adopts orphans, but they stay members.
    fixture.end(11);
    fixture.set(Fake { pid: 12, parent: 1, ..Fake::default() });
    assert_eq!(fixture.read()["server.processes"], 2.0);
    fixture.probe.parents.clear();
    assert_eq!(fixture.read()["server.processes"], 2.0);
}

#[test]
fn without_descendants_it_is_only_its_processes() {
    let mut fixture = Fixture::new(&[10], false);
    fixture.set(Fake { pid: 10, parent: 1, ..Fake::default() });
    fixture.set(Fake { pid: 11, parent: 10, ..Fake::default() });
    fixture.read();
    // A collected server is no work of the generator.
    fixture.set(Fake { pid: 10, parent: 1, reaped_ticks: ticks(9), ..Fake::default() });
    let readings = fixture.read();
    assert_eq!((readings["server.processes"], readings["server.cpu_s_per_s"]), (1.0, 0.0));
}

#[test]
fn stopped_processes_are_counted() {
    let mut fixture = Fixture::new(&[10], true);
    for pid in [11, 12, 13] {
        fixture.set(Fake { pid, parent: 10, is_stopped: pid != 12, ..Fake::default() });
    }
    fixture.set(Fake { pid: 10, parent: 1, ..Fake::default() });
    assert_eq!(fixture.read()["server.stopped"], 2.0);
    for pid in [11, 13] {
        fixture.set(Fake { pid, parent: 10, ..Fake::default() });
    }
    assert_eq!(fixture.read()["server.stopped"], 0.0);
}

#[test]
fn rates_count_new_children_from_their_birth() {
    let mut fixture = Fixture::new(&[10], true);
    let root = Fake {
        pid: 10,
        parent: 1,
        own_ticks: ticks(100),
        switches: 7,
        n_threads: 1,
        ..Fake::default()
    };
    fixture.set(root);
    fixture.read();
    fixture.set(Fake { own_ticks: ticks(101), written: 4096, switches: 10, ..root });
    let child = Fake { pid: 11, parent: 10, start_ticks: LATER, ..root };
    fixture.set(Fake { own_ticks: ticks(2), written: 1000, ..child });
    let readings = fixture.read();
    let check = |name: &str, expected: f64| assert_eq!(readings[name], expected, "{name}");
    check("server.cpu_s_per_s", 3.0);
    check("server.disk_write_bytes_per_s", 5096.0);
    check("server.disk_read_bytes_per_s", 0.0);
    check("server.voluntary_switches_per_s", 10.0);
    check("server.involuntary_switches_per_s", 3.0);
}

#[test]
fn a_collected_child_is_not_counted_twice() {
    let mut fixture = Fixture::new(&[10], true);
    let root = Fake { pid: 10, parent: 1, ..Fake::default() };
    let child = Fake { pid: 11, parent: 10, own_ticks: ticks(50), written: 5000, ..root };
    fixture.set(root);
    fixture.set(child);
    fixture.read();
    // It ends after another second of CPU time, and is collected at once.
    fixture.end(11);
    fixture.set(Fake { reaped_ticks: ticks(51), written: 5100, ..root });
    let readings = fixture.read();
    assert_eq!(readings["server.cpu_s_per_s"], 1.0);
    assert_eq!(readings["server.disk_write_bytes_per_s"], 100.0);
}

#[test]
fn a_child_that_is_collected_late_is_not_counted_twice() {
    let mut fixture = Fixture::new(&[10], true);
    let root = Fake { pid: 10, parent: 1, ..Fake::default() };
    fixture.set(root);
    fixture.set(Fake { pid: 11, parent: 10, own_ticks: ticks(50), ..root });
    fixture.read();
    fixture.end(11);
    assert_eq!(fixture.read()["server.cpu_s_per_s"], 0.0);
    fixture.set(Fake { reaped_ticks: ticks(50), ..root });
    assert_eq!(fixture.read()["server.cpu_s_per_s"], 0.0);
    // The debt is forgotten: this is work of children too short-lived to be seen.
    fixture.set(Fake { reaped_ticks: ticks(53), ..root });
    assert_eq!(fixture.read()["server.cpu_s_per_s"], 3.0);
}

#[test]
fn a_used_id_is_another_process() {
    let mut fixture = Fixture::new(&[10], true);
    let root = Fake { pid: 10, parent: 1, ..Fake::default() };
    let child = Fake { pid: 11, parent: 10, own_ticks: ticks(50), start_ticks: 5, ..root };
    fixture.set(root);
    fixture.set(child);
    fixture.read();
    fixture.set(Fake { own_ticks: ticks(1), start_ticks: 900, ..child });
    fixture.set(Fake { reaped_ticks: ticks(50), ..root });
    assert_eq!(fixture.read()["server.cpu_s_per_s"], 1.0);
}

#[test]
fn missing_files_are_missing_readings() {
    let mut fixture = Fixture::new(&[10], true);
    assert_eq!(fixture.read(), Readings::new());
    let root = Fake { pid: 10, parent: 1, ..Fake::default() };
    for own_ticks in [ticks(1), ticks(2)] {
        fixture.set(Fake { own_ticks, ..root });
        fs::remove_file(fixture.folder.path().join("10/io")).expect("removed");
        fs::remove_file(fixture.folder.path().join("10/status")).expect("removed");
        fixture.read();
    }
    fixture.set(Fake { own_ticks: ticks(4), ..root });
    fs::remove_file(fixture.folder.path().join("10/io")).expect("removed");
    let readings = fixture.read();
    assert_eq!(readings["server.cpu_s_per_s"], 2.0);
    assert!(!readings.keys().any(|name| name.contains("disk")), "{readings:?}");
}

/// Of process 10.
fn set_thread(fixture: &Fixture, tid: i32, name: &str, (cpu_ns, wait_ns): (u64, u64)) {
    let folder = fixture.folder.path().join(format!("10/task/{tid}"));
    fs::create_dir_all(&folder).expect("made");
    let write = |file: &str, text: String| fs::write(folder.join(file), text).expect("written");
    write("schedstat", format!("{cpu_ns} {wait_ns} 7\n"));
    write("comm", format!("{name}\n"));
    let switches = cpu_ns / 1_000_000;
    write(
        "status",
        format!("voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t1\n"),
    );
}

#[test]
fn waits_and_switches_are_summed_over_threads() {
    let mut fixture = Fixture::new(&[10], false);
    fixture.set(Fake { pid: 10, parent: 1, n_threads: 2, ..Fake::default() });
    let name = "server.runqueue_wait_s_per_s";
    assert_eq!(fixture.read().get(name), None);
    assert_eq!(fixture.read().get(name), None, "the kernel does not report it");
    set_thread(&fixture, 10, "a", (0, 5_000_000_000));
    set_thread(&fixture, 11, "a", (0, 1_000_000_000));
    assert_eq!(fixture.read().get(name), None, "no rate without a read before");
    set_thread(&fixture, 10, "a", (4_000_000, 5_250_000_000));
    set_thread(&fixture, 12, "a", (2_000_000, 500_000_000));
    fixture.end_thread(11);
    let readings = fixture.read();
    assert_eq!(readings.get(name), Some(&0.75));
    assert_eq!(readings["server.voluntary_switches_per_s"], 6.0);
    assert_eq!(readings["server.involuntary_switches_per_s"], 1.0);
    assert_eq!(readings["server.busiest_thread_pct"], 0.4);
    assert!(!readings.contains_key("server.foreground.cpu_s_per_s"), "no names, no kinds");
    assert_eq!(threads::parse_schedstat("99"), None);
}

#[test]
fn cpu_time_is_reported_by_kind_of_thread() {
    let groups: ThreadGroups = |process, thread| {
        assert_eq!(process, "server --fast");
        match thread {
            "client" => Some(ThreadGroup { name: "client", is_foreground: true }),
            "purge" => Some(ThreadGroup { name: "purge", is_foreground: false }),
            _ => None,
        }
    };
    let mut fixture = Fixture::new(&[10], false);
    let group = ProcessGroup { name: "server".into(), pids: vec![10], has_descendants: false };
    let kinds = ThreadKinds { names: Some(groups), ..ThreadKinds::default() };
    fixture.probe = ProcessesProbe::new(fixture.folder.path(), vec![group], &kinds);
    fixture.set(Fake { pid: 10, parent: 1, n_threads: 3, ..Fake::default() });
    fs::write(fixture.folder.path().join("10/cmdline"), "server\0--fast\0").expect("written");
    for (at, cpu_ns) in [(0, 1_000_000_000), (1, 1_500_000_000)] {
        set_thread(&fixture, 10, "server", (at * 250_000_000, 0));
        set_thread(&fixture, 11, "client", (cpu_ns, 0));
        set_thread(&fixture, 12, "purge", (0, 0));
        fixture.read();
    }
    set_thread(&fixture, 11, "client", (2_250_000_000, 0));
    let readings = fixture.read();
    let check = |name: &str, expected: f64| {
        assert_eq!(readings[&format!("server.{name}.cpu_s_per_s")], expected, "{name}");
    };
    check("foreground", 0.75);
    check("background", 0.0);
    check("unnamed", 0.0);
    check("thread.client", 0.75);
    assert_eq!(readings["server.busiest_thread_pct"], 75.0);
}

#[test]
fn what_a_process_has_used_before_it_joins_is_no_rate() {
    let mut fixture = Fixture::new(&[10, 20, 30], false);
    let used = |fixture: &Fixture, pid: i32, start_ticks: u64, cpu_ns: u64| {
        fixture.set(Fake { pid, parent: 1, n_threads: 1, start_ticks, ..Fake::default() });
        let path = fixture.folder.path().join(format!("{pid}/schedstat"));
        fs::write(path, format!("{cpu_ns} 0 7\n")).expect("written");
    };
    used(&fixture, 10, 1, 0);
    fixture.read();
    used(&fixture, 10, 1, 250_000_000);
    used(&fixture, 20, 1, 3_600_000_000_000);
    assert_eq!(fixture.read()["server.busiest_thread_pct"], 25.0);
    used(&fixture, 20, 1, 3_600_500_000_000);
    assert_eq!(fixture.read()["server.busiest_thread_pct"], 50.0);
    // One that began since the last read began at zero.
    used(&fixture, 30, LATER, 750_000_000);
    assert_eq!(fixture.read()["server.busiest_thread_pct"], 75.0);
}

#[test]
fn few_names_do_not_show_who_works_for_clients() {
    let groups: ThreadGroups = |_, thread| {
        (thread == "rocksdb:low")
            .then_some(ThreadGroup { name: "compaction", is_foreground: false })
    };
    let mut fixture = Fixture::new(&[10], false);
    let group = ProcessGroup { name: "server".into(), pids: vec![10], has_descendants: false };
    let kinds = ThreadKinds { names: Some(groups), ..ThreadKinds::default() };
    fixture.probe = ProcessesProbe::new(fixture.folder.path(), vec![group], &kinds);
    fixture.set(Fake { pid: 10, parent: 1, n_threads: 3, ..Fake::default() });
    for second in 0..2 {
        for (tid, name) in [(10, "mariadbd"), (11, "mariadbd"), (12, "rocksdb:low")] {
            set_thread(&fixture, tid, name, (second * 100_000_000, 0));
        }
        if second == 0 {
            fixture.read();
        }
    }
    let readings = fixture.read();
    assert!(!readings.contains_key("server.foreground.cpu_s_per_s"), "{readings:?}");
    assert_eq!(readings["server.thread.compaction.cpu_s_per_s"], 0.1);
    assert_eq!(readings["server.unnamed.cpu_s_per_s"], 0.2);
}

#[test]
fn a_server_lists_threads_without_names() {
    let mut fixture = Fixture::new(&[10], false);
    let group = ProcessGroup { name: "server".into(), pids: vec![10], has_descendants: false };
    let kinds = ThreadKinds::default();
    fixture.probe = ProcessesProbe::new(fixture.folder.path(), vec![group], &kinds);
    fixture.set(Fake { pid: 10, parent: 1, n_threads: 4, ..Fake::default() });
    let client = ThreadGroup { name: "connection", is_foreground: true };
    let thread =
        |tid, connection| ListedThread { tid, connection: Some(connection), group: client };
    kinds.listing.add_probe(52);
    kinds.listing.set([thread(11, 51), thread(12, 52)]);
    for second in 0..3 {
        for (tid, share) in [(10, 1), (11, 5), (12, 2), (13, 4)] {
            set_thread(&fixture, tid, "server", (second * share * 100_000_000, 0));
        }
        if second == 1 {
            let readings = fixture.read();
            assert!(!readings.contains_key("server.thread..cpu_s_per_s"), "{readings:?}");
        } else if second == 0 {
            fixture.read();
        }
    }
    // Begun after the list: it may work for a client.
    set_thread(&fixture, 14, "server", (50_000_000, 0));
    let readings = fixture.read();
    let check = |name: &str, expected: f64| {
        let found = readings[&format!("server.{name}.cpu_s_per_s")];
        assert!((found - expected).abs() < 1e-9, "{name}: {found}");
    };
    check("foreground", 0.5);
    check("thread.connection", 0.5);
    check("thread.probe", 0.2);
    check("background", 0.5);
    check("unnamed", 0.05);
}

#[test]
fn many_threads_are_read_less_often() {
    let mut fixture = Fixture::new(&[10], false);
    fixture.set(Fake { pid: 10, parent: 1, n_threads: 400, ..Fake::default() });
    let name = "server.voluntary_switches_per_s";
    let mut rates = Vec::new();
    for second in 0..8 {
        set_thread(&fixture, 10, "a", (second * 3_000_000, 0));
        rates.push(fixture.read().get(name).copied());
    }
    let rate = Some(3.0);
    assert_eq!(rates, [None, None, None, rate, None, None, rate, None]);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parsers_panic(text in "((RssAnon|read_bytes|write_bytes)?:[ 0-9kB\t-]{0,30}\n){0,5}") {
        let _ = parse_status(&text);
        let _ = parse_io(&text);
    }

    #[test]
    fn a_debt_never_makes_more(steps in proptest::collection::vec((0_u64..50, 0_u64..50), 0..20)) {
        let mut debt = Debt::default();
        for (vanished, grown) in steps {
            let left = debt.settle(vanished, grown);
            proptest::prop_assert!(left <= grown && debt.0 <= vanished);
        }
    }
}
