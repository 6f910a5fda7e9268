//! Limits of a device per second, by control groups. Version 1 (blkio) limits the device for the
//! root group, through which all I/O passes that no other group accounts for: direct I/O, reads,
//! writeback. Version 2 (`io.max`) cannot limit the root group, so the volume's users are moved
//! into a group of Dyno's, or limited in the one they have.

use std::fs;
use std::path::{Path, PathBuf};

use dyno_units::IoLimit;

use crate::cgroup::{Groups, make_group};
use crate::error::{OrKeeper, Result};
use crate::keeper::GROUP_PREFIX;
use crate::storage::write_setting;

/// Files of version 1, each with its part of a limit.
pub(crate) const V1_FILES: [(&str, Part); 4] = [
    ("blkio.throttle.read_iops_device", |limit| limit.read_iops),
    ("blkio.throttle.write_iops_device", |limit| limit.write_iops),
    ("blkio.throttle.read_bps_device", |limit| limit.read_bandwidth),
    ("blkio.throttle.write_bps_device", |limit| limit.write_bandwidth),
];

/// Words of `io.max`, each with its part of a limit.
pub(crate) const V2_WORDS: [(&str, Part); 4] = [
    ("rbps", |limit| limit.read_bandwidth),
    ("wbps", |limit| limit.write_bandwidth),
    ("riops", |limit| limit.read_iops),
    ("wiops", |limit| limit.write_iops),
];

pub(crate) type Part = fn(&IoLimit) -> Option<u64>;

impl Groups {
    /// Fails if this machine has none.
    pub(crate) fn find() -> Result<Groups> {
        Groups::find_under(Path::new("/sys/fs/cgroup"))
    }

    fn find_under(root: &Path) -> Result<Groups> {
        Groups::of(root, "io", &["blkio/blkio.throttle.read_iops_device"]).or_keeper(|| {
            "limits of a volume need the control group `blkio` (version 1) or the controller \
                 `io` (version 2), and neither exists"
        })
    }

    /// The group that limits these processes: the root (`None`) in version 1, in version 2 Dyno's
    /// that they are in by `member_of` (text of `/proc/PID/cgroup`), else a new one of this name.
    pub(crate) fn group_for(&self, name: &str, member_of: &str) -> Option<PathBuf> {
        let Groups::V2(root) = self else { return None };
        let path = member_of.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
        let is_dynos = path.starts_with(GROUP_PREFIX) && !path.contains('/');
        Some(root.join(if is_dynos { path } else { name }))
    }

