//! The answer in words: sentences a person can quote, each with its numbers and bounds.
//!
//! A sentence says no more than its verdict. "Highest" and "lowest" are said of means that were
//! observed; "better" and "worse" only of comparisons that were decided.

use crate::statistics::{REPETITIONS_CAP, geometric_mean};
use crate::words::{bounds, capital, count, list, percent, quantity, ratio, share, small};
use crate::{
    Answer, Cell, Comparison, ConcurrencyGroup, Findings, GroupComparison, Metric, Verdict,
};

/// The metrics of which details are always told, and those told where something was decided.
const ALWAYS_TOLD: [Metric; 2] = [Metric::Throughput, Metric::ResponseP95];
const TOLD_IF_DECIDED: [Metric; 2] = [Metric::ResponseP99, Metric::ServerCpuPerTransaction];

/// The answer to the study's question.
pub(crate) fn answer(findings: &Findings) -> Answer {
    let teller = Teller { findings };
    if findings.cells.is_empty() {
        return teller.nothing_measured();
    }
    let headline = match teller.compared_variants().as_slice() {
        [] => return teller.described(),
        [only] => teller.one_against_its_baseline(*only),
        _ => teller.best_of_several(),
    };
    let mut details = Vec::new();
    for variant in teller.compared_variants() {
        details.extend(teller.details_of(variant));
    }
    details.extend(findings.concurrency.iter().map(|group| teller.group(group)));
    details.extend(teller.unmeasured());
    details.extend(teller.unpaired());
    details.retain(|detail| *detail != headline);
    Answer { headline, details }
}

struct Teller<'a> {
    findings: &'a Findings,
}

