//! Estimates: one variant at one step, all its repetitions.

use std::collections::BTreeMap;

use dyno_record::{
    EncodedHistogram, NO_WORKLOAD, OwnStepRecord, ProductFacts, SearchRecord, StepSummary,
    new_histogram,
};
use dyno_units::reading::known;
use hdrhistogram::Histogram;

use crate::attribution::readings::mean_rate;
use crate::compare::{Levels, resolution};
use crate::findings::{Mean, NoBounds, WIDEST_BOUNDS};
use crate::join::{Joined, JoinedTrial};
use crate::searches;
use crate::statistics::{Rule, bounds_of_geometric_mean, bounds_of_mean, geometric_mean, mean};
use crate::time;
use crate::{Cell, Estimate, Metric};

/// All metrics, in the order in which they are estimated.
pub(crate) const METRICS: [Metric; 15] = [
    Metric::RateAtLimit,
    Metric::ClientsAtLimit,
    Metric::StepTime,
    Metric::Throughput,
    Metric::ResponseMean,
    Metric::ResponseP50,
    Metric::ResponseP95,
    Metric::ResponseP99,
    Metric::ResponseP999,
    Metric::ResponseMax,
    Metric::ServiceP95,
    Metric::ServerCpuPerTransaction,
    Metric::GeneratorCpuPerStatement,
    Metric::DiskReadPerTransaction,
    Metric::DiskWrittenPerTransaction,
];

/// What one trial measured at one step, in numbers.
pub(crate) struct Measured {
    /// Index of the variant.
    pub(crate) variant: usize,
    /// Index of the step.
    pub(crate) step: usize,
    /// The block.
    pub(crate) block: u32,
    /// Values by metric, or why there is none.
    pub(crate) values: BTreeMap<Metric, Result<f64, String>>,
    /// Committed transactions.
    pub(crate) committed: u64,
    /// Each kind of transaction by itself, in the order of the workload.
    pub(crate) kinds: Vec<KindMeasured>,
}

/// One kind of transaction in one trial at one step.
pub(crate) struct KindMeasured {
    /// Its name.
    pub(crate) name: String,
    /// Throughput, and response times where it committed.
    pub(crate) values: BTreeMap<Metric, f64>,
}

/// What is told of a kind beside its throughput.
pub(crate) const KIND_METRICS: [Metric; 6] = [
    Metric::ResponseMean,
    Metric::ResponseP50,
    Metric::ResponseP95,
    Metric::ResponseP99,
    Metric::ResponseP999,
    Metric::ResponseMax,
];

impl Measured {
    /// Adds what a search found.
    fn add_found(&mut self, asked: Option<&SearchRecord>, summary: &StepSummary) {
        let (Some(asked), Some(search)) = (asked, &summary.search) else { return };
        let metric = searches::metric(asked);
        let why = || searches::why_absent(metric, search.lowest_broken);
        self.values.insert(metric, search.found.ok_or_else(why));
    }

    /// Adds how long a step took that ends by quota.
    fn add_step_time(&mut self, own: Option<&OwnStepRecord>, summary: &StepSummary) {
        if !own.is_some_and(|own| own.ends_by_quota) {
            return;
        }
        let unfinished = || "its quotas were not finished within its time limit".to_owned();
        let is_done = summary.ended_by.as_deref() == Some("quota");
        let value = is_done.then_some(summary.measured_s * 1e6).ok_or_else(unfinished);
        self.values.insert(Metric::StepTime, value);
    }

    /// Leaves only what can be known without load: nobody waited for a response. Where the server
    /// counts statements and not transactions, there is no throughput, and nothing is per transaction.
    fn keep_watched(&mut self, summary: &StepSummary) {
        let counts_transactions = !summary.kinds.is_empty();
        self.values.retain(|metric, value| match metric {
            Metric::Throughput => true,
            Metric::ServerCpuPerTransaction
            | Metric::DiskReadPerTransaction
            | Metric::DiskWrittenPerTransaction => counts_transactions && value.is_ok(),
            _ => false,
        });
        if counts_transactions {
            return;
        }
        if crate::attribution::uses::statements(summary) == 0 {
            self.values.remove(&Metric::Throughput);
        } else {
            let why = "this server counts statements, not transactions".to_owned();
            self.values.insert(Metric::Throughput, Err(why));
        }
    }

