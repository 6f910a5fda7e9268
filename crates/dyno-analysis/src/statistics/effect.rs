//! The difference between two samples, with its standard error.

use super::describe::{mean, variance};
use super::pooled::PooledError;
use super::student::{t_quantile, t_two_sided_p};

/// A difference of means; of logarithms, the logarithm of a ratio of geometric means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    pub value: f64,
    pub standard_error: f64,
    /// Degrees of freedom.
    pub freedom: f64,
    /// Pairs, or the size of the smaller sample.
    pub n: u32,
    /// Variance by the instrument's rounding, which is alike in all repetitions.
    pub rounding: f64,
}

/// More degrees of freedom make no difference.
const FREEDOM_MOST: f64 = 1e4;

impl Effect {
    /// `sampled`: variance of the mean over repetitions, with degrees of freedom. Rounding is
    /// known, so the sum has more of them (Satterthwaite 1946).
    fn rounded(value: f64, sampled: (f64, f64), n: u32, rounding: f64) -> Effect {
        let (variance, freedom) = sampled;
        let all = variance + rounding;
        let grown = if all > 0.0 { freedom * (all / variance).powi(2) } else { freedom };
        Effect {
            value,
            standard_error: all.sqrt(),
            freedom: grown.min(FREEDOM_MOST.max(freedom)),
            n,
            rounding,
        }
    }

    /// Variance of the mean over repetitions, and degrees of freedom.
    fn sampled(&self) -> (f64, f64) {
        let all = self.standard_error.powi(2);
        let variance = (all - self.rounding).max(0.0);
        let freedom =
            if all > 0.0 { self.freedom * (variance / all).powi(2) } else { self.freedom };
        (variance, freedom)
    }

    /// Differences within pairs: mean d̄, standard error s / √n, n − 1 degrees of freedom; `None`
    /// below two pairs. `resolution` is the instrument's standard deviation of one value; twice its
    /// square is added to the variance of the mean, or many values of one histogram class would
    /// seem to locate the truth in it. s² is at least as large: few values may be alike by chance.
    pub fn paired(differences: &[f64], resolution: f64) -> Option<Effect> {
        if differences.len() < 2 {
            return None;
        }
        let n = differences.len() as f64;
        let rounding = 2.0 * resolution * resolution;
        let sampled = (variance(differences).max(rounding) / n, n - 1.0);
        Some(Effect::rounded(mean(differences), sampled, differences.len() as u32, rounding))
    }

    /// The mean of a sample; `None` for fewer than two values. See [`Effect::paired`].
    pub fn of_one(values: &[f64], resolution: f64) -> Option<Effect> {
        Effect::paired(values, resolution * std::f64::consts::FRAC_1_SQRT_2)
    }

    /// `ours` − `theirs`, independent, with unequal variances: Welch (1947), degrees of freedom
    /// after Satterthwaite (1946). `None` if a sample has under two values. See [`Effect::paired`].
    pub fn welch(ours: &[f64], theirs: &[f64], resolution: f64) -> Option<Effect> {
        if ours.len() < 2 || theirs.len() < 2 {
            return None;
        }
        let of_one = resolution * resolution;
        let share = |sample: &[f64]| variance(sample).max(of_one) / sample.len() as f64;
        let (a, b) = (share(ours), share(theirs));
        let (n_a, n_b) = (ours.len() as f64, theirs.len() as f64);
        let satterthwaite = (a + b).powi(2) / (a * a / (n_a - 1.0) + b * b / (n_b - 1.0));
        // Without any spread the formula is 0 / 0.
        let freedom = if satterthwaite.is_finite() { satterthwaite } else { n_a + n_b - 2.0 };
        let n = ours.len().min(theirs.len()) as u32;
        let rounding = 2.0 * of_one;
        Some(Effect::rounded(mean(ours) - mean(theirs), (a + b, freedom), n, rounding))
    }

    /// With an error estimated from more than its own pairs.
    #[must_use]
    pub fn with_error(&self, error: PooledError) -> Effect {
        let sampled = (error.variance.max(self.rounding) / f64::from(self.n), error.freedom);
        Effect::rounded(self.value, sampled, self.n, self.rounding)
    }

    /// Of one difference, without rounding.
    pub fn spread(&self) -> f64 {
        self.sampled().0 * f64::from(self.n)
    }

    pub fn half_width(&self, confidence: f64) -> f64 {
        t_quantile(0.5 + confidence / 2.0, self.freedom) * self.standard_error
    }

    pub fn bounds(&self, confidence: f64) -> (f64, f64) {
        let half_width = self.half_width(confidence);
        (self.value - half_width, self.value + half_width)
    }

    /// Two-sided, of no effect, by Student's distribution.
    pub fn p_value(&self) -> f64 {
        if self.standard_error > 0.0 {
            t_two_sided_p(self.value / self.standard_error, self.freedom)
        } else if self.value == 0.0 {
            1.0
        } else {
            0.0
        }
    }

