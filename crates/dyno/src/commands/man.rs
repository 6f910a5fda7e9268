//! `dyno man`: manual pages of all commands, for packages.

use std::path::Path;

use anyhow::Context;

use super::report;
use crate::{End, cli};

/// Writes `dyno.1`, `dyno-run.1` and so on.
pub(crate) fn run(folder: &Path) -> anyhow::Result<End> {
    report::make_folder(folder, 0o777)?;
    clap_mangen::generate_to(cli::command(), folder)
        .with_context(|| format!("the manual pages cannot be written to {}", folder.display()))?;
    Ok(End::Good)
}
