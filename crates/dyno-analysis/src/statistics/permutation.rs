//! Permutation tests: p-values from relabelling, without a distribution.

use dyno_units::RandomStream;

use super::describe::mean;

/// Relabellings tried one by one; above this, [`DRAWS`] are drawn.
const EXACT_MAX: u64 = 20_000;
/// Of a Monte-Carlo test.
const DRAWS: u32 = 9_999;

/// Two-sided p-value of "no effect" within pairs: the share of the 2ⁿ sign flips whose mean is at
/// least as far from zero (Fisher 1935). At least 2¹⁻ⁿ: 0.25 for 3, 0.0625 for 5, 0.002 for 10.
/// Exact up to 14 pairs; then Monte Carlo with (b + 1) / (m + 1) (Davison and Hinkley 1997).
pub fn sign_flip_p(differences: &[f64], random: &mut RandomStream) -> f64 {
    let observed = threshold_of(differences.iter().sum::<f64>());
    let flipped = |signs: &mut dyn FnMut(usize) -> bool| {
        let signed = |(i, d): (usize, &f64)| if signs(i) { -d } else { *d };
        differences.iter().enumerate().map(signed).sum::<f64>().abs() >= observed
    };
    let n = differences.len() as u32;
    if n < 15 {
        let all = 1_u64 << n;
        let extreme = (0..all).filter(|mask| flipped(&mut |i| mask >> i & 1 == 1)).count();
        return extreme as f64 / all as f64;
    }
    let extreme = (0..DRAWS).filter(|_| flipped(&mut |_| random.below(2) == 1)).count();
    (extreme + 1) as f64 / f64::from(DRAWS + 1)
}

/// Two-sided p-value of "no effect" for two samples: the share of dealings with means at least as
/// far apart (Pitman 1937). Exact up to 20 000 ways; then Monte Carlo with (b + 1) / (m + 1).
pub fn two_sample_p(ours: &[f64], theirs: &[f64], random: &mut RandomStream) -> f64 {
    let mut pool: Vec<f64> = ours.iter().chain(theirs).copied().collect();
    let center = mean(&pool);
    // Without the pooled mean, one group's sum gives the distance of the means.
    pool.iter_mut().for_each(|value| *value -= center);
    let observed = threshold_of(pool[..ours.len()].iter().sum());
    if combinations(pool.len() as u64, ours.len() as u64) <= EXACT_MAX {
        let (mut extreme, mut all) = (0_u64, 0_u64);
        each_subset_sum(&pool, ours.len(), 0.0, &mut |sum| {
            all += 1;
            extreme += u64::from(sum.abs() >= observed);
        });
        return extreme as f64 / all as f64;
    }
    let mut is_extreme = |_: &u32| {
        random.shuffle(&mut pool);
        pool[..ours.len()].iter().sum::<f64>().abs() >= observed
    };
    let extreme = (0..DRAWS).filter(&mut is_extreme).count();
    (extreme + 1) as f64 / f64::from(DRAWS + 1)
}

/// The observed statistic, less a rounding error.
fn threshold_of(statistic: f64) -> f64 {
    statistic.abs() * (1.0 - 1e-9) - 1e-300
}

/// Saturating.
fn combinations(n: u64, k: u64) -> u64 {
    let k = k.min(n - k);
    (0..k).fold(1_u64, |ways, i| ways.saturating_mul(n - i) / (i + 1))
}

fn each_subset_sum(values: &[f64], take: usize, sum: f64, visit: &mut dyn FnMut(f64)) {
    if take == 0 {
        return visit(sum);
    }
    for first in 0..=values.len() - take {
        each_subset_sum(&values[first + 1..], take - 1, sum + values[first], visit);
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::*;

    #[track_caller]
    fn check_pairs(differences: &[f64], expected: f64) {
        let p = sign_flip_p(differences, &mut Seed(1).stream());
        assert!((p - expected).abs() < 1e-12, "{p}");
    }

    #[track_caller]
    fn check_samples(ours: &[f64], theirs: &[f64], expected: f64) {
        let p = two_sample_p(ours, theirs, &mut Seed(1).stream());
        assert!((p - expected).abs() < 1e-12, "{p}");
    }

    #[test]
    fn sign_flips_of_small_samples() {
        check_pairs(&[1.0, 2.0, 3.0], 0.25);
        check_pairs(&[0.1, 0.1, 0.1, 0.1, 0.1], 0.0625);
        // ±1 ±2 −3: sums 0 (twice), ±2, ±4, ±6; observed 0.
        check_pairs(&[1.0, 2.0, -3.0], 1.0);
        // Sums of ±1 ±2 ±4: ±1, ±3, ±5, ±7; observed 5.
        check_pairs(&[-1.0, 2.0, 4.0], 0.5);
        check_pairs(&[0.0, 0.0, 0.0], 1.0);
    }

    #[test]
    fn dealings_of_small_samples() {
        // Of C(6, 3) = 20 dealings only this one and its mirror are as far apart.
        check_samples(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0], 0.1);
        check_samples(&[1.0, 2.0], &[1.0, 2.0], 1.0);
        // {1, 3} against {2, 4}: of 6 dealings all but {1, 4} and {2, 3} differ by at least 1.
        check_samples(&[1.0, 3.0], &[2.0, 4.0], 4.0 / 6.0);
    }

    #[test]
    fn monte_carlo_agrees_with_theory() {
        let p = sign_flip_p(&[1.0; 20], &mut Seed(1).stream());
        assert!(p <= 2.0 / 10_000.0 && p > 0.0, "{p}");
        // 40 alternating differences cancel.
        let balanced: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(sign_flip_p(&balanced, &mut Seed(1).stream()), 1.0);
        let low: Vec<f64> = (0..15).map(f64::from).collect();
        let high: Vec<f64> = (0..15).map(|i| f64::from(i) + 1.0).collect();
        // Welch gives p = 0.544; so many values must come close.
        let p = two_sample_p(&low, &high, &mut Seed(1).stream());
        assert!((p - 0.544).abs() < 0.04, "{p}");
    }

    #[test]
    fn combinations_are_counted() {
        assert_eq!(combinations(6, 3), 20);
        assert_eq!(combinations(20, 10), 184_756);
        assert_eq!(combinations(4, 0), 1);
    }
}
