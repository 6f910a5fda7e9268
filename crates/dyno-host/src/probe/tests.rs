//! Every reading is registered, and everything registered is read.

use std::fs;

use tempfile::TempDir;

use super::processes::ThreadKinds;
use super::spec::Surroundings;
use super::*;

/// A `/proc` whose counters have grown `n` times.
fn write_proc(folder: &TempDir, n: u64) {
    let write = |path: &str, text: String| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    };
    let t = n * rustix::param::clock_ticks_per_second();
    write(
        "stat",
        format!(
            "cpu  {t} 0 {t} {t} 0\ncpu0 {t} 0 0 0 0\ncpu1 0 0 {t} 0 0\ncpu2 0 0 0 {t} 0\n\
             intr {n} 5\nctxt {n}\nprocesses {n}\nprocs_running 1\nprocs_blocked 0\n"
        ),
    );
    write("loadavg", "0.13 0.21 0.18 1/96 13793\n".into());
    for name in ["cpu", "io", "memory"] {
        let line = format!("avg10=0.00 avg60=0.00 avg300=0.00 total={n}");
        write(&format!("pressure/{name}"), format!("some {line}\nfull {line}\n"));
    }
    write(
        "meminfo",
        "MemFree: 1 kB\nMemAvailable: 1 kB\nCached: 1 kB\nDirty: 1 kB\nWriteback: 1 kB\n\
         SwapTotal: 1 kB\nSwapFree: 1 kB\n"
            .into(),
    );
    write("vmstat", format!("pswpin {n}\npswpout {n}\npgmajfault {n}\n"));
    write(
        "diskstats",
        format!("254 0 vda {n} 0 {n} {n} {n} 0 {n} {n} 0 {n} {n} {n} 0 0 0 {n} {n}\n"),
    );
    write("net/dev", format!("eth0: {n} {n} 0 0 0 0 0 0 {n} {n} 0 0 0 0 0 0\n"));
    let fields = [
        "hits",
        "misses",
        "demand_data_hits",
        "demand_data_misses",
        "demand_metadata_hits",
        "demand_metadata_misses",
        "prefetch_data_hits",
        "prefetch_data_misses",
        "prefetch_metadata_hits",
        "prefetch_metadata_misses",
        "l2_hits",
        "l2_misses",
        "size",
        "c",
        "l2_size",
    ];
    let arcstats: String = fields.iter().map(|field| format!("{field} 4 {n}\n")).collect();
    write("spl/kstat/zfs/arcstats", arcstats);
    for (pid, own_ticks) in [(10, t), (11, t / 2)] {
        write(
            &format!("{pid}/stat"),
            format!("{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 {own_ticks} 0 0 0 20 0 1 0 7 0 50 0"),
        );
        write(
            &format!("{pid}/status"),
            format!(
                "RssAnon: 1 kB\nRssShmem: 1 kB\nvoluntary_ctxt_switches: {n}\nnonvoluntary_ctxt_switches: {n}\n"
            ),
        );
        write(&format!("{pid}/schedstat"), format!("{n} {n} {n}\n"));
        write(&format!("{pid}/cmdline"), "x\0".into());
        write(&format!("{pid}/task/{pid}/comm"), "x\n".into());
        write(
            &format!("{pid}/io"),
            format!(
                "rchar: {n}\nwchar: {n}\nsyscr: {n}\nsyscw: {n}\nread_bytes: {n}\nwrite_bytes: {n}\n"
            ),
        );
    }
}

fn groups() -> Vec<ProcessGroup> {
    let group = |name: &str, pid: i32, has_descendants: bool| ProcessGroup {
        name: name.into(),
        pids: vec![pid],
        has_descendants,
    };
    vec![group("server", 10, true), group("generator", 11, false)]
}

fn sampler_on(
    folder: &TempDir,
    groups: &[ProcessGroup],
    kinds: &ThreadKinds,
    data_disk: Option<&str>,
) -> Sampler {
    let root = folder.path();
    let (proc_root, data, server, clock) = (root, None, None, None);
    Sampler::on(&Surroundings { root, proc_root, groups, kinds, data_disk, data, server, clock })
}

fn sampler_of(folder: &TempDir, groups: &[ProcessGroup]) -> Sampler {
    sampler_on(folder, groups, &ThreadKinds::default(), None)
}

