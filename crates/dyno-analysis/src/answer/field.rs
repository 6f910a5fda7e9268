//! Throughput as the field names it: TPC-C's with its mode, the Insert Benchmark's by its count.

use super::AnswerWriter;
use super::ranking::Standing;
use crate::insert_benchmark::InsertBenchmarkCell;
use crate::numbers::{EffectStyle, Unit, interval};
use crate::tpcc;
use crate::words::{ci, list, number};
use crate::{Estimate, VariantFacts, metrics};

const STEPS_SAID: usize = 2;

const MAIN_STEPS: usize = 3;

const RANKED_MOST: usize = 4;

impl AnswerWriter<'_> {
    /// Throughput of TPC-C says little without the mode.
    pub(super) fn with_tpcc_mode(&self, headline: String) -> String {
        let is_tpcc = |variant: &&VariantFacts| variant.workload == tpcc::WORKLOAD;
        let variants = self.findings.variants.iter().filter(is_tpcc);
        let is_open = |step: &crate::StepFacts| step.rate.is_some();
        let steps = &self.findings.steps;
        let mut modes: Vec<&str> = variants
            .flat_map(|v| steps.iter().map(move |step| tpcc::mode(&v.options, is_open(step))))
            .collect();
        modes.sort_unstable();
        modes.dedup();
        match modes.as_slice() {
            [] => headline,
            modes => {
                let text = headline.trim_end_matches('.');
                format!("{text} (TPC-C, {}).", list(modes))
            }
        }
    }

    pub(super) fn new_orders(&self) -> Option<String> {
        let mut parts = Vec::new();
        let mut names = Vec::new();
        for (variant, facts) in self.findings.variants.iter().enumerate() {
            if facts.workload != tpcc::WORKLOAD {
                continue;
            }
            let is_it = |k: &&crate::kinds::KindCell| k.variant == variant && k.kind == "new_order";
            for cell in self.findings.kinds.iter().filter(is_it).take(STEPS_SAID) {
                let Some(rate) = cell.metrics.get(&metrics::THROUGHPUT) else { continue };
                let step = &self.findings.steps[cell.step];
                let is_open = step.rate.is_some();
                names.push(tpcc::new_orders_name(&facts.options, step.clients, is_open));
                let (value, at) = (number(60.0 * rate.value), self.at(cell.step));
                parts.push(format!("{} {value} {at}", self.name(variant)));
            }
        }
        names.dedup();
        let n_more = parts.len().saturating_sub(2 * STEPS_SAID);
        parts.truncate(2 * STEPS_SAID);
        let more = if n_more > 0 { "; more in the tables" } else { "" };
        let name = list(&names);
        (!parts.is_empty())
            .then(|| format!("New orders per minute ({name}): {}{more}.", list(&parts)))
    }

    /// Rate and unit: the Insert Benchmark's queries, indexed or inserted rows; else transactions.
    fn own_estimate(&self, variant: usize, step: usize) -> Option<(&Estimate, &'static str)> {
        let cell = self.insert_benchmark(variant, step);
        let found = cell.and_then(|cell| {
            let queries = cell.queries.as_ref().map(|rate| (rate, "queries/s"));
            let indexed = cell.indexed.as_ref().map(|rate| (rate, "rows indexed/s"));
            let inserts = cell.inserts.as_ref().map(|rate| (rate, "rows/s"));
            queries.or(indexed).or(inserts)
        });
        found.or_else(|| {
            let rate = self.cell(variant, step)?.metrics.get(&metrics::THROUGHPUT)?;
            Some((rate, "transactions/s"))
        })
    }

    fn insert_benchmark(&self, variant: usize, step: usize) -> Option<&InsertBenchmarkCell> {
        let is_it = |c: &&InsertBenchmarkCell| (c.variant, c.step) == (variant, step);
        self.findings.insert_benchmark.iter().find(is_it)
    }

    /// `104k rows/s`.
    fn own_rate(&self, variant: usize, step: usize) -> String {
        match self.own_estimate(variant, step) {
            Some((rate, unit)) => format!("{} {unit}", Unit::Count.show(rate.value)),
            None => "nothing committed".to_owned(),
        }
    }

    /// The Insert Benchmark's load, inserts with indexes and heaviest queries; else the first few.
    fn main_steps(&self) -> Vec<usize> {
        let steps: Vec<usize> = (0..self.findings.steps.len()).collect();
        let of = |step: usize| self.findings.insert_benchmark.iter().find(move |c| c.step == step);
        let is_query = |step: &usize| of(*step).is_some_and(|c| c.queries.is_some());
        let is_insert =
            |step: &usize| of(*step).is_some_and(|c| c.inserts.is_some() && c.queries.is_none());
        let inserts: Vec<usize> = steps.iter().copied().filter(is_insert).collect();
        let last_query = steps.iter().copied().rfind(is_query);
        let main: Vec<usize> = inserts.into_iter().take(2).chain(last_query).collect();
        if main.is_empty() { steps.into_iter().take(MAIN_STEPS).collect() } else { main }
    }

    /// Several variants over steps of different work, one by one; `None` if steps are loads.
    pub(super) fn own_steps(&self) -> Option<String> {
        let steps = &self.findings.steps;
        if steps.len() < 2 || steps.iter().all(|step| step.own.is_none()) {
            return None;
        }
        if self.compared_variants().is_empty() || self.is_mismatched() {
            return None;
        }
        // With what they do at their best steps.
        let mut best: Vec<(usize, Vec<String>)> = Vec::new();
        let (mut open, mut is_single) = (Vec::new(), true);
        let main = self.main_steps();
        for &step in &main {
            let ranked = self.ranker.rank(self.main_metric(step), &[step]);
            let Some(first) = ranked.first() else { continue };
            let is_behind = |r: &super::ranking::Ranked| r.standing == Standing::Behind;
            if ranked.len() < 2 || !ranked[1..].iter().all(is_behind) {
                is_single &= ranked[1..].iter().all(|r| r.standing == Standing::Single);
                open.push(self.step(step));
                continue;
            }
            let text = format!("{} ({})", self.step(step), self.own_rate(first.variant, step));
            match best.iter_mut().find(|(variant, _)| *variant == first.variant) {
                Some((_, steps)) => steps.push(text),
                None => best.push((first.variant, vec![text])),
            }
        }
        if best.is_empty() {
            let main = list(&open);
            if is_single && !open.is_empty() {
                let more = super::compared::MORE_REPETITIONS;
                return Some(format!("One repetition cannot rank variants at {main}. {more}."));
            }
            return Some(format!(
                "Undecided which is best at {main}; each step does different work."
            ));
        }
        let is_part = main.len() < steps.len();
        if let ([(variant, won)], true, true) = (best.as_slice(), open.is_empty(), is_part) {
            let (name, n) = (self.name(*variant), won.len());
            return Some(match n {
                1 => format!("{name} is fastest at the main step, {}.", won[0]),
                _ => format!("{name} is fastest at the {n} main steps: {}.", list(won)),
            });
        }
        let mut parts: Vec<String> = best
            .iter()
            .map(|(variant, steps)| {
                format!("{} is fastest at {}", self.name(*variant), list(steps))
            })
            .collect();
        if !open.is_empty() {
            parts.push(format!("undecided at {}", list(&open)));
        }
        let of = if is_part { "Of the main steps: " } else { "" };
        Some(format!("{of}{}.", parts.join("; ")))
    }

    pub(super) fn own_step_lines(&self) -> Vec<String> {
        let line = |step: usize| {
            let metric = self.main_metric(step);
            let ranked = self.ranker.rank(metric, &[step]);
            let (first, others) = ranked.split_first()?;
            let (rate, _) = self.own_estimate(first.variant, step)?;
            let effects: Vec<(usize, Estimate, Standing)> = others
                .iter()
                .take(RANKED_MOST - 1)
                .filter_map(|other| {
                    let pair = (other.variant, first.variant);
                    let (effect, _) = self.ranker.against(pair, metric, &[step])?;
                    Some((other.variant, effect, other.standing))
                })
                .collect();
            let style = EffectStyle::of(effects.iter().map(|(_, effect, _)| effect));
            let behind: Vec<String> = effects
                .iter()
                .map(|(variant, effect, standing)| {
                    let tied = match standing {
                        Standing::First | Standing::Behind => "",
                        Standing::Single => " (one repetition)",
                        Standing::Same => ", no difference",
                        Standing::Tied => ", undecided",
                    };
                    format!("{} {}{tied}", self.name(*variant), style.show(effect.value))
                })
                .collect();
            let n_more = others.len() - effects.len();
            let more = if n_more > 0 { format!("; {n_more} more") } else { String::new() };
            let interval = ci(rate, self.findings.confidence, interval(rate));
            let step_name = match metric {
                other if other != metrics::THROUGHPUT && behind.is_empty() => {
                    format!("{} (ranked by {})", self.step(step), self.title(other))
                }
                _ => self.step(step),
            };
            let (name, rate) = (self.name(first.variant), self.own_rate(first.variant, step));
            let then = match metric {
                _ if behind.is_empty() => String::new(),
                metrics::THROUGHPUT => "; then ".to_owned(),
                other => format!("; then, by {}, ", self.title(other)),
            };
            let behind = behind.join("; ");
            Some(format!("{step_name}: {name} {rate} ({interval}){then}{behind}{more}."))
        };
        self.main_steps().into_iter().filter_map(line).collect()
    }

    /// One variant over steps of the workload, each by itself; `None` if a step is a load.
    pub(super) fn own_steps_of(&self, variant: usize) -> Option<String> {
        let cells = self.findings.cells.iter().filter(|cell| cell.variant == variant);
        let steps: Vec<usize> = cells.map(|cell| cell.step).collect();
        if steps.is_empty() || steps.iter().any(|s| self.findings.steps[*s].own.is_none()) {
            return None;
        }
        let main = self.main_steps().into_iter().filter(|step| steps.contains(step));
        let parts: Vec<String> = main
            .map(|step| format!("{} {}", self.step(step), self.own_rate(variant, step)))
            .collect();
        Some(format!("{}: {}.", self.name(variant), list(&parts)))
    }
}
