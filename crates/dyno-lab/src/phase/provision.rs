//! Provides what the members of a trial need of the host before they come up: places for their data.

use std::sync::Arc;

use dyno_database::Place;
use dyno_host::{CopyLayout, Volume};
use dyno_study::{DataOrigin, Variant, VolumeChoice};

use super::Phase;
use crate::deployment::{Member, Source, recorded_place};
use crate::run::Lab;
use crate::trial::{Trial, TrialError};
use crate::volume;

/// Makes the place of each member that has data.
pub(super) struct Provision;

impl Phase for Provision {
    fn name(&self) -> String {
        "provision".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        let (lab, variant) = (trial.lab, trial.variant);
        trial.deployment.members.iter_mut().try_for_each(|member| {
            provide(lab, variant, member)?;
            member.facts.place = member.place.as_ref().map(|place| recorded_place(place.facts()));
            Ok(())
        })
    }
}

/// Provides the place of a member: in its server's own folder, or on the volumes of its variant.
fn provide(lab: &Lab, variant: &Variant, member: &mut Member) -> Result<(), TrialError> {
    match (&member.source, variant.volume()) {
        (Source::Attach { .. } | Source::Simulate(_), _) => {}
        // Its agent provides it.
        _ if member.host.is_some() => return Ok(()),
        // They store nothing, or are not what the volumes are measured for.
        (Source::Route(_) | Source::Front(_) | Source::Other(_), _) => {
            member.place = Some(lab.place());
            return Ok(());
        }
        (_, None) => member.place = Some(lab.place()),
        (_, Some(choice)) => {
            let volume = make(lab, &choice)?;
            member.place = Some(Place::on(&lab.keeper, volume.clone()));
            member.volumes.push(volume);
        }
    }
    if variant.database.data == DataOrigin::Restored {
        member.place = member.place.take().map(|place| place.with_copies(CopyLayout::Written));
    }
    let (Some(place), Some(choice)) = (&member.place, variant.log_volume()) else { return Ok(()) };
    let volume = make(lab, &choice)?;
    member.place = Some(place.clone().with_logs_on(volume.clone()));
    member.volumes.push(volume);
    Ok(())
}

fn make(lab: &Lab, choice: &VolumeChoice) -> Result<Arc<Volume>, TrialError> {
    let spec = volume::spec(choice, &lab.format_devices);
    Ok(Arc::new(Volume::make(&lab.keeper, &spec, &lab.clock)?))
}
