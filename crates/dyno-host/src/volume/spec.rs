//! What a volume is asked to be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_units::ByteCount;
use serde::{Deserialize, Serialize};

/// What a volume is asked to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpec {
    /// Its name in the study.
    pub name: String,
    /// What it lies on.
    pub backing: Backing,
    /// `ext4`: a name of [`super::filesystems`].
    pub filesystem: String,
    /// Options of the program that makes the filesystem, word by word.
    pub make_options: Vec<String>,
    /// Options of the mount: `noatime`.
    pub mount_options: Vec<String>,
    /// Properties of the filesystem: `recordsize = 16k`.
    pub properties: BTreeMap<String, String>,
    /// The I/O scheduler of its device.
    pub scheduler: Option<String>,
    /// Read-ahead of its device.
    pub read_ahead: Option<ByteCount>,
    /// The most its device may do.
    pub limit: IoLimit,
}

/// What a volume lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// An image file of this size, by a loop device; or that much memory, for a filesystem that lies in
    /// memory.
    Size(ByteCount),
    /// A device of the machine, which is formatted if it is blank or carries Dyno's mark, and if the
    /// user has named it for that.
    Device {
        /// `/dev/nvme1n1`.
        path: PathBuf,
        /// Whether the user has named it as one that may be formatted.
        may_format: bool,
    },
}

/// The most that a device may do in a second; none for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimit {
    /// Reads.
    pub read_iops: Option<u64>,
    /// Writes, flushes included.
    pub write_iops: Option<u64>,
    /// Bytes read.
    pub read_bandwidth: Option<u64>,
    /// Bytes written.
    pub write_bandwidth: Option<u64>,
}

impl IoLimit {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == IoLimit::default()
    }
}

impl VolumeSpec {
    /// An ext4 filesystem of this size, as its programs make it.
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
        }
    }

    /// What shapes how files lie on it. Limits, scheduler and read-ahead do not.
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
