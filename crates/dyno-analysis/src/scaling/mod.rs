//! Scaling of each variant with the clients, over at least three closed loads.

mod end;
mod limit;
mod usl;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use end::{End, end_of};
pub use limit::UnderLimit;
pub(crate) use limit::under_limit;
pub use usl::Usl;

use crate::cells::{Measured, by_block, estimate};
use crate::compare::Levels;
use crate::statistics::{Rule, mean};
use crate::{Cell, Estimate, MetricId, StepFacts, metrics};

/// Of claims: the ratio of two speed-ups.
pub(crate) const SPEED_UP: MetricId = MetricId::new("speed_up");

const LOADS_LEAST: usize = 3;

/// Exponent of the clients beyond which response time has turned.
const TURN: f64 = 0.5;

/// Least factor in clients over which growth is judged.
const WINDOW: u64 = 2;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingFacts {
    pub variant: usize,
    /// Fewest clients first.
    pub loads: Vec<ScalingLoad>,
    pub turn: Turn,
    #[serde(default)]
    pub end: End,
    /// `None` with fewer than four loads.
    pub law: Option<ScalingLaw>,
}

/// The load from which to twice as many clients response time grows by more than their square root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Turn {
    Never,
    /// In clients, lowest and highest of all repetitions: the same load, or neighbours.
    At {
        from: u64,
        to: u64,
    },
    /// Repetitions differ by more.
    Unclear,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingLoad {
    pub step: usize,
    pub clients: u64,
    /// Multiple of the throughput with the fewest clients.
    pub speed_up: f64,
    /// Multiple of the mean response time with the fewest clients.
    pub saturation: f64,
    /// By repetition against its own fewest clients; `None` if no repetition has both.
    #[serde(default)]
    pub speed_up_estimate: Option<Estimate>,
    #[serde(default)]
    pub saturation_estimate: Option<Estimate>,
}

/// Fitted to each repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// γ: throughput of one client.
    pub one_client: Estimate,
    /// α: the share of work that waits for its turn.
    pub contention: Estimate,
    /// β: the cost of keeping every pair of clients consistent.
    pub coherency: Estimate,
    /// At the highest throughput; `None` if a repetition has no peak.
    pub peak_clients: Option<Estimate>,
    /// R², at most 1: the explained share of the variance between the loads' throughputs; below 0
    /// if their mean is nearer. `None` if all are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_squared: Option<f64>,
    /// Loads where the law misses the bounds by more than the threshold; then it is unreliable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<LawMiss>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawMiss {
    pub step: usize,
    pub clients: u64,
    pub measured: Estimate,
    /// As the law predicts.
    pub law: f64,
}

impl ScalingLaw {
    pub fn usl(&self) -> Usl {
        Usl {
            one_client: self.one_client.value,
            contention: self.contention.value,
            coherency: self.coherency.value,
        }
    }

    fn judged(mut self, loads: &[(&ScalingLoad, &Estimate)], rule: &Rule) -> ScalingLaw {
        let usl = self.usl();
        let values: Vec<f64> = loads.iter().map(|(_, measured)| measured.value).collect();
        let center = mean(&values);
        let off = |(load, measured): &(&ScalingLoad, &Estimate)| {
            measured.value - usl.throughput(load.clients as f64)
        };
        let left: f64 = loads.iter().map(|load| off(load).powi(2)).sum();
        let all: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
        self.r_squared = (all > 0.0).then(|| 1.0 - left / all);
        let miss = |(load, measured): &(&ScalingLoad, &Estimate)| {
            let law = usl.throughput(load.clients as f64);
            let is_outside = measured.low.is_none_or(|low| law < low)
                || measured.high.is_none_or(|high| law > high);
            let is_far = (law / measured.value).ln().abs() > rule.band();
            (is_outside && is_far).then(|| LawMiss {
                step: load.step,
                clients: load.clients,
                measured: (*measured).clone(),
                law,
            })
        };
        self.misses = loads.iter().filter_map(miss).collect();
        self
    }
}

pub(crate) fn scaling(
    steps: &[StepFacts],
    cells: &[Cell],
    measured: &[Measured],
    levels: &Levels<'_>,
) -> Vec<ScalingFacts> {
    let mut variants: Vec<usize> = cells.iter().map(|cell| cell.variant).collect();
    variants.dedup();
    let of = |v: usize| of_variant(v, steps, cells, measured, &levels.of_cells(v));
    variants.into_iter().filter_map(of).collect()
}

