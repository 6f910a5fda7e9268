//! Demands on every variant at every step: decided if all bounds agree. One repetition is judged by its value, which
//! shows nothing of the next one: what is said of it says so.

use dyno_record::{RequirementRecord, Run};
use dyno_units::Unit;
use serde::{Deserialize, Serialize};

use crate::{Cell, Direction, MetricId, Metrics};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequirementFacts {
    /// `p99 ≤ 20 ms`.
    pub text: String,
    pub variant: usize,
    pub step: usize,
    /// In the metric's unit; `None` if not measured.
    pub value: Option<f64>,
    /// `None` with a single repetition.
    pub bounds: Option<(f64, f64)>,
    /// Repetitions.
    #[serde(default)]
    pub n: u32,
    pub outcome: RequirementOutcome,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequirementOutcome {
    /// By all of the bounds.
    Met,
    /// None of the bounds does, or nothing committed.
    NotMet,
    /// Some of the bounds do.
    #[default]
    Inconclusive,
}

/// Of the first of these runs.
pub(crate) fn requirements(
    runs: &[Run],
    metrics: &Metrics,
    cells: &[Cell],
) -> Vec<RequirementFacts> {
    let Some(run) = runs.first() else { return Vec::new() };
    let all = run.manifest.requirements.iter();
    all.flat_map(|one| cells.iter().map(move |cell| judge(one, metrics, cell))).collect()
}

/// The limits of response times that the first of these runs demands: what is limited, and the bound in µs.
pub(crate) fn own_limits(runs: &[Run], metrics: &Metrics) -> Vec<(MetricId, f64)> {
    let all = runs.iter().take(1).flat_map(|run| &run.manifest.requirements);
    let limit = |one: &RequirementRecord| {
        let metric = metrics.required(&one.measure)?;
        (one.is_least != Some(true) && metric.unit == Unit::Microseconds)
            .then_some((metric.id, one.bound))
    };
    all.filter_map(limit).collect()
}

fn judge(requirement: &RequirementRecord, metrics: &Metrics, cell: &Cell) -> RequirementFacts {
    let metric = metrics.required(&requirement.measure);
    let estimate = metric.and_then(|metric| cell.metrics.get(&metric.id));
    // Bounds written as times are in microseconds.
    let bound = requirement.bound
        * match metric.map(|metric| &metric.unit) {
            _ if requirement.is_in_own_unit => 1.0,
            Some(Unit::Seconds) => 1e-6,
            Some(Unit::Milliseconds) => 1e-3,
            _ => 1.0,
        };
    let follows = || metric.is_some_and(|metric| metric.better == Direction::Higher);
    let is_least = requirement.is_least.unwrap_or_else(follows);
    let keeps = |value: f64| if is_least { value >= bound } else { value <= bound };
    let bounds = estimate.and_then(|one| one.low.zip(one.high));
    let ends = estimate.map(|one| match bounds {
        Some(bounds) => bounds,
        // Without bounds (as for a maximum), by every repetition.
        None if one.n > 1 => (one.min, one.max),
        None => (one.value, one.value),
    });
    let outcome = match (metric, ends.map(|(low, high)| (keeps(low), keeps(high)))) {
        (None, _) => RequirementOutcome::Inconclusive,
        (_, None | Some((false, false))) => RequirementOutcome::NotMet,
        (_, Some((true, true))) => RequirementOutcome::Met,
        _ => RequirementOutcome::Inconclusive,
    };
    RequirementFacts {
        text: requirement.text.clone(),
        variant: cell.variant,
        step: cell.step,
        value: estimate.map(|one| one.value),
        bounds,
        n: estimate.map_or(0, |one| one.n),
        outcome,
    }
}

impl RequirementFacts {
    /// The outcome is that of one repetition, and not shown.
    pub fn is_measured_once(&self) -> bool {
        self.n == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{run, wobble};
    use crate::{Estimate, Options, analyse};

    #[track_caller]
    fn check(measure: &str, bound: f64, repetitions: u32, expected: RequirementOutcome) {
        let mut run = run(&["a"], &[4], repetitions, |v, s, r| 1000.0 * wobble(v, s, r));
        run.manifest.requirements = vec![RequirementRecord {
            text: "as demanded".to_owned(),
            measure: measure.to_owned(),
            bound,
            is_in_own_unit: false,
            is_least: None,
        }];
        let findings = analyse(&[run], &Options::default());
        let [found] = &findings.requirements[..] else { panic!("{:?}", findings.requirements) };
        assert_eq!(found.outcome, expected, "{measure} {bound}: {found:?}");
        let is_known = found.value.is_some();
        assert_eq!(found.is_measured_once(), is_known && repetitions == 1, "{found:?}");
    }

    #[test]
    fn bounds_decide() {
        use RequirementOutcome::{Inconclusive, Met, NotMet};
        check("throughput", 900.0, 5, Met);
        check("throughput", 1000.0, 5, Inconclusive);
        check("throughput", 1100.0, 5, NotMet);
        // Four clients at 1000/s: 4 ms on average, at most 8 ms.
        check("p95", 10_000.0, 5, Met);
        check("p95", 2_000.0, 5, NotMet);
        check("mean", 1e9, 5, Met);
        check("max", 5_000.0, 5, NotMet);
        check("median of medians", 1.0, 5, Inconclusive);
    }

    #[test]
    fn a_single_repetition_is_judged_by_its_value() {
        check("throughput", 999.0, 1, RequirementOutcome::Met);
        check("throughput", 1001.0, 1, RequirementOutcome::NotMet);
    }

    #[test]
    fn a_number_is_in_the_unit_of_its_metric_and_a_time_is_not() {
        let metric =
            dyno_units::metric("job.time", Unit::Seconds, Direction::Lower, "time", "time");
        let estimate = Estimate { n: 1, value: 12.0, ..Estimate::default() };
        let mut cell = Cell::default();
        cell.metrics.insert(metric.id, estimate);
        let mut metrics = Metrics::default();
        metrics.extend([&metric]);
        let outcome = |bound: f64, is_in_own_unit: bool| {
            let requirement = RequirementRecord {
                text: "as demanded".to_owned(),
                measure: "job.time".to_owned(),
                bound,
                is_in_own_unit,
                is_least: Some(false),
            };
            judge(&requirement, &metrics, &cell).outcome
        };
        assert_eq!(outcome(15.0, true), RequirementOutcome::Met);
        assert_eq!(outcome(11.0, true), RequirementOutcome::NotMet);
        assert_eq!(outcome(15e6, false), RequirementOutcome::Met);
        assert_eq!(outcome(11e6, false), RequirementOutcome::NotMet);
    }

    #[test]
    fn where_nothing_committed_nothing_is_met() {
        let cell = Cell::default();
        let requirement = RequirementRecord {
            text: "p95 ≤ 1 ms".to_owned(),
            measure: "p95".to_owned(),
            bound: 1_000.0,
            is_in_own_unit: false,
            is_least: None,
        };
        assert_eq!(
            judge(&requirement, &Metrics::default(), &cell).outcome,
            RequirementOutcome::NotMet
        );
    }
}
