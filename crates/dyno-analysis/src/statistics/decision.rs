//! From a family of effects to what may be said of each.

use super::correction::holm;
use super::effect::Effect;
use super::power::probability_of_decision;

pub const REPETITIONS_CAP: u32 = 1_000;

/// The probability with which the repetitions that are asked for decide, if effect and spread are
/// what was measured.
pub const DECIDED_WITH: f64 = 0.8;

const REPETITIONS_LEAST: u32 = 3;

/// When a difference is called one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Smallest effect that matters, as a fraction: 0.03 for 3 %.
    pub threshold: f64,
    /// Confidence, as a fraction: 0.95.
    pub confidence: f64,
}

impl Rule {
    /// Half the width of the band in which an effect does not matter, on the scale of natural
    /// logarithms: ln(1 + threshold). The band is symmetric there, so that exchanging variant and
    /// baseline exchanges "better" and "worse" and changes nothing else.
    pub fn band(&self) -> f64 {
        self.threshold.max(0.0).ln_1p()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It is above zero by more than chance explains, and not sure to be too small to matter.
    Higher,
    Lower,
    /// It is inside the band.
    Inside,
    Undecided,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub call: Call,
    /// Student's p-value of no effect, corrected by Holm over the family: what `Higher` and `Lower`
    /// rest on. None of an effect without bounds.
    pub p_value: Option<f64>,
    /// Repetitions of a new run that decide it with a probability of [`DECIDED_WITH`] if effect and
    /// spread are what was measured, at most [`REPETITIONS_CAP`]; none where it is
    /// decided, and where no spread is known (one repetition, a value of zero).
    pub repetitions_needed: Option<u32>,
}

/// Decides a family of effects (logarithms of ratios) together; none is an effect without bounds.
///
/// * `Inside`: the bounds at the rule's confidence lie wholly inside the band. Each such call
///   errs with a probability of at most (1 − confidence) / 2.
/// * `Higher`, `Lower`: not `Inside`, and the p-value of no effect, corrected by Holm over the
///   family, is at most 1 − confidence. Any such call in a family without effects has a
///   probability of at most 1 − confidence.
/// * `Undecided` otherwise.
pub fn decide(effects: &[Option<Effect>], rule: &Rule) -> Vec<Decision> {
    let level = 1.0 - rule.confidence;
    let effects: Vec<(Option<Effect>, f64)> = effects.iter().map(|e| (*e, level)).collect();
    decide_at(&effects, rule)
}

/// As [`decide`], each effect at a level of its own, at most 1 − confidence: its p-value counts
/// (1 − confidence) / level times, and its bounds for `Inside` are those at 1 − level.
///
/// With the level of the look at which a comparison was ended, the rates of [`decide`] hold for a
/// run that is looked at again and again, if the levels of all looks add up to 1 − confidence at
/// most: Holm's proof needs no more than that each p-value, times its factor, is below any share of
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

/// The calls of [`decide_at`] with their corrected p-values, and nothing of what more it would take.
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

/// Whether the bounds lie wholly inside the band: whether the nearer edge of the band is further
/// from the value than half their width. Asked by way of the p-value, which is the cheaper way.
pub(crate) fn is_inside(effect: &Effect, rule: &Rule) -> bool {
    let room = rule.band() - effect.value.abs();
    room > 0.0 && Effect { value: room, ..*effect }.p_value() < 1.0 - rule.confidence
}

/// The fewest repetitions with which a new run decides with a probability of [`DECIDED_WITH`] if this
/// is the true effect and this the true spread; exclusion of zero at Bonferroni's level, which is
/// Holm's strictest.
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
    // Doubling first: most need few, and each question is dear.
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
