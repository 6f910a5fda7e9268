//! Kinds of transactions by themselves.

use std::collections::BTreeMap;

use dyno_record::{OwnStepRecord, RoleRecord, StepRecord, StepSummary};
use dyno_units::Seed;
use serde::{Deserialize, Serialize};

use crate::cells::{Measured, at, estimate, estimate_metric};
use crate::compare::{
    CommonError, Draft, Levels, Samples, decide_family, draft, pool, resolution_of_class,
};
use crate::join::Joined;
use crate::kept::{KEPT, KeptSeconds, Offered};
use crate::statistics::{Rule, geometric_mean};
use crate::words::distinct;
use crate::{Comparison, Estimate, MetricId, Metrics, metrics};

#[cfg(test)]
mod tests;
mod title;

pub use title::title;

/// Each is a family over all kinds.
const COMPARED: [MetricId; 4] =
    [metrics::THROUGHPUT, metrics::RESPONSE_MEAN, metrics::RESPONSE_P95, metrics::RESPONSE_P99];

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindCell {
    pub variant: usize,
    pub step: usize,
    pub kind: String,
    /// Whose clients do this kind, if the workload tells.
    pub role: Option<String>,
    /// Throughput, and response times if it committed.
    pub metrics: BTreeMap<MetricId, Estimate>,
    /// Percentiles with fewer than 20 transactions beyond in some trial: their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub few_beyond: BTreeMap<MetricId, u64>,
    /// All repetitions together.
    pub outcomes: BTreeMap<String, u64>,
    /// `None` if its role offers no rate.
    pub offered: Option<OfferedFacts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfferedFacts {
    /// Transactions per second of all clients of the role.
    pub rate: f64,
    /// Committed ÷ offered.
    pub kept: Estimate,
    /// Trials that committed at least 95 % of the offered.
    pub met: u32,
    pub of: u32,
    /// Share of seconds, of all trials, in windows with at least 95 % of the offered commits, less
    /// one of each client; a window has seconds for 20 of each. `None` if the record does not tell.
    pub seconds_met: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindComparison {
    pub kind: String,
    /// Of throughput, mean or p99 response time of this kind.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// For a step of the workload, or if several kinds ran.
fn is_apart(step: &StepRecord, here: &[&Measured]) -> bool {
    let ran = |kind: &crate::cells::KindMeasured| kind.values[&metrics::THROUGHPUT] > 0.0;
    let most = here.iter().map(|m| m.kinds.iter().filter(|kind| ran(kind)).count()).max();
    step.search.is_none() && (most > Some(1) || (step.own.is_some() && most > Some(0)))
}

/// In some trial of a cell, in the order of the workload.
fn names(here: &[&Measured]) -> Vec<String> {
    let kinds = here.iter().flat_map(|m| &m.kinds);
    let ran = kinds.filter(|kind| kind.values[&metrics::THROUGHPUT] > 0.0);
    distinct(ran.map(|kind| kind.name.clone()))
}

fn value(measured: &Measured, kind: &str, metric: MetricId) -> Option<f64> {
    measured.kinds.iter().find(|own| own.name == kind)?.values.get(&metric).copied()
}

pub(crate) fn kinds(
    joined: &Joined<'_>,
    measured: &[Measured],
    levels: &Levels<'_>,
) -> Vec<KindCell> {
    let mut all = Vec::new();
    for (variant, step, summaries) in joined.measured_cells() {
        let (asked, record) = (&joined.variants[variant], &joined.steps[step]);
        let rule = levels.of_cells(variant);
        let here = at(measured, variant, step);
        if !is_apart(record, &here) {
            continue;
        }
        // Equal for all kinds that a role names.
        let mut of_roles: BTreeMap<&str, Option<OfferedFacts>> = BTreeMap::new();
        for kind in names(&here) {
            let place = KindCell { variant, step, kind, ..KindCell::default() };
            let mut cell = of_kind(place, (&here, &summaries), &rule);
            let role = record.own_of(asked).and_then(|own| role_of(own, &cell.kind));
            cell.role = role.map(|role| role.name.clone());
            let offer = |role| offered(role, &cell.kind, &here, &summaries, &rule);
            cell.offered = role.and_then(|role| match role.kinds.is_empty() {
                true => offer(role),
                false => of_roles.entry(role.name.as_str()).or_insert_with(|| offer(role)).clone(),
            });
            all.push(cell);
        }
    }
    all
}

fn of_kind(
    mut cell: KindCell,
    (here, summaries): (&[&Measured], &[&StepSummary]),
    rule: &Rule,
) -> KindCell {
    let own_kinds = || summaries.iter().flat_map(|s| &s.kinds).filter(|own| own.name == cell.kind);
    let committed_least = own_kinds().map(metrics::committed_of).min().unwrap_or(0);
    let outcomes: Vec<(String, u64)> =
        own_kinds().flat_map(|own| &own.outcomes).map(|(name, n)| (name.clone(), *n)).collect();
    for metric in Metrics::default().iter() {
        let id = metric.id;
        let values: Vec<f64> = here.iter().filter_map(|m| value(m, &cell.kind, id)).collect();
        if !values.is_empty() {
            let resolution = resolution_of_class(id, geometric_mean(&values).unwrap_or(0.0));
            let found = estimate_metric(metric, values, rule.confidence, resolution);
            cell.metrics.insert(id, found);
            let few = metrics::quantile(id).and_then(|q| metrics::few_beyond(q, committed_least));
            cell.few_beyond.extend(few.map(|n| (id, n)));
        }
    }
    for (outcome, n) in outcomes {
        *cell.outcomes.entry(outcome).or_default() += n;
    }
    cell
}

/// The role that names the kind, else the one named after it (`inserter` does `insert`).
fn role_of<'a>(record: &'a OwnStepRecord, kind: &str) -> Option<&'a RoleRecord> {
    let roles = &record.roles;
    let says_so = |role: &&RoleRecord| role.kinds.iter().any(|own| own == kind);
    let is_named = |role: &&RoleRecord| role.kinds.is_empty() && role.name.starts_with(kind);
    roles.iter().find(says_so).or_else(|| roles.iter().find(is_named))
}

/// By all kinds of the role together. `None` without an offered rate.
fn offered(
    role: &RoleRecord,
    kind: &str,
    here: &[&Measured],
    summaries: &[&StepSummary],
    rule: &Rule,
) -> Option<OfferedFacts> {
    let rate = role.rate? * role.clients as f64;
    if rate <= 0.0 {
        return None;
    }
    let own = match role.kinds.is_empty() {
        true => vec![kind],
        false => role.kinds.iter().map(String::as_str).collect(),
    };
    let done = |m: &&Measured| -> Option<f64> {
        let rates = own.iter().filter_map(|kind| value(m, kind, metrics::THROUGHPUT));
        rates.reduce(|a, b| a + b)
    };
    let kept: Vec<f64> = here.iter().filter_map(done).map(|done| done / rate).collect();
    let offered = Offered { statements: rate, clients: role.clients as f64 };
    let mut seconds = KeptSeconds::default();
    summaries.iter().for_each(|summary| seconds.add(offered, &seconds_of_kinds(summary, &own)));
    Some(OfferedFacts {
        rate,
        met: kept.iter().filter(|share| **share >= KEPT).count() as u32,
        of: kept.len() as u32,
        kept: estimate(kept, "", rule.confidence),
        seconds_met: seconds.share(),
    })
}

/// By whole second; empty if the record does not tell.
pub(crate) fn seconds_of_kinds(summary: &StepSummary, kinds: &[&str]) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::new();
    for own in kinds.iter().filter_map(|kind| crate::stalls::seconds_of_kind(summary, kind)) {
        all.resize(all.len().max(own.len()), 0.0);
        all.iter_mut().zip(own).for_each(|(sum, done)| *sum += done);
    }
    all
}

