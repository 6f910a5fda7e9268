//! The end of every trial: what was made for it is stopped and removed.

use super::Phase;
use crate::trial::{Trial, TrialError};

/// Ends all agents, stops all members and gives their places back. What was measured stands, whatever becomes of the servers and their tables.
pub(super) struct TearDown;

impl Phase for TearDown {
    fn name(&self) -> String {
        "tear down".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        if let Some(generators) = trial.generators.take() {
            generators.stop();
        }
        trial.results.clean_up_failure =
            trial.deployment.tear_down().err().map(|error| error.message);
        Ok(())
    }

    fn runs_after_failure(&self) -> bool {
        true
    }
}