    /// The same value, spread and rounding, with `n` repetitions.
    pub fn with_repetitions(&self, n: u32) -> Effect {
        let growth = f64::from(n) / f64::from(self.n);
        let (variance, freedom) = self.sampled();
        let freedom = freedom * f64::from(n - 1) / f64::from(self.n - 1);
        Effect::rounded(self.value, (variance / growth, freedom), n, self.rounding)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paired_as_student_did_it() {
        // Student's (1908) extra hours of sleep, as differences: t = 4.0621 with 9 degrees of
        // freedom, p = 0.00283, bounds 0.70 … 2.46.
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let effect = Effect::paired(&differences, 0.0).expect("ten pairs");
        assert!((effect.value / effect.standard_error - 4.0621).abs() < 1e-4);
        assert!((effect.p_value() - 0.002_833).abs() < 1e-6, "{}", effect.p_value());
        let (low, high) = effect.bounds(0.95);
        assert!((low - 0.7001).abs() < 1e-4 && (high - 2.4599).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn welch_on_the_same_sleepers_as_two_groups() {
        // As two groups: t = −1.8608, 17.776 degrees of freedom, p = 0.07939.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let effect = Effect::welch(&first, &second, 0.0).expect("two samples");
        assert!((effect.value / effect.standard_error + 1.8608).abs() < 1e-4);
        assert!((effect.freedom - 17.776).abs() < 1e-3, "{}", effect.freedom);
        assert!((effect.p_value() - 0.079_39).abs() < 1e-5, "{}", effect.p_value());
    }

    #[test]
    fn without_spread_the_effect_is_certain_up_to_the_resolution() {
        let certain = Effect::paired(&[0.1, 0.1, 0.1], 0.0).expect("three pairs");
        assert_eq!((certain.p_value(), certain.half_width(0.95)), (0.0, 0.0));
        let none = Effect::welch(&[2.0, 2.0], &[2.0, 2.0], 0.0).expect("two samples");
        assert_eq!((none.p_value(), none.freedom), (1.0, 2.0));
        // Whatever their number: all were rounded alike.
        for n in [3, 30] {
            let coarse = Effect::paired(&vec![0.1; n], 0.05).expect("pairs");
            let variance = 2.0 * 0.05_f64.powi(2) * (1.0 + 1.0 / n as f64);
            assert!((coarse.standard_error - variance.sqrt()).abs() < 1e-12);
            // Only the repetitions' part of the variance is estimated.
            let freedom = (n - 1) as f64 * (n as f64 + 1.0).powi(2);
            assert!((coarse.freedom - freedom.min(FREEDOM_MOST)).abs() < 1e-6, "{coarse:?}");
        }
        let coarse = Effect::welch(&[0.1, 0.1], &[0.2, 0.2], 0.05).expect("two samples");
        assert!((coarse.standard_error - 0.05 * 3_f64.sqrt()).abs() < 1e-12);
        let one = Effect::of_one(&[0.1, 0.1], 0.05).expect("two values");
        assert!((one.standard_error - 0.05 * 1.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn more_repetitions_reduce_the_spread_and_not_the_rounding() {
        let few = Effect::paired(&[0.08, 0.10, 0.12], 0.01).expect("three pairs");
        let many = few.with_repetitions(12);
        let squares = [few, many].map(|effect| effect.standard_error.powi(2));
        assert!((squares[0] - (4e-4 / 3.0 + 2e-4)).abs() < 1e-12, "{squares:?}");
        assert!((squares[1] - (4e-4 / 12.0 + 2e-4)).abs() < 1e-12, "{squares:?}");
        let back = many.with_repetitions(3);
        assert!((back.freedom - few.freedom).abs() < 1e-9, "{back:?}");
        // A pooled error replaces the spread alone.
        let pooled = few.with_error(PooledError { variance: 4e-4, freedom: 2.0 });
        assert!((pooled.standard_error - few.standard_error).abs() < 1e-12);
    }

    #[test]
    fn one_repetition_has_no_bounds() {
        assert_eq!(Effect::paired(&[0.3], 0.0), None);
        assert_eq!(Effect::welch(&[0.3], &[0.1, 0.2], 0.0), None);
    }

    proptest! {
        #[test]
        fn units_do_not_change_a_ratio(
            pairs in prop::collection::vec((1.0..100.0_f64, 1.0..100.0_f64), 2..10),
            unit in 0.001..1000.0_f64,
        ) {
            let of = |unit: f64| {
                let logs: Vec<f64> =
                    pairs.iter().map(|(a, b)| (a * unit).ln() - (b * unit).ln()).collect();
                Effect::paired(&logs, 0.0).expect("two pairs")
            };
            let (plain, scaled) = (of(1.0), of(unit));
            prop_assert!((plain.value - scaled.value).abs() < 1e-9);
            prop_assert!((plain.standard_error - scaled.standard_error).abs() < 1e-9);
        }

        #[test]
        fn exchanging_the_samples_turns_the_sign(
            ours in prop::collection::vec(1.0..100.0_f64, 2..10),
            theirs in prop::collection::vec(1.0..100.0_f64, 2..10),
        ) {
            let there = Effect::welch(&ours, &theirs, 0.0).expect("two samples");
            let back = Effect::welch(&theirs, &ours, 0.0).expect("two samples");
            prop_assert!((there.value + back.value).abs() < 1e-9);
            prop_assert!((there.p_value() - back.p_value()).abs() < 1e-9);
            prop_assert!(there.freedom >= (ours.len().min(theirs.len()) - 1) as f64 - 1e-9);
        }
    }
}
