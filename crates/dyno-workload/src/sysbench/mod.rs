//! The sysbench OLTP family (stub, being written).
use std::sync::Arc;
use dyno_units::Seed;
use crate::{Workload, options::{OptionError, OptionSpec, Options}};
/// A script of the family.
pub struct Script { /// Name.
 pub name: &'static str, /// Summary.
 pub summary: &'static str }
/// All scripts.
pub const SCRIPTS: &[Script] = &[];
/// Options.
pub fn option_specs(_script: &str) -> Vec<OptionSpec> { Vec::new() }
/// Create.
pub fn create(_name: &'static str, _o: Options, _seed: Seed) -> Result<Arc<dyn Workload>, OptionError> { unreachable!() }
