//! A pause between two steps, in which the machine comes to rest.

use dyno_record::EventKind;
use dyno_units::Nanoseconds;

use super::Phase;
use crate::run::sleep;
use crate::trial::{Trial, TrialError};

/// Waits, unless time is simulated.
pub(super) struct Rest {
    pub(super) length: Nanoseconds,
}

impl Phase for Rest {
    fn name(&self) -> String {
        "rest".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        trial.rest(self.length)
    }
}

impl Trial<'_, '_> {
    pub(super) fn rest(&mut self, length: Nanoseconds) -> Result<(), TrialError> {
        if !self.deployment.is_simulated() && length > Nanoseconds::ZERO {
            self.event(EventKind::Rested { seconds: length.as_secs_f64() })?;
            sleep(self.lab, length);
        }
        self.check_abort()
    }
}
