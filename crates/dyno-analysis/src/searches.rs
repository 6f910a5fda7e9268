//! Searches for the highest load under a limit: what each trial found, and how sure it is.

use dyno_record::{SearchRecord, SearchSummary, StepRecord};

use crate::join::Joined;
use crate::numbers::Unit as NumberUnit;
use crate::words::count;
use crate::{MetricId, ProbeFacts, StepSearch, TrialSearch, metrics};

pub(crate) fn step_search(step: &StepRecord) -> Option<StepSearch> {
    step.search.as_ref().map(|search| StepSearch {
        metric: metric(search),
        limit: search.limit.clone(),
        precision: search.precision,
    })
}

pub(crate) fn metric(search: &SearchRecord) -> MetricId {
    if search.sought == "clients" { metrics::CLIENTS_AT_LIMIT } else { metrics::RATE_AT_LIMIT }
}

/// Searched loads differ: response times do not compare, and open throughput is the found rate.
pub(crate) fn is_compared(metric: MetricId, step: &StepRecord) -> bool {
    let sought = step.search.as_ref().map(self::metric);
    match (metric, sought) {
        // Variants that do not end it by quota have no such value.
        (metrics::STEP_TIME, _) => step.own.is_some(),
        (metrics::RATE_AT_LIMIT | metrics::CLIENTS_AT_LIMIT, sought) => sought == Some(metric),
        (_, None) => true,
        (metrics::THROUGHPUT, Some(sought)) => sought == metrics::CLIENTS_AT_LIMIT,
        (metric, Some(_)) => metric == metrics::SERVER_CPU,
    }
}

/// The middle of the last bracket, on a logarithmic scale: its lower end would be too low by half
/// the width on average. The bracket of clients ends one below those that exceeded the limit. The
/// highest load tried if nothing exceeded the limit; `None` if nothing met it.
pub(crate) fn value(sought: &SearchRecord, search: &SearchSummary) -> Option<f64> {
    let held = search.found?;
    let Some(broken) = search.lowest_broken.filter(|broken| *broken > held) else {
        return Some(held);
    };
    let end = match metric(sought) {
        metrics::CLIENTS_AT_LIMIT => (broken - 1.0).max(held),
        _ => broken,
    };
    Some((held * end).sqrt())
}

/// Standard deviation of the logarithm by the search's precision: the truth is anywhere between the
/// load that held and the one that broke.
pub(crate) fn resolution(step: &StepRecord, typical: f64) -> f64 {
    let Some(search) = &step.search else { return 0.0 };
    let narrowest = search.precision.ln_1p();
    let width = match metric(search) {
        // With few clients, one more is a large step.
        metrics::CLIENTS_AT_LIMIT => narrowest.max((1.0 / typical).ln_1p()),
        _ => narrowest,
    };
    width / 12_f64.sqrt()
}

pub(crate) fn searches(joined: &Joined<'_>) -> Vec<TrialSearch> {
    let facts = |probe: &dyno_record::LoadProbe| ProbeFacts {
        level: probe.level,
        throughput: probe.throughput,
        limited_us: probe.limited_us,
        held: probe.held,
        broken_by: probe.broken_by.clone(),
    };
    let steps = joined.measured_steps().filter_map(|(trial, step, summary)| {
        let search = summary.search.as_ref()?;
        Some(TrialSearch {
            variant: trial.variant,
            step,
            repetition: trial.repetition,
            found: search.found,
            lowest_broken: search.lowest_broken,
            settled: search.settled,
            probes: search.probes.iter().map(facts).collect(),
        })
    });
    steps.collect()
}

/// For a search that found none that held.
pub(crate) fn why_absent(sought: &SearchRecord, lowest_broken: Option<f64>) -> String {
    match lowest_broken {
        Some(level) => {
            let level = match metric(sought) {
                metrics::CLIENTS_AT_LIMIT => count(level as u64, "client"),
                _ => NumberUnit::PerSecond.show(level),
            };
            format!("no load met the limit twice; the lowest tried was {level}")
        }
        None => "no load was tried to completion".to_owned(),
    }
}

#[cfg(test)]
mod tests;
