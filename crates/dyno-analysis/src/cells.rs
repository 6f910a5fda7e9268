//! Estimates of one variant at one step over all repetitions.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::StepSummary;
use dyno_units::{Metric, MetricId, Unit};

use crate::compare::{Levels, resolution};
use crate::facts::{Mean, NoBounds, WIDEST_BOUNDS};
use crate::join::Joined;
use crate::metrics::{self, Statistic, committed, committed_of, merged, response_statistics};
use crate::numbers::unit_of;
use crate::statistics::{Rule, bounds_of_geometric_mean, bounds_of_mean, geometric_mean, mean};
use crate::time;
use crate::{Cell, Estimate};

pub(crate) struct Measured {
    pub(crate) variant: usize,
    pub(crate) step: usize,
    pub(crate) block: u32,
    /// Errors say why there is none.
    pub(crate) values: BTreeMap<MetricId, Result<f64, String>>,
    pub(crate) committed: u64,
    /// In the order of the workload.
    pub(crate) kinds: Vec<KindMeasured>,
}

pub(crate) struct KindMeasured {
    pub(crate) name: String,
    /// Throughput, and response times if it committed.
    pub(crate) values: BTreeMap<MetricId, f64>,
}

impl Measured {
    pub(crate) fn value(&self, metric: MetricId) -> Option<f64> {
        self.values.get(&metric)?.as_ref().ok().copied()
    }
}

/// Of every finished trial, in order.
pub(crate) fn measure_all(joined: &Joined<'_>) -> Vec<Measured> {
    let all = joined.measured_steps().filter_map(|(trial, step, summary)| {
        Some(Measured {
            variant: trial.variant,
            step,
            block: trial.block,
            values: joined.source(trial, step)?.values().collect(),
            committed: committed(summary),
            kinds: by_kind(summary),
        })
    });
    let mut all: Vec<Measured> = all.collect();
    without_partial_quantiles(&mut all);
    all
}

/// Removes a quantile of a variant at a step if some trials have too few observations: these are
/// the slow ones, and the rest would favour the variant.
fn without_partial_quantiles(all: &mut [Measured]) {
    let mut missing = BTreeMap::new();
    for one in all.iter() {
        for (metric, value) in one.values.iter().filter(|(id, _)| metrics::quantile(**id).is_some())
        {
            if let Err(why) = value {
                missing.insert((one.variant, one.step, *metric), why.clone());
            }
        }
    }
    for one in all {
        let (variant, step) = (one.variant, one.step);
        for (metric, value) in &mut one.values {
            if let (Ok(_), Some(why)) = (&*value, missing.get(&(variant, step, *metric))) {
                *value = Err(why.clone());
            }
        }
    }
}

fn by_kind(summary: &StepSummary) -> Vec<KindMeasured> {
    let mut kinds = Vec::new();
    for kind in &summary.kinds {
        let Some(response) = kind.response.decode() else { break };
        let rate = committed_of(kind) as f64 / summary.measured_s;
        let of = |(metric, statistic): (MetricId, Statistic)| {
            Some((metric, statistic.of(&response).ok()?))
        };
        let mut values = BTreeMap::from([(metrics::THROUGHPUT, rate)]);
        values.extend(response_statistics().filter_map(of));
        kinds.push(KindMeasured { name: kind.name.clone(), values });
    }
    kinds
}

/// The geometric mean, with bounds on the scale of logarithms, so that bounds stay positive and
/// ratios of estimates agree with effects. With a zero, [`estimate_arithmetic`], and says so.
pub(crate) fn estimate(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    estimate_resolved(values, unit, confidence, 0.0)
}

