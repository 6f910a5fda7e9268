//! Sequential stopping: which variants need no more repetitions, and what that does to the levels of
//! the tests.

use serde::{Deserialize, Serialize};

/// What repeated looks at a run did to its analysis; of runs that may stop early.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoppingFacts {
    /// Repetitions before the first look.
    pub repetitions_min: u32,
    /// The most repetitions.
    pub repetitions_max: u32,
    /// Looks that the error rates are shared among.
    pub looks: u32,
    /// Confidence at which bounds inside the threshold count as "no difference" in such a run.
    pub confidence_of_looks: f64,
    /// What became of each variant, in plan order.
    pub variants: Vec<VariantStopping>,
    /// Trials of the plan that were not needed.
    pub saved_trials: u32,
}

/// Whether a variant was repeated no more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantStopping {
    /// Repetitions that finished.
    pub repetitions: u32,
    /// Whether it needs no more.
    pub settled: bool,
    /// Why, or what is still open.
    pub why: String,
}

/// Which variants need no more repetitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoppingDecision {
    /// Index of each variant that is settled, and why.
    pub settled: Vec<(usize, String)>,
}
