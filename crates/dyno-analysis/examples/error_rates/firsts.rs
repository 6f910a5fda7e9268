//! Sentences about the first or the most of several: "is fastest", "scales furthest", the largest effect that is named,
//! and what several load levels, or groups of them, leave open.

use dyno_analysis::statistics::{Call, Effect, bounds_of_geometric_mean, mean};
use dyno_units::{RandomStream, Seed};

use crate::noise::{
    Noise, Order, STEPS, STUDIES, Setup, VARIANTS, calls_shifted, effects, has_difference, study,
};
use crate::{LEVEL, RULE, Rows, call_at, paired, percent, shares, shares_of};

/// By variant, load level and block.
type Table = Vec<Vec<Vec<f64>>>;

const BLOCKS: [usize; 3] = [3, 5, 10];

fn ordinary(
    (variants, steps, repetitions): (usize, usize, usize),
    random: &mut RandomStream,
) -> Table {
    let setup = Setup::new(Noise::Normal, Order::Interleaved, repetitions);
    study(Setup { variants, steps, ..setup }, random)
}

fn raise(of_variant: &mut [Vec<f64>], effect: f64) {
    of_variant.iter_mut().flatten().for_each(|value| *value += effect);
}

/// Over these load levels of each variant, by block.
fn over(table: &[Vec<Vec<f64>>], steps: std::ops::Range<usize>) -> Table {
    let of_block = |levels: &[Vec<f64>], block: usize| {
        mean(&levels.iter().map(|values| values[block]).collect::<Vec<f64>>())
    };
    let of_variant = |levels: &Vec<Vec<f64>>| {
        let levels = &levels[steps.clone()];
        vec![(0..levels[0].len()).map(|block| of_block(levels, block)).collect()]
    };
    table.iter().map(of_variant).collect()
}

/// The best mean, and whether all others are behind it.
fn first_of(means: &[Vec<Vec<f64>>]) -> (usize, bool) {
    first_at(means, LEVEL)
}

fn first_at(means: &[Vec<Vec<f64>>], level: f64) -> (usize, bool) {
    let value = |variant: &usize| mean(&means[*variant][0]);
    let best = (0..means.len()).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
    let mut sorted = means.to_vec();
    sorted.swap(0, best);
    let is_behind = |effect: &Effect| call_at(*effect, level) == Call::Lower;
    (best, effects(&sorted, true).iter().all(is_behind))
}

fn covers(effect: &Effect, truth: f64) -> bool {
    let (low, high) = effect.bounds(RULE.confidence);
    low <= truth && truth <= high
}

pub(crate) const FASTEST: &str = "variants | load levels | n | all alike: one is fastest | one 5 % \
    faster: it is fastest | another one is | its lead over the baseline: CI covers | three groups, \
    all alike: one is fastest in any";

/// "Is fastest": at one load level or on average over several, in one group or in each of three.
pub(crate) fn fastest(row: Rows<'_>) {
    let five = 1.05_f64.ln();
    for (variants, steps) in [(2, 1), (4, 1), (8, 1), (4, 4), (8, 4)] {
        for blocks in BLOCKS {
            let place = (variants * 1000 + steps * 100 + blocks) as u64;
            let mut random = Seed(61).derive("fastest", place).stream();
            let mut means = |effect: f64| {
                let mut table = ordinary((variants, steps, blocks), &mut random);
                raise(&mut table[1], effect);
                over(&table, 0..steps)
            };
            let cells = shares_of(STUDIES, || {
                let alike = [(); 3].map(|()| first_of(&means(0.0)).1);
                let raised = means(five);
                let (best, is_first) = first_of(&raised);
                let is_right = is_first && best == 1;
                let is_covered = || covers(&effects(&raised, true)[0], five);
                [
                    Some(alike[0]),
                    Some(is_right),
                    Some(is_first && best != 1),
                    is_right.then(is_covered),
                    Some(alike.contains(&true)),
                ]
            });
            row(format!("{variants} | {steps} | {blocks} | {cells}"));
        }
    }
}

pub(crate) const LOADS: &str = "variants | load levels | n | all alike: one is fastest anywhere | by single \
    tests | one 5 % faster everywhere: at all load levels | at some | at the first load level alone: there";

