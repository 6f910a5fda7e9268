//! What was found out. Serialised as `findings.json`; every field is part of that format.

use std::collections::BTreeMap;

use dyno_record::{AuditRow, CommitSafety, OwnStepRecord, Price, Settled};
use dyno_units::MetricId;
use serde::{Deserialize, Serialize};

use crate::Caveat;
use crate::attribution::AttributionFacts;
use crate::cost::CostFacts;
use crate::debt::{DebtFacts, RunOffFacts};
use crate::gate::{Gate, GateRow};
use crate::insert_benchmark::InsertBenchmarkCell;
use crate::kinds::{KindCell, KindComparison};
use crate::metrics::{Metrics, THROUGHPUT};
use crate::numbers::EffectStyle;
use crate::scaling::{ScalingFacts, UnderLimit};
use crate::stalls::{MadeDips, StallFacts};
use crate::stopping::{RepeatedLooks, StoppingFacts};
use crate::time::TimeFacts;
use crate::vectors::VectorFacts;

/// All findings of one or several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub format: u32,
    /// The question.
    pub title: String,
    pub answer: Answer,
    /// Smallest effect that matters, as a fraction (0.03 for 3 %).
    pub threshold: f64,
    /// Confidence of all bounds, as a fraction (0.95).
    pub confidence: f64,
    /// What the metrics are, in the order in which they are shown.
    #[serde(default)]
    pub metrics: Metrics,
    /// The variants, in plan order.
    pub variants: Vec<VariantFacts>,
    /// The steps, in plan order.
    pub steps: Vec<StepFacts>,
    /// One entry for each variant and step that was measured.
    pub cells: Vec<Cell>,
    /// One entry for each variant that has a baseline, step, and compared metric.
    pub comparisons: Vec<Comparison>,
    /// Effects against variants other than the baseline, each with an interval of its own and no
    /// verdict; of at least three variants and at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_effects: Vec<OtherEffect>,
    /// Low (clients ≤ CPUs) and high (clients > CPUs) concurrency, where steps of both kinds exist.
    pub concurrency: Vec<GroupComparison>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<crate::RequirementFacts>,
    /// Blocks that were void because the host was disturbed, and were measured again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void_blocks: Vec<dyno_record::VoidBlock>,
    /// Searches for the highest load under a limit, one for each trial and step that searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<TrialSearch>,
    /// What more clients bring, for each variant with at least three closed loads.
    #[serde(default)]
    pub scaling: Vec<ScalingFacts>,
    /// The most load that kept a limit of response times, among the levels measured, for the limits
    /// (1, 2, 5, 10 ms …) that part them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_limit: Vec<UnderLimit>,
    /// Estimates by kind of transaction, where a step has several kinds or roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindCell>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind_comparisons: Vec<KindComparison>,
    /// The Insert Benchmark as its author reports it, for each cell of a variant that runs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insert_benchmark: Vec<InsertBenchmarkCell>,
    /// Recall against queries a second, for each variant that searches vectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<VectorFacts>,
    /// Gaps and dips of throughput in finished trials, in the order of trials, steps and time.
    #[serde(default)]
    pub stalls: Vec<StallFacts>,
    /// The hosts that generated the load, by variant, step and host; none where it was the machine that
    /// runs the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<crate::hosts::HostFacts>,
    /// The hosts on which agents started servers; none where these were on the machine that runs the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_hosts: Vec<crate::hosts::ServerHostFacts>,
    /// The hosts on which whole trials ran, in the order of the trials; none where that was the machine that ran the
    /// study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trial_hosts: Vec<crate::TrialHostFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_dips: Vec<MadeDips>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<crate::FaultFacts>,
    /// What a transaction and a statement cost of each resource, for each cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attribution: Vec<AttributionFacts>,
    /// What was put off, for each cell and reading of debt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debt: Vec<DebtFacts>,
    /// How long it took to pay debt after the load, for each variant of a study that asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_off: Vec<RunOffFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cost: Vec<CostFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StoppingFacts>,
    /// How often results could be looked at before more trials were asked for, if they could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_looks: Option<RepeatedLooks>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_rows: Vec<GateRow>,
    pub caveats: Vec<Caveat>,
    pub trials: Vec<TrialFacts>,
    /// Settings in force that differ between variants: only those.
    pub setting_differences: Vec<SettingDifference>,
    pub environment: BTreeMap<String, String>,
    pub cpus: u32,
}

