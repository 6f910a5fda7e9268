//! Comparisons: a variant against its baseline, step by step, metric by metric.

mod common_error;
mod concurrency;
mod others;

use dyno_record::{StepRecord, new_histogram};
use dyno_units::{Direction, Metric, MetricId, Seed};

use crate::cells::{Measured, at, described};
use crate::facts::WIDEST_BOUNDS;
use crate::join::Joined;
use crate::metrics::{self, quantile};
use crate::numbers::unit_of;
use crate::searches;
use crate::statistics::{
    Call, Decision, Effect, PooledError, Rule, decide_at, geometric_mean, holm, mean, sign_flip_p,
    two_sample_p,
};
use crate::stopping::RepeatedLooks;
use crate::{Comparison, Estimate, Mean, NoBounds, Pooled, Verdict};

pub(crate) use common_error::{CommonError, pool};
pub(crate) use concurrency::concurrency;
pub(crate) use others::other_effects;

pub(crate) struct Samples {
    ours: Vec<f64>,
    theirs: Vec<f64>,
    /// Of blocks that have both; `None` if blocks do not pair them.
    pairs: Option<Vec<(f64, f64)>>,
}

impl Samples {
    /// Paired if trials were interleaved and two blocks have both, or nothing else is possible.
    pub(crate) fn new(ours: &[(u32, f64)], theirs: &[(u32, f64)], interleaved: bool) -> Samples {
        let partner = |block: u32| theirs.iter().find(|(other, _)| *other == block);
        let pairs: Vec<(f64, f64)> = ours
            .iter()
            .filter_map(|&(block, our)| partner(block).map(|&(_, their)| (our, their)))
            .collect();
        let unpaired_n = ours.len().min(theirs.len());
        let enough = pairs.len() >= 2 || (pairs.len() == 1 && unpaired_n == 1);
        let values = |sample: &[(u32, f64)]| sample.iter().map(|&(_, value)| value).collect();
        Samples {
            ours: values(ours),
            theirs: values(theirs),
            pairs: (interleaved && enough).then_some(pairs),
        }
    }

    fn taking_part(&self) -> (Vec<f64>, Vec<f64>) {
        match &self.pairs {
            Some(pairs) => pairs.iter().copied().unzip(),
            None => (self.ours.clone(), self.theirs.clone()),
        }
    }

    /// `None` unless all values are above zero.
    pub(crate) fn logs(&self) -> Option<Samples> {
        let (ours, theirs) = self.taking_part();
        if ours.iter().chain(&theirs).any(|&value| value <= 0.0) {
            return None;
        }
        let logs = |values: Vec<f64>| values.into_iter().map(f64::ln).collect();
        let ln_both = |&(our, their): &(f64, f64)| (our.ln(), their.ln());
        Some(Samples {
            ours: logs(ours),
            theirs: logs(theirs),
            pairs: self.pairs.as_ref().map(|pairs| pairs.iter().map(ln_both).collect()),
        })
    }

    /// Of logarithms: the baseline's values that take part.
    fn plain_theirs(&self) -> Vec<f64> {
        self.taking_part().1.into_iter().map(f64::exp).collect()
    }

    pub(crate) fn is_paired(&self) -> bool {
        self.pairs.is_some()
    }

    /// `None` with one repetition, or with a zero.
    pub(crate) fn log_effect(&self, resolution: f64) -> Option<Effect> {
        self.logs()?.effect(resolution)
    }

    /// In percent of the other, with this effect of the logarithms; `None` if that is zero.
    pub(crate) fn relative(&self, effect: Option<Effect>, confidence: f64) -> Option<Estimate> {
        match self.logs() {
            Some(logs) => Some(in_percent(difference_estimate(&logs, effect, confidence, ""))),
            None => without_logs(self),
        }
    }

