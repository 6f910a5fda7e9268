//! What goes with a difference between a variant and its baseline, and what does not: the uses per transaction that
//! differ as well, or are shown to be the same. An association in the record, not a proof of a cause.

use std::collections::BTreeMap;

use dyno_units::MetricId;
use serde::{Deserialize, Serialize};

use crate::cells::{Measured, at};
use crate::compare::{CommonError, Levels, Samples, difference_estimate, in_percent};
use crate::join::Joined;
use crate::statistics::{Call, Effect, Rule, call_among, geometric_mean, mean};
use crate::words::distinct;
use crate::{Comparison, Estimate, Verdict, metrics};

use super::candidates::{Candidate, Family, Per, Uses, is_of_server};

/// Bounds of fewer say too little.
const REPETITIONS_LEAST: u32 = 3;

const REASONS_MOST: usize = 3;

/// Least change that matters, of a count: one in a hundred transactions.
const COUNT_LEAST: f64 = 0.01;

/// Of bytes for each transaction.
const BYTES_LEAST: f64 = 100.0;

const SERVER_CPU: &str = "cpu.server";

/// One comparison in the main metric of its step: what goes with it, and what does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhyFacts {
    pub variant: usize,
    pub baseline: usize,
    pub step: usize,
    pub metric: MetricId,
    pub verdict: Verdict,
    /// Uses in all comparisons of the study that could have been named: reasons are corrected for this number.
    pub looked_at: usize,
    /// Those that go with it, at most three, the largest first, relative to the least that matters.
    pub reasons: Vec<UseEffect>,
    /// In the order in which readers look for them.
    pub others: Vec<UseEffect>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UseEffect {
    /// Of a [`Use`](super::Use), or `wait.row_locks`, `wait.cpu`, `cpu.steal`.
    pub name: String,
    /// In sentences.
    pub title: String,
    /// `transaction`, `second`.
    pub per: String,
    /// In percent of the baseline; in the use's own unit if it is next to nothing, or nothing in some trial. The
    /// bounds of a use that is higher or lower are corrected for the number looked at.
    pub effect: Estimate,
    pub call: Call,
}

/// Of main comparisons that are decided, and of undecided ones in which the server's CPU per transaction is.
pub(crate) fn why(
    joined: &Joined<'_>,
    (measured, comparisons): (&[Measured], &[Comparison]),
    levels: &Levels<'_>,
    cpus: u32,
) -> Vec<WhyFacts> {
    let is_asked = |c: &&Comparison| {
        c.is_main && c.relative.n >= REPETITIONS_LEAST && joined.steps[c.step].search.is_none()
    };
    let mains: Vec<&Comparison> = comparisons.iter().filter(is_asked).collect();
    if mains.is_empty() {
        return Vec::new();
    }
    let mut differences = Differences {
        joined,
        measured,
        levels,
        cpus: f64::from(cpus),
        uses: Uses::of(joined),
        errors: BTreeMap::new(),
    };
    let all = differences.of(&mains);
    let looked_at = all.iter().flatten().filter(|one| one.may_matter).count();
    let told = |(c, all): (&&Comparison, Vec<Difference>)| {
        let rule = levels.of(c.variant);
        let called = all.into_iter().map(|one| (one.call(&rule, looked_at), one)).collect();
        facts(c, called, &rule, looked_at)
    };
    mains.iter().zip(all).filter_map(told).collect()
}

/// With the call of each.
fn facts(
    c: &Comparison,
    all: Vec<(Call, Difference)>,
    rule: &Rule,
    looked_at: usize,
) -> Option<WhyFacts> {
    let is_cost = |one: &Difference| one.candidate.name == SERVER_CPU;
    let has_cost = all.iter().any(|(call, one)| is_cost(one) && *call != Call::Undecided);
    let is_told = match c.verdict {
        Verdict::Better | Verdict::Worse => true,
        Verdict::NoDifference => false,
        Verdict::Inconclusive => has_cost,
    };
    if !is_told || !all.iter().any(|(_, one)| is_of_server(&one.candidate)) {
        return None;
    }
    let named = reasons(c.verdict, &all, rule);
    let told = |idx: usize| all[idx].1.told(all[idx].0, rule, looked_at);
    let others = (0..all.len()).filter(|idx| !named.contains(idx));
    Some(WhyFacts {
        variant: c.variant,
        baseline: c.baseline,
        step: c.step,
        metric: c.metric,
        verdict: c.verdict,
        looked_at,
        reasons: named.iter().map(|idx| told(*idx)).collect(),
        others: others.map(told).collect(),
    })
}

