//! The rule by which variants are settled, on plain numbers.
//!
//! A run is looked at when its variants have had certain numbers of repetitions. All looks before the
//! last share half of the error rate evenly, the other half is kept for the end of the run, whenever
//! that is. So however often is looked, and whatever is stopped for what was seen, the rates of a run
//! without looks hold (the sum of the levels of all looks bounds them).

use dyno_record::StoppingRecord;

use crate::statistics::{Call, Effect, Rule, is_inside};

/// What is known of a run at a look: values of the primary metric.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Of each variant, the one that it is compared with.
    pub baselines: Vec<Option<usize>>,
    /// Of each variant and step, block and natural logarithm of the value.
    pub logs: Vec<Vec<Vec<(u32, f64)>>>,
    /// Of each step, whether more is better.
    pub more_is_better: Vec<bool>,
    /// Of each step, the standard deviation that the instrument alone gives to a logarithm.
    pub resolution: Vec<f64>,
    pub repetitions: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    AllDone,
    /// Against its baseline every step is decided, so.
    Decided(Vec<Call>),
    /// At every step this variant is better than it by more than the threshold.
    CannotWin(usize),
    /// It is compared with nothing, and known to within the threshold.
    Precise,
    /// It is the baseline of variants that are all settled.
    NotNeeded,
}

/// The numbers of repetitions after which is looked, the last being the end: each is a quarter more
/// than the one before, and at least one more.
pub fn looks(stopping: &StoppingRecord) -> Vec<u32> {
    let most = stopping.repetitions_max;
    // Two repetitions are the fewest that have bounds.
    let mut looks = Vec::new();
    let mut next = stopping.repetitions_min.max(2);
    while next < most {
        looks.push(next);
        next = (next + 1).max((f64::from(next) * 1.25).ceil() as u32);
    }
    looks.push(most);
    looks
}

pub fn level_of_a_look(stopping: &StoppingRecord, rule: &Rule) -> f64 {
    let before_the_end = looks(stopping).len().saturating_sub(1).max(1);
    0.5 * (1.0 - rule.confidence) / before_the_end as f64
}

/// The level that is kept for the end of the run: half of it, or all where there is no look before.
pub fn level_of_the_end(stopping: &StoppingRecord, rule: &Rule) -> f64 {
    let share = if looks(stopping).len() > 1 { 0.5 } else { 1.0 };
    share * (1.0 - rule.confidence)
}

/// Which variants are settled.
///
/// A variant whose number of repetitions is not one that is looked at keeps going. What is settled
/// stays so while nothing is added to it: its own comparisons are judged at Bonferroni's level, which
/// does not depend on how the others fare.
pub fn settle(series: &Series, stopping: &StoppingRecord, rule: &Rule) -> Vec<Option<Why>> {
    let looks = looks(stopping);
    let level = level_of_a_look(stopping, rule);
    let n = series.baselines.len();
    let by_itself = |variant: usize| {
        let repetitions = series.repetitions[variant];
        if repetitions >= stopping.repetitions_max {
            Some(Why::AllDone)
        } else if !looks.contains(&repetitions) {
            None
        } else if series.baselines[variant].is_some() {
            series.decided(variant, level, rule).or_else(|| series.beaten(variant, level, rule))
        } else if series.is_baseline(variant) {
            None
        } else {
            series.is_precise(variant, level, rule).then_some(Why::Precise)
        }
    };
    let own: Vec<Option<Why>> = (0..n).map(by_itself).collect();
    let mut why = own.clone();
    // What is only a baseline is needed as long as what is compared with it; so is a variant that is a
    // baseline of others, even if its own comparison is decided.
    for variant in (0..n).filter(|v| series.baselines[*v].is_none() && series.is_baseline(*v)) {
        let enough = series.repetitions[variant] >= stopping.repetitions_min;
        why[variant] = why[variant].take().or(enough.then_some(Why::NotNeeded));
    }
    let is_needed = |variant: usize| {
        (0..n).any(|other| series.baselines[other] == Some(variant) && own[other].is_none())
    };
    for (variant, why) in why.iter_mut().enumerate() {
        if is_needed(variant) && *why != Some(Why::AllDone) {
            *why = None;
        }
    }
    why
}

