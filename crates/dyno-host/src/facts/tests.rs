//! Tests of the facts with made-up hosts.

use tempfile::TempDir;

use super::*;

fn host(files: &[(&str, &str)]) -> (TempDir, Host) {
    let root = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
    let host = Host::new(root.path());
    (root, host)
}

const CPUINFO: &str = "processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2596.096\n\
    cache size\t: 1024 KB\nflags\t\t: fpu vme hypervisor lahf_lm\n\nprocessor\t: 1\n\
    model name\t: other\n";

#[test]
fn the_facts_of_a_server_are_found() {
    let (root, _host) = host(&[
        ("proc/sys/kernel/hostname", "lab-1\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n"),
        ("proc/cpuinfo", CPUINFO),
        ("proc/meminfo", "MemTotal: 2048 kB\nSwapTotal: 0 kB\nHugepagesize: 2048 kB\n"),
        ("proc/loadavg", "0.13 0.21 0.18 1/96 13793\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("proc/self/limits", "Limit  Soft\nMax open files   1024   524288   files\n"),
        ("proc/self/mountinfo", "27 1 254:0 / / rw,noatime - ext4 /dev/vda rw,discard\n"),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ("sys/dev/block/254:0/queue/scheduler", "none [mq-deadline]\n"),
        ("sys/dev/block/254:0/queue/rotational", "0\n"),
        ("sys/dev/block/254:0/queue/write_cache", "write back\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3700000\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/cpu/smt/active", "1\n"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
        ("sys/devices/system/cpu/vulnerabilities/srso", "Vulnerable: no microcode\n"),
        ("sys/devices/system/cpu/vulnerabilities/mds", "Not affected\n"),
        ("sys/devices/system/node/node0/cpulist", "0\n"),
        ("sys/devices/system/node/node1/cpulist", "1\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
    ]);
    let facts = environment(root.path(), Path::new("/no/such/folder"));
    assert_eq!((facts.machine.as_str(), facts.memory_bytes), ("lab-1", 2 << 20));
    assert!(facts.cpus > 0);
    let check = |name: &str, expected: &str| assert_eq!(facts.facts[name], expected, "{name}");
    check("cpu.model", "AMD EPYC");
    check("cpu.mhz", "2596.096");
    check("cpu.mhz_max", "3700");
    check("cpu.governor", "performance");
    check("cpu.turbo", "off");
    check("cpu.threads_per_core", "several");
    check("cpu.numa_nodes", "2");
    check("cpu.mitigations", "1 mitigated, 1 not");
    check("kernel", "6.1.0-13-amd64");
    check("os", "Debian GNU/Linux 12 (bookworm)");
    check("virtualisation", "unidentified hypervisor");
    check("clock_source", "tsc");
    check("transparent_huge_pages", "madvise");
    check("memory.swap_bytes", "0");
    check("vm.swappiness", "60");
    check("filesystem", "ext4");
    check("filesystem.device", "/dev/vda");
    check("filesystem.options", "rw,noatime,discard");
    check("disk.scheduler", "mq-deadline");
    check("disk.rotational", "no");
    check("disk.write_cache", "write back");
    check("cgroup.cpus", "1.5");
    check("limit.open_files", "1024");
    check("limit.open_files_hard", "524288");
    check("load_average", "0.13");
    assert!(!facts.facts.contains_key("container"));
}

#[test]
fn a_silent_host_has_few_facts() {
    let (root, _host) = host(&[]);
    let facts = environment(root.path(), Path::new("/"));
    assert_eq!((facts.machine.as_str(), facts.memory_bytes), ("unknown", 0));
    assert_eq!(facts.facts.keys().collect::<Vec<_>>(), ["architecture"]);
}

#[test]
fn virtual_machines_are_distinguished_from_metal() {
    let check = |files: &[(&str, &str)], expected: Option<&str>| {
        let (_root, host) = host(files);
        assert_eq!(host.virtualisation().as_deref(), expected, "{files:?}");
    };
    let (vendor, product) = ("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name");
    check(&[], None);
    check(&[(vendor, "Dell Inc.\n"), (product, "PowerEdge R650\n")], None);
    check(&[(vendor, "Amazon EC2\n"), (product, "m7g.large\n")], Some("Amazon EC2 m7g.large"));
    check(&[(vendor, "Amazon EC2\n"), (product, "m7g.metal\n")], None);
    check(&[(vendor, "QEMU\n"), ("proc/cpuinfo", CPUINFO)], Some("QEMU"));
    check(&[("proc/cpuinfo", CPUINFO)], Some("unidentified hypervisor"));
    check(&[("sys/hypervisor/type", "xen\n")], Some("xen"));
}

#[test]
fn containers_are_reported() {
    let check = |files: &[(&str, &str)], expected: Option<&str>| {
        let (_root, host) = host(files);
        assert_eq!(host.container(), expected, "{files:?}");
    };
    check(&[], None);
    check(&[(".dockerenv", "")], Some("docker"));
    check(&[("run/.containerenv", "")], Some("podman"));
    check(&[("proc/1/cgroup", "0::/kubepods/pod1\n")], Some("kubepods"));
    check(&[("proc/1/cgroup", "0::/init.scope\n")], None);
}

#[test]
fn turbo_and_limits_are_read() {
    let (_root, amd) = host(&[
        ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ("proc/self/limits", "Max open files            unlimited   unlimited   files\n"),
        ("proc/cmdline", "quiet mitigations=off\n"),
    ]);
    assert_eq!(amd.has_turbo(), Some(true));
    assert_eq!(amd.open_files(), Some((None, None)));
    assert_eq!(mitigations_in_words(&amd).as_deref(), Some("off"));
    let (_root, broken) = host(&[
        ("sys/devices/system/cpu/cpufreq/boost", "?\n"),
        ("proc/self/limits", "Max open files            few\n"),
    ]);
    assert_eq!((broken.has_turbo(), broken.open_files()), (None, None));
}

#[test]
fn the_name_of_the_system_is_for_people() {
    let check = |text: &str, expected: Option<&str>| {
        assert_eq!(os_name(text).as_deref(), expected, "{text}");
    };
    check("NAME='Alpine Linux'\n", Some("Alpine Linux"));
    check("NAME=x\nPRETTY_NAME=\"y z\"\n", Some("y z"));
    check("PRETTY_NAME=\n", None);
    check("", None);
}

#[test]
fn this_host_has_facts() {
    let facts = environment(Path::new("/"), Path::new("/"));
    assert!(facts.cpus > 0 && facts.memory_bytes > 0);
    assert!(facts.facts.contains_key("kernel") && facts.facts.contains_key("filesystem"));
}
