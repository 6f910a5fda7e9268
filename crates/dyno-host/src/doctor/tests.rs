//! Made-up symptoms, and symptoms of a made-up host.

use std::fs;

use super::CheckState::{Bad, Good, Notice, Unknown};
use super::*;

fn healthy() -> Symptoms {
    Symptoms {
        cpus: 16,
        governor: Some("performance".into()),
        governor_driver: Some("acpi-cpufreq".into()),
        has_turbo: Some(false),
        clock_source: Some("tsc".into()),
        transparent_huge_pages: Some("madvise".into()),
        memory_bytes: Some(64 << 30),
        available_bytes: Some(60 << 30),
        swap: Some((0, 0)),
        swappiness: Some(60),
        free_disk_bytes: Some(500 << 30),
        filesystem: Some("ext4".into()),
        is_rotational: Some(false),
        open_files: Some((65_536, u64::MAX)),
        virtualisation: None,
        load_average: Some(0.1),
        busy_pct: Some(0.5),
        steal_pct: Some(0.0),
        busiest: Vec::new(),
        cgroup_cpus: None,
        cgroup_memory_bytes: None,
        n_throttled: None,
        scheduling_group: None,
        mitigations: Some("5 mitigated, 0 not".into()),
    }
}

/// One change to a healthy host.
#[track_caller]
fn check(name: &str, change: impl Fn(&mut Symptoms), expected: CheckState) -> Check {
    let mut symptoms = healthy();
    change(&mut symptoms);
    let checks = examine(&symptoms);
    let found = checks.iter().find(|check| check.name == name).expect("examined").clone();
    assert_eq!(found.state, expected, "{found:?}");
    if matches!(found.state, Notice | Bad) {
        assert!(!found.advice.is_empty(), "no advice: {found:?}");
    }
    let others = checks.iter().filter(|check| check.name != name);
    for other in others {
        assert!(other.state == Good || name == "virtual machine", "{name} spoils {other:?}");
    }
    found
}

#[test]
fn a_healthy_host_is_good_in_all() {
    for check in examine(&healthy()) {
        assert_eq!((check.state, check.advice.as_str()), (Good, ""), "{check:?}");
        assert!(!check.found.is_empty() && !check.why.is_empty());
    }
}

#[test]
fn a_silent_kernel_is_unknown_and_never_bad() {
    for check in examine(&Symptoms { cpus: 8, ..Symptoms::default() }) {
        assert!(matches!(check.state, Unknown | Good), "{check:?}");
    }
}

#[test]
fn cpus_are_judged() {
    assert_eq!(check("CPUs", |s| s.cpus = 1, Bad).found, "1 CPU");
    check("CPUs", |s| s.cpus = 2, Notice);
    check("CPUs", |s| s.cpus = 4, Good);
    check("CPU governor", |s| s.governor = Some("powersave".into()), Bad);
    let adaptive = |s: &mut Symptoms| {
        s.governor = Some("powersave".into());
        s.governor_driver = Some("intel_pstate".into());
    };
    let found = check("CPU governor", adaptive, Notice);
    assert_eq!(found.found, "powersave (intel_pstate)");
    check("CPU governor", |s| s.governor = Some("schedutil".into()), Notice);
    check("CPU governor", |s| s.governor = None, Unknown);
    check("turbo", |s| s.has_turbo = Some(true), Notice);
    check("clock source", |s| s.clock_source = Some("kvm-clock".into()), Notice);
    check("clock source", |s| s.clock_source = Some("hpet".into()), Bad);
    check("CPU mitigations", |s| s.mitigations = Some("off".into()), Notice);
}

#[test]
fn other_load_names_the_culprits() {
    let busy = |s: &mut Symptoms| {
        s.busy_pct = Some(31.25);
        s.busiest = vec![BusyProcess {
            pid: 7,
            name: "rustc".into(),
            user: Some("ann".into()),
            cpu_s_per_s: 1.5,
        }];
    };
    let found = check("other load", busy, Bad);
    assert_eq!(
        found.found,
        "CPUs 31.2% busy, load average 0.10; top: rustc (process 7 of user ann) 150%"
    );
    check("other load", |s| s.busy_pct = Some(4.0), Notice);
    let advice = check("other load", |s| s.load_average = Some(9.0), Notice).advice;
    assert!(advice.contains("load average"), "{advice}");
}

#[test]
fn virtual_machines_and_limits_are_judged() {
    let name = "virtual machine";
    check(name, |s| s.virtualisation = Some("KVM".into()), Notice);
    let found = check(name, |s| s.steal_pct = Some(2.5), Bad).found;
    assert_eq!(found, "a virtual machine, 2.5% of CPU time stolen");
    let found = check("control group", |s| s.cgroup_cpus = Some(1.5), Notice).found;
    assert_eq!(found, "limited to 1.5 CPUs");
    let throttled = |s: &mut Symptoms| {
        (s.cgroup_cpus, s.cgroup_memory_bytes, s.n_throttled) = (Some(2.0), Some(1 << 30), Some(4));
    };
    let found = check("control group", throttled, Bad).found;
    assert_eq!(found, "limited to 2 CPUs and 1 GiB of memory; throttled 4 times just now");
}

