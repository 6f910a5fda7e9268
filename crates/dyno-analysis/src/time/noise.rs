//! Noise that remembers: first-order autoregression.

use crate::statistics::mean;

/// The correlation of each value with the one `lag` before it; 0 of a constant series.
pub(crate) fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    if squares <= 0.0 || lag >= values.len() {
        return 0.0;
    }
    let products = values.iter().zip(&values[lag..]).map(|(a, b)| (a - center) * (b - center));
    products.sum::<f64>() / squares
}

/// The coefficient of an AR(1) process, between 0 and 0.95, with the first-order correction of its
/// bias, (1 + 4 φ) / n for a mean that is estimated too (Marriott and Pope 1954), `n_means` of
/// them.
pub(super) fn memory(residuals: &[f64], n_means: usize) -> f64 {
    let n = residuals.len() as f64;
    let raw = autocorrelation(residuals, 1);
    (raw + n_means as f64 * (1.0 + 4.0 * raw.max(0.0)) / n).clamp(0.0, 0.95)
}

/// The long-run variance of an AR(1) process with this variance: what the variance of a mean of n
/// values is n times of.
pub(super) fn long_run_variance(residuals: &[f64], n_means: usize) -> f64 {
    let freedom = residuals.len().saturating_sub(n_means).max(1) as f64;
    let variance = residuals.iter().map(|r| r * r).sum::<f64>() / freedom;
    // Taking the memory for half a standard error longer than it seems keeps short series honest.
    let memory = memory(residuals, n_means);
    let error = ((1.0 - memory * memory) / residuals.len().max(1) as f64).sqrt();
    let memory = (memory + 0.5 * error).min(0.95);
    variance * (1.0 + memory) / (1.0 - memory)
}

/// The probability that the largest distance of a Brownian bridge from zero exceeds `x`
/// (Kolmogorov 1933): 2 Σ (−1)^(k+1) exp(−2 k² x²).
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

/// The probability that |Z| of the normal distribution exceeds `z`: Student's with many degrees of
/// freedom.
pub(super) fn normal_p(z: f64) -> f64 {
    crate::statistics::t_two_sided_p(z, 1e6)
}
