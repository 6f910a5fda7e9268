//! What a design can find before anything is measured, and the repetitions that decide afterwards.

use super::decision::Rule;
use super::special::{ln_gamma, normal_probability};
use super::student::t_quantile;

/// All variants are run in each block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    pub repetitions: u32,
    /// Compared with one baseline.
    pub variants: u32,
    pub steps: u32,
    /// In blocks: only then errors are pooled.
    pub interleaved: bool,
    pub rule: Rule,
}

/// Widening of standard errors by the guard of the common error. In simulations 1.17 on average
/// with three repetitions, 1.12 with five, 1.09 with ten (example `error_rates`, table `pooling`);
/// 1.08 gives the simulated power (test `the_power_is_that_of_simulated_studies`).
const PRICE_OF_GUARD: f64 = 1.08;

impl Design {
    pub fn comparisons(&self) -> u32 {
        self.variants * self.steps
    }

    /// Standard error and degrees of freedom of an effect; `None` below two repetitions. `noise`:
    /// the standard deviation of trials' logarithms in a block, about a coefficient of variation.
    fn error(&self, noise: f64) -> Option<(f64, f64)> {
        if self.repetitions < 2 || self.comparisons() == 0 {
            return None;
        }
        let n = f64::from(self.repetitions);
        let standard_error = noise * (2.0 / n).sqrt();
        let between = (self.repetitions - 1) * self.variants;
        let is_pooled =
            self.interleaved && self.repetitions >= 3 && self.comparisons() >= 2 && between >= 4;
        if !self.interleaved {
            return Some((standard_error, 2.0 * (n - 1.0)));
        }
        if !is_pooled {
            return Some((standard_error, n - 1.0));
        }
        // Independent steps, if they share half of their trial's noise.
        let steps = f64::from(self.steps);
        let independent = steps / (1.0 + 0.25 * (steps - 1.0));
        Some((PRICE_OF_GUARD * standard_error, f64::from(between) * independent))
    }

    /// Probability that an effect (0.05: 5 %) is called better or worse, at Holm's strictest level.
    pub fn probability_of_finding(&self, effect: f64, noise: f64) -> f64 {
        let Some((standard_error, freedom)) = self.error(noise) else { return 0.0 };
        if standard_error <= 0.0 {
            return f64::from(effect != 0.0);
        }
        let level = (1.0 - self.rule.confidence) / f64::from(self.comparisons());
        probability_of_significance(effect.ln_1p() / standard_error, freedom, level)
    }

    /// Smallest effect (0.05 for 5 %), at least the threshold, found with this probability. `None`
    /// for fewer than two repetitions, or beyond a factor of a thousand.
    pub fn smallest_effect(&self, noise: f64, probability: f64) -> Option<f64> {
        let is_found = |log: f64| self.probability_of_finding(log.exp_m1(), noise) >= probability;
        let (mut low, mut high) = (0.0, 1_000_f64.ln());
        if !is_found(high) {
            return None;
        }
        while high - low > 1e-6 {
            let middle = 0.5 * (low + high);
            if is_found(middle) { high = middle } else { low = middle }
        }
        Some(high.exp_m1().max(self.rule.threshold))
    }

    /// Fewest repetitions, up to `most`, that find this effect with this probability, if any.
    pub fn repetitions_for(
        &self,
        effect: f64,
        noise: f64,
        probability: f64,
        most: u32,
    ) -> Option<u32> {
        (2..=most).find(|&repetitions| {
            let design = Design { repetitions, ..*self };
            design.probability_of_finding(effect, noise) >= probability
        })
    }
}

/// Probability that a noncentral |T| exceeds the quantile of a two-sided test at `level`.
pub fn probability_of_significance(noncentrality: f64, freedom: f64, level: f64) -> f64 {
    let limit = t_quantile(1.0 - level / 2.0, freedom);
    over_spreads(freedom, |spread| {
        let limit = limit * spread;
        normal_probability(noncentrality - limit) + normal_probability(-noncentrality - limit)
    })
}

/// Of bounds at 1 − `level` inside ± `band` (standard errors), or of zero excluded at `strict`.
pub(super) fn probability_of_decision(
    (effect, band): (f64, f64),
    freedom: f64,
    (level, strict): (f64, f64),
) -> f64 {
    let (near, far) =
        (t_quantile(1.0 - level / 2.0, freedom), t_quantile(1.0 - strict / 2.0, freedom));
    over_spreads(freedom, |spread| {
        let inside = (band - near * spread).max(0.0);
        let outside = far * spread;
        if inside >= outside {
            return 1.0;
        }
        let within = normal_probability(inside - effect) - normal_probability(-inside - effect);
        within + normal_probability(effect - outside) + normal_probability(-effect - outside)
    })
}

/// Of a one-sided bound at `level` of a true zero that stays below `band`, in standard errors.
pub(crate) fn probability_of_non_inferiority(band: f64, freedom: f64, level: f64) -> f64 {
    let near = t_quantile(1.0 - level, freedom);
    over_spreads(freedom, |spread| normal_probability(band - near * spread))
}

