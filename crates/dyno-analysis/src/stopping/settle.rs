//! The rule that settles variants, on plain numbers. Looks happen at certain numbers of
//! repetitions; all but the last share half of the error rate evenly, the other half is kept for
//! the end, whenever that is. So the rates of a run without looks hold, whatever is stopped.

use dyno_record::StoppingRecord;

use crate::statistics::{Call, Effect, Rule, is_inside};

/// At a look: values of the primary metric.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// By variant.
    pub baselines: Vec<Option<usize>>,
    /// Block and natural logarithm, by variant and step.
    pub logs: Vec<Vec<Vec<(u32, f64)>>>,
    /// By step.
    pub more_is_better: Vec<bool>,
    /// The instrument's standard deviation of a logarithm, by step.
    pub resolution: Vec<f64>,
    pub repetitions: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    AllDone,
    /// Against its baseline, by step.
    Decided(Vec<Call>),
    /// This variant is better by more than the threshold at every step.
    CannotWin(usize),
    /// Compared with nothing, and known to within the threshold.
    Precise,
    /// A baseline of settled variants only.
    NotNeeded,
}

/// Repetitions at looks, each a quarter more than the last and at least one; the last is the end.
pub fn looks(stopping: &StoppingRecord) -> Vec<u32> {
    let most = stopping.repetitions_max;
    // Bounds need two repetitions.
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

/// Half of the level, or all without an earlier look.
pub fn level_of_the_end(stopping: &StoppingRecord, rule: &Rule) -> f64 {
    let share = if looks(stopping).len() > 1 { 0.5 } else { 1.0 };
    share * (1.0 - rule.confidence)
}

/// Which variants are settled; a variant between looks goes on. Settled variants stay so while
/// nothing is added: they are judged at Bonferroni's level, whatever the others do.
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
    // A baseline is needed as long as its variants are, even if its own comparison is decided.
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

/// For comparisons at the end of the run: that of a look if the variant was settled at one, or has
/// fewer repetitions than others; else that of the end.
pub fn levels(series: &Series, stopping: &StoppingRecord, rule: &Rule) -> Vec<f64> {
    let is_at_a_look = |why: &Option<Why>| matches!(why, Some(Why::Decided(_) | Why::CannotWin(_)));
    levels_by(series, stopping, rule, is_at_a_look)
}

/// For bounds of a variant's own estimates: that of the look at which it was stopped, for any
/// reason, or of the end. All looks' levels add up to 1 − confidence, so bounds hold either way.
pub fn levels_of_cells(series: &Series, stopping: &StoppingRecord, rule: &Rule) -> Vec<f64> {
    levels_by(series, stopping, rule, |why| !matches!(why, None | Some(Why::AllDone)))
}

fn levels_by(
    series: &Series,
    stopping: &StoppingRecord,
    rule: &Rule,
    is_stopped: fn(&Option<Why>) -> bool,
) -> Vec<f64> {
    let most = series.repetitions.iter().copied().max().unwrap_or(0);
    let of = |(why, repetitions): (Option<Why>, &u32)| match is_stopped(&why) || *repetitions < most
    {
        true => level_of_a_look(stopping, rule),
        false => level_of_the_end(stopping, rule),
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

    /// Within the blocks that both have.
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

    /// By a variant that is surely better by more than the threshold at every step.
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

    /// The bounds of each step's mean are within the threshold.
    fn is_precise(&self, variant: usize, level: f64, rule: &Rule) -> bool {
        let is_known = |step: usize| {
            let logs: Vec<f64> = self.logs[variant][step].iter().map(|(_, log)| *log).collect();
            let effect = Effect::of_one(&logs, self.resolution[step]);
            effect.is_some_and(|effect| effect.half_width(1.0 - level) <= rule.band())
        };
        self.n_steps() > 0 && (0..self.n_steps()).all(is_known)
    }
}