/// `resolution`: the instrument's, as a standard deviation of logarithms; bounds are no narrower.
pub(crate) fn estimate_resolved(
    values: Vec<f64>,
    unit: &str,
    confidence: f64,
    resolution: f64,
) -> Estimate {
    let Some(value) = geometric_mean(&values) else {
        return estimate_arithmetic(values, unit, confidence);
    };
    let bounds = bounds_of_geometric_mean(&values, confidence, resolution);
    let is_too_wide = bounds.is_some_and(|(low, high)| high / low > WIDEST_BOUNDS);
    let why = if bounds.is_none() { NoBounds::OneRepetition } else { NoBounds::TooWide };
    let bounds = bounds.filter(|_| !is_too_wide);
    described(values, unit, (value, Mean::Geometric), (bounds, why))
}

/// For values that are often zero, with Student's bounds, the lower one cut at zero.
pub(crate) fn estimate_arithmetic(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    let bounds = bounds_of_mean(&values, confidence).map(|(low, high)| (low.max(0.0), high));
    let value = mean(&values);
    described(values, unit, (value, Mean::Arithmetic), (bounds, NoBounds::OneRepetition))
}

/// Arithmetic for bytes in any unit (`B`, `KiB`, `MiB/s`), as they are often zero.
pub(crate) fn estimate_resource(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    match unit.trim_end_matches("/s").ends_with('B') {
        true => estimate_arithmetic(values, unit, confidence),
        false => estimate(values, unit, confidence),
    }
}

/// By the unit; `resolution` as in [`estimate_resolved`]. Intervals of shares end at the maximum.
pub(crate) fn estimate_metric(
    metric: &Metric,
    values: Vec<f64>,
    confidence: f64,
    resolution: f64,
) -> Estimate {
    let mut estimate = estimate_unbounded(metric, values, confidence, resolution);
    // A value beyond the maximum is an error of the measuring code, and stays visible.
    if let Some(most) = metric.at_most.filter(|most| estimate.max <= *most) {
        estimate.value = estimate.value.min(most);
        estimate.high = estimate.high.map(|high| high.min(most));
    }
    estimate
}

fn estimate_unbounded(
    metric: &Metric,
    values: Vec<f64>,
    confidence: f64,
    resolution: f64,
) -> Estimate {
    let unit = unit_of(metric);
    if metric.id == metrics::RESPONSE_MAX {
        return largest(values, unit);
    }
    if values.iter().any(|value| *value < 0.0) {
        return estimate_signed(values, unit, confidence);
    }
    match metric.unit {
        Unit::Bytes | Unit::BytesPerSecond => estimate_arithmetic(values, unit, confidence),
        _ => estimate_resolved(values, unit, confidence, resolution),
    }
}

/// Without bounds: those of a mean do not apply.
pub(crate) fn largest(values: Vec<f64>, unit: &str) -> Estimate {
    let value = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    described(values, unit, (value, Mean::Geometric), (None, NoBounds::Largest))
}

pub(crate) fn described(
    values: Vec<f64>,
    unit: &str,
    (value, mean): (f64, Mean),
    (bounds, why): (Option<(f64, f64)>, NoBounds),
) -> Estimate {
    Estimate {
        value,
        low: bounds.map(|(low, _)| low),
        high: bounds.map(|(_, high)| high),
        n: values.len() as u32,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        unit: unit.to_owned(),
        values,
        no_bounds: bounds.is_none().then_some(why),
        mean,
    }
}

/// For values that may be negative: arithmetic mean, Student's bounds.
pub(crate) fn estimate_signed(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    let bounds = bounds_of_mean(&values, confidence);
    let value = mean(&values);
    described(values, unit, (value, Mean::Arithmetic), (bounds, NoBounds::OneRepetition))
}

/// For each variant and step that a finished trial measured.
pub(crate) fn cells(joined: &Joined<'_>, measured: &[Measured], levels: &Levels<'_>) -> Vec<Cell> {
    let cells = joined.measured_cells();
    let cells =
        cells.map(|(variant, step, _)| (at(measured, variant, step), levels.of_cells(variant)));
    cells.map(|(here, rule)| cell(joined, &here, &rule)).collect()
}

