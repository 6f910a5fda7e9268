//! Intervals of the mean of a few values: Student's and the percentile bootstrap's.

use std::io::Write;

use dyno_analysis::statistics::{Effect, mean};
use dyno_units::Seed;

use crate::{RULE, head, percent};

const SAMPLES: u32 = 4_000;
const RESAMPLES: usize = 2_000;

pub(crate) fn table(out: &mut dyn Write) -> std::io::Result<()> {
    head(out, "n | Student | percentile bootstrap | range of the values", 0)?;
    for n in [3_usize, 5, 10, 20] {
        let mut random = Seed(31).derive("bootstrap", n as u64).stream();
        let (mut student, mut bootstrap, mut range) = (0, 0, 0);
        for _ in 0..SAMPLES {
            let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            // The bounds of these values are those of pairs with these differences.
            let own = Effect::paired(&values, 0.0).expect("three values at least");
            student += u32::from(own.p_value() > 1.0 - RULE.confidence);
            let mut resample = || {
                let drawn: Vec<f64> =
                    (0..n).map(|_| values[random.below(n as u64) as usize]).collect();
                mean(&drawn)
            };
            let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
            means.sort_by(f64::total_cmp);
            let tail = ((1.0 - RULE.confidence) / 2.0 * RESAMPLES as f64).round() as usize;
            bootstrap += u32::from(means[tail] <= 0.0 && means[RESAMPLES - 1 - tail] >= 0.0);
            let is_either_side = values.iter().any(|v| *v < 0.0) && values.iter().any(|v| *v > 0.0);
            range += u32::from(is_either_side);
        }
        let cells = [student, bootstrap, range].map(|hits| percent(hits, SAMPLES));
        writeln!(out, "| {n} | {} |", cells.join(" | "))?;
    }
    Ok(())
}
