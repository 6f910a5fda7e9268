//! What limited the variants that a headline speaks of.

use super::{AnswerWriter, NAMED_MOST};
use crate::Claim;
use crate::bound::{BoundBy, BoundFacts};
use crate::words::{capital, grouped, joined, list};

impl AnswerWriter<'_> {
    /// `At 4 clients, both are at the volume's limit of 500 reads/s.`; none where nothing is known
    /// to be at its limit. At the last load level of the headline, which is the heaviest.
    pub(super) fn at_limits(&self, claims: &[Claim]) -> Option<String> {
        let bounds = &self.findings.bound_by;
        let claimed = claims.iter().flat_map(|claim| claim.steps.iter().copied()).max();
        let step = claimed.or_else(|| bounds.iter().map(|bound| bound.step).max())?;
        let is_named = |variant: usize| {
            claims.is_empty() || claims.iter().any(|c| c.variant == variant || c.other == variant)
        };
        let here = bounds.iter().filter(|bound| bound.step == step && is_named(bound.variant));
        let here: Vec<&BoundFacts> = here.collect();
        if !here.iter().any(|bound| bound.by == BoundBy::Resources) {
            return None;
        }
        let groups = grouped(here.iter().map(|bound| (at_limit(bound), bound.variant)));
        let text = match groups.as_slice() {
            [(at, all)] => match all.len() {
                1 => format!("{} is {at}", self.name(all[0])),
                2 => format!("both are {at}"),
                n => format!("all {n} are {at}"),
            },
            several => joined(several.iter().map(|(at, all)| self.group_at(at, all)), "; "),
        };
        Some(capital(&format!("{}, {text}.", self.at(step))))
    }

    fn group_at(&self, at: &str, variants: &[usize]) -> String {
        let names = match variants.len() {
            n if n > NAMED_MOST => format!("{n} variants"),
            _ => list(variants.iter().map(|variant| self.name(*variant))),
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
        true => at,
        false => format!("{at} in {} of {} trials", bound.agreeing, bound.n),
    }
}
