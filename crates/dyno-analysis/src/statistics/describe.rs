//! A sample's mean, variance, and bounds of the mean.

use super::effect::Effect;
use super::student::t_quantile;

/// 0 for an empty sample.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    // By distances from the first value: exact if all are equal.
    let first = values[0];
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64
}

/// Unbiased, Σ(x − x̄)² / (n − 1); 0 for fewer than two values.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    squares / (values.len() - 1) as f64
}

/// 0 for an empty sample. NaN comes last.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    let (below, &mut middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return middle;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(middle);
    0.5 * (lower + middle)
}

/// 1.4826 times the median distance from `center`: a standard deviation without outliers.
pub fn robust_deviation(values: &[f64], center: f64) -> f64 {
    let distances: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    1.4826 * median(&distances)
}

/// `None` unless all values are above zero.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|&value| value <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    Some(mean(&logs).exp())
}

/// By Student (1908): x̄ ± t(n − 1) · s / √n. `None` for fewer than two values.
pub fn bounds_of_mean(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let half_width = t_quantile(0.5 + confidence / 2.0, n - 1.0) * (variance(values) / n).sqrt();
    let center = mean(values);
    Some((center - half_width, center + half_width))
}

/// [`bounds_of_mean`] of the logarithms, turned back: above zero, and at equal ratios from the
/// geometric mean. `None` for fewer than two values, or unless all are above zero. `resolution` is
/// a standard deviation of logarithms: see [`Effect::paired`].
pub fn bounds_of_geometric_mean(
    values: &[f64],
    confidence: f64,
    resolution: f64,
) -> Option<(f64, f64)> {
    if values.iter().any(|&value| value <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (low, high) = Effect::of_one(&logs, resolution)?.bounds(confidence);
    Some((low.exp(), high.exp()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), 5.0);
        assert!((variance(&values) - 32.0 / 7.0).abs() < 1e-12);
        assert!((geometric_mean(&[1.0, 10.0, 100.0]).expect("positive") - 10.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!((mean(&[]), variance(&[3.0])), (0.0, 0.0));
    }

    #[test]
    fn bounds_as_in_a_textbook() {
        // 10, 12, 14: mean 12, s = 2, t(2) = 4.303, half width 4.303 · 2 / √3 = 4.968.
        let (low, high) = bounds_of_mean(&[10.0, 12.0, 14.0], 0.95).expect("three values");
        assert!((low - 7.032).abs() < 0.001 && (high - 16.968).abs() < 0.001, "{low} {high}");
        assert_eq!(bounds_of_mean(&[10.0], 0.95), None);
    }

    #[test]
    fn bounds_of_a_geometric_mean_are_ratios() {
        // ln 1, ln 10, ln 100: mean ln 10, s = ln 10, t(2) = 4.3027: 10^(1 ± 4.3027 / √3).
        let (low, high) =
            bounds_of_geometric_mean(&[1.0, 10.0, 100.0], 0.95, 0.0).expect("positive");
        let reach = 10_f64.powf(4.302_653 / 3_f64.sqrt());
        assert!((high / 10.0 / reach - 1.0).abs() < 1e-5, "{high}");
        assert!((10.0 / low / reach - 1.0).abs() < 1e-5, "{low}");
        assert_eq!(bounds_of_geometric_mean(&[1.0, 0.0, 2.0], 0.95, 0.0), None);
        assert_eq!(bounds_of_geometric_mean(&[1.0], 0.95, 0.0), None);
    }

    proptest! {
        #[test]
        fn the_geometric_mean_is_inside_its_bounds(
            values in prop::collection::vec(1e-3..1e6_f64, 2..20),
        ) {
            let (low, high) = bounds_of_geometric_mean(&values, 0.95, 0.0).expect("two values");
            let center = geometric_mean(&values).expect("positive");
            prop_assert!(0.0 < low && low <= center * (1.0 + 1e-9) && center <= high * (1.0 + 1e-9));
        }

        #[test]
        fn mean_is_between_the_extremes(values in prop::collection::vec(1e-3..1e6_f64, 1..20)) {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let center = mean(&values);
            prop_assert!(least * (1.0 - 1e-12) <= center && center <= most * (1.0 + 1e-12));
        }

        #[test]
        fn bounds_shift_and_scale_with_the_values(
            values in prop::collection::vec(1.0..100.0_f64, 2..10),
            shift in -50.0..50.0_f64,
            scale in 0.1..10.0_f64,
        ) {
            let moved: Vec<f64> = values.iter().map(|value| value * scale + shift).collect();
            let (low, high) = bounds_of_mean(&values, 0.95).expect("two values");
            let (moved_low, moved_high) = bounds_of_mean(&moved, 0.95).expect("two values");
            prop_assert!((moved_low - (low * scale + shift)).abs() < 1e-6);
            prop_assert!((moved_high - (high * scale + shift)).abs() < 1e-6);
        }
    }
}
