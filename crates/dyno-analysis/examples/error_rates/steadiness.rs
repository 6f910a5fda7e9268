//! Judging steadiness: how often noise alone is not steady, and how often a slope is seen.

use dyno_analysis::time::{Steadiness, judge};
use dyno_units::{RandomStream, Seed};

use crate::{Rows, percents};

const SERIES: u32 = 1_000;

/// Noise with memory around a level that changes by `slope` over the phase.
fn series(
    seconds: u32,
    (noise, memory): (f64, f64),
    slope: f64,
    random: &mut RandomStream,
) -> Vec<f64> {
    let fresh = noise * (1.0 - memory * memory).sqrt();
    let mut off = noise * random.normal();
    (0..seconds)
        .map(|second| {
            off = memory * off + fresh * random.normal();
            1_000.0 * (1.0 + off + slope * f64::from(second) / f64::from(seconds))
        })
        .collect()
}

fn not_steady(seconds: u32, noise: (f64, f64), slope: f64) -> u32 {
    let seed = Seed(19).derive("steady", u64::from(seconds));
    let mut random = seed.derive("slope", slope.to_bits() ^ noise.1.to_bits()).stream();
    let is_not = |_: &u32| {
        let values = series(seconds, noise, slope, &mut random);
        judge(1, &values, 0.03).steadiness != Steadiness::Steady
    };
    (0..SERIES).filter(is_not).count() as u32
}

pub(crate) const COLUMNS: &str = "seconds | no change, φ = 0 | φ = 0.5 | φ = 0.8 | φ = 0.9 | \
    slope of 5 % | 10 % | 20 %";

pub(crate) fn table(row: Rows<'_>) {
    for seconds in [20, 30, 60, 300] {
        let none = [0.0, 0.5, 0.8, 0.9].map(|memory| not_steady(seconds, (0.06, memory), 0.0));
        let some = [0.05, 0.1, 0.2].map(|slope| not_steady(seconds, (0.03, 0.5), slope));
        row(format!("{seconds} | {} | {}", percents(&none, SERIES), percents(&some, SERIES)));
    }
}
