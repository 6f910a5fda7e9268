//! What several layers name alike: a plan and its record, a server's place and its record.

use serde::{Deserialize, Serialize};

use crate::IoLimit;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Counted from 1.
    pub number: u32,
    pub variant: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// Counted from 1.
    pub block: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelRecord {
    /// `database`, `workload`, `setting.NAME`, `option.NAME`.
    pub factor: String,
    pub level: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub amount: f64,
    /// `USD`, `EUR`.
    pub currency: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceFacts {
    /// What shapes how files lie on it: `folder`, or a volume with its properties.
    pub kind: String,
    pub path: String,
    /// `ext4`; `None` if the kernel did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// `/dev/sda1`; `None` if the kernel did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Of the mount and of the filesystem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// `None` without a disk, or if the kernel did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_rotational: Option<bool>,
    /// `write back` if a sync has to flush the disk's cache, else `write through`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
    /// The file behind a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_file: Option<String>,
    /// Whether a loop device bypasses that file's page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_loop_direct: Option<bool>,
    /// Whether synced data survive a power failure; `None` if the filesystem is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives_power_failure: Option<bool>,
    /// While a trial is measured; `None` without one, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<IoLimit>,
}
