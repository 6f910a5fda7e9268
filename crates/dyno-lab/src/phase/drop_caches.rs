//! Empties the operating system's page cache before a step.

use dyno_record::EventKind;

use super::Phase;
use crate::trial::{Trial, TrialError};

/// Empties it, unless time is simulated.
pub(super) struct DropCaches;

impl Phase for DropCaches {
    fn name(&self) -> String {
        "drop caches".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        if trial.deployment.is_simulated() {
            return Ok(());
        }
        let (before_bytes, after_bytes) = dyno_host::drop_page_cache()?;
        trial.event(EventKind::CachesDropped { before_bytes, after_bytes })
    }
}
