//! Examines a host as a laboratory: what makes measurements noisy, slow or untrue.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::facts::{Host, mitigations_in_words};
use crate::kernel_text::{load_average, meminfo_bytes};
use crate::probe::{CpuCounters, busy, stolen, sum};
use crate::process_table::{ProcessStat, list_processes};
use crate::storage::{free_bytes, nearest_existing};

mod checks;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    Good,
    /// The kernel does not report it.
    Unknown,
    /// Tolerable, but worth knowing.
    Notice,
    /// Unfit for measurements until changed.
    Bad,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub state: CheckState,
    pub found: String,
    pub why: &'static str,
    /// Empty if there is nothing to do.
    pub advice: String,
}

/// A process that takes CPU time beside the laboratory.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyProcess {
    pub pid: i32,
    pub name: String,
    /// Name, or number if the host has no name; `None` if the process has ended.
    pub user: Option<String>,
    pub cpu_s_per_s: f64,
}

/// Counters at one moment; two show what happened in between.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    cpu: Option<CpuCounters>,
    processes: Vec<ProcessStat>,
    n_throttled: Option<u64>,
}

impl Snapshot {
    /// `root` holds `proc` and `sys`.
    pub fn read(root: &Path) -> Snapshot {
        let host = Host::new(root);
        Snapshot {
            cpu: host.text("proc/stat").as_deref().and_then(CpuCounters::parse),
            processes: list_processes(&root.join("proc")),
            n_throttled: host.limits().n_throttled,
        }
    }
}

/// `None` if the kernel does not report it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Symptoms {
    /// CPUs that Dyno may use.
    pub cpus: u32,
    /// `performance`, `powersave`.
    pub governor: Option<String>,
    /// `intel_pstate`, `acpi-cpufreq`.
    pub governor_driver: Option<String>,
    /// Whether CPUs may exceed their base clock for a while.
    pub has_turbo: Option<bool>,
    /// `tsc`.
    pub clock_source: Option<String>,
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Of the host, or of its control group if less.
    pub memory_bytes: Option<u64>,
    /// Bytes that programs could still get.
    pub available_bytes: Option<u64>,
    /// Total and used, in bytes.
    pub swap: Option<(u64, u64)>,
    /// 0 to 200.
    pub swappiness: Option<u32>,
    /// In the data folder.
    pub free_disk_bytes: Option<u64>,
    /// Of the data folder: `ext4`.
    pub filesystem: Option<String>,
    pub is_rotational: Option<bool>,
    /// Soft and hard limit; `u64::MAX` for none.
    pub open_files: Option<(u64, u64)>,
    /// `None` if the host seems to be real.
    pub virtualisation: Option<String>,
    /// Of the last minute.
    pub load_average: Option<f64>,
    /// Share of all CPUs that worked between the snapshots, in per cent.
    pub busy_pct: Option<f64>,
    /// Share of all CPUs that the hypervisor gave to others between the snapshots, in per cent.
    pub steal_pct: Option<f64>,
    /// By CPU time between the snapshots, without Dyno.
    pub busiest: Vec<BusyProcess>,
    /// CPU seconds per second; `None` for no limit.
    pub cgroup_cpus: Option<f64>,
    pub cgroup_memory_bytes: Option<u64>,
    /// Times that CPU time was refused between the snapshots.
    pub n_throttled: Option<u64>,
    /// Of the kernel's scheduler, if Dyno is in one: `that of its session`.
    pub scheduling_group: Option<String>,
    pub mitigations: Option<String>,
}

const BUSIEST_MAX: usize = 3;
/// As a share of a CPU.
const BUSY_CPU_MIN: f64 = 0.01;

impl Symptoms {
    /// `before` and `after` are some seconds apart, with Dyno idle. `root` holds `proc` and `sys`.
    pub fn read(root: &Path, data_folder: &Path, before: &Snapshot, after: &Snapshot) -> Symptoms {
        let host = Host::new(root);
        let mut found = Symptoms {
            cpus: crate::facts::usable_cpus(),
            governor: host.governor(),
            governor_driver: host.governor_driver(),
            has_turbo: host.has_turbo(),
            clock_source: host.clock_source(),
            transparent_huge_pages: host.transparent_huge_pages(),
            virtualisation: host.virtualisation(),
            scheduling_group: crate::scheduling::own_group(root),
            mitigations: mitigations_in_words(&host),
            load_average: host.text("proc/loadavg").and_then(|text| load_average(&text).0),
            ..Symptoms::default()
        };
        let no_limit = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        found.open_files = host.open_files().map(|(soft, hard)| (no_limit(soft), no_limit(hard)));
        found.add_memory(&host);
        found.add_storage(&host, data_folder);
        found.add_between(before, after);
        for process in &mut found.busiest {
            process.user = user_of(root, process.pid);
        }
        let limits = host.limits();
        found.cgroup_cpus = limits.cpus;
        found.cgroup_memory_bytes = limits.memory_bytes;
        found
    }

