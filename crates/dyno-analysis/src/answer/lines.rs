//! The lines below the headline, with confidence intervals and repetitions, and every comparison in a
//! sentence: what was decided and what was not.

use std::collections::BTreeSet;

use dyno_record::AuditRow;

use super::grammar::{distance, is_nothing, repetitions_needed, word};
use super::{AnswerWriter, DETAILS_MOST, NAMED_MOST};
use crate::numbers::EffectStyle;
use crate::words::{capital, count, distinct, joined, list, share};
use crate::{Comparison, ConcurrencyGroup, GroupComparison, MetricId, Verdict, metrics};

const JOB_FIGURES_MOST: usize = 3;

impl AnswerWriter<'_> {
    /// Of kinds of transactions that did not do their work, and of tables.
    pub(super) fn failed_audits(&self) -> Vec<String> {
        let is_of_kinds = |row: &AuditRow| row.name == AuditRow::KINDS_COMMIT;
        let mut rows = self.findings.trials.iter().flat_map(|trial| &trial.audit);
        let kinds = rows.find(|row| is_of_kinds(row) && !row.pass).and_then(|row| {
            let what = format!("some kinds of transactions hardly committed: {}", row.measured);
            self.failed_audit(&is_of_kinds, &what)
        });
        let tables = self
            .failed_audit(&|row| !is_of_kinds(row), "the tables do not contain what was committed");
        kinds.into_iter().chain(tables).collect()
    }

    fn failed_audit(&self, is_it: &dyn Fn(&AuditRow) -> bool, what: &str) -> Option<String> {
        let audited = self.findings.trials.iter().filter(|trial| !trial.audit.is_empty());
        let has_failed = |row: &AuditRow| is_it(row) && !row.pass;
        let failed = audited.clone().filter(|trial| trial.audit.iter().any(has_failed));
        let variants: BTreeSet<usize> = failed.clone().map(|trial| trial.variant).collect();
        let n_failed = failed.count();
        let whose = match variants.len() {
            n if n > NAMED_MOST => String::new(),
            _ => format!(" ({})", list(variants.iter().map(|variant| self.name(*variant)))),
        };
        let n = count(audited.count() as u64, "audited trial");
        (n_failed > 0).then(|| format!("The audit failed in {n_failed} of {n}{whose}: {what}."))
    }

    pub(super) fn support(&self, room: usize) -> Vec<String> {
        let compared = self.compared_variants();
        let safety = self.safety_lines(room);
        let mut lines = match (compared.as_slice(), &safety) {
            ([], _) => self.descriptions(),
            ([only], _) if self.mains(*only).count() < 2 => self.of_one(*only),
            (_, Some(lines)) => lines.clone(),
            (several, None) => self.of_several(several, room),
        };
        if let (1, Some(mut safety)) = (compared.len(), safety) {
            // They say what the first line would, and how safe it is.
            safety.extend(lines.drain(1..));
            lines = safety;
        }
        lines.extend(self.speed_ups());
        lines.truncate(room);
        lines
    }

    fn of_one(&self, variant: usize) -> Vec<String> {
        let main = self.main_comparisons(variant);
        let mut lines = Vec::new();
        let Some(first) = main.first() else { return lines };
        let metrics = [first.metric, metrics::RESPONSE_P95, metrics::SERVER_CPU];
        for (i, metric) in metrics.into_iter().enumerate() {
            if i > 0 && metric == first.metric {
                continue;
            }
            let mut all = self.comparisons_of(variant, metric);
            all.retain(|c| metric != metrics::SERVER_CPU || c.verdict.is_decided());
            let text = match all.as_slice() {
                [] => continue,
                [only] => self.effect_and_ci(only, self.findings.effect_style(only.metric)),
                several if i == 0 => {
                    let n = self.cis_and_n(several.iter().map(|c| c.relative.n));
                    format!("{}; {n}", self.over_loads(several, true))
                }
                several => self.over_loads(several, false),
            };
            lines.push(capital(&format!("{}: {text}.", self.title(metric))));
        }
        lines.extend(self.figures_of_jobs(first));
        lines.extend(repetitions_needed(&main).map(|text| capital(&text) + "."));
        let groups = self.by_concurrency(variant);
        lines.extend(groups.map(|(all, n)| format!("Throughput by concurrency: {all} ({n}).")));
        lines
    }

    /// Decided figures of jobs besides the judged one, the largest difference first.
    fn figures_of_jobs(&self, judged: &Comparison) -> Vec<String> {
        let is_of_job = |c: &&Comparison| {
            (c.variant, c.step) == (judged.variant, judged.step)
                && c.metric != judged.metric
                && c.metric.as_str().starts_with("job.")
                && c.verdict.is_decided()
        };
        let mut all: Vec<&Comparison> =
            self.findings.comparisons.iter().filter(is_of_job).collect();
        all.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
        let line = |c: &Comparison| {
            let (title, values) = (self.title(c.metric), self.both_values(c));
            let effect = self.effect_and_ci(c, self.findings.effect_style(c.metric));
            // Names of the study stay.
            let title = if title.contains('_') { title.to_owned() } else { capital(title) };
            format!("{title}: {values}, {effect}.")
        };
        all.into_iter().take(JOB_FIGURES_MOST).map(line).collect()
    }

    /// `2.31× (95 % CI 2.23–2.38×, n = 3), better, less durable`.
    pub(super) fn effect_and_ci(&self, c: &Comparison, style: EffectStyle) -> String {
        let is_ahead = c.is_main && c.verdict == Verdict::Better;
        let is_price = is_ahead && self.findings.is_less_durable(c.variant, c.baseline);
        format!("{}{}", self.effect(c, style), if is_price { ", less durable" } else { "" })
    }

    /// `+9.1 % (95 % CI +7.2 to +11.0 %, n = 3), better`.
    fn effect(&self, c: &Comparison, style: EffectStyle) -> String {
        let n = c.relative.n;
        if is_nothing(c) {
            return format!("nothing committed in any of {n} trials");
        }
        let ci = match style.interval(&c.relative) {
            None if n >= 2 && c.metric == metrics::THROUGHPUT => {
                format!("n = {n}, no CI because some trial committed nothing")
            }
            _ => self.effect_ci(&c.relative, style),
        };
        let alone = self.chance(&[c]);
        format!("{} ({ci}), {}{alone}", style.show(c.relative.value), self.verdict_of(c))
    }

    fn has_decided(&self, variant: usize) -> bool {
        self.main_comparisons(variant).iter().any(|c| c.verdict.is_decided())
    }

    /// Against its baseline; decided ones first if there are too many.
    pub(super) fn of_several(&self, variants: &[usize], room: usize) -> Vec<String> {
        let (mut variants, n) = (variants.to_vec(), variants.len());
        if n > room {
            variants.sort_by_key(|variant| !self.has_decided(*variant));
            variants.truncate(room.saturating_sub(1));
        }
        let all: Vec<&Comparison> =
            variants.iter().flat_map(|variant| self.main_comparisons(*variant)).collect();
        let style = self.style_of(&all);
        let mut lines: Vec<String> =
            variants.iter().filter_map(|v| self.of_several_one(*v, style)).collect();
        if n > room {
            let more = count((n - variants.len()) as u64, "more comparison");
            lines.push(format!("{more} in the table below."));
        }
        lines
    }

    fn of_several_one(&self, variant: usize, style: EffectStyle) -> Option<String> {
        let mains: Vec<Vec<&Comparison>> = self.mains(variant).collect();
        let (main, others) = mains.split_first()?;
        let first = main[0];
        let names = format!("{} vs. {}", self.name(variant), self.name(first.baseline));
        let with_cis = |all: &[&Comparison]| {
            let n = self.cis_and_n(all.iter().map(|c| c.relative.n));
            format!("{}; {n}", self.over_loads(all, true))
        };
        if !others.is_empty() {
            let of_metric = |all: &Vec<&Comparison>| {
                capital(&format!("{}: {}.", self.title(all[0].metric), with_cis(all)))
            };
            return Some(format!("{names}. {}", joined(mains.iter().map(of_metric), " ")));
        }
        let text = match main.as_slice() {
            [only] => {
                let p95 = self.comparisons_of(variant, metrics::RESPONSE_P95);
                let p95 = p95.iter().find(|c| c.step == only.step && only.metric != c.metric);
                let p95 = p95.map_or(String::new(), |c| {
                    let style = self.findings.effect_style(c.metric);
                    format!("; p95 {}", style.show(c.relative.value))
                });
                format!("{} {}{p95}", self.title(first.metric), self.effect_and_ci(only, style))
            }
            // The means of different work, and of two loads, hide what is at each.
            few if few.len() == 2 || self.has_own_steps() => with_cis(few),
            several => self.over_loads(several, false),
        };
        Some(format!("{names}: {text}."))
    }

    /// Effects on throughput by concurrency, and with how many repetitions.
    fn by_concurrency(&self, variant: usize) -> Option<(String, String)> {
        let all = self.findings.concurrency.iter().filter(|group| group.variant == variant);
        let style = EffectStyle::of(all.clone().map(|group| &group.relative));
        let part = |group: &GroupComparison| {
            let loads = match group.group {
                ConcurrencyGroup::Low => "up to one client per CPU",
                ConcurrencyGroup::High => "more clients than CPUs",
            };
            let interval = style.interval(&group.relative);
            let lacks = if group.relative.n < 2 { "" } else { " (no CI)" };
            let interval = interval.map_or(lacks.to_owned(), |text| format!(" ({text})"));
            let verdict = match group.verdict {
                Verdict::Better if self.findings.is_less_durable(variant, group.baseline) => {
                    "higher"
                }
                verdict => word(verdict),
            };
            format!("{loads} {}{interval}, {verdict}", style.show(group.relative.value))
        };
        all.clone().next()?;
        let n = self.cis_and_n(all.clone().map(|group| group.relative.n));
        Some((joined(all.map(part), "; "), n))
    }

    /// A sentence for each variant, and one on concurrency; decided ones first if too many.
    pub(super) fn comparisons_in_words(&self) -> Vec<String> {
        let compared = self.compared_variants();
        let mut variants = compared.clone();
        if variants.len() > DETAILS_MOST {
            variants.sort_by_key(|variant| !self.has_decided(*variant));
        }
        let sentences = variants.into_iter().filter_map(|variant| self.variant_sentence(variant));
        let groups = compared.into_iter().filter_map(|variant| self.groups_sentence(variant));
        let mut details: Vec<String> = sentences.chain(groups).collect();
        if details.len() > DETAILS_MOST {
            let n_more = details.drain(DETAILS_MOST - 1..).count();
            details.push(format!("{} more in the tables.", count(n_more as u64, "sentence")));
        }
        details
    }

    fn variant_sentence(&self, variant: usize) -> Option<String> {
        let is_one_step = self.findings.steps.len() == 1;
        let always: Vec<MetricId> = self.always_said().collect();
        let declared = self.findings.metrics.declared().map(|metric| metric.id);
        let if_decided = std::iter::once(metrics::SERVER_CPU).chain(declared);
        let if_decided = if_decided.filter(|metric| !always.contains(metric));
        let (mut place, mut parts): (Option<&Comparison>, _) = (None, Vec::new());
        for metric in always.iter().copied().chain(if_decided) {
            let mut comparisons = self.comparisons_of(variant, metric);
            comparisons.retain(|c| always.contains(&metric) || c.verdict.is_decided());
            let Some(&first) = comparisons.first() else { continue };
            let before = place.get_or_insert(first).relative.n;
            let (title, several) = (self.title(metric), comparisons.as_slice());
            parts.push(match several {
                [only] if is_one_step => {
                    let effect = self.effect(only, self.findings.effect_style(metric));
                    format!("{title} {effect}{}", more_needed(several))
                }
                _ => {
                    let (all, more) = (self.over_loads(several, true), more_needed(several));
                    let n = self.changed_n(several, before);
                    capital(&format!("{title}: {all}{more}{n}"))
                }
            });
        }
        let first = place?;
        let (at, text) = match is_one_step {
            true => (format!(" {}:", self.at(first.step)), parts.join("; ")),
            false => {
                let n = self.cis_and_n(std::iter::once(first.relative.n));
                (format!(" ({n})."), parts.join(". "))
            }
        };
        Some(format!("{}{at} {text}.", self.versus(variant, first.baseline)))
    }

    /// `b (less durable) vs. a`, if it is known to be.
    fn versus(&self, variant: usize, baseline: usize) -> String {
        let is_less = self.findings.is_less_durable(variant, baseline);
        let note = if is_less { " (less durable)" } else { "" };
        format!("{}{note} vs. {}", self.name(variant), self.name(baseline))
    }

    fn groups_sentence(&self, variant: usize) -> Option<String> {
        let (effects, n) = self.by_concurrency(variant)?;
        let baseline = self.findings.concurrency.iter().find(|group| group.variant == variant)?;
        Some(format!(
            "{} by concurrency, throughput as the geometric mean over load levels ({n}): {effects}.",
            self.versus(variant, baseline.baseline),
        ))
    }

    pub(super) fn unpaired(&self) -> Option<String> {
        let is_apart = |c: &Comparison| !c.paired && c.relative.n >= 2;
        self.findings.comparisons.iter().any(is_apart).then(|| {
            "Some comparisons are not paired by block, because their trials were not interleaved or \
             too few blocks contain both variants: in these comparisons, drift of the machine between \
             the variants' trials looks like an effect."
                .to_owned()
        })
    }

    pub(super) fn repeated_looks(&self) -> Option<String> {
        let facts = self.findings.repeated_looks?;
        let (strict, usual) = (share(facts.confidence), share(self.findings.confidence));
        Some(format!(
            "There were {} opportunities to look at the results, because trials were added or runs joined: CIs and \
             verdicts use a confidence of {strict} instead of {usual}, so that repeated looks do not raise the \
             false-positive rate.",
            facts.looks,
        ))
    }

    /// Which verdicts the study was made for, where there are others.
    pub(super) fn exploratory(&self) -> Option<String> {
        if !self.findings.questions.iter().any(|question| super::compares(*question)) {
            return None;
        }
        let is_main = |c: &&Comparison| c.metric == self.main_metric(c.step);
        let (mains, others): (Vec<&Comparison>, Vec<&Comparison>) =
            self.findings.comparisons.iter().partition(is_main);
        let mains = distinct(mains.iter().map(|c| self.title(c.metric)));
        (!others.is_empty() && !mains.is_empty()).then(|| {
            format!(
                "Only verdicts on {} answer the question that was asked; those on other metrics are \
                 exploratory.",
                list(mains)
            )
        })
    }

    /// ` (n = 2 to 3)` if different from before.
    fn changed_n(&self, comparisons: &[&Comparison], before: u32) -> String {
        let ns = comparisons.iter().map(|c| c.relative.n);
        match ns.clone().all(|n| n == before) {
            true => String::new(),
            false => format!(" ({})", self.cis_and_n(ns)),
        }
    }
}

fn more_needed(comparisons: &[&Comparison]) -> String {
    repetitions_needed(comparisons).map_or(String::new(), |text| format!("; {text}"))
}
