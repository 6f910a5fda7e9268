//! Intervals of the mean of a few values: Student's and the percentile bootstrap's.

use dyno_analysis::statistics::mean;
use dyno_units::Seed;

use crate::{LEVEL, Rows, paired, shares};

const SAMPLES: u32 = 4_000;
const RESAMPLES: usize = 2_000;

pub(crate) const COLUMNS: &str = "n | Student | percentile bootstrap | range of the values";

pub(crate) fn table(row: Rows<'_>) {
    for n in [3_usize, 5, 10, 20] {
        let mut random = Seed(31).derive("bootstrap", n as u64).stream();
        let shares = shares(SAMPLES, || {
            let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let mut resample = || {
                let drawn: Vec<f64> =
                    (0..n).map(|_| values[random.below(n as u64) as usize]).collect();
                mean(&drawn)
            };
            let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
            means.sort_by(f64::total_cmp);
            let tail = (LEVEL / 2.0 * RESAMPLES as f64).round() as usize;
            let is_in = means[tail] <= 0.0 && means[RESAMPLES - 1 - tail] >= 0.0;
            let is_either_side = values.iter().any(|v| *v < 0.0) && values.iter().any(|v| *v > 0.0);
            // The bounds of these values are those of pairs with these differences.
            [paired(&values).p_value() > LEVEL, is_in, is_either_side]
        });
        row(format!("{n} | {shares}"));
    }
}