impl Teller<'_> {
    fn name(&self, variant: usize) -> &str {
        &self.findings.variants[variant].name
    }

    /// The load of a step, to be read after "at".
    fn step(&self, step: usize) -> String {
        let facts = &self.findings.steps[step];
        let is_offered = if facts.rate.is_some() { " offered" } else { "" };
        format!("{}{is_offered}", facts.name)
    }

    fn bounds(&self, estimate: &crate::Estimate, text: impl Fn(f64) -> String) -> String {
        bounds(estimate, self.findings.confidence, text)
    }

    /// What a step is judged by. Under open load throughput is what was offered, and response
    /// time is the answer.
    fn main_metric(&self, step: usize) -> Metric {
        match self.findings.steps[step].rate {
            None => Metric::Throughput,
            Some(_) => Metric::ResponseP95,
        }
    }

    fn cell(&self, variant: usize, step: usize) -> Option<&Cell> {
        self.findings.cells.iter().find(|cell| (cell.variant, cell.step) == (variant, step))
    }

    /// Variants with at least one comparison in the main metric of its step.
    fn compared_variants(&self) -> Vec<usize> {
        let has_one = |variant: &usize| {
            let is_main = |c: &Comparison| c.metric == self.main_metric(c.step);
            self.findings.comparisons.iter().any(|c| c.variant == *variant && is_main(c))
        };
        (0..self.findings.variants.len()).filter(has_one).collect()
    }

    fn comparisons_of(&self, variant: usize, metric: Metric) -> Vec<&Comparison> {
        let is_it = |c: &&Comparison| c.variant == variant && c.metric == metric;
        self.findings.comparisons.iter().filter(is_it).collect()
    }

    fn nothing_measured(&self) -> Answer {
        let failed: Vec<_> = self.findings.trials.iter().filter(|t| t.state == "failed").collect();
        let headline = match failed.first() {
            None if self.findings.trials.iter().any(|trial| trial.state == "finished") => {
                "No trial has measured anything.".to_owned()
            }
            None => "No trial has finished yet.".to_owned(),
            Some(first) => format!(
                "No trial has finished: {} failed, the first of them: {}.",
                count(failed.len() as u64, "trial"),
                first.message.as_deref().unwrap_or("no reason is known").trim_end_matches('.'),
            ),
        };
        Answer { headline, details: Vec::new() }
    }

    // Descriptions: without comparisons.

    /// The answer where nothing is compared: what each variant did.
    fn described(&self) -> Answer {
        let n_variants = self.findings.variants.len();
        let mut sentences = Vec::new();
        for variant in 0..n_variants {
            let has_cell = self.findings.cells.iter().any(|cell| cell.variant == variant);
            if has_cell {
                sentences.push(self.description(variant));
            }
        }
        let with_baseline = self.findings.variants.iter().any(|v| v.baseline.is_some());
        let mut details = Vec::new();
        let headline = if with_baseline {
            "Nothing can be compared yet: no variant and its baseline have both committed \
             transactions at the same step."
                .to_owned()
        } else {
            sentences.remove(0)
        };
        details.append(&mut sentences);
        for cell in self.findings.cells.iter().filter(|_| self.findings.steps.len() > 1) {
            details.push(self.cell_sentence(cell));
        }
        details.extend(self.unmeasured());
        Answer { headline, details }
    }

    /// One variant alone: its peak under closed load, or what it made of the offered rates.
    fn description(&self, variant: usize) -> String {
        let cells: Vec<&Cell> =
            self.findings.cells.iter().filter(|cell| cell.variant == variant).collect();
        let throughput =
            |cell: &Cell| cell.metrics.get(&Metric::Throughput).map_or(0.0, |e| e.value);
        let closed = cells.iter().filter(|cell| self.findings.steps[cell.step].rate.is_none());
        let n_closed = closed.clone().count();
        let peak = closed.max_by(|a, b| throughput(a).total_cmp(&throughput(b)));
        match (cells.as_slice(), peak) {
            ([only], _) => self.cell_sentence(only),
            (_, Some(peak)) if n_closed > 1 && throughput(peak) > 0.0 => {
                let (value, rest) = self.value_and_bounds(peak, Metric::Throughput);
                format!(
                    "{} had its highest throughput, {value}, at {} ({rest}){}.",
                    self.name(variant),
                    self.step(peak.step),
                    self.response_there(peak),
                )
            }
            (_, Some(peak)) => self.cell_sentence(peak),
            (cells, None) => self.over_offered_rates(variant, cells),
        }
    }

    fn over_offered_rates(&self, variant: usize, cells: &[&Cell]) -> String {
        let told: Vec<String> = cells
            .iter()
            .filter(|cell| cell.metrics.contains_key(&Metric::ResponseP95))
            .map(|cell| {
                let (value, _) = self.value_and_bounds(cell, Metric::ResponseP95);
                format!("{value} at {}", self.step(cell.step))
            })
            .collect();
        if told.is_empty() {
            return format!("{} committed no transaction.", self.name(variant));
        }
        format!("{} had a p95 response time of {}.", self.name(variant), list(&told))
    }

    fn response_there(&self, cell: &Cell) -> String {
        if !cell.metrics.contains_key(&Metric::ResponseP95) {
            return String::new();
        }
        let (value, rest) = self.value_and_bounds(cell, Metric::ResponseP95);
        format!("; its p95 response time there was {value} ({rest})")
    }

    fn cell_sentence(&self, cell: &Cell) -> String {
        let name = self.name(cell.variant);
        let step = self.step(cell.step);
        let throughput = cell.metrics.get(&Metric::Throughput).map_or(0.0, |e| e.max);
        if throughput == 0.0 {
            return format!("{name} committed no transaction at {step}.");
        }
        let (value, rest) = self.value_and_bounds(cell, Metric::Throughput);
        let response = self.response_there(cell);
        format!("{name} had a throughput of {value} at {step} ({rest}){response}.")
    }

    fn value_and_bounds(&self, cell: &Cell, metric: Metric) -> (String, String) {
        let estimate = &cell.metrics[&metric];
        let text = |value: f64| quantity(metric, value);
        (text(estimate.value), self.bounds(estimate, text))
    }

    fn unmeasured(&self) -> Option<String> {
        let has_cell = |variant: usize| self.findings.cells.iter().any(|c| c.variant == variant);
        let names: Vec<&str> = (0..self.findings.variants.len())
            .filter(|&variant| !has_cell(variant))
            .map(|variant| self.name(variant))
            .collect();
        let (have, them) = if names.len() == 1 { ("has", "it") } else { ("have", "them") };
        (!names.is_empty()).then(|| {
            format!("{} {have} no finished trial: nothing is known of {them}.", list(&names))
        })
    }

    // Comparisons.

    fn unpaired(&self) -> Option<String> {
        let is_apart = |c: &Comparison| !c.paired && c.relative.n >= 2;
        self.findings.comparisons.iter().any(is_apart).then(|| {
            "Some comparisons are not paired by block, because their trials were not interleaved \
             or too few blocks have both: there, a drift of the machine between the variants \
             cannot be told from an effect."
                .to_owned()
        })
    }

    /// The headline of a study with one compared variant.
    fn one_against_its_baseline(&self, variant: usize) -> String {
        self.verdicts(&self.main_comparisons(variant))
    }

    /// The comparisons of a variant in the first main metric that it has any of.
    fn main_comparisons(&self, variant: usize) -> Vec<&Comparison> {
        for metric in ALWAYS_TOLD {
            let mut comparisons = self.comparisons_of(variant, metric);
            comparisons.retain(|c| self.main_metric(c.step) == metric);
            if !comparisons.is_empty() {
                return comparisons;
            }
        }
        Vec::new()
    }

    /// The headline of a study with several: the variant with the best mean, and what is known of
    /// it.
    fn best_of_several(&self) -> String {
        let is_closed = self.findings.steps.iter().any(|step| step.rate.is_none());
        let metric = if is_closed { Metric::Throughput } else { Metric::ResponseP95 };
        let steps: Vec<usize> = (0..self.findings.steps.len())
            .filter(|&step| self.main_metric(step) == metric)
            .collect();
        let mut ranked = self.ranked(metric, &steps);
        ranked.sort_by(
            |(_, a), (_, b)| {
                if metric.more_is_better() { b.total_cmp(a) } else { a.total_cmp(b) }
            },
        );
        let Some(&(best, value)) = ranked.first() else {
            return "No variant has committed transactions at every step; the details tell what \
                    can be said."
                .to_owned();
        };
        let place = match steps.as_slice() {
            [only] => format!("at {}", self.step(*only)),
            _ => format!("over {} (geometric mean)", all_steps(steps.len())),
        };
        let direction = if metric.more_is_better() { "highest" } else { "lowest" };
        let observed = format!(
            "{} had the {direction} {} of {} {place}, {}",
            self.name(best),
            metric.name(),
            count(ranked.len() as u64, "variant"),
            quantity(metric, value),
        );
        let known = if self.findings.variants[best].baseline.is_some() {
            self.verdicts(&self.main_comparisons(best))
        } else {
            self.standing_of_baseline(best)
        };
        format!("{observed}; {}", small(&known))
    }

    /// Variants that have a value at all of these steps, with its geometric mean.
    fn ranked(&self, metric: Metric, steps: &[usize]) -> Vec<(usize, f64)> {
        let value = |variant: usize, step: &usize| {
            Some(self.cell(variant, *step)?.metrics.get(&metric)?.value)
        };
        let of_variant = |variant: usize| {
            let values: Option<Vec<f64>> = steps.iter().map(|step| value(variant, step)).collect();
            Some((variant, geometric_mean(&values?)?))
        };
        (0..self.findings.variants.len()).filter_map(of_variant).collect()
    }

    /// What the others are against a baseline that has the best mean.
    fn standing_of_baseline(&self, baseline: usize) -> String {
        let comparisons: Vec<&Comparison> = self
            .compared_variants()
            .into_iter()
            .flat_map(|variant| self.main_comparisons(variant))
            .filter(|c| c.baseline == baseline)
            .collect();
        let words = [
            (Verdict::Better, "better"),
            (Verdict::Worse, "worse"),
            (Verdict::NoDifference, "no difference"),
            (Verdict::Inconclusive, "inconclusive"),
        ];
        let told: Vec<String> = words
            .into_iter()
            .map(|(verdict, word)| {
                (comparisons.iter().filter(|c| c.verdict == verdict).count(), word)
            })
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| format!("{n} {word}"))
            .collect();
        if told.is_empty() {
            return "It is a baseline.".to_owned();
        }
        let n = count(comparisons.len() as u64, "comparison");
        format!("It is the baseline, and the {n} with it came out {}.", list(&told))
    }

    fn details_of(&self, variant: usize) -> Vec<String> {
        let is_decided = |c: &&Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
        let mut details = Vec::new();
        for metric in ALWAYS_TOLD {
            details.push(self.full(&self.comparisons_of(variant, metric)));
        }
        for metric in TOLD_IF_DECIDED {
            let comparisons = self.comparisons_of(variant, metric);
            let decided: Vec<&Comparison> = comparisons.into_iter().filter(is_decided).collect();
            details.push(self.full(&decided));
        }
        details.retain(|detail| !detail.is_empty());
        details
    }

    /// One metric of one variant, every step with its numbers; empty without comparisons.
    fn full(&self, comparisons: &[&Comparison]) -> String {
        match comparisons {
            [] => String::new(),
            [only] => self.sentence(only),
            [first, ..] => {
                let entries: Vec<String> = comparisons.iter().map(|c| self.entry(c)).collect();
                format!("{}: {}.", self.subject(first), entries.join("; "))
            }
        }
    }

    /// `Throughput of b against a`.
    fn subject(&self, c: &Comparison) -> String {
        let metric = capital(c.metric.name());
        format!("{metric} of {} against {}", self.name(c.variant), self.name(c.baseline))
    }

    /// One metric of one variant, in one sentence: the verdicts by step.
    fn verdicts(&self, comparisons: &[&Comparison]) -> String {
        let (first, n_steps) = match comparisons {
            [] => return "It cannot be compared with its baseline.".to_owned(),
            [only] => return self.sentence(only),
            [first, ..] => (first, comparisons.len()),
        };
        let with = |verdict: Verdict| -> Vec<&Comparison> {
            comparisons.iter().filter(|c| c.verdict == verdict).copied().collect()
        };
        let mut parts = Vec::new();
        for (verdict, word) in [(Verdict::Better, "better"), (Verdict::Worse, "worse")] {
            let group = with(verdict);
            let told: Vec<String> = group
                .iter()
                .map(|c| format!("{} ({})", self.step(c.step), percent(c.relative.value)))
                .collect();
            if group.len() == n_steps {
                return self.one_sided(&group, word);
            }
            if !group.is_empty() {
                parts.push(format!("{word} at {}", list(&told)));
            }
        }
        let words =
            [(Verdict::NoDifference, "no difference"), (Verdict::Inconclusive, "inconclusive")];
        for (verdict, word) in words {
            let steps: Vec<String> = with(verdict).iter().map(|c| self.step(c.step)).collect();
            if steps.len() == n_steps {
                parts.push(format!("{word} at {}", all_steps(n_steps)));
            } else if !steps.is_empty() {
                parts.push(format!("{word} at {}", list(&steps)));
            }
        }
        let more = self.repetitions_for_all(comparisons);
        let n = n_of(comparisons);
        format!("{}: {} ({n}){more}.", self.subject(first), parts.join("; "))
    }

    /// The same verdict, better or worse, at all steps.
    fn one_sided(&self, group: &[&Comparison], word: &str) -> String {
        let by_effect = |a: &&&Comparison, b: &&&Comparison| {
            a.relative.value.abs().total_cmp(&b.relative.value.abs())
        };
        let told =
            |c: &Comparison| format!("{} at {}", percent(c.relative.value), self.step(c.step));
        let least = group.iter().min_by(by_effect).map_or_else(String::new, |c| told(c));
        let most = group.iter().max_by(by_effect).map_or_else(String::new, |c| told(c));
        format!(
            "{}: {word} at {}, from {least} to {most} ({}).",
            self.subject(group[0]),
            all_steps(group.len()),
            n_of(group),
        )
    }

    fn repetitions_for_all(&self, comparisons: &[&Comparison]) -> String {
        match comparisons.iter().filter_map(|c| c.repetitions_needed).max() {
            None => String::new(),
            Some(n) => format!("; {}", would_decide(n)),
        }
    }

    /// One comparison as a sentence of its own.
    fn sentence(&self, c: &Comparison) -> String {
        let (ours, theirs) = (self.name(c.variant), self.name(c.baseline));
        let (metric, step) = (capital(c.metric.name()), self.step(c.step));
        if is_nothing(c) {
            return format!("{metric}: {}.", self.entry(c));
        }
        let numbers = self.numbers(c);
        match c.verdict {
            Verdict::Better | Verdict::Worse => format!(
                "{metric}: {ours} is {} {theirs} at {step} ({numbers}): {}.",
                ratio(c.relative.value),
                verdict_word(c.verdict),
            ),
            Verdict::NoDifference => format!(
                "{metric}: no difference that matters between {ours} and {theirs} at {step} \
                 ({numbers}; threshold {}).",
                share(self.findings.threshold),
            ),
            Verdict::Inconclusive => format!(
                "{metric}: the data do not decide between {ours} and {theirs} at {step} \
                 ({numbers}){}.",
                self.why_undecided(c),
            ),
        }
    }

    /// One comparison as a part of a sentence.
    fn entry(&self, c: &Comparison) -> String {
        let step = self.step(c.step);
        if is_nothing(c) {
            let name = self.name(c.variant);
            return format!(
                "{name} committed nothing at {step} in any of {} repetitions: {}",
                c.relative.n,
                verdict_word(c.verdict)
            );
        }
        let ending = match c.verdict {
            Verdict::Inconclusive => format!("inconclusive{}", self.why_undecided(c)),
            other => verdict_word(other).to_owned(),
        };
        format!("{} at {step} ({}): {ending}", ratio(c.relative.value), self.numbers(c))
    }

    /// `+131 %, 95 % bounds +124 % … +139 %, n = 3`.
    fn numbers(&self, c: &Comparison) -> String {
        let effect = percent(c.relative.value);
        if c.relative.low.is_none() && c.relative.n >= 2 {
            return format!(
                "{effect}, n = {}, no bounds because some repetition committed nothing",
                c.relative.n
            );
        }
        format!("{effect}, {}", self.bounds(&c.relative, percent))
    }

    /// Why it is undecided where that is not plain, and what would decide it.
    fn why_undecided(&self, c: &Comparison) -> String {
        let excludes_zero = matches!(
            (c.relative.low, c.relative.high),
            (Some(low), Some(high)) if low > 0.0 || high < 0.0
        );
        let family = self.findings.comparisons.iter().filter(|other| other.metric == c.metric);
        let n_family = family.count() as u64;
        let chance = if excludes_zero && n_family > 1 {
            format!(": among {n_family} comparisons one such may be chance")
        } else {
            String::new()
        };
        match c.repetitions_needed {
            Some(_) if c.relative.n < 2 => {
                format!("{chance}; at least 3 repetitions are needed")
            }
            Some(n) => format!("{chance}; {}", would_decide(n)),
            None => chance,
        }
    }

    fn group(&self, group: &GroupComparison) -> String {
        let steps = match group.group {
            ConcurrencyGroup::Low => "low concurrency (no more clients than CPUs)",
            ConcurrencyGroup::High => "high concurrency (more clients than CPUs)",
        };
        format!(
            "At {steps}, {} has {} the throughput of {} as a geometric mean over the steps ({}, \
             {}): {}.",
            self.name(group.variant),
            ratio(group.relative.value),
            self.name(group.baseline),
            percent(group.relative.value),
            self.bounds(&group.relative, percent),
            verdict_word(group.verdict),
        )
    }
}

/// Whether a variant committed nothing at all where its baseline always did.
fn is_nothing(c: &Comparison) -> bool {
    c.metric == Metric::Throughput && c.verdict == Verdict::Worse && c.relative.max <= -100.0
}

fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference that matters",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn would_decide(n: u32) -> String {
    if n >= REPETITIONS_CAP {
        return format!("even {n} repetitions might not decide");
    }
    format!("about {n} repetitions would probably decide")
}

/// `both steps`, `all 3 steps`.
fn all_steps(n: usize) -> String {
    if n == 2 { "both steps".to_owned() } else { format!("all {n} steps") }
}

/// `n = 3`, or `n = 2 to 3` where steps differ.
fn n_of(comparisons: &[&Comparison]) -> String {
    let ns = comparisons.iter().map(|c| c.relative.n);
    match (ns.clone().min().unwrap_or(0), ns.max().unwrap_or(0)) {
        (least, most) if least == most => format!("n = {least}"),
        (least, most) => format!("n = {least} to {most}"),
    }
}

#[cfg(test)]
mod tests;
