//! Ends every trial: stops and removes what was made for it.

use crate::trial::{Trial, TrialError};

/// Ends all agents, stops all members, gives their places back, and puts the kernel's settings back. What was measured stands, whatever becomes of the servers and their tables.
pub(super) fn tear_down(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    if let Some(generators) = trial.generators.take() {
        generators.stop();
    }
    let removed = trial.deployment.tear_down().err().map(|error| error.message);
    let kernel = trial.lab.keeper.kernel().put_back();
    let failed = kernel.as_ref().err().map(|error| error.0.clone());
    trial.results.clean_up_failure = removed.or(failed);
    kernel.unwrap_or_default().into_iter().try_for_each(|message| trial.note(message))
}
