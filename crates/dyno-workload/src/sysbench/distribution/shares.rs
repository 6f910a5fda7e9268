//! Intended shares of items in each distribution, by formulas independent of the drawing code.

use std::sync::Arc;

use crate::skew::{DrawnKeys, KeyBins};

use super::{Distribution, Shape, density, integral};

/// Uniform draws whose mean is summed exactly; beyond, cancellation leaves too few digits.
const EXACT_MOST: u32 = 16;

/// Terms of Zipf's law that are summed one by one.
const DIRECT: u64 = 100;

impl Distribution {
    pub(crate) fn counted(&self) -> Arc<DrawnKeys> {
        DrawnKeys::new(KeyBins::of_neighbours(self.n, |item| self.share_before(item)))
    }

    /// The share of the draws that go to the items before this one, from 0 to 1.
    pub(crate) fn share_before(&self, item: u64) -> f64 {
        if item >= self.n {
            return 1.0;
        }
        let (place, n) = (item as f64, self.n as f64);
        match self.shape {
            Shape::Uniform => place / n,
            Shape::Gaussian { iterations } => bell_below(place / n, iterations),
            Shape::Special { iterations, bell_share, band, band_start } => {
                // Of the draws of the bell the last item gets none but by rounding.
                let bell = bell_below(place / (n - 1.0).max(1.0), iterations);
                let hot = ((place - band_start) / band).clamp(bell_share, 1.0) - bell_share;
                bell_share * bell + hot
            }
            Shape::Pareto { power } => (place / n).powf(1.0 / power),
            Shape::Zipfian(zipfian) => {
                zipf_sum(item, zipfian.exponent) / zipf_sum(self.n, zipfian.exponent)
            }
        }
    }
}

/// The probability that the mean of `n` uniform draws is below `mean`: Irwin and Hall's law; for many
/// draws the normal law with Edgeworth's first correction.
fn bell_below(mean: f64, n: u32) -> f64 {
    if mean > 0.5 {
        // It is symmetric, and the sum is short on this side.
        return 1.0 - bell_below(1.0 - mean, n);
    }
    let draws = f64::from(n);
    if n <= EXACT_MOST {
        let sum = mean.max(0.0) * draws;
        let mut below = 0.0;
        // (-1)^j C(n, j) / n! = (-1)^j / (j! (n - j)!)
        for j in 0..=(sum as u32).min(n) {
            let mut term = if j % 2 == 0 { 1.0 } else { -1.0 };
            (1..=j).chain(1..=n - j).for_each(|factor| term /= f64::from(factor));
            below += term * (sum - f64::from(j)).powi(n as i32);
        }
        return below.clamp(0.0, 1.0);
    }
    let z = (mean - 0.5) * (12.0 * draws).sqrt();
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let excess = -1.2 / draws;
    (normal_below(z) - density * excess / 24.0 * (z * z * z - 3.0 * z)).clamp(0.0, 1.0)
}

/// The normal law to 1.5e-7 (Abramowitz and Stegun 7.1.26); `z` at most 0.
fn normal_below(z: f64) -> f64 {
    let x = -z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let coefficients =
        [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let polynomial = coefficients.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    0.5 * polynomial * (-x * x).exp()
}

/// 1 + 2^-e + … + n^-e, its tail by the formula of Euler and Maclaurin.
fn zipf_sum(n: u64, exponent: f64) -> f64 {
    let direct: f64 = (1..=n.min(DIRECT)).map(|k| density(k as f64, exponent)).sum();
    if n <= DIRECT {
        return direct;
    }
    let (first, last) = (DIRECT as f64, n as f64);
    let (at_first, at_last) = (density(first, exponent), density(last, exponent));
    direct + integral(last, exponent) - integral(first, exponent)
        + (at_last - at_first) / 2.0
        + exponent * (at_first / first - at_last / last) / 12.0
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::super::DistributionSpec;
    use super::*;

    const ALL: [DistributionSpec; 8] = [
        DistributionSpec::Uniform,
        DistributionSpec::Gaussian { iterations: 12 },
        DistributionSpec::Gaussian { iterations: 40 },
        DistributionSpec::Special { iterations: 12, band_pct: 1.0, hot_pct: 75.0 },
        DistributionSpec::Pareto { h: 0.2 },
        DistributionSpec::Zipfian { exponent: 0.8 },
        DistributionSpec::Zipfian { exponent: 1.0 },
        DistributionSpec::Zipfian { exponent: 1.4 },
    ];

    fn row_of(
        intended: DistributionSpec,
        drawn: DistributionSpec,
        n_items: u64,
    ) -> crate::AuditRow {
        let keys = intended.over(n_items).counted();
        let (client, drawn) = (keys.client(), drawn.over(n_items));
        let mut random = Seed(3).stream();
        (0..200_000).for_each(|_| client.note(drawn.draw(&mut random)));
        keys.audit_row("rows")
    }

    #[test]
    fn what_is_drawn_is_the_intended_distribution() {
        for spec in ALL {
            for n_items in [1, 2, 77, 10_000, 1_000_000_007] {
                let row = row_of(spec, spec, n_items);
                assert!(row.pass, "{spec:?} over {n_items}: {row:?}");
            }
        }
    }

    #[test]
    fn another_distribution_is_found() {
        for (idx, intended) in ALL.into_iter().enumerate() {
            for drawn in &ALL[idx + 1..] {
                let row = row_of(intended, *drawn, 10_000);
                assert!(!row.pass, "{intended:?} passes for {drawn:?}: {row:?}");
            }
        }
    }

    #[test]
    fn laws_have_their_known_values() {
        let check = |value: f64, expected: f64| {
            assert!((value - expected).abs() < 2e-6, "{value} instead of {expected}");
        };
        check(bell_below(0.25, 1), 0.25);
        check(bell_below(0.25, 2), 0.125);
        check(bell_below(0.75, 2), 0.875);
        check(bell_below(1.0 / 3.0, 3), 1.0 / 6.0);
        check(bell_below(0.5, 12), 0.5);
        check(bell_below(0.5, 900), 0.5);
        // Both ways of reckoning, where one ends and the other begins.
        let exact = bell_below(0.4, EXACT_MOST);
        let z = -0.1 * (12.0 * f64::from(EXACT_MOST)).sqrt();
        assert!((normal_below(z) - exact).abs() < 3e-3, "{exact}");
        check(normal_below(-1.0), 0.158_655_3);
        // The harmonic number of 1 000 000, and ζ(2) less its tail.
        check(zipf_sum(1_000_000, 1.0), 14.392_726_7);
        check(zipf_sum(1_000_000, 2.0), 1.644_933_1);
    }
}
