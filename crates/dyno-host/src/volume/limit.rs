//! Limits on what a device may do in a second, by the control groups of the kernel.
//!
//! Version 1 (blkio) limits a device for the root group, which all I/O passes through that no other group
//! accounts for: direct I/O, reads, and the writeback of the page cache. Version 2 limits groups other than
//! the root alone (`io.max`), so the servers would have to be moved into one.

use std::fs;
use std::path::Path;

use super::spec::IoLimit;
use crate::KeeperError;

/// The files of version 1, and what of a limit stands in each.
const V1_FILES: [(&str, fn(&IoLimit) -> Option<u64>); 4] = [
    ("blkio.throttle.read_iops_device", |limit| limit.read_iops),
    ("blkio.throttle.write_iops_device", |limit| limit.write_iops),
    ("blkio.throttle.read_bps_device", |limit| limit.read_bandwidth),
    ("blkio.throttle.write_bps_device", |limit| limit.write_bandwidth),
];

/// Where the kernel's control groups of version 1 are.
const V1_GROUP: &str = "/sys/fs/cgroup/blkio";

/// Why a limit cannot be bound here; none where it can.
pub(crate) fn refused() -> Option<String> {
    refused_at(Path::new(V1_GROUP), Path::new("/sys/fs/cgroup/cgroup.controllers"))
}

fn refused_at(v1: &Path, v2: &Path) -> Option<String> {
    if v1.join(V1_FILES[0].0).exists() {
        return None;
    }
    Some(if v2.exists() {
        "limits of a volume need the control group `blkio` of version 1; this kernel has version 2, \
         which Dyno does not use for limits yet"
            .to_owned()
    } else {
        "limits of a volume need the control group `blkio`, which is not mounted here".to_owned()
    })
}

/// Binds the limit to a device, named by its number (`7:0`).
pub(crate) fn bind(number: &str, limit: &IoLimit) -> Result<(), KeeperError> {
    bind_at(Path::new(V1_GROUP), number, limit)
}

/// Lifts the limit from a device, unless somebody has set another one since.
pub(crate) fn lift(number: &str, limit: &IoLimit) -> Result<(), KeeperError> {
    lift_at(Path::new(V1_GROUP), number, limit)
}

fn lift_at(group: &Path, number: &str, limit: &IoLimit) -> Result<(), KeeperError> {
    for (file, value) in V1_FILES {
        let Some(value) = value(limit) else { continue };
        let path = group.join(file);
        let now = fs::read_to_string(&path).unwrap_or_default();
        if now.lines().any(|line| line == format!("{number} {value}")) {
            fs::write(&path, format!("{number} 0")).map_err(|error| {
                KeeperError(format!("the limit of {number} stays in {}: {error}", path.display()))
            })?;
        }
    }
    Ok(())
}

fn bind_at(group: &Path, number: &str, limit: &IoLimit) -> Result<(), KeeperError> {
    for (file, value) in V1_FILES {
        let path = group.join(file);
        // 0 is no limit: one that a device had before must not count.
        let line = format!("{number} {}", value(limit).unwrap_or(0));
        fs::write(&path, &line).map_err(|error| {
            KeeperError(format!(
                "the limit `{line}` cannot be written to {}: {error}",
                path.display()
            ))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_gets_its_own_part_and_zero_lifts() {
        let group = tempfile::tempdir().expect("a folder");
        let read = |name: &str| fs::read_to_string(group.path().join(name)).expect("written");
        let limit = IoLimit {
            read_iops: None,
            write_iops: Some(500),
            read_bandwidth: Some(8_000_000),
            write_bandwidth: None,
        };
        bind_at(group.path(), "7:3", &limit).expect("bound");
        assert_eq!(read("blkio.throttle.read_iops_device"), "7:3 0");
        assert_eq!(read("blkio.throttle.write_iops_device"), "7:3 500");
        assert_eq!(read("blkio.throttle.read_bps_device"), "7:3 8000000");
        assert_eq!(read("blkio.throttle.write_bps_device"), "7:3 0");
        // Another limit, set since, is somebody else's.
        fs::write(group.path().join("blkio.throttle.read_bps_device"), "7:3 9").expect("written");
        lift_at(group.path(), "7:3", &limit).expect("lifted");
        assert_eq!(read("blkio.throttle.write_iops_device"), "7:3 0");
        assert_eq!(read("blkio.throttle.read_bps_device"), "7:3 9");
    }

    #[test]
    fn a_kernel_without_version_1_is_refused_with_a_reason() {
        let here = tempfile::tempdir().expect("a folder");
        let controllers = here.path().join("cgroup.controllers");
        let why = refused_at(here.path(), &controllers).expect("refused");
        assert!(why.contains("not mounted"), "{why}");
        fs::write(&controllers, "cpu io").expect("written");
        let why = refused_at(here.path(), &controllers).expect("refused");
        assert!(why.contains("version 2"), "{why}");
        fs::write(here.path().join(V1_FILES[0].0), "").expect("written");
        assert_eq!(refused_at(here.path(), &controllers), None);
    }
}