    fn add_memory(&mut self, host: &Host) {
        let text = host.text("proc/meminfo").unwrap_or_default();
        self.memory_bytes = meminfo_bytes(&text, "MemTotal");
        self.available_bytes = meminfo_bytes(&text, "MemAvailable");
        let swap = meminfo_bytes(&text, "SwapTotal").zip(meminfo_bytes(&text, "SwapFree"));
        self.swap = swap.map(|(total, free)| (total, total.saturating_sub(free)));
        self.swappiness = host.line("proc/sys/vm/swappiness").and_then(|text| text.parse().ok());
    }

    fn add_storage(&mut self, host: &Host, data_folder: &Path) {
        self.free_disk_bytes =
            nearest_existing(data_folder).and_then(|folder| free_bytes(&folder).ok());
        if let Some((mount, disk)) = host.storage(data_folder) {
            self.filesystem = Some(mount.filesystem);
            self.is_rotational = disk.is_rotational;
        }
    }

    fn add_between(&mut self, before: &Snapshot, after: &Snapshot) {
        let n_throttled = before.n_throttled.zip(after.n_throttled);
        self.n_throttled = n_throttled.map(|(before, after)| after.saturating_sub(before));
        let (Some(cpu_before), Some(cpu_after)) = (&before.cpu, &after.cpu) else { return };
        let grown = cpu_after.since(cpu_before);
        let all = sum(&grown) as f64;
        if all > 0.0 {
            self.busy_pct = Some(100.0 * busy(&grown) as f64 / all);
            self.steal_pct = Some(100.0 * stolen(&grown) as f64 / all);
            // Each CPU counts the elapsed ticks.
            let ticks = all / cpu_after.n_cpus().max(1) as f64;
            self.busiest = busiest(&before.processes, &after.processes, ticks);
        }
    }
}

/// From `/etc/passwd` of the host.
fn user_of(root: &Path, pid: i32) -> Option<String> {
    let status = std::fs::read_to_string(root.join(format!("proc/{pid}/status"))).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // Real, effective, saved, filesystem.
    let uid = line.split_whitespace().nth(1)?;
    let users = std::fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    Some(name.unwrap_or_else(|| format!("number {uid}")))
}

/// By CPU time; the moments are `ticks` apart.
fn busiest(before: &[ProcessStat], after: &[ProcessStat], ticks: f64) -> Vec<BusyProcess> {
    let own_pid = rustix::process::getpid().as_raw_nonzero().get();
    let earlier: BTreeMap<_, _> =
        before.iter().map(|stat| (stat.identity(), stat.own_ticks)).collect();
    let others = after.iter().filter(|stat| stat.pid != own_pid).map(|stat| {
        // A new process began at zero.
        let began = earlier.get(&stat.identity()).copied().unwrap_or(0);
        BusyProcess {
            pid: stat.pid,
            name: stat.name.clone(),
            user: None,
            cpu_s_per_s: stat.own_ticks.saturating_sub(began) as f64 / ticks,
        }
    });
    let mut all: Vec<BusyProcess> = others.filter(|one| one.cpu_s_per_s >= BUSY_CPU_MIN).collect();
    all.sort_by(|a, b| b.cpu_s_per_s.total_cmp(&a.cpu_s_per_s).then(a.pid.cmp(&b.pid)));
    all.truncate(BUSIEST_MAX);
    all
}

/// In the order in which a user would fix things.
pub fn examine(symptoms: &Symptoms) -> Vec<Check> {
    let unknown =
        || (CheckState::Unknown, "the kernel does not report it".to_owned(), String::new());
    let check = |(name, why, verdict): &checks::Rule| {
        let (state, found, advice) = verdict(symptoms).unwrap_or_else(unknown);
        Check { name, state, found, why, advice }
    };
    checks::RULES.iter().map(check).collect()
}

#[cfg(test)]
mod tests;
