//! Debt: work that an engine put off, how fast it grew, and how long it took to pay.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use dyno_record::{RunOff, StepSummary};
use dyno_units::Reading;
use dyno_units::reading::{Role, Topic};
use serde::{Deserialize, Serialize};

use crate::Estimate;
use crate::attribution::readings::measured_values;
use crate::cells::{estimate, estimate_signed};
use crate::compare::Levels;
use crate::join::{Joined, JoinedTrial};
use crate::statistics::Rule;
use crate::words::{count, list, seconds};

/// For a slope.
const READINGS_LEAST: usize = 3;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DebtFacts {
    pub variant: usize,
    pub step: usize,
    /// `debt.history_list_length`.
    pub reading: String,
    /// `history list length`.
    #[serde(default)]
    pub title: String,
    /// All deferred work in one number.
    #[serde(default)]
    pub gauge: bool,
    pub unit: String,
    pub meaning: String,
    pub at_start: Estimate,
    pub at_end: Estimate,
    pub most: Estimate,
    /// Growth per second by least squares over the measured time; bounds are over repetitions.
    pub slope_per_s: Estimate,
    /// By the slope's bounds.
    pub trend: DebtTrend,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DebtTrend {
    /// The engine cannot keep up.
    Grew,
    Shrank,
    /// The bounds hold zero.
    Level,
    /// One repetition.
    #[default]
    Unknown,
}

/// After the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOffFacts {
    pub variant: usize,
    pub limit_s: f64,
    /// Of trials in which it was paid. With some `unpaid`, the truth is more.
    pub paid_after_s: Option<Estimate>,
    /// Trials in which it was not paid within the limit.
    pub unpaid: Vec<u32>,
    /// Trials in which the debt could not be read.
    pub unseen: Vec<u32>,
    pub why_unseen: Option<String>,
    #[serde(alias = "told")]
    pub summary: String,
}

pub(crate) fn debt(joined: &Joined<'_>, levels: &Levels<'_>) -> Vec<DebtFacts> {
    let mut all = Vec::new();
    for (variant, step, summaries) in joined.measured_cells() {
        let rule = levels.of_cells(variant);
        let names: BTreeSet<&String> =
            summaries.iter().flat_map(|summary| summary.readings.keys()).collect();
        for name in names {
            let meaning = joined.meaning(variant, name);
            if let Some(reading) = meaning.filter(|reading| reading.topic == Topic::Debt) {
                all.extend(of_reading(&summaries, (variant, step), (name, reading), &rule));
            }
        }
    }
    all
}

fn of_reading(
    summaries: &[&StepSummary],
    (variant, step): (usize, usize),
    (name, reading): (&str, &Reading),
    rule: &Rule,
) -> Option<DebtFacts> {
    let series: Vec<Vec<(f64, f64)>> = summaries
        .iter()
        .map(|summary| measured_values(summary, name))
        .filter(|values| values.len() >= READINGS_LEAST)
        .collect();
    if series.is_empty() {
        return None;
    }
    let unit = reading.unit.code().to_owned();
    let of = |pick: fn(&[(f64, f64)]) -> f64, unit: &str| {
        estimate_signed(series.iter().map(|s| pick(s)).collect(), unit, rule.confidence)
    };
    let slope_per_s = of(slope, &format!("{unit}/s"));
    Some(DebtFacts {
        variant,
        step,
        reading: name.to_owned(),
        title: reading.title.to_string(),
        gauge: reading.role == Some(Role::DebtGauge),
        meaning: reading.text.to_string(),
        at_start: of(|s| level(&s[..few(s)]), &unit),
        at_end: of(|s| level(&s[s.len() - few(s)..]), &unit),
        most: of(|s| s.iter().map(|(_, v)| *v).fold(f64::NEG_INFINITY, f64::max), &unit),
        trend: match (slope_per_s.low, slope_per_s.high) {
            (Some(low), _) if low > 0.0 => DebtTrend::Grew,
            (_, Some(high)) if high < 0.0 => DebtTrend::Shrank,
            (Some(_), Some(_)) => DebtTrend::Level,
            _ => DebtTrend::Unknown,
        },
        slope_per_s,
        unit,
    })
}

fn level(values: &[(f64, f64)]) -> f64 {
    values.iter().map(|(_, value)| *value).sum::<f64>() / values.len() as f64
}

/// Readings that make up the level at either end.
fn few(values: &[(f64, f64)]) -> usize {
    (values.len() / 10).clamp(1, 5)
}

/// Σ (t − t̄)(v − v̄) / Σ (t − t̄)², by least squares.
fn slope(values: &[(f64, f64)]) -> f64 {
    let n = values.len() as f64;
    let middle = values.iter().map(|(t, _)| t).sum::<f64>() / n;
    let level = values.iter().map(|(_, v)| v).sum::<f64>() / n;
    let products: f64 = values.iter().map(|(t, v)| (t - middle) * (v - level)).sum();
    let squares: f64 = values.iter().map(|(t, _)| (t - middle).powi(2)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

pub(crate) fn run_off(joined: &Joined<'_>, levels: &Levels<'_>) -> Vec<RunOffFacts> {
    (0..joined.variants.len()).filter_map(|variant| of_variant(joined, variant, levels)).collect()
}

fn of_variant(joined: &Joined<'_>, variant: usize, levels: &Levels<'_>) -> Option<RunOffFacts> {
    let rule = levels.of_cells(variant);
    let waited = |trial: &&JoinedTrial<'_>| trial.variant == variant;
    let run_offs: Vec<(u32, &RunOff)> = joined
        .trials
        .iter()
        .filter(waited)
        .filter_map(|trial| Some((trial.number, trial.finished()?.run_off.as_ref()?)))
        .collect();
    let limit_s = run_offs.iter().map(|(_, off)| off.limit_s).reduce(f64::max)?;
    let numbers = |is_it: &dyn Fn(&RunOff) -> bool| {
        run_offs.iter().filter(|(_, off)| is_it(off)).map(|(number, _)| *number).collect()
    };
    let paid: Vec<f64> = run_offs.iter().filter_map(|(_, off)| off.paid_after_s).collect();
    let mut facts = RunOffFacts {
        variant,
        limit_s,
        paid_after_s: (!paid.is_empty()).then(|| estimate(paid, "s", rule.confidence)),
        unpaid: numbers(&|off| off.paid_after_s.is_none() && off.unseen.is_none()),
        unseen: numbers(&|off| off.unseen.is_some()),
        why_unseen: run_offs.iter().find_map(|(_, off)| off.unseen.clone()),
        summary: String::new(),
    };
    facts.summary = summary(&facts, &joined.variants[variant].name, levels.rule.confidence);
    Some(facts)
}

fn summary(facts: &RunOffFacts, name: &str, confidence: f64) -> String {
    let mut parts = Vec::new();
    if let Some(paid) = &facts.paid_after_s {
        let interval = crate::words::ci_of(paid, confidence);
        let value = seconds(paid.value);
        parts.push(format!("had caught up {value} after the load ended ({interval})"));
    }
    if !facts.unpaid.is_empty() {
        parts.push(format!(
            "had not caught up within {} in {}",
            seconds(facts.limit_s),
            count(facts.unpaid.len() as u64, "trial"),
        ));
    }
    if !facts.unseen.is_empty() {
        let why = facts.why_unseen.as_deref().unwrap_or("for an unknown reason");
        let n = count(facts.unseen.len() as u64, "trial");
        parts.push(format!("could not be observed in {n} ({})", why.trim_end_matches('.')));
    }
    format!("{name} {}.", list(&parts))
}