    /// On the scale of its values.
    pub(crate) fn effect(&self, resolution: f64) -> Option<Effect> {
        match self.differences() {
            Some(differences) => Effect::paired(&differences, resolution),
            None => Effect::welch(&self.ours, &self.theirs, resolution),
        }
    }

    fn differences(&self) -> Option<Vec<f64>> {
        self.pairs.as_ref().map(|pairs| pairs.iter().map(|(our, their)| our - their).collect())
    }

    /// By repetition; without pairs, to the mean of the baseline.
    fn own_differences(&self) -> Vec<f64> {
        self.differences().unwrap_or_else(|| {
            let center = mean(&self.theirs);
            self.ours.iter().map(|our| our - center).collect()
        })
    }

    /// `None` with fewer than three repetitions.
    fn permutation_p(&self, seed: Seed) -> Option<f64> {
        let mut random = seed.stream();
        match self.differences() {
            Some(differences) => {
                (differences.len() >= 3).then(|| sign_flip_p(&differences, &mut random))
            }
            None => (self.ours.len().min(self.theirs.len()) >= 3)
                .then(|| two_sample_p(&self.ours, &self.theirs, &mut random)),
        }
    }

    fn n(&self) -> u32 {
        let unpaired = self.ours.len().min(self.theirs.len());
        self.pairs.as_ref().map_or(unpaired, Vec::len) as u32
    }
}

pub(crate) fn difference_estimate(
    samples: &Samples,
    effect: Option<Effect>,
    confidence: f64,
    unit: &str,
) -> Estimate {
    let values = samples.own_differences();
    let center = (mean(&values), Mean::Arithmetic);
    let bounds = effect.map(|effect| effect.bounds(confidence));
    let found = described(values, unit, center, (bounds, NoBounds::OneRepetition));
    Estimate { n: samples.n(), ..found }
}

/// Each of its numbers by a function.
fn mapped(estimate: Estimate, unit: &str, of: impl Fn(f64) -> f64) -> Estimate {
    Estimate {
        value: of(estimate.value),
        low: estimate.low.map(&of),
        high: estimate.high.map(&of),
        min: of(estimate.min),
        max: of(estimate.max),
        unit: unit.to_owned(),
        values: estimate.values.iter().map(|value| of(*value)).collect(),
        ..estimate
    }
}

/// Of the baseline.
pub(crate) fn in_percent(logarithmic: Estimate) -> Estimate {
    let bounds = logarithmic.low.zip(logarithmic.high);
    let mut found = mapped(logarithmic, "%", |log| log.exp_m1() * 100.0);
    found.mean = Mean::Geometric;
    if bounds.is_some_and(|(low, high)| high - low > WIDEST_BOUNDS.ln()) {
        (found.low, found.high, found.no_bounds) = (None, None, Some(NoBounds::TooWide));
    }
    found
}

/// In the metric's unit, as a share of the baseline's geometric mean, taken as known. A difference
/// of arithmetic means could contradict the ratio.
fn in_units(relative: &Estimate, base: f64, unit: &str) -> Estimate {
    mapped(relative.clone(), unit, |percent| base * percent / 100.0)
}

/// The ratio of the means, without logarithms and bounds; `None` if the baseline's mean is zero.
fn without_logs(samples: &Samples) -> Option<Estimate> {
    let (ours, theirs) = samples.taking_part();
    let base = mean(&theirs);
    if base <= 0.0 {
        return None;
    }
    let values: Vec<f64> = ours.iter().map(|our| (our / base - 1.0) * 100.0).collect();
    let center = (mean(&values), Mean::Arithmetic);
    Some(Estimate { n: samples.n(), ..described(values, "%", center, (None, NoBounds::Zero)) })
}

/// The instrument's standard deviation of a logarithm: that of a uniform value in a histogram
/// class, or between the ends of a search, width / √12.
pub(crate) fn resolution(metric: MetricId, step: &StepRecord, typical: f64) -> f64 {
    match metric {
        metrics::RATE_AT_LIMIT | metrics::CLIENTS_AT_LIMIT => searches::resolution(step, typical),
        _ => resolution_of_class(metric, typical),
    }
}