/// Mean over the ratio of an estimated standard deviation to the true one, the root of χ² / ν, by
/// Simpson's rule over the logarithm of χ² / ν.
fn over_spreads(freedom: f64, of: impl Fn(f64) -> f64) -> f64 {
    const INTERVALS: usize = 120;
    let half = 0.5 * freedom;
    let log_scale = half * half.ln() - ln_gamma(half);
    let width = (2.0 / freedom).sqrt();
    let (low, high) = (-9.0 * width - 18.0 / freedom, 9.0 * width.min(1.0) + 0.5 * width);
    let step = (high - low) / INTERVALS as f64;
    let density = |log: f64| (log_scale + half * (log - log.exp())).exp();
    let sum: f64 = (0..=INTERVALS)
        .map(|i| {
            let log = low + step * i as f64;
            let weight = match i {
                0 | INTERVALS => 1.0,
                i if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * density(log) * of((0.5 * log).exp())
        })
        .sum();
    (sum * step / 3.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::super::Effect;
    use super::*;

    #[track_caller]
    fn check(actual: f64, expected: f64, within: f64) {
        assert!((actual - expected).abs() <= within, "{actual}, not {expected}");
    }

    #[test]
    fn all_spreads_together_have_probability_one() {
        for freedom in [1.0, 2.0, 4.5, 12.0, 100.0, 5_000.0] {
            check(over_spreads(freedom, |_| 1.0), 1.0, 1e-4);
            // The mean of χ² / ν is one.
            check(over_spreads(freedom, |s| (s * s).min(1e9) / 2.0), 0.5, 2e-4);
        }
    }

    #[test]
    fn power_of_the_t_test_as_tables_have_it() {
        // Without an effect it is the level.
        for freedom in [1.0, 2.0, 9.0, 60.0] {
            check(probability_of_significance(0.0, freedom, 0.05), 0.05, 1e-3);
        }
        // One sample of 10 at d = 1 has 80.3 %, of 20 at d = 0.5 56.5 % (Cohen 1988).
        check(probability_of_significance(10_f64.sqrt(), 9.0, 0.05), 0.803, 0.002);
        check(probability_of_significance(0.5 * 20_f64.sqrt(), 19.0, 0.05), 0.565, 0.002);
    }

    const DESIGN: Design = Design {
        repetitions: 3,
        variants: 3,
        steps: 4,
        interleaved: true,
        rule: Rule { threshold: 0.03, confidence: 0.95 },
    };

    #[test]
    fn the_power_is_that_of_simulated_studies() {
        // From the example `error_rates`, table `verdicts`.
        let found = |repetitions: u32, effect: f64| {
            Design { repetitions, ..DESIGN }.probability_of_finding(effect, 0.02)
        };
        check(found(3, 0.05), 0.30, 0.04);
        check(found(3, 0.10), 0.92, 0.04);
        check(found(5, 0.05), 0.67, 0.04);
        let one = Design { variants: 1, steps: 1, ..DESIGN };
        // 20 000 paired t tests of three pairs.
        let mut random = Seed(3).stream();
        let mut hits = 0;
        for _ in 0..4_000 {
            let pairs: Vec<f64> =
                (0..3).map(|_| 1.1_f64.ln() + 0.02 * (random.normal() - random.normal())).collect();
            hits += u32::from(Effect::paired(&pairs, 0.0).expect("pairs").p_value() <= 0.05);
        }
        check(one.probability_of_finding(0.1, 0.02), f64::from(hits) / 4_000.0, 0.03);
    }

    #[test]
    fn the_smallest_effect_is_found_with_its_probability() {
        for noise in [0.01, 0.02, 0.08] {
            let effect = DESIGN.smallest_effect(noise, 0.8).expect("it can be found");
            if effect > 0.03 {
                check(DESIGN.probability_of_finding(effect, noise), 0.8, 1e-3);
            }
            let six = Design { repetitions: 6, ..DESIGN };
            assert!(six.smallest_effect(noise, 0.8).expect("it can be found") <= effect);
        }
        // Effects below the threshold do not matter.
        check(DESIGN.smallest_effect(1e-6, 0.8).expect("it can be found"), 0.03, 1e-12);
        assert_eq!(Design { repetitions: 1, ..DESIGN }.smallest_effect(0.02, 0.8), None);
    }

    #[test]
    fn as_many_repetitions_as_an_effect_needs() {
        let n = DESIGN.repetitions_for(0.05, 0.02, 0.8, 50).expect("fifty are enough");
        let found =
            |repetitions: u32| Design { repetitions, ..DESIGN }.probability_of_finding(0.05, 0.02);
        assert!(found(n) >= 0.8 && found(n - 1) < 0.8, "{n}");
        assert_eq!(DESIGN.repetitions_for(0.001, 0.5, 0.8, 50), None);
    }
}
