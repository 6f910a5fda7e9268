//! A pause between two steps in which the machine comes to rest.

use dyno_record::EventKind;
use dyno_units::Nanoseconds;

use crate::run::sleep;
use crate::trial::{Trial, TrialError};

impl Trial<'_, '_> {
    /// Waits, unless time is simulated.
    pub(super) fn rest(&mut self, length: Nanoseconds) -> Result<(), TrialError> {
        if !self.deployment.is_simulated() && length > Nanoseconds::ZERO {
            self.event(EventKind::Rested { seconds: length.as_secs_f64() })?;
            sleep(self.lab, length);
        }
        self.check_abort()
    }
}
