//! Limits, usage and throttling of the control groups of server and Dyno, versions 1 and 2.

use std::path::{Path, PathBuf};

use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, growth, numbers, seconds_since};
use crate::cgroup::{Limits, group_folders};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("cgroup.*.cpu_limit", Cpus, "CPU limit", "CPU time per second that the control groups allow").topic(Topic::Instance),
    reading("cgroup.*.memory_limit_bytes", Bytes, "memory limit", "memory that the control groups allow").topic(Topic::Instance),
    reading("cgroup.*.memory_bytes", Bytes, "memory", "memory of the control group, page cache included").topic(Topic::Instance),
    reading("cgroup.*.throttled_periods_per_s", PerSecond, "throttled periods", "periods (usually of 100 ms) in which the group used up its CPU time and had to wait").topic(Topic::Instance).worse().up(StallCause::CpuQuota),
    reading("cgroup.*.throttled_s_per_s", Cpus, "throttled", "time that the group was throttled, summed over its CPUs").topic(Topic::Instance).worse().up(StallCause::CpuQuota),
    reading("cgroup.server.throttled_s_per_s", Cpus, "server held back by its quota", "time that the server's group was throttled, summed over its CPUs").topic(Topic::Instance).worse().up(StallCause::CpuQuota).row(980).instance_of("cgroup.*.throttled_s_per_s"),
];

struct Group {
    /// `server` or `generator`.
    name: &'static str,
    limits: Limits,
    /// Of its group and all parents: each limit throttles.
    cpu_stats: Vec<Source>,
    memory: Option<Source>,
    before: Option<(u64, u64)>,
}

pub(super) struct CgroupsProbe {
    groups: Vec<Group>,
    before: Option<Nanoseconds>,
}

impl CgroupsProbe {
    /// `root` holds `proc` and `sys`.
    pub(super) fn new(root: &Path, server: Option<i32>) -> CgroupsProbe {
        let server = server.map(|pid| Group::new(root, "server", &pid.to_string()));
        let own = Group::new(root, "generator", "self");
        CgroupsProbe { groups: server.into_iter().chain([own]).collect(), before: None }
    }
}

impl Group {
    fn new(root: &Path, name: &'static str, process: &str) -> Group {
        let folders = group_folders(root, process);
        let existing = |file: &str| -> Vec<PathBuf> {
            folders.iter().map(|folder| folder.join(file)).filter(|path| path.exists()).collect()
        };
        let memory = existing("memory.current").into_iter().next();
        let memory = memory.or_else(|| existing("memory.usage_in_bytes").into_iter().next());
        Group {
            name,
            limits: Limits::of(root, process),
            cpu_stats: existing("cpu.stat").into_iter().map(Source::new).collect(),
            memory: memory.map(Source::new),
            before: None,
        }
    }

    fn read(&mut self, seconds: Option<f64>, readings: &mut Readings) {
        let name = self.name;
        let mut add = |what: &str, value: f64| {
            readings.insert(format!("cgroup.{name}.{what}"), value);
        };
        if let Some(cpus) = self.limits.cpus {
            add("cpu_limit", cpus);
        }
        if let Some(bytes) = self.limits.memory_bytes {
            add("memory_limit_bytes", bytes as f64);
        }
        let memory = self.memory.as_mut().and_then(|source| numbers(source.text()?).next());
        if let Some(bytes) = memory {
            add("memory_bytes", bytes as f64);
        }
        let throttled = self.throttled();
        if let (Some(before), Some(now), Some(seconds)) = (self.before, throttled, seconds) {
            add("throttled_periods_per_s", growth(before.0, now.0) / seconds);
            add("throttled_s_per_s", growth(before.1, now.1) / 1e9 / seconds);
        }
        self.before = throttled;
    }

    /// Periods and nanoseconds so far, of all its groups.
    fn throttled(&mut self) -> Option<(u64, u64)> {
        let found = self.cpu_stats.iter_mut().filter_map(|source| parse_throttled(source.text()?));
        found.reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))
    }
}

/// `nr_throttled` and the time: nanoseconds in version 1, microseconds in version 2.
fn parse_throttled(text: &str) -> Option<(u64, u64)> {
    let count = |key: &str| {
        numbers(text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?).next()
    };
    let ns =
        count("throttled_time").or_else(|| Some(count("throttled_usec")?.saturating_mul(1000)))?;
    Some((count("nr_throttled")?, ns))
}

impl Probe for CgroupsProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let seconds = seconds_since(self.before, now);
        for group in &mut self.groups {
            group.read(seconds, readings);
        }
        self.before = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_is_read_in_both_versions() {
        let check = |text: &str, expected: Option<(u64, u64)>| {
            assert_eq!(parse_throttled(text), expected, "{text}");
        };
        check("nr_periods 5\nnr_throttled 2\nthrottled_time 70000\n", Some((2, 70_000)));
        check("usage_usec 9\nnr_throttled 2\nthrottled_usec 70\n", Some((2, 70_000)));
        check("usage_usec 9\nuser_usec 5\n", None);
        check("nr_throttled x\nthrottled_usec 1\n", None);
        check("", None);
    }

    #[test]
    fn limits_use_and_throttling_are_reported() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("proc/self/cgroup", "0::/\n");
        write("proc/77/cgroup", "0::/db\n");
        write("sys/fs/cgroup/db/cpu.max", "50000 100000\n");
        write("sys/fs/cgroup/db/memory.max", "1000000\n");
        write("sys/fs/cgroup/db/memory.current", "600000\n");
        write("sys/fs/cgroup/db/cpu.stat", "nr_throttled 3\nthrottled_usec 1000000\n");
        let mut probe = CgroupsProbe::new(root.path(), Some(77));
        let mut readings = Readings::new();
        probe.read(Nanoseconds::from_secs(1), &mut readings);
        write("sys/fs/cgroup/db/cpu.stat", "nr_throttled 13\nthrottled_usec 2000000\n");
        probe.read(Nanoseconds::from_secs(3), &mut readings);
        let check = |name: &str, expected: f64| {
            assert_eq!(readings[&format!("cgroup.server.{name}")], expected, "{name}");
        };
        check("cpu_limit", 0.5);
        check("memory_limit_bytes", 1e6);
        check("memory_bytes", 6e5);
        check("throttled_periods_per_s", 5.0);
        check("throttled_s_per_s", 0.5);
        assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
    }
}
