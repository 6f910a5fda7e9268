//! All readings that Dyno may take, also for old records that do not describe them.

use std::path::Path;
use std::sync::LazyLock;

use dyno_record::{ReadError, Run};
use dyno_units::Registry;

pub(crate) fn registry() -> &'static Registry {
    static ALL: LazyLock<Registry> = LazyLock::new(dyno_lab::observe::registry);
    &ALL
}

/// Reads a run. If its record does not describe its readings, the registry fills them in.
///
/// # Errors
///
/// It cannot be read.
pub(crate) fn read_run(folder: &Path) -> Result<Run, ReadError> {
    let mut run = dyno_record::read_run(folder)?;
    run.explain_readings(registry());
    Ok(run)
}
