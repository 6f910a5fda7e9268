//! The answer in words: sentences a person can quote, each with its numbers and bounds.
//!
//! A sentence says no more than its verdict. "Highest" and "lowest" are said of means that were
//! observed; "better" and "worse" only of comparisons that were decided.

mod best;
mod compared;
mod field;
mod price;
mod ranking;
mod watched;

pub(crate) use ranking::Ranker;
pub use watched::is_watched;

use crate::words::{bounds, count, list, quantity, share};
use crate::{Answer, CaveatKind, Cell, Comparison, Findings, Metric, StepSearch};

/// Most sentences about variants; what is beyond is in the tables.
const DETAILS_MOST: usize = 8;

/// The answer to the study's question.
pub(crate) fn answer(findings: &Findings, ranker: &Ranker<'_>) -> Answer {
    let teller = Teller { findings, ranker };
    if findings.cells.is_empty() {
        return teller.nothing_measured();
    }
    if let Some(answer) = watched::watched(findings) {
        return answer;
    }
    let headline = match teller.compared_variants().as_slice() {
        [] => return teller.with_field_words(teller.described()),
        [only] => teller.one_against_its_baseline(*only),
        _ if teller.is_unlike() => teller.unlike(),
        _ => teller.best_of_several(),
    };
    let mut details = teller.comparisons_told();
    details.extend(teller.unmeasured());
    details.extend(teller.unpaired());
    teller.with_field_words(Answer { headline, details })
}

struct Teller<'a> {
    findings: &'a Findings,
    ranker: &'a Ranker<'a>,
}

impl Teller<'_> {
    fn name(&self, variant: usize) -> &str {
        &self.findings.variants[variant].name
    }

    /// The load of a step, to be read after "at".
    fn step(&self, step: usize) -> String {
        let facts = &self.findings.steps[step];
        if let Some(search) = &facts.search {
            return search.limit.clone();
        }
        let is_offered = if facts.rate.is_some() { " offered" } else { "" };
        format!("{}{is_offered}", facts.name)
    }

    /// Whether runs were joined that did not do the same work at the same steps.
    fn is_unlike(&self) -> bool {
        let unlike = [CaveatKind::UnlikeWorkload, CaveatKind::UnlikeSteps];
        self.findings.caveats.iter().any(|caveat| unlike.contains(&caveat.kind))
    }

    /// The headline of such runs: no variant is the best of what others did not do.
    fn unlike(&self) -> String {
        format!(
            "The runs did not all do the same work at the same steps, so none of their {} is the \
             best of all; each is compared with its own baseline below.",
            count(self.findings.variants.len() as u64, "variant"),
        )
    }

    fn bounds(&self, estimate: &crate::Estimate, text: impl Fn(f64) -> String) -> String {
        bounds(estimate, self.findings.confidence, text)
    }

    /// What a step is judged by.
    fn main_metric(&self, step: usize) -> Metric {
        self.findings.steps[step].main_metric
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

    /// With what the field asks first: the mode of TPC-C, its new-orders, and the price of the work.
    fn with_field_words(&self, answer: Answer) -> Answer {
        let mut details = self.cheapest();
        details.extend(self.new_orders());
        details.extend(answer.details);
        Answer { headline: format!("{}{}", self.tpcc_modes(), answer.headline), details }
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
        // Steps of the workload's own have been told one by one.
        let is_told = |cell: &&Cell| self.findings.steps[cell.step].own.is_some();
        let several = self.findings.cells.iter().filter(|_| self.findings.steps.len() > 1);
        details.extend(several.filter(|cell| !is_told(cell)).map(|cell| self.cell_sentence(cell)));
        shorten(&mut details, "sentence");
        details.extend(self.unmeasured());
        Answer { headline, details }
    }

    /// One variant alone: its peak under closed load, or what it made of the offered rates.
    fn description(&self, variant: usize) -> String {
        if let Some(told) = self.own_steps_told(variant) {
            return told;
        }
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
                let (value, rest) = self.value_and_bounds(cell, Metric::ResponseP95);
                format!("{value} at {} ({rest})", self.step(cell.step))
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
        if let Some(search) = &self.findings.steps[cell.step].search {
            return self.search_sentence(cell, search);
        }
        let throughput = cell.metrics.get(&Metric::Throughput).map_or(0.0, |e| e.max);
        if throughput == 0.0 {
            return format!("{name} committed no transaction at {step}.");
        }
        let (value, rest) = self.value_and_bounds(cell, Metric::Throughput);
        let response = self.response_there(cell);
        format!("{name} had a throughput of {value} at {step} ({rest}){response}.")
    }

    fn search_sentence(&self, cell: &Cell, search: &StepSearch) -> String {
        let (name, limit) = (self.name(cell.variant), &search.limit);
        if !cell.metrics.contains_key(&search.metric) {
            return format!("{name} kept {limit} at no load that was tried.");
        }
        let (value, rest) = self.value_and_bounds(cell, search.metric);
        let precision = share(search.precision);
        format!("{name} kept {limit} up to {value} ({rest}; searched to {precision}).")
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
}

/// Leaves the first few and says how many more there are.
fn shorten(details: &mut Vec<String>, noun: &str) {
    if details.len() > DETAILS_MOST {
        let n_more = details.len() - (DETAILS_MOST - 1);
        details.truncate(DETAILS_MOST - 1);
        details.push(format!("{} more in the tables.", count(n_more as u64, noun)));
    }
}

#[cfg(test)]
mod tests;
