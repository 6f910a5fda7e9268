//! Provides what the members of a trial need of the host before they come up: places for their data.

use dyno_database::Place;

use super::Phase;
use crate::deployment::{Member, Source, recorded_place};
use crate::run::Lab;
use crate::trial::{Trial, TrialError};

/// Makes the place of each member that has data.
pub(super) struct Provision;

impl Phase for Provision {
    fn name(&self) -> String {
        "provision".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        let lab = trial.lab;
        trial.deployment.members.iter_mut().try_for_each(|member| {
            member.place = provide(lab, member)?;
            member.facts.place = member.place.as_ref().map(|place| recorded_place(place.facts()));
            Ok(())
        })
    }
}

/// The place of a member: today in its server's own folder. What makes volumes belongs here.
fn provide(lab: &Lab, member: &Member) -> Result<Option<Place>, TrialError> {
    Ok(match member.source {
        Source::Start(_) => Some(lab.place()),
        Source::Attach { .. } | Source::Simulate(_) => None,
    })
}