pub(crate) fn at(measured: &[Measured], variant: usize, step: usize) -> Vec<&Measured> {
    measured.iter().filter(|m| (m.variant, m.step) == (variant, step)).collect()
}

/// Values at each of these steps of the variant's trials that have all of them, by block.
pub(crate) fn by_block(
    measured: &[Measured],
    variant: usize,
    steps: &[usize],
    metric: MetricId,
) -> Vec<(u32, Vec<f64>)> {
    let own = || measured.iter().filter(|m| m.variant == variant);
    let blocks: BTreeSet<u32> = own().map(|m| m.block).collect();
    let of = |block: u32| {
        let value =
            |step: &usize| own().find(|m| (m.step, m.block) == (*step, block))?.value(metric);
        Some((block, steps.iter().map(value).collect::<Option<Vec<f64>>>()?))
    };
    blocks.into_iter().filter_map(of).collect()
}

fn cell(joined: &Joined<'_>, here: &[&Measured], rule: &Rule) -> Cell {
    let (variant, step) = (here[0].variant, here[0].step);
    let mut cell = Cell { variant, step, ..Cell::default() };
    let committed_least = here.iter().map(|m| m.committed).min().unwrap_or(0);
    for metric in joined.metrics.iter() {
        let id = metric.id;
        let values: Vec<f64> = here.iter().filter_map(|m| m.value(id)).collect();
        if values.is_empty() {
            let reason = here.iter().find_map(|m| m.values.get(&id)?.as_ref().err());
            cell.absent.extend(reason.map(|reason| (id, reason.clone())));
        } else {
            let typical = geometric_mean(&values).unwrap_or(0.0);
            let resolution = resolution(id, &joined.steps[step], typical);
            cell.metrics.insert(id, estimate_metric(metric, values, rule.confidence, resolution));
            let few = metrics::quantile(id).and_then(|q| metrics::few_beyond(q, committed_least));
            cell.few_beyond.extend(few.map(|n| (id, n)));
        }
    }
    let trials = joined.trials.iter().filter(|trial| trial.variant == variant);
    let ended: Vec<(u32, &StepSummary)> =
        trials.filter_map(|trial| Some((trial.number, trial.step(step)?))).collect();
    let by_second = |(number, summary): &(u32, &StepSummary)| {
        time::judge(*number, &measured_seconds(summary), rule.threshold)
    };
    // A load that changes on purpose has no level.
    let is_steady_load = joined.steps[cell.step].stepped.is_none();
    let judged = ended.iter().filter(|(_, s)| s.search.is_none() && is_steady_load);
    cell.time = judged.map(by_second).collect();
    let summaries: Vec<&StepSummary> = ended.into_iter().map(|(_, summary)| summary).collect();
    for summary in &summaries {
        if let Some(how) = &summary.ended_by {
            *cell.ended_by.entry(how.clone()).or_default() += 1;
        }
        cell.settled.extend(summary.settled.clone());
        cell.missed += summary.missed;
        cell.retries += summary.retries;
        for kind in &summary.kinds {
            for (outcome, n) in &kind.outcomes {
                *cell.outcomes.entry(outcome.clone()).or_default() += n;
            }
            *cell.kinds.entry(kind.name.clone()).or_default() += committed_of(kind);
        }
    }
    cell.spectrum = spectrum(&summaries);
    cell
}

/// In whole seconds of the measurement phase.
pub(crate) fn measured_seconds(summary: &StepSummary) -> Vec<f64> {
    let intervals = &summary.intervals;
    let is_whole =
        |start_s: f64| start_s >= -1e-9 && start_s + 1.0 <= summary.measured_s.round() + 1e-9;
    let seconds = intervals.start_s.iter().zip(&intervals.throughput);
    seconds.filter(|(start_s, _)| is_whole(**start_s)).map(|(_, value)| *value).collect()
}

