//! The requested properties of a volume, as a study says them and a host makes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{ByteCount, Nanoseconds};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    pub name: String,
    pub backing: Backing,
    /// `ext4`.
    pub filesystem: String,
    /// Of the program that makes the filesystem, word by word.
    pub make_options: Vec<String>,
    /// `noatime`.
    pub mount_options: Vec<String>,
    /// `recordsize = 16k`.
    pub properties: BTreeMap<String, String>,
    pub scheduler: Option<String>,
    pub read_ahead: Option<ByteCount>,
    pub limit: IoLimit,
    pub dips: Option<Dips>,
    /// ZFS: size of a second device (an image file too) that caches reads.
    pub cache: Option<ByteCount>,
    /// ZFS: memory of its cache (ARC).
    pub arc: Option<ByteCount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// An image file of this size on a loop device; for a filesystem in memory, so much of it.
    Size(ByteCount),
    /// Formatted only if the user has named it for that, and it is blank or has Dyno's mark.
    Device { path: PathBuf, may_format: bool },
}

/// Per second; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimit {
    pub read_iops: Option<u64>,
    /// With flushes.
    pub write_iops: Option<u64>,
    pub read_bandwidth: Option<u64>,
    pub write_bandwidth: Option<u64>,
}

/// A limit that is lowered periodically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dips {
    /// The period, which ends with a dip.
    pub every: Nanoseconds,
    pub length: Nanoseconds,
    /// Replaces only what it names.
    pub limit: IoLimit,
}

impl IoLimit {
    /// With the parts that `other` names replaced.
    pub fn with(&self, other: &IoLimit) -> IoLimit {
        IoLimit {
            read_iops: other.read_iops.or(self.read_iops),
            write_iops: other.write_iops.or(self.write_iops),
            read_bandwidth: other.read_bandwidth.or(self.read_bandwidth),
            write_bandwidth: other.write_bandwidth.or(self.write_bandwidth),
        }
    }

    /// `500 writes/s, 8 MiB/s read`; `None` for no limit.
    pub fn words(&self) -> Option<String> {
        let rate = |value: Option<u64>, unit: &str| Some(format!("{} {unit}", value?));
        let bytes = |value: Option<u64>, unit: &str| Some(format!("{} {unit}", ByteCount(value?)));
        let words = [
            rate(self.read_iops, "reads/s"),
            rate(self.write_iops, "writes/s"),
            bytes(self.read_bandwidth, "read/s"),
            bytes(self.write_bandwidth, "written/s"),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    pub fn is_none(&self) -> bool {
        *self == IoLimit::default()
    }
}

impl VolumeSpec {
    /// With the defaults of its programs.
    pub fn new(name: &str, filesystem: &str, size: ByteCount) -> VolumeSpec {
        VolumeSpec {
            name: name.to_owned(),
            backing: Backing::Size(size),
            filesystem: filesystem.to_owned(),
            make_options: Vec::new(),
            mount_options: Vec::new(),
            properties: BTreeMap::new(),
            scheduler: None,
            read_ahead: None,
            limit: IoLimit::default(),
            dips: None,
            cache: None,
            arc: None,
        }
    }

    /// At least at times.
    pub fn is_limited(&self) -> bool {
        !self.limit.is_none() || self.dips.is_some()
    }

    /// To be formatted; `None` on an image.
    pub fn device(&self) -> Option<&Path> {
        match &self.backing {
            Backing::Device { path, .. } => Some(path),
            Backing::Size(_) => None,
        }
    }

    /// What shapes how files lie on it; not limits, scheduler and read-ahead.
    pub fn kind(&self) -> String {
        let mut words = vec![self.filesystem.clone()];
        let list = |name: &str, options: &[String]| {
            (!options.is_empty()).then(|| format!("{name}={}", options.join(",")))
        };
        words.extend(list("make", &self.make_options));
        words.extend(list("mount", &self.mount_options));
        words.extend(self.properties.iter().map(|(name, value)| format!("{name}={value}")));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_changes_what_it_names() {
        let limit = IoLimit { read_iops: Some(500), write_iops: Some(500), ..IoLimit::default() };
        let dip =
            IoLimit { write_iops: Some(50), write_bandwidth: Some(1 << 20), ..IoLimit::default() };
        let words = |limit: IoLimit| limit.words();
        assert_eq!(words(limit).as_deref(), Some("500 reads/s, 500 writes/s"));
        assert_eq!(
            words(limit.with(&dip)).as_deref(),
            Some("500 reads/s, 50 writes/s, 1 MiB written/s")
        );
        assert_eq!(words(IoLimit::default()), None);
    }

    #[test]
    fn the_kind_says_what_shapes_files() {
        let mut spec = VolumeSpec::new("v", "zfs", ByteCount(1 << 30));
        assert_eq!(spec.kind(), "zfs");
        spec.properties.insert("recordsize".into(), "16k".into());
        spec.properties.insert("compression".into(), "lz4".into());
        spec.limit.read_iops = Some(500);
        assert_eq!(spec.kind(), "zfs compression=lz4 recordsize=16k");
        spec.mount_options.push("noatime".into());
        assert_eq!(spec.kind(), "zfs mount=noatime compression=lz4 recordsize=16k");
    }
}