/// The effect of a variant against another one that is not its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherEffect {
    pub variant: usize,
    pub baseline: usize,
    pub step: usize,
    pub metric: MetricId,
    pub percent: f64,
    /// Lower end of its interval, not corrected for the number of comparisons; none without
    /// repetitions.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Repetitions.
    pub n: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// One sentence of about 25 words at most.
    pub headline: String,
    /// Which variants the headline compares, where what stands below compares others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// At most five short sentences that support it, with confidence intervals and repetitions.
    #[serde(default)]
    pub lines: Vec<String>,
    /// Every comparison in words: what was decided, what was not, and why. Reports fold them away.
    pub details: Vec<String>,
    /// The variant that the effects in the lines are relative to, in a study of durability: the baseline
    /// of the fastest variant that syncs every commit, or that variant itself if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantFacts {
    pub name: String,
    /// Index of the variant it is compared with, if any.
    pub baseline: Option<usize>,
    /// Factor and level, in factor order.
    pub levels: Vec<(String, String)>,
    pub server: String,
    pub durability: String,
    /// How safe that is; none where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_safety: Option<CommitSafety>,
    /// Bytes of memory that its server had for data; none where its settings do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    pub workload: String,
    pub options: BTreeMap<String, String>,
    /// All settings in force, as far as read.
    pub settings: BTreeMap<String, String>,
    pub finished: u32,
    pub failed: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Price>,
    #[serde(default)]
    pub machine: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepFacts {
    pub name: String,
    pub clients: u64,
    /// Offered rate, transactions per second; none under closed load.
    pub rate: Option<f64>,
    /// Planned length of the measurement phase in seconds; none where the step ends by something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    pub concurrency: ConcurrencyGroup,
    /// What is searched, if the step is a search: its load is then not given but found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<StepSearch>,
    /// What the step is judged by first: by the answer, the verdict shown first, sequential stopping
    /// and the gate. Every other metric describes.
    #[serde(default = "throughput")]
    pub main_metric: MetricId,
    /// What the workload says of the step, if the workload defines it. Such a step is no load level:
    /// it takes no part in scaling and in low against high concurrency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnStepRecord>,
}

impl Findings {
    /// Whether a variant is known to be less durable than another one: what it does faster is then not
    /// called better.
    pub fn is_less_durable(&self, variant: usize, other: usize) -> bool {
        let safety = |variant: usize| self.variants.get(variant)?.commit_safety;
        safety(variant).zip(safety(other)).is_some_and(|(ours, theirs)| ours > theirs)
    }

    /// What the starts of this run could not see, in a sentence: the largest share of starts in which a mode may
    /// occur that is absent from all of them with a probability of 5 %. None where nothing is compared with
    /// repetitions.
    pub fn unseen_modes(&self) -> Option<String> {
        let n = self.comparisons.iter().map(|c| c.relative.n).filter(|n| *n > 1).min()?;
        let unseen = 1.0 - 0.05_f64.powf(1.0 / f64::from(n));
        Some(format!(
            "A mode of a variant, such as slow starts, that occurs in {:.0} % of its starts or fewer is absent from \
             n = {n} of them in at least one of 20 runs: CIs and verdicts do not include what did not occur.",
            unseen * 100.0
        ))
    }

    /// What readers call the parts of a trial: load levels, or steps where the workload defines them or no
    /// load runs.
    pub fn step_noun(&self) -> &'static str {
        let has_load =
            |step: &StepFacts| step.clients > 0 || step.rate.is_some() || step.search.is_some();
        let is_own = self.steps.iter().any(|step| step.own.is_some());
        match is_own || !self.steps.is_empty() && !self.steps.iter().any(has_load) {
            true => "step",
            false => "load level",
        }
    }

    /// How effects in a metric are written: as ratios where one of them is large, else in percent.
    pub fn effect_style(&self, metric: MetricId) -> EffectStyle {
        let all = self.comparisons.iter().filter(|c| c.metric == metric);
        EffectStyle::of(all.map(|c| &c.relative))
    }
}

