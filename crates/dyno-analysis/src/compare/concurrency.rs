//! Throughput over all loads of low, and of high, concurrency.

use dyno_units::Seed;

use crate::cells::{Measured, by_block};
use crate::join::Joined;
use crate::statistics::geometric_mean;
use crate::{Comparison, ConcurrencyGroup, GroupComparison, StepFacts, metrics};

use super::{CommonError, Levels, Samples, decide_family, draft, pool};

const GROUPS: [ConcurrencyGroup; 2] = [ConcurrencyGroup::Low, ConcurrencyGroup::High];

/// Geometric means of the ratios over all closed steps of low, and of high, concurrency (Fleming
/// and Wallace 1986), by trial, if there are both kinds; on unlike machines, low or high on all.
/// The groups are their own family with a common error; a group of one step repeats its comparison.
pub(crate) fn concurrency(
    joined: &Joined<'_>,
    steps: &[StepFacts],
    (measured, comparisons): (&[Measured], &[Comparison]),
    levels: &Levels<'_>,
) -> Vec<GroupComparison> {
    let groups = Groups { joined, steps, measured };
    let (mut drafts, mut places) = (Vec::new(), Vec::new());
    for (variant, record) in joined.variants.iter().enumerate() {
        let Some(baseline) = record.baseline else { continue };
        let pair = (variant, baseline);
        if GROUPS.iter().any(|group| groups.steps_of(*group, pair).is_empty()) {
            continue;
        }
        for (place, group) in GROUPS.into_iter().enumerate() {
            let steps = groups.steps_of(group, pair);
            let means = |variant| groups.means(variant, &steps);
            let samples = Samples::new(&means(variant), &means(baseline), joined.interleaved);
            if samples.n() == 0 {
                continue;
            }
            let throughput = joined.metrics.get(metrics::THROUGHPUT);
            let at = (throughput, &joined.steps[steps[0]]);
            if let Some(one) = draft(&samples, at, &levels.of(variant), Seed(1)) {
                drafts.push(one.at((variant, baseline, 0)));
                places.push(place);
            }
        }
    }
    let errors = CommonError::new(joined, levels, GROUPS.len(), |variant, place| {
        let steps = groups.steps_of(GROUPS[place], (variant, variant));
        groups.means(variant, &steps)
    });
    pool(&mut drafts, &places, errors.as_ref(), levels);
    let decided = decide_family(drafts, levels).into_iter().zip(places);
    let compared = |(c, place): (Comparison, usize)| {
        let group = GROUPS[place];
        let pair = (c.variant, c.baseline);
        let same = match groups.steps_of(group, pair)[..] {
            [only] => comparisons.iter().find(|of_step| {
                let place = (of_step.variant, of_step.baseline, of_step.step, of_step.metric);
                place == (c.variant, c.baseline, only, metrics::THROUGHPUT)
            }),
            _ => None,
        };
        let Comparison { relative, verdict, .. } = same.cloned().unwrap_or(c);
        GroupComparison { variant: pair.0, baseline: pair.1, group, relative, verdict }
    };
    decided.map(compared).collect()
}

struct Groups<'a> {
    joined: &'a Joined<'a>,
    steps: &'a [StepFacts],
    measured: &'a [Measured],
}

impl Groups<'_> {
    fn steps_of(&self, group: ConcurrencyGroup, (one, other): (usize, usize)) -> Vec<usize> {
        let (ours, theirs) = (self.joined.cpus[one], self.joined.cpus[other]);
        let is_it = |step: &usize| {
            let step = &self.steps[*step];
            let is_closed = step.rate.is_none() && step.search.is_none() && step.own.is_none();
            is_closed
                && match group {
                    ConcurrencyGroup::Low => step.clients <= u64::from(ours.min(theirs)),
                    ConcurrencyGroup::High => step.clients > u64::from(ours.max(theirs)),
                }
        };
        (0..self.steps.len()).filter(is_it).collect()
    }

    /// A trial's geometric mean of throughput over the steps, by block, if it always committed.
    fn means(&self, variant: usize, steps: &[usize]) -> Vec<(u32, f64)> {
        let by_block = by_block(self.measured, variant, steps, metrics::THROUGHPUT).into_iter();
        by_block.filter_map(|(block, values)| Some((block, geometric_mean(&values)?))).collect()
    }
}