/// Quantiles and response times in µs of all repetitions: ten points for each power of ten of 1 −
/// quantile, while an observation lies beyond, and the extremes. Empty without readable times.
fn spectrum(summaries: &[&StepSummary]) -> Vec<(f64, f64)> {
    let kinds = summaries.iter().flat_map(|summary| &summary.kinds);
    let total = match merged(kinds.map(|kind| &kind.response)) {
        Ok(total) if !total.is_empty() => total,
        _ => return Vec::new(),
    };
    let mut quantiles = vec![0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.95];
    quantiles.extend((1..=50).map(|i| 1.0 - 10_f64.powf(-f64::from(i) / 10.0)));
    quantiles.retain(|q| (1.0 - q) * total.len() as f64 >= 1.0);
    quantiles.push(1.0);
    quantiles.sort_by(f64::total_cmp);
    let at = |q: f64| match q {
        0.0 => total.min(),
        1.0 => total.max(),
        _ => total.value_at_quantile(q),
    };
    quantiles.into_iter().map(|q| (q, at(q) as f64 / 1e3)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(variant: usize, p999: Result<f64, String>) -> Measured {
        Measured {
            variant,
            step: 0,
            block: 1,
            values: BTreeMap::from([
                (metrics::THROUGHPUT, Ok(100.0)),
                (metrics::RESPONSE_P999, p999),
            ]),
            committed: 100,
            kinds: Vec::new(),
        }
    }

    #[test]
    fn a_quantile_that_slow_trials_lack_is_not_that_of_the_others() {
        let few = || Err("too few".to_owned());
        let mut all = vec![
            measured(0, Ok(5.0)),
            measured(0, few()),
            measured(1, Ok(7.0)),
            measured(1, Ok(8.0)),
        ];
        without_partial_quantiles(&mut all);
        let p999: Vec<_> = all.iter().map(|one| one.value(metrics::RESPONSE_P999)).collect();
        assert_eq!(p999, [None, None, Some(7.0), Some(8.0)]);
        assert_eq!(all[0].values[&metrics::RESPONSE_P999], few());
        assert!(all.iter().all(|one| one.value(metrics::THROUGHPUT) == Some(100.0)));
    }

    #[test]
    fn the_interval_of_a_share_ends_at_the_whole() {
        use dyno_units::{Direction::Higher, metric};
        let recall = metric("x.recall", Unit::Number, Higher, "recall", "x").at_most(1.0);
        let plain = metric("x.ratio", Unit::Number, Higher, "ratio", "x");
        let check = |metric: &Metric, values: &[f64], high: &dyn Fn(f64) -> bool| {
            let estimate = estimate_metric(metric, values.to_vec(), 0.95, 0.0);
            let (low, found) = (estimate.low.unwrap(), estimate.high.unwrap());
            assert!(
                low <= estimate.value && estimate.value <= found && high(found),
                "{estimate:?}"
            );
        };
        check(&recall, &[0.90, 0.97, 0.999], &|high| high == 1.0);
        check(&recall, &[0.90, 0.97, 1.0], &|high| high == 1.0);
        check(&recall, &[1.0, 1.0, 1.0], &|high| high == 1.0);
        check(&recall, &[0.50, 0.51, 0.52], &|high| high < 0.56);
        // Only shares are bounded, and a share above its maximum stays visible.
        check(&plain, &[0.90, 0.97, 0.999], &|high| high > 1.0);
        check(&recall, &[0.90, 0.97, 1.2], &|high| high > 1.0);
    }

    #[test]
    fn a_zero_among_bytes_does_not_change_the_estimate() {
        // A geometric mean would be almost nothing with 1 byte, and not exist with 0.
        let of =
            |first: f64| estimate_resource(vec![first, first, first, 1475.0, 593.0], "B", 0.95);
        let (zero, one) = (of(0.0), of(1.0));
        assert_eq!(zero.mean, Mean::Arithmetic);
        assert!(
            (zero.value - 413.6).abs() < 1e-9 && (one.value - zero.value).abs() < 1.0,
            "{one:?}"
        );
    }
}
