//! What a volume is asked to be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_units::{ByteCount, Nanoseconds};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    pub name: String,
    pub backing: Backing,
    /// `ext4`: a name of [`super::filesystems`].
    pub filesystem: String,
    /// Options of the program that makes the filesystem, word by word.
    pub make_options: Vec<String>,
    /// Options of the mount: `noatime`.
    pub mount_options: Vec<String>,
    /// Properties of the filesystem: `recordsize = 16k`.
    pub properties: BTreeMap<String, String>,
    pub scheduler: Option<String>,
    pub read_ahead: Option<ByteCount>,
    pub limit: IoLimit,
    pub dips: Option<Dips>,
    /// Of ZFS, the size of a second device that caches what is read, an image file as well.
    pub cache: Option<ByteCount>,
    /// Of ZFS, how much memory its cache (the ARC) may take.
    pub arc: Option<ByteCount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    pub read_iops: Option<u64>,
    /// Writes, flushes included.
    pub write_iops: Option<u64>,
    /// Bytes read.
    pub read_bandwidth: Option<u64>,
    /// Bytes written.
    pub write_bandwidth: Option<u64>,
}

/// A limit that is lowered for a while, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dips {
    /// From one to the next; each period ends with one.
    pub every: Nanoseconds,
    pub length: Nanoseconds,
    /// The most that the device may do then; what it does not name stays as it is.
    pub limit: IoLimit,
}

impl IoLimit {
    /// This limit, with what another one names put in its place.
    pub fn with(&self, other: &IoLimit) -> IoLimit {
        IoLimit {
            read_iops: other.read_iops.or(self.read_iops),
            write_iops: other.write_iops.or(self.write_iops),
            read_bandwidth: other.read_bandwidth.or(self.read_bandwidth),
            write_bandwidth: other.write_bandwidth.or(self.write_bandwidth),
        }
    }

    /// The limit in words: `500 writes/s, 8 MiB/s read`; none for no limit.
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
            dips: None,
            cache: None,
            arc: None,
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
