//! Slopes and changes of level, against noise with memory. A slope is tested by its t value, a
//! change by the largest excursion of the cumulative sum (CUSUM), both with the long-run variance
//! of AR(1) noise. Levels are found by binary segmentation (Scott and Knott 1974; Vostrikova 1981).

use super::noise::{kolmogorov_p, long_run_variance, memory};
use super::{ALPHA, Change};
use crate::statistics::{mean, t_two_sided_p};

const LEVEL_LEAST: usize = 5;
const CHANGES_MOST: usize = 8;

pub(super) struct Segments {
    /// Of a steady slope, from the first to the last second.
    pub(super) trend: Option<f64>,
    /// In the order of time.
    pub(super) changes: Vec<Change>,
    pub(super) residuals: Vec<f64>,
}

/// Prefers a slope or changes of level by the residuals.
pub(super) fn segments(values: &[f64]) -> Segments {
    let line = line(values);
    let sloped = residuals_of(values, |i| line.at(i));
    let is_line = is_slope(&line, &sloped);
    let split = best_split(values);
    let squares = |residuals: &[f64]| residuals.iter().map(|r| r * r).sum::<f64>();
    let is_better_than_split =
        split.is_none_or(|at| squares(&sloped) <= squares(&around_split(values, at)));
    if is_line && is_better_than_split {
        let cuts = cuts(&sloped);
        let levels = levels(&sloped, &cuts);
        let changes = changes(&levels, |i| line.at(i));
        let residuals = residuals_of(&sloped, |i| level_at(&levels, i));
        return Segments {
            trend: Some(line.slope * (values.len() - 1) as f64),
            changes,
            residuals,
        };
    }
    let levels = levels(values, &cuts(values));
    let residuals = residuals_of(values, |i| level_at(&levels, i));
    Segments { trend: None, changes: changes(&levels, |_| 0.0), residuals }
}

struct Line {
    start: f64,
    slope: f64,
    /// Σ (x − x̄)².
    spread: f64,
}

impl Line {
    fn at(&self, i: usize) -> f64 {
        self.start + self.slope * i as f64
    }
}

/// By least squares.
fn line(values: &[f64]) -> Line {
    let middle = (values.len() - 1) as f64 / 2.0;
    let center = mean(values);
    let (mut products, mut spread) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let x = i as f64 - middle;
        products += x * (value - center);
        spread += x * x;
    }
    let slope = products / spread;
    Line { start: center - slope * middle, slope, spread }
}

fn is_slope(line: &Line, residuals: &[f64]) -> bool {
    let variance = long_run_variance(residuals, 2) / line.spread;
    if variance <= 0.0 {
        return line.slope != 0.0;
    }
    // Values with memory count for fewer.
    let memory = memory(residuals, 2);
    let worth = residuals.len() as f64 * (1.0 - memory) / (1.0 + memory);
    t_two_sided_p(line.slope / variance.sqrt(), (worth - 2.0).max(2.0)) < ALPHA
}

fn residuals_of(values: &[f64], model: impl Fn(usize) -> f64) -> Vec<f64> {
    values.iter().enumerate().map(|(i, value)| value - model(i)).collect()
}

/// First second of the second level, where the cumulative sum is furthest from its line.
fn best_split(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < 2 * LEVEL_LEAST {
        return None;
    }
    let center = mean(values);
    let mut sum = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for (i, value) in values.iter().enumerate().take(n - LEVEL_LEAST) {
        sum += value - center;
        let at = i + 1;
        // Weighted as in a test of two means, to find changes near the ends.
        let weight = (at as f64 * (n - at) as f64).sqrt();
        let distance = sum.abs() / weight;
        if at >= LEVEL_LEAST && best.is_none_or(|(most, _)| distance > most) {
            best = Some((distance, at));
        }
    }
    best.map(|(_, at)| at)
}

fn around_split(values: &[f64], at: usize) -> Vec<f64> {
    let (first, second) = (mean(&values[..at]), mean(&values[at..]));
    residuals_of(values, |i| if i < at { first } else { second })
}

/// The cumulative sum goes further than noise around two levels.
fn is_change(values: &[f64], at: usize) -> bool {
    // Two levels, and a place chosen to fit.
    let variance = long_run_variance(&around_split(values, at), 3);
    let center = mean(values);
    let (mut sum, mut furthest) = (0.0_f64, 0.0_f64);
    for value in values {
        sum += value - center;
        furthest = furthest.max(sum.abs());
    }
    if variance <= 0.0 {
        return furthest > 1e-9 * center.abs();
    }
    kolmogorov_p(furthest / (variance * values.len() as f64).sqrt()) < ALPHA
}

/// Beginnings of levels, without the first.
fn cuts(values: &[f64]) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut open = vec![(0, values.len())];
    while let Some((from, to)) = open.pop() {
        let part = &values[from..to];
        let Some(at) = best_split(part).filter(|at| is_change(part, *at)) else { continue };
        cuts.push(from + at);
        if cuts.len() >= CHANGES_MOST {
            break;
        }
        open.push((from, from + at));
        open.push((from + at, to));
    }
    cuts.sort_unstable();
    cuts
}

/// First second and mean.
fn levels(values: &[f64], cuts: &[usize]) -> Vec<(usize, f64)> {
    let mut levels = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([values.len()]) {
        levels.push((from, mean(&values[from..to])));
        from = to;
    }
    levels
}

fn level_at(levels: &[(usize, f64)], i: usize) -> f64 {
    levels.iter().rev().find(|(from, _)| *from <= i).map_or(0.0, |(_, level)| *level)
}

fn changes(levels: &[(usize, f64)], base: impl Fn(usize) -> f64) -> Vec<Change> {
    levels
        .windows(2)
        .map(|pair| Change {
            at_s: pair[1].0 as f64,
            before: pair[0].1 + base(pair[1].0),
            after: pair[1].1 + base(pair[1].0),
        })
        .collect()
}