/// Of a quantile's class in the histogram.
pub(crate) fn resolution_of_class(metric: MetricId, typical_us: f64) -> f64 {
    let is_exact = quantile(metric).is_none();
    let ns = (typical_us * 1e3) as u64;
    if is_exact || ns == 0 {
        return 0.0;
    }
    let histogram = new_histogram();
    let width = histogram.highest_equivalent(ns) - histogram.lowest_equivalent(ns) + 1;
    width as f64 / ns as f64 / 12_f64.sqrt()
}

/// With the level of each variant's comparisons if there were looks before the end.
pub(crate) struct Levels<'a> {
    pub(crate) rule: &'a Rule,
    /// At looks.
    pub(crate) stops_early: bool,
    pub(crate) looks: Option<RepeatedLooks>,
    /// Of comparisons, by variant; `None` with one look only.
    pub(crate) of_variants: Option<Vec<f64>>,
    /// Of estimates of single cells; `None` with one look only.
    pub(crate) of_cells: Option<Vec<f64>>,
}

impl Levels<'_> {
    pub(crate) fn of(&self, variant: usize) -> Rule {
        self.with(self.of_variants.as_ref().map(|levels| levels[variant]))
    }

    /// Bounds are those of all looks together, whenever the variant was stopped.
    pub(crate) fn of_cells(&self, variant: usize) -> Rule {
        self.with(self.of_cells.as_ref().map(|levels| levels[variant]))
    }

    fn with(&self, level: Option<f64>) -> Rule {
        Rule { confidence: level.map_or(self.rule.confidence, |level| 1.0 - level), ..*self.rule }
    }
}

/// Before its family is known.
pub(crate) struct Draft {
    pub(crate) comparison: Comparison,
    pub(crate) effect: Option<Effect>,
    pub(crate) is_total_loss: bool,
    /// `None` with a zero.
    logs: Option<Samples>,
    is_more_better: bool,
}

impl Draft {
    pub(crate) fn at(mut self, (variant, baseline, step): (usize, usize, usize)) -> Draft {
        let comparison = &mut self.comparison;
        (comparison.variant, comparison.baseline, comparison.step) = (variant, baseline, step);
        self
    }

    /// Uses the common error of the family. `rule` is the comparison's own.
    pub(crate) fn pool(&mut self, error: PooledError, rule: &Rule) {
        let (Some(own), Some(logs)) = (self.effect, &self.logs) else { return };
        let effect = own.with_error(error);
        let deviation = |effect: &Effect| effect.standard_error * f64::from(effect.n).sqrt();
        let comparison = &mut self.comparison;
        comparison.pooled = Some(Pooled {
            freedom: effect.freedom,
            deviation: deviation(&effect),
            own_deviation: deviation(&own),
        });
        comparison.relative =
            in_percent(difference_estimate(logs, Some(effect), rule.confidence, ""));
        if let Some(base) = geometric_mean(&logs.plain_theirs()) {
            let unit = &comparison.absolute.unit;
            comparison.absolute = in_units(&comparison.relative, base, unit);
        }
        self.effect = Some(effect);
    }
}

/// At every step that both measured.
pub(crate) fn comparisons(
    joined: &Joined<'_>,
    measured: &[Measured],
    levels: &Levels<'_>,
    seed: Seed,
) -> Vec<Comparison> {
    let mut all = Vec::new();
    for metric in joined.metrics.compared() {
        let seed = seed.derive(metric.id.as_str(), 0);
        let drafts = drafts(joined, measured, (metric, levels), seed);
        // Comparisons within the first of two runs are their own family.
        let (of_first, others): (Vec<Draft>, Vec<Draft>) =
            drafts.into_iter().partition(|draft| draft.comparison.variant < joined.n_first);
        all.extend(decide_family(of_first, levels));
        all.extend(decide_family(others, levels));
    }
    all
}

