//! `dyno check`: all errors of a study.

use std::path::Path;

use crate::commands::{StudyFile, read_study};
use crate::{End, terminal};

/// Checks a study file.
pub(crate) fn run(path: &Path) -> anyhow::Result<End> {
    let Some(StudyFile { study, .. }) = read_study(path)? else { return Ok(End::Misused) };
    let seed = study.design.seed.unwrap_or(dyno_units::Seed(1));
    let plan = dyno_study::plan(&study, seed);
    terminal::out(&format!(
        "{}: no errors; {} variants, {} steps, {} trials",
        path.display(),
        plan.variants.len(),
        plan.steps.len(),
        plan.trials.len()
    ));
    Ok(End::Good)
}
