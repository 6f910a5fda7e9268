//! Findings with an index: cells and comparisons by variant, step and metric.

use std::collections::HashMap;

use dyno_analysis::stalls::StallFacts;
use dyno_analysis::{Cell, Comparison, Estimate, Findings, Metric};

/// Findings, made quick to look things up in.
pub(crate) struct View<'a> {
    /// The findings.
    pub(crate) findings: &'a Findings,
    cells: HashMap<(usize, usize), &'a Cell>,
    comparisons: HashMap<(usize, usize, Metric), &'a Comparison>,
}

impl<'a> View<'a> {
    /// Indexes findings. Entries that name a variant or step that is not listed are left out, so
    /// that findings written by other tools cannot make a renderer fail.
    pub(crate) fn new(findings: &'a Findings) -> View<'a> {
        let is_known = |variant: usize, step: usize| {
            variant < findings.variants.len() && step < findings.steps.len()
        };
        View {
            findings,
            cells: findings
                .cells
                .iter()
                .filter(|c| is_known(c.variant, c.step))
                .map(|c| ((c.variant, c.step), c))
                .collect(),
            comparisons: findings
                .comparisons
                .iter()
                .filter(|c| is_known(c.variant, c.step) && is_known(c.baseline, c.step))
                .map(|c| ((c.variant, c.step, c.metric), c))
                .collect(),
        }
    }

    /// The cell of a variant at a step.
    pub(crate) fn cell(&self, variant: usize, step: usize) -> Option<&'a Cell> {
        self.cells.get(&(variant, step)).copied()
    }

    /// An estimate of a variant at a step.
    pub(crate) fn estimate(
        &self,
        variant: usize,
        step: usize,
        metric: Metric,
    ) -> Option<&'a Estimate> {
        self.cell(variant, step)?.metrics.get(&metric)
    }

    /// A comparison of a variant with its baseline at a step.
    pub(crate) fn comparison(
        &self,
        variant: usize,
        step: usize,
        metric: Metric,
    ) -> Option<&'a Comparison> {
        self.comparisons.get(&(variant, step, metric)).copied()
    }

    /// A variant's name.
    pub(crate) fn variant(&self, variant: usize) -> &'a str {
        self.findings.variants.get(variant).map_or("unknown variant", |v| v.name.as_str())
    }

    /// A step's name.
    pub(crate) fn step(&self, step: usize) -> &'a str {
        self.findings.steps.get(step).map_or("unknown step", |s| s.name.as_str())
    }

    /// Whether a metric was measured anywhere.
    pub(crate) fn has(&self, metric: Metric) -> bool {
        self.findings.cells.iter().any(|c| c.metrics.contains_key(&metric))
    }

    /// What is shown first: what a search found, else throughput.
    pub(crate) fn main_metric(&self) -> Metric {
        let found =
            [Metric::RateAtLimit, Metric::ClientsAtLimit].into_iter().find(|m| self.has(*m));
        found.unwrap_or(Metric::Throughput)
    }

    /// The comparison in the main metric of its step, which the verdict shown first is of.
    pub(crate) fn main_comparison(&self, variant: usize, step: usize) -> Option<&'a Comparison> {
        let metric = self.findings.steps.get(step)?.main_metric;
        self.comparison(variant, step, metric)
    }

    /// All variants and steps, variant by variant.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let n_steps = self.findings.steps.len();
        (0..self.findings.variants.len()).flat_map(move |v| (0..n_steps).map(move |s| (v, s)))
    }

    /// All cells of a step.
    pub(crate) fn cells_of(&self, step: usize) -> impl Iterator<Item = &'a Cell> + use<'_, 'a> {
        (0..self.findings.variants.len()).filter_map(move |variant| self.cell(variant, step))
    }

    /// The stalls of a variant at a step, as they are known to a fraction of a second.
    pub(crate) fn stalls(&self, variant: usize, step: usize) -> Vec<&'a StallFacts> {
        let is_it = |s: &&StallFacts| (s.variant, s.step) == (variant, step);
        self.findings.stalls.iter().filter(is_it).collect()
    }

    /// The step that is shown first: that with the largest throughput, which most readers look for.
    pub(crate) fn first_step(&self) -> usize {
        let best = |step: &usize| {
            self.cells_of(*step)
                .filter_map(|cell| cell.metrics.get(&Metric::Throughput))
                .map(|estimate| estimate.value)
                .fold(0.0, f64::max)
        };
        let steps = 0..self.findings.steps.len();
        steps.max_by(|a, b| best(a).total_cmp(&best(b))).unwrap_or(0)
    }

    /// Whether a step is one that the workload defines: no load level.
    pub(crate) fn is_own(&self, step: usize) -> bool {
        self.findings.steps.get(step).is_some_and(|facts| facts.own.is_some())
    }
}
