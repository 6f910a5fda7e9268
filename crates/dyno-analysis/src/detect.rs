//! Finds reasons to trust the findings less, with advice: `rows` lists them, and where each is found.

mod alike;
mod attempts;
mod course;
mod generator;
mod hosts;
mod machines;
mod missed;
mod noise;
mod rows;
mod runs;
mod steadiness;
mod storage;

pub(crate) use alike::{is_cached_on_one_side, is_durability_unlike, is_durability_varied};
pub(crate) use generator::limited_share;
pub use runs::is_imported;

use dyno_record::{Run, StepSummary, TrialSummary};

use crate::cells::Measured;
use crate::join::Joined;
use crate::words::{cut, list};
use crate::{Caveat, CaveatKind, Findings};

/// A variant and a step.
type At = (usize, usize);

/// Where it is found, its message with `{}` for the list of what was found, and its advice.
type Row = (CaveatKind, fn(&Evidence<'_>) -> Option<Found>, &'static str, &'static str);

/// In words, and by variant and step.
#[derive(Default)]
struct Found {
    words: Vec<String>,
    /// Empty for all.
    variants: Vec<usize>,
    /// Empty for all.
    steps: Vec<usize>,
    /// Instead of the row's.
    advice: Option<String>,
}

impl Found {
    fn new(words: impl Into<String>, variants: impl IntoIterator<Item = usize>) -> Found {
        let (words, variants) = (vec![words.into()], variants.into_iter().collect());
        Found { words, variants, ..Found::default() }
    }

    fn at(words: impl Into<String>, places: impl IntoIterator<Item = At>) -> Found {
        let (variants, steps) = places.into_iter().unzip();
        Found { words: vec![words.into()], variants, steps, ..Found::default() }
    }

    /// `None` without variants.
    fn of(variants: impl IntoIterator<Item = usize>) -> Option<Found> {
        Some(Found::new("", variants)).filter(|found| !found.variants.is_empty())
    }

    fn add(&mut self, words: String, (variant, step): At) {
        self.words.push(words);
        self.variants.push(variant);
        self.steps.push(step);
    }

    /// Of a variant and its baseline.
    fn add_pair(&mut self, words: String, (variant, baseline): (usize, usize)) {
        self.words.push(words);
        self.variants.extend([variant, baseline]);
    }

    /// Not as a list; at most so many are named.
    fn joined(mut self, separator: &str, most: usize) -> Option<Found> {
        cut(&mut self.words, most, "and ");
        self.words.first()?;
        self.words = vec![self.words.join(separator)];
        Some(self)
    }

    fn advise(self, advice: impl Into<String>) -> Option<Found> {
        Some(Found { advice: Some(advice.into()), ..self })
    }

    fn advise_if(self, is_so: bool, advice: &str) -> Option<Found> {
        if is_so { self.advise(advice) } else { Some(self) }
    }
}

struct Place<'a> {
    at: At,
    trial: &'a TrialSummary,
    summary: &'a StepSummary,
}

struct Evidence<'a> {
    joined: &'a Joined<'a>,
    measured: &'a [Measured],
    findings: &'a Findings,
    runs: &'a [Run],
    /// By trial and step.
    places: Vec<Place<'a>>,
    /// Found so far.
    caveats: Vec<Caveat>,
}

impl Evidence<'_> {
    fn variant(&self, idx: usize) -> &str {
        &self.findings.variants[idx].name
    }

    fn names(&self, variants: impl IntoIterator<Item = usize>) -> String {
        list(&variants.into_iter().map(|idx| self.variant(idx)).collect::<Vec<_>>())
    }

    /// Where it was: `a at 4 clients`.
    fn place(&self, (variant, step): At) -> String {
        let facts = &self.findings.steps[step];
        let load = facts.search.as_ref().map_or(&facts.name, |search| &search.limit);
        // A job without load is a step, but no load level.
        let is_job = facts.clients == 0
            && facts.rate.is_none()
            && facts.search.is_none()
            && facts.own.as_ref().is_none_or(|own| own.roles.is_empty());
        format!("{} {} {load}", self.variant(variant), if is_job { "in step" } else { "at" })
    }

    /// Each place with a detail: `a at 4 clients (3 of 5)`.
    fn places_with(&self, places: impl IntoIterator<Item = (At, String)>) -> Option<Found> {
        let mut found = Found::default();
        for (at, detail) in places {
            found.add(format!("{} ({detail})", self.place(at)), at);
        }
        Some(found)
    }

    /// Variants with their baselines.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let variants = self.findings.variants.iter().enumerate();
        variants.filter_map(|(idx, variant)| Some((idx, variant.baseline?)))
    }

    fn caveat(&self, &(kind, find, message, advice): &Row) -> Option<Caveat> {
        let found = find(self)?;
        (!found.words.is_empty()).then(|| Caveat {
            kind,
            message: message.replacen("{}", &list(&found.words), 1),
            advice: found.advice.unwrap_or_else(|| advice.to_owned()),
            variants: sorted(found.variants),
            steps: sorted(found.steps),
        })
    }
}

fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let all: std::collections::BTreeSet<T> = all.into_iter().collect();
    all.into_iter().collect()
}

/// In the order of the rows.
pub(crate) fn caveats(
    joined: &Joined<'_>,
    measured: &[Measured],
    findings: &Findings,
    runs: &[Run],
) -> Vec<Caveat> {
    let places = joined.measured_steps().filter_map(|(trial, step, summary)| {
        Some(Place { at: (trial.variant, step), trial: trial.summary?, summary })
    });
    let places = places.collect();
    let mut seen = Evidence { joined, measured, findings, runs, places, caveats: Vec::new() };
    for row in rows::ROWS {
        let found = seen.caveat(row);
        seen.caveats.extend(found);
    }
    seen.caveats
}

#[cfg(test)]
mod tests;
