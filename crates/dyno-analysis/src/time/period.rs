//! Periods, by autocorrelation.

use super::noise::{autocorrelation, memory, normal_p};
use super::{ALPHA, Period};
use crate::statistics::mean;

const TIMES_LEAST: usize = 4;
const WEAKEST: f64 = 0.2;

/// The shortest period that noise with memory does not explain, in `throughput` (with stalls, which
/// may recur) or in `residuals` (without stalls, slope and levels), whichever is stronger.
pub(super) fn period(throughput: &[f64], residuals: &[f64]) -> Option<Period> {
    let found = [period_of(throughput), period_of(residuals)];
    found.into_iter().flatten().max_by(|a, b| a.autocorrelation.total_cmp(&b.autocorrelation))
}

fn period_of(values: &[f64]) -> Option<Period> {
    let most = values.len() / TIMES_LEAST;
    let r: Vec<f64> = (0..=most + 1).map(|lag| autocorrelation(values, lag)).collect();
    let is_peak = |lag: &usize| r[*lag] > r[lag - 1] && r[*lag] >= r[lag + 1];
    let peaks: Vec<usize> = (2..=most).filter(is_peak).collect();
    let highest = peaks.iter().map(|lag| r[*lag]).fold(0.0, f64::max);
    // Multiples of a period peak as well; of similar peaks the shortest is the period.
    let lag = peaks.into_iter().find(|lag| r[*lag] >= 0.85 * highest)?;
    if r[lag] < WEAKEST {
        return None;
    }
    let p_value = p_value(values, lag, r[lag], most);
    (p_value < ALPHA).then_some(Period { every_s: lag as f64, autocorrelation: r[lag], p_value })
}

/// Of the highest autocorrelation of noise: Bartlett's (1946) variance for AR(1), (1 + φ²) / (1 −
/// φ²) / n, with φ after removing each phase's mean; times the number of lags (Bonferroni).
fn p_value(values: &[f64], lag: usize, r: f64, n_lags: usize) -> f64 {
    let phase_mean = |phase: usize| {
        let same: Vec<f64> = values.iter().skip(phase).step_by(lag).copied().collect();
        mean(&same)
    };
    let means: Vec<f64> = (0..lag).map(phase_mean).collect();
    let residuals: Vec<f64> =
        values.iter().enumerate().map(|(i, value)| value - means[i % lag]).collect();
    let memory = memory(&residuals, 1);
    let variance = (1.0 + memory * memory) / (1.0 - memory * memory) / values.len() as f64;
    (n_lags as f64 * normal_p(r / variance.sqrt()) / 2.0).min(1.0)
}
