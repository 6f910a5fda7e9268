//! From a family of effects to what may be said of each.

use serde::{Deserialize, Serialize};

use super::correction::holm;
use super::effect::Effect;
use super::power::probability_of_decision;

pub const REPETITIONS_CAP: u32 = 1_000;

/// Of deciding with the suggested repetitions, for the measured effect and spread.
pub const DECIDED_WITH: f64 = 0.8;

const REPETITIONS_LEAST: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Smallest effect that matters, as a fraction.
    pub threshold: f64,
    /// As a fraction.
    pub confidence: f64,
}

impl Rule {
    /// Half the width of the band of effects that do not matter, ln(1 + threshold): symmetric, so
    /// exchanging variant and baseline exchanges "better" and "worse".
    pub fn band(&self) -> f64 {
        self.threshold.max(0.0).ln_1p()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Above zero by more than chance explains, and not surely too small to matter.
    Higher,
    Lower,
    /// Inside the band.
    Inside,
    Undecided,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub call: Call,
    /// Student's, by Holm: the basis of `Higher` and `Lower`. `None` without bounds.
    pub p_value: Option<f64>,
    /// Repetitions of a new run that decide ([`DECIDED_WITH`]) for the measured effect and spread,
    /// at most [`REPETITIONS_CAP`]; `None` if decided, or without a spread.
    pub repetitions_needed: Option<u32>,
}

/// Decides a family of effects (logarithms of ratios); `None` is an effect without bounds.
///
/// * `Inside`: the bounds at the rule's confidence are inside the band. Errs with a probability of
/// at most (1 − confidence) / 2.
/// * `Higher`, `Lower`: not `Inside`, and the p-value of no effect, corrected by Holm, is at most 1
/// − confidence. Any such call in a family without effects has at most that probability.
/// * `Undecided` otherwise.
pub fn decide(effects: &[Option<Effect>], rule: &Rule) -> Vec<Decision> {
    let level = 1.0 - rule.confidence;
    let effects: Vec<(Option<Effect>, f64)> = effects.iter().map(|e| (*e, level)).collect();
    decide_at(&effects, rule)
}

/// [`decide`] with a level for each effect, at most 1 − confidence: its p-value counts (1 −
/// confidence) / level times, and `Inside` uses bounds at 1 − level. With the level of the look
/// that ended a comparison, the rates of [`decide`] hold for repeated looks if their levels add up
/// to at most 1 − confidence: Holm's proof only needs each scaled p-value to be below any share of
/// the level with at most that probability.
pub fn decide_at(effects: &[(Option<Effect>, f64)], rule: &Rule) -> Vec<Decision> {
    let family = effects.iter().filter(|(effect, _)| effect.is_some()).count();
    let decide_one = |((effect, level), (call, p_value)): (&(Option<Effect>, f64), _)| {
        let own = Rule { confidence: 1.0 - level, ..*rule };
        // Without a spread nobody knows how many would decide.
        let open = effect.as_ref().filter(|_| call == Call::Undecided);
        let repetitions_needed = open.map(|effect| repetitions_needed(effect, &own, family));
        Decision { call, p_value, repetitions_needed }
    };
    effects.iter().zip(calls_at(effects, rule)).map(decide_one).collect()
}

/// The calls of [`decide_at`] with corrected p-values, without the repetitions needed.
pub fn calls_at(effects: &[(Option<Effect>, f64)], rule: &Rule) -> Vec<(Call, Option<f64>)> {
    let whole = 1.0 - rule.confidence;
    let known: Vec<f64> = effects
        .iter()
        .filter_map(|(effect, level)| Some((effect.as_ref()?.p_value() * whole / level).min(1.0)))
        .collect();
    let mut corrected = holm(&known).into_iter();
    let call_one = |(effect, level): &(Option<Effect>, f64)| {
        let own = Rule { confidence: 1.0 - level, ..*rule };
        let Some(effect) = effect else { return (Call::Undecided, None) };
        let p = corrected.next().expect("one corrected value for each known effect");
        let call = if is_inside(effect, &own) {
            Call::Inside
        } else if p > whole {
            Call::Undecided
        } else if effect.value > 0.0 {
            Call::Higher
        } else {
            Call::Lower
        };
        (call, Some(p))
    };
    effects.iter().map(call_one).collect()
}

/// Of one of so many effects, any of which may be named: `Higher` and `Lower` if its bounds at level ÷ `among`
/// (Bonferroni) exclude zero and it is beyond the band itself; `Inside` as in [`decide`], without a correction.
pub fn call_among(effect: &Effect, (band, level): (f64, f64), among: usize) -> Call {
    let is_beyond = effect.value.abs() >= band && effect.value != 0.0;
    if is_within(effect, band, level) {
        Call::Inside
    } else if !is_beyond || effect.p_value() * among.max(1) as f64 > level {
        Call::Undecided
    } else if effect.value > 0.0 {
        Call::Higher
    } else {
        Call::Lower
    }
}

pub(crate) fn is_inside(effect: &Effect, rule: &Rule) -> bool {
    is_within(effect, rule.band(), 1.0 - rule.confidence)
}

/// Bounds inside the band, whose nearer edge is beyond half their width: by the cheaper p-value.
fn is_within(effect: &Effect, band: f64, level: f64) -> bool {
    let room = band - effect.value.abs();
    room > 0.0 && Effect { value: room, ..*effect }.p_value() < level
}

/// Fewest that decide for this effect and spread; zero is excluded at Holm's strictest level.
fn repetitions_needed(effect: &Effect, rule: &Rule, family: usize) -> u32 {
    let level = 1.0 - rule.confidence;
    let is_decided = |n: u32| {
        let grown = effect.with_repetitions(n);
        if grown.standard_error <= 0.0 {
            return true;
        }
        let in_errors = |log: f64| log / grown.standard_error;
        probability_of_decision(
            (in_errors(grown.value), in_errors(rule.band())),
            grown.freedom,
            (level, level / family as f64),
        ) >= DECIDED_WITH
    };
    let (mut low, mut high) = (2, 4);
    // Doubling first: most need few, and each question is expensive.
    while high < REPETITIONS_CAP && !is_decided(high) {
        (low, high) = (high + 1, (2 * high).min(REPETITIONS_CAP));
    }
    if high == REPETITIONS_CAP && !is_decided(high) {
        return REPETITIONS_CAP;
    }
    // The probability grows with n.
    while low < high {
        let middle = low + (high - low) / 2;
        if is_decided(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low.max(REPETITIONS_LEAST)
}

#[cfg(test)]
mod tests;
