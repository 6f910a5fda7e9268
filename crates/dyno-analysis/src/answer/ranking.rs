//! The best mean, and how the others stand against it: within blocks, with the error of the verdicts, as
//! overlapping intervals say little.

use dyno_units::Seed;

use crate::cells::{Measured, by_block, estimate_metric};
use crate::compare::{
    CommonError, Levels, Samples, common_error, decide_drafts, draft, resolution, verdict,
};
use crate::join::Joined;
use crate::searches;
use crate::statistics::{Effect, Rule, decide_at, geometric_mean};
use crate::{Claim, Direction, Estimate, MetricId, Verdict, metrics};

pub(crate) struct Ranker<'a> {
    pub(crate) joined: &'a Joined<'a>,
    pub(crate) measured: &'a [Measured],
    pub(crate) levels: &'a Levels<'a>,
}

pub(super) struct Ranked {
    pub(super) variant: usize,
    /// Geometric, over the steps, by trial.
    pub(super) mean: Estimate,
    pub(super) standing: Standing,
    /// The first against it.
    pub(super) claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    First,
    /// Within the threshold.
    Same,
    /// Not enough evidence that it is behind.
    Tied,
    /// One repetition shows no spread: unknown.
    Single,
    Behind,
}

/// Of one variant at its own step, for "is cheapest" and the like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) variant: usize,
    pub(crate) step: usize,
    /// Logarithm of a factor for the values: that of 1 / price where work for money is compared.
    pub(crate) log_factor: f64,
}

impl Standing {
    /// Of what the first is compared with.
    pub(super) fn of_all(claims: &[Claim]) -> Standing {
        let is_ahead = |claim: &Claim| claim.verdict == Verdict::Better;
        let is_single = |claim: &Claim| claim.relative.n < 2;
        match () {
            () if claims.iter().all(is_ahead) => Standing::Behind,
            () if claims.iter().all(|claim| is_ahead(claim) || is_single(claim)) => {
                Standing::Single
            }
            () => Standing::Tied,
        }
    }
}

type ByBlock<'a> = &'a [(u32, f64)];

