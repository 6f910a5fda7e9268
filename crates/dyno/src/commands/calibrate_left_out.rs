//! `dyno calibrate` in a build without the null servers that it measures against.

use crate::End;
use crate::cli::CalibrateOptions;

/// Says that this build cannot calibrate.
pub(crate) fn run(_options: &CalibrateOptions) -> anyhow::Result<End> {
    anyhow::bail!("`dyno calibrate` needs servers: {}", dyno_database::LEFT_OUT.unwrap_or_default())
}