    /// Makes the group if it is missing.
    pub(crate) fn move_into(&self, group: &Path, processes: &[i32]) -> Result<()> {
        let Groups::V2(root) = self else { return Ok(()) };
        write_setting(&root.join("cgroup.subtree_control"), "+io")?;
        if !group.is_dir() {
            make_group(group)?;
        }
        let list = group.join("cgroup.procs");
        for process in processes {
            // It may have ended.
            let is_there = Path::new("/proc").join(process.to_string()).exists();
            match write_setting(&list, &process.to_string()) {
                Err(error) if is_there => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The device is a number (`7:0`); `group` is for version 2.
    pub(crate) fn bind(&self, group: Option<&Path>, number: &str, limit: &IoLimit) -> Result<()> {
        match self {
            Groups::V1(root) => V1_FILES.iter().try_for_each(|(file, part)| {
                // 0 is no limit, and removes an earlier one.
                write_setting(&root.join(file), &format!("{number} {}", part(limit).unwrap_or(0)))
            }),
            Groups::V2(root) => {
                let group = group.unwrap_or(root);
                write_setting(&group.join("io.max"), &io_max(number, limit))
            }
        }
    }

    /// Unless somebody has set another one since.
    pub(crate) fn lift(&self, group: Option<&Path>, number: &str, ours: &[IoLimit]) -> Result<()> {
        match self {
            Groups::V1(root) => V1_FILES.iter().try_for_each(|(file, part)| {
                let path = root.join(file);
                let now = fs::read_to_string(&path).unwrap_or_default();
                let is_ours = ours.iter().filter_map(part).any(|value| {
                    let line = format!("{number} {value}");
                    now.lines().any(|now| now == line)
                });
                if is_ours { write_setting(&path, &format!("{number} 0")) } else { Ok(()) }
            }),
            // All limits in Dyno's group are Dyno's.
            Groups::V2(_) => match group {
                Some(group) if group.is_dir() => {
                    write_setting(&group.join("io.max"), &io_max(number, &IoLimit::default()))
                }
                _ => Ok(()),
            },
        }
    }
}

fn io_max(number: &str, limit: &IoLimit) -> String {
    let word = |(name, part): &(&str, Part)| match part(limit) {
        Some(value) => format!("{name}={value}"),
        None => format!("{name}=max"),
    };
    let words: Vec<String> = V2_WORDS.iter().map(word).collect();
    format!("{number} {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit() -> IoLimit {
        IoLimit {
            read_iops: None,
            write_iops: Some(500),
            read_bandwidth: Some(8_000_000),
            write_bandwidth: None,
        }
    }

    #[test]
    fn version_1_has_a_file_for_each_part_and_zero_lifts() {
        let group = tempfile::tempdir().expect("a folder");
        let read = |name: &str| fs::read_to_string(group.path().join(name)).expect("written");
        let groups = Groups::V1(group.path().to_owned());
        groups.bind(None, "7:3", &limit()).expect("bound");
        assert_eq!(read("blkio.throttle.read_iops_device"), "7:3 0");
        assert_eq!(read("blkio.throttle.write_iops_device"), "7:3 500");
        assert_eq!(read("blkio.throttle.read_bps_device"), "7:3 8000000");
        assert_eq!(read("blkio.throttle.write_bps_device"), "7:3 0");
        // Set since, by somebody else.
        fs::write(group.path().join("blkio.throttle.read_bps_device"), "7:3 9").expect("written");
        groups.lift(None, "7:3", &[limit()]).expect("lifted");
        assert_eq!(read("blkio.throttle.write_iops_device"), "7:3 0");
        assert_eq!(read("blkio.throttle.read_bps_device"), "7:3 9");
        // The lower limit of a dip is Dyno's as well.
        let lower = IoLimit { write_iops: Some(50), ..limit() };
        groups.bind(None, "7:3", &lower).expect("bound");
        groups.lift(None, "7:3", &[limit(), lower]).expect("lifted");
        assert_eq!(read("blkio.throttle.write_iops_device"), "7:3 0");
    }

    #[test]
    fn version_2_limits_the_group_of_the_processes() {
        let root = tempfile::tempdir().expect("a folder");
        let groups = Groups::V2(root.path().to_owned());
        let own = groups.group_for("dyno-v", "0::/\n").expect("a group");
        assert_eq!(own, root.path().join("dyno-v"));
        let me = i32::try_from(std::process::id()).expect("a number");
        groups.move_into(&own, &[me, me]).expect("moved");
        groups.bind(Some(&own), "7:3", &limit()).expect("bound");
        let read = |path: &str| fs::read_to_string(root.path().join(path)).expect("written");
        assert_eq!(read("cgroup.subtree_control"), "+io");
        assert_eq!(read("dyno-v/cgroup.procs"), me.to_string());
        assert_eq!(read("dyno-v/io.max"), "7:3 rbps=8000000 wbps=max riops=max wiops=500");
        groups.lift(Some(&own), "7:3", &[limit()]).expect("lifted");
        assert_eq!(read("dyno-v/io.max"), "7:3 rbps=max wbps=max riops=max wiops=max");
        // The group is gone.
        groups.lift(Some(&root.path().join("dyno-w")), "7:3", &[limit()]).expect("nothing");
    }

    #[test]
    fn a_group_of_dynos_that_holds_the_server_is_used() {
        let groups = Groups::V2("/g".into());
        let check = |member_of: &str, expected: &str| {
            assert_eq!(groups.group_for("dyno-v", member_of), Some(PathBuf::from(expected)));
        };
        check("0::/dyno-mariadb-12ab\n", "/g/dyno-mariadb-12ab");
        check("0::/user.slice/dyno-x\n", "/g/dyno-v");
        check("0::/dyno-a/b\n", "/g/dyno-v");
        check("", "/g/dyno-v");
        assert_eq!(Groups::V1("/g".into()).group_for("dyno-v", "0::/\n"), None);
    }

    #[test]
    fn the_groups_of_the_machine_are_found_or_the_reason_is_said() {
        let root = tempfile::tempdir().expect("a folder");
        let path = |name: &str| root.path().join(name);
        let why = Groups::find_under(root.path()).expect_err("none").0;
        assert!(why.contains("neither exists"), "{why}");
        fs::create_dir(path("unified")).expect("made");
        fs::write(path("unified/cgroup.controllers"), "cpu\n").expect("written");
        assert!(Groups::find_under(root.path()).is_err());
        fs::write(path("unified/cgroup.controllers"), "cpu io\n").expect("written");
        assert_eq!(Groups::find_under(root.path()).expect("one"), Groups::V2(path("unified")));
        fs::write(path("cgroup.controllers"), "io\n").expect("written");
        assert_eq!(
            Groups::find_under(root.path()).expect("one"),
            Groups::V2(root.path().to_owned())
        );
        fs::create_dir(path("blkio")).expect("made");
        fs::write(path("blkio").join(V1_FILES[0].0), "").expect("written");
        assert_eq!(Groups::find_under(root.path()).expect("one"), Groups::V1(path("blkio")));
    }
}
