//! The list of workloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_units::Seed;

use crate::options::{OptionError, OptionSpec, Options};
use crate::{Workload, dbstress, insert_benchmark, key_order, sysbench, tpcb, tpcc};

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
    let tpcc = WorkloadSpec {
        name: tpcc::NAME,
        summary: tpcc::SUMMARY,
        options: tpcc::option_specs(),
        make: tpcc::create,
    };
    let tpcb = WorkloadSpec {
        name: tpcb::NAME,
        summary: tpcb::SUMMARY,
        options: tpcb::option_specs(),
        make: tpcb::create,
    };
    let insert_benchmark = WorkloadSpec {
        name: insert_benchmark::NAME,
        summary: insert_benchmark::SUMMARY,
        options: insert_benchmark::option_specs(),
        make: insert_benchmark::create,
    };
    let key_order = WorkloadSpec {
        name: key_order::NAME,
        summary: key_order::SUMMARY,
        options: key_order::option_specs(),
        make: key_order::create,
    };
    let dbstress = WorkloadSpec {
        name: dbstress::NAME,
        summary: dbstress::SUMMARY,
        options: dbstress::option_specs(),
        make: dbstress::create,
    };
    sysbench.chain([dbstress, key_order, insert_benchmark, tpcb, tpcc]).collect()
}

/// The workload of this name.
pub fn find(name: &str) -> Option<WorkloadSpec> {
    workloads().into_iter().find(|spec| spec.name == name)
}
