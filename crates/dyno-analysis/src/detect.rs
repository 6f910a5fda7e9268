//! Finds reasons to trust the findings less, with advice: `rows` lists them, and where each is found.

mod alike;
mod attempts;
mod course;
mod found;
mod generator;
mod hosts;
mod machines;
mod missed;
mod noise;
mod rows;
mod runs;
mod steadiness;
mod storage;

pub(crate) use alike::{is_cached_on_one_side, is_durability_unlike, is_durability_varied};
pub(crate) use generator::limited_share;
pub use runs::is_imported;

use dyno_record::Run;

use found::{Evidence, Place};

use crate::cells::Measured;
use crate::join::Joined;
use crate::{Caveat, Findings};

/// In the order of the rows.
pub(crate) fn caveats(
    joined: &Joined<'_>,
    measured: &[Measured],
    findings: &Findings,
    runs: &[Run],
) -> Vec<Caveat> {
    let places = joined.measured_steps().filter_map(|(trial, step, summary)| {
        Some(Place { at: (trial.variant, step), trial: trial.summary?, summary })
    });
    let places = places.collect();
    let mut seen = Evidence { joined, measured, findings, runs, places, caveats: Vec::new() };
    for row in rows::ROWS {
        let found = seen.caveat(row);
        seen.caveats.extend(found);
    }
    seen.caveats
}

#[cfg(test)]
mod tests;
