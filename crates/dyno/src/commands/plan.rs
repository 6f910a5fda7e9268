//! `dyno plan`: the trials in order, with time and disk.

use std::path::Path;

use dyno_lab::Lab;
use dyno_study::Plan;
use dyno_study::plan::{TableContext, VariantSize, render_table};
use dyno_units::{ByteCount, Nanoseconds, Seed};

use crate::commands::{StudyFile, read_study};
use crate::{End, terminal};

/// A cautious guess of how long a private server takes to start and stop.
const START_TIME: Nanoseconds = Nanoseconds::from_secs(4);

/// A cautious guess of how fast tables are filled on a small machine, indexes included.
const POPULATE_ROWS_PER_S: u64 = 50_000;

/// Prints the plan of a study.
pub(crate) fn run(path: &Path, seed: Option<Seed>) -> anyhow::Result<End> {
    let Some(StudyFile { study, .. }) = read_study(path)? else { return Ok(End::Misused) };
    let seed = study.design.seed.or(seed).unwrap_or(Seed(1));
    let plan = dyno_study::plan(&study, seed);
    let data = dyno_lab::expected_disk(&plan)?;
    let most_rows = data.iter().map(|data| data.rows).max().unwrap_or(0);
    let context = TableContext {
        budget: study.design.budget,
        sizes: data
            .iter()
            .map(|data| Some(VariantSize { rows: data.rows, bytes: ByteCount(data.bytes) }))
            .collect(),
        prepare: Some(START_TIME + Nanoseconds::from_secs(most_rows / POPULATE_ROWS_PER_S)),
    };
    terminal::out(&render_table(&plan, &context));
    Ok(End::Good)
}

/// Says before the run when the largest data set will not fit on the disk.
pub(crate) fn warn_of_disk(plan: &Plan, lab: &Lab) -> anyhow::Result<()> {
    let Some(most) = dyno_lab::expected_disk(plan)?.iter().map(|data| data.bytes).max() else {
        return Ok(());
    };
    let Ok(free) = dyno_host::free_bytes(lab.keeper.root()) else { return Ok(()) };
    // Logs, indexes being built and temporary files come on top.
    if most.saturating_mul(2) > free {
        terminal::say(&format!(
            "warning: the largest data set takes about {}, with logs up to twice that, and {} are \
             free; --data-folder names another disk",
            ByteCount(most),
            ByteCount(free)
        ));
    }
    Ok(())
}
