//! Noise that remembers: first-order autoregression.

use crate::statistics::mean;

/// 0 for a constant series.
pub(crate) fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    if squares <= 0.0 || lag >= values.len() {
        return 0.0;
    }
    let products = values.iter().zip(&values[lag..]).map(|(a, b)| (a - center) * (b - center));
    products.sum::<f64>() / squares
}

/// Coefficient of an AR(1) process, from 0 to 0.95, corrected to first order for its bias, (1 + 4
/// φ) / n for each of `n_means` estimated means (Marriott and Pope 1954).
pub(super) fn memory(residuals: &[f64], n_means: usize) -> f64 {
    let n = residuals.len() as f64;
    let raw = autocorrelation(residuals, 1);
    (raw + n_means as f64 * (1.0 + 4.0 * raw.max(0.0)) / n).clamp(0.0, 0.95)
}

/// Of an AR(1) process: n times the variance of a mean of n values.
pub(super) fn long_run_variance(residuals: &[f64], n_means: usize) -> f64 {
    let freedom = residuals.len().saturating_sub(n_means).max(1) as f64;
    let variance = residuals.iter().map(|r| r * r).sum::<f64>() / freedom;
    // Half a standard error more memory keeps short series honest.
    let memory = memory(residuals, n_means);
    let error = ((1.0 - memory * memory) / residuals.len().max(1) as f64).sqrt();
    let memory = (memory + 0.5 * error).min(0.95);
    variance * (1.0 + memory) / (1.0 - memory)
}

/// A Brownian bridge's maximum exceeds `x` (Kolmogorov 1933): 2 Σ (−1)^(k+1) exp(−2 k² x²).
pub(super) fn kolmogorov_p(x: f64) -> f64 {
    if x < 0.3 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        sign * (-2.0 * f64::from(k * k) * x * x).exp()
    };
    (2.0 * (1..=20).map(term).sum::<f64>()).clamp(0.0, 1.0)
}

/// That |Z| exceeds `z`: Student's with many degrees of freedom.
pub(super) fn normal_p(z: f64) -> f64 {
    crate::statistics::t_two_sided_p(z, 1e6)
}
