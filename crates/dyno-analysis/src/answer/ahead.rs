//! Whether one variant is ahead of others, each at its own step, for "is cheapest" and the like:
//! within blocks, with the error of the verdicts, as overlapping intervals say little.

use super::Ranker;
use super::ranking::Standing;
use crate::compare::{Samples, common_error};
use crate::searches;
use crate::statistics::{Call, Effect, calls_at, geometric_mean};
use crate::{MetricId, metrics};

#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) variant: usize,
    pub(crate) step: usize,
    /// Logarithm of a factor for the values: that of 1 / price where work for money is compared.
    pub(crate) log_factor: f64,
}

impl Ranker<'_> {
    /// `first` is at the best of `n_choices` steps, the others at any of theirs. They are behind if
    /// each is, at the level divided by `n_choices` (Bonferroni); "all" needs no correction.
    pub(crate) fn stand_against(
        &self,
        metric: MetricId,
        (first, n_choices): (At, usize),
        others: &[At],
    ) -> Standing {
        let mut found = Standing::Behind;
        for other in others {
            match self.log_ratio(metric, first, *other) {
                Some(effect) => {
                    let pair = (first.variant, other.variant);
                    if !self.is_ahead(effect, pair, n_choices) {
                        return Standing::Tied;
                    }
                }
                None if self.n_common(metric, first, *other) < 2 => found = Standing::Single,
                None => return Standing::Tied,
            }
        }
        found
    }

    /// For a pair chosen among `n_choices`.
    pub(super) fn is_ahead(&self, effect: Effect, pair: (usize, usize), n_choices: usize) -> bool {
        let level = self.strict_level(pair) / n_choices.max(1) as f64;
        let calls = calls_at(&[(Some(effect), level)], self.levels.rule);
        matches!(calls.as_slice(), [(Call::Higher, _)])
    }

    /// Log ratio of two variants; `None` with one repetition, or with a zero. Has the common error
    /// of comparisons; across two steps the largest of both steps' errors and that of its own
    /// differences, as a block may change one step alone.
    pub(super) fn log_ratio(&self, metric: MetricId, ours: At, theirs: At) -> Option<Effect> {
        let values = |at: At| self.means(metric, at.variant, &[at.step]);
        let (our_values, their_values) = (values(ours), values(theirs));
        let samples = Samples::new(&our_values, &their_values, self.joined.interleaved);
        let own = samples.log_effect(self.rounding(ours, theirs))?;
        let errors = common_error(self.joined, self.measured, (metric, self.levels));
        let pair = (ours.variant, theirs.variant);
        let of_step = |step: usize| errors.as_ref()?.of(pair, step);
        let error = of_step(ours.step).zip(of_step(theirs.step)).map(|(mut error, other)| {
            error.variance = error.variance.max(other.variance);
            if ours.step != theirs.step {
                error.variance = error.variance.max(own.spread());
            }
            error
        });
        let effect =
            error.filter(|_| samples.is_paired()).map_or(own, |error| own.with_error(error));
        Some(Effect { value: effect.value + ours.log_factor - theirs.log_factor, ..effect })
    }

    fn rounding(&self, ours: At, theirs: At) -> f64 {
        let of = |at: At| {
            let values = self.means(metrics::THROUGHPUT, at.variant, &[at.step]);
            let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
            let typical = geometric_mean(&values).unwrap_or(1.0);
            searches::resolution(&self.joined.steps[at.step], typical)
        };
        of(ours).max(of(theirs))
    }

    fn n_common(&self, metric: MetricId, ours: At, theirs: At) -> usize {
        let n = |at: At| self.means(metric, at.variant, &[at.step]).len();
        n(ours).min(n(theirs))
    }
}
