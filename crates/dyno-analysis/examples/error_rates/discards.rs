//! Blocks discarded for the host's sake, where a variant's slow starts load the host themselves.

use dyno_analysis::statistics::mean;
use dyno_units::{RandomStream, Seed};

use crate::{RULE, Rows, paired, percent};

const STUDIES: u32 = 4_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Nothing,
    /// User time, which the variant does not cause.
    Others,
    /// Also the kernel's work, which slow starts cause.
    Kernel,
}

/// The difference, and whether a limit was exceeded. A fifth of the variant's starts are 10 %
/// slower and cause kernel work; a tenth of all trials are disturbed by others and lose 20 %.
fn block(counts: Counts, random: &mut RandomStream) -> (f64, bool) {
    let mut is_over = false;
    let mut trial = |is_variant: bool, random: &mut RandomStream| {
        let is_hit = random.below(10) == 0;
        let is_slow = is_variant && random.below(5) == 0;
        is_over |= is_hit && counts != Counts::Nothing;
        is_over |= is_slow && counts == Counts::Kernel;
        let lost = if is_hit { 0.2 } else { 0.0 } + if is_slow { 0.1 } else { 0.0 };
        0.01 * random.normal() - lost
    };
    let difference = trial(true, random) - trial(false, random);
    (difference, is_over)
}

pub(crate) const COLUMNS: &str = "discarded by | n | bias of the effect | effect CI covers | \
    CI's half width";

pub(crate) fn table(row: Rows<'_>) {
    // In the long run.
    let truth = -0.02;
    for (counts, name) in [
        (Counts::Others, "other processes' user time (Dyno)"),
        (Counts::Kernel, "the kernel's work as well (before)"),
        (Counts::Nothing, "nothing"),
    ] {
        for blocks in [5, 10] {
            let mut random = Seed(67).derive(name, blocks as u64).stream();
            let (mut covered, mut sum, mut width) = (0, 0.0, 0.0);
            for _ in 0..STUDIES {
                let mut left = (blocks - 1) / 2;
                let mut differences = Vec::new();
                while differences.len() < blocks {
                    let (difference, is_over) = block(counts, &mut random);
                    if is_over && left > 0 {
                        left -= 1;
                    } else {
                        differences.push(difference);
                    }
                }
                let (low, high) = paired(&differences).bounds(RULE.confidence);
                covered += u32::from(low <= truth && truth <= high);
                sum += mean(&differences) - truth;
                width += (high - low) / 2.0;
            }
            let of_studies = |sum: f64| 100.0 * sum / f64::from(STUDIES);
            row(format!(
                "{name} | {blocks} | {:+.1} % | {} | {:.1} %",
                of_studies(sum),
                percent(covered, STUDIES),
                of_studies(width),
            ));
        }
    }
}
