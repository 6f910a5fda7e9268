//! Starts the agents that generate the trial's load.

use dyno_study::HostPool;

use super::Phase;
use crate::hosts::Generators;
use crate::trial::{Trial, TrialError};

/// Starts an agent on each host, and waits until all of them are there.
pub(super) struct StartAgents {
    /// The hosts.
    pub(super) pool: HostPool,
}

impl Phase for StartAgents {
    fn name(&self) -> String {
        "start agents".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        let generators = Generators::start(trial.lab, &self.pool)?;
        let message = generators.in_words();
        trial.generators = Some(generators);
        trial.note(message)
    }
}