impl Default for StepFacts {
    fn default() -> StepFacts {
        StepFacts {
            name: String::new(),
            clients: 0,
            rate: None,
            duration_s: None,
            concurrency: ConcurrencyGroup::Low,
            search: None,
            main_metric: THROUGHPUT,
            own: None,
        }
    }
}

fn throughput() -> MetricId {
    THROUGHPUT
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSearch {
    /// The metric that tells what is found: [`crate::metrics::RATE_AT_LIMIT`] or [`crate::metrics::CLIENTS_AT_LIMIT`].
    pub metric: MetricId,
    /// The limit: `p99 ≤ 20 ms`.
    pub limit: String,
    /// How near the load that holds and the one that breaks shall come, as a fraction.
    pub precision: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialSearch {
    pub variant: usize,
    pub step: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// The highest load that held twice; none where none did.
    pub found: Option<f64>,
    /// The lowest load above it that broke the limit; none where none was tried that did.
    pub lowest_broken: Option<f64>,
    pub settled: bool,
    /// Its load probes, in the order of time.
    pub probes: Vec<ProbeFacts>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeFacts {
    /// Offered rate, or clients.
    pub level: f64,
    /// Committed transactions per second.
    pub throughput: f64,
    /// The limited statistic of response times, µs; none where nothing committed.
    pub limited_us: Option<f64>,
    pub held: bool,
    pub broken_by: Option<String>,
}

/// Clients against the machine's CPUs (S1's distinction).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyGroup {
    /// Clients ≤ CPUs.
    #[default]
    Low,
    /// Clients > CPUs.
    High,
}

/// A value with its bounds and the number of repetitions behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value: the geometric mean over repetitions, the arithmetic one where a repetition's
    /// value is zero (for an effect: the mean of the differences, of logarithms if it is relative).
    pub value: f64,
    /// Lower bound; none with fewer than two repetitions.
    pub low: Option<f64>,
    /// Upper bound; none with fewer than two repetitions.
    pub high: Option<f64>,
    /// Repetitions.
    pub n: u32,
    pub min: f64,
    pub max: f64,
    /// The unit: `1/s`, `µs`, `B`, `%`.
    pub unit: String,
    /// Each repetition's own value, in the order of the repetitions.
    pub values: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_bounds: Option<NoBounds>,
    #[serde(default, skip_serializing_if = "Mean::is_geometric")]
    pub mean: Mean,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoBounds {
    OneRepetition,
    /// A repetition has the value zero, so that there is no ratio.
    Zero,
    /// It is the largest value of all: bounds of a mean say nothing of it.
    Largest,
    /// They would be further apart than a factor of [`WIDEST_BOUNDS`]: smallest and largest value
    /// say more.
    TooWide,
}

/// Bounds further apart than this factor are not shown, but why.
pub const WIDEST_BOUNDS: f64 = 100.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    #[default]
    Geometric,
    /// The arithmetic mean: of metrics that are often zero (bytes), and of others where a repetition
    /// has the value zero, which has no logarithm.
    Arithmetic,
}

impl Mean {
    pub fn is_geometric(&self) -> bool {
        *self == Mean::Geometric
    }
}

/// One variant at one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub variant: usize,
    pub step: usize,
    /// Estimates by metric; a metric that could not be measured is absent, see `absent`.
    pub metrics: BTreeMap<MetricId, Estimate>,
    pub absent: BTreeMap<MetricId, String>,
    /// By metric, of percentiles that rest on fewer than 20 observations beyond them: about how many
    /// there were in the trial with the fewest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub few_beyond: BTreeMap<MetricId, u64>,
    /// Attempts by outcome, all repetitions and kinds together.
    pub outcomes: BTreeMap<String, u64>,
    /// Arrivals never sent, all repetitions together.
    pub missed: u64,
    /// Retries, all repetitions together.
    pub retries: u64,
    pub kinds: BTreeMap<String, u64>,
    /// Response times in ns at quantiles 0, 0.001 … 1, merged over repetitions: the spectrum that
    /// the report draws. Pairs of quantile and µs.
    pub spectrum: Vec<(f64, f64)>,
    /// Whether throughput kept its level within each trial, in the order of the trials.
    #[serde(default)]
    pub time: Vec<TimeFacts>,
    /// Trials by how the step ended: `time`, `quota` (all was done), `limit` (it was not, when the
    /// longest time was over). Empty in records that do not tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ended_by: BTreeMap<String, u32>,
    /// The wait before the step for the engine's debt, by trial, where there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<Settled>,
}

