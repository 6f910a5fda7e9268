//! A study's volumes, made by the host.

use std::path::PathBuf;
use std::sync::Arc;

use dyno_database::Place;
use dyno_host::{Backing, Keeper, KeeperError, ServerLimits, Volume, VolumeSpec, volume_problems};
use dyno_study::{Database, Plan, Product};
use dyno_units::{ByteCount, Clock};
use serde::{Deserialize, Serialize};

/// Memory below which every server that Dyno starts is killed before it is ready.
const MEMORY_LEAST: ByteCount = ByteCount(16 << 20);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VolumeAct {
    Bind,
    Lift,
    Lower,
    Raise,
}

impl VolumeAct {
    pub(crate) fn on(self, volume: &Volume, processes: &[i32]) -> Result<(), KeeperError> {
        match self {
            VolumeAct::Bind => volume.bind_limit(processes),
            VolumeAct::Lift => volume.lift_limit(),
            VolumeAct::Lower => volume.dip(true),
            VolumeAct::Raise => volume.dip(false),
        }
    }
}

/// Puts the place of a server on volumes for its data and logs. If one cannot be made, those before it belong to the place.
pub(crate) fn provide(
    place: &mut Place,
    [data, logs]: [Option<&VolumeSpec>; 2],
    clock: &Arc<dyn Clock>,
) -> Result<Vec<Arc<Volume>>, KeeperError> {
    let keeper = Arc::clone(place.keeper());
    let mut made = Vec::new();
    let mut make = |spec: &VolumeSpec| -> Result<Arc<Volume>, KeeperError> {
        made.push(Arc::new(Volume::make(&keeper, spec, clock)?));
        Ok(Arc::clone(&made[made.len() - 1]))
    };
    if let Some(spec) = data {
        *place = Place::on(&keeper, make(spec)?);
    }
    if let Some(spec) = logs {
        *place = place.clone().with_logs_on(make(spec)?);
    }
    Ok(made)
}

/// The same, with its device to be formatted if the user has named that.
pub(crate) fn allowed(mut spec: VolumeSpec, format_devices: &[PathBuf]) -> VolumeSpec {
    if let Backing::Device { path, may_format } = &mut spec.backing {
        *may_format = format_devices.iter().any(|named| named.as_os_str() == path.as_os_str());
    }
    spec
}

pub(crate) fn limits(database: &Database) -> ServerLimits {
    ServerLimits { memory: database.memory, swap: database.swap, cpu_weight: database.cpu_weight }
}

fn too_little_memory(database: &Database) -> Option<String> {
    let memory = database.memory.filter(|memory| *memory < MEMORY_LEAST)?;
    Some(format!(
        "database `{}`: `memory` is {memory}, but a server needs at least {MEMORY_LEAST} to start",
        database.name
    ))
}

/// Why this plan's volumes, limits or kernel settings are impossible here, each reason once. `format_devices`
/// are those that the user allows to format.
pub fn check_volumes(keeper: &Keeper, format_devices: &[PathBuf], plan: &Plan) -> Vec<String> {
    let products = crate::machine::products();
    let mut refused = Vec::new();
    // The hosts of servers say for themselves whether theirs can be emptied.
    let is_here = plan.variants.iter().any(|variant| variant.database.on.is_none());
    if plan.drop_caches && is_here {
        refused.extend(dyno_host::page_cache_problem());
    }
    for variant in &plan.variants {
        let database = &variant.database;
        let mut add = |problem: String| {
            if !refused.contains(&problem) {
                refused.push(problem);
            }
        };
        let machine = dyno_host::server_limit_problems(&limits(database)).into_iter();
        let kernel = keeper.kernel().problems(&database.kernel);
        machine.chain(kernel).chain(too_little_memory(database)).for_each(&mut add);
        // An image is made for each; a device is there once.
        if let (Some(data), Some(log)) = (variant.volume(), variant.log_volume())
            && let (Some(device), Some(other)) = (data.device(), log.device())
            && device == other
        {
            add(format!(
                "database `{}`: its data and its logs would be on the same device, {}; \
                 leave `log_volume` out, or name a volume on another device",
                database.name,
                device.display()
            ));
        }
        if let (Product::Private(name), Some(_)) = (&database.product, &database.log_volume)
            && !products.find(name).is_some_and(|product| product.spec.has_log_folder)
        {
            let database = &database.name;
            add(format!(
                "database `{database}`: {name} keeps its logs with its data, so it cannot have a \
                 `log_volume`"
            ));
        }
        // Those on hosts are made there, and what is missing is said there.
        let here = variant.volumes().into_iter().filter(|_| database.on.is_none());
        for volume in here {
            let volume = allowed(volume, format_devices);
            let mut problems = volume_problems(keeper, &volume);
            if matches!(database.product, Product::Url(_)) {
                problems.push(format!(
                    "database `{}` is already running, so its data stay where they are",
                    database.name
                ));
            }
            for problem in problems {
                add(format!("volume `{}`: {problem}", volume.name));
            }
        }
    }
    refused
}