fn of_variant(
    variant: usize,
    steps: &[StepFacts],
    cells: &[Cell],
    measured: &[Measured],
    rule: &Rule,
) -> Option<ScalingFacts> {
    // Of two steps with the same clients the first counts; offered rates and searches do not.
    let mut by_clients: BTreeMap<u64, (usize, f64, f64)> = BTreeMap::new();
    // A workload's own step is other work, not another load.
    let is_given = |step: usize| {
        let facts = &steps[step];
        facts.rate.is_none() && facts.search.is_none() && facts.own.is_none()
    };
    for cell in cells.iter().filter(|c| c.variant == variant && is_given(c.step)) {
        let value = |metric| cell.metrics.get(&metric).map(|e: &Estimate| e.value);
        let throughput = value(metrics::THROUGHPUT).filter(|v| *v > 0.0);
        if let (Some(throughput), Some(response)) = (throughput, value(metrics::RESPONSE_MEAN)) {
            let clients = steps[cell.step].clients;
            by_clients.entry(clients).or_insert((cell.step, throughput, response));
        }
    }
    if by_clients.len() < LOADS_LEAST {
        return None;
    }
    let (first, least, quickest) = *by_clients.values().next()?;
    let multiple = |step: usize, metric: MetricId| {
        let values = multiples(measured, (variant, step, first), metric);
        (!values.is_empty()).then(|| estimate(values, "×", rule.confidence))
    };
    let load = |(clients, (step, throughput, response)): (&u64, &(usize, f64, f64))| ScalingLoad {
        step: *step,
        clients: *clients,
        speed_up: throughput / least,
        saturation: response / quickest,
        speed_up_estimate: multiple(*step, metrics::THROUGHPUT),
        saturation_estimate: multiple(*step, metrics::RESPONSE_MEAN),
    };
    let loads: Vec<ScalingLoad> = by_clients.iter().map(load).collect();
    let turn = turn(variant, &loads, measured);
    let end = end(variant, &loads, measured, rule);
    let law = law(variant, &loads, measured, rule).map(|law| {
        let throughput = |step: usize| {
            let cell = cells.iter().find(|c| (c.variant, c.step) == (variant, step))?;
            cell.metrics.get(&metrics::THROUGHPUT)
        };
        let values = loads.iter().filter_map(|load| Some((load, throughput(load.step)?)));
        law.judged(&values.collect::<Vec<_>>(), rule)
    });
    Some(ScalingFacts { variant, turn, end, loads, law })
}

/// By repetition that has both.
fn multiples(
    measured: &[Measured],
    (variant, step, first): (usize, usize, usize),
    metric: MetricId,
) -> Vec<f64> {
    let at = |step: usize| measured.iter().filter(move |m| (m.variant, m.step) == (variant, step));
    let value = |m: &Measured| m.value(metric).filter(|value| *value > 0.0);
    at(step)
        .filter_map(|ours| {
            let theirs = at(first).find(|theirs| theirs.block == ours.block)?;
            Some(value(ours)? / value(theirs)?)
        })
        .collect()
}

/// Of all repetitions that have all loads.
fn turn(variant: usize, loads: &[ScalingLoad], measured: &[Measured]) -> Turn {
    let steps: Vec<usize> = loads.iter().map(|load| load.step).collect();
    let all = by_block(measured, variant, &steps, metrics::RESPONSE_MEAN).into_iter();
    let of = |(_, times): (u32, Vec<f64>)| {
        let times: Vec<(u64, f64)> = loads.iter().map(|load| load.clients).zip(times).collect();
        times.iter().all(|(_, time)| *time > 0.0).then(|| turn_of(&times))
    };
    let turns: Vec<Option<usize>> = all.filter_map(of).collect();
    let at = |idx: usize| loads[idx].clients;
    let (least, most) = (turns.iter().min(), turns.iter().max());
    match least.copied().zip(most.copied()) {
        None | Some((None, None)) => Turn::Never,
        Some((Some(first), Some(last))) if last - first <= 1 => {
            Turn::At { from: at(first), to: at(last) }
        }
        _ => Turn::Unclear,
    }
}

/// Of all repetitions that have all loads, and committed at each.
fn end(variant: usize, loads: &[ScalingLoad], measured: &[Measured], rule: &Rule) -> End {
    let steps: Vec<usize> = loads.iter().map(|load| load.step).collect();
    let mut all = by_block(measured, variant, &steps, metrics::THROUGHPUT);
    all.retain(|(_, rates)| rates.iter().all(|rate| *rate > 0.0));
    let logs = |nth: usize| all.iter().map(|(_, rates)| rates[nth].ln()).collect();
    let loads = loads.iter().enumerate().map(|(nth, load)| (load.clients, logs(nth)));
    end_of(&loads.collect::<Vec<_>>(), rule)
}

