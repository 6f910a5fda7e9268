//! What caveats are found in, and in which form.

use std::collections::BTreeSet;

use dyno_record::{Run, StepSummary, TrialSummary};

use crate::cells::Measured;
use crate::join::Joined;
use crate::words::{cut, list};
use crate::{Caveat, CaveatKind, Findings};

/// A variant and a step.
pub(super) type At = (usize, usize);

/// Where it is found, its message with `{}` for the list of what was found, and its advice.
pub(super) type Row = (CaveatKind, fn(&Evidence<'_>) -> Option<Found>, &'static str, &'static str);

/// In words, and by variant and step.
#[derive(Default)]
pub(super) struct Found {
    pub(super) words: Vec<String>,
    /// Empty for all.
    pub(super) variants: Vec<usize>,
    /// Empty for all.
    pub(super) steps: Vec<usize>,
    /// Instead of the row's.
    pub(super) advice: Option<String>,
}

impl Found {
    pub(super) fn new(
        words: impl Into<String>,
        variants: impl IntoIterator<Item = usize>,
    ) -> Found {
        let (words, variants) = (vec![words.into()], variants.into_iter().collect());
        Found { words, variants, ..Found::default() }
    }

    pub(super) fn at(words: impl Into<String>, places: impl IntoIterator<Item = At>) -> Found {
        let (variants, steps) = places.into_iter().unzip();
        Found { words: vec![words.into()], variants, steps, ..Found::default() }
    }

    /// `None` without variants.
    pub(super) fn of(variants: impl IntoIterator<Item = usize>) -> Option<Found> {
        Some(Found::new("", variants)).filter(|found| !found.variants.is_empty())
    }

    pub(super) fn add(&mut self, words: String, (variant, step): At) {
        self.words.push(words);
        self.variants.push(variant);
        self.steps.push(step);
    }

    /// Of a variant and its baseline.
    pub(super) fn add_pair(&mut self, words: String, (variant, baseline): (usize, usize)) {
        self.words.push(words);
        self.variants.extend([variant, baseline]);
    }

    /// Not as a list; at most so many are named.
    pub(super) fn joined(mut self, separator: &str, most: usize) -> Option<Found> {
        cut(&mut self.words, most, "and ");
        self.words.first()?;
        self.words = vec![self.words.join(separator)];
        Some(self)
    }

    pub(super) fn advise(self, advice: impl Into<String>) -> Option<Found> {
        Some(Found { advice: Some(advice.into()), ..self })
    }

    pub(super) fn advise_if(self, is_so: bool, advice: &str) -> Option<Found> {
        if is_so { self.advise(advice) } else { Some(self) }
    }
}

pub(super) struct Place<'a> {
    pub(super) at: At,
    pub(super) trial: &'a TrialSummary,
    pub(super) summary: &'a StepSummary,
}

pub(super) struct Evidence<'a> {
    pub(super) joined: &'a Joined<'a>,
    pub(super) measured: &'a [Measured],
    pub(super) findings: &'a Findings,
    pub(super) runs: &'a [Run],
    /// By trial and step.
    pub(super) places: Vec<Place<'a>>,
    /// Found so far.
    pub(super) caveats: Vec<Caveat>,
}

impl Evidence<'_> {
    pub(super) fn variant(&self, idx: usize) -> &str {
        &self.findings.variants[idx].name
    }

    pub(super) fn names(&self, variants: impl IntoIterator<Item = usize>) -> String {
        list(variants.into_iter().map(|idx| self.variant(idx)))
    }

    /// Where it was: `a at 4 clients`.
    pub(super) fn place(&self, (variant, step): At) -> String {
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
    pub(super) fn places_with(
        &self,
        places: impl IntoIterator<Item = (At, String)>,
    ) -> Option<Found> {
        let mut found = Found::default();
        for (at, detail) in places {
            found.add(format!("{} ({detail})", self.place(at)), at);
        }
        Some(found)
    }

    /// Variants with their baselines.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let variants = self.findings.variants.iter().enumerate();
        variants.filter_map(|(idx, variant)| Some((idx, variant.baseline?)))
    }

    pub(super) fn caveat(&self, &(kind, find, message, advice): &Row) -> Option<Caveat> {
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

pub(super) fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let all: BTreeSet<T> = all.into_iter().collect();
    all.into_iter().collect()
}
