//! The end of a trial: checks that the servers still answer, and removes what was made.

use dyno_units::Nanoseconds;

use crate::{Result, Trial};

/// How long a private server may take to answer after the last step.
const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);

/// Refuses the steps of a private server that does not answer after the last one: it may have stood
/// still for any part of them, and a client that waits for it when its time is over counts nowhere.
pub(super) fn check_alive(trial: &mut Trial<'_, '_>) -> Result {
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
        trial.lab.sleep(Nanoseconds::from_millis(100));
        trial.check_abort()?;
    }
}

/// Ends all agents, stops all members, gives their places back, and puts the kernel's settings back. What was measured
/// stands, whatever becomes of the servers and their tables.
pub(super) fn tear_down(trial: &mut Trial<'_, '_>) -> Result {
    if let Some(generators) = trial.generators.take() {
        generators.stop();
    }
    let removed = trial.deployment.tear_down().err().map(|error| error.message);
    let kernel = trial.lab.keeper.kernel().put_back();
    let failed = kernel.as_ref().err().map(|error| error.0.clone());
    trial.results.clean_up_failure = removed.or(failed);
    kernel.unwrap_or_default().into_iter().try_for_each(|message| trial.note(message))
}
