//! Serialised as `findings.json`; every field is part of that format.

use std::collections::BTreeMap;

use dyno_record::{AuditRow, CommitSafety, OwnStepRecord, Price, Settled};
use dyno_units::{MetricId, Question};
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

/// Of one or several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub format: u32,
    pub title: String,
    /// Most important first; inferred from what was varied where the study did not say so.
    #[serde(default)]
    pub questions: Vec<Question>,
    pub answer: Answer,
    /// Smallest effect that matters, as a fraction.
    pub threshold: f64,
    /// Of all bounds, as a fraction.
    pub confidence: f64,
    /// In the order in which they are shown.
    #[serde(default)]
    pub metrics: Metrics,
    /// In plan order.
    pub variants: Vec<VariantFacts>,
    /// In plan order.
    pub steps: Vec<StepFacts>,
    /// For each measured variant and step.
    pub cells: Vec<Cell>,
    /// For each variant with a baseline, step and compared metric.
    pub comparisons: Vec<Comparison>,
    /// Against variants other than the baseline, without verdicts; for 3 to 16 variants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_effects: Vec<OtherEffect>,
    /// Low (clients ≤ CPUs) and high (clients > CPUs) concurrency, if there are steps of both.
    pub concurrency: Vec<GroupComparison>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<crate::RequirementFacts>,
    /// Measured again, as the host was disturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void_blocks: Vec<dyno_record::VoidBlock>,
    /// For each trial and step that searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<TrialSearch>,
    /// For each variant with at least three closed loads.
    #[serde(default)]
    pub scaling: Vec<ScalingFacts>,
    /// The most measured load within each limit of response times (1, 2, 5, 10 ms …) that divides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_limit: Vec<UnderLimit>,
    /// By kind of transaction, if a step has several kinds or roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindCell>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind_comparisons: Vec<KindComparison>,
    /// As its author reports it, for each cell of a variant that runs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insert_benchmark: Vec<InsertBenchmarkCell>,
    /// Recall against queries a second, for each variant that searches vectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<VectorFacts>,
    /// In finished trials, in the order of trials, steps and time.
    #[serde(default)]
    pub stalls: Vec<StallFacts>,
    /// Generating hosts by variant, step and host; empty if the machine that runs the study did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<crate::hosts::HostFacts>,
    /// Hosts of servers; empty if these were on the machine that runs the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_hosts: Vec<crate::hosts::ServerHostFacts>,
    /// Hosts of whole trials, in order; empty if the machine that runs the study did all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trial_hosts: Vec<crate::TrialHostFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_dips: Vec<MadeDips>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<crate::FaultFacts>,
    /// Cost of transactions and statements in each resource, by cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attribution: Vec<AttributionFacts>,
    /// For each cell and reading of debt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debt: Vec<DebtFacts>,
    /// For each variant, if the study asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_off: Vec<RunOffFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cost: Vec<CostFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StoppingFacts>,
    /// If results could be looked at before more trials were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_looks: Option<RepeatedLooks>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_rows: Vec<GateRow>,
    pub caveats: Vec<Caveat>,
    pub trials: Vec<TrialFacts>,
    /// Settings in force, only those that differ between variants.
    pub setting_differences: Vec<SettingDifference>,
    pub environment: BTreeMap<String, String>,
    pub cpus: u32,
}