/// More for what is worse, less for what is better; one of each family, the largest first, relative to the least that matters.
fn reasons(verdict: Verdict, all: &[(Call, Difference)], rule: &Rule) -> Vec<usize> {
    let goes_with = |call: Call| match (verdict, call) {
        (Verdict::Worse, Call::Higher) | (Verdict::Better, Call::Lower) => true,
        (Verdict::Inconclusive, call) => matches!(call, Call::Higher | Call::Lower),
        _ => false,
    };
    let is_such = |family: Family, idx: &usize| {
        all[*idx].1.candidate.family == family && goes_with(all[*idx].0)
    };
    let is_any = |family: Family| (0..all.len()).any(|idx| is_such(family, &idx));
    let has_parts = all.iter().any(|(_, one)| one.candidate.family == Family::ClientThreads);
    let has_part = is_any(Family::ClientThreads) || is_any(Family::OtherThreads);
    let of_family = |family: Family| {
        let mut own = (0..all.len()).filter(|idx| is_such(family, idx));
        match family {
            Family::OtherThreads => {
                own.max_by(|a, b| all[*a].1.change().total_cmp(&all[*b].1.change()))
            }
            // Constant work of background threads is in the whole.
            Family::Cpu if has_parts && !has_part => None,
            // The whole says it.
            Family::ClientThreads if is_any(Family::Cpu) => None,
            _ => own.next(),
        }
    };
    let families = distinct(all.iter().map(|(_, one)| one.candidate.family));
    let mut named: Vec<usize> = families.into_iter().filter_map(of_family).collect();
    let distance = |idx: usize| all[idx].1.distance(rule);
    named.sort_by(|a, b| distance(*b).total_cmp(&distance(*a)));
    named.truncate(REASONS_MOST);
    named
}

/// Between a variant and its baseline in one use.
struct Difference {
    candidate: Candidate,
    samples: Samples,
    /// Of logarithms, or on the plain scale.
    effect: Effect,
    is_log: bool,
    /// Of the baseline, in the use's unit.
    base: f64,
    /// Least change that matters, in that unit.
    least: f64,
    /// Whether anything here is as large as that.
    may_matter: bool,
    /// Of work that no transaction waits for, in the same use per second.
    by_second: Option<Effect>,
}

impl Difference {
    fn call(&self, rule: &Rule, looked_at: usize) -> Call {
        let level = 1.0 - rule.confidence;
        let band = if self.is_log { rule.band() } else { self.least };
        match call_among(&self.effect, (band, level), looked_at) {
            Call::Higher | Call::Lower if self.change() < self.least => Call::Undecided,
            Call::Higher | Call::Lower if self.is_by_time(level) => Call::Undecided,
            call => call,
        }
    }

    /// Whether a constant use for each second would look the same: slower transactions then have more of it.
    fn is_by_time(&self, level: f64) -> bool {
        let is_as_well = |own: &Effect| {
            own.value.signum() == self.effect.value.signum() && own.p_value() <= level
        };
        self.by_second.is_some_and(|own| !is_as_well(&own))
    }

    /// In the use's unit.
    fn change(&self) -> f64 {
        let value = self.effect.value;
        if self.is_log { (self.base * value.exp_m1()).abs() } else { value.abs() }
    }

    /// As a multiple of the least that matters.
    fn distance(&self, rule: &Rule) -> f64 {
        let least = if self.is_log { rule.band() } else { self.least };
        self.effect.value.abs() / least
    }

    fn told(&self, call: Call, rule: &Rule, looked_at: usize) -> UseEffect {
        let level = match call {
            Call::Higher | Call::Lower => (1.0 - rule.confidence) / looked_at.max(1) as f64,
            Call::Inside | Call::Undecided => 1.0 - rule.confidence,
        };
        let (effect, confidence) = (Some(self.effect), 1.0 - level);
        let effect = match self.samples.logs().filter(|_| self.is_log) {
            Some(logs) => in_percent(difference_estimate(&logs, effect, confidence, "")),
            None => difference_estimate(&self.samples, effect, confidence, self.candidate.unit),
        };
        let Candidate { name, words, per, .. } = self.candidate.clone();
        UseEffect { name, title: words, per: per.word().to_owned(), effect, call }
    }
}

/// What differences between the variants of a study are made from.
struct Differences<'a> {
    joined: &'a Joined<'a>,
    measured: &'a [Measured],
    levels: &'a Levels<'a>,
    cpus: f64,
    uses: Uses,
    /// Each use is a family with a common error, as a metric is. Of the use that is looked at.
    errors: BTreeMap<(String, Per), Option<CommonError>>,
}

