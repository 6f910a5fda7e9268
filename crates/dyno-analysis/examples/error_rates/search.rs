//! The interval of a load found by a search, and comparisons of two.

use dyno_analysis::statistics::{Effect, bounds_of_geometric_mean, mean, t_quantile, variance};
use dyno_units::{RandomStream, Seed};

use crate::noise::has_difference;
use crate::{RULE, Rows, percent, percents};

// The laboratory's own search, which knows only levels and outcomes.
#[rustfmt::skip]
#[path = "../../../dyno-lab/src/search.rs"]
mod search;

use search::{Search, Space};

const STUDIES: u32 = 1_000;
const PRECISION: f64 = 0.05;
/// Of the p99, in seconds.
const LIMIT: f64 = 0.02;

/// Rate within the limit: the p99 of an M/M/1 queue is ln 100 / (capacity − rate).
fn truth(capacity: f64) -> f64 {
    capacity - 100_f64.ln() / LIMIT
}

/// The bracket of one trial. `error` is the standard deviation of the logarithm of probes'
/// quantiles; probes begin with a hundred arrivals in `seconds`.
fn trial(capacity: f64, (error, seconds): (f64, f64), random: &mut RandomStream) -> (f64, f64) {
    let capacity = capacity * (0.01 * random.normal()).exp();
    let space = Space {
        start: 100.0 / seconds,
        least: 0.01,
        most: 1e9,
        growth: 4.0,
        precision: PRECISION,
        is_whole: false,
    };
    let mut search = Search::new(space);
    while let Some(rate) = search.next_level() {
        let is_holding = rate < capacity && {
            let p99 = 100_f64.ln() / (capacity - rate);
            p99 * (error * random.normal()).exp() <= LIMIT
        };
        search.tell(rate, is_holding);
    }
    let found = search.found();
    let held = found.held.unwrap_or(1.0);
    (held, found.broken.unwrap_or(held))
}

#[derive(Default)]
struct Tally {
    covered: u32,
    before: u32,
    effect: u32,
    alarms: u32,
    bias: f64,
}

pub(crate) const COLUMNS: &str = "error of a probe's p99 | n | CI covers (Dyno) | lower end, \
    grid term divided by n (before): CI covers | bias of the middle | 7 % more: effect CI covers \
    | same load: better or worse";

pub(crate) fn table(row: Rows<'_>) {
    let resolution = PRECISION.ln_1p() / 12_f64.sqrt();
    for error in [0.03, 0.10, 0.25] {
        for blocks in [3, 5, 10] {
            let mut random = Seed(61)
                .derive("search", blocks as u64)
                .derive("error", (error * 100.0) as u64)
                .stream();
            let mut tally = Tally::default();
            for _ in 0..STUDIES {
                // Where the truth lies on the grid is random.
                let rate = 500.0 * (2.0 * random.unit()).exp2();
                let capacity = rate + 100_f64.ln() / LIMIT;
                let kind = (error, 10.0);
                let mut trials = |capacity: f64| -> Vec<(f64, f64)> {
                    (0..blocks).map(|_| trial(capacity, kind, &mut random)).collect()
                };
                let more = 1.07 * rate + 100_f64.ln() / LIMIT;
                let (ours, same, other) = (trials(capacity), trials(capacity), trials(more));
                tally.add((&ours, &same, &other), truth(capacity), resolution);
            }
            row(format!(
                "{} | {blocks} | {} | {:+.1} % | {}",
                percent((error * 1000.0) as u32, 1000),
                percents(&[tally.covered, tally.before], STUDIES),
                100.0 * tally.bias / f64::from(STUDIES),
                percents(&[tally.effect, tally.alarms], STUDIES),
            ));
        }
    }
}

type Brackets<'a> = &'a [(f64, f64)];

impl Tally {
    fn add(
        &mut self,
        (ours, same, other): (Brackets<'_>, Brackets<'_>, Brackets<'_>),
        truth: f64,
        resolution: f64,
    ) {
        let middle = |(held, broken): &(f64, f64)| (held * broken).sqrt();
        let values: Vec<f64> = ours.iter().map(middle).collect();
        let (low, high) = bounds_of_geometric_mean(&values, RULE.confidence, resolution)
            .expect("two values at least");
        self.covered += u32::from(low <= truth && truth <= high);
        let logs = |all: Brackets<'_>| all.iter().map(|one| middle(one).ln()).collect::<Vec<_>>();
        self.bias += mean(&logs(ours)) - truth.ln();
        let lower: Vec<f64> = ours.iter().map(|(held, _)| held.ln()).collect();
        let n = lower.len() as f64;
        let error = (variance(&lower).max(resolution * resolution) / n).sqrt();
        let half = t_quantile(0.5 + RULE.confidence / 2.0, n - 1.0) * error;
        self.before += u32::from((mean(&lower) - truth.ln()).abs() <= half);
        let effect = |a: Brackets<'_>, b: Brackets<'_>| {
            let pairs = logs(a).into_iter().zip(logs(b));
            let differences: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
            Effect::paired(&differences, resolution).expect("two pairs at least")
        };
        let (low, high) = effect(other, ours).bounds(RULE.confidence);
        self.effect += u32::from(low <= 1.07_f64.ln() && 1.07_f64.ln() <= high);
        self.alarms += u32::from(has_difference(&[effect(same, ours)]));
    }
}
