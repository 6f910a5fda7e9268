//! Limits, usage and throttling of the control groups of server and Dyno, versions 1 and 2.

use std::path::{Path, PathBuf};

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, counting, growth, insert};
use crate::cgroup::{Limits, group_folders};
use crate::kernel_text::{count, numbers};

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
}

/// `root` holds `proc` and `sys`.
pub(super) fn probe(root: &Path, server: Option<i32>) -> Box<dyn Probe> {
    let server = server.map(|pid| Group::new(root, "server", &pid.to_string()));
    let own = Group::new(root, "generator", "self");
    let mut groups: Vec<Group> = server.into_iter().chain([own]).collect();
    let look = move |readings: &mut Readings| -> Option<Vec<_>> {
        Some(groups.iter_mut().map(|group| (group.name, group.read(readings))).collect())
    };
    counting(("cgroup", READINGS), look, |before, now, seconds, readings| {
        for ((_, before), (name, now)) in before.iter().zip(now) {
            let Some((before, now)) = before.zip(*now) else { continue };
            let mut add = |what: &str, rate: f64| {
                readings.insert(format!("cgroup.{name}.throttled_{what}_per_s"), rate);
            };
            add("periods", growth(before.0, now.0) / seconds);
            add("s", growth(before.1, now.1) / 1e9 / seconds);
        }
    })
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
        }
    }

    /// Adds its limits and use; returns how much it was throttled.
    fn read(&mut self, readings: &mut Readings) -> Option<(u64, u64)> {
        let name = self.name;
        let mut add = |what: &str, value: Option<f64>| {
            insert(readings, format!("cgroup.{name}.{what}"), value);
        };
        add("cpu_limit", self.limits.cpus);
        add("memory_limit_bytes", self.limits.memory_bytes.map(|bytes| bytes as f64));
        let memory = self.memory.as_mut().and_then(|source| numbers(source.text()?).next());
        add("memory_bytes", memory.map(|bytes| bytes as f64));
        self.throttled()
    }

    /// Periods and nanoseconds so far, of all its groups.
    fn throttled(&mut self) -> Option<(u64, u64)> {
        let found = self.cpu_stats.iter_mut().filter_map(|source| parse_throttled(source.text()?));
        found.reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))
    }
}

/// `nr_throttled` and the time: nanoseconds in version 1, microseconds in version 2.
fn parse_throttled(text: &str) -> Option<(u64, u64)> {
    let count = |key: &str| count(text, key, ' ');
    let ns =
        count("throttled_time").or_else(|| Some(count("throttled_usec")?.saturating_mul(1000)))?;
    Some((count("nr_throttled")?, ns))
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

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
        let mut probe = probe(root.path(), Some(77));
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
