//! Phases in which something of a machine is provided, set or limited: places, the kernel, caches, a rest, volumes.

use std::path::PathBuf;
use std::sync::Arc;

use dyno_host::{CopyLayout, Place, VolumeSpec};
use dyno_record::EventKind;
use dyno_study::{DataOrigin, Variant};
use dyno_units::Nanoseconds;

use crate::deployment::Member;
use crate::{Deployment, Lab, MadeVolume, Result, Source, Trial, VolumeAct, volume};

pub(super) fn provision(trial: &mut Trial<'_, '_>) -> Result {
    let (lab, variant) = (trial.lab, trial.variant);
    provide_there(variant, &mut trial.deployment)?;
    trial.deployment.members.iter_mut().try_for_each(|member| {
        if member.host.is_some() {
            return Ok(());
        }
        provide(lab, variant, member)?;
        member.facts.place = member.place.as_ref().map(Place::facts);
        Ok(())
    })
}

fn specs(variant: &Variant, format_devices: &[PathBuf]) -> [Option<VolumeSpec>; 2] {
    let both = [variant.volume(), variant.log_volume()];
    both.map(|one| one.map(|spec| volume::allowed(spec, format_devices)))
}

/// Has the agents of hosts provide the places of the servers there; a router stores nothing.
fn provide_there(variant: &Variant, deployment: &mut Deployment) -> Result {
    let Some(hosts) = deployment.hosts.clone() else { return Ok(()) };
    let has_data = |member: &Member| !matches!(member.source, Source::Route(_));
    let members = deployment.members.iter_mut().filter(|member| has_data(member));
    let (there, members): (Vec<usize>, Vec<&mut Member>) =
        members.filter_map(|member| Some((member.host?, member))).unzip();
    let provided = hosts.provide(&there, specs(variant, &[]).each_ref().map(Option::as_ref))?;
    for (member, (place, volumes)) in members.into_iter().zip(provided) {
        (member.facts.place, member.volumes) = (Some(place), volumes);
    }
    Ok(())
}

fn provide(lab: &Lab, variant: &Variant, member: &mut Member) -> Result {
    if let Source::Attach { .. } | Source::Simulate(_) = member.source {
        return Ok(());
    }
    let place = member.place.insert(lab.place());
    // They store nothing, or are not what the volumes are measured for.
    if let Source::Route(_) | Source::Front(_) | Source::Other(_) = member.source {
        return Ok(());
    }
    let specs = specs(variant, &lab.format_devices);
    let made = volume::provide(place, specs.each_ref().map(Option::as_ref), &lab.clock)?;
    member.volumes = made.into_iter().map(MadeVolume::here).collect();
    if variant.database.data == DataOrigin::Restored {
        *place = place.clone().with_copies(CopyLayout::Written);
    }
    Ok(())
}

/// Changes what the trial's database asks for; the tear-down puts it back.
pub(super) fn set_kernel(trial: &mut Trial<'_, '_>) -> Result {
    if trial.deployment.is_simulated() {
        return Ok(());
    }
    let (kernel, wanted) = (trial.lab.keeper.kernel(), &trial.variant.database.kernel);
    kernel.change(wanted)?;
    let settings = kernel.values(wanted.keys().map(String::as_str));
    trial.event(EventKind::KernelSet { settings })
}

/// Empties the page cache of this machine, or of the servers' hosts, unless time is simulated.
pub(super) fn drop_caches(trial: &mut Trial<'_, '_>) -> Result {
    if trial.deployment.is_simulated() {
        return Ok(());
    }
    let Some(hosts) = trial.deployment.hosts.as_ref().map(Arc::clone) else {
        let (before_bytes, after_bytes) = dyno_host::drop_page_cache()?;
        return trial.event(EventKind::CachesDropped { host: None, before_bytes, after_bytes });
    };
    hosts.drop_caches()?.into_iter().try_for_each(|dropped| trial.event(dropped))
}

/// Binds the limit of each volume. What filling has left in the page cache is on the device first.
pub(super) fn limit(trial: &mut Trial<'_, '_>) -> Result {
    for (volume, processes) in volumes(trial) {
        volume.act(VolumeAct::Bind, &processes)?;
        let words = volume.limit.words();
        trial.limited(&volume, words)?;
    }
    Ok(())
}

pub(super) fn lift(trial: &mut Trial<'_, '_>) -> Result {
    for (volume, _) in volumes(trial) {
        volume.act(VolumeAct::Lift, &[])?;
        trial.limited(&volume, None)?;
    }
    Ok(())
}

/// The volumes with limits, each with the processes of its member's server.
fn volumes(trial: &Trial<'_, '_>) -> Vec<(MadeVolume, Vec<i32>)> {
    let members = trial.deployment.members.iter();
    let all = members.flat_map(|member| {
        let server = member.server();
        let processes = server.map(|server| server.processes()).unwrap_or_default();
        member.volumes.iter().map(move |volume| (volume.clone(), processes.clone()))
    });
    all.filter(|(volume, _)| volume.is_limited()).collect()
}

impl Trial<'_, '_> {
    /// Waits, unless time is simulated.
    pub(super) fn rest(&mut self, length: Nanoseconds) -> Result {
        if !self.deployment.is_simulated() && length > Nanoseconds::ZERO {
            self.event(EventKind::Rested { seconds: length.as_secs_f64() })?;
            self.lab.sleep(length);
        }
        self.check_abort()
    }

    fn limited(&mut self, volume: &MadeVolume, limit: Option<String>) -> Result {
        let volume = volume.name.clone();
        self.event(EventKind::VolumeLimited { volume, limit })
    }
}