fn fixture_readings() -> Readings {
    let folder = tempfile::tempdir().expect("a folder");
    let names: ThreadGroups =
        |_, thread| Some(ThreadGroup { name: "x", is_foreground: thread == "x" });
    let kinds = ThreadKinds { names: Some(names), ..ThreadKinds::default() };
    let mut sampler = sampler_on(&folder, &groups(), &kinds, Some("vda"));
    write_proc(&folder, 1);
    sampler.read(Nanoseconds::from_secs(1));
    write_proc(&folder, 3);
    sampler.read(Nanoseconds::from_secs(3))
}

#[test]
fn what_is_read_and_what_is_registered_agree() {
    let readings = fixture_readings();
    let registry = host_readings();
    for name in readings.keys() {
        assert!(registry.find(name).is_some(), "{name} is not registered");
    }
    // Data and limits have their own tests; the fixture has no unnamed or probe threads.
    let elsewhere = [
        "cgroup.",
        "data_disk.limit_used_pct",
        "filesystem.",
        "data.",
        "cpu.frequency",
        "responsiveness.",
        "*.unnamed.",
        "*.thread.probe.",
        "server.thread.probe.",
        "probe.",
    ];
    let is_here = |id: &str| !elsewhere.iter().any(|head| id.starts_with(head));
    for reading in registry.iter().filter(|reading| is_here(&reading.id)) {
        let is_read = readings.keys().any(|name| reading.is_for(name));
        assert!(is_read, "no reading is called {}", reading.id);
    }
}

#[test]
fn the_rest_is_what_no_group_explains() {
    let readings = fixture_readings();
    let check = |name: &str, expected: f64| assert_eq!(readings[name], expected, "{name}");
    check("cpu.busy_s_per_s", 2.0);
    check("server.cpu_s_per_s", 1.0);
    check("generator.cpu_s_per_s", 0.5);
    check("rest.cpu_s_per_s", 0.5);
}

#[test]
fn the_rest_is_never_negative_and_never_guessed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sampler = sampler_of(&folder, &groups());
    let mut check = |given: &[(&str, f64)], expected: Option<f64>| {
        let mut readings: Readings = given.iter().map(|(k, v)| ((*k).into(), *v)).collect();
        sampler.add_rest(&mut readings);
        let round = |value: f64| (value * 1e9).round() / 1e9;
        assert_eq!(readings.get("rest.cpu_s_per_s").copied().map(round), expected, "{given:?}");
    };
    let (busy, server, generator) =
        ("cpu.busy_s_per_s", "server.cpu_s_per_s", "generator.cpu_s_per_s");
    check(&[(busy, 1.0), (server, 0.9), (generator, 0.2)], Some(0.0));
    check(&[(busy, 1.0), (server, 0.5)], None);
    check(&[(server, 0.5), (generator, 0.2)], None);
    // The groups' excess of a tenth is subtracted.
    check(&[(busy, 1.0), (server, 0.25), (generator, 0.25)], Some(0.4));
    check(&[(busy, 1.0), (server, 0.25), (generator, 0.25)], Some(0.5));
}

#[test]
fn an_empty_proc_gives_no_readings() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sampler = sampler_of(&folder, &groups());
    for second in 1..4 {
        assert_eq!(sampler.read(Nanoseconds::from_secs(second)), Readings::new());
    }
}

#[test]
fn garbage_in_proc_gives_no_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sampler = sampler_of(&folder, &groups());
    for (second, garbage) in [(1, "cpu \u{0}-1 x\n"), (2, ":::\n: : 1"), (3, "10 (x) S 1")] {
        write_proc(&folder, second);
        for path in ["stat", "diskstats", "net/dev", "10/stat", "10/io", "pressure/io", "meminfo"] {
            fs::write(folder.path().join(path), garbage).expect("written");
        }
        sampler.read(Nanoseconds::from_secs(second));
    }
}

#[test]
fn this_host_is_read() {
    let mut sampler = Sampler::of(&HostSpec { server_pids: vec![1], ..HostSpec::default() });
    sampler.read(Nanoseconds::from_secs(1));
    let readings = sampler.read(Nanoseconds::from_secs(2));
    // Busy time needs a clock tick between the reads.
    for name in ["cpu.user_s_per_s", "generator.rss_bytes", "memory.available_bytes", "load.avg1"] {
        assert!(readings.contains_key(name), "{name} is missing in {readings:?}");
    }
    let registry = host_readings();
    assert!(readings.keys().all(|name| registry.find(name).is_some()));
    assert!(readings.values().all(|value| value.is_finite() && *value >= 0.0), "{readings:?}");
}
