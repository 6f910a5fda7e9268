//! Order and drift, of all variants together and of their differences, and open verdicts.

use std::collections::{BTreeMap, BTreeSet};

use super::found::{At, Evidence, Found};
use crate::cells::Measured;
use crate::metrics;
use crate::statistics::{mean, t_two_sided_p};
use crate::words::{count, percent};

/// To distinguish a course from chance.
const BLOCKS_LEAST: usize = 5;
const DRIFT_ALPHA: f64 = 0.01;
/// Of false alarms, for all comparisons of a study together.
const ALPHA: f64 = 0.01;
const NAMED_MOST: usize = 3;

pub(super) fn sequential_order(seen: &Evidence<'_>) -> Option<Found> {
    // Imported results have their own caveat, as their order is unknown.
    let is_imported = seen.places.iter().all(|place| place.summary.imported.is_some());
    if seen.joined.interleaved || is_imported && !seen.places.is_empty() {
        return None;
    }
    Found::of(seen.findings.comparisons.iter().flat_map(|c| [c.variant, c.baseline]))
}

/// Rise or fall of throughput from block to block, all variants and steps together: the slope of
/// blocks' mean distance (of logarithms) from the cells' means, by its t value.
pub(super) fn drift(seen: &Evidence<'_>) -> Option<Found> {
    let log = |m: &Measured| m.value(metrics::THROUGHPUT).filter(|v| *v > 0.0).map(f64::ln);
    let mut cells: BTreeMap<At, Vec<f64>> = BTreeMap::new();
    for one in seen.measured {
        cells.entry((one.variant, one.step)).or_default().extend(log(one));
    }
    cells.retain(|_, logs| logs.len() >= BLOCKS_LEAST);
    let means: BTreeMap<At, f64> = cells.iter().map(|(at, logs)| (*at, mean(logs))).collect();
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for one in seen.measured {
        if let (Some(mean), Some(value)) = (means.get(&(one.variant, one.step)), log(one)) {
            blocks.entry(one.block).or_default().push(value - mean);
        }
    }
    let points: Vec<(f64, f64)> =
        blocks.iter().map(|(block, off)| (f64::from(*block), mean(off))).collect();
    let (slope, p) = slope_and_p(&points)?;
    let change = slope * (points.last()?.0 - points.first()?.0);
    let words = format!(
        "{} from the first to the last of {} ({})",
        percent(change.exp_m1() * 100.0),
        count(points.len() as u64, "block"),
        crate::numbers::p_value(p),
    );
    (p <= DRIFT_ALPHA && change.abs() >= matters(seen)).then(|| Found::new(words, []))
}

/// The smallest difference of logarithms that does.
fn matters(seen: &Evidence<'_>) -> f64 {
    seen.findings.threshold.max(0.01).ln_1p()
}

