//! Kinds of transactions apart: insert rate and query rate are two things.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Comparison, Estimate, Metric};

/// Estimates of one kind of transaction in a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindCell {
    /// Index of the variant.
    pub variant: usize,
    /// Index of the step.
    pub step: usize,
    /// The kind's name.
    pub kind: String,
    /// The role whose clients do it, where the workload has roles and tells.
    pub role: Option<String>,
    /// Estimates: throughput, and response times where it committed.
    pub metrics: BTreeMap<Metric, Estimate>,
    /// Attempts by outcome, all repetitions together.
    pub outcomes: BTreeMap<String, u64>,
    /// Share of trials whose rate kept to the offered rate of its role: at least 95 % of it over the
    /// whole step, and the share of seconds that did; none where the role offers no rate.
    pub offered: Option<OfferedFacts>,
}

/// How a kind kept to the rate that its role offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfferedFacts {
    /// Offered transactions per second of all clients of the role.
    pub rate: f64,
    /// Committed ÷ offered.
    pub kept: Estimate,
    /// Trials that committed at least 95 % of what was offered.
    pub met: u32,
    /// Trials.
    pub of: u32,
}

/// A comparison of one kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindComparison {
    /// The kind's name.
    pub kind: String,
    /// The comparison: of throughput, mean or p99 response time of this kind alone.
    #[serde(flatten)]
    pub comparison: Comparison,
}
