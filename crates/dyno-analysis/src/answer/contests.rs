//! The headline of a study with several baselines: the best variant for each, never across them.

use super::AnswerWriter;
use super::ranking::{Ranked, Standing};
use crate::words::{capital, list};

/// Names in one part; of more, the number is said.
const NAMED_MOST: usize = 3;

/// Parts of the headline; of more, winners are counted.
const PARTS_MOST: usize = 3;

pub(super) struct Contest {
    /// The levels that only they share.
    name: String,
    pub(super) variants: Vec<usize>,
}

#[derive(PartialEq)]
enum Outcome {
    /// By the levels that distinguish it.
    Best(String),
    /// The first of several variants is not ahead of all others: what is said of them, and of two the
    /// levels that they do not share.
    Open(&'static str, Option<String>),
    /// There is one repetition, which ranks nothing.
    Single,
}

impl AnswerWriter<'_> {
    /// In the study's order; none with one baseline, or if nothing varied distinguishes them.
    pub(super) fn contests(&self) -> Vec<Contest> {
        let variants = &self.findings.variants;
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for (idx, facts) in variants.iter().enumerate() {
            let baseline = facts.baseline.unwrap_or(idx);
            match groups.iter_mut().find(|(of, _)| *of == baseline) {
                Some((_, group)) => group.push(idx),
                None => groups.push((baseline, vec![idx])),
            }
        }
        if groups.len() < 2 {
            return Vec::new();
        }
        let contest = |(_, variants): (usize, Vec<usize>)| {
            let name = self.common_levels(&variants)?;
            Some(Contest { name, variants })
        };
        let named: Option<Vec<Contest>> = groups.into_iter().map(contest).collect();
        named.unwrap_or_default()
    }

    /// Contests with a workload each; none if some share one.
    pub(super) fn works(&self) -> Vec<Contest> {
        let contests = self.contests();
        let of = |contest: &Contest| {
            let facts = &self.findings.variants[contest.variants[0]];
            (facts.workload.clone(), facts.options.clone())
        };
        let mut works: Vec<_> = contests.iter().map(of).collect();
        works.sort_unstable();
        works.dedup();
        if works.len() == contests.len() { contests } else { Vec::new() }
    }

    /// As in names: levels that these variants share and some other lacks.
    fn common_levels(&self, own: &[usize]) -> Option<String> {
        let all = &self.findings.variants;
        let has = |idx: usize, level: &(String, String)| all[idx].levels.contains(level);
        let is_common = |level: &&(String, String)| {
            own.iter().all(|idx| has(*idx, level)) && (0..all.len()).any(|idx| !has(idx, level))
        };
        let levels: Vec<String> = all[own[0]].levels.iter().filter(is_common).map(shown).collect();
        (!levels.is_empty()).then(|| levels.join(" · "))
    }

    /// By the levels that differ within its contest.
    fn within(&self, variant: usize, contest: &Contest) -> String {
        let all = &self.findings.variants;
        let differs = |(factor, level): &&(String, String)| {
            contest.variants.iter().any(|idx| {
                all[*idx].levels.iter().any(|(other, theirs)| other == factor && theirs != level)
            })
        };
        let own: Vec<String> = all[variant].levels.iter().filter(differs).map(shown).collect();
        if own.is_empty() { self.name(variant).to_owned() } else { own.join(" · ") }
    }

    /// `None` for a single contest, or if nothing is ranked.
    pub(super) fn best_by_contest(&self) -> Option<String> {
        let contests = self.contests();
        let (metric, steps) = self.main_metric_and_steps();
        let place = self.place(&steps);
        let mut outcomes: Vec<(Outcome, Vec<&str>)> = Vec::new();
        for contest in &contests {
            let ranked = self.ranker.rank_of(&contest.variants, metric, &steps);
            let Some(outcome) = self.outcome(contest, &ranked) else { continue };
            match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, names)) => names.push(&contest.name),
                None => outcomes.push((outcome, vec![&contest.name])),
            }
        }
        if outcomes.is_empty() {
            return None;
        }
        // Decided ones first.
        outcomes.sort_by_key(|(outcome, _)| !matches!(outcome, Outcome::Best(_)));
        let (on, noun) = match self.works().is_empty() {
            true => ("with", "combinations"),
            false => ("on", "workloads"),
        };
        let n_all = contests.len();
        let on = |names: &[&str]| match names.len() {
            n if n > NAMED_MOST => format!("{on} {n} of {n_all} {noun}"),
            _ => format!("{on} {}", list(names)),
        };
        if let [(Outcome::Single, names)] = outcomes.as_slice() {
            let more = super::compared::MORE_REPETITIONS;
            let names = on(names);
            return Some(format!("One repetition cannot rank variants {names} {place}. {more}."));
        }
        let is_best = self.is_best(metric);
        let mut parts: Vec<String> = Vec::new();
        for (outcome, names) in &outcomes {
            parts.push(match outcome {
                Outcome::Best(name) if parts.is_empty() => {
                    format!("{name} {is_best} {}", on(names))
                }
                Outcome::Best(name) => format!("{name} {}", on(names)),
                Outcome::Open(call, Some(pair)) => format!("{call} between {pair} {}", on(names)),
                Outcome::Open(call, None) => format!("{call} {}", on(names)),
                Outcome::Single => format!("one repetition cannot rank {}", on(names)),
            });
        }
        if parts.len() > PARTS_MOST {
            let n_more = parts.len() - (PARTS_MOST - 1);
            parts.truncate(PARTS_MOST - 1);
            parts.push(format!("{n_more} more results below"));
        }
        Some(format!("{}, {}.", capital(&place), parts.join("; ")))
    }

    fn outcome(&self, contest: &Contest, ranked: &[Ranked]) -> Option<Outcome> {
        let (first, others) = ranked.split_first()?;
        let has = |standing: Standing| others.iter().any(|other| other.standing == standing);
        Some(match () {
            () if has(Standing::Same) || has(Standing::Tied) => {
                let both: Vec<String> =
                    contest.variants.iter().map(|idx| self.within(*idx, contest)).collect();
                let call = if has(Standing::Tied) { "undecided" } else { "no difference" };
                Outcome::Open(call, (both.len() == 2).then(|| list(&both)))
            }
            () if has(Standing::Single) => Outcome::Single,
            // A variant that commits nothing has no rank, but is behind.
            () if others.is_empty() && contest.variants.len() < 2 => return None,
            () => Outcome::Best(self.within(first.variant, contest)),
        })
    }
}

/// A level as names of variants have it: with the last part of its factor's name, unless it is a name itself.
fn shown((factor, level): &(String, String)) -> String {
    match factor.rsplit_once('.') {
        Some((_, key)) => format!("{key}={level}"),
        None => level.clone(),
    }
}
