//! Empties the page cache before a step: of this machine, or of the servers' hosts.

use std::sync::Arc;

use dyno_record::EventKind;

use crate::trial::{Trial, TrialError};

/// Empties it, unless time is simulated.
pub(super) fn drop_caches(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    if trial.deployment.is_simulated() {
        return Ok(());
    }
    let Some(hosts) = trial.deployment.hosts.as_ref().map(Arc::clone) else {
        let (before_bytes, after_bytes) = dyno_host::drop_page_cache()?;
        return trial.event(EventKind::CachesDropped { host: None, before_bytes, after_bytes });
    };
    hosts.drop_caches()?.into_iter().try_for_each(|dropped| trial.event(dropped))
}
