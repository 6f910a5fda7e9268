//! Disk space of the data after the last measurement.

use dyno_host::VolumeUsage;
use dyno_units::Direction::{Higher, Lower, Neither};
use dyno_units::{Metric, Unit, metric};

use crate::error::{Result, TrialError};
use crate::trial::{Trial, bytes_of_all, log_bytes};

#[rustfmt::skip]
const FIGURES: [Metric; 10] = [
    metric("data.length", Unit::Bytes, Lower, "length of data files", "lengths of all data files after the last measurement").secondary(),
    metric("data.on_disk", Unit::Bytes, Lower, "data on disk", "space that the data use on the volume after the last measurement, compressed where the filesystem compresses").secondary(),
    metric("data.compression", Unit::Number, Higher, "compression of data", "space that the data would use uncompressed ÷ space that they use on the volume").secondary(),
    metric("data.stored_uncompressed", Unit::Percent, Neither, "data stored uncompressed", "share of the data's space on the volume that is stored uncompressed: it does not compress, or was written over preallocated space"),
    metric("data.compressibility", Unit::Number, Neither, "compressibility of data", "size of a sample of the data ÷ its size after compression by zlib at its fastest level, without blocks of zeros"),
    metric("volume.snapshot_time", Unit::Seconds, Lower, "time of a snapshot", "how long a snapshot of the volume took after the last measurement, until everything written was on the device").secondary(),
    metric("volume.clone_time", Unit::Seconds, Lower, "time of a clone", "how long a clone of that snapshot took").secondary(),
    metric("volume.free", Unit::Bytes, Neither, "free space of the volume", "space left to write on the volume after the last measurement"),
    metric("data.extents_per_file", Unit::Number, Neither, "extents per file", "mean number of extents of a data file on the volume, as filefrag counts them, without empty files. Btrfs counts compressed data in extents of at most 128 KiB"),
    metric("data.extent_size", Unit::Bytes, Neither, "mean size of an extent", "allocated bytes of the data ÷ number of their extents"),
];

pub(super) fn data_size(trial: &mut Trial<'_, '_>) -> Result {
    if trial.deployment.server().is_none() {
        return Ok(());
    }
    // Of shards, all parts.
    let all = || trial.deployment.holding();
    trial.results.summary.data.bytes_after = bytes_of_all(all(), |server| server.data_bytes());
    trial.results.summary.data.log_bytes_after = bytes_of_all(all(), log_bytes);
    on_volume(trial)
}

/// Adds the space on a volume to the last step's figures. If it cannot be measured, that is only noted.
fn on_volume(trial: &mut Trial<'_, '_>) -> Result {
    let mut members = trial.deployment.members.iter();
    let volume = members.find_map(|member| member.volumes.first()).cloned();
    let (Some(volume), Some(step)) = (volume, trial.results.summary.steps.last_mut()) else {
        return Ok(());
    };
    let usage = match volume.usage() {
        Ok(usage) => usage,
        Err(TrialError::Failed { message, .. }) => {
            return trial.note(format!("the size of the data is unknown: {message}"));
        }
        Err(error) => return Err(error),
    };
    let choice = trial.variant.volume();
    let compresses = choice.is_some_and(|choice| {
        choice.mount_options.iter().any(|option| option.starts_with("compress"))
    });
    let values = figures(&usage, compresses);
    let is_known = values[1].is_some();
    for (metric, value) in FIGURES.into_iter().zip(values) {
        let Some(value) = value else { continue };
        step.figures.insert(metric.id, value);
        trial.results.summary.metrics.push(metric);
    }
    match is_known {
        true => Ok(()),
        false => trial.note(format!(
            "the size of the data on {} after compression is unknown; install the program \
             `compsize` (package btrfs-compsize)",
            volume.name
        )),
    }
}

/// A compressing filesystem reports sizes before compression, which say nothing of the disk.
fn figures(usage: &VolumeUsage, compresses: bool) -> [Option<f64>; 10] {
    let compressed = usage.compressed_bytes.map(|bytes| bytes as f64);
    let share = |part: f64, all: f64| (all > 0.0).then(|| part / all);
    [
        Some(usage.apparent_bytes as f64),
        compressed.or((!compresses).then_some(usage.allocated_bytes as f64)),
        usage.compression,
        usage
            .uncompressed_bytes
            .zip(compressed)
            .and_then(|(as_is, all)| share(as_is as f64, all).map(|share| share * 100.0)),
        usage.compressibility,
        usage.snapshot_s,
        usage.clone_s,
        Some(usage.free_bytes as f64),
        usage.extents.and_then(|(files, extents)| share(extents as f64, files as f64)),
        usage.extents.and_then(|(_, extents)| share(usage.allocated_bytes as f64, extents as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_say_is_no_figure() {
        let mut usage = VolumeUsage {
            apparent_bytes: 300,
            allocated_bytes: 400,
            compressed_bytes: Some(100),
            compression: Some(4.0),
            uncompressed_bytes: Some(25),
            compressibility: Some(2.0),
            free_bytes: 7,
            extents: Some((4, 10)),
            snapshot_s: Some(0.5),
            clone_s: None,
        };
        assert_eq!(
            figures(&usage, true)[..7],
            [Some(300.0), Some(100.0), Some(4.0), Some(25.0), Some(2.0), Some(0.5), None]
        );
        assert_eq!(figures(&usage, true)[7..], [Some(7.0), Some(2.5), Some(40.0)]);
        usage = VolumeUsage { apparent_bytes: 300, allocated_bytes: 400, ..VolumeUsage::default() };
        assert_eq!(figures(&usage, true)[..7], [Some(300.0), None, None, None, None, None, None]);
        assert_eq!(figures(&usage, true)[8..], [None, None]);
        assert_eq!(
            figures(&usage, false)[..7],
            [Some(300.0), Some(400.0), None, None, None, None, None]
        );
    }
}
