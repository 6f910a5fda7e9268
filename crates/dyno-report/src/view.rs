//! Findings with an index: cells and comparisons by variant, step and metric.

use std::collections::HashMap;
use std::ops::Range;

use dyno_analysis::kinds::KindCell;
use dyno_analysis::numbers::EffectStyle;
use dyno_analysis::stalls::StallFacts;
use dyno_analysis::{
    Cell, Claim, Comparison, Direction, Estimate, Findings, Metric, MetricId, MetricRole,
    StepFacts, Verdict, metrics,
};

use crate::chart::labels::labels;
use crate::document::{Cell as TableCell, Piece, Text};
use crate::format::Unit;
use crate::markup::kept_together;
use crate::words::{Judged, sentence};

/// What each client does at most so often in a trial is one-off: three indexes of its table.
const ONE_OFF_MOST: u64 = 3;

/// The mark of a percentile that rests on few observations.
pub(crate) const FEW: &str = "†";

/// Letters of a name up to which no line is broken within it.
const UNBROKEN_MOST: usize = 30;

/// A variant and a step.
pub(crate) type Place = (usize, usize);

/// Findings, made quick to look things up in.
pub(crate) struct View<'a> {
    pub(crate) findings: &'a Findings,
    cells: HashMap<Place, &'a Cell>,
    comparisons: HashMap<(Place, MetricId), &'a Comparison>,
    labels: Vec<String>,
}

impl<'a> View<'a> {
    /// Indexes findings. Entries that name a variant or step that is not listed are left out, so
    /// that findings written by other tools cannot make a renderer fail.
    pub(crate) fn new(findings: &'a Findings) -> View<'a> {
        let is_known = |variant: usize, step: usize| {
            variant < findings.variants.len() && step < findings.steps.len()
        };
        let cells = findings.cells.iter().filter(|c| is_known(c.variant, c.step));
        let pairs = findings.comparisons.iter();
        let pairs = pairs.filter(|c| is_known(c.variant, c.step) && is_known(c.baseline, c.step));
        View {
            findings,
            cells: cells.map(|c| ((c.variant, c.step), c)).collect(),
            comparisons: pairs.map(|c| (((c.variant, c.step), c.metric), c)).collect(),
            labels: labels(&findings.variants),
        }
    }

    pub(crate) fn cell(&self, variant: usize, step: usize) -> Option<&'a Cell> {
        self.cells.get(&(variant, step)).copied()
    }

