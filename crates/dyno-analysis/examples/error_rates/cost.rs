//! "Is cheapest", by the paired rule and by intervals that do not overlap.

use dyno_analysis::statistics::{Call, bounds_of_geometric_mean, mean, pooled_errors, variance};
use dyno_units::{RandomStream, Seed};

use crate::{LEVEL, RULE, Rows, call_at, paired, percent, shares};

const STUDIES: u32 = 2_000;
const VARIANTS: usize = 4;
/// Of throughput, for every variant.
const LEVELS: [f64; 4] = [0.0, 0.50, 0.70, 0.72];

/// By variant, level and block; the second variant has an effect, and prices are equal.
fn study(
    (levels, blocks): (&[f64], usize),
    (effect, drift): (f64, f64),
    random: &mut RandomStream,
) -> Vec<Vec<Vec<f64>>> {
    let half = 0.02 * std::f64::consts::FRAC_1_SQRT_2;
    let machine: Vec<f64> = (0..blocks).map(|_| drift * random.normal()).collect();
    let mut table = vec![vec![vec![0.0; blocks]; levels.len()]; VARIANTS];
    for (variant, of_levels) in table.iter_mut().enumerate() {
        let added = if variant == 1 { effect } else { 0.0 };
        for (block, machine) in machine.iter().enumerate() {
            let own = random.normal();
            for (values, level) in of_levels.iter_mut().zip(levels) {
                values[block] = level + added + machine + half * (own + random.normal());
            }
        }
    }
    table
}

fn best(levels: &[Vec<f64>]) -> usize {
    let order = |a: &usize, b: &usize| mean(&levels[*a]).total_cmp(&mean(&levels[*b]));
    (0..levels.len()).max_by(order).unwrap_or(0)
}

/// Ahead of each other variant at each of its levels.
fn by_pairs(table: &[Vec<Vec<f64>>]) -> Option<usize> {
    let bests: Vec<usize> = table.iter().map(|levels| best(levels)).collect();
    let value = |variant: &usize| mean(&table[*variant][bests[*variant]]);
    let first = (0..table.len()).max_by(|a, b| value(a).total_cmp(&value(b)))?;
    let mut order = vec![first];
    order.extend((0..table.len()).filter(|variant| *variant != first));
    let sorted: Vec<Vec<Vec<f64>>> = order.iter().map(|v| table[*v].clone()).collect();
    let errors = pooled_errors(&sorted);
    let level = LEVEL / sorted[0].len() as f64;
    let is_ahead = |other: usize, step: usize| {
        let ours = &sorted[0][bests[first]];
        let pairs = ours.iter().zip(&sorted[other][step]);
        let differences: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
        let own = paired(&differences);
        let error = errors.as_ref().map(|errors| {
            let of = &errors[other - 1];
            let mut error = of[step];
            error.variance = error.variance.max(of[bests[first]].variance);
            if step != bests[first] {
                error.variance = error.variance.max(variance(&differences));
            }
            error
        });
        let effect = error.map_or(own, |error| own.with_error(error));
        call_at(effect, level) == Call::Higher
    };
    let others = 1..sorted.len();
    let mut all = others.flat_map(|other| (0..sorted[0].len()).map(move |step| (other, step)));
    all.all(|(other, step)| is_ahead(other, step)).then_some(first)
}

/// Its interval at its best level is above all others'.
fn by_intervals(table: &[Vec<Vec<f64>>]) -> Option<usize> {
    let interval = |levels: &Vec<Vec<f64>>| {
        let values: Vec<f64> = levels[best(levels)].iter().map(|log| log.exp()).collect();
        bounds_of_geometric_mean(&values, RULE.confidence, 0.0).expect("two values at least")
    };
    let all: Vec<(f64, f64)> = table.iter().map(interval).collect();
    let is_apart = |variant: &usize| {
        (0..all.len()).all(|other| other == *variant || all[*variant].0 > all[other].1)
    };
    (0..all.len()).find(is_apart)
}

pub(crate) const COLUMNS: &str = "load levels | blocks differ by | n | 10 % cheaper: is cheapest \
    (Dyno) | by intervals | all cost the same: one is cheapest (Dyno) | by intervals";

pub(crate) fn table(row: Rows<'_>) {
    for (levels, drift) in [(1, 0.0), (1, 0.03), (1, 0.08), (4, 0.0), (4, 0.08)] {
        for blocks in [3, 5, 10] {
            let mut random = Seed(41).derive("cost", (levels * 1000 + blocks) as u64).stream();
            let shares = shares(STUDIES, || {
                let levels = &LEVELS[LEVELS.len() - levels..];
                let mut found = |effect: f64| {
                    let table = study((levels, blocks), (effect, drift), &mut random);
                    [by_pairs(&table), by_intervals(&table)]
                };
                let ([ours, other], [our_alarm, alarm]) = (found(1.1_f64.ln()), found(0.0));
                [ours == Some(1), other == Some(1), our_alarm.is_some(), alarm.is_some()]
            });
            let drift = percent((drift * 1000.0) as u32, 1000);
            row(format!("{levels} | {drift} | {blocks} | {shares}"));
        }
    }
}
