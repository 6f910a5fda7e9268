//! The nouns of findings that all sections share: estimates, cells, comparisons, variants, steps, trials.
//! Every field is part of the format of `findings.json`.

use std::collections::BTreeMap;

use dyno_record::{AuditRow, CommitSafety, OwnStepRecord, Price, Settled};
use dyno_units::MetricId;
use serde::{Deserialize, Serialize};

use crate::metrics::THROUGHPUT;
use crate::time::TimeFacts;

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

impl Verdict {
    /// That there is a difference.
    pub(crate) fn is_decided(self) -> bool {
        matches!(self, Verdict::Better | Verdict::Worse)
    }
}

/// A comparison as an answer uses it: who, with whom, in what, where, by how much, whether that is decided,
/// and if not, what would decide it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    pub variant: usize,
    /// With which it is compared.
    pub other: usize,
    pub metric: MetricId,
    /// Of several, the means over them are compared.
    pub steps: Vec<usize>,
    /// Of the other, if it is compared at others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_steps: Vec<usize>,
    /// Of so many load levels, places or pairs the best was chosen: interval and verdict are at the level divided by
    /// this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_of: Option<usize>,
    /// In percent of the other.
    pub relative: Estimate,
    pub verdict: Verdict,
    /// As in a comparison.
    pub repetitions_needed: Option<u32>,
}

impl From<&Comparison> for Claim {
    fn from(c: &Comparison) -> Claim {
        Claim {
            variant: c.variant,
            other: c.baseline,
            metric: c.metric,
            steps: vec![c.step],
            other_steps: Vec::new(),
            best_of: None,
            relative: c.relative.clone(),
            verdict: c.verdict,
            repetitions_needed: c.repetitions_needed,
        }
    }
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