    /// The value of a metric, if it was measured.
    pub(crate) fn value(&self, metric: Metric) -> Option<f64> {
        self.values.get(&metric)?.as_ref().ok().copied()
    }
}

/// Reads the numbers out of every finished trial, in the order of the trials.
pub(crate) fn measure_all(joined: &Joined<'_>) -> Vec<Measured> {
    let mut all = Vec::new();
    for trial in &joined.trials {
        for step in 0..joined.steps.len() {
            if let Some(summary) = trial.step(step) {
                let variant = &joined.variants[trial.variant];
                let mut measured = measure(trial, step, summary);
                if variant.workload == NO_WORKLOAD {
                    measured.keep_watched(summary);
                }
                measured.add_found(joined.steps[step].search.as_ref(), summary);
                measured.add_step_time(joined.steps[step].own_of(variant), summary);
                all.push(measured);
            }
        }
    }
    all
}

fn measure(trial: &JoinedTrial<'_>, step: usize, summary: &StepSummary) -> Measured {
    let committed = committed(summary);
    let (kinds, response) = by_kind(summary);
    let service = merged(summary.kinds.iter().map(|kind| &kind.service));
    let server = trial.summary.map(|summary| summary.server.product_facts()).unwrap_or_default();
    let mut values = BTreeMap::new();
    values.insert(Metric::Throughput, Ok(committed as f64 / summary.measured_s));
    let is_apart = |metric: &Metric| {
        matches!(
            metric,
            Metric::Throughput | Metric::RateAtLimit | Metric::ClientsAtLimit | Metric::StepTime
        )
    };
    for metric in METRICS.into_iter().filter(|metric| !is_apart(metric)) {
        let value = match metric {
            Metric::ServerCpuPerTransaction => server_cpu(summary, &server, committed),
            Metric::GeneratorCpuPerStatement => generator_cpu(summary, &server),
            Metric::DiskReadPerTransaction => {
                disk_bytes(summary, known::DISK_READ_BYTES, committed)
            }
            Metric::DiskWrittenPerTransaction => {
                disk_bytes(summary, known::DISK_WRITE_BYTES, committed)
            }
            Metric::ServiceP95 => time(&service, metric),
            _ => time(&response, metric),
        };
        values.insert(metric, value);
    }
    Measured { variant: trial.variant, step, block: trial.block, values, committed, kinds }
}

/// Each kind by itself, and the response times of all together.
fn by_kind(summary: &StepSummary) -> (Vec<KindMeasured>, Result<Histogram<u64>, String>) {
    let mut kinds = Vec::new();
    let mut total = new_histogram();
    total.auto(true);
    for kind in &summary.kinds {
        let Some(response) = kind.response.decode() else { return (kinds, Err(unreadable())) };
        if total.add(&response).is_err() {
            return (kinds, Err(unreadable()));
        }
        let committed = kind.outcomes.get("committed").copied().unwrap_or(0);
        let rate = committed as f64 / summary.measured_s;
        let mut values = BTreeMap::from([(Metric::Throughput, rate)]);
        if !response.is_empty() {
            let is_known =
                |metric: &Metric| without_observation_beyond(response.len(), *metric).is_none();
            let known = KIND_METRICS.into_iter().filter(is_known);
            values.extend(known.map(|metric| (metric, statistic_us(&response, metric))));
        }
        kinds.push(KindMeasured { name: kind.name.clone(), values });
    }
    (kinds, Ok(total))
}

/// A statistic of the response times of all kinds together, in µs; none where nothing committed.
pub(crate) fn response_us(summary: &StepSummary, metric: Metric) -> Option<f64> {
    let response = merged(summary.kinds.iter().map(|kind| &kind.response));
    time(&response, metric).ok()
}

fn unreadable() -> String {
    "the record's histogram cannot be decoded".to_owned()
}

/// Committed transactions of all kinds.
pub(crate) fn committed(summary: &StepSummary) -> u64 {
    let of_kind = |kind: &dyno_record::KindSummary| kind.outcomes.get("committed").copied();
    summary.kinds.iter().filter_map(of_kind).sum()
}

