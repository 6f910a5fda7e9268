//! Volumes of a study as the host makes them.

use std::path::PathBuf;

use dyno_host::{Backing, IoLimit, Keeper, VolumeSpec, volume_problems};
use dyno_study::{Plan, Product, VolumeChoice};
use dyno_units::ByteCount;

/// What the host is asked to make for a volume of the study.
pub(crate) fn spec(choice: &VolumeChoice, format_devices: &[PathBuf]) -> VolumeSpec {
    let limit = |name: &str| choice.limit.get(name).copied();
    let backing = match &choice.device {
        Some(device) => Backing::Device {
            may_format: format_devices.iter().any(|named| named.as_os_str() == device.as_str()),
            path: PathBuf::from(device),
        },
        None => Backing::Size(choice.size.unwrap_or(ByteCount(0))),
    };
    VolumeSpec {
        name: choice.name.clone(),
        backing,
        filesystem: choice.filesystem.clone(),
        make_options: choice.make_options.clone(),
        mount_options: choice.mount_options.clone(),
        properties: choice.properties.clone(),
        scheduler: choice.scheduler.clone(),
        read_ahead: choice.read_ahead,
        limit: IoLimit {
            read_iops: limit("read_iops"),
            write_iops: limit("write_iops"),
            read_bandwidth: limit("read_bandwidth"),
            write_bandwidth: limit("write_bandwidth"),
        },
    }
}

/// Why volumes of this plan cannot be made here, each once, with the name of the volume.
/// `format_devices` are those that the user has named as ones that may be formatted.
pub fn check_volumes(keeper: &Keeper, format_devices: &[PathBuf], plan: &Plan) -> Vec<String> {
    let mut refused = Vec::new();
    for variant in &plan.variants {
        let Some(choice) = variant.volume() else { continue };
        let mut problems = volume_problems(keeper, &spec(&choice, format_devices));
        if matches!(variant.database.product, Product::Url(_)) {
            problems.push(format!(
                "database `{}` already runs, and keeps its data where they are",
                variant.database.name
            ));
        }
        for problem in problems {
            let problem = format!("volume `{}`: {problem}", choice.name);
            if !refused.contains(&problem) {
                refused.push(problem);
            }
        }
    }
    refused
}