impl Ranker<'_> {
    /// Those with a value at all of these steps in some trial, the best mean first.
    pub(super) fn rank(&self, metric: MetricId, steps: &[usize]) -> Vec<Ranked> {
        let all: Vec<usize> = (0..self.joined.variants.len()).collect();
        self.rank_of(&all, (metric, steps), 1)
    }

    /// At one of `n_places`, any of which may have a best (Bonferroni).
    pub(super) fn rank_of(
        &self,
        variants: &[usize],
        (metric, steps): (MetricId, &[usize]),
        n_places: usize,
    ) -> Vec<Ranked> {
        let Some(&first) = steps.first() else { return Vec::new() };
        let of = |variant: usize| {
            let by_block = self.means(metric, variant, steps);
            by_block.first()?;
            let values: Vec<f64> = by_block.iter().map(|(_, value)| *value).collect();
            let typical = geometric_mean(&values).unwrap_or(0.0);
            // A mean over steps is finer than this: on the safe side.
            let resolution = resolution(metric, &self.joined.steps[first], typical);
            let confidence = self.levels.of_cells(variant).confidence;
            let metric = self.joined.metrics.get(metric);
            let mean = estimate_metric(metric, values, confidence, resolution);
            Some((Ranked { variant, mean, standing: Standing::First, claim: None }, by_block))
        };
        let mut all: Vec<_> = variants.iter().copied().filter_map(of).collect();
        all.retain(|(ranked, _)| ranked.mean.value > 0.0);
        all.sort_by(|(a, _), (b, _)| {
            let order = a.mean.value.total_cmp(&b.mean.value);
            if self.joined.metrics.get(metric).better == Direction::Higher {
                order.reverse()
            } else {
                order
            }
        });
        let Some((best, values)) = all.first() else { return Vec::new() };
        let errors = self.errors(metric, steps);
        let against = |(ranked, theirs): &(Ranked, Vec<(u32, f64)>)| {
            if ranked.variant == best.variant {
                return (Standing::First, None);
            }
            let pair = (best.variant, ranked.variant);
            let claim =
                self.claim_of_pair((pair, n_places), (values, theirs), (metric, steps), &errors);
            let standing = match &claim {
                Some(Claim { verdict: Verdict::Better, .. }) => Standing::Behind,
                Some(Claim { verdict: Verdict::NoDifference, .. }) => Standing::Same,
                Some(claim) if claim.relative.n < 2 => Standing::Single,
                _ => Standing::Tied,
            };
            (standing, claim)
        };
        let against: Vec<(Standing, Option<Claim>)> = all.iter().map(against).collect();
        let ranked = all.into_iter().zip(against);
        ranked
            .map(|((ranked, _), (standing, claim))| Ranked { standing, claim, ..ranked })
            .collect()
    }

    /// In percent of the other, with the verdict of a single test; `None` without repetitions.
    pub(super) fn against(
        &self,
        pair: (usize, usize),
        metric: MetricId,
        steps: &[usize],
    ) -> Option<Claim> {
        self.against_one_of(1, pair, metric, steps)
    }

    /// For a pair chosen among `n_pairs` by means, whichever it is (Bonferroni).
    pub(super) fn against_one_of(
        &self,
        n_pairs: usize,
        (ours, theirs): (usize, usize),
        metric: MetricId,
        steps: &[usize],
    ) -> Option<Claim> {
        let values = |variant: usize| self.means(metric, variant, steps);
        let errors = self.errors(metric, steps);
        let both = (&values(ours)[..], &values(theirs)[..]);
        self.claim_of_pair(((ours, theirs), n_pairs), both, (metric, steps), &errors)
    }

    /// The common error and the place in it: of comparisons at one step, of means at several.
    fn errors(&self, metric: MetricId, steps: &[usize]) -> (Option<CommonError>, usize) {
        match steps {
            [only] => (common_error(self.joined, self.measured, (metric, self.levels)), *only),
            several => {
                let means = |variant: usize, _: usize| self.means(metric, variant, several);
                (CommonError::new(self.joined, self.levels, 1, means), 0)
            }
        }
    }

    /// Geometric means over all steps of a trial, by block; zero if one is zero.
    pub(super) fn means(
        &self,
        metric: MetricId,
        variant: usize,
        steps: &[usize],
    ) -> Vec<(u32, f64)> {
        let all = by_block(self.measured, variant, steps, metric).into_iter();
        all.map(|(block, values)| (block, geometric_mean(&values).unwrap_or(0.0))).collect()
    }

    /// At the stricter level of the two, divided by `n_pairs`, with the common error of
    /// comparisons. "The best is ahead of *every* other" needs no correction for the number of
    /// tests, as each has to say so (an intersection-union test: Berger 1982).
    fn claim_of_pair(
        &self,
        ((one, other), n_pairs): ((usize, usize), usize),
        (ours, theirs): (ByBlock<'_>, ByBlock<'_>),
        (metric, steps): (MetricId, &[usize]),
        (errors, at): &(Option<CommonError>, usize),
    ) -> Option<Claim> {
        let samples = Samples::new(ours, theirs, self.joined.interleaved);
        let level = self.strict_level((one, other)) / n_pairs.max(1) as f64;
        let rule = Rule { confidence: 1.0 - level, ..*self.levels.rule };
        let place = (self.joined.metrics.get(metric), &self.joined.steps[*steps.first()?]);
        let mut draft = draft(&samples, place, &rule, Seed(1))?;
        let error = errors.as_ref().and_then(|errors| errors.of((one, other), *at));
        if let Some(error) = error.filter(|_| draft.comparison.paired) {
            draft.pool(error, &rule);
        }
        let decided = decide_drafts(vec![draft], |_| level, self.levels.rule).pop()?;
        let claim = Claim::from(&decided);
        let best_of = Some(n_pairs).filter(|n| *n > 1);
        Some(Claim { variant: one, other, steps: steps.to_vec(), best_of, ..claim })
    }

    /// The stricter level of the two.
    pub(super) fn strict_level(&self, (one, other): (usize, usize)) -> f64 {
        let level = |variant: usize| 1.0 - self.levels.of(variant).confidence;
        level(one).min(level(other))
    }

    /// `first`, which is at the best of `n_choices` steps, against each of the others at theirs, at the level
    /// divided by `n_choices` (Bonferroni). `None` if one of them did nothing.
    pub(super) fn claims_across(
        &self,
        metric: MetricId,
        (first, n_choices): (At, usize),
        others: &[At],
    ) -> Option<Vec<Claim>> {
        let against = |other: &At| self.claim_across(metric, (first, *other), n_choices);
        others.iter().map(against).collect()
    }

    /// The others are behind if each is; that all have to be needs no correction.
    pub(crate) fn stand_against(
        &self,
        metric: MetricId,
        first: (At, usize),
        others: &[At],
    ) -> Standing {
        let claims = self.claims_across(metric, first, others);
        claims.map_or(Standing::Tied, |claims| Standing::of_all(&claims))
    }

    fn claim_across(
        &self,
        metric: MetricId,
        (ours, theirs): (At, At),
        n_choices: usize,
    ) -> Option<Claim> {
        let values = |at: At| -> Vec<(u32, f64)> {
            let means = self.means(metric, at.variant, &[at.step]).into_iter();
            means.map(|(block, value)| (block, value * at.log_factor.exp())).collect()
        };
        let samples = Samples::new(&values(ours), &values(theirs), self.joined.interleaved);
        let level = self.strict_level((ours.variant, theirs.variant)) / n_choices.max(1) as f64;
        let effect = self.log_ratio(metric, ours, theirs);
        let decision = decide_at(&[(effect, level)], self.levels.rule).pop()?;
        let is_more_better = self.joined.metrics.get(metric).better == Direction::Higher;
        Some(Claim {
            variant: ours.variant,
            other: theirs.variant,
            metric,
            steps: vec![ours.step],
            other_steps: vec![theirs.step],
            best_of: Some(n_choices).filter(|n| *n > 1),
            relative: samples.relative(effect, 1.0 - level)?,
            repetitions_needed: decision.repetitions_needed,
            verdict: verdict(is_more_better, decision),
        })
    }

    /// Of values by block that are no metric, such as speed-ups: more is better. The first are the best of
    /// `n_choices`.
    pub(super) fn claim_of_values(
        &self,
        (pair, n_choices): ((usize, usize), usize),
        (ours, theirs): (ByBlock<'_>, ByBlock<'_>),
        step: usize,
    ) -> Option<Claim> {
        let exact = (metrics::THROUGHPUT, &[step][..]);
        self.claim_of_pair((pair, n_choices), (ours, theirs), exact, &(None, 0))
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
}