/// The level at which the comparisons of each variant are judged when the run has ended: that of a
/// look where it was settled at one or was repeated less often than others, else that of the end.
pub fn levels(series: &Series, stopping: &StoppingRecord, rule: &Rule) -> Vec<f64> {
    let most = series.repetitions.iter().copied().max().unwrap_or(0);
    let of = |(why, repetitions): (Option<Why>, &u32)| {
        let is_at_a_look = matches!(why, Some(Why::Decided(_) | Why::CannotWin(_)));
        let is_behind = *repetitions < most;
        if is_at_a_look || is_behind {
            level_of_a_look(stopping, rule)
        } else {
            level_of_the_end(stopping, rule)
        }
    };
    settle(series, stopping, rule).into_iter().zip(&series.repetitions).map(of).collect()
}

/// The level of the bounds of each variant's own estimates when the run has ended: that of a look
/// where the variant was stopped at one, for whatever reason, else that of the end. The levels of all
/// looks add up to 1 − confidence, so at whichever of them it was stopped its bounds hold the truth
/// with that confidence.
pub fn levels_of_cells(series: &Series, stopping: &StoppingRecord, rule: &Rule) -> Vec<f64> {
    let most = series.repetitions.iter().copied().max().unwrap_or(0);
    let of = |(why, repetitions): (Option<Why>, &u32)| {
        let is_stopped = !matches!(why, None | Some(Why::AllDone));
        if is_stopped || *repetitions < most {
            level_of_a_look(stopping, rule)
        } else {
            level_of_the_end(stopping, rule)
        }
    };
    settle(series, stopping, rule).into_iter().zip(&series.repetitions).map(of).collect()
}

impl Series {
    fn n_steps(&self) -> usize {
        self.more_is_better.len()
    }

    fn is_baseline(&self, variant: usize) -> bool {
        self.baselines.contains(&Some(variant))
    }

    /// The difference of logarithms within the blocks that both have.
    pub fn effect(&self, variant: usize, other: usize, step: usize) -> Option<Effect> {
        let theirs = &self.logs[other][step];
        let partner = |block: u32| theirs.iter().find(|(own, _)| *own == block);
        let differences: Vec<f64> = self.logs[variant][step]
            .iter()
            .filter_map(|&(block, our)| partner(block).map(|&(_, their)| our - their))
            .collect();
        Effect::paired(&differences, self.resolution[step])
    }

    fn decided(&self, variant: usize, level: f64, rule: &Rule) -> Option<Why> {
        let baseline = self.baselines[variant]?;
        let compared = self.baselines.iter().flatten().count() * self.n_steps();
        let own = Rule { confidence: 1.0 - level, ..*rule };
        let call = |step: usize| {
            let effect = self.effect(variant, baseline, step)?;
            match effect.p_value() <= level / compared as f64 {
                _ if is_inside(&effect, &own) => Some(Call::Inside),
                true if effect.value > 0.0 => Some(Call::Higher),
                true => Some(Call::Lower),
                false => None,
            }
        };
        let calls: Option<Vec<Call>> = (0..self.n_steps()).map(call).collect();
        calls.filter(|calls| !calls.is_empty()).map(Why::Decided)
    }

    /// A variant that is better than this one by more than the threshold, at every step, surely.
    fn beaten(&self, variant: usize, level: f64, rule: &Rule) -> Option<Why> {
        let n = self.baselines.len();
        let pairs = (n * n.saturating_sub(1) / 2 * self.n_steps()).max(1);
        let surely_behind = |other: usize, step: usize| {
            let sign = if self.more_is_better[step] { 1.0 } else { -1.0 };
            self.effect(variant, other, step).is_some_and(|effect| {
                let beyond = -sign * effect.value - rule.band();
                let shifted = Effect { value: beyond, ..effect };
                beyond > 0.0 && shifted.p_value() <= level / pairs as f64
            })
        };
        let beats = |other: &usize| {
            *other != variant
                && self.n_steps() > 0
                && (0..self.n_steps()).all(|step| surely_behind(*other, step))
        };
        (0..n).find(beats).map(Why::CannotWin)
    }

    /// Whether the bounds of each step's mean are within the threshold of it.
    fn is_precise(&self, variant: usize, level: f64, rule: &Rule) -> bool {
        let is_known = |step: usize| {
            let logs: Vec<f64> = self.logs[variant][step].iter().map(|(_, log)| *log).collect();
            let effect = Effect::of_one(&logs, self.resolution[step]);
            effect.is_some_and(|effect| effect.half_width(1.0 - level) <= rule.band())
        };
        self.n_steps() > 0 && (0..self.n_steps()).all(is_known)
    }
}
