//! From symptom to verdict: a function for each check.

use dyno_units::ByteCount;

use super::CheckState::{Bad, Good, Notice, Unknown};
use super::{CheckState, Symptoms};

const GIB: u64 = 1 << 30;

/// State, what was found, and advice.
type Verdict = (CheckState, String, String);

/// Name, why it matters, and the verdict: `None` if the kernel does not report it.
pub(super) type Rule = (&'static str, &'static str, fn(&Symptoms) -> Option<Verdict>);

pub(super) const RULES: &[Rule] = &[
    ("CPUs", "the server and the load generator compete for the same CPUs", cpus),
    ("other load", "other activity on the host is measured as if it were the server's", other_load),
    (
        "virtual machine",
        "neighbours on the same hardware take CPU time, disk and caches, unseen and at any time",
        virtual_machine,
    ),
    (
        "control group",
        "a CPU limit stops the server in the middle of a transaction; a memory limit can kill it",
        control_group,
    ),
    (
        "scheduling group",
        "CPUs are divided among groups of processes first: a server in Dyno's group and one in another perform differently",
        scheduling_group,
    ),
    (
        "CPU governor",
        "a CPU that slows down when idle makes light load look slow and heavy load look fast",
        governor,
    ),
    (
        "turbo",
        "a clock frequency that depends on temperature and on how many CPUs are busy makes one \
         client look faster than it is, and the first minutes look faster than the last",
        turbo,
    ),
    (
        "clock source",
        "each attempt reads the clock several times; a slow source costs microseconds each time",
        clock_source,
    ),
    (
        "memory",
        "a server that is short of memory reads from disk what its settings say it keeps in memory",
        memory,
    ),
    ("swap", "memory that comes back from swap stalls the server for milliseconds", swap),
    (
        "transparent huge pages",
        "the kernel merges small pages while the server runs, which causes stalls and makes its \
         memory grow",
        transparent_huge_pages,
    ),
    ("filesystem", "the cost of a commit is mostly the cost of a sync on this disk", filesystem),
    (
        "free disk",
        "tables, logs and temporary files grow while a trial runs; a full disk ends the trial",
        free_disk,
    ),
    (
        "open files",
        "each client is a connection at both ends, and a server keeps its tables open",
        open_files,
    ),
    (
        "CPU mitigations",
        "they make system calls and context switches more expensive; compare only hosts with the \
         same mitigations",
        mitigations,
    ),
];

/// What is good needs no advice.
fn verdict(
    state: CheckState,
    found: impl Into<String>,
    advice: impl Into<String>,
) -> Option<Verdict> {
    Some((state, found.into(), if state == Good { String::new() } else { advice.into() }))
}

fn cpus(symptoms: &Symptoms) -> Option<Verdict> {
    let n = symptoms.cpus;
    let (state, advice) = match n {
        0 | 1 => (
            Bad,
            "use a host with at least two CPUs, or load a server on another host: with one CPU \
             every transaction competes with its own generator",
        ),
        2 | 3 => (
            Notice,
            "bind the server and the generator to different CPUs, and read the generator's share \
             in the report",
        ),
        _ => (Good, ""),
    };
    let found = if n == 1 { "1 CPU".to_owned() } else { format!("{n} CPUs") };
    verdict(state, found, advice)
}

fn other_load(symptoms: &Symptoms) -> Option<Verdict> {
    let Some(busy_pct) = symptoms.busy_pct else {
        return verdict(Unknown, "the kernel does not report it", "check with `top`");
    };
    let load = symptoms.load_average.unwrap_or(0.0);
    let is_loaded = load > 0.5 * f64::from(symptoms.cpus.max(1));
    let state = match busy_pct {
        pct if pct >= 10.0 => Bad,
        pct if pct >= 3.0 || is_loaded => Notice,
        _ => Good,
    };
    let mut found = format!("CPUs {busy_pct:.1}% busy");
    if let Some(load) = symptoms.load_average {
        found.push_str(&format!(", load average {load:.2}"));
    }
    let top = symptoms.busiest.iter().map(|p| {
        let user = p.user.iter().map(|user| format!(" of user {user}")).collect::<String>();
        format!("{} (process {}{user}) {:.0}%", p.name, p.pid, 100.0 * p.cpu_s_per_s)
    });
    let top: Vec<String> = top.collect();
    if !top.is_empty() {
        found.push_str(&format!("; top: {}", top.join(", ")));
    }
    let advice = match busy_pct < 3.0 {
        true => "wait until the load average has come down",
        false => "stop whatever else runs on the host, or wait until it finishes",
    };
    verdict(state, found, advice)
}

