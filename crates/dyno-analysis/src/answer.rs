//! The answer in words: one headline, at most five lines that support it, and every comparison in
//! a sentence for those who want to quote it.
//!
//! The study's questions decide what is said first. Its title decides nothing.
//!
//! A sentence about variants is made of [`Claim`](crate::Claim)s, which the findings have as data; `grammar` has its
//! parts. A sentence says no more than its verdict. "Measured highest" is said of observed means; "is
//! fastest", "better" and "worse" only of comparisons that were decided.

mod best;
mod bound;
mod cheapest;
mod durability;
mod faults;
mod figures;
mod grammar;
mod growth;
mod limits;
mod lines;
mod ranking;
mod vectors;
mod versus;
mod watched;
mod why;

use grammar::Said;
pub(crate) use ranking::{At, Ranker, Standing};
pub use watched::is_watched;

use std::collections::BTreeSet;

use dyno_units::Question;

use crate::numbers::value;
use crate::words::{capital, count, distinct, list, rate, said, share};
use crate::{
    Answer, CaveatKind, Cell, Comparison, Estimate, Findings, Metric, MetricId, MetricRole,
    StepSearch, metrics,
};

/// Lines below the headline.
const LINES_MOST: usize = 5;

/// Sentences about comparisons; the others are in the tables.
const DETAILS_MOST: usize = 24;

/// Variants or load levels that are named one by one; of more, the number is said.
const NAMED_MOST: usize = 3;

pub(crate) fn answer(findings: &Findings, ranker: &Ranker<'_>) -> Answer {
    let writer = AnswerWriter { findings, ranker };
    if findings.cells.is_empty() {
        return writer.nothing_measured();
    }
    if let Some(answer) = watched::watched(findings) {
        return answer;
    }
    let second = writer.against_the_first_run().map(|(said, lines)| (Question::Worse, said, lines));
    let vectors = || writer.vectors().map(|(said, lines)| (Question::Best, said, lines));
    let mut unanswered = None;
    let (question, said, mut statements, support) = match second.or_else(vectors) {
        Some((question, said, lines)) => (question, said, Vec::new(), Some(lines)),
        None => {
            let (questions, mut statements): (Vec<Question>, Vec<Said>) =
                writer.statements().into_iter().unzip();
            unanswered = writer.unanswered(&questions);
            let first = statements.remove(0);
            let text = writer.with_tpcc_mode(first.text);
            (questions[0], Said { text, ..first }, statements, None)
        }
    };
    let mut lines = writer.failed_audits();
    lines.extend(unanswered);
    lines.extend(writer.required());
    if question == Question::Durability {
        // What each level costs is what was asked for: everything else that is said gives way.
        let n_levels = writer.safety_lines(LINES_MOST).map_or(0, |lines| lines.len());
        statements.truncate(LINES_MOST.saturating_sub(lines.len() + n_levels));
    }
    lines.extend(statements.into_iter().map(|said| said.text));
    lines.extend(writer.made_dips());
    lines.extend(writer.unmeasured());
    lines.extend(writer.new_orders());
    lines.extend(writer.at_limits(&said.claims).filter(|_| question != Question::Durability));
    let room = LINES_MOST.saturating_sub(lines.len());
    lines.extend(support.unwrap_or_else(|| writer.support(room)));
    lines.truncate(LINES_MOST);
    let mut details = writer.comparisons_in_words();
    details.extend(writer.unpaired());
    details.extend(writer.repeated_looks());
    details.extend(writer.exploratory());
    details.extend(findings.unseen_modes());
    let note = match question {
        Question::Durability => writer.safety_note(),
        Question::Saturates => Some(writer.saturation_note()),
        _ => None,
    };
    let (headline, claims, against) = (said.text, said.claims, writer.safe_one());
    let why = writer.why(&claims);
    Answer { headline, question: Some(question), claims, note, lines, why, details, against }
}

/// Whether a question is answered by a comparison of variants.
fn compares(question: Question) -> bool {
    use Question::{Best, Blocks, Durability, Limit, Linear, Same, Worse};
    matches!(question, Best | Worse | Same | Linear | Limit | Durability | Blocks)
}

struct AnswerWriter<'a> {
    findings: &'a Findings,
    ranker: &'a Ranker<'a>,
}

