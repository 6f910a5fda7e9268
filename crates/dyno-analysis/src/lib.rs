//! Record → [`Findings`]: estimates, comparisons, verdicts, caveats.
//!
//! Pure: takes records, gives findings; no clock, no randomness but a seed, no runtime, no file.
//! The numbers are a function of the record and nothing else, so old records and records from
//! other machines are analysed by the same rules.

mod analyse;
pub mod caveat;
pub mod findings;
pub mod statistics;

pub use analyse::{Options, analyse};
pub use caveat::{Caveat, CaveatKind};
pub use findings::{
    Answer, Cell, Comparison, ConcurrencyGroup, Estimate, Findings, GroupComparison, Metric,
    SettingDifference, StepFacts, TrialFacts, VariantFacts, Verdict,
};