pub(crate) fn drafts(
    joined: &Joined<'_>,
    measured: &[Measured],
    (metric, levels): (&Metric, &Levels<'_>),
    seed: Seed,
) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for (variant, record) in joined.variants.iter().enumerate() {
        let Some(baseline) = record.baseline else { continue };
        let is_compared = |step: &usize| searches::is_compared(metric.id, &joined.steps[*step]);
        for step in (0..joined.steps.len()).filter(is_compared) {
            let values = |variant| values_of(measured, variant, step, metric.id);
            let (ours, theirs) = (values(variant), values(baseline));
            let samples = Samples::new(&ours, &theirs, joined.interleaved);
            let seed = seed.derive("comparison", drafts.len() as u64);
            let rule = levels.of(variant);
            let found = draft(&samples, (metric, &joined.steps[step]), &rule, seed);
            drafts.extend(found.map(|draft| {
                let mut draft = draft.at((variant, baseline, step));
                draft.comparison.is_main = joined.main[step] == metric.id;
                draft
            }));
        }
    }
    let places: Vec<usize> = drafts.iter().map(|draft| draft.comparison.step).collect();
    let errors = common_error(joined, measured, (metric.id, levels));
    pool(&mut drafts, &places, errors.as_ref(), levels);
    drafts
}