    pub(crate) fn estimate(&self, at: Place, metric: MetricId) -> Option<&'a Estimate> {
        self.cells.get(&at)?.metrics.get(&metric)
    }

    /// What stands behind a percentile that rests on few observations: [`FEW`], else nothing.
    pub(crate) fn few(&self, at: Place, metric: MetricId) -> &'static str {
        let cell = self.cells.get(&at);
        if cell.is_some_and(|c| c.few_beyond.contains_key(&metric)) { FEW } else { "" }
    }

    pub(crate) fn few_of_kind(kind: &KindCell, metric: MetricId) -> &'static str {
        let is_few = kind.few_beyond.contains_key(&metric) && kind.metrics.contains_key(&metric);
        if is_few { FEW } else { "" }
    }

    pub(crate) fn few_of_kinds_in_words(&self, metrics: &[MetricId]) -> Option<&'static str> {
        let has = |kind: &KindCell| metrics.iter().any(|m| !View::few_of_kind(kind, *m).is_empty());
        self.findings.kinds.iter().any(has).then_some(
            "† based on too few observations: in at least one trial, fewer than 20 transactions of this \
             kind took longer than this percentile.",
        )
    }

    /// What [`FEW`] means, if any of these metrics has it anywhere.
    pub(crate) fn few_in_words(&self, metrics: &[MetricId]) -> Option<&'static str> {
        let has = |cell: &Cell| {
            metrics.iter().any(|m| cell.few_beyond.contains_key(m) && cell.metrics.contains_key(m))
        };
        self.findings.cells.iter().any(has).then_some(
            "† based on too few observations: in at least one trial, fewer than 20 transactions took \
             longer than this percentile.",
        )
    }

    pub(crate) fn comparison(&self, at: Place, metric: MetricId) -> Option<&'a Comparison> {
        self.comparisons.get(&(at, metric)).copied()
    }

    pub(crate) fn has_comparison(&self, step: usize, metric: MetricId) -> bool {
        self.variants().any(|variant| self.comparison((variant, step), metric).is_some())
    }

    pub(crate) fn effect_style(&self, metric: MetricId) -> EffectStyle {
        self.findings.effect_style(metric)
    }

    /// The confidence of all intervals as text: `95 %`.
    pub(crate) fn confidence(&self) -> String {
        Unit::Percent.tick(self.findings.confidence * 100.0)
    }

    /// The threshold as text: `3 %`.
    pub(crate) fn threshold(&self) -> String {
        Unit::Percent.tick(self.findings.threshold * 100.0)
    }

    pub(crate) fn variant(&self, variant: usize) -> &'a str {
        self.findings.variants.get(variant).map_or("unknown variant", |v| v.name.as_str())
    }

    /// Its name in drawings: shorter where levels name themselves.
    pub(crate) fn label(&self, variant: usize) -> &str {
        self.labels.get(variant).map_or("unknown variant", String::as_str)
    }

    /// Whether a claim is of variants and steps that the findings list.
    pub(crate) fn knows(&self, claim: &Claim) -> bool {
        let steps = claim.steps.iter().chain([&0]);
        let mut places = steps.flat_map(|step| [(claim.variant, *step), (claim.other, *step)]);
        places.all(|(variant, step)| self.has_place(variant, step))
    }

    /// Whether several factors are varied: variants then have an order, that of the levels.
    pub(crate) fn is_factorial(&self) -> bool {
        crate::chart::labels::varied(&self.findings.variants).len() > 1
    }

    /// Whether effects on a metric are what the study is about: those that steps are judged by, p95 response time,
    /// what activities declare, and what the answer speaks of. Others may follow from these, as fewer bytes do from
    /// fewer rows, and are not called better or worse by a colour.
    pub(crate) fn is_judged(&self, metric: MetricId) -> bool {
        let is_of_answer = self.findings.answer.claims.iter().any(|claim| claim.metric == metric);
        let is_main =
            || self.main_metrics().contains(&metric) || self.beside_main().contains(&metric);
        is_of_answer || is_main()
    }

    /// Names of variants with a hyphen, at which a line could break within them; the longest first. A name
    /// that would fill a line by itself may break.
    pub(crate) fn unbroken_names(&self) -> Vec<&'a str> {
        let names = self.findings.variants.iter().map(|variant| variant.name.as_str());
        let names = names.filter(|name| name.contains('-') && !name.contains(char::is_whitespace));
        let mut names: Vec<&str> =
            names.filter(|name| name.chars().count() <= UNBROKEN_MOST).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names
    }

    pub(crate) fn variants(&self) -> Range<usize> {
        0..self.findings.variants.len()
    }

    pub(crate) fn steps(&self) -> Range<usize> {
        0..self.findings.steps.len()
    }

    /// The name of a variant, with the colour of its lines.
    pub(crate) fn name(&self, variant: usize) -> Text {
        Text::of(Piece::Name(variant, self.variant(variant).to_owned()))
    }

    /// The name at the head of a row of the variant's.
    pub(crate) fn head(&self, variant: usize) -> TableCell {
        TableCell::variant(variant, self.variant(variant))
    }

    /// A sentence of Dyno's own as a page sets it: no line ends within a number or a short name.
    pub(crate) fn prose(&self, text: &str) -> Text {
        let unbroken = self.unbroken_names().into_iter().map(str::to_owned).collect();
        Text::of(Piece::Prose(kept_together(text), unbroken))
    }

    /// Whether what findings say of this place is of a variant and a step that they list.
    pub(crate) fn has_place(&self, variant: usize, step: usize) -> bool {
        variant < self.findings.variants.len() && step < self.findings.steps.len()
    }

    /// The head of a column of steps: `Load level`, or `Step` where the workload defines them.
    pub(crate) fn step_head(&self) -> &'static str {
        if self.findings.step_noun() == "step" { "Step" } else { "Load level" }
    }

    pub(crate) fn step(&self, step: usize) -> &'a str {
        self.findings.steps.get(step).map_or("unknown step", |s| s.name.as_str())
    }

    pub(crate) fn has(&self, metric: MetricId) -> bool {
        self.findings.cells.iter().any(|c| c.metrics.contains_key(&metric))
    }

    /// The metrics that are shown first, as far as they were measured: those that steps are judged by, or
    /// may be.
    pub(crate) fn main_metrics(&self) -> Vec<MetricId> {
        let is_main = |metric: &&Metric| {
            let is_judged = |step: &StepFacts| step.main_metric == metric.id;
            metric.role == MetricRole::Main || self.findings.steps.iter().any(is_judged)
        };
        let main = self.findings.metrics.iter().filter(is_main).map(|metric| metric.id);
        main.filter(|metric| self.has(*metric)).collect()
    }

    /// What is shown first of all.
    pub(crate) fn main_metric(&self) -> MetricId {
        self.main_metrics().first().copied().unwrap_or(metrics::THROUGHPUT)
    }

    /// What has verdicts beside the main metric: p95 response time, and what activities declare.
    pub(crate) fn beside_main(&self) -> Vec<MetricId> {
        let declared = self.findings.metrics.declared().map(|metric| metric.id);
        let is_compared =
            |metric: &MetricId| self.findings.comparisons.iter().any(|c| c.metric == *metric);
        std::iter::once(metrics::RESPONSE_P95).chain(declared).filter(is_compared).collect()
    }

    pub(crate) fn metric(&self, metric: MetricId) -> &'a Metric {
        self.findings.metrics.get(metric)
    }

    /// A metric's name with a capital; percentiles are written small: p95, not P95.
    pub(crate) fn heading(&self, metric: MetricId) -> String {
        let name = &self.metric(metric).title;
        let is_percentile =
            name.starts_with('p') && name[1..].starts_with(|c: char| c.is_ascii_digit());
        if is_percentile { name.to_string() } else { sentence(name) }
    }

    /// [`View::heading`] with what a rate counts: `Throughput (transactions/s)`.
    pub(crate) fn heading_with_unit(&self, metric: MetricId) -> String {
        format!("{}{}", self.heading(metric), View::unit_of(metric))
    }

    /// ` (transactions/s)` of a rate of transactions; empty of metrics whose values say what they are.
    pub(crate) fn unit_of(metric: MetricId) -> String {
        metrics::thing(metric).map_or(String::new(), |thing| format!(" ({thing}/s)"))
    }

    pub(crate) fn is_more_better(&self, metric: MetricId) -> bool {
        self.metric(metric).better == Direction::Higher
    }

    pub(crate) fn judged(&self, comparison: &Comparison) -> Judged {
        let pair = (comparison.variant, comparison.baseline);
        self.judge(pair, comparison.metric, comparison.verdict)
    }

    /// The signs of verdicts with their words, as a legend: those that comparisons have.
    pub(crate) fn signs(&self) -> String {
        self.signs_of(&mut self.findings.comparisons.iter())
    }

    pub(crate) fn signs_of(&self, all: &mut dyn Iterator<Item = &Comparison>) -> String {
        let used: Vec<Judged> = all.map(|comparison| self.judged(comparison)).collect();
        let same = format!("no difference (the CI lies within ± {})", self.threshold());
        let in_words = |one: Judged| match one {
            Judged::LessDurable { is_faster: true } => "faster, but less durable",
            Judged::LessDurable { is_faster: false } => "better, but less durable",
            Judged::Verdict(Verdict::NoDifference) => &same,
            Judged::Verdict(Verdict::Inconclusive) => "undecided (the data do not decide)",
            other => other.word(),
        };
        let shown = Judged::ALL.into_iter().filter(|one| used.contains(one));
        let shown: Vec<String> =
            shown.map(|one| format!("{} {}", one.sign(), in_words(one))).collect();
        shown.join(", ")
    }

    pub(crate) fn judge(&self, pair: (usize, usize), metric: MetricId, verdict: Verdict) -> Judged {
        let metric = self.metric(metric);
        let is_faster =
            metric.unit == dyno_units::Unit::PerSecond || metric.title.ends_with(" time");
        match verdict {
            Verdict::Better if self.findings.is_less_durable(pair.0, pair.1) => {
                Judged::LessDurable { is_faster }
            }
            verdict => Judged::Verdict(verdict),
        }
    }

    /// The comparison in the main metric of its step, which the verdict shown first is of.
    pub(crate) fn main_comparison(&self, variant: usize, step: usize) -> Option<&'a Comparison> {
        let metric = self.findings.steps.get(step)?.main_metric;
        self.comparison((variant, step), metric)
    }

    /// All variants and steps, variant by variant.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let n_steps = self.findings.steps.len();
        self.variants().flat_map(move |v| (0..n_steps).map(move |s| (v, s)))
    }

    pub(crate) fn cells_of(&self, step: usize) -> impl Iterator<Item = &'a Cell> + use<'_, 'a> {
        self.variants().filter_map(move |variant| self.cell(variant, step))
    }

    /// The stalls of a variant at a step, as they are known to a fraction of a second.
    pub(crate) fn stalls(&self, variant: usize, step: usize) -> Vec<&'a StallFacts> {
        let is_it = |s: &&StallFacts| (s.variant, s.step) == (variant, step);
        self.findings.stalls.iter().filter(is_it).collect()
    }

    /// The step that is shown first: the one with the main result. That is the step at which variants
    /// differ most, of those where a difference was decided: the answer rests on it. Where nothing was
    /// decided it is the step with the largest throughput, and of steps that the workload defines the
    /// last one: their throughputs are of different jobs, and the last one runs on what all others left.
    pub(crate) fn first_step(&self) -> usize {
        let (metric, n) = (self.main_metric(), self.findings.steps.len());
        let is_decided = |c: &&&Comparison| {
            c.metric == metric
                && matches!(c.verdict, Verdict::Better | Verdict::Worse)
                && c.relative.value.is_finite()
        };
        let size = |c: &Comparison| (1.0 + c.relative.value / 100.0).max(1e-9).ln().abs();
        let decided = self.comparisons.values().filter(is_decided);
        // Of equal ones the later: comparisons have no order here.
        let largest = decided.max_by(|a, b| {
            (size(a), a.step).partial_cmp(&(size(b), b.step)).unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(largest) = largest {
            return largest.step;
        }
        if n > 0 && (0..n).all(|step| self.is_own(step)) {
            return n - 1;
        }
        let best = |step: &usize| {
            self.cells_of(*step)
                .filter_map(|cell| cell.metrics.get(&metrics::THROUGHPUT))
                .map(|estimate| estimate.value)
                .fold(0.0, f64::max)
        };
        let steps = 0..self.findings.steps.len();
        steps.max_by(|a, b| best(a).total_cmp(&best(b))).unwrap_or(0)
    }

    /// What a kind of transaction is called on the page: by the workload of the first variant that has a
    /// title for it, else by its own name.
    pub(crate) fn kind_title<'k>(&self, kind: &'k str) -> &'k str {
        let workloads = self.findings.variants.iter().map(|variant| variant.workload.as_str());
        let mut titles = workloads.map(|workload| dyno_analysis::kinds::title(workload, kind));
        titles.find(|title| *title != kind).unwrap_or(kind)
    }

    /// Whether a kind of transaction is done only once or a few times in each trial of every step, as
    /// the making of indexes is: it has a duration, and no rate worth drawing.
    pub(crate) fn is_one_off(&self, kind: &str) -> bool {
        let is_few = |cell: &KindCell| {
            let clients = self.findings.steps.get(cell.step).map_or(1, |step| step.clients.max(1));
            let trials = cell.metrics.values().map(|e| e.n).max().unwrap_or(1).max(1);
            let committed = cell.outcomes.get("committed").copied().unwrap_or(0);
            committed <= ONE_OFF_MOST * clients * u64::from(trials)
        };
        self.findings.kinds.iter().filter(|cell| cell.kind == kind).all(is_few)
    }

    /// Whether a step is one that the workload defines: no load level.
    pub(crate) fn is_own(&self, step: usize) -> bool {
        self.findings.steps.get(step).is_some_and(|facts| facts.own.is_some())
    }
}
