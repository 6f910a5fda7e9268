//! Effects against variants other than the baseline of the study: estimates with an interval each, and
//! no verdict.

use crate::cells::Measured;
use crate::join::Joined;
use crate::statistics::geometric_mean;
use crate::{Metric, OtherEffect, searches};

use super::{COMPARED, Levels, Samples, difference_estimate, in_percent, resolution, values_of};

/// With more variants than this, pairs are too many to be kept.
const VARIANTS_MOST: usize = 16;

/// The effect of every variant against every other one that is not its baseline, at every step that
/// both measured, on the metrics that reports show. Trials of the same block are paired, as in the
/// comparisons of the study. Each interval stands for itself: nothing is corrected for their number.
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
    for metric in COMPARED.into_iter().filter(|metric| is_shown(*metric)) {
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
                let confidence = levels.of_cells(variant).confidence;
                let effect = effect(&samples, (metric, &joined.steps[step]), confidence);
                all.extend(effect.map(|effect| OtherEffect { variant, baseline, step, ..effect }));
            }
        }
    }
    all
}

fn is_shown(metric: Metric) -> bool {
    let main = [Metric::Throughput, Metric::RateAtLimit, Metric::ClientsAtLimit, Metric::StepTime];
    main.contains(&metric) || metric == Metric::ResponseP95
}

/// The effect in percent with its interval; none where a value is not above zero, or one of the two
/// has none.
fn effect(
    samples: &Samples,
    (metric, step): (Metric, &dyno_record::StepRecord),
    confidence: f64,
) -> Option<OtherEffect> {
    let (ours, theirs) = samples.taking_part();
    if ours.is_empty() || theirs.is_empty() {
        return None;
    }
    let logs = samples.logs()?;
    let center = geometric_mean(&[&ours[..], &theirs[..]].concat());
    let effect = logs.effect(center.map_or(0.0, |center| resolution(metric, step, center)));
    let relative = in_percent(difference_estimate(&logs, effect, confidence, ""));
    let (variant, baseline, step) = (0, 0, 0);
    Some(OtherEffect {
        variant,
        baseline,
        step,
        metric,
        percent: relative.value,
        low: relative.low,
        high: relative.high,
        n: relative.n,
    })
}

#[cfg(test)]
mod tests {
    use crate::{Metric, Options, analyse, fixtures};

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
                    == (variant, baseline, 1, Metric::Throughput)
            };
            findings.other_effects.iter().find(is_it)
        };
        // Against `a` they are compared; it has no entry here.
        assert!(of(1, 0).is_none() && of(2, 0).is_none());
        let (c, b) = (of(2, 1).expect("c against b"), of(1, 2).expect("b against c"));
        assert!((c.percent - 50.0).abs() < 1e-6 && (b.percent + 100.0 / 3.0).abs() < 1e-6);
        assert_eq!((c.n, c.low.is_some(), c.high.is_some()), (3, true, true));
        // What c has over b, b has under c.
        let product = (1.0 + c.low.unwrap() / 100.0) * (1.0 + b.high.unwrap() / 100.0);
        assert!((product - 1.0).abs() < 1e-6);
        let two = fixtures::run(&["a", "b"], &[1], 3, rate);
        assert!(analyse(&[two], &Options::default()).other_effects.is_empty());
    }
}
