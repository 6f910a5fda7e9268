//! Limits of control groups for Dyno and its servers: CPU time and memory, versions 1 and 2.
//! Limits of parent groups count as well: the tightest one is reported.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{OrKeeper, Result};
use crate::kernel_text::count;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// CPU seconds per second; `None` for no limit.
    pub(crate) cpus: Option<f64>,
    /// `None` for no limit.
    pub(crate) memory_bytes: Option<u64>,
    /// Times that CPU time was refused so far, if the kernel reports it.
    pub(crate) n_throttled: Option<u64>,
}

/// "No limit" is a number near 2^63.
const V1_MEMORY_UNLIMITED: u64 = 1 << 62;

impl Limits {
    /// Limits of the calling process. `root` holds `proc` and `sys`.
    pub(crate) fn read(root: &Path) -> Limits {
        Limits::of(root, "self")
    }

    /// `process` is its folder in `proc`.
    pub(crate) fn of(root: &Path, process: &str) -> Limits {
        let mut found = Limits::default();
        for folder in group_folders(root, process) {
            found.add(&folder);
        }
        found
    }

    fn add(&mut self, folder: &Path) {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<i64>().ok();
        let v2_cpus = || parse_cpu_max(&read("cpu.max")?);
        let v1_cpus = || quota(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
        self.cpus = self.cpus.into_iter().chain(v2_cpus().or_else(v1_cpus)).reduce(f64::min);
        let memory = number("memory.max").or_else(|| number("memory.limit_in_bytes"));
        let memory =
            memory.and_then(|n| u64::try_from(n).ok()).filter(|n| *n < V1_MEMORY_UNLIMITED);
        self.memory_bytes = self.memory_bytes.into_iter().chain(memory).min();
        let n_throttled = read("cpu.stat").and_then(|text| count(&text, "nr_throttled", ' '));
        self.n_throttled = self.n_throttled.into_iter().chain(n_throttled).max();
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    V1(PathBuf),
    V2(PathBuf),
}

impl Groups {
    /// `v1_files` are files of version 1 by which it is recognised, in the folder of each.
    pub(crate) fn of(root: &Path, controller: &str, v1_files: &[&str]) -> Option<Groups> {
        let mut files = v1_files.iter().map(|file| root.join(file));
        if let Some(file) = files.find(|file| file.exists()) {
            return Some(Groups::V1(file.parent()?.to_owned()));
        }
        let has_it = |folder: &PathBuf| {
            fs::read_to_string(folder.join("cgroup.controllers"))
                .is_ok_and(|text| text.split_whitespace().any(|name| name == controller))
        };
        [root.to_owned(), root.join("unified")].into_iter().find(has_it).map(Groups::V2)
    }

    pub(crate) fn root(&self) -> &Path {
        match self {
            Groups::V1(root) | Groups::V2(root) => root,
        }
    }
}

pub(crate) fn make_group(group: &Path) -> Result<()> {
    fs::create_dir(group)
        .or_keeper(|| format!("the control group {} cannot be created", group.display()))
}

/// The process's own group before its parents.
pub(crate) fn group_folders(root: &Path, process: &str) -> Vec<PathBuf> {
    let memberships =
        fs::read_to_string(root.join("proc").join(process).join("cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in memberships.lines() {
        // `4:memory:/path` in version 1, `0::/path` in version 2.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        found.extend(folders(&root.join("sys/fs/cgroup"), controllers, path));
    }
    found
}

/// With all parents; the topmost folder if the path is missing, as in a container.
fn folders(cgroup_root: &Path, controllers: &str, path: &str) -> Vec<PathBuf> {
    let mounts: Vec<PathBuf> = if controllers.is_empty() {
        vec![cgroup_root.to_owned(), cgroup_root.join("unified")]
    } else if controllers.split(',').any(|name| name == "cpu" || name == "memory") {
        let each = controllers.split(',').map(|name| cgroup_root.join(name));
        each.chain([cgroup_root.join(controllers)]).collect()
    } else {
        return Vec::new();
    };
    let path = Path::new(path.trim_start_matches('/'));
    mounts.iter().flat_map(|mount| path.ancestors().map(|part| mount.join(part))).collect()
}

/// Version 2: `50000 100000`, or `max 100000`.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota_us, period_us) = text.trim().split_once(' ')?;
    quota(quota_us.parse().ok()?, period_us.parse().ok()?)
}

/// Version 1 has -1 for no limit.
fn quota(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Limits) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        assert_eq!(Limits::read(root.path()), expected, "{files:?}");
    }

    #[test]
    fn version_2_takes_the_tightest_group() {
        check(
            &[
                ("proc/self/cgroup", "0::/user.slice/dyno\n"),
                ("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"),
                ("sys/fs/cgroup/user.slice/dyno/cpu.max", "max 100000\n"),
                ("sys/fs/cgroup/user.slice/memory.max", "1073741824\n"),
                ("sys/fs/cgroup/user.slice/dyno/memory.max", "max\n"),
                ("sys/fs/cgroup/user.slice/cpu.stat", "usage_usec 5\nnr_throttled 3\n"),
            ],
            Limits { cpus: Some(1.5), memory_bytes: Some(1 << 30), n_throttled: Some(3) },
        );
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        check(
            &[
                ("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n3:pids:/a\n"),
                ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n"),
                ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ],
            Limits { cpus: Some(2.0), memory_bytes: Some(512 << 20), n_throttled: None },
        );
    }

    #[test]
    fn in_a_container_the_topmost_folder_counts() {
        check(
            &[
                ("proc/self/cgroup", "4:cpu:/docker/0123\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
            Limits { cpus: Some(0.5), ..Limits::default() },
        );
    }

    #[test]
    fn no_limit_is_none() {
        check(&[], Limits::default());
        check(
            &[
                ("proc/self/cgroup", "4:cpu:/\nbroken\n0::\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/cpu.max", "many\n"),
            ],
            Limits::default(),
        );
    }
}