/// By least squares and Student's distribution, two-sided.
fn slope_and_p(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < BLOCKS_LEAST {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = (
        points.iter().map(|(x, _)| x).sum::<f64>() / n,
        points.iter().map(|(_, y)| y).sum::<f64>() / n,
    );
    let squares: f64 = points.iter().map(|(a, _)| (a - x).powi(2)).sum();
    let slope = points.iter().map(|(a, b)| (a - x) * (b - y)).sum::<f64>() / squares;
    let left: f64 = points.iter().map(|(a, b)| (b - y - slope * (a - x)).powi(2)).sum();
    let error = (left / (n - 2.0) / squares).sqrt();
    let p = if error > 0.0 { t_two_sided_p(slope / error, n - 2.0) } else { 0.0 };
    (slope != 0.0).then_some((slope, p))
}

pub(super) fn open_verdicts(seen: &Evidence<'_>) -> Option<Found> {
    let stopping = seen.findings.stopping.as_ref()?;
    let is_open = |&idx: &usize| {
        !stopping.variants[idx].settled && seen.findings.variants[idx].baseline.is_some()
    };
    let mut found = Found::of((0..stopping.variants.len()).filter(is_open))?;
    let are = if found.variants.len() == 1 { "is" } else { "are" };
    let (names, most) = (seen.names(found.variants.iter().copied()), stopping.repetitions_max);
    found.words = vec![format!("{names} {are} undecided after at most {most}")];
    Some(found)
}

/// A main metric's differences of logarithms, with block and distance from the baseline in trials.
struct Differences {
    at: At,
    baseline: usize,
    /// Block, trials later, difference.
    points: Vec<(f64, f64, f64)>,
}

fn differences(seen: &Evidence<'_>) -> Vec<Differences> {
    let numbers: BTreeMap<(usize, u32), u32> =
        seen.joined.trials.iter().map(|t| ((t.variant, t.block), t.number)).collect();
    let mut all = Vec::new();
    for (variant, record) in seen.joined.variants.iter().enumerate() {
        let Some(baseline) = record.baseline else { continue };
        for (step, &metric) in seen.joined.main.iter().enumerate() {
            let log = |variant: usize, block: u32| {
                let is_it = |m: &&Measured| (m.variant, m.step, m.block) == (variant, step, block);
                let value = seen.measured.iter().find(is_it)?.value(metric)?;
                (value > 0.0).then(|| value.ln())
            };
            let blocks: BTreeSet<u32> =
                seen.measured.iter().filter(|m| m.variant == variant).map(|m| m.block).collect();
            let point = |&block: &u32| {
                let number = |variant: usize| Some(f64::from(*numbers.get(&(variant, block))?));
                let later = number(variant)? - number(baseline)?;
                Some((f64::from(block), later, log(variant, block)? - log(baseline, block)?))
            };
            let points: Vec<(f64, f64, f64)> = blocks.iter().filter_map(point).collect();
            all.push(Differences { at: (variant, step), baseline, points });
        }
    }
    all
}

/// They change from block to block, or with the distance from the baseline in the block.
pub(super) fn drifting_differences(seen: &Evidence<'_>) -> Option<Found> {
    if !seen.joined.interleaved || seen.joined.n_first > 0 {
        return None;
    }
    let all = differences(seen);
    let matters = matters(seen);
    let level = ALPHA / all.len().max(1) as f64;
    let mut found = Found::default();
    for Differences { at, baseline, points } in &all {
        let by_block: Vec<(f64, f64)> = points.iter().map(|(b, _, d)| (*b, *d)).collect();
        let Some((slope, p)) = slope_and_p(&by_block) else { continue };
        let change = slope * (by_block[by_block.len() - 1].0 - by_block[0].0);
        if p <= level && change.abs() >= matters {
            let words = format!(
                "{} vs. {}: {} from the first to the last of {}",
                seen.place(*at),
                seen.variant(*baseline),
                percent(change.exp_m1() * 100.0),
                count(by_block.len() as u64, "block"),
            );
            found.add(words, *at);
        }
    }
    found.words.extend(within_blocks(&all, matters).map(|(per_trial, n)| {
        format!(
            "within blocks, results changed by {} from each trial to the next (over {})",
            percent(per_trial.exp_m1() * 100.0),
            count(n, "block"),
        )
    }));
    found.joined("; ", NAMED_MOST)
}

/// Change per trial within blocks, and the number of blocks, if significant and relevant: the slope
/// of the differences (less their means) over the variant's distance from the baseline. Steps of a
/// trial share its noise, and variants of a block share the baseline, so their means count once.
fn within_blocks(all: &[Differences], matters: f64) -> Option<(f64, u64)> {
    // Sums of products and squares over the comparisons of a block.
    let mut blocks: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for one in all {
        let n = one.points.len() as f64;
        let (later, off) = (
            one.points.iter().map(|(_, later, _)| later).sum::<f64>() / n,
            one.points.iter().map(|(.., d)| d).sum::<f64>() / n,
        );
        for (block, x, y) in &one.points {
            let sums = blocks.entry(*block as u64).or_default();
            sums.0 += (x - later) * (y - off);
            sums.1 += (x - later).powi(2);
        }
    }
    let n = blocks.len();
    let squares: f64 = blocks.values().map(|(_, xx)| xx).sum();
    if n < BLOCKS_LEAST || squares <= 0.0 {
        return None;
    }
    let slope = blocks.values().map(|(xy, _)| xy).sum::<f64>() / squares;
    // Blocks are independent: the error is that of their residuals.
    let left: f64 = blocks.values().map(|(xy, xx)| (xy - slope * xx).powi(2)).sum();
    let error = (left * n as f64 / (n as f64 - 1.0)).sqrt() / squares;
    let p = if error > 0.0 { t_two_sided_p(slope / error, n as f64 - 2.0) } else { 0.0 };
    (p <= ALPHA && slope.abs() >= 0.1 * matters).then_some((slope, n as u64))
}

#[cfg(test)]
mod tests;