fn virtual_machine(symptoms: &Symptoms) -> Option<Verdict> {
    let steal = symptoms.steal_pct;
    let stolen = steal.map_or(String::new(), |pct| format!(", {pct:.1}% of CPU time stolen"));
    match (&symptoms.virtualisation, steal) {
        (kind, Some(pct)) if pct >= 1.0 => {
            let kind = kind.as_deref().unwrap_or("a virtual machine");
            let advice = "use a host with dedicated CPUs (or bare metal), or many repetitions in \
                          interleaved order";
            verdict(Bad, format!("{kind}{stolen}"), advice)
        }
        (Some(kind), _) => {
            let advice = "repeat trials in interleaved order, and watch `cpu.steal_pct`";
            verdict(Notice, format!("{kind}{stolen}"), advice)
        }
        (None, _) => verdict(Good, "none detected", ""),
    }
}

fn control_group(symptoms: &Symptoms) -> Option<Verdict> {
    let mut limits = Vec::new();
    if let Some(cpus) = symptoms.cgroup_cpus {
        limits.push(format!("{cpus} CPUs"));
    }
    if let Some(bytes) = symptoms.cgroup_memory_bytes {
        limits.push(format!("{} of memory", ByteCount(bytes)));
    }
    if limits.is_empty() {
        return verdict(Good, "no limit", "");
    }
    let found = format!("limited to {}", limits.join(" and "));
    if let Some(n) = symptoms.n_throttled.filter(|n| *n > 0) {
        let found = format!("{found}; throttled {n} times just now");
        let advice = "raise the CPU limit of the container or the unit, or bind it to whole CPUs";
        return verdict(Bad, found, advice);
    }
    let advice = "size the server by these limits, not by the host, or raise them";
    verdict(Notice, found, advice)
}

fn scheduling_group(symptoms: &Symptoms) -> Option<Verdict> {
    let Some(group) = &symptoms.scheduling_group else {
        return verdict(Good, "none", "");
    };
    let advice = "compare only servers with the same `scheduling_group`, which the report lists for each variant";
    verdict(Notice, format!("Dyno is in {group}"), advice)
}

fn governor(symptoms: &Symptoms) -> Option<Verdict> {
    let Some(governor) = &symptoms.governor else {
        let advice = if symptoms.virtualisation.is_some() {
            "there is nothing to change: in a virtual machine, the hypervisor decides"
        } else {
            "choose performance in the firmware's power settings"
        };
        return verdict(Unknown, "the kernel does not report it", advice);
    };
    // With these drivers `powersave` adapts to load; with all others it is the lowest clock.
    let adapts = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];
    let is_adaptive = symptoms.governor_driver.as_deref().is_some_and(|d| adapts.contains(&d));
    let state = match governor.as_str() {
        "performance" => Good,
        "powersave" if !is_adaptive => Bad,
        _ => Notice,
    };
    let found = match &symptoms.governor_driver {
        Some(driver) => format!("{governor} ({driver})"),
        None => governor.clone(),
    };
    verdict(state, found, "set it with `cpupower frequency-set -g performance`")
}

fn turbo(symptoms: &Symptoms) -> Option<Verdict> {
    let (state, found) = if symptoms.has_turbo? { (Notice, "on") } else { (Good, "off") };
    let advice = "for the steadiest results, switch it off: `echo 1 > \
                  /sys/devices/system/cpu/intel_pstate/no_turbo`, or `echo 0 > \
                  /sys/devices/system/cpu/cpufreq/boost`";
    verdict(state, found, advice)
}

fn clock_source(symptoms: &Symptoms) -> Option<Verdict> {
    let source = symptoms.clock_source.as_ref()?;
    let (state, advice) = match source.as_str() {
        "tsc" | "arch_sys_counter" | "timebase" | "tod" => (Good, ""),
        "kvm-clock" | "hyperv_clocksource_tsc_page" => (
            Notice,
            "read without a system call, but slower than `tsc`; if the CPU has a stable one, boot \
             with `clocksource=tsc`",
        ),
        _ => (
            Bad,
            "each read is a system call or worse; boot with `clocksource=tsc`, or look in `dmesg` \
             for why the kernel rejects it",
        ),
    };
    verdict(state, source, advice)
}

