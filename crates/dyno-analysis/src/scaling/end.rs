//! Where throughput stops growing with the clients: what is shown of it, and what is not.

use serde::{Deserialize, Serialize};

use crate::statistics::{Call, Effect, Rule, calls_at, mean, pooled_errors};

/// By the loads that may have the highest throughput: all that are not shown to be lower than the best mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum End {
    /// Higher with the most clients than at any other load.
    Rising,
    /// From here on, in clients, within the threshold of that with the most clients.
    Level { from: u64 },
    /// Highest from here to there: lower with the fewest and with the most clients.
    Peak { from: u64, to: u64 },
    /// Lower beyond; no rise before is shown.
    Falls { to: u64 },
    /// It rises up to here or further; beyond, neither a rise, nor a fall, nor that it is level.
    NoFurtherRise { from: u64 },
    /// Neither a rise nor a fall.
    NoRise,
    /// Fewer than two repetitions, or not two loads.
    #[default]
    Unknown,
}

/// By the loads' clients and logarithms of throughput by repetition, the fewest clients first; each repetition has
/// all loads. The best mean is chosen among the loads, so that each is lower at the level divided by the number of
/// the others (Bonferroni). Loads are level one by one, the most clients first, until one is not: that needs no
/// correction.
pub fn end_of(loads: &[(u64, Vec<f64>)], rule: &Rule) -> End {
    let n = loads.len();
    let center = |idx: &usize| mean(&loads[*idx].1);
    let best = (0..n).max_by(|a, b| center(a).total_cmp(&center(b)));
    let Some(best) = best.filter(|best| n > 1 && loads[*best].1.len() > 1) else {
        return End::Unknown;
    };
    let (level, last) = (1.0 - rule.confidence, n - 1);
    let calls = calls(loads, best, (level / last as f64, rule));
    let may_be_highest: Vec<usize> =
        (0..n).filter(|idx| *idx == best || calls[*idx] != Call::Lower).collect();
    let (first, highest) = (may_be_highest[0], may_be_highest[may_be_highest.len() - 1]);
    let clients = |idx: usize| loads[idx].0;
    let (from, to) = (clients(first), clients(highest));
    if first == last {
        return End::Rising;
    }
    if highest < last {
        return if first > 0 { End::Peak { from, to } } else { End::Falls { to } };
    }
    let calls = self::calls(loads, last, (level, rule));
    let level = (0..last).rev().take_while(|idx| calls[*idx] == Call::Inside).last();
    match level {
        Some(level) => End::Level { from: clients(level) },
        None if first > 0 => End::NoFurtherRise { from },
        None => End::NoRise,
    }
}

/// Each load against one of them, with the common error of all loads.
fn calls(loads: &[(u64, Vec<f64>)], other: usize, (level, rule): (f64, &Rule)) -> Vec<Call> {
    let mut order: Vec<usize> = (0..loads.len()).filter(|idx| *idx != other).collect();
    order.insert(0, other);
    let table: Vec<Vec<Vec<f64>>> = order.iter().map(|idx| vec![loads[*idx].1.clone()]).collect();
    let errors = pooled_errors(&table);
    let mut calls = vec![Call::Undecided; loads.len()];
    for (nth, idx) in order.into_iter().enumerate().skip(1) {
        let pairs = loads[idx].1.iter().zip(&loads[other].1);
        let differences: Vec<f64> = pairs.map(|(ours, theirs)| ours - theirs).collect();
        let Some(own) = Effect::paired(&differences, 0.0) else { continue };
        let error = errors.as_ref().map(|errors| errors[nth - 1][0]);
        let effect = error.map_or(own, |error| own.with_error(error));
        calls[idx] = calls_at(&[(Some(effect), level)], rule)[0].0;
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::wobble;

    const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

    /// By 1, 2, 4 … clients; `spread` is how far repetitions differ, in percent.
    #[track_caller]
    fn check(throughputs: &[f64], (repetitions, spread): (u32, f64), expected: End) {
        let logs = |(step, throughput): (usize, &f64)| {
            let of =
                |repetition: u32| throughput.ln() + spread * (wobble(0, step, repetition) - 1.0);
            (1_u64 << step, (0..repetitions).map(of).collect())
        };
        let loads: Vec<(u64, Vec<f64>)> = throughputs.iter().enumerate().map(logs).collect();
        assert_eq!(end_of(&loads, &RULE), expected);
    }

    #[test]
    fn what_is_shown_of_the_end_of_a_curve() {
        let few = (3, 1.0);
        check(&[1.0, 2.0, 3.0], few, End::Rising);
        check(&[1.0, 3.0, 2.0], few, End::Peak { from: 2, to: 2 });
        check(&[1.0, 3.0, 3.0, 2.0], few, End::Peak { from: 2, to: 4 });
        check(&[3.0, 3.0, 2.0], few, End::Falls { to: 2 });
        check(&[1.0, 3.0, 3.0], (10, 1.0), End::Level { from: 2 });
        check(&[3.0, 3.0, 3.0], (10, 1.0), End::Level { from: 1 });
    }

    #[test]
    fn what_is_not_shown_is_neither_level_nor_a_peak() {
        // Two percent less at the end, and repetitions that differ by more.
        check(&[1.0, 3.0, 2.94], (3, 3.0), End::NoFurtherRise { from: 2 });
        check(&[3.0, 2.9, 2.94], (3, 4.0), End::NoRise);
        check(&[1.0, 3.0, 2.0], (1, 1.0), End::Unknown);
        check(&[1.0], (3, 1.0), End::Unknown);
        check(&[], (3, 1.0), End::Unknown);
    }
}