/// Against another variant that is not the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherEffect {
    pub variant: usize,
    pub baseline: usize,
    pub step: usize,
    pub metric: MetricId,
    pub percent: f64,
    /// Not corrected for the number of comparisons; `None` without repetitions.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub n: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// One sentence of at most about 25 words.
    pub headline: String,
    /// The variants that the headline compares, if the lines compare others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// At most five short sentences, with confidence intervals and repetitions.
    #[serde(default)]
    pub lines: Vec<String>,
    /// Every comparison in words: what was decided, what not, and why.
    pub details: Vec<String>,
    /// What a durability study's lines compare with: the fastest safe variant, or its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantFacts {
    pub name: String,
    /// The variant that it is compared with; `None` for a baseline.
    pub baseline: Option<usize>,
    /// Factor and level, in factor order.
    pub levels: Vec<(String, String)>,
    pub server: String,
    pub durability: String,
    /// `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_safety: Option<CommitSafety>,
    /// Of its server for data; `None` if its settings do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    pub workload: String,
    pub options: BTreeMap<String, String>,
    /// In force, as far as read.
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
    /// Transactions per second; `None` under closed load.
    pub rate: Option<f64>,
    /// Planned measurement phase; `None` if something else ends the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    pub concurrency: ConcurrencyGroup,
    /// For a search: the load is found, not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<StepSearch>,
    /// For answer, first verdict, sequential stopping and gate; all other metrics only describe.
    #[serde(default = "throughput")]
    pub main_metric: MetricId,
    /// For a step that the workload defines: no load level, so not in scaling or concurrency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnStepRecord>,
}

impl Findings {
    /// A less durable variant is not called better for being faster.
    pub fn is_less_durable(&self, variant: usize, other: usize) -> bool {
        let safety = |variant: usize| self.variants.get(variant)?.commit_safety;
        safety(variant).zip(safety(other)).is_some_and(|(ours, theirs)| ours > theirs)
    }

    /// What this run could not see: the largest share of starts with a mode that is absent from all
    /// of them with a probability of 5 %. `None` without compared repetitions.
    pub fn unseen_modes(&self) -> Option<String> {
        let n = self.comparisons.iter().map(|c| c.relative.n).filter(|n| *n > 1).min()?;
        let unseen = 1.0 - 0.05_f64.powf(1.0 / f64::from(n));
        Some(format!(
            "A mode of a variant, such as slow starts, that occurs in {:.0} % of its starts or fewer is absent from \
             n = {n} of them in at least one of 20 runs: CIs and verdicts do not include what did not occur.",
            unseen * 100.0
        ))
    }

    /// For readers: load levels, or steps if the workload defines them or no load runs.
    pub fn step_noun(&self) -> &'static str {
        let has_load =
            |step: &StepFacts| step.clients > 0 || step.rate.is_some() || step.search.is_some();
        let is_own = self.steps.iter().any(|step| step.own.is_some());
        match is_own || !self.steps.is_empty() && !self.steps.iter().any(has_load) {
            true => "step",
            false => "load level",
        }
    }

    /// As ratios if one is large, else in percent.
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
    /// [`crate::metrics::RATE_AT_LIMIT`] or [`crate::metrics::CLIENTS_AT_LIMIT`].
    pub metric: MetricId,
    /// `p99 ≤ 20 ms`.
    pub limit: String,
    /// Largest gap between the load that holds and the one that breaks, as a fraction.
    pub precision: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialSearch {
    pub variant: usize,
    pub step: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// The highest load that held twice, if any.
    pub found: Option<f64>,
    /// The lowest load above it that broke the limit, if any was tried.
    pub lowest_broken: Option<f64>,
    pub settled: bool,
    /// In the order of time.
    pub probes: Vec<ProbeFacts>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeFacts {
    /// Offered rate, or clients.
    pub level: f64,
    /// Commits per second.
    pub throughput: f64,
    /// The limited statistic of response times; `None` without commits.
    pub limited_us: Option<f64>,
    pub held: bool,
    pub broken_by: Option<String>,
}

/// Clients against the machine's CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyGroup {
    /// Clients ≤ CPUs.
    #[default]
    Low,
    /// Clients > CPUs.
    High,
}

/// With bounds and repetitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Geometric mean over repetitions; arithmetic with a zero among them. For an effect the mean
    /// difference, of logarithms if relative.
    pub value: f64,
    /// `None` with fewer than two repetitions.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Repetitions.
    pub n: u32,
    pub min: f64,
    pub max: f64,
    /// `1/s`, `µs`, `B`, `%`.
    pub unit: String,
    /// In the order of the repetitions.
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
    /// A repetition is zero, so there is no ratio.
    Zero,
    /// A maximum; bounds of a mean do not apply.
    Largest,
    /// By more than [`WIDEST_BOUNDS`]: smallest and largest value say more.
    TooWide,
}

