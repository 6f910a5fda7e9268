//! Provides places for the members' data before they come up.

use std::path::PathBuf;

use dyno_host::{CopyLayout, VolumeSpec};
use dyno_study::{DataOrigin, Variant, VolumeChoice};

use crate::deployment::{Deployment, Member, Source, recorded_place};
use crate::run::Lab;
use crate::trial::{Trial, TrialError};
use crate::volume::{self, MadeVolume};

pub(super) fn provision(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    let (lab, variant) = (trial.lab, trial.variant);
    provide_there(variant, &mut trial.deployment)?;
    trial.deployment.members.iter_mut().try_for_each(|member| {
        if member.host.is_some() {
            return Ok(());
        }
        provide(lab, variant, member)?;
        member.facts.place = member.place.as_ref().map(|place| recorded_place(place.facts()));
        Ok(())
    })
}

/// The volumes of a variant for data and for logs.
fn specs(variant: &Variant, format_devices: &[PathBuf]) -> [Option<VolumeSpec>; 2] {
    let spec = |choice: VolumeChoice| volume::spec(&choice, format_devices);
    [variant.volume().map(spec), variant.log_volume().map(spec)]
}

/// Has the agents of hosts provide the places of the servers there; a router stores nothing.
fn provide_there(variant: &Variant, deployment: &mut Deployment) -> Result<(), TrialError> {
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

/// Provides the place of a member: in its server's own folder, or on the volumes of its variant.
fn provide(lab: &Lab, variant: &Variant, member: &mut Member) -> Result<(), TrialError> {
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