/// By kind, with a common error of all kinds and steps.
pub(crate) fn kind_comparisons(
    joined: &Joined<'_>,
    measured: &[Measured],
    levels: &Levels<'_>,
    seed: Seed,
) -> Vec<KindComparison> {
    let mut all = Vec::new();
    for (family, metric) in COMPARED.into_iter().enumerate() {
        let facts = joined.metrics.get(metric);
        let seed = seed.derive("kinds", family as u64);
        let (mut drafts, mut of) = (Vec::new(), Vec::new());
        for (variant, record) in joined.variants.iter().enumerate() {
            let Some(baseline) = record.baseline else { continue };
            for step in 0..joined.steps.len() {
                let (ours, theirs) = (at(measured, variant, step), at(measured, baseline, step));
                if !is_apart(&joined.steps[step], &ours) {
                    continue;
                }
                for kind in names(&ours) {
                    let seed = seed.derive("comparison", drafts.len() as u64);
                    let values = |side: &[&Measured]| -> Vec<(u32, f64)> {
                        let value = |m: &&Measured| Some((m.block, value(m, &kind, metric)?));
                        side.iter().filter_map(value).collect()
                    };
                    let samples =
                        Samples::new(&values(&ours), &values(&theirs), joined.interleaved);
                    let of_step = (facts, &joined.steps[step]);
                    if let Some(one) = draft(&samples, of_step, &levels.of(variant), seed) {
                        drafts.push(one.at((variant, baseline, step)));
                        of.push((step, kind));
                    }
                }
            }
        }
        pool_kinds(&mut drafts, &of, (joined, measured), (metric, levels));
        let decided = decide_family(drafts, levels).into_iter().zip(of);
        all.extend(decided.map(|(comparison, (_, kind))| KindComparison { kind, comparison }));
    }
    all
}

fn pool_kinds(
    drafts: &mut [Draft],
    of: &[(usize, String)],
    (joined, measured): (&Joined<'_>, &[Measured]),
    (metric, levels): (MetricId, &Levels<'_>),
) {
    let mut all: Vec<&(usize, String)> = of.iter().collect();
    all.sort();
    all.dedup();
    let place = |one: &(usize, String)| all.iter().position(|other| *other == one);
    let places: Vec<usize> = of.iter().filter_map(place).collect();
    let errors = CommonError::new(joined, levels, all.len(), |variant, place| {
        let (step, kind) = all[place];
        let value_of = |m: &&Measured| Some((m.block, value(m, kind, metric)?));
        at(measured, variant, *step).iter().filter_map(value_of).collect()
    });
    pool(drafts, &places, errors.as_ref(), levels);
}