impl AnswerWriter<'_> {
    /// What can be said, the headline first; never empty. What is asked comes first.
    fn statements(&self) -> Vec<(Question, Said)> {
        let asked = &self.findings.questions;
        let place = |question: Question| {
            asked.iter().position(|one| *one == question).unwrap_or(usize::MAX)
        };
        let mut found: Vec<(usize, Question, Said)> = Vec::new();
        for question in asked.iter().filter(|question| compares(**question)) {
            let said = self.compared(*question).map(|said| (*question, said));
            // Where there is no such sentence, the usual one says how the variants compare.
            let has_usual = found.iter().any(|(_, of, _)| *of == Question::Best);
            let usual = || (!has_usual).then(|| (Question::Best, self.fastest()));
            found.extend(said.or_else(usual).map(|(of, said)| (place(*question), of, said)));
        }
        if found.is_empty() {
            found.push((usize::MAX, Question::Best, self.fastest()));
        }
        let is_asked = |question: &Question| asked.contains(question);
        let grown = if is_asked(&Question::Scales) { self.grown() } else { None };
        let space = if is_asked(&Question::Space) { self.smallest() } else { None };
        let space = space.into_iter().map(|said| (Question::Space, said));
        let if_asked: [(Question, fn(&Self) -> Option<String>); 5] = [
            (Question::Saturates, Self::saturation),
            (Question::Steady, Self::evenness),
            (Question::Reads, Self::reads_of_the_disk),
            (Question::Snapshots, Self::snapshots),
            (Question::Backlog, Self::fallen_behind),
        ];
        let if_asked = if_asked.into_iter().filter(|(question, _)| is_asked(question));
        let if_asked =
            if_asked.filter_map(|(question, say)| Some((question, Said::from(say(self)?))));
        let scaling = grown.or_else(|| self.scaling());
        let scaling = scaling.into_iter().map(|said| (Question::Scales, said));
        let costs = self.cheapest().into_iter().map(|said| (Question::Cost, said));
        let faults = self.faults().into_iter().map(|text| (Question::Recovers, Said::from(text)));
        let others = scaling.chain(space).chain(if_asked).chain(costs).chain(faults);
        found.extend(others.map(|(question, said)| (place(question), question, said)));
        found.sort_by_key(|(place, ..)| *place);
        found.dedup_by(|(.., one), (.., other)| one.text == other.text);
        found.into_iter().map(|(_, question, said)| (question, said)).collect()
    }

    /// How the variants compare, in the form that a question asks for.
    fn compared(&self, question: Question) -> Option<Said> {
        match question {
            Question::Best => Some(self.fastest()),
            Question::Durability => self.cost_of_safety(),
            Question::Blocks => self.blocked(),
            Question::Linear => self.linear(),
            Question::Worse | Question::Same => {
                self.against_baselines(&self.compared_variants(), question)
            }
            Question::Limit => self.within_limits().map(Said::from),
            _ => None,
        }
    }

    /// The questions that what was measured cannot answer; where variants are compared, the usual sentence
    /// answers.
    fn unanswered(&self, answered: &[Question]) -> Option<String> {
        let is_open = |question: &&Question| {
            let has_usual = compares(**question) && **question != Question::Linear;
            !has_usual && !answered.contains(question)
        };
        let open = self.findings.questions.iter().filter(is_open);
        let words = list(open.map(|question| format!("`{}`", question.word())));
        said("Not answered, as the run lacks what they need", &words)
    }

    fn fastest(&self) -> Said {
        match self.compared_variants().as_slice() {
            [] => self.described().into(),
            [only] if !self.has_own_steps() => self.one_against_its_baseline(*only),
            _ if self.is_mismatched() => "These runs did different work, so no variant is best \
                                          overall; each is compared with its own baseline."
                .to_owned()
                .into(),
            _ => self.best_of_several(),
        }
    }

    fn name(&self, variant: usize) -> &str {
        &self.findings.variants[variant].name
    }

    /// To follow "at".
    fn step(&self, step: usize) -> String {
        let facts = &self.findings.steps[step];
        if let Some(search) = &facts.search {
            return search.limit.clone();
        }
        let is_offered = if facts.rate.is_some() { " offered" } else { "" };
        format!("{}{is_offered}", facts.name)
    }

    /// `at 4 clients`, `within p99 ≤ 20 ms`.
    fn at(&self, step: usize) -> String {
        let facts = &self.findings.steps[step];
        if facts.clients == 0
            && facts.rate.is_none()
            && facts.own.as_ref().is_none_or(|own| own.roles.is_empty())
            && facts.search.is_none()
        {
            return "without load".to_owned();
        }
        let word = if facts.search.is_some() { "within" } else { "at" };
        format!("{word} {}", self.step(step))
    }

    /// `both load levels`, `all 3 load levels`.
    fn all_steps(&self, n: usize) -> String {
        let noun = self.findings.step_noun();
        if n == 2 { format!("both {noun}s") } else { format!("all {n} {noun}s") }
    }

    /// Joined runs differ in workload or steps.
    fn is_mismatched(&self) -> bool {
        let mismatched = [CaveatKind::DifferentWorkload, CaveatKind::DifferentSteps];
        self.findings.caveats.iter().any(|caveat| mismatched.contains(&caveat.kind))
    }

    fn title(&self, metric: MetricId) -> &str {
        &self.findings.metrics.get(metric).title
    }

    /// `8,590 transactions/s`.
    fn value_named(&self, metric: MetricId, estimate: &Estimate) -> String {
        metrics::with_thing(metric, &value(estimate))
    }

    fn always_said(&self) -> impl Iterator<Item = MetricId> {
        let steps = &self.findings.steps;
        let is_said = move |metric: &&Metric| {
            metric.role == MetricRole::Main
                || steps.iter().any(|step| step.main_metric == metric.id)
        };
        self.findings.metrics.iter().filter(is_said).map(|metric| metric.id)
    }

    fn main_metric(&self, step: usize) -> MetricId {
        self.findings.steps[step].main_metric
    }

    fn main_metric_and_steps(&self) -> (MetricId, Vec<usize>) {
        let mains: Vec<MetricId> =
            (0..self.findings.steps.len()).map(|step| self.main_metric(step)).collect();
        let metric = self.always_said().find(|metric| mains.contains(metric));
        let metric = metric.unwrap_or(metrics::THROUGHPUT);
        let steps = (0..mains.len()).filter(|&step| mains[step] == metric).collect();
        (metric, steps)
    }

    fn cell(&self, variant: usize, step: usize) -> Option<&Cell> {
        self.findings.cells.iter().find(|cell| (cell.variant, cell.step) == (variant, step))
    }

    fn compared_variants(&self) -> Vec<usize> {
        let has_one = |variant: &usize| {
            let is_main = |c: &Comparison| c.metric == self.main_metric(c.step);
            self.findings.comparisons.iter().any(|c| c.variant == *variant && is_main(c))
        };
        (0..self.findings.variants.len()).filter(has_one).collect()
    }

    fn comparisons_of(&self, variant: usize, metric: MetricId) -> Vec<&Comparison> {
        let is_it = |c: &&Comparison| c.variant == variant && c.metric == metric;
        self.findings.comparisons.iter().filter(is_it).collect()
    }

    fn nothing_measured(&self) -> Answer {
        let failed: Vec<_> = self.findings.trials.iter().filter(|t| t.state == "failed").collect();
        let is_finished = |trial: &crate::TrialFacts| trial.state == "finished";
        let mut lines = Vec::new();
        let headline = match failed.first() {
            None if self.findings.trials.iter().any(is_finished) => {
                "No trial measured anything.".to_owned()
            }
            None => "No trial has finished yet.".to_owned(),
            Some(first) => {
                let why = first.message.as_deref().unwrap_or("the reason is not known");
                let first = format!("trial {} ({})", first.number, self.name(first.variant));
                lines.push(format!("First failure, {first}: {}.", why.trim_end_matches('.')));
                format!("No trial has finished: {} failed.", count(failed.len() as u64, "trial"))
            }
        };
        Answer { headline, lines, ..Answer::default() }
    }

    // Without comparisons.

    fn described(&self) -> String {
        if self.findings.variants.iter().any(|v| v.baseline.is_some()) {
            return format!(
                "No comparison is possible yet: no {} has results for both a variant and its baseline.",
                self.findings.step_noun()
            );
        }
        let first = self.findings.cells.iter().map(|cell| cell.variant).min().unwrap_or(0);
        self.description(first)
    }

    fn descriptions(&self) -> Vec<String> {
        let has_baseline = self.findings.variants.iter().any(|v| v.baseline.is_some());
        let variants: BTreeSet<usize> = self.findings.cells.iter().map(|c| c.variant).collect();
        let others = variants.iter().skip(usize::from(!has_baseline));
        let mut lines: Vec<String> = others.map(|variant| self.description(*variant)).collect();
        if variants.len() == 1 {
            lines.extend(variants.into_iter().flat_map(|only| self.values_of(only)));
        }
        lines
    }

    fn description(&self, variant: usize) -> String {
        if let Some(text) = self.own_steps_of(variant) {
            return text;
        }
        let cells: Vec<&Cell> =
            self.findings.cells.iter().filter(|cell| cell.variant == variant).collect();
        let throughput =
            |cell: &Cell| cell.metrics.get(&metrics::THROUGHPUT).map_or(0.0, |e| e.value);
        let closed = cells.iter().filter(|cell| self.findings.steps[cell.step].rate.is_none());
        let n_closed = closed.clone().count();
        let most = closed.max_by(|a, b| throughput(a).total_cmp(&throughput(b)));
        let name = self.name(variant);
        match (cells.as_slice(), most) {
            ([only], _) => self.cell_sentence(only),
            (_, Some(most)) if n_closed > 1 && throughput(most) > 0.0 => {
                let value = metrics::with_thing(metrics::THROUGHPUT, &rate(throughput(most)));
                let (at, p95) = (self.at(most.step), self.p95_of(most));
                format!("{name} measured its highest throughput {at}: {value}{p95}.")
            }
            (_, Some(most)) => self.cell_sentence(most),
            (cells, None) => self.over_offered_rates(variant, cells),
        }
    }

    fn over_offered_rates(&self, variant: usize, cells: &[&Cell]) -> String {
        let name = self.name(variant);
        let p95 = |cell: &&Cell| {
            let value = value(cell.metrics.get(&metrics::RESPONSE_P95)?);
            Some(format!("{value} {}", self.at(cell.step)))
        };
        let all: Vec<String> = cells.iter().filter_map(p95).collect();
        match all.as_slice() {
            [] => format!("{name} committed no transaction."),
            [only] => format!("The p95 response time of {name} is {only}."),
            [first, .., last] => {
                format!("The p95 response time of {name} is {first} and {last}.")
            }
        }
    }

    /// `, p95 1.25 ms`, or empty.
    fn p95_of(&self, cell: &Cell) -> String {
        cell.metrics
            .get(&metrics::RESPONSE_P95)
            .map_or(String::new(), |p95| format!(", p95 {}", value(p95)))
    }

    fn cell_sentence(&self, cell: &Cell) -> String {
        let name = self.name(cell.variant);
        if let Some(search) = &self.findings.steps[cell.step].search {
            return self.search_sentence(cell, search);
        }
        let (at, main) = (self.at(cell.step), self.findings.steps[cell.step].main_metric);
        match cell.metrics.get(&metrics::THROUGHPUT) {
            Some(rate) if rate.max > 0.0 => {
                let value = self.value_named(metrics::THROUGHPUT, rate);
                format!("{name} does {value} {at}{}.", self.p95_of(cell))
            }
            // Without load a job declares the metric.
            None if cell.metrics.contains_key(&main) => {
                let title = &self.findings.metrics.get(main).title;
                format!("The {title} of {name} is {}.", value(&cell.metrics[&main]))
            }
            _ => format!("{name} committed no transaction {at}."),
        }
    }

    fn search_sentence(&self, cell: &Cell, search: &StepSearch) -> String {
        let (name, limit) = (self.name(cell.variant), &search.limit);
        match cell.metrics.get(&search.metric) {
            None => format!("{name} met {limit} at none of the loads tried."),
            Some(found) => {
                let precision = share(search.precision);
                let value = self.value_named(search.metric, found);
                format!("{name} sustains {value} within {limit} (search precision: {precision}).")
            }
        }
    }

    fn values_of(&self, variant: usize) -> Vec<String> {
        let line = |cell: &Cell| {
            let value = |metric: MetricId| {
                let estimate = cell.metrics.get(&metric).filter(|e| e.max > 0.0)?;
                let (title, value) = (self.title(metric), self.value_named(metric, estimate));
                Some(format!("{title} {value} ({})", self.ci_of(estimate)))
            };
            let both = distinct([self.main_metric(cell.step), metrics::RESPONSE_P95]);
            said(&capital(&self.at(cell.step)), &list(both.into_iter().filter_map(value)))
        };
        self.findings.cells.iter().filter(|cell| cell.variant == variant).filter_map(line).collect()
    }

    fn unmeasured(&self) -> Option<String> {
        let has_cell = |variant: usize| self.findings.cells.iter().any(|c| c.variant == variant);
        let all = 0..self.findings.variants.len();
        let without: Vec<usize> = all.filter(|variant| !has_cell(*variant)).collect();
        let (have, them) = if without.len() == 1 { ("has", "it") } else { ("have", "them") };
        (!without.is_empty()).then(|| {
            let names = self.named(&without, without.len());
            format!("{names} {have} no finished trial, so nothing is known about {them}.")
        })
    }
}

#[cfg(test)]
mod tests;
