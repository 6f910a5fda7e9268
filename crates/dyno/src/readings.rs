//! All readings that Dyno may take, to describe those of old records, too.

use std::path::Path;
use std::sync::LazyLock;

use dyno_record::{ReadError, Run};
use dyno_units::Registry;

pub(crate) fn registry() -> &'static Registry {
    static ALL: LazyLock<Registry> = LazyLock::new(dyno_lab::observe::registry);
    &ALL
}

/// The registry describes the readings if the record does not. Fails if the run cannot be read.
pub(crate) fn read_run(folder: &Path) -> Result<Run, ReadError> {
    let mut run = dyno_record::read_run(folder)?;
    run.explain_readings(registry());
    Ok(run)
}
