//! The answer in words: a headline, at most five lines below, and a sentence for every comparison.
//! What the study varies decides what comes first: the cost of safe commits (durability), who is
//! fastest (servers), scaling (load), cost (prices); the title only decides among these. "Measured
//! highest" is said of observed means; "fastest", "better", "worse" only of decided comparisons.

mod against;
mod ahead;
mod backlog;
mod best;
mod blocking;
mod compared;
mod contests;
mod course;
mod dips;
mod durability;
mod faults;
mod field;
mod linear;
mod pair;
mod price;
mod ranking;
mod reads;
mod scaling;
mod storage;
mod support;
mod vectors;
mod watched;

pub(crate) use ahead::At;
pub(crate) use ranking::{Ranker, Standing};
pub use watched::is_watched;

use crate::numbers::value;
use crate::words::{ci_of, count, list, rate, share};
use crate::{
    Answer, CaveatKind, Cell, Comparison, Estimate, Findings, Metric, MetricId, MetricRole,
    StepSearch, metrics,
};

/// Lines below the headline.
const LINES_MOST: usize = 5;

/// Sentences about comparisons; the others are in the tables.
const DETAILS_MOST: usize = 24;

/// In the default order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    Safety,
    Fastest,
    Blocking,
    Linear,
    Scaling,
    Saturation,
    Money,
    Evenness,
    Reads,
    Storage,
    Snapshots,
    Backlog,
    Faults,
}

impl Topic {
    /// Prefixes of words in titles that ask for the topic.
    fn words(self) -> &'static [&'static str] {
        match self {
            Topic::Safety => &["durab", "safe", "commit"],
            Topic::Fastest => &["fast", "slow", "best", "hold", "save", "cost"],
            Topic::Blocking => &["block"],
            Topic::Linear => &["linear"],
            Topic::Scaling => &["scal"],
            Topic::Saturation => &["satur"],
            Topic::Money => &["money", "price", "cheap"],
            Topic::Evenness => &["vary", "varies", "varian", "stead", "hold"],
            Topic::Reads => &["reads", "selects"],
            Topic::Storage => &["compress", "smaller"],
            Topic::Snapshots => &["snapshot", "clone"],
            Topic::Backlog => &["behind", "backlog"],
            Topic::Faults => &["crash", "fault", "failover", "recover", "outage", "away"],
        }
    }

    /// Position in words.
    fn asked_at(self, title: &str) -> Option<usize> {
        let title = title.to_lowercase();
        let mut words = title.split(|c: char| !c.is_alphanumeric());
        // "Reads and writes" are operations, not disk reads.
        if self == Topic::Reads && words.clone().any(|word| word == "writes") {
            return None;
        }
        words.position(|word| self.words().iter().any(|start| word.starts_with(start)))
    }
}

pub(crate) fn answer(findings: &Findings, ranker: &Ranker<'_>) -> Answer {
    let writer = AnswerWriter { findings, ranker };
    if findings.cells.is_empty() {
        return writer.nothing_measured();
    }
    if let Some(answer) = watched::watched(findings) {
        return answer;
    }
    let against = writer.against_the_first_run().or_else(|| writer.vectors());
    let (headline, statements, support) = match against {
        Some((headline, lines)) => (headline, Vec::new(), Some(lines)),
        None => {
            let mut statements = writer.statements();
            (writer.with_tpcc_mode(statements.remove(0)), statements, None)
        }
    };
    let mut statements = statements;
    let mut lines: Vec<String> = writer.failed_audits().into_iter().collect();
    if headline.starts_with(durability::HEADLINE) {
        // The cost of each level was asked for; other lines give way.
        let n_levels = writer.safety_lines(LINES_MOST).map_or(0, |lines| lines.len());
        statements.truncate(LINES_MOST.saturating_sub(lines.len() + n_levels));
    }
    lines.extend(statements);
    lines.extend(writer.made_dips());
    lines.extend(writer.unmeasured());
    lines.extend(writer.new_orders());
    let room = LINES_MOST.saturating_sub(lines.len());
    lines.extend(support.unwrap_or_else(|| writer.support(room)));
    lines.truncate(LINES_MOST);
    let mut details = writer.comparisons_in_words();
    details.extend(writer.unpaired());
    details.extend(writer.repeated_looks());
    details.extend(findings.unseen_modes());
    let note = match () {
        () if headline.starts_with(durability::HEADLINE) => writer.safety_note(),
        () if writer.saturation().as_ref() == Some(&headline) => Some(writer.saturation_note()),
        () => None,
    };
    Answer { headline, note, lines, details, against: writer.safe_one() }
}

struct AnswerWriter<'a> {
    findings: &'a Findings,
    ranker: &'a Ranker<'a>,
}