/// "Is fastest at both load levels", or at some of them; the rule for one load level is that of [`fastest`].
pub(crate) fn loads(row: Rows<'_>) {
    let five = 1.05_f64.ln();
    for (variants, steps) in [(3, 2), (3, 4), (3, 8), (8, 2), (8, 8)] {
        for blocks in BLOCKS {
            let place = (variants * 1000 + steps * 100 + blocks) as u64;
            let mut random = Seed(97).derive("loads", place).stream();
            let mut found = |raised: usize| {
                let mut table = ordinary((variants, steps, blocks), &mut random);
                raise(&mut table[1][..raised], five);
                let at = |level: f64| -> Vec<Option<usize>> {
                    let first = |step: usize| first_at(&over(&table, step..step + 1), level);
                    let said = (0..steps).map(first);
                    said.map(|(best, is_first)| is_first.then_some(best)).collect()
                };
                let single = at(LEVEL);
                // All the same: no correction.
                let is_uniform = single.iter().all(|one| *one == single[0]);
                let said = if is_uniform { single.clone() } else { at(LEVEL / steps as f64) };
                (said, single)
            };
            let is_any = |said: &[Option<usize>]| said.iter().any(Option::is_some);
            let cells = shares(STUDIES, || {
                let ((alike, single), (all, _), (one, _)) = (found(0), found(steps), found(1));
                let n_right = all.iter().filter(|best| **best == Some(1)).count();
                [
                    is_any(&alike),
                    is_any(&single),
                    n_right == steps,
                    (1..steps).contains(&n_right),
                    one[0] == Some(1),
                ]
            });
            row(format!("{variants} | {steps} | {blocks} | {cells}"));
        }
    }
}

pub(crate) const FURTHEST: &str = "variants | load levels with more clients | n | all alike: one \
    scales furthest | one 10 % further: it does | speed-up at a variant's best: CI covers (Dyno) | by a \
    single CI | at one that is not chosen";

/// "Scales furthest": every load level has the same speed-up, which is the hardest choice.
pub(crate) fn furthest(row: Rows<'_>) {
    for (variants, loads) in [(2, 3), (4, 3), (2, 7), (4, 7)] {
        for blocks in BLOCKS {
            let place = (variants * 1000 + loads * 100 + blocks) as u64;
            let mut random = Seed(67).derive("furthest", place).stream();
            let mut study = |effect: f64| {
                let mut table = ordinary((variants, loads + 1, blocks), &mut random);
                raise(&mut table[1][1..], effect);
                table
            };
            let shares = shares(STUDIES, || {
                let (alike, raised) = (study(0.0), study(1.1_f64.ln()));
                let is_covered = |logs: &[f64], level: f64| {
                    let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
                    let bounds = bounds_of_geometric_mean(&values, 1.0 - level, 0.0);
                    bounds.is_some_and(|(low, high)| low <= 1.0 && high >= 1.0)
                };
                let (best, fixed) = (best_speed_up(&alike[0]), speed_up(&alike[0], 1));
                [
                    furthest_of(&alike).is_some(),
                    furthest_of(&raised) == Some(1),
                    is_covered(&best, LEVEL / loads as f64),
                    is_covered(&best, LEVEL),
                    is_covered(&fixed, LEVEL),
                ]
            });
            row(format!("{variants} | {loads} | {blocks} | {shares}"));
        }
    }
}

/// By block, against its own fewest clients.
fn speed_up(loads: &[Vec<f64>], load: usize) -> Vec<f64> {
    loads[load].iter().zip(&loads[0]).map(|(more, fewest)| more - fewest).collect()
}

fn best_speed_up(loads: &[Vec<f64>]) -> Vec<f64> {
    let all = (1..loads.len()).map(|load| speed_up(loads, load));
    all.max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or_default()
}

fn furthest_of(table: &[Vec<Vec<f64>>]) -> Option<usize> {
    let all: Vec<Vec<f64>> = table.iter().map(|loads| best_speed_up(loads)).collect();
    let first = (0..all.len()).max_by(|a, b| mean(&all[*a]).total_cmp(&mean(&all[*b])))?;
    let level = LEVEL / (table[0].len() - 1) as f64;
    let is_behind = |other: usize| {
        let differences: Vec<f64> =
            all[first].iter().zip(&all[other]).map(|(ours, theirs)| ours - theirs).collect();
        call_at(paired(&differences), level) == Call::Higher
    };
    (0..all.len()).all(|other| other == first || is_behind(other)).then_some(first)
}

pub(crate) const LARGEST: &str = "comparisons | n | true effect of each | a difference is named | \
    the largest that is named: CI covers | the first comparison: CI covers";

