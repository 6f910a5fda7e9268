//! Effects against variants other than the baseline: estimates with intervals, without verdicts.

use crate::cells::Measured;
use crate::join::Joined;
use crate::statistics::geometric_mean;
use crate::{MetricId, OtherEffect, searches};

use super::{
    CommonError, Levels, Samples, common_error, difference_estimate, in_percent, resolution,
    values_of,
};

/// Above this, pairs are too many to keep.
const VARIANTS_MOST: usize = 16;

/// Every variant against every other that is not its baseline, at common steps, in the shown
/// metrics. Pairs and errors are those of the comparisons; intervals are not corrected for number.
pub(crate) fn other_effects(
    joined: &Joined<'_>,
    measured: &[Measured],
    levels: &Levels<'_>,
) -> Vec<OtherEffect> {
    let n = joined.variants.len();
    let mut all = Vec::new();
    if !(3..=VARIANTS_MOST).contains(&n) {
        return all;
    }
    for metric in joined.metrics.main() {
        let errors = common_error(joined, measured, (metric, levels));
        for step in 0..joined.steps.len() {
            if !searches::is_compared(metric, &joined.steps[step]) {
                continue;
            }
            let of_variants: Vec<Vec<(u32, f64)>> =
                (0..n).map(|variant| values_of(measured, variant, step, metric)).collect();
            let pairs = (0..n).flat_map(|variant| (0..n).map(move |baseline| (variant, baseline)));
            let is_other = |(variant, baseline): &(usize, usize)| {
                variant != baseline && joined.variants[*variant].baseline != Some(*baseline)
            };
            for (variant, baseline) in pairs.filter(is_other) {
                let (ours, theirs) = (&of_variants[variant], &of_variants[baseline]);
                let samples = Samples::new(ours, theirs, joined.interleaved);
                let confidence = confidence(joined, (variant, baseline), levels);
                let of = (variant, baseline, step, metric);
                all.extend(effect(joined, of, &samples, errors.as_ref(), confidence));
            }
        }
    }
    all
}

fn confidence(joined: &Joined<'_>, (one, other): (usize, usize), levels: &Levels<'_>) -> f64 {
    match joined.variants[other].baseline == Some(one) {
        true => levels.of(other).confidence,
        false => levels.of_cells(one).confidence.max(levels.of_cells(other).confidence),
    }
}

/// In percent; `None` unless all values are above zero.
fn effect(
    joined: &Joined<'_>,
    (variant, baseline, step, metric): (usize, usize, usize, MetricId),
    samples: &Samples,
    errors: Option<&CommonError>,
    confidence: f64,
) -> Option<OtherEffect> {
    let (ours, theirs) = samples.taking_part();
    if ours.is_empty() || theirs.is_empty() {
        return None;
    }
    let logs = samples.logs()?;
    let center = geometric_mean(&[&ours[..], &theirs[..]].concat());
    let resolution = center.map_or(0.0, |center| resolution(metric, &joined.steps[step], center));
    let error = errors.filter(|_| samples.pairs.is_some());
    let error = error.and_then(|errors| errors.of((variant, baseline), step));
    let own = logs.effect(resolution);
    let effect = own.map(|own| error.map_or(own, |error| own.with_error(error)));
    let relative = in_percent(difference_estimate(&logs, effect, confidence, ""));
    let (percent, low, high, n) = (relative.value, relative.low, relative.high, relative.n);
    Some(OtherEffect { variant, baseline, step, metric, percent, low, high, n })
}

#[cfg(test)]
mod tests {
    use crate::{Options, analyse, fixtures, metrics};

    #[test]
    fn every_pair_that_is_not_compared_has_an_effect_of_the_same_trials() {
        let rate = |variant: usize, _: usize, repetition: u32| {
            1000.0 * (variant + 1) as f64 * (1.0 + 0.01 * f64::from(repetition))
        };
        let findings =
            analyse(&[fixtures::run(&["a", "b", "c"], &[1, 8], 3, rate)], &Options::default());
        let of = |variant: usize, baseline: usize| {
            let is_it = |e: &&crate::OtherEffect| {
                (e.variant, e.baseline, e.step, e.metric)
                    == (variant, baseline, 1, metrics::THROUGHPUT)
            };
            findings.other_effects.iter().find(is_it)
        };
        // Those are comparisons.
        assert!(of(1, 0).is_none() && of(2, 0).is_none());
        let (c, b) = (of(2, 1).expect("c against b"), of(1, 2).expect("b against c"));
        assert!((c.percent - 50.0).abs() < 1e-6 && (b.percent + 100.0 / 3.0).abs() < 1e-6);
        assert_eq!((c.n, c.low.is_some(), c.high.is_some()), (3, true, true));
        // Mirrored.
        let product = (1.0 + c.low.unwrap() / 100.0) * (1.0 + b.high.unwrap() / 100.0);
        assert!((product - 1.0).abs() < 1e-6);
        let two = fixtures::run(&["a", "b"], &[1], 3, rate);
        assert!(analyse(&[two], &Options::default()).other_effects.is_empty());
    }

    #[test]
    fn an_effect_against_the_baseline_is_the_mirror_of_the_comparison() {
        // By its own pairs, the difference between `a` and `b` would have no spread.
        let rate = |variant: usize, step: usize, repetition: u32| {
            let own = if variant == 2 { 5.0 } else { 1.0 };
            1000.0 * (1.0 + own * (fixtures::wobble(variant / 2, step, repetition) - 1.0))
        };
        let findings =
            analyse(&[fixtures::run(&["a", "b", "c"], &[1, 8], 3, rate)], &Options::default());
        let log = |percent: Option<f64>| (percent.expect("it has bounds") / 100.0).ln_1p();
        let mut n = 0;
        for c in &findings.comparisons {
            let is_it = |e: &&crate::OtherEffect| {
                (e.variant, e.baseline, e.step, e.metric)
                    == (c.baseline, c.variant, c.step, c.metric)
            };
            let Some(back) = findings.other_effects.iter().find(is_it) else { continue };
            assert!(c.pooled.is_some());
            assert!((log(back.low) + log(c.relative.high)).abs() < 1e-9, "{c:?} {back:?}");
            assert!((log(back.high) + log(c.relative.low)).abs() < 1e-9, "{c:?} {back:?}");
            n += 1;
        }
        assert_eq!(n, 2 * 2 * 2, "throughput and p95 of two variants at two steps");
    }
}