fn merged<'a>(
    encoded: impl Iterator<Item = &'a EncodedHistogram>,
) -> Result<Histogram<u64>, String> {
    let mut total = new_histogram();
    total.auto(true);
    for one in encoded {
        let one = one.decode().ok_or_else(unreadable)?;
        total.add(&one).map_err(|_| unreadable())?;
    }
    Ok(total)
}

/// A statistic of a histogram, in µs.
fn time(histogram: &Result<Histogram<u64>, String>, metric: Metric) -> Result<f64, String> {
    let histogram = histogram.as_ref().map_err(Clone::clone)?;
    if histogram.is_empty() {
        return Err("no transaction committed".to_owned());
    }
    if let Some(why) = without_observation_beyond(histogram.len(), metric) {
        return Err(why);
    }
    Ok(statistic_us(histogram, metric))
}

/// Why a quantile of so many observations is none: no observation lies beyond it, so that it would be
/// the largest of them under another name.
fn without_observation_beyond(n: u64, metric: Metric) -> Option<String> {
    let quantile = metric.quantile()?;
    let least = (1.0 / (1.0 - quantile)).round();
    ((n as f64) < least).then(|| {
        format!("it needs at least {least} transactions in every trial, and one had only {n}")
    })
}

fn statistic_us(histogram: &Histogram<u64>, metric: Metric) -> f64 {
    let ns = match (metric.quantile(), metric) {
        (Some(quantile), _) => histogram.value_at_quantile(quantile) as f64,
        (None, Metric::ResponseMax) => histogram.max() as f64,
        (None, _) => histogram.mean(),
    };
    ns / 1e3
}

fn server_cpu(summary: &StepSummary, server: &ProductFacts, committed: u64) -> Result<f64, String> {
    let Some(cpu_s) = summary.server_cpu_s else {
        return Err(match (server.in_process, server.simulated) {
            (true, _) => "the database runs inside the load generator's own process",
            (_, true) => "there was no server: it was a simulation",
            _ => "the server's processes could not be watched from this machine",
        }
        .to_owned());
    };
    if committed == 0 {
        return Err("no transaction committed".to_owned());
    }
    Ok(cpu_s * 1e6 / committed as f64)
}

fn generator_cpu(summary: &StepSummary, server: &ProductFacts) -> Result<f64, String> {
    let statements = summary.reads + summary.writes + summary.others;
    let generator = &summary.generator;
    match (server.in_process, server.simulated) {
        (true, _) => {
            Err("the database does its work on the load generator's own threads".to_owned())
        }
        (_, true) => Err("there was no load generator: it was a simulation".to_owned()),
        _ if statements == 0 => Err("no statement was answered".to_owned()),
        _ => Ok((generator.cpu_user_s + generator.cpu_system_s) * 1e6 / statements as f64),
    }
}

/// The mean of a reading over the measured intervals, weighted by their length, times the measured
/// time, by transaction: as in the attribution.
fn disk_bytes(summary: &StepSummary, reading: &str, committed: u64) -> Result<f64, String> {
    let rate = mean_rate(summary, reading)?;
    if committed == 0 {
        return Err("no transaction committed".to_owned());
    }
    Ok(rate * summary.measured_s / committed as f64)
}

/// An estimate from these values: their geometric mean with bounds on the scale of logarithms, so
/// that bounds of what cannot be negative stay positive, and ratios of estimates are the effects
/// that are shown beside them. Where a value is zero there is no logarithm: then it is
/// [`estimate_arithmetic`], and says so.
pub(crate) fn estimate(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    estimate_resolved(values, unit, confidence, 0.0)
}

/// As [`estimate`], of values that the instrument tells no finer than `resolution`, a standard
/// deviation of their logarithms: the bounds are not narrower than it makes them.
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

/// An estimate of something that is often zero: the arithmetic mean, with Student's bounds, the lower
/// one cut at zero.
pub(crate) fn estimate_arithmetic(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    let bounds = bounds_of_mean(&values, confidence).map(|(low, high)| (low.max(0.0), high));
    let value = mean(&values);
    described(values, unit, (value, Mean::Arithmetic), (bounds, NoBounds::OneRepetition))
}

/// An estimate of a resource: of bytes, which are often zero, the arithmetic mean, in whatever unit they
/// are given (`B`, `KiB`, `MiB/s`).
pub(crate) fn estimate_resource(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    match unit.trim_end_matches("/s").ends_with('B') {
        true => estimate_arithmetic(values, unit, confidence),
        false => estimate(values, unit, confidence),
    }
}

