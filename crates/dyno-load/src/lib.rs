//! When and how transactions are sent: schedules, clients, attempts, histograms.
//!
//! The path between `due` and `done` allocates nothing, locks nothing and logs nothing. This crate
//! knows no database, no host and no study: it is small enough to be read whole.

mod step;

pub use step::{
    Arrivals, GeneratorUse, Interval, KindInterval, Load, LoadError, OUTCOMES, Outcomes, Phase,
    StepSpec, StepTotals,
};
