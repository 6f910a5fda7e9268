//! Stalls: gaps and dips of throughput, found in bins of 100 ms, and which readings moved first.

use serde::{Deserialize, Serialize};

/// A stretch of time in which far fewer transactions were done than around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallFacts {
    /// Index of the variant.
    pub variant: usize,
    /// Index of the step.
    pub step: usize,
    /// The trial's number in its own run.
    pub trial: u32,
    /// Its beginning, in seconds since the measure phase began.
    pub start_s: f64,
    /// How long it lasted, in seconds.
    pub length_s: f64,
    /// Width of the bins that it was found in, in seconds: 0.1, or more where transactions are rare.
    /// Beginning and end are each known to about this much.
    pub bin_s: f64,
    /// Whether nothing at all was done (but for what the first and the last bin hold): a gap, and
    /// else a dip.
    pub gap: bool,
    /// Transactions that would have been done at the level around it, and were not.
    pub missing: f64,
    /// The level around it, in transactions per second.
    pub level: f64,
    /// The kinds of transactions that stalled, by name.
    pub kinds: Vec<String>,
    /// Which readings left their ordinary range about then, earliest first. Evidence, no verdict.
    pub moved_first: Vec<Moved>,
}

/// A reading that left its ordinary range about the time of a stall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Its name: `server.cpu_s_per_s`.
    pub reading: String,
    /// What it is evidence of: `a process that did not run`, `checkpoint age at its limit`.
    pub sign_of: String,
    /// Beginning of the interval in which it first did, in seconds since the stall began: negative
    /// before it. Readings come once a second, so a reading that moves with the stall has a value
    /// above −1.
    pub at_s: f64,
    /// Its value there.
    pub value: f64,
    /// What it ordinarily is: its median over the seconds without stalls; for a limit that is
    /// reached, the limit.
    pub ordinary: f64,
    /// How far it left its ordinary value, in robust standard deviations (1.4826 times the median
    /// absolute deviation); none for a limit that is reached.
    pub deviations: Option<f64>,
    /// Its unit, where known.
    pub unit: String,
    /// What the reading means, in a sentence, where the record tells.
    pub meaning: String,
}