/// The largest of all values: bounds of a mean would say nothing of it.
pub(crate) fn largest(values: Vec<f64>, unit: &str) -> Estimate {
    let value = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    described(values, unit, (value, Mean::Geometric), (None, NoBounds::Largest))
}

/// The estimate with what describes its values.
fn described(
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

/// An estimate of something that may be negative: the arithmetic mean with Student's bounds.
pub(crate) fn estimate_signed(values: Vec<f64>, unit: &str, confidence: f64) -> Estimate {
    let bounds = bounds_of_mean(&values, confidence);
    let value = mean(&values);
    described(values, unit, (value, Mean::Arithmetic), (bounds, NoBounds::OneRepetition))
}

/// The cells: one for each variant and step that a finished trial measured.
pub(crate) fn cells(joined: &Joined<'_>, measured: &[Measured], levels: &Levels<'_>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for variant in 0..joined.variants.len() {
        for step in 0..joined.steps.len() {
            let is_here = |m: &&Measured| (m.variant, m.step) == (variant, step);
            let here: Vec<&Measured> = measured.iter().filter(is_here).collect();
            if !here.is_empty() {
                cells.push(cell(joined, &here, &levels.of_cells(variant)));
            }
        }
    }
    cells
}

fn cell(joined: &Joined<'_>, here: &[&Measured], rule: &Rule) -> Cell {
    let (variant, step) = (here[0].variant, here[0].step);
    let mut cell = Cell {
        variant,
        step,
        metrics: BTreeMap::new(),
        absent: BTreeMap::new(),
        outcomes: BTreeMap::new(),
        missed: 0,
        retries: 0,
        kinds: BTreeMap::new(),
        spectrum: Vec::new(),
        time: Vec::new(),
        ended_by: BTreeMap::new(),
        settled: Vec::new(),
    };
    let is_sought = |metric: &Metric| here.iter().any(|m| m.values.contains_key(metric));
    for metric in METRICS.into_iter().filter(is_sought) {
        let values: Vec<f64> = here.iter().filter_map(|m| m.value(metric)).collect();
        if values.is_empty() {
            let reason = here.iter().find_map(|m| m.values.get(&metric)?.as_ref().err());
            cell.absent.insert(metric, reason.cloned().unwrap_or_default());
        } else {
            let typical = geometric_mean(&values).unwrap_or(0.0);
            let resolution = resolution(metric, &joined.steps[step], typical);
            let unit = metric.unit();
            let estimate = match metric {
                Metric::ResponseMax => largest(values, unit),
                Metric::DiskReadPerTransaction | Metric::DiskWrittenPerTransaction => {
                    estimate_arithmetic(values, unit, rule.confidence)
                }
                _ => estimate_resolved(values, unit, rule.confidence, resolution),
            };
            cell.metrics.insert(metric, estimate);
        }
    }
    let trials = joined.trials.iter().filter(|trial| trial.variant == variant);
    let ended: Vec<(u32, &StepSummary)> =
        trials.filter_map(|trial| Some((trial.number, trial.step(step)?))).collect();
    let by_second = |(number, summary): &(u32, &StepSummary)| {
        time::judge(*number, &measured_seconds(summary), rule.threshold)
    };
    // A load that changes on purpose keeps no level.
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
            let committed = kind.outcomes.get("committed").copied().unwrap_or(0);
            *cell.kinds.entry(kind.name.clone()).or_default() += committed;
        }
    }
    cell.spectrum = spectrum(&summaries);
    cell
}

/// Throughput in each whole second of the measure phase.
pub(crate) fn measured_seconds(summary: &StepSummary) -> Vec<f64> {
    let intervals = &summary.intervals;
    let is_whole =
        |start_s: f64| start_s >= -1e-9 && start_s + 1.0 <= summary.measured_s.round() + 1e-9;
    let seconds = intervals.start_s.iter().zip(&intervals.throughput);
    seconds.filter(|(start_s, _)| is_whole(**start_s)).map(|(_, value)| *value).collect()
}

/// Quantiles and response times in µs of all repetitions together: ten points for each power of
/// ten that 1 − quantile falls, as far as an observation lies beyond, and the extremes. Empty where
/// nothing committed or a histogram cannot be decoded.
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
