//! A host's CPUs, memory, kernel and disks for the record, as far as the kernel reports them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup::Limits;
use crate::kernel_text::{load_average, meminfo_bytes, value};
use crate::storage::{Disk, Mount, chosen, nearest_existing};

/// What virtual machines and their makers are called, in lower case.
const MACHINES: &str = "kvm, qemu, vmware, virtualbox, xen, amazon ec2, google compute, \
    virtual machine, droplet, bhyve";

/// In `/proc/sys/vm`.
const VM_SETTINGS: &str = "swappiness dirty_ratio dirty_background_ratio dirty_bytes \
    dirty_background_bytes overcommit_memory nr_hugepages zone_reclaim_mode";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub machine: String,
    /// CPUs that Dyno may use.
    pub cpus: u32,
    /// 0 if the kernel does not report it.
    pub memory_bytes: u64,
    /// `cpu.model`, `cpu.governor`, `kernel`, `clock_source`, `filesystem`, `disk.scheduler` …
    pub facts: BTreeMap<String, String>,
}

/// Identifies the running kernel since its start; empty if unknown.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// `root` holds `proc`, `sys` and `etc`. `data_folder` need not exist.
pub fn environment(root: &Path, data_folder: &Path) -> Facts {
    let host = Host::new(root);
    let mut found = FactList::default();
    add_cpu(&host, &mut found);
    add_kernel(&host, &mut found);
    add_memory(&host, &mut found);
    add_storage(&host, data_folder, &mut found);
    add_limits(&host, &mut found);
    Facts {
        machine: host.line("proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".into()),
        cpus: usable_cpus(),
        memory_bytes: host.memory_bytes().unwrap_or(0),
        facts: found.0,
    }
}

pub(crate) fn usable_cpus() -> u32 {
    // Fails only if there are more CPUs than a set holds.
    let by_set = rustix::thread::sched_getaffinity(None).ok().map(|set| set.count());
    by_set.unwrap_or_else(|| {
        std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
    })
}

/// Single facts; `None` if unreadable.
pub(crate) struct Host {
    root: PathBuf,
}

impl Host {
    pub(crate) fn new(root: &Path) -> Host {
        Host { root: root.to_owned() }
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        meminfo_bytes(&self.text("proc/meminfo")?, "MemTotal")
    }

    pub(crate) fn governor(&self) -> Option<String> {
        self.line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    }

    pub(crate) fn governor_driver(&self) -> Option<String> {
        self.line("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")
    }

    pub(crate) fn has_turbo(&self) -> Option<bool> {
        let cpu = "sys/devices/system/cpu";
        let is_on = |file: &str| match self.line(&format!("{cpu}/{file}"))?.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        let is_off = is_on("intel_pstate/no_turbo");
        is_off.map(|is_off| !is_off).or_else(|| is_on("cpufreq/boost"))
    }

    pub(crate) fn clock_source(&self) -> Option<String> {
        self.line("sys/devices/system/clocksource/clocksource0/current_clocksource")
    }

    pub(crate) fn transparent_huge_pages(&self) -> Option<String> {
        let text = self.line("sys/kernel/mm/transparent_hugepage/enabled")?;
        Some(chosen(&text).to_owned())
    }

    /// `None` if nothing hints at a virtual machine.
    pub(crate) fn virtualisation(&self) -> Option<String> {
        let product = self.line("sys/class/dmi/id/product_name");
        let vendor = self.line("sys/class/dmi/id/sys_vendor");
        let hypervisor = self.line("sys/hypervisor/type");
        let flags = self.cpuinfo("flags");
        let has_flag = flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let parts: Vec<String> =
            [hypervisor.clone(), vendor, product].into_iter().flatten().collect();
        let text = parts.join(" ");
        let is_named = MACHINES.split(", ").any(|name| text.to_lowercase().contains(name));
        // A cloud's metal instance has the cloud's name, but no hypervisor.
        let is_metal = text.contains(".metal");
        if has_flag || hypervisor.is_some() || (is_named && !is_metal) {
            return Some(if text.is_empty() { "unidentified hypervisor".into() } else { text });
        }
        None
    }

    /// `None` if nothing hints at a container.
    pub(crate) fn container(&self) -> Option<&'static str> {
        if self.exists(".dockerenv") {
            return Some("docker");
        }
        if self.exists("run/.containerenv") {
            return Some("podman");
        }
        let groups = self.text("proc/1/cgroup").unwrap_or_default();
        ["docker", "kubepods", "lxc", "containerd"].into_iter().find(|kind| groups.contains(kind))
    }

    /// First value of the key.
    fn cpuinfo(&self, key: &str) -> Option<String> {
        self.text("proc/cpuinfo")?.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            let value = value.trim();
            (found.trim() == key && !value.is_empty()).then(|| value.to_owned())
        })
    }

    /// Soft and hard limit; `None` for no limit.
    pub(crate) fn open_files(&self) -> Option<(Option<u64>, Option<u64>)> {
        let limits = self.text("proc/self/limits")?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let mut words = line.split_ascii_whitespace();
        let mut next = || match words.next()? {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        };
        Some((next()?, next()?))
    }

    /// Mitigated CPU vulnerabilities, and open ones.
    pub(crate) fn mitigations(&self) -> Option<(usize, usize)> {
        let folder = self.root.join("sys/devices/system/cpu/vulnerabilities");
        let entries = fs::read_dir(folder).ok()?;
        let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
        let texts: Vec<String> = texts.collect();
        let count = |head: &str| texts.iter().filter(|text| text.starts_with(head)).count();
        Some((count("Mitigation"), count("Vulnerable")))
    }

    pub(crate) fn has_mitigations_off(&self) -> bool {
        let line = self.text("proc/cmdline").unwrap_or_default();
        line.split_ascii_whitespace().any(|word| word == "mitigations=off")
    }

    /// Of the folder, or its nearest existing parent.
    pub(crate) fn storage(&self, folder: &Path) -> Option<(Mount, Disk)> {
        let folder = nearest_existing(folder)?;
        let mount = Mount::of(&self.text("proc/self/mountinfo")?, &folder)?;
        let disk = Disk::of(&self.root.join("sys"), &mount);
        Some((mount, disk))
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits::read(&self.root)
    }

    fn count_numa_nodes(&self) -> Option<usize> {
        let entries = fs::read_dir(self.root.join("sys/devices/system/node")).ok()?;
        let is_node =
            |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
        let names = entries.flatten().map(|entry| entry.file_name());
        let count = names.filter(|name| name.to_str().is_some_and(is_node)).count();
        (count > 0).then_some(count)
    }
}