/// The first load (clients, response time) from which response time grows by more than the square
/// root of the clients until they have at least doubled: over less, noise would decide.
pub fn turn_of(loads: &[(u64, f64)]) -> Option<usize> {
    let grows = |idx: &usize| {
        let (clients, time) = loads[*idx];
        let later = loads[idx + 1..].iter().find(|(more, _)| *more >= WINDOW * clients);
        later.is_some_and(|(more, longer)| {
            (longer / time).ln() > TURN * (*more as f64 / clients as f64).ln()
        })
    };
    (0..loads.len()).find(grows)
}

fn law(
    variant: usize,
    loads: &[ScalingLoad],
    measured: &[Measured],
    rule: &Rule,
) -> Option<ScalingLaw> {
    let steps: Vec<usize> = loads.iter().map(|load| load.step).collect();
    let all = by_block(measured, variant, &steps, metrics::THROUGHPUT).into_iter();
    let fit = |(_, rates): (u32, Vec<f64>)| {
        let clients = loads.iter().map(|load| load.clients as f64);
        Usl::fit(&clients.zip(rates).collect::<Vec<_>>())
    };
    let laws: Vec<Usl> = all.filter_map(fit).collect();
    if laws.is_empty() {
        return None;
    }
    let of = |pick: fn(&Usl) -> f64, unit: &str| {
        estimate(laws.iter().map(pick).collect(), unit, rule.confidence)
    };
    let peaks: Option<Vec<f64>> = laws.iter().map(Usl::peak_clients).collect();
    Some(ScalingLaw {
        one_client: of(|law| law.one_client, "1/s"),
        contention: of(|law| law.contention, ""),
        coherency: of(|law| law.coherency, ""),
        peak_clients: peaks.map(|peaks| estimate(peaks, "clients", rule.confidence)),
        r_squared: None,
        misses: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Turn, turn_of};
    use crate::fixtures::run;
    use crate::{Findings, Options, analyse};

    /// For one variant.
    fn found(points: &[(u64, f64)], repetitions: u32) -> Findings {
        let clients: Vec<u64> = points.iter().map(|(clients, _)| *clients).collect();
        let rates: Vec<f64> = points.iter().map(|(_, rate)| *rate).collect();
        analyse(
            &[run(&["a"], &clients, repetitions, |_, step, _| rates[step])],
            &Options::default(),
        )
    }

    #[test]
    fn speed_up_as_in_a_published_table() {
        // ProxySQL over one to six nodes: 245 … 3514 transactions per second.
        let points = [(1, 245.0), (2, 682.0), (3, 1659.0), (4, 2748.0), (5, 3384.0), (6, 3514.0)];
        let scaling = &found(&points, 1).scaling[0];
        let values: Vec<String> =
            scaling.loads.iter().map(|l| format!("{:.2}", l.speed_up)).collect();
        assert_eq!(values, ["1.00", "2.78", "6.77", "11.22", "13.81", "14.34"]);
    }

    #[test]
    fn saturation_as_in_a_published_table() {
        // An NVMe device with 1 … 256 threads: mean response times 0.14 … 1.95 ms.
        let times = [(1, 0.14), (4, 0.15), (16, 0.21), (64, 0.50), (256, 1.95)];
        let points = times.map(|(threads, ms)| (threads, threads as f64 / ms * 1e3));
        let scaling = &found(&points, 1).scaling[0];
        let values: Vec<f64> = scaling.loads.iter().map(|load| load.saturation).collect();
        for (actual, published) in values.iter().zip([1.0, 1.07, 1.5, 3.6, 13.9]) {
            assert!((actual / published - 1.0).abs() < 0.01, "{values:?}");
        }
        // "Somewhere between 16 and 64", says the author.
        assert_eq!(scaling.turn, Turn::At { from: 16, to: 16 });
    }

    #[test]
    fn growth_is_judged_over_twice_as_many_clients() {
        let times = [(4, 1.0), (6, 1.3), (8, 1.25), (12, 1.3), (16, 2.0), (24, 3.0), (32, 4.0)];
        // It grew by more than the square root from 4 to 6 clients, but not from 4 to 8.
        assert_eq!(turn_of(&times), Some(2));
        assert_eq!(turn_of(&times[..3]), None);
        assert_eq!(turn_of(&[]), None);
    }

    #[test]
    fn repetitions_say_where_it_turns_up() {
        // From which response time doubles with the clients, by repetition.
        let check = |turns: [usize; 3], expected: Turn| {
            let clients = [1, 2, 4, 8, 16, 32];
            let rate = |_: usize, step: usize, repetition: u32| {
                let turn = turns[repetition as usize];
                let slow = step.saturating_sub(turn);
                100.0 * clients[step - slow] as f64
            };
            let run = run(&["a"], &clients, 3, rate);
            assert_eq!(analyse(&[run], &Options::default()).scaling[0].turn, expected);
        };
        check([3; 3], Turn::At { from: 8, to: 8 });
        check([3, 4, 3], Turn::At { from: 8, to: 16 });
        check([2, 4, 3], Turn::Unclear);
        check([3, 5, 3], Turn::Unclear);
        check([5; 3], Turn::Never);
    }

    #[test]
    fn the_law_has_bounds_over_repetitions() {
        let clients = [1, 2, 4, 8, 16, 32];
        let law = super::Usl { one_client: 1000.0, contention: 0.05, coherency: 0.001 };
        let rate = |_: usize, step: usize, repetition: u32| {
            law.throughput(clients[step] as f64) * (1.0 + 0.002 * f64::from(repetition))
        };
        let scaling = analyse(&[run(&["a"], &clients, 3, rate)], &Options::default()).scaling;
        let fitted = scaling[0].law.as_ref().expect("six loads");
        assert_eq!(fitted.one_client.n, 3);
        assert!(fitted.one_client.low.unwrap() > 990.0 && fitted.one_client.high.unwrap() < 1015.0);
        assert!((fitted.contention.value - 0.05).abs() < 0.001, "{fitted:?}");
        let peak = fitted.peak_clients.as_ref().expect("it falls");
        assert!((peak.value - law.peak_clients().unwrap()).abs() < 0.5, "{peak:?}");
    }

    #[test]
    fn the_law_tells_how_well_it_fits() {
        // A plateau does not fit: one client comes out too fast.
        let points = [(1, 50.0), (2, 100.0), (4, 200.0), (8, 400.0), (16, 400.0), (32, 400.0)];
        let findings = found(&points, 3);
        let law = findings.scaling[0].law.as_ref().expect("six loads");
        assert!(law.r_squared.unwrap() < 0.97, "{law:?}");
        let first = law.misses.iter().find(|miss| miss.clients == 1).expect("it is missed");
        assert!((first.measured.value - 50.0).abs() < 0.1 && first.law > 60.0, "{first:?}");
        let caveat = findings.caveats.iter().find(|c| c.kind == crate::CaveatKind::LawMisses);
        let message = &caveat.expect("it is a caveat").message;
        assert!(message.contains("at 1 client it predicts "), "{message}");
        let law = super::Usl { one_client: 1000.0, contention: 0.05, coherency: 0.001 };
        let points = [1, 2, 4, 8, 16].map(|n| (n, law.throughput(n as f64)));
        let findings = found(&points, 3);
        let law = findings.scaling[0].law.as_ref().expect("five loads");
        assert!(law.misses.is_empty() && law.r_squared.unwrap() > 0.999, "{law:?}");
        assert!(findings.caveats.iter().all(|c| c.kind != crate::CaveatKind::LawMisses));
    }

    #[test]
    fn multiples_have_bounds_over_repetitions() {
        // Factors that all loads of a repetition share are not in a multiple.
        let rates = [100.0, 300.0, 400.0];
        let rate = |_: usize, step: usize, repetition: u32| rates[step] * f64::from(repetition + 1);
        let scaling = analyse(&[run(&["a"], &[1, 4, 8], 3, rate)], &Options::default()).scaling;
        for load in &scaling[0].loads {
            let estimate = load.speed_up_estimate.as_ref().expect("all have both");
            assert_eq!(estimate.n, 3);
            let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
            assert!((estimate.value / load.speed_up - 1.0).abs() < 1e-9, "{load:?}");
            assert!((high / low - 1.0).abs() < 1e-6, "{low} … {high}");
            let saturation = load.saturation_estimate.as_ref().expect("all have both");
            assert!((saturation.value / load.saturation - 1.0).abs() < 1e-9, "{load:?}");
        }
        // One repetition has no bounds.
        let one = found(&[(1, 100.0), (4, 300.0), (8, 400.0)], 1);
        let alone = one.scaling[0].loads[2].speed_up_estimate.as_ref().unwrap();
        assert_eq!((alone.n, alone.low), (1, None));
    }

    #[test]
    fn two_loads_are_no_scaling_and_three_have_no_law() {
        assert_eq!(found(&[(1, 100.0), (4, 300.0)], 3).scaling, []);
        let three = found(&[(1, 100.0), (4, 300.0), (8, 400.0)], 3).scaling;
        assert_eq!(three[0].law, None);
        assert_eq!(three[0].turn, Turn::At { from: 4, to: 4 });
    }
}