fn memory(symptoms: &Symptoms) -> Option<Verdict> {
    let (total, available) = (symptoms.memory_bytes?, symptoms.available_bytes?);
    let state = match available {
        n if n < GIB / 2 => Bad,
        n if n < 2 * GIB || n < total / 2 => Notice,
        _ => Good,
    };
    let found = format!("{} of {} available", ByteCount(available), ByteCount(total));
    verdict(state, found, "stop whatever uses the memory, or use a larger host")
}

fn swap(symptoms: &Symptoms) -> Option<Verdict> {
    let (total, used) = symptoms.swap?;
    if total == 0 {
        return verdict(Good, "none", "");
    }
    let swappiness = symptoms.swappiness;
    let is_eager = swappiness.is_some_and(|n| n > 10);
    let mut found = format!("{} of {} used", ByteCount(used), ByteCount(total));
    if let Some(n) = swappiness {
        found.push_str(&format!(", swappiness {n}"));
    }
    let memory = symptoms.memory_bytes.unwrap_or(u64::MAX);
    let (state, advice) = match used {
        n if n > memory / 20 => (Bad, "free memory, then `swapoff -a && swapon -a`"),
        n if n > 0 || is_eager => {
            (Notice, "switch it off with `swapoff -a`, or `sysctl vm.swappiness=1`")
        }
        _ => (Good, ""),
    };
    verdict(state, found, advice)
}

fn transparent_huge_pages(symptoms: &Symptoms) -> Option<Verdict> {
    let found = symptoms.transparent_huge_pages.as_deref()?;
    let state = if found == "always" { Notice } else { Good };
    let advice = "`echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`, unless they are \
                  what you study";
    verdict(state, found, advice)
}

fn filesystem(symptoms: &Symptoms) -> Option<Verdict> {
    let kind = symptoms.filesystem.as_deref()?;
    let (state, advice) = match kind {
        "tmpfs" | "ramfs" => (Bad, "in memory a sync costs nothing; choose a folder on a disk"),
        "overlay" | "aufs" => (Notice, "choose a folder on a disk, outside the container's layers"),
        "nfs" | "nfs4" | "cifs" | "ceph" | "9p" | "virtiofs" | "fuse" => {
            (Notice, "choose a folder on a local disk, unless this is what you study")
        }
        "btrfs" | "zfs" => (
            Notice,
            "it is copy-on-write, which can cost more or less than ext4 and xfs: mention it with \
             the results",
        ),
        _ if symptoms.is_rotational == Some(true) && symptoms.virtualisation.is_none() => {
            (Notice, "this is a rotating disk: expect a few hundred synced commits per second")
        }
        _ => (Good, ""),
    };
    verdict(state, kind, advice)
}

fn free_disk(symptoms: &Symptoms) -> Option<Verdict> {
    let Some(free) = symptoms.free_disk_bytes else {
        return verdict(Unknown, "the data folder cannot be examined", "choose another");
    };
    let state = match free {
        n if n < GIB => Bad,
        n if n < 10 * GIB => Notice,
        _ => Good,
    };
    let found = format!("{} free", ByteCount(free));
    verdict(state, found, "free space, or choose a folder on a larger disk")
}

fn open_files(symptoms: &Symptoms) -> Option<Verdict> {
    let (soft, hard) = symptoms.open_files?;
    let state = match soft {
        n if n < 1024 => Bad,
        n if n < 4096 => Notice,
        _ => Good,
    };
    let words = |limit: u64| match limit {
        u64::MAX => "no limit".to_owned(),
        n => n.to_string(),
    };
    let found = format!("{} (at most {})", words(soft), words(hard));
    let advice = match hard > soft {
        true => format!("`ulimit -n {}` before starting Dyno", hard.min(65_536)),
        false => "raise it in /etc/security/limits.conf, or with LimitNOFILE= in the unit".into(),
    };
    verdict(state, found, advice)
}

fn mitigations(symptoms: &Symptoms) -> Option<Verdict> {
    let found = symptoms.mitigations.as_deref()?;
    let state = if found == "off" { Notice } else { Good };
    verdict(state, found, "mention them with the results: most servers run with them")
}
