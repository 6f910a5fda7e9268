//! What limited the variants that a headline speaks of.

use super::{AnswerWriter, NAMED_MOST};
use crate::Claim;
use crate::bound::{BoundBy, BoundFacts};
use crate::words::{capital, grouped, joined, list};

impl AnswerWriter<'_> {
    /// `At 4 clients, both are at the volume's limit of 500 reads/s (n = 3).`; none where nothing is
    /// known to be at its limit.
    pub(super) fn at_limits(&self, claims: &[Claim]) -> Option<String> {
        let is_told = |bound: &&BoundFacts| self.told_at(claims, bound.variant) == Some(bound.step);
        let here: Vec<&BoundFacts> = self.findings.bound_by.iter().filter(is_told).collect();
        if !here.iter().any(|bound| bound.by == BoundBy::Resources) {
            return None;
        }
        let first = here.first()?.step;
        if here.iter().any(|bound| bound.step != first) {
            let places = |bound: &BoundFacts| (bound.variant, Some(bound.step));
            let groups = grouped(here.iter().map(|bound| (at_limit(bound), places(bound))));
            let parts = groups.iter().map(|(at, all)| self.group_at(at, all));
            return Some(format!("{}.", joined(parts, "; ")));
        }
        let groups = grouped(here.iter().map(|bound| (at_limit(bound), (bound.variant, None))));
        let text = match groups.as_slice() {
            [(at, all)] => match all.len() {
                1 => format!("{} is {at}", self.name(all[0].0)),
                2 => format!("both are {at}"),
                n => format!("all {n} are {at}"),
            },
            several => joined(several.iter().map(|(at, all)| self.group_at(at, all)), "; "),
        };
        Some(capital(&format!("{}, {text}.", self.at(first))))
    }

    /// The step at which a variant's limit is told: the heaviest of the headline. Claims across load
    /// levels have one for each variant: of the other the one where it is nearest to the first.
    fn told_at(&self, claims: &[Claim], variant: usize) -> Option<usize> {
        let across = || claims.iter().filter(|claim| !claim.other_steps.is_empty());
        let distance = |claim: &Claim| claim.relative.value.abs();
        let own = across().find(|claim| claim.variant == variant).map(|claim| &claim.steps);
        let as_other = across().filter(|claim| claim.other == variant);
        let nearest = as_other.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(steps) = own.or(nearest.map(|claim| &claim.other_steps)) {
            return self.heaviest(steps.iter().copied());
        }
        let is_named = |claim: &Claim| claim.variant == variant || claim.other == variant;
        if claims.is_empty() {
            return self.heaviest(self.findings.bound_by.iter().map(|bound| bound.step));
        }
        let steps = claims.iter().flat_map(|claim| claim.steps.iter().copied());
        self.heaviest(steps).filter(|_| claims.iter().any(is_named))
    }

    /// By rate or clients; of equal ones the last.
    fn heaviest(&self, steps: impl Iterator<Item = usize>) -> Option<usize> {
        let load = |step: usize| {
            let facts = &self.findings.steps[step];
            facts.rate.unwrap_or(facts.clients as f64)
        };
        steps.max_by(|a, b| load(*a).total_cmp(&load(*b)).then(a.cmp(b)))
    }

    /// Of variants, each with its step where they differ.
    fn group_at(&self, at: &str, variants: &[(usize, Option<usize>)]) -> String {
        let name = |(variant, step): &(usize, Option<usize>)| match step {
            Some(step) => format!("{} {}", self.name(*variant), self.at(*step)),
            None => self.name(*variant).to_owned(),
        };
        let names = match variants.len() {
            n if n > NAMED_MOST => format!("{n} variants"),
            _ => list(variants.iter().map(name)),
        };
        format!("{names} {} {at}", if variants.len() == 1 { "is" } else { "are" })
    }
}

/// To follow "is" or "are".
fn at_limit(bound: &BoundFacts) -> String {
    let at = match bound.by {
        BoundBy::Resources => format!("at {}", bound.text),
        BoundBy::Clients => "at no limit but the clients' own waiting".to_owned(),
        BoundBy::Rate => "at no limit but the offered rate".to_owned(),
        BoundBy::Unknown => return "not known to be at a limit".to_owned(),
    };
    match bound.agreeing == bound.n {
        true => format!("{at} (n = {})", bound.n),
        false => format!("{at} in {} of {} trials", bound.agreeing, bound.n),
    }
}
