//! Provides what the members of a trial need of the host before they come up: places for their data.

use std::sync::Arc;

use dyno_database::Place;
use dyno_host::Volume;
use dyno_study::Variant;

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
            member.place = provide(lab, variant, member)?;
            member.facts.place = member.place.as_ref().map(|place| recorded_place(place.facts()));
            Ok(())
        })
    }
}

/// The place of a member: in its server's own folder, or on the volume of its variant.
fn provide(lab: &Lab, variant: &Variant, member: &Member) -> Result<Option<Place>, TrialError> {
    match (&member.source, variant.volume()) {
        (Source::Attach { .. } | Source::Simulate(_), _) => Ok(None),
        (Source::Start(_), None) => Ok(Some(lab.place())),
        (Source::Start(_), Some(choice)) => {
            let spec = volume::spec(&choice, &lab.format_devices);
            let volume = Volume::make(&lab.keeper, &spec, &lab.clock)
                .map_err(|error| TrialError::new(error.0))?;
            Ok(Some(Place::on(&lab.keeper, Arc::new(volume))))
        }
    }
}
