//! Sentences about one of several: cost of safe commits, growth, fastest search with a recall.

use dyno_analysis::statistics::{Call, Effect, bounds_of_geometric_mean, geometric_mean, mean};
use dyno_units::{RandomStream, Seed};

use crate::noise::{calls_shifted, effects};
use crate::{LEVEL, RULE, Rows, call_at, percents, shares};

const STUDIES: u32 = 4_000;

/// By variant and block of one load level, with noise of 2 %.
fn study((variants, blocks): (usize, usize), random: &mut RandomStream) -> Vec<Vec<Vec<f64>>> {
    let machine: Vec<f64> = (0..blocks).map(|_| 0.05 * random.normal()).collect();
    let mut of = || vec![machine.iter().map(|drift| drift + 0.02 * random.normal()).collect()];
    (0..variants).map(|_| of()).collect()
}

pub(crate) const DURABILITY: &str = "variants that do not sync | n | a cost is said (Dyno) | CI \
    covers | as a single test: a cost is said | CI covers";

/// Cost of safe commits where there is none: the fastest of several unsafe variants against one.
pub(crate) fn durability(row: Rows<'_>) {
    for unsynced in [1, 2, 3, 6] {
        for blocks in [3, 5, 10] {
            let mut random = Seed(43).derive("safe", (unsynced * 100 + blocks) as u64).stream();
            let shares = shares(STUDIES, || {
                let table = study((unsynced + 1, blocks), &mut random);
                let value = |variant: &usize| mean(&table[*variant][0]);
                let fastest = (1..=unsynced).max_by(|a, b| value(a).total_cmp(&value(b)));
                let effect = effects(&table, true)[fastest.expect("there is one") - 1];
                let of = |level: f64| {
                    let (low, high) = effect.bounds(1.0 - level);
                    [call_at(effect, level) == Call::Higher, low <= 0.0 && high >= 0.0]
                };
                let ([said, covers], [said_alone, covers_alone]) =
                    (of(LEVEL / unsynced as f64), of(LEVEL));
                [said, covers, said_alone, covers_alone]
            });
            row(format!("{unsynced} | {blocks} | {shares}"));
        }
    }
}

pub(crate) const GROWTH: &str = "levels | n | superlinear somewhere (Dyno) | by single intervals | \
    sublinear (Dyno)";

/// "Superlinear at N", and "sublinear", where growth is linear.
pub(crate) fn growth(row: Rows<'_>) {
    for levels in [1, 2, 3, 4, 7] {
        for blocks in [3, 5, 10] {
            let mut random = Seed(47).derive("growth", (levels * 100 + blocks) as u64).stream();
            let shares = shares(STUDIES, || {
                // The expected growth is taken out.
                let table = study((levels + 1, blocks), &mut random);
                let effects = effects(&table, true);
                let calls = calls_shifted(&effects, 1, 0.0);
                let is_above = |effect: &Effect| effect.bounds(RULE.confidence).0 > 0.0;
                let is_said = calls.iter().any(|(call, _)| *call == Call::Higher);
                let is_below = |effect: &Effect| call_at(*effect, LEVEL) == Call::Lower;
                [is_said, effects.iter().any(is_above), effects.iter().all(is_below)]
            });
            row(format!("{levels} | {blocks} | {shares}"));
        }
    }
}

pub(crate) const LIMIT: &str = "load levels | n | the load that is named truly exceeds the limit (Dyno) \
    | by the mean | none is named (Dyno) | by the mean";

/// "Highest throughput shown within p99 ≤ 20 ms": response times rise by 2 % from each load level to the next, through
/// the limit.
pub(crate) fn limit(row: Rows<'_>) {
    for levels in [2_usize, 4, 8, 16] {
        for blocks in [1, 3, 5, 10] {
            let mut random = Seed(83).derive("limit", (levels * 100 + blocks) as u64).stream();
            // Logarithms of multiples of the limit; half of the levels keep it.
            let truth = |level: usize| 0.02 * (level as f64 - levels as f64 / 2.0 + 0.5);
            let shares = shares(STUDIES, || {
                let mut values = |level: usize| -> Vec<f64> {
                    let trials = (0..blocks).map(|_| truth(level) + 0.02 * random.normal());
                    trials.map(f64::exp).collect()
                };
                let found: Vec<Vec<f64>> = (0..levels).map(&mut values).collect();
                let mean = |values: &[f64]| geometric_mean(values).unwrap_or(0.0);
                let most = |values: &[f64]| {
                    let bounds = bounds_of_geometric_mean(values, RULE.confidence, 0.0);
                    bounds.map_or(mean(values), |(_, high)| high)
                };
                let by_mean = found.iter().rposition(|values| mean(values) <= 1.0);
                let by_bound = found.iter().rposition(|values| most(values) <= 1.0);
                let exceeds = |named: Option<usize>| named >= Some(levels / 2);
                [exceeds(by_bound), exceeds(by_mean), by_bound.is_none(), by_mean.is_none()]
            });
            row(format!("{levels} | {blocks} | {shares}"));
        }
    }
}

pub(crate) const RECALL: &str = "n | recall is truly too low (Dyno) | by the mean | steps slower \
    than the fastest that truly has it (Dyno) | by the mean";

/// Its true recall is too low.
pub(crate) fn recall(row: Rows<'_>) {
    const ASKED: f64 = 0.95;
    // From the fastest step to the slowest; recall differs by 0.25 points between steps.
    let truths: Vec<f64> = (0..12).map(|step| 0.940 + 0.0025 * f64::from(step) + 0.001).collect();
    let right = truths.iter().position(|truth| *truth >= ASKED).unwrap_or(0);
    for blocks in [1, 3, 5, 10] {
        let mut random = Seed(53).derive("recall", blocks as u64).stream();
        let (mut low, mut later) = ([0_u32; 2], [0_usize; 2]);
        for _ in 0..STUDIES {
            let mut values = |truth: &f64| -> Vec<f64> {
                (0..blocks).map(|_| (truth + 0.005 * random.normal()).min(1.0)).collect()
            };
            let found: Vec<Vec<f64>> = truths.iter().map(&mut values).collect();
            let mean = |values: &[f64]| geometric_mean(values).unwrap_or(0.0);
            let least = |values: &[f64]| {
                let bounds = bounds_of_geometric_mean(values, RULE.confidence, 0.0);
                bounds.map_or(mean(values), |(low, _)| low)
            };
            let rules: [&dyn Fn(&[f64]) -> f64; 2] = [&least, &mean];
            for (rule, of) in rules.into_iter().enumerate() {
                let taken = found.iter().position(|values| of(values) >= ASKED);
                let taken = taken.unwrap_or(truths.len());
                low[rule] += u32::from(taken < right);
                later[rule] += taken.saturating_sub(right);
            }
        }
        let steps = |n: usize| format!("{:.1}", n as f64 / f64::from(STUDIES));
        let (low, slower, others) = (percents(&low, STUDIES), steps(later[0]), steps(later[1]));
        row(format!("{blocks} | {low} | {slower} | {others}"));
    }
}
