//! Debt: work that an engine put off, how fast it grew, and how long it took to pay.

use serde::{Deserialize, Serialize};

use crate::Estimate;

/// One kind of debt of one variant at one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DebtFacts {
    /// Index of the variant.
    pub variant: usize,
    /// Index of the step.
    pub step: usize,
    /// The reading: `debt.history_list_length`.
    pub reading: String,
    /// Its unit, where the record tells.
    pub unit: String,
    /// What it means, where the record tells.
    pub meaning: String,
    /// At the beginning of the measure phase.
    pub at_start: Estimate,
    /// At its end.
    pub at_end: Estimate,
    /// The most there was.
    pub most: Estimate,
    /// How fast it grew, per second, by least squares over the measured time; negative where it
    /// shrank. Bounds are over repetitions.
    pub slope_per_s: Estimate,
    /// What the slope means, judged by its bounds.
    pub trend: DebtTrend,
}

/// Whether debt grew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DebtTrend {
    /// It grew: the load is not one the engine can keep up with.
    Grew,
    /// It shrank.
    Shrank,
    /// The bounds of the slope hold zero.
    Level,
    /// One repetition: no bounds.
    #[default]
    Unknown,
}

/// How long a variant took to pay its debt when the load had ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOffFacts {
    /// Index of the variant.
    pub variant: usize,
    /// The most it might take, in seconds.
    pub limit_s: f64,
    /// Seconds until it was paid, of the trials in which it was. Where some were not paid in time
    /// (`unpaid`), the truth is more than this.
    pub paid_after_s: Option<Estimate>,
    /// Numbers of the trials in which it was not paid within the limit.
    pub unpaid: Vec<u32>,
    /// Numbers of the trials in which the debt could not be seen.
    pub unseen: Vec<u32>,
    /// Why it could not.
    pub why_unseen: Option<String>,
    /// All of it in a sentence.
    pub told: String,
}