pub(crate) fn common_error(
    joined: &Joined<'_>,
    measured: &[Measured],
    (metric, levels): (MetricId, &Levels<'_>),
) -> Option<CommonError> {
    CommonError::new(
        joined,
        levels,
        joined.steps.len(),
        |variant, step| match searches::is_compared(metric, &joined.steps[step]) {
            true => values_of(measured, variant, step, metric),
            false => Vec::new(),
        },
    )
}

fn values_of(
    measured: &[Measured],
    variant: usize,
    step: usize,
    metric: MetricId,
) -> Vec<(u32, f64)> {
    let value = |m: &Measured| m.value(metric).map(|value| (m.block, value));
    at(measured, variant, step).into_iter().filter_map(value).collect()
}

/// Without place and verdict; `None` if nothing can be compared.
pub(crate) fn draft(
    samples: &Samples,
    (metric, step): (&Metric, &StepRecord),
    rule: &Rule,
    seed: Seed,
) -> Option<Draft> {
    let (ours, theirs) = samples.taking_part();
    if ours.is_empty() || theirs.is_empty() {
        return None;
    }
    let center = geometric_mean(&[&ours[..], &theirs[..]].concat());
    let resolution = center.map_or(0.0, |center| resolution(metric.id, step, center));
    let logs = samples.logs();
    let effect = logs.as_ref().and_then(|logs| logs.effect(resolution));
    let relative = samples.relative(effect, rule.confidence)?;
    let absolute = match (&logs, geometric_mean(&theirs)) {
        (Some(_), Some(base)) => in_units(&relative, base, unit_of(metric)),
        _ => difference_estimate(samples, samples.effect(0.0), rule.confidence, unit_of(metric)),
    };
    // Where less is better (CPU by ticks), a zero is no loss.
    let is_total_loss = metric.better == Direction::Higher
        && ours.iter().all(|&value| value == 0.0)
        && theirs.iter().all(|&value| value > 0.0)
        && samples.n() >= 3;
    let comparison = Comparison {
        variant: 0,
        baseline: 0,
        step: 0,
        metric: metric.id,
        relative,
        absolute,
        p_value: logs.as_ref().and_then(|logs| logs.permutation_p(seed)),
        p_value_corrected: None,
        p_value_of_verdict: None,
        paired: samples.pairs.is_some(),
        verdict: Verdict::Inconclusive,
        repetitions_needed: None,
        is_main: false,
        pooled: None,
    };
    let is_more_better = metric.better == Direction::Higher;
    Some(Draft { comparison, effect, is_total_loss, logs, is_more_better })
}

/// All of one metric, each at the level of its variant.
pub(crate) fn decide_family(drafts: Vec<Draft>, levels: &Levels<'_>) -> Vec<Comparison> {
    let level = |draft: &Draft| 1.0 - levels.of(draft.comparison.variant).confidence;
    decide_drafts(drafts, level, levels.rule)
}

pub(crate) fn decide_drafts(
    drafts: Vec<Draft>,
    level: impl Fn(&Draft) -> f64,
    rule: &Rule,
) -> Vec<Comparison> {
    let effects: Vec<(Option<Effect>, f64)> =
        drafts.iter().map(|draft| (draft.effect, level(draft))).collect();
    let p_values: Vec<f64> = drafts.iter().filter_map(|draft| draft.comparison.p_value).collect();
    let mut corrected = holm(&p_values).into_iter();
    let mut decided = Vec::new();
    for (draft, decision) in drafts.into_iter().zip(decide_at(&effects, rule)) {
        let mut comparison = draft.comparison;
        comparison.p_value_corrected = comparison.p_value.and_then(|_| corrected.next());
        comparison.verdict = verdict(draft.is_more_better, decision);
        comparison.p_value_of_verdict = decision.p_value;
        comparison.repetitions_needed = decision.repetitions_needed;
        if draft.is_total_loss {
            comparison.verdict = Verdict::Worse;
        }
        decided.push(comparison);
    }
    decided
}

pub(crate) fn verdict(is_more_better: bool, decision: Decision) -> Verdict {
    match (decision.call, is_more_better) {
        (Call::Higher, true) | (Call::Lower, false) => Verdict::Better,
        (Call::Lower, true) | (Call::Higher, false) => Verdict::Worse,
        (Call::Inside, _) => Verdict::NoDifference,
        (Call::Undecided, _) => Verdict::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolution_is_that_of_the_histogram() {
        let width = |metric, us: f64| resolution_of_class(metric, us) * 12_f64.sqrt() * us * 1e3;
        // 1 ns wide up to 2.048 µs; above, 1/1024 of the power of two.
        for us in [0.5, 1.0, 2.0] {
            assert!((width(metrics::RESPONSE_P50, us) - 1.0).abs() < 1e-6);
        }
        assert!((width(metrics::RESPONSE_P99, 140.0) - 128.0).abs() < 1e-6);
        for us in [140.0, 1e3, 1e6, 1e9] {
            assert!(width(metrics::RESPONSE_P99, us) / us / 1e3 < 0.001);
        }
        assert_eq!(resolution_of_class(metrics::THROUGHPUT, 1000.0), 0.0);
        assert_eq!(resolution_of_class(metrics::RESPONSE_MEAN, 1000.0), 0.0);
        assert_eq!(resolution_of_class(metrics::RESPONSE_P50, 0.0), 0.0);
    }

    #[track_caller]
    fn check(ours: &[(u32, f64)], theirs: &[(u32, f64)], expected: Option<&[(f64, f64)]>) {
        let samples = Samples::new(ours, theirs, true);
        assert_eq!(samples.pairs.as_deref(), expected);
    }

    #[test]
    fn blocks_pair_what_they_both_have() {
        let ours = [(1, 10.0), (2, 20.0), (4, 40.0)];
        check(&ours, &[(4, 4.0), (2, 2.0)], Some(&[(20.0, 2.0), (40.0, 4.0)]));
        // One pair tells less than two samples of two.
        check(&ours, &[(1, 1.0), (3, 3.0)], None);
        check(&ours[..1], &[(1, 1.0), (3, 3.0)], Some(&[(10.0, 1.0)]));
        check(&ours, &[], None);
        assert!(Samples::new(&ours, &ours, false).pairs.is_none());
    }
}