/// Factor beyond which bounds are not shown.
pub const WIDEST_BOUNDS: f64 = 100.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    #[default]
    Geometric,
    /// For metrics that are often zero (bytes), and with a zero, which has no logarithm.
    Arithmetic,
}

impl Mean {
    pub fn is_geometric(&self) -> bool {
        *self == Mean::Geometric
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub variant: usize,
    pub step: usize,
    /// Metrics that could not be measured are in `absent`.
    pub metrics: BTreeMap<MetricId, Estimate>,
    pub absent: BTreeMap<MetricId, String>,
    /// Percentiles with fewer than 20 observations beyond them: their least number in a trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub few_beyond: BTreeMap<MetricId, u64>,
    /// All repetitions and kinds together.
    pub outcomes: BTreeMap<String, u64>,
    /// All repetitions together.
    pub missed: u64,
    /// All repetitions together.
    pub retries: u64,
    pub kinds: BTreeMap<String, u64>,
    /// Quantile (0, 0.001 … 1) and response time in µs, merged over repetitions, for the report.
    pub spectrum: Vec<(f64, f64)>,
    /// Whether throughput kept its level, by trial.
    #[serde(default)]
    pub time: Vec<TimeFacts>,
    /// Trials by the step's end: `time`, `quota` (met), `limit` (not met). Empty in older records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ended_by: BTreeMap<String, u32>,
    /// The wait for deferred work before the step, by trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<Settled>,
}

/// At one step in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub variant: usize,
    pub baseline: usize,
    pub step: usize,
    pub metric: MetricId,
    /// In percent of the baseline.
    pub relative: Estimate,
    /// The relative effect of the baseline's geometric mean; with a zero, of arithmetic means.
    pub absolute: Estimate,
    /// By permutation; `None` with too few repetitions.
    pub p_value: Option<f64>,
    /// By Holm, for the number of comparisons.
    pub p_value_corrected: Option<f64>,
    /// Student's, from the logarithms, corrected by Holm: the basis of `better` and `worse`.
    #[serde(default)]
    pub p_value_of_verdict: Option<f64>,
    pub paired: bool,
    pub verdict: Verdict,
    /// Repetitions of a new run that decide with a probability of 80 % for the measured effect and
    /// spread; `None` if decided, or without a known spread.
    pub repetitions_needed: Option<u32>,
    /// Of the step's main metric; other families only describe, not corrected for each other.
    #[serde(default)]
    pub is_main: bool,
    /// The metric's common error behind bounds and verdict; `None` if these use own pairs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled: Option<Pooled>,
}

/// Estimated from all variants and steps of a family.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// Degrees of freedom.
    pub freedom: f64,
    /// Standard deviation of a difference of logarithms within a block.
    pub deviation: f64,
    /// The same from the comparison's own pairs.
    pub own_deviation: f64,
}

/// Given the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// By more than chance explains, and the effect matters or may matter.
    Better,
    Worse,
    /// Smaller than the threshold.
    NoDifference,
    Inconclusive,
}

/// Over all steps of low, or of high, concurrency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupComparison {
    pub variant: usize,
    pub baseline: usize,
    pub group: ConcurrencyGroup,
    /// Geometric mean of the throughput ratios, as an effect in percent.
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
    /// `finished`, `failed`, `missing`, or `not needed` (its variant was settled).
    pub state: String,
    /// Why it failed.
    pub message: Option<String>,
    /// Last lines, if it failed.
    pub server_log: Vec<String>,
    pub rows: u64,
    pub populate_s: f64,
    /// Whether the data set was copied from an earlier trial's.
    #[serde(default)]
    pub is_reused: bool,
    /// On disk after populating.
    pub bytes: Option<u64>,
    /// On disk after the load.
    #[serde(default)]
    pub bytes_after: Option<u64>,
    pub began_unix_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ms: Option<u64>,
    /// Whether it replaced a discarded trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rerun: bool,
    /// Demands on the tables after the last step.
    #[serde(default)]
    pub audit: Vec<AuditRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingDifference {
    pub name: String,
    /// By variant; `None` if its server lacks the setting.
    pub values: Vec<Option<String>>,
}