#[derive(Default)]
struct FactList(BTreeMap<String, String>);

impl FactList {
    fn add(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.insert(name.into(), value.to_string());
        }
    }
}

fn on_or_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn add_cpu(host: &Host, found: &mut FactList) {
    let model = ["model name", "cpu model", "Hardware", "CPU part", "cpu"];
    found.add("cpu.model", model.into_iter().find_map(|key| host.cpuinfo(key)));
    found.add("cpu.mhz", host.cpuinfo("cpu MHz"));
    let max_khz = host.line("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    let max_mhz = max_khz.and_then(|khz| khz.parse::<u64>().ok()).map(|khz| khz / 1000);
    found.add("cpu.mhz_max", max_mhz);
    found.add("cpu.governor", host.governor());
    found.add("cpu.driver", host.governor_driver());
    found.add("cpu.turbo", host.has_turbo().map(on_or_off));
    found.add("cpu.online", host.line("sys/devices/system/cpu/online"));
    let smt = host.line("sys/devices/system/cpu/smt/active");
    found.add("cpu.threads_per_core", smt.map(|text| if text == "1" { "several" } else { "one" }));
    found.add("cpu.cache", host.cpuinfo("cache size"));
    found.add("cpu.numa_nodes", host.count_numa_nodes());
    found.add("cpu.mitigations", mitigations_in_words(host));
    found.add("architecture", Some(std::env::consts::ARCH));
}

/// `2 mitigated, 1 not`, or `off`.
pub(crate) fn mitigations_in_words(host: &Host) -> Option<String> {
    if host.has_mitigations_off() {
        return Some("off".into());
    }
    let (in_force, open) = host.mitigations()?;
    Some(format!("{in_force} mitigated, {open} not"))
}

fn add_kernel(host: &Host, found: &mut FactList) {
    found.add("kernel", host.line("proc/sys/kernel/osrelease"));
    found.add("os", os_name(&host.text("etc/os-release").unwrap_or_default()));
    found.add("virtualisation", host.virtualisation());
    found.add("container", host.container());
    found.add("clock_source", host.clock_source());
    let load = host.text("proc/loadavg").and_then(|text| load_average(&text).0);
    found.add("load_average", load);
}

fn os_name(text: &str) -> Option<String> {
    let field = |key: &str| {
        let value = value(text, key, '=')?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
    };
    field("PRETTY_NAME").or_else(|| field("NAME"))
}

fn add_memory(host: &Host, found: &mut FactList) {
    let meminfo = host.text("proc/meminfo").unwrap_or_default();
    found.add("memory.swap_bytes", meminfo_bytes(&meminfo, "SwapTotal"));
    found.add("memory.huge_page_bytes", meminfo_bytes(&meminfo, "Hugepagesize"));
    found.add("transparent_huge_pages", host.transparent_huge_pages());
    for name in VM_SETTINGS.split(' ') {
        found.add(&format!("vm.{name}"), host.line(&format!("proc/sys/vm/{name}")));
    }
}

fn add_storage(host: &Host, data_folder: &Path, found: &mut FactList) {
    let Some((mount, disk)) = host.storage(data_folder) else { return };
    found.add("filesystem", Some(mount.filesystem));
    found.add("filesystem.device", Some(mount.device));
    found.add("filesystem.options", Some(mount.options));
    found.add("filesystem.mount_point", Some(mount.point.display()));
    found.add("disk.name", disk.name);
    found.add("disk.model", disk.model);
    found.add("disk.scheduler", disk.scheduler);
    let kind = |is_rotational| if is_rotational { "yes" } else { "no" };
    found.add("disk.rotational", disk.is_rotational.map(kind));
    found.add("disk.write_cache", disk.write_cache);
    found.add("disk.loop_file", disk.loop_file);
    found.add("disk.loop_direct", disk.is_loop_direct.map(kind));
}

fn add_limits(host: &Host, found: &mut FactList) {
    let limits = host.limits();
    found.add("cgroup.cpus", limits.cpus);
    found.add("cgroup.memory_bytes", limits.memory_bytes);
    if let Some((soft, hard)) = host.open_files() {
        let word = |limit: Option<u64>| limit.map_or("unlimited".into(), |n| n.to_string());
        found.add("limit.open_files", Some(word(soft)));
        found.add("limit.open_files_hard", Some(word(hard)));
    }
}

#[cfg(test)]
mod tests;