impl Differences<'_> {
    /// By comparison, in the order of its candidates. One use after the other, whose errors are then dropped: a study
    /// can have very many.
    fn of(&mut self, all: &[&Comparison]) -> Vec<Vec<Difference>> {
        let mut by_name = BTreeMap::<String, Vec<((usize, usize), Candidate)>>::new();
        for (nth, c) in all.iter().enumerate() {
            let candidates = self.uses.candidates((c.variant, c.baseline), c.step);
            for (place, one) in candidates.into_iter().enumerate() {
                by_name.entry(one.name.clone()).or_default().push(((nth, place), one));
            }
        }
        let mut found: Vec<BTreeMap<usize, Difference>> =
            all.iter().map(|_| BTreeMap::new()).collect();
        for (_, places) in by_name {
            for ((nth, place), one) in places {
                found[nth].extend(self.one(all[nth], one).map(|one| (place, one)));
            }
            self.errors.clear();
        }
        found.into_iter().map(|own| own.into_values().collect()).collect()
    }

    fn one(&mut self, c: &Comparison, mut candidate: Candidate) -> Option<Difference> {
        let of = (&*candidate.name, candidate.per);
        let of_variant = |variant| self.uses.values(of, variant, c.step);
        let (ours, theirs) = (of_variant(c.variant), of_variant(c.baseline));
        let least = self.least(c, &candidate);
        let samples = Samples::new(&ours, &theirs, self.joined.interleaved);
        let values: Vec<f64> = ours.iter().chain(&theirs).map(|(_, value)| *value).collect();
        let may_matter = values.iter().any(|value| *value >= least);
        let logs = samples.logs().filter(|_| may_matter);
        let (is_log, base) = (logs.is_some(), base(&theirs));
        let effect = match logs {
            Some(logs) => self.with_common_error(c, of, &samples, logs.effect(0.0)?),
            None => samples.effect(0.0)?,
        };
        let by_second = match candidate.family {
            Family::OtherThreads => Some(self.by_second(c, &candidate.name)?),
            _ => None,
        };
        let is_inside = || self.joined.product_facts(c.variant).in_process;
        if candidate.family == Family::Generator && is_inside() {
            candidate.words += " and the database inside it";
        }
        let difference =
            Difference { candidate, samples, effect, is_log, base, least, may_matter, by_second };
        (effect.n >= REPETITIONS_LEAST).then_some(difference)
    }

    fn with_common_error(
        &mut self,
        c: &Comparison,
        of: (&str, Per),
        samples: &Samples,
        own: Effect,
    ) -> Effect {
        if !samples.is_paired() {
            return own;
        }
        let Differences { joined, levels, uses, errors, .. } = self;
        let made = || {
            CommonError::new(joined, levels, joined.steps.len(), |variant, step| {
                uses.values(of, variant, step)
            })
        };
        let error = errors.entry((of.0.to_owned(), of.1)).or_insert_with(made);
        let error = error.as_ref().and_then(|error| error.of((c.variant, c.baseline), c.step));
        error.map_or(own, |error| own.with_error(error))
    }

    fn by_second(&mut self, c: &Comparison, name: &str) -> Option<Effect> {
        let of = (name, Per::Second);
        let of_variant = |variant| self.uses.values(of, variant, c.step);
        let (ours, theirs) = (of_variant(c.variant), of_variant(c.baseline));
        let samples = Samples::new(&ours, &theirs, self.joined.interleaved);
        match samples.logs() {
            Some(logs) => Some(self.with_common_error(c, of, &samples, logs.effect(0.0)?)),
            None => samples.effect(0.0),
        }
    }

    /// Least change that matters beside the threshold: a part of the server's CPU by the whole of it, a wait by the
    /// response time.
    fn least(&self, c: &Comparison, candidate: &Candidate) -> f64 {
        let threshold = self.levels.rule.threshold;
        match (candidate.family, candidate.unit) {
            (Family::ClientThreads | Family::OtherThreads, _) => {
                let whole = (SERVER_CPU, Per::Transaction);
                threshold * base(&self.uses.values(whole, c.baseline, c.step))
            }
            (Family::Elsewhere, _) => threshold * self.cpus * 1e6,
            (Family::Waits, "µs") => {
                let here = at(self.measured, c.baseline, c.step);
                let times = here.iter().filter_map(|m| m.value(metrics::RESPONSE_MEAN));
                threshold * mean(&times.collect::<Vec<f64>>())
            }
            (_, "B") => BYTES_LEAST,
            (_, "") => COUNT_LEAST,
            _ => 0.0,
        }
    }
}

/// The geometric mean; with a zero, the plain one.
fn base(values: &[(u32, f64)]) -> f64 {
    let values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    geometric_mean(&values).unwrap_or_else(|| mean(&values))
}

#[cfg(test)]
mod tests;
