//! The lines below the headline: its figures, with confidence intervals and repetitions.

use std::collections::BTreeSet;

use dyno_record::AuditRow;

use super::AnswerWriter;
use super::best::NAMED_MOST;
use super::compared::{is_nothing, repetitions_needed};
use super::pair::distance;
use crate::numbers::EffectStyle;
use crate::words::{capital, ci, count, list, share};
use crate::{Comparison, ConcurrencyGroup, GroupComparison, Verdict, metrics};

const JOB_FIGURES_MOST: usize = 3;

impl AnswerWriter<'_> {
    /// Of kinds of transactions that did not do their work, and of tables.
    pub(super) fn failed_audits(&self) -> Vec<String> {
        let is_of_kinds = |row: &AuditRow| row.name == AuditRow::KINDS_COMMIT;
        let rows = self.findings.trials.iter().flat_map(|trial| &trial.audit);
        let first = rows.clone().find(|row| is_of_kinds(row) && !row.pass);
        let kinds = first.and_then(|row| {
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
        let names: Vec<&str> = variants.iter().map(|variant| self.name(*variant)).collect();
        let whose =
            if names.len() > NAMED_MOST { String::new() } else { format!(" ({})", list(&names)) };
        (n_failed > 0).then(|| {
            format!(
                "The audit failed in {n_failed} of {}{whose}: {what}.",
                count(audited.count() as u64, "audited trial")
            )
        })
    }

    pub(super) fn support(&self, room: usize) -> Vec<String> {
        let compared = self.compared_variants();
        let safety = self.safety_lines(room);
        let mut lines = match compared.as_slice() {
            [] => self.descriptions(),
            _ if self.own_steps().is_some() => self.own_step_lines(),
            [only] => self.of_one(*only),
            several => match &safety {
                Some(lines) => lines.clone(),
                None => self.of_several(several, room),
            },
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
            if metric == metrics::SERVER_CPU {
                all.retain(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse));
            }
            let text = match all.as_slice() {
                [] => continue,
                [only] => self.effect_and_ci(only, self.findings.effect_style(only.metric)),
                several if i == 0 => self.ends_with_ci(several),
                several => self.over_steps(several, false),
            };
            lines.push(capital(&format!("{}: {text}.", self.title(metric))));
        }
        lines.extend(self.figures_of_jobs(first));
        lines.extend(self.significance(&main));
        lines.extend(repetitions_needed(&main).map(|text| capital(&text) + "."));
        lines.extend(self.concurrency(variant));
        lines
    }

    /// Decided figures of jobs besides the judged one, the largest difference first.
    fn figures_of_jobs(&self, judged: &Comparison) -> Vec<String> {
        let is_of_job = |c: &&Comparison| {
            (c.variant, c.step) == (judged.variant, judged.step)
                && c.metric != judged.metric
                && c.metric.as_str().starts_with("job.")
                && matches!(c.verdict, Verdict::Better | Verdict::Worse)
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

    /// `2.31× (95 % CI 2.23–2.38×, n = 3), better`.
    pub(super) fn effect_and_ci(&self, c: &Comparison, style: EffectStyle) -> String {
        if is_nothing(c) {
            return format!("nothing committed in {} trials", c.relative.n);
        }
        let interval = ci(&c.relative, self.findings.confidence, style.interval(&c.relative));
        let is_ahead = c.is_main && c.verdict == Verdict::Better;
        let is_price = is_ahead && self.is_less_durable(c.variant, c.baseline);
        let note = if is_price { ", less durable" } else { "" };
        let why = self.if_only_corrected(c);
        format!("{} ({interval}), {}{note}{why}", style.show(c.relative.value), self.verdict_of(c))
    }

    fn ends_with_ci(&self, comparisons: &[&Comparison]) -> String {
        let style = self.style_of(comparisons);
        let by_effect =
            |a: &&&Comparison, b: &&&Comparison| a.relative.value.total_cmp(&b.relative.value);
        let show = |c: &Comparison| {
            let interval = style.interval(&c.relative).map_or(String::new(), |i| format!(" ({i})"));
            format!("{}{interval} {}", style.show(c.relative.value), self.at(c.step))
        };
        let ns = comparisons.iter().map(|c| c.relative.n);
        let n = self.cis_and_n(ns.clone().min().unwrap_or(0), ns.max().unwrap_or(0));
        let ends = comparisons.iter().min_by(by_effect).zip(comparisons.iter().max_by(by_effect));
        match ends {
            Some((least, most)) if least.step != most.step => {
                let value = |c: &Comparison| style.show(c.relative.value);
                match comparisons.len() {
                    2 => format!("{}, {}; {n}", show(least), show(most)),
                    several if value(least) == value(most) => {
                        format!("{} at {}; {n}", value(least), self.all_steps(several))
                    }
                    _ => format!("between {} and {}; {n}", show(least), show(most)),
                }
            }
            Some((only, _)) => format!("{}; {n}", show(only)),
            None => String::new(),
        }
    }

    /// Against its baseline; decided ones first if there are too many.
    fn of_several(&self, variants: &[usize], room: usize) -> Vec<String> {
        let mut variants = variants.to_vec();
        let is_decided = |variant: usize| {
            let main = self.main_comparisons(variant);
            main.iter().any(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse))
        };
        if variants.len() > room {
            variants.sort_by_key(|variant| !is_decided(*variant));
        }
        let n = variants.len();
        if n > room && room > 0 {
            variants.truncate(room - 1);
        }
        let all: Vec<&Comparison> =
            variants.iter().flat_map(|variant| self.main_comparisons(*variant)).collect();
        let style = self.style_of(&all);
        let p95_style = self.findings.effect_style(metrics::RESPONSE_P95);
        let mut lines: Vec<String> =
            variants.iter().filter_map(|v| self.of_several_one(*v, style, p95_style)).collect();
        if n > room && room > 0 {
            let more = count((n - variants.len()) as u64, "more comparison");
            lines.push(format!("{} in the table below.", capital(&more)));
        }
        lines
    }

    fn of_several_one(
        &self,
        variant: usize,
        style: EffectStyle,
        p95_style: EffectStyle,
    ) -> Option<String> {
        let main = self.main_comparisons(variant);
        let first = main.first()?;
        let names = format!("{} vs. {}", self.name(variant), self.name(first.baseline));
        let text = match main.as_slice() {
            [only] => {
                let p95 = self.comparisons_of(variant, metrics::RESPONSE_P95);
                let p95 = p95.iter().find(|c| c.step == only.step && only.metric != c.metric);
                let p95 = p95.map_or(String::new(), |c| {
                    format!("; p95 {}", p95_style.show(c.relative.value))
                });
                format!("{} {}{p95}", self.title(first.metric), self.effect_and_ci(only, style))
            }
            several => self.over_steps(several, false),
        };
        Some(format!("{names}: {text}."))
    }

    fn significance(&self, comparisons: &[&Comparison]) -> Option<String> {
        let (places, n_family) = self.chances_among(comparisons)?;
        let metric = capital(self.title(comparisons.first()?.metric));
        Some(format!(
            "{metric} {places} differs significantly if tested alone, but not after correcting for \
             {n_family} comparisons."
        ))
    }

    fn concurrency(&self, variant: usize) -> Option<String> {
        let groups: Vec<&GroupComparison> =
            self.findings.concurrency.iter().filter(|g| g.variant == variant).collect();
        let [low, high] = groups[..] else { return None };
        let style = EffectStyle::of([&low.relative, &high.relative]);
        let part = |group: &GroupComparison| {
            let loads = match group.group {
                ConcurrencyGroup::Low => "with up to one client per CPU",
                ConcurrencyGroup::High => "with more clients",
            };
            let (effect, interval) =
                (style.show(group.relative.value), style.interval(&group.relative));
            let interval = interval.map_or("no CI".to_owned(), |text| text);
            format!("{effect} {loads} ({interval})")
        };
        let confidence = share(self.findings.confidence);
        Some(format!(
            "Throughput by concurrency: {}, {} ({confidence} CIs).",
            part(low),
            part(high)
        ))
    }
}
