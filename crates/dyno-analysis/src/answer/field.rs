//! Throughput under the names that the field has for it: TPC-C's with its mode, the Insert
//! Benchmark's by what it counts.

use super::Teller;
use crate::tpcc;
use crate::words::{bounds, list, number, quantity, short_range};
use crate::{Estimate, Metric, VariantFacts};

/// As many steps of a variant are told.
const STEPS_TOLD: usize = 3;

impl Teller<'_> {
    /// What the headline of TPC-C begins with: `TPC-C, unpaced: `. Empty for other workloads.
    pub(super) fn tpcc_modes(&self) -> String {
        let is_tpcc = |variant: &&VariantFacts| variant.workload == tpcc::WORKLOAD;
        let variants = self.findings.variants.iter().filter(is_tpcc);
        let is_open = |step: &crate::StepFacts| step.rate.is_some();
        let steps = &self.findings.steps;
        let mut modes: Vec<&str> = variants
            .flat_map(|v| steps.iter().map(move |step| tpcc::mode(&v.options, is_open(step))))
            .collect();
        modes.sort_unstable();
        modes.dedup();
        if modes.is_empty() { String::new() } else { format!("TPC-C, {}: ", list(&modes)) }
    }

    /// New-orders a minute of each variant that runs TPC-C.
    pub(super) fn new_orders(&self) -> Vec<String> {
        let told = |variant: usize| {
            let facts = &self.findings.variants[variant];
            let is_it = |k: &&crate::kinds::KindCell| k.variant == variant && k.kind == "new_order";
            let mut cells: Vec<_> = self.findings.kinds.iter().filter(is_it).collect();
            let n_more = cells.len().saturating_sub(STEPS_TOLD);
            cells.truncate(STEPS_TOLD);
            let parts: Vec<String> = cells
                .iter()
                .filter_map(|cell| {
                    let throughput = cell.metrics.get(&Metric::Throughput)?;
                    let step = &self.findings.steps[cell.step];
                    let is_open = step.rate.is_some();
                    let name = tpcc::new_orders_name(&facts.options, step.clients, is_open);
                    let a_minute = |rate: f64| number(60.0 * rate);
                    Some(format!(
                        "{} a minute at {} ({name}, {}; {})",
                        a_minute(throughput.value),
                        self.step(cell.step),
                        tpcc::mode(&facts.options, is_open),
                        bounds(throughput, self.findings.confidence, a_minute),
                    ))
                })
                .collect();
            let more = if n_more == 0 { "" } else { "; more in the tables" };
            (facts.workload == tpcc::WORKLOAD && !parts.is_empty())
                .then(|| format!("New-orders of {}: {}{more}.", self.name(variant), list(&parts)))
        };
        (0..self.findings.variants.len()).filter_map(told).collect()
    }

    /// What a step of the workload's own came to, in what it counts: `5,400 queries/s: 5,300 … 5,500`.
    pub(super) fn own_rate(&self, variant: usize, step: usize) -> String {
        let Some((rate, unit)) = self.own_estimate(variant, step) else {
            return "nothing committed".to_owned();
        };
        let text = |value: f64| quantity(Metric::Throughput, value).replace("/s", "");
        let bounds = short_range(rate, text).map_or(String::new(), |range| format!(": {range}"));
        format!("{} {unit}/s{bounds}", text(rate.value))
    }

    /// The rate that a step is about, and what it counts: of the Insert Benchmark queries, indexed
    /// rows or inserted rows, as its author has it; else transactions.
    fn own_estimate(&self, variant: usize, step: usize) -> Option<(&Estimate, &'static str)> {
        let is_it = |c: &&crate::insert_benchmark::InsertBenchmarkCell| {
            (c.variant, c.step) == (variant, step)
        };
        let told = self.findings.insert_benchmark.iter().find(is_it);
        let told = told.and_then(|cell| {
            let queries = cell.queries.as_ref().map(|rate| (rate, "queries"));
            let indexed = cell.indexed.as_ref().map(|rate| (rate, "rows indexed"));
            let inserts = cell.inserts.as_ref().map(|rate| (rate, "rows inserted"));
            queries.or(indexed).or(inserts)
        });
        told.or_else(|| {
            let rate = self.cell(variant, step)?.metrics.get(&Metric::Throughput)?;
            Some((rate, "transactions"))
        })
    }

    /// A variant over steps that the workload defines: each by itself, as they are unlike work.
    pub(super) fn own_steps_told(&self, variant: usize) -> Option<String> {
        let cells = self.findings.cells.iter().filter(|cell| cell.variant == variant);
        let steps: Vec<usize> = cells.map(|cell| cell.step).collect();
        if steps.is_empty() || steps.iter().any(|s| self.findings.steps[*s].own.is_none()) {
            return None;
        }
        let told: Vec<String> = steps
            .iter()
            .map(|&step| {
                let told = self.own_rate(variant, step);
                let told = told
                    .split_once(": ")
                    .map_or(told.clone(), |(value, range)| format!("{value} ({range})"));
                format!("{told} at {}", self.step(step))
            })
            .collect();
        let n = self.cell(variant, steps[0])?.metrics.get(&Metric::Throughput)?.n;
        Some(format!(
            "{}, step by step, as steps are unlike work: {} ({}).",
            self.name(variant),
            list(&told),
            self.n_told(n, n),
        ))
    }
}
