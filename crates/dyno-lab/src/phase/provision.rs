//! Provides what the members of a trial need of the host before they come up: places for their data.

use std::sync::Arc;

use dyno_database::Place;
use dyno_host::{CopyLayout, Volume};
use dyno_study::{DataOrigin, Variant, VolumeChoice};

use super::Phase;
use crate::deployment::{Deployment, Member, Source, recorded_place};
use crate::run::Lab;
use crate::trial::{Trial, TrialError};
use crate::volume::{self, MadeVolume};

pub(super) struct Provision;

impl Phase for Provision {
    fn name(&self) -> String {
        "provision".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        let (lab, variant) = (trial.lab, trial.variant);
        provide_there(lab, variant, &mut trial.deployment)?;
        trial.deployment.members.iter_mut().try_for_each(|member| {
            if member.host.is_some() {
                return Ok(());
            }
            provide(lab, variant, member)?;
            member.facts.place = member.place.as_ref().map(|place| recorded_place(place.facts()));
            Ok(())
        })
    }
}

/// Has the agents of hosts provide the places of the servers there; a router stores nothing.
fn provide_there(
    lab: &Lab,
    variant: &Variant,
    deployment: &mut Deployment,
) -> Result<(), TrialError> {
    let Some(hosts) = deployment.hosts.clone() else { return Ok(()) };
    let spec = |choice: Option<VolumeChoice>| choice.map(|choice| volume::spec(&choice, &[]));
    let (data, logs) = (spec(variant.volume()), spec(variant.log_volume()));
    let has_data = |member: &Member| !matches!(member.source, Source::Route(_));
    let members = deployment.members.iter_mut().filter(|member| has_data(member));
    let (there, members): (Vec<usize>, Vec<&mut Member>) =
        members.filter_map(|member| Some((member.host?, member))).unzip();
    let provided = hosts.provide(lab, &there, (data.as_ref(), logs.as_ref()))?;
    for (member, (place, volumes)) in members.into_iter().zip(provided) {
        member.facts.place = Some(place);
        member.volumes = volumes.into_iter().map(MadeVolume::There).collect();
    }
    Ok(())
}

/// Provides the place of a member: in its server's own folder, or on the volumes of its variant.
fn provide(lab: &Lab, variant: &Variant, member: &mut Member) -> Result<(), TrialError> {
    match (&member.source, variant.volume()) {
        (Source::Attach { .. } | Source::Simulate(_), _) => {}
        // They store nothing, or are not what the volumes are measured for.
        (Source::Route(_) | Source::Front(_) | Source::Other(_), _) => {
            member.place = Some(lab.place());
            return Ok(());
        }
        (_, None) => member.place = Some(lab.place()),
        (_, Some(choice)) => {
            let volume = make(lab, &choice)?;
            member.place = Some(Place::on(&lab.keeper, volume.clone()));
            member.volumes.push(MadeVolume::Here(volume));
        }
    }
    if variant.database.data == DataOrigin::Restored {
        member.place = member.place.take().map(|place| place.with_copies(CopyLayout::Written));
    }
    let (Some(place), Some(choice)) = (&member.place, variant.log_volume()) else { return Ok(()) };
    let volume = make(lab, &choice)?;
    member.place = Some(place.clone().with_logs_on(volume.clone()));
    member.volumes.push(MadeVolume::Here(volume));
    Ok(())
}

fn make(lab: &Lab, choice: &VolumeChoice) -> Result<Arc<Volume>, TrialError> {
    let spec = volume::spec(choice, &lab.format_devices);
    Ok(Arc::new(Volume::make(&lab.keeper, &spec, &lab.clock)?))
}
