//! Checks that the servers still answer after the last step.

use dyno_units::Nanoseconds;

use crate::run::sleep;
use crate::trial::{Trial, TrialError};

/// How long a private server may take to answer after the last step.
const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);

/// Refuses the steps of a private server that does not answer after the last one: it may have stood
/// still for any part of them, and a client that waits for it when its time is over counts nowhere.
pub(super) fn check_alive(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    let until = trial.lab.clock.now() + ANSWER_LIMIT;
    loop {
        let answers = {
            let servers = trial.deployment.servers();
            let mut private = servers.filter(|server| !server.processes().is_empty());
            private.try_for_each(|server| server.check_alive())
        };
        let Err(error) = answers else { return Ok(()) };
        // The connections of the last step may still be counted against its limit.
        if trial.deployment.down().is_some() || trial.lab.clock.now() >= until {
            return Err(error.into());
        }
        sleep(trial.lab, Nanoseconds::from_millis(100));
        trial.check_abort()?;
    }
}
