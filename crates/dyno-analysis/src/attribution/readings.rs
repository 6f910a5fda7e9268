//! Totals of readings over the measured time.

use dyno_record::StepSummary;

use dyno_units::reading::fits;

/// Index, start and length of the measurement phase's intervals.
pub(crate) fn measured_intervals(summary: &StepSummary) -> Vec<(usize, f64, f64)> {
    let starts = &summary.intervals.start_s;
    let length = |idx: usize| {
        let end = starts.get(idx + 1).copied().unwrap_or(summary.measured_s);
        (end - starts[idx]).clamp(0.0, 1.5)
    };
    let all = (0..starts.len()).filter(|&idx| starts[idx] >= -1e-9);
    all.map(|idx| (idx, starts[idx], length(idx))).filter(|(.., s)| *s > 0.0).collect()
}

/// Weighted by the intervals' lengths; the error says why there is none.
pub(crate) fn mean_rate(summary: &StepSummary, reading: &str) -> Result<f64, String> {
    let missing = || format!("`{reading}` was not recorded");
    let column = summary.readings.get(reading).ok_or_else(missing)?;
    let (mut sum, mut seconds) = (0.0, 0.0);
    for (idx, _, length) in measured_intervals(summary) {
        if let Some(value) = column.get(idx).copied().flatten() {
            sum += value * length;
            seconds += length;
        }
    }
    if seconds <= 0.0 {
        return Err(format!("`{reading}` has no value in the measured time"));
    }
    Ok(sum / seconds)
}

/// Sum over readings that fit a pattern; the error says why there is none.
pub(crate) fn mean_rate_of_all(summary: &StepSummary, pattern: &str) -> Result<f64, String> {
    let names = summary.readings.keys().filter(|name| fits(pattern, name));
    let rates: Vec<f64> = names.filter_map(|name| mean_rate(summary, name).ok()).collect();
    if rates.is_empty() {
        return Err(format!("`{pattern}` was not recorded"));
    }
    Ok(rates.iter().sum())
}

/// With the middle of their intervals, in seconds.
pub(crate) fn measured_values(summary: &StepSummary, reading: &str) -> Vec<(f64, f64)> {
    let Some(column) = summary.readings.get(reading) else { return Vec::new() };
    let value = |(idx, start, length): (usize, f64, f64)| {
        Some((start + length / 2.0, column.get(idx).copied().flatten()?))
    };
    measured_intervals(summary).into_iter().filter_map(value).collect()
}