/// A variant against its baseline at one step in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub variant: usize,
    pub baseline: usize,
    pub step: usize,
    pub metric: MetricId,
    /// Relative effect in percent of the baseline, with bounds.
    pub relative: Estimate,
    /// The same effect in the metric's unit: the relative one of the baseline's geometric mean, with
    /// its bounds, so that both always agree. Of arithmetic means where a value is zero.
    pub absolute: Estimate,
    /// Permutation p-value of no effect; none with too few repetitions.
    pub p_value: Option<f64>,
    /// The same, corrected for the number of comparisons (Holm).
    pub p_value_corrected: Option<f64>,
    /// Student's p-value of no effect from the logarithms, corrected for the number of comparisons
    /// (Holm): what `better` and `worse` rest on.
    #[serde(default)]
    pub p_value_of_verdict: Option<f64>,
    pub paired: bool,
    pub verdict: Verdict,
    /// Repetitions of a new run that decide it with a probability of 80 %
    /// ([`crate::statistics::DECIDED_WITH`]) if effect and spread are what was measured; none where
    /// it is decided or no spread is known.
    pub repetitions_needed: Option<u32>,
    /// Whether it is of the main metric of its step. All others describe: their families are not
    /// corrected for each other.
    #[serde(default)]
    pub is_main: bool,
    /// The common error of all comparisons of this metric that its bounds and its verdict rest on;
    /// none where they rest on its own pairs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled: Option<Pooled>,
}

/// An error that was estimated from the trials of all variants and steps of a family.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// Degrees of freedom.
    pub freedom: f64,
    /// Standard deviation of one difference of logarithms within a block.
    pub deviation: f64,
    /// The same from the comparison's own pairs.
    pub own_deviation: f64,
}

/// What can be said about a difference, given the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better by more than chance explains, and the effect matters or may matter.
    Better,
    Worse,
    /// Any difference is smaller than the threshold.
    NoDifference,
    Inconclusive,
}

/// A variant against its baseline over all steps of low, or of high, concurrency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupComparison {
    pub variant: usize,
    pub baseline: usize,
    pub group: ConcurrencyGroup,
    /// Geometric mean of the throughput ratios over the steps, as a relative effect in percent.
    pub relative: Estimate,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialFacts {
    pub number: u32,
    pub variant: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// Counted from 1.
    pub block: u32,
    /// `finished`, `failed`, `missing`, or `not needed` (its variant was settled without it).
    pub state: String,
    /// Why it failed.
    pub message: Option<String>,
    /// Last lines of the server's log, if it failed.
    pub server_log: Vec<String>,
    pub rows: u64,
    pub populate_s: f64,
    /// Whether the data set was populated by an earlier trial and copied for this one.
    #[serde(default)]
    pub is_reused: bool,
    /// Bytes on disk after populating.
    pub bytes: Option<u64>,
    /// Bytes on disk when the load had ended.
    #[serde(default)]
    pub bytes_after: Option<u64>,
    pub began_unix_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ms: Option<u64>,
    /// Whether it took the place of one that was discarded with its block, because the host was busy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rerun: bool,
    /// What the workload demands of the tables after the last step, and whether it is met.
    #[serde(default)]
    pub audit: Vec<AuditRow>,
}

/// A setting whose value in force is not the same in all variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingDifference {
    pub name: String,
    /// Its value by variant index; none where the variant's server does not have it.
    pub values: Vec<Option<String>>,
}
