//! Blocks that the host has spoiled: set aside when they end, and measured again after all others.

use std::collections::BTreeMap;

use dyno_record::{EventKind, RunWriter, VoidBlock, VoidTrial, VoidingRecord};
use dyno_study::Design;

use crate::{EventLog, RunOrder};

/// How much worse the host may be than at the variant's quietest trial; METHOD.md gives the reasons.
const STEAL: f64 = 0.02;
const OTHERS: f64 = 0.10;
const CANARY: f64 = 0.25;

pub(crate) fn rule(design: &Design) -> Option<VoidingRecord> {
    (design.void_repeats > 0).then_some(VoidingRecord {
        steal: STEAL,
        others: OTHERS,
        canary: CANARY,
        repeats_max: design.void_repeats,
    })
}

/// Sets void blocks aside. Returns the numbers of their trials, which must be repeated.
pub(crate) fn set_aside(
    order: &RunOrder<'_>,
    events: &mut EventLog<'_>,
    record: &mut RunWriter,
) -> anyhow::Result<Vec<u32>> {
    let Some(void) = order.void.filter(|_| order.manifest.voiding.is_some()) else {
        return Ok(Vec::new());
    };
    // Of blocks that became void before a run was killed some trials may still be there.
    let mut again = record.void(Vec::new())?;
    let run = dyno_record::read_run(&order.folder)?;
    let blocks: BTreeMap<u32, Vec<String>> = void(&run).into_iter().collect();
    if blocks.is_empty() {
        return Ok(again);
    }
    let trials = |block: u32| -> Vec<VoidTrial> {
        let own = run.trials.iter().filter(|trial| trial.block == block);
        own.map(|trial| VoidTrial { number: trial.number, began_unix_ms: trial.began_unix_ms })
            .collect()
    };
    for (block, why) in &blocks {
        let why = why.join("; ");
        events.in_run(record, EventKind::BlockVoided { block: *block, why })?;
    }
    let blocks = blocks.into_iter();
    again.extend(record.void(
        blocks.map(|(block, why)| VoidBlock { block, why, trials: trials(block) }).collect(),
    )?);
    Ok(again)
}
