//! Record → [`Findings`]: estimates, comparisons, verdicts, caveats; METHOD.md explains every
//! formula. A pure function of the record, without clock, file or randomness but a seed, so that
//! old and foreign records are analysed by the same rules.

mod analyse;
mod answer;
pub mod attribution;
pub mod bound;
pub mod caveat;
mod cells;
mod compare;
pub mod cost;
pub mod debt;
mod detect;
pub mod facts;
pub mod faults;
pub mod findings;
#[cfg(test)]
mod fixtures;
mod gate;
pub mod hosts;
pub mod insert_benchmark;
mod join;
pub mod kept;
pub mod kinds;
mod main_metric;
pub mod metrics;
pub mod numbers;
pub mod requirements;
pub mod scaling;
mod searches;
mod settings;
pub mod stalls;
pub mod statistics;
pub mod stopping;
pub mod time;
pub mod tpcc;
mod trial_hosts;
pub mod vectors;
pub mod voiding;
mod volume;
mod words;

pub use analyse::{Options, analyse, analyse_against};
pub use answer::is_watched;
pub use caveat::{Caveat, CaveatKind};
pub use detect::is_imported;
pub use dyno_record::CommitSafety;
pub use dyno_units::{Direction, Metric, MetricId, MetricRole};
pub use facts::{
    Cell, Claim, Comparison, ConcurrencyGroup, Estimate, GroupComparison, Mean, NoBounds,
    OtherEffect, Pooled, ProbeFacts, SettingDifference, StepFacts, StepSearch, TrialFacts,
    TrialSearch, VariantFacts, Verdict,
};
pub use faults::FaultFacts;
pub use findings::{Answer, Findings};
pub use gate::{Gate, GateCall, GateDecision, GateInput, GateRow, decide_gate, gate_calls};
pub use join::{same_runs, unlike_metrics};
pub use metrics::Metrics;
pub use requirements::{RequirementFacts, RequirementOutcome};
pub use stalls::{MadeDips, Moved, StallFacts};
pub use trial_hosts::TrialHostFacts;
