//! The nouns that a study, a workload and the load generator share. The record has its own types,
//! so that old records stay readable when these change.

pub mod declared;
mod load;
mod name;
pub mod option;
mod step;
mod tree;

pub use load::{Arrivals, Load};
pub use name::{Name, name, names};
pub use option::{OptionError, OptionKind, OptionSpec, Words, parse_counts, parse_switch};
pub use step::{Pacing, Role, StepRequest, WorkloadStep};
pub use tree::{DefinitionProblem, Tree};