#[test]
fn memory_and_swap_are_judged() {
    check("memory", |s| s.available_bytes = Some(20 << 30), Notice);
    check("memory", |s| s.available_bytes = Some(100 << 20), Bad);
    check("swap", |s| s.swap = Some((8 << 30, 0)), Notice);
    check("swap", |s| (s.swap, s.swappiness) = (Some((8 << 30, 0)), Some(1)), Good);
    check("swap", |s| s.swap = Some((8 << 30, 1 << 20)), Notice);
    check("swap", |s| s.swap = Some((8 << 30, 6 << 30)), Bad);
    check("transparent huge pages", |s| s.transparent_huge_pages = Some("always".into()), Notice);
}

#[test]
fn disks_and_files_are_judged() {
    check("free disk", |s| s.free_disk_bytes = Some(5 << 30), Notice);
    check("free disk", |s| s.free_disk_bytes = Some(5 << 20), Bad);
    check("free disk", |s| s.free_disk_bytes = None, Unknown);
    check("filesystem", |s| s.filesystem = Some("tmpfs".into()), Bad);
    check("filesystem", |s| s.filesystem = Some("overlay".into()), Notice);
    check("filesystem", |s| s.is_rotational = Some(true), Notice);
    let found = check("open files", |s| s.open_files = Some((1024, 524_288)), Notice);
    assert_eq!(found.advice, "`ulimit -n 65536` before starting Dyno");
    let found = check("open files", |s| s.open_files = Some((256, 256)), Bad);
    assert!(found.advice.contains("limits.conf"));
}

fn stat(pid: i32, name: &str, own_ticks: u64, start_ticks: u64) -> ProcessStat {
    ProcessStat { pid, name: name.into(), own_ticks, start_ticks, ..ProcessStat::default() }
}

#[test]
fn the_busiest_processes_are_those_that_grew() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let before = [stat(10, "old", 5000, 1), stat(11, "busy", 100, 1), stat(12, "used", 9000, 1)];
    let after = [
        stat(10, "old", 5000, 1),
        stat(11, "busy", 150, 1),
        stat(12, "new", 20, 900),
        stat(own, "dyno", 9999, 1),
    ];
    let found = busiest(&before, &after, 100.0);
    let names: Vec<(&str, f64)> =
        found.iter().map(|process| (process.name.as_str(), process.cpu_s_per_s)).collect();
    assert_eq!(names, [("busy", 0.5), ("new", 0.2)]);
}

#[test]
fn symptoms_are_read_from_a_host() {
    let root = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("proc/stat", "cpu 100 0 100 800 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0\n");
    write("proc/7/stat", "7 (hog) S 1 1 1 0 -1 0 0 0 0 0 50 0 0 0 20 0 1 0 3 0 50 0");
    let before = Snapshot::read(root.path());
    write("proc/stat", "cpu 150 0 100 840 0 0 0 10\ncpu0 150 0 100 840 0 0 0 10\n");
    write("proc/7/stat", "7 (hog) S 1 1 1 0 -1 0 0 0 0 0 90 0 0 0 20 0 1 0 3 0 50 0");
    let after = Snapshot::read(root.path());
    write(
        "proc/meminfo",
        "MemTotal: 2048 kB\nMemAvailable: 1024 kB\nSwapTotal: 8 kB\nSwapFree: 6 kB\n",
    );
    write("proc/loadavg", "1.25 0.21 0.18 1/96 13793\n");
    write("proc/sys/vm/swappiness", "60\n");
    write("proc/self/limits", "Max open files            1024    unlimited    files\n");
    write("proc/self/mountinfo", "27 1 254:0 / / rw - xfs /dev/vda rw\n");
    write("proc/7/status", "Name:\thog\nUid:\t1\t33\t33\t33\n");
    write("etc/passwd", "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/sh\n");
    let found = Symptoms::read(root.path(), Path::new("/no/such/folder"), &before, &after);
    assert_eq!((found.busy_pct, found.steal_pct), (Some(50.0), Some(10.0)));
    let hog =
        BusyProcess { pid: 7, name: "hog".into(), user: Some("www-data".into()), cpu_s_per_s: 0.4 };
    assert_eq!(found.busiest, [hog]);
    assert_eq!(found.swap, Some((8192, 2048)));
    assert_eq!(found.swappiness, Some(60));
    assert_eq!(found.load_average, Some(1.25));
    assert_eq!(found.open_files, Some((1024, u64::MAX)));
    assert_eq!(found.filesystem.as_deref(), Some("xfs"));
    assert!(found.free_disk_bytes.is_some());
    assert_eq!(found.governor, None);
}

#[test]
fn this_host_can_be_examined() {
    let root = Path::new("/");
    let snapshot = Snapshot::read(root);
    let symptoms = Symptoms::read(root, root, &snapshot, &Snapshot::read(root));
    assert!(symptoms.cpus > 0 && symptoms.memory_bytes.is_some());
    assert_eq!(examine(&symptoms).len(), examine(&healthy()).len());
}
