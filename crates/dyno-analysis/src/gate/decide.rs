//! The rule of the gate: a one-sided test of non-inferiority (harm of the threshold is excluded).

use serde::{Deserialize, Serialize};

use crate::statistics::power::probability_of_non_inferiority;
use crate::statistics::{DECIDED_WITH, Effect, REPETITIONS_CAP, Rule, holm, t_quantile};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateInput {
    /// Difference of logarithms, above zero if the candidate is worse; `None` without bounds.
    pub harm: Option<Effect>,
    /// 1 − confidence, or less in a run with looks before its end.
    pub level: f64,
    /// Must be shown to be no worse; others can only say worse.
    pub is_required: bool,
    /// Nothing done in any of at least three repetitions.
    pub is_total_loss: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateCall {
    /// Harm of the threshold or more is excluded.
    NoWorse,
    /// Harm of at least the threshold is shown.
    Worse,
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateDecision {
    pub call: GateCall,
    /// Largest harm not excluded, on the scale of logarithms; `None` without bounds.
    pub limit: Option<f64>,
    /// Repetitions of a new run that exclude harm for all required comparisons, with a probability
    /// of [`DECIDED_WITH`], if there is no difference; `None` if not needed.
    pub repetitions_needed: Option<u32>,
}

/// Judges all comparisons of a gate together.
///
/// - `NoWorse`: the harm's upper bound, one-sided at half the level (97.5 % for a confidence of
///   95 %), is below the band. The gate passes if all required ones are (an intersection-union
///   test, Berger 1982): a candidate worse by the threshold anywhere passes in at most 2.5 % of
///   cases, whatever their number.
/// - `Worse`: the one-sided p-value of no harm, corrected by Holm over all comparisons, is at most
///   1 − confidence, and the measured harm is not below the band. If nothing is worse, any such
///   call has a probability of at most 5 %.
pub fn decide_gate(inputs: &[GateInput], rule: &Rule) -> Vec<GateDecision> {
    let n_required = inputs.iter().filter(|one| one.is_required).count();
    let decide = |(one, (call, limit)): (&GateInput, (GateCall, Option<f64>))| {
        let open = one.harm.filter(|_| call == GateCall::Open && one.is_required);
        let needed = open.and_then(|harm| repetitions_needed(&harm, rule, (one.level, n_required)));
        GateDecision { call, limit, repetitions_needed: needed }
    };
    inputs.iter().zip(gate_calls(inputs, rule)).map(decide).collect()
}

/// The calls of [`decide_gate`] with the largest harm not excluded.
pub fn gate_calls(inputs: &[GateInput], rule: &Rule) -> Vec<(GateCall, Option<f64>)> {
    let whole = 1.0 - rule.confidence;
    let p_values: Vec<f64> = inputs
        .iter()
        .filter_map(|one| Some((p_of_no_harm(&one.harm?) * whole / one.level).min(1.0)))
        .collect();
    let mut corrected = holm(&p_values).into_iter();
    let call = |one: &GateInput| {
        let Some(harm) = one.harm else {
            let call = if one.is_total_loss { GateCall::Worse } else { GateCall::Open };
            return (call, None);
        };
        let p = corrected.next().expect("one corrected value for each known effect");
        let limit =
            harm.value + t_quantile(1.0 - one.level / 2.0, harm.freedom) * harm.standard_error;
        let call = if limit < rule.band() {
            GateCall::NoWorse
        } else if p <= whole && harm.value >= rule.band() {
            GateCall::Worse
        } else {
            GateCall::Open
        };
        (call, Some(limit))
    };
    inputs.iter().map(call).collect()
}

fn p_of_no_harm(harm: &Effect) -> f64 {
    let two_sided = harm.p_value();
    if harm.value > 0.0 { two_sided / 2.0 } else { 1.0 - two_sided / 2.0 }
}

/// Fewest that exclude harm; `None` above [`REPETITIONS_CAP`].
fn repetitions_needed(harm: &Effect, rule: &Rule, (level, required): (f64, usize)) -> Option<u32> {
    let each = DECIDED_WITH.powf(1.0 / required.max(1) as f64);
    let is_enough = |n: u32| {
        let grown = harm.with_repetitions(n);
        let band = rule.band() / grown.standard_error.max(1e-12);
        probability_of_non_inferiority(band, grown.freedom, level / 2.0) >= each
    };
    let (mut low, mut high) = (2, REPETITIONS_CAP);
    if !is_enough(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::*;

    const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

    fn input(value: f64, spread: f64, n: u32) -> GateInput {
        let standard_error = spread / f64::from(n).sqrt();
        let harm = Effect { value, standard_error, freedom: f64::from(n - 1), n, rounding: 0.0 };
        GateInput { harm: Some(harm), level: 0.05, is_required: true, is_total_loss: false }
    }

    #[track_caller]
    fn check(input: GateInput, expected: GateCall) {
        assert_eq!(decide_gate(&[input], &RULE)[0].call, expected);
    }

    #[test]
    fn it_asks_for_no_harm_and_not_for_no_difference() {
        // Faster by 8 % ± 9 %: the gate can decide, a verdict could not.
        check(input(-0.08, 0.06, 5), GateCall::NoWorse);
        check(input(0.0, 0.01, 5), GateCall::NoWorse);
        // Surely worse, but too little to matter.
        check(input(0.01, 0.001, 5), GateCall::NoWorse);
        check(input(0.0, 0.05, 5), GateCall::Open);
        check(input(0.10, 0.02, 5), GateCall::Worse);
        // Harm is shown, but below the threshold.
        check(input(0.028, 0.005, 5), GateCall::Open);
    }

    /// Throughput and response times form one family: two would be wrong twice as often.
    #[test]
    fn all_comparisons_of_a_gate_are_one_family() {
        // One-sided, p = 3 %.
        let one = input(0.10, 0.086, 5);
        check(one, GateCall::Worse);
        let beside = GateInput { is_required: false, ..input(0.0, 0.086, 5) };
        assert_eq!(decide_gate(&[one, beside], &RULE)[0].call, GateCall::Open);
    }

    #[test]
    fn a_run_that_was_looked_at_is_held_to_the_level_of_its_look() {
        let plain = input(0.0, 0.027, 6);
        check(plain, GateCall::NoWorse);
        check(GateInput { level: 0.005, ..plain }, GateCall::Open);
    }

    #[test]
    fn what_has_no_bounds_is_open_unless_all_is_lost() {
        let none = GateInput { harm: None, ..input(0.0, 1.0, 3) };
        check(none, GateCall::Open);
        check(GateInput { is_total_loss: true, ..none }, GateCall::Worse);
    }

    /// Shares of gates over four steps that pass, and that say worse.
    fn rates(harm: f64, n: usize, noise: f64) -> (f64, f64) {
        let mut random = Seed(81).stream();
        let (mut passed, mut worse) = (0, 0);
        for _ in 0..1_000 {
            let mut one = |required: bool| {
                let pairs: Vec<f64> =
                    (0..n).map(|_| harm + noise * (random.normal() - random.normal())).collect();
                let effect = Effect::paired(&pairs, 0.0);
                GateInput { harm: effect, is_required: required, ..input(0.0, 1.0, 3) }
            };
            let inputs: Vec<GateInput> = (0..4).flat_map(|_| [one(true), one(false)]).collect();
            let calls = gate_calls(&inputs, &RULE);
            let is_worse = calls.iter().any(|(call, _)| *call == GateCall::Worse);
            let mut required = calls.iter().zip(&inputs).filter(|(_, i)| i.is_required);
            let passes = !is_worse && required.all(|((call, _), _)| *call == GateCall::NoWorse);
            passed += u32::from(passes);
            worse += u32::from(is_worse);
        }
        (f64::from(passed) / 1_000.0, f64::from(worse) / 1_000.0)
    }

    #[test]
    fn it_passes_what_is_the_same_and_stops_what_is_worse() {
        let (passed, worse) = rates(0.0, 10, 0.01);
        assert!(passed > 0.95 && worse < 0.01, "{passed} {worse}");
        // Harm of the threshold passes in at most 2.5 % of cases.
        let (passed, _) = rates(RULE.band(), 10, 0.01);
        assert!(passed <= 0.03, "{passed}");
        let (passed, worse) = rates(2.0 * RULE.band(), 10, 0.01);
        assert!(passed == 0.0 && worse > 0.9, "{passed} {worse}");
        // Without harm, worse in at most 5 %.
        let (_, worse) = rates(0.0, 3, 0.03);
        assert!(worse <= 0.065, "{worse}");
    }

    #[test]
    fn as_many_repetitions_as_it_asks_for_pass() {
        let open = input(0.02, 0.02_f64 * std::f64::consts::SQRT_2, 4);
        let needed = decide_gate(&[open; 4], &RULE)[0].repetitions_needed.expect("it is open");
        let mut random = Seed(82).stream();
        let mut passed = 0;
        for _ in 0..1_000 {
            let mut one = || {
                let pairs: Vec<f64> =
                    (0..needed).map(|_| 0.02 * (random.normal() - random.normal())).collect();
                GateInput { harm: Effect::paired(&pairs, 0.0), ..open }
            };
            let inputs: Vec<GateInput> = (0..4).map(|_| one()).collect();
            let all = gate_calls(&inputs, &RULE);
            passed += u32::from(all.iter().all(|(call, _)| *call == GateCall::NoWorse));
        }
        assert!((760..=900).contains(&passed), "{passed} of 1000 with {needed}");
    }
}
