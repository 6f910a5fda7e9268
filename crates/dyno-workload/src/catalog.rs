//! The list of workloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_units::Seed;

use crate::options::{OptionError, OptionSpec, Options};
use crate::{Workload, sysbench, tpcb};

/// A workload that can be named in a study.
pub struct WorkloadSpec {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Its options.
    pub options: Vec<OptionSpec>,
    make: Make,
}

/// Makes the workload of a name, its options resolved.
type Make = fn(&'static str, Options, Seed) -> Result<Arc<dyn Workload>, OptionError>;

impl WorkloadSpec {
    /// Makes the workload. `seed` decides the data it populates.
    pub fn create(
        &self,
        given: &BTreeMap<String, String>,
        seed: Seed,
    ) -> Result<Arc<dyn Workload>, OptionError> {
        (self.make)(self.name, Options::resolve(&self.options, given)?, seed)
    }
}

/// All workloads, in the order in which help texts list them.
pub fn workloads() -> Vec<WorkloadSpec> {
    let sysbench = sysbench::SCRIPTS.iter().map(|script| WorkloadSpec {
        name: script.name,
        summary: script.summary,
        options: sysbench::option_specs(script.name),
        make: sysbench::create,
    });
    let tpcb = WorkloadSpec {
        name: tpcb::NAME,
        summary: tpcb::SUMMARY,
        options: tpcb::option_specs(),
        make: tpcb::create,
    };
    sysbench.chain([tpcb]).collect()
}

/// The workload of this name.
pub fn find(name: &str) -> Option<WorkloadSpec> {
    workloads().into_iter().find(|spec| spec.name == name)
}
