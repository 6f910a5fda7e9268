//! The nouns that a study, a workload and the load generator share: load, arrivals, steps, roles and
//! workload options.
//!
//! Each exists once, here, and none knows who uses it. The record writes its own types down, so that
//! old records stay readable when these change.

mod load;
mod name;
mod option;
mod step;

pub use load::{Arrivals, Load};
pub use name::{Name, name, names};
pub use option::{OptionError, OptionKind, OptionSpec, Words, parse_switch};
pub use step::{Pacing, Role, StepRequest, WorkloadStep};
