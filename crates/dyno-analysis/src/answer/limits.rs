//! The headline of a study with limits: how much each variant does within them.

use std::collections::{BTreeMap, BTreeSet};

use super::AnswerWriter;
use crate::requirements::RequirementOutcome::{Inconclusive, Met, NotMet};
use crate::words::{cut, distinct, joined, list, loads, more};
use crate::{Estimate, RequirementFacts, RequirementOutcome, StepFacts, metrics, numbers};

const NAMED_MOST: usize = 4;

const STEPS_NAMED: usize = 3;

impl AnswerWriter<'_> {
    /// How each requirement came out, in a line.
    pub(super) fn required(&self) -> Vec<String> {
        let mut texts: Vec<&str> =
            self.findings.requirements.iter().map(|one| one.text.as_str()).collect();
        texts.dedup();
        texts.truncate(super::LINES_MOST);
        let line = |text: &str| {
            let of = |outcome: RequirementOutcome, word: &str| {
                let named = self.with_outcome(text, outcome);
                (!named.is_empty()).then(|| format!("{word} {named}"))
            };
            let (broken, open) = (of(NotMet, "not met by"), of(Inconclusive, "undecided for"));
            let has_met = !self.with_outcome(text, Met).is_empty();
            let met = match (broken.is_none() && open.is_none(), has_met) {
                (true, _) => Some("met everywhere".to_owned()),
                (false, true) => Some("met everywhere else".to_owned()),
                (false, false) => None,
            };
            let parts = [broken, open, met].into_iter().flatten();
            format!("Required: {text}: {}{}.", self.once(text), joined(parts, "; "))
        };
        texts.into_iter().map(line).collect()
    }

    /// To precede outcomes of this requirement that a single repetition has; empty if there are none.
    fn once(&self, text: &str) -> String {
        let all = self.findings.requirements.iter().filter(|one| one.text == text && one.n > 0);
        let once = distinct(
            all.clone().filter(|one| one.is_measured_once()).map(|one| self.name(one.variant)),
        );
        match once.is_empty() {
            true => String::new(),
            false if all.clone().all(RequirementFacts::is_measured_once) => {
                "one repetition cannot show it; measured once: ".to_owned()
            }
            false => format!("one repetition cannot show it of {}; measured: ", list(once)),
        }
    }

    /// `a (4 and 8 clients) and b (all 3 load levels)`; empty if there are none.
    fn with_outcome(&self, text: &str, outcome: RequirementOutcome) -> String {
        let here = self.findings.requirements.iter();
        let here = here.filter(|one| one.text == text && one.outcome == outcome);
        let places: Vec<(usize, usize)> = here.map(|one| (one.variant, one.step)).collect();
        let mut variants: Vec<usize> = places.iter().map(|(variant, _)| *variant).collect();
        variants.dedup();
        let named = variants.iter().map(|variant| {
            let steps = places.iter().filter(|(of, _)| of == variant).map(|(_, step)| *step);
            let steps = match steps.clone().count() {
                n if n > 1 && n == self.findings.steps.len() => self.all_steps(n),
                n if n > STEPS_NAMED => format!("{n} {}s", self.findings.step_noun()),
                _ => loads(steps.map(|step| self.step(step))),
            };
            format!("{} ({steps})", self.name(*variant))
        });
        let mut named: Vec<String> = named.collect();
        cut(&mut named, NAMED_MOST, "");
        list(named)
    }

    /// The highest throughput of each variant at the load levels where it is shown to meet all that the study
    /// requires, or did when that was measured once; none without requirements, and where steps do different work
    /// or are searches.
    pub(super) fn within_limits(&self) -> Option<String> {
        let all = &self.findings.requirements;
        let steps = &self.findings.steps;
        let is_load = |step: &StepFacts| {
            let is_judged_by_work = [metrics::THROUGHPUT, metrics::RESPONSE_P95];
            step.search.is_none()
                && step.own.is_none()
                && is_judged_by_work.contains(&step.main_metric)
        };
        if all.is_empty() || self.is_mismatched() || !steps.iter().all(is_load) {
            return None;
        }
        let limits: BTreeSet<&str> = all.iter().map(|one| one.text.as_str()).collect();
        let them = if limits.len() > 1 { "them" } else { "it" };
        let limits = list(limits);
        let mut is_met: BTreeMap<(usize, usize), bool> = BTreeMap::new();
        for one in all {
            *is_met.entry((one.variant, one.step)).or_insert(true) &= one.outcome == Met;
        }
        let measured: BTreeSet<usize> = is_met.keys().map(|(variant, _)| *variant).collect();
        let best = |variant: &usize| -> Option<(usize, usize, &Estimate)> {
            let here = is_met.range((*variant, 0)..=(*variant, usize::MAX));
            let met = here.filter(|(_, is_met)| **is_met).map(|((_, step), _)| *step);
            let rate = |step: usize| self.cell(*variant, step)?.metrics.get(&metrics::THROUGHPUT);
            let rates = met.filter_map(|step| Some((*variant, step, rate(step)?)));
            rates.max_by(|a, b| a.2.value.total_cmp(&b.2.value))
        };
        let mut found: Vec<(usize, usize, &Estimate)> = measured.iter().filter_map(best).collect();
        found.sort_by(|a, b| b.2.value.total_cmp(&a.2.value));
        let place = match steps.len() {
            1 => self.at(0),
            _ => format!("at any {}", self.findings.step_noun()),
        };
        let n_once = all.iter().filter(|one| one.is_measured_once()).count();
        if found.is_empty() {
            let is_broken = all.iter().all(|one| one.outcome == NotMet);
            let what = if is_broken { "met" } else { "is shown to meet" };
            let once = if n_once > 0 { " (measured once)" } else { "" };
            return Some(format!("No variant {what} {limits} {place}{once}."));
        }
        let part = |(nth, (variant, step, rate)): (usize, &(usize, usize, &Estimate))| {
            let value = match nth {
                0 => self.value_named(metrics::THROUGHPUT, rate),
                _ => numbers::value(rate),
            };
            format!("{} {value} {}", self.name(*variant), self.at(*step))
        };
        let parts = joined(found.iter().take(NAMED_MOST).enumerate().map(part), "; ");
        let more = more(found.len().saturating_sub(NAMED_MOST), "; ");
        let is_without = |v: &&usize| !found.iter().any(|(variant, ..)| variant == *v);
        let without: Vec<&str> =
            measured.iter().filter(is_without).map(|v| self.name(*v)).collect();
        let (shown, not_shown) = match n_once {
            0 => (format!("shown within {limits}"), "not shown to meet"),
            _ => (
                format!("measured once within {limits}, which one repetition cannot show"),
                "not measured to meet",
            ),
        };
        let is = if without.len() == 1 { "is" } else { "are" };
        let without = match without.is_empty() {
            true => String::new(),
            false => format!("; {} {is} {not_shown} {them} {place}", list(&without)),
        };
        Some(format!("Highest throughput {shown}: {parts}{more}{without}."))
    }
}
