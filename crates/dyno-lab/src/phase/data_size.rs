//! What the data take on disk after the last step.

use super::Phase;
use crate::trial::{Trial, TrialError, log_bytes};

/// Reads the size of the data, and of the logs among them.
pub(super) struct DataSize;

impl Phase for DataSize {
    fn name(&self) -> String {
        "data size".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        let Some(server) = trial.deployment.server() else { return Ok(()) };
        trial.results.data.bytes_after = server.data_bytes();
        trial.results.data.log_bytes_after = log_bytes(server);
        Ok(())
    }
}