impl AnswerWriter<'_> {
    /// The headline first; never empty.
    fn statements(&self) -> Vec<String> {
        let mut found: Vec<(Topic, String)> = Vec::new();
        let safety = self.cost_of_safety();
        let is_asked = |topic: Topic| topic.asked_at(&self.findings.title).is_some();
        let blocked = if is_asked(Topic::Blocking) { self.blocked() } else { None };
        let linear = if is_asked(Topic::Linear) { self.linear() } else { None };
        let first = safety.map(|text| (Topic::Safety, text));
        let first = first.or(blocked.map(|text| (Topic::Blocking, text)));
        let first = first.or(linear.map(|text| (Topic::Linear, text)));
        found.push(first.unwrap_or_else(|| (Topic::Fastest, self.fastest())));
        found.extend(self.scaling().map(|text| (Topic::Scaling, text)));
        if is_asked(Topic::Saturation) {
            found.extend(self.saturation().map(|text| (Topic::Saturation, text)));
        }
        found.extend(self.cheapest().into_iter().map(|text| (Topic::Money, text)));
        if is_asked(Topic::Evenness) {
            found.extend(self.evenness().map(|text| (Topic::Evenness, text)));
        }
        if is_asked(Topic::Reads) {
            found.extend(self.reads_of_the_disk().map(|text| (Topic::Reads, text)));
        }
        if is_asked(Topic::Storage) {
            found.extend(self.smallest().map(|text| (Topic::Storage, text)));
        }
        if is_asked(Topic::Snapshots) {
            found.extend(self.snapshots().map(|text| (Topic::Snapshots, text)));
        }
        if is_asked(Topic::Backlog) {
            found.extend(self.fallen_behind().map(|text| (Topic::Backlog, text)));
        }
        found.extend(self.faults().into_iter().map(|text| (Topic::Faults, text)));
        let asked = |topic: Topic| topic.asked_at(&self.findings.title).unwrap_or(usize::MAX);
        found.sort_by_key(|(topic, _)| asked(*topic));
        found.into_iter().map(|(_, text)| text).collect()
    }

    fn fastest(&self) -> String {
        match self.compared_variants().as_slice() {
            [] => self.described(),
            [only] if self.own_steps().is_none() => self.one_against_its_baseline(*only),
            _ if self.is_mismatched() => "These runs did different work, so no variant is best \
                                          overall; each is compared with its own baseline."
                .to_owned(),
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
        let mut variants: Vec<usize> = self.findings.cells.iter().map(|c| c.variant).collect();
        variants.sort_unstable();
        variants.dedup();
        let said = usize::from(!has_baseline);
        let mut lines: Vec<String> =
            variants.iter().skip(said).map(|variant| self.description(*variant)).collect();
        if let [only] = variants[..] {
            lines.extend(self.values_of(only));
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
        let peak = closed.max_by(|a, b| throughput(a).total_cmp(&throughput(b)));
        let name = self.name(variant);
        match (cells.as_slice(), peak) {
            ([only], _) => self.cell_sentence(only),
            (_, Some(peak)) if n_closed > 1 && throughput(peak) > 0.0 => {
                let value = metrics::with_thing(metrics::THROUGHPUT, &rate(throughput(peak)));
                format!("{name} peaks {} with {value}{}.", self.at(peak.step), self.p95_of(peak))
            }
            (_, Some(peak)) => self.cell_sentence(peak),
            (cells, None) => self.over_offered_rates(variant, cells),
        }
    }

    fn over_offered_rates(&self, variant: usize, cells: &[&Cell]) -> String {
        let name = self.name(variant);
        let with_p95: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.metrics.contains_key(&metrics::RESPONSE_P95))
            .copied()
            .collect();
        let p95 = |cell: &Cell| {
            let value = value(&cell.metrics[&metrics::RESPONSE_P95]);
            format!("{value} {}", self.at(cell.step))
        };
        match with_p95.as_slice() {
            [] => format!("{name} committed no transaction."),
            [only] => format!("The p95 response time of {name} is {}.", p95(only)),
            [first, .., last] => {
                format!("The p95 response time of {name} is {} and {}.", p95(first), p95(last))
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
        let confidence = self.findings.confidence;
        let line = |cell: &Cell| {
            let parts: Vec<String> = [self.main_metric(cell.step), metrics::RESPONSE_P95]
                .into_iter()
                .enumerate()
                .filter(|(i, metric)| *i == 0 || *metric != self.main_metric(cell.step))
                .filter_map(|(_, metric)| {
                    let estimate = cell.metrics.get(&metric).filter(|e| e.max > 0.0)?;
                    let (title, value) = (self.title(metric), self.value_named(metric, estimate));
                    Some(format!("{title} {value} ({})", ci_of(estimate, confidence)))
                })
                .collect();
            let step = crate::words::capital(&self.at(cell.step));
            (!parts.is_empty()).then(|| format!("{step}: {}.", list(&parts)))
        };
        self.findings.cells.iter().filter(|cell| cell.variant == variant).filter_map(line).collect()
    }

    fn unmeasured(&self) -> Option<String> {
        let has_cell = |variant: usize| self.findings.cells.iter().any(|c| c.variant == variant);
        let names: Vec<&str> = (0..self.findings.variants.len())
            .filter(|&variant| !has_cell(variant))
            .map(|variant| self.name(variant))
            .collect();
        let (have, them) = if names.len() == 1 { ("has", "it") } else { ("have", "them") };
        (!names.is_empty()).then(|| {
            format!("{} {have} no finished trial, so nothing is known about {them}.", list(&names))
        })
    }
}

fn shorten(details: &mut Vec<String>, noun: &str) {
    if details.len() > DETAILS_MOST {
        let n_more = details.len() - (DETAILS_MOST - 1);
        details.truncate(DETAILS_MOST - 1);
        details.push(format!("{} more in the tables.", count(n_more as u64, noun)));
    }
}

#[cfg(test)]
mod tests;
