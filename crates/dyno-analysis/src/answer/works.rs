//! The headline of a study that varies the workload: which variant is best on each of them.
//!
//! Point selects are not "faster" than inserts. Where the workload differs between variants that are never
//! compared with each other, each workload is a ranking of its own.

use super::AnswerWriter;
use super::ranking::{Ranked, Standing};
use crate::words::{capital, list};

/// As many workloads are named in one part of the headline; of more, their number is said.
const NAMED_MOST: usize = 3;

/// As many parts a headline has; of more, the winners are counted.
const PARTS_MOST: usize = 3;

/// Variants that do the same work.
pub(super) struct Work {
    /// What the work is called: the levels that all its variants share and others do not.
    name: String,
    /// Indices of its variants.
    pub(super) variants: Vec<usize>,
}

/// How the ranking on one workload ended.
#[derive(PartialEq)]
enum Outcome {
    /// This variant, by the levels that the workload leaves open, is ahead of all others.
    Best(String),
    /// Nobody is clearly ahead.
    Open,
    /// There is one repetition, which ranks nothing.
    Single,
}

impl AnswerWriter<'_> {
    /// The kinds of work of the study, in its order: several where variants differ in the workload or its
    /// options, and no comparison crosses from one to another; else none.
    pub(super) fn works(&self) -> Vec<Work> {
        let variants = &self.findings.variants;
        let is_same = |a: usize, b: usize| {
            (&variants[a].workload, &variants[a].options)
                == (&variants[b].workload, &variants[b].options)
        };
        let crosses = |(idx, facts): (usize, &crate::VariantFacts)| {
            facts.baseline.is_some_and(|baseline| !is_same(idx, baseline))
        };
        if variants.iter().enumerate().any(crosses) {
            return Vec::new();
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for idx in 0..variants.len() {
            match groups.iter_mut().find(|group| is_same(group[0], idx)) {
                Some(group) => group.push(idx),
                None => groups.push(vec![idx]),
            }
        }
        if groups.len() < 2 {
            return Vec::new();
        }
        let work = |variants: Vec<usize>| Work { name: self.common_levels(&variants), variants };
        groups.into_iter().map(work).collect()
    }

    /// The levels that these variants share and that some other variant does not have, as in its name.
    fn common_levels(&self, own: &[usize]) -> String {
        let all = &self.findings.variants;
        let has = |idx: usize, level: &(String, String)| all[idx].levels.contains(level);
        let is_common = |level: &&(String, String)| {
            own.iter().all(|idx| has(*idx, level)) && (0..all.len()).any(|idx| !has(idx, level))
        };
        let levels: Vec<String> = all[own[0]].levels.iter().filter(is_common).map(shown).collect();
        if levels.is_empty() { self.name(own[0]).to_owned() } else { levels.join(" · ") }
    }

    /// A variant by the levels in which it differs from the others of its work.
    fn within(&self, variant: usize, work: &Work) -> String {
        let all = &self.findings.variants;
        let differs = |(factor, level): &&(String, String)| {
            work.variants.iter().any(|idx| {
                all[*idx].levels.iter().any(|(other, theirs)| other == factor && theirs != level)
            })
        };
        let own: Vec<String> = all[variant].levels.iter().filter(differs).map(shown).collect();
        if own.is_empty() { self.name(variant).to_owned() } else { own.join(" · ") }
    }

    /// Which variant is best on each workload; none where there is but one workload, or nothing to rank.
    pub(super) fn best_by_work(&self) -> Option<String> {
        let works = self.works();
        let (metric, steps) = self.main_metric_and_steps();
        let place = self.place(&steps);
        let mut outcomes: Vec<(Outcome, Vec<&str>)> = Vec::new();
        for work in &works {
            let ranked = self.ranker.rank_of(&work.variants, metric, &steps);
            let Some(outcome) = self.outcome(work, &ranked) else { continue };
            match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, names)) => names.push(&work.name),
                None => outcomes.push((outcome, vec![&work.name])),
            }
        }
        if outcomes.is_empty() {
            return None;
        }
        // What is decided comes first.
        outcomes.sort_by_key(|(outcome, _)| !matches!(outcome, Outcome::Best(_)));
        let on = |names: &[&str]| match names.len() {
            n if n > NAMED_MOST => format!("on {n} of {} workloads", works.len()),
            _ => format!("on {}", list(names)),
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
                Outcome::Open => format!("no clear winner {}", on(names)),
                Outcome::Single => format!("one repetition cannot rank {}", on(names)),
            });
        }
        if parts.len() > PARTS_MOST {
            let n_more = parts.len() - (PARTS_MOST - 1);
            parts.truncate(PARTS_MOST - 1);
            parts.push(format!("{n_more} other outcomes below"));
        }
        Some(format!("{}, {}.", capital(&place), parts.join("; ")))
    }

    fn outcome(&self, work: &Work, ranked: &[Ranked]) -> Option<Outcome> {
        let (first, others) = ranked.split_first()?;
        let has = |standing: Standing| others.iter().any(|other| other.standing == standing);
        Some(match () {
            () if has(Standing::Same) || has(Standing::Tied) => Outcome::Open,
            () if has(Standing::Single) => Outcome::Single,
            // One that commits nothing has no rank, and is behind all the same.
            () if others.is_empty() && work.variants.len() < 2 => return None,
            () => Outcome::Best(self.within(first.variant, work)),
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
