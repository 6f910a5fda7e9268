//! Which variant has the best mean, and which others are told from it.

use dyno_units::Seed;

use crate::cells::{Measured, estimate_resolved};
use crate::compare::{Levels, Samples, decide_family, draft, resolution};
use crate::join::Joined;
use crate::statistics::geometric_mean;
use crate::{Estimate, Metric, Verdict};

/// What is needed to rank variants.
pub(crate) struct Ranker<'a> {
    pub(crate) joined: &'a Joined<'a>,
    pub(crate) measured: &'a [Measured],
    pub(crate) levels: &'a Levels<'a>,
}

/// A variant with its mean over some steps.
pub(super) struct Ranked {
    pub(super) variant: usize,
    /// The geometric mean over the steps, trial by trial.
    pub(super) mean: Estimate,
    /// Whether it is told to be behind the first; the first itself is not.
    pub(super) is_behind: bool,
}

impl Ranker<'_> {
    /// Variants with a value at all of these steps in some trial, the best mean first.
    pub(super) fn rank(&self, metric: Metric, steps: &[usize]) -> Vec<Ranked> {
        let Some(&first) = steps.first() else { return Vec::new() };
        let of = |variant: usize| {
            let by_block = self.means(metric, variant, steps);
            let values: Vec<f64> = by_block.iter().map(|(_, value)| *value).collect();
            let mean = self.estimate(values, metric, (variant, first))?;
            Some((Ranked { variant, mean, is_behind: false }, by_block))
        };
        let mut all: Vec<_> = (0..self.joined.variants.len()).filter_map(of).collect();
        all.retain(|(ranked, _)| ranked.mean.value > 0.0);
        all.sort_by(|(a, _), (b, _)| {
            let order = a.mean.value.total_cmp(&b.mean.value);
            if metric.more_is_better() { order.reverse() } else { order }
        });
        let Some((best, values)) = all.first() else { return Vec::new() };
        let is_behind = |(ranked, theirs): &(Ranked, Vec<(u32, f64)>)| {
            ranked.variant != best.variant
                && self.is_ahead((best.variant, values), (ranked.variant, theirs), (metric, first))
        };
        let behind: Vec<bool> = all.iter().map(is_behind).collect();
        let ranked = all.into_iter().zip(behind);
        ranked.map(|((ranked, _), is_behind)| Ranked { is_behind, ..ranked }).collect()
    }

    /// The geometric mean over these steps of each trial that has a value at all of them, by block;
    /// zero where one of them is.
    fn means(&self, metric: Metric, variant: usize, steps: &[usize]) -> Vec<(u32, f64)> {
        let own: Vec<&Measured> = self.measured.iter().filter(|m| m.variant == variant).collect();
        let mut blocks: Vec<u32> = own.iter().map(|m| m.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let of = |block: u32| {
            let value = |step: &usize| {
                own.iter().find(|m| (m.step, m.block) == (*step, block))?.value(metric)
            };
            let values: Option<Vec<f64>> = steps.iter().map(value).collect();
            Some((block, geometric_mean(&values?).unwrap_or(0.0)))
        };
        blocks.into_iter().filter_map(of).collect()
    }

    fn estimate(
        &self,
        values: Vec<f64>,
        metric: Metric,
        (variant, step): (usize, usize),
    ) -> Option<Estimate> {
        if values.is_empty() {
            return None;
        }
        let typical = geometric_mean(&values).unwrap_or(0.0);
        // A mean over several steps is told finer than that of one: this is on the safe side.
        let resolution = resolution(metric, &self.joined.steps[step], typical);
        let confidence = self.levels.of_cells(variant).confidence;
        Some(estimate_resolved(values, metric.unit(), confidence, resolution))
    }

    /// Whether the first is better by the rule of comparisons, at the level of the two that allows
    /// less. That the best is ahead of *every* other one is said where each of these tests says so:
    /// such a claim errs no more often than a single test, and needs no correction for their number
    /// (an intersection-union test: Berger 1982).
    fn is_ahead(
        &self,
        (best, ours): (usize, &[(u32, f64)]),
        (other, theirs): (usize, &[(u32, f64)]),
        (metric, step): (Metric, usize),
    ) -> bool {
        let samples = Samples::new(ours, theirs, self.joined.interleaved);
        let confidence = |variant: usize| self.levels.of(variant).confidence;
        let strict = if confidence(other) > confidence(best) { other } else { best };
        let place = (metric, &self.joined.steps[step]);
        let Some(mut one) = draft(&samples, place, &self.levels.of(strict), Seed(1)) else {
            return false;
        };
        one.comparison.variant = strict;
        let decided = decide_family(vec![one], self.levels);
        decided.iter().all(|comparison| comparison.verdict == Verdict::Better)
    }
}
