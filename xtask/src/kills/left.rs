//! What a killed command may leave: processes, mounts, devices, control groups, memory, kernel settings,
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::place::{Fault, Wrong, entries, names};

const POLL: Duration = Duration::from_millis(50);

/// For killed processes to vanish.
const GONE_LIMIT: Duration = Duration::from_secs(20);

/// The root of each controller's groups, or of all.
const GROUPS: &str = "/sys/fs/cgroup";

const SETTINGS: [&str; 2] =
    ["/proc/sys/vm/swappiness", "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"];

pub(super) struct Before {
    shared: BTreeSet<String>,
    groups: BTreeSet<PathBuf>,
    settings: BTreeMap<&'static str, String>,
}

impl Before {
    pub(super) fn now() -> Before {
        Before { shared: unused_memory(), groups: empty_groups(), settings: settings() }
    }

    pub(super) fn left(&self, folder: &Path) -> Vec<Wrong> {
        let until = Instant::now() + GONE_LIMIT;
        loop {
            let all = self.left_now(folder);
            if all.is_empty() || Instant::now() >= until {
                return all.into_iter().map(|what| (Fault::Left, what)).collect();
            }
            std::thread::sleep(POLL);
        }
    }

    fn left_now(&self, folder: &Path) -> Vec<String> {
        let mut all = processes(folder);
        all.extend(kept_by_kernel(folder));
        all.extend(files(folder));
        all.extend(unused_memory().difference(&self.shared).cloned());
        let groups = empty_groups();
        let groups = groups.difference(&self.groups);
        all.extend(groups.map(|group| group.display().to_string()));
        let settings = settings().into_iter().filter(|(name, now)| self.settings[name] != *now);
        all.extend(settings.map(|(name, now)| format!("{name} is {}", now.trim())));
        all
    }
}

/// Processes with the folder in their arguments or environment.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let has_it = |process: &PathBuf, file: &str| {
        let bytes = std::fs::read(process.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(&folder)
    };
    let all = entries(Path::new("/proc")).into_iter();
    let all = all.filter(|process| has_it(process, "environ") || has_it(process, "cmdline"));
    let named = all.map(|process| {
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        format!("process {} ({})", process.display(), name.trim())
    });
    named.collect()
}

fn kept_by_kernel(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts.lines().filter(|line| line.contains(&folder));
    let devices = entries(Path::new("/sys/block")).into_iter().filter(|device| {
        let file = std::fs::read_to_string(device.join("loop/backing_file"));
        file.is_ok_and(|file| file.contains(&folder))
    });
    let mounts = mounts.map(|line| format!("mount {line}"));
    mounts.chain(devices.map(|device| device.display().to_string())).collect()
}

/// Files other than data sets, which are for later runs, and locks; temporary files; names of servers.
fn files(folder: &Path) -> Vec<String> {
    let is_left = |name: &String| !name.starts_with("dataset") && !name.starts_with('.');
    let below = |name: &str| names(&folder.join(name)).into_iter().filter(is_left);
    ["data", "tmp", "up"].into_iter().flat_map(below).collect()
}

fn unused_memory() -> BTreeSet<String> {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let unused = table.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(6) == Some(&"0")).then(|| format!("shared memory {}", words[1]))
    });
    let files = names(Path::new("/dev/shm")).into_iter();
    let files = files.filter(|name| name.starts_with("PostgreSQL."));
    let maps = |process: PathBuf| std::fs::read_to_string(process.join("maps")).ok();
    let mut files: BTreeSet<String> = files.collect();
    if !files.is_empty() {
        for maps in entries(Path::new("/proc")).into_iter().filter_map(maps) {
            files.retain(|file| !maps.contains(file));
        }
    }
    unused.chain(files).collect()
}

fn empty_groups() -> BTreeSet<PathBuf> {
    let root = Path::new(GROUPS);
    let all = entries(root).into_iter().chain([root.to_owned()]);
    let is_dynos = |group: &PathBuf| {
        let name = group.file_name().unwrap_or_default();
        let processes = std::fs::read_to_string(group.join("cgroup.procs"));
        name.to_string_lossy().starts_with("dyno-") && processes.is_ok_and(|text| text.is_empty())
    };
    all.flat_map(|controller| entries(&controller)).filter(is_dynos).collect()
}

fn settings() -> BTreeMap<&'static str, String> {
    let value = |name| (name, std::fs::read_to_string(name).unwrap_or_default());
    SETTINGS.into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let before = Before::now();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .env("DYNO_FOLDER", place.path().join("data/mariadb-1"))
            .spawn()
            .unwrap();
        // The program names the folder once it has replaced the fork.
        let until = Instant::now() + Duration::from_secs(60);
        while processes(place.path()).is_empty() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(processes(place.path()).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        for name in ["data/datasets", "data/.lock", "data/mariadb-1", "tmp", "up/here.json"] {
            std::fs::create_dir_all(place.path().join(name)).unwrap();
        }
        assert_eq!(files(place.path()), ["mariadb-1", "here.json"]);
        std::fs::remove_dir(place.path().join("data/mariadb-1")).unwrap();
        std::fs::remove_dir(place.path().join("up/here.json")).unwrap();
        assert_eq!(before.left(place.path()), []);
    }
}