/// "17 is slower at 4 clients (…)": the largest of those that were decided, and its interval.
pub(crate) fn largest(row: Rows<'_>) {
    for (variants, steps) in [(2, 4), (VARIANTS, STEPS)] {
        for blocks in BLOCKS {
            for effect in [0.05, 0.1_f64] {
                let place = (variants * 1000 + blocks * 10) as u64 + (effect * 100.0) as u64;
                let mut random = Seed(71).derive("largest", place).stream();
                let truth = effect.ln_1p();
                let cells = shares_of(STUDIES, || {
                    let mut table = ordinary((variants, steps, blocks), &mut random);
                    table[1..].iter_mut().for_each(|levels| raise(levels, truth));
                    let effects = effects(&table, true);
                    let decided = effects.iter().zip(calls_shifted(&effects, steps, 0.0));
                    let decided = decided.filter(|(_, (call, _))| *call == Call::Higher);
                    let most = decided.max_by(|a, b| a.0.value.total_cmp(&b.0.value));
                    [
                        Some(most.is_some()),
                        most.map(|(effect, _)| covers(effect, truth)),
                        Some(covers(&effects[0], truth)),
                    ]
                });
                let effect = percent((effect * 1000.0) as u32, 1000);
                row(format!("{} | {blocks} | {effect} | {cells}", (variants - 1) * steps));
            }
        }
    }
}

pub(crate) const OPEN: &str = "load levels | n | undecided at all of them, around zero | of these: all \
    true effects lie between the outermost ends | each lies in its own interval";

/// "Undecided at all 4 load levels: b may be up to 2 % slower or 4 % faster": true effects of ± 1 % in turn.
pub(crate) fn open(row: Rows<'_>) {
    for steps in [1, 2, 4, 8] {
        for blocks in BLOCKS {
            let place = (steps * 100 + blocks) as u64;
            let mut random = Seed(73).derive("open", place).stream();
            let truth = |step: usize| if step.is_multiple_of(2) { 0.01 } else { -0.01 };
            let cells = shares_of(STUDIES, || {
                let mut table = ordinary((2, steps, blocks), &mut random);
                for (step, values) in table[1].iter_mut().enumerate() {
                    values.iter_mut().for_each(|value| *value += truth(step));
                }
                let effects = effects(&table, true);
                let calls = calls_shifted(&effects, steps, 0.0);
                let bounds = effects.iter().map(|effect| effect.bounds(RULE.confidence));
                let bounds: Vec<(f64, f64)> = bounds.collect();
                let is_open = calls.iter().all(|(call, _)| *call == Call::Undecided)
                    && bounds.iter().all(|(low, high)| *low < 0.0 && *high > 0.0);
                let low = bounds.iter().map(|(low, _)| *low).fold(f64::INFINITY, f64::min);
                let high = bounds.iter().map(|(_, high)| *high).fold(f64::NEG_INFINITY, f64::max);
                let is_within = || (0..steps).all(|s| low <= truth(s) && truth(s) <= high);
                let is_each = || (0..steps).all(|step| covers(&effects[step], truth(step)));
                [Some(is_open), is_open.then(is_within), is_open.then(is_each)]
            });
            row(format!("{steps} | {blocks} | {cells}"));
        }
    }
}

pub(crate) const GROUPS: &str =
    "n | no effect: a group differs | every effect +5 %: a group of a variant found";

/// Throughput by concurrency: the first half of the load levels is low, the other high.
pub(crate) fn groups(row: Rows<'_>) {
    for blocks in BLOCKS {
        let mut random = Seed(79).derive("groups", blocks as u64).stream();
        let mut found = |effect: f64| {
            let mut table = ordinary((VARIANTS, STEPS, blocks), &mut random);
            table[1..].iter_mut().for_each(|levels| raise(levels, effect));
            let (low, high) = (over(&table, 0..STEPS / 2), over(&table, STEPS / 2..STEPS));
            let both = low.into_iter().zip(high).map(|(low, high)| [low, high].concat());
            effects(&both.collect::<Table>(), true)
        };
        let cells = shares(STUDIES, || {
            let calls = calls_shifted(&found(1.05_f64.ln()), 2, 0.0);
            [has_difference(&found(0.0)), calls[0].0 == Call::Higher]
        });
        row(format!("{blocks} | {cells}"));
    }
}
