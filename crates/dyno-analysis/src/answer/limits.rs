//! The headline of a study with limits: how much each variant does within them.

use std::collections::{BTreeMap, BTreeSet};

use super::AnswerWriter;
use crate::requirements::RequirementOutcome::{Inconclusive, Met, NotMet};
use crate::words::{list, loads};
use crate::{Estimate, RequirementFacts, RequirementOutcome, StepFacts, metrics, numbers};

const NAMED_MOST: usize = 4;

const STEPS_NAMED: usize = 3;

impl AnswerWriter<'_> {
    /// How each requirement came out, in a line.
    pub(super) fn required(&self) -> Vec<String> {
        let all = &self.findings.requirements;
        let mut texts: Vec<&str> = all.iter().map(|one| one.text.as_str()).collect();
        texts.dedup();
        texts.truncate(super::LINES_MOST);
        let line = |text: &str| {
            let of = |outcome: RequirementOutcome| -> Vec<String> {
                let here = |one: &&RequirementFacts| one.text == text && one.outcome == outcome;
                let places: Vec<(usize, usize)> =
                    all.iter().filter(here).map(|one| (one.variant, one.step)).collect();
                let mut variants: Vec<usize> = places.iter().map(|(variant, _)| *variant).collect();
                variants.dedup();
                let named = variants.iter().map(|variant| {
                    let steps = places.iter().filter(|(of, _)| of == variant);
                    let steps: Vec<String> = steps.map(|(_, step)| self.step(*step)).collect();
                    let steps = match steps.len() {
                        n if n > 1 && n == self.findings.steps.len() => self.all_steps(n),
                        n if n > STEPS_NAMED => format!("{n} {}s", self.findings.step_noun()),
                        _ => loads(&steps),
                    };
                    format!("{} ({steps})", self.name(*variant))
                });
                let mut named: Vec<String> = named.take(NAMED_MOST).collect();
                if variants.len() > NAMED_MOST {
                    named.push(format!("{} more", variants.len() - NAMED_MOST));
                }
                named
            };
            let (broken, open) = (of(NotMet), of(Inconclusive));
            let has_met = all.iter().any(|one| one.text == text && one.outcome == Met);
            let mut parts = Vec::new();
            if !broken.is_empty() {
                parts.push(format!("not met by {}", list(&broken)));
            }
            if !open.is_empty() {
                parts.push(format!("undecided for {}", list(&open)));
            }
            match (parts.is_empty(), has_met) {
                (true, _) => parts.push("met everywhere".to_owned()),
                (false, true) => parts.push("met everywhere else".to_owned()),
                (false, false) => {}
            }
            format!("Required: {text}: {}.", parts.join("; "))
        };
        texts.into_iter().map(line).collect()
    }

    /// The highest throughput of each variant at the load levels where it is shown to meet all that the study
    /// requires; none without requirements, and where steps do different work or are searches.
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
        let mut limits: Vec<&str> = all.iter().map(|one| one.text.as_str()).collect();
        limits.dedup();
        limits.sort_unstable();
        limits.dedup();
        let them = if limits.len() > 1 { "them" } else { "it" };
        let limits = list(&limits);
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
        if found.is_empty() {
            let is_broken = all.iter().all(|one| one.outcome == NotMet);
            let what = if is_broken { "met" } else { "is shown to meet" };
            return Some(format!("No variant {what} {limits} {place}."));
        }
        let part = |(nth, (variant, step, rate)): (usize, &(usize, usize, &Estimate))| {
            let value = match nth {
                0 => self.value_named(metrics::THROUGHPUT, rate),
                _ => numbers::value(rate),
            };
            format!("{} {value} {}", self.name(*variant), self.at(*step))
        };
        let parts: Vec<String> = found.iter().take(NAMED_MOST).enumerate().map(part).collect();
        let more = match found.len().saturating_sub(NAMED_MOST) {
            0 => String::new(),
            n => format!("; {n} more"),
        };
        let is_without = |v: &&usize| !found.iter().any(|(variant, ..)| variant == *v);
        let without: Vec<&str> =
            measured.iter().filter(is_without).map(|v| self.name(*v)).collect();
        let without = match without.as_slice() {
            [] => String::new(),
            [only] => format!("; {only} is not shown to meet {them} {place}"),
            several => format!("; {} are not shown to meet {them} {place}", list(several)),
        };
        // A single repetition shows nothing.
        let shown = if found.iter().all(|(.., rate)| rate.n > 1) { "shown" } else { "measured" };
        Some(format!(
            "Highest throughput {shown} within {limits}: {}{more}{without}.",
            parts.join("; ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use dyno_record::RequirementRecord;
    use dyno_units::Question;
    use expect_test::{Expect, expect};

    use crate::fixtures::{run, wobble};
    use crate::{Options, analyse};

    #[track_caller]
    fn check(bound_us: f64, expected: &Expect) {
        let rates = [[1000.0, 2000.0, 2200.0], [900.0, 3000.0, 6000.0]];
        let mut run = run(&["alone", "pooled"], &[1, 4, 16], 3, |variant, step, repetition| {
            rates[variant][step] * wobble(variant, step, repetition)
        });
        run.manifest.questions = vec![Question::Limit];
        run.manifest.requirements = vec![RequirementRecord {
            text: "mean ≤ the limit".to_owned(),
            measure: "mean".to_owned(),
            bound: bound_us,
            is_in_own_unit: false,
            is_least: None,
        }];
        let answer = analyse(&[run], &Options::default()).answer;
        expected.assert_eq(&format!("{}\n{}", answer.headline, answer.lines[0]));
    }

    #[test]
    fn what_fits_within_the_limit_is_said_for_each_variant() {
        check(
            4_000.0,
            &expect![[r#"
            Highest throughput shown within mean ≤ the limit: pooled 5,990 transactions/s at 16 clients; alone 2,000/s at 4 clients.
            Required: mean ≤ the limit: not met by alone (16 clients); met everywhere else."#]],
        );
        check(
            1_200.0,
            &expect![[r#"
            No variant met mean ≤ the limit at any load level.
            Required: mean ≤ the limit: not met by alone (all 3 load levels) and pooled (all 3 load levels)."#]],
        );
        check(
            1_050.0,
            &expect![[r#"
            No variant met mean ≤ the limit at any load level.
            Required: mean ≤ the limit: not met by alone (all 3 load levels) and pooled (all 3 load levels)."#]],
        );
        check(
            100.0,
            &expect![[r#"
            No variant met mean ≤ the limit at any load level.
            Required: mean ≤ the limit: not met by alone (all 3 load levels) and pooled (all 3 load levels)."#]],
        );
    }
}
