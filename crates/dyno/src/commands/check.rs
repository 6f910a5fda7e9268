//! `dyno check`: all errors of a study.

use std::path::Path;

use crate::commands::{StudyFile, counted, plan, power, read_study};
use crate::{End, terminal};

/// Checks a study file.
pub(crate) fn run(path: &Path) -> anyhow::Result<End> {
    let Some(StudyFile { study, .. }) = read_study(path)? else { return Ok(End::Misused) };
    let seed = study.design.seed.unwrap_or(dyno_units::Seed(1));
    let plan = dyno_study::plan(&study, seed);
    let past = plan::past(&plan, &study.design);
    let finds = power::section(&power::lines(&plan, &study.design, &past.noise));
    terminal::out(&format!(
        "{}: no errors; {}, {}, {}\n{finds}",
        path.display(),
        counted(plan.variants.len(), "variant"),
        counted(plan.steps.len(), "step"),
        counted(plan.trials.len(), "trial")
    ));
    Ok(End::Good)
}
