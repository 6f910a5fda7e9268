//! Serialised as `findings.json`; every field is part of that format.

use std::collections::BTreeMap;

use dyno_units::{MetricId, Question};
use serde::{Deserialize, Serialize};

use crate::attribution::{AttributionFacts, WhyFacts};
use crate::bound::BoundFacts;
use crate::caveat::Caveat;
use crate::cost::CostFacts;
use crate::debt::{DebtFacts, RunOffFacts};
use crate::facts::{
    Cell, Claim, Comparison, GroupComparison, OtherEffect, SettingDifference, StepFacts,
    TrialFacts, TrialSearch, VariantFacts,
};
use crate::gate::{Gate, GateRow};
use crate::insert_benchmark::InsertBenchmarkCell;
use crate::kinds::{KindCell, KindComparison};
use crate::metrics::Metrics;
use crate::numbers::EffectStyle;
use crate::scaling::{ScalingFacts, UnderLimit};
use crate::stalls::{MadeDips, StallFacts};
use crate::stopping::{RepeatedLooks, StoppingFacts};
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
    /// For each cell with clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound_by: Vec<BoundFacts>,
    /// What goes with the differences in main metrics, and what does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<WhyFacts>,
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// One sentence of at most about 25 words.
    pub headline: String,
    /// That the headline answers: of a study without questions "which is best?", of a second run against the first
    /// "is anything worse?"; `None` where nothing was measured, or Dyno only watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The comparisons that the headline is made of; empty where it compares nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The variants that the headline compares, if the lines compare others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// At most five short sentences, with confidence intervals and repetitions.
    #[serde(default)]
    pub lines: Vec<String>,
    /// What goes with each difference, and what does not, a sentence each: those of the headline first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// Every comparison in words: what was decided, what not, and why.
    pub details: Vec<String>,
    /// What a durability study's lines compare with: the fastest safe variant, or its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<usize>,
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
