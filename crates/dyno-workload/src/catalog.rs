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

/// Workloads that are not of sysbench, by name, in the order in which help texts list them.
const OTHERS: [(&str, fn() -> WorkloadSpec); 5] = [
    (dbstress::NAME, || WorkloadSpec {
        name: dbstress::NAME,
        summary: dbstress::SUMMARY,
        options: dbstress::option_specs(),
        make: dbstress::create,
    }),
    (key_order::NAME, || WorkloadSpec {
        name: key_order::NAME,
        summary: key_order::SUMMARY,
        options: key_order::option_specs(),
        make: key_order::create,
    }),
    (insert_benchmark::NAME, || WorkloadSpec {
        name: insert_benchmark::NAME,
        summary: insert_benchmark::SUMMARY,
        options: insert_benchmark::option_specs(),
        make: insert_benchmark::create,
    }),
    (tpcb::NAME, || WorkloadSpec {
        name: tpcb::NAME,
        summary: tpcb::SUMMARY,
        options: tpcb::option_specs(),
        make: tpcb::create,
    }),
    (tpcc::NAME, || WorkloadSpec {
        name: tpcc::NAME,
        summary: tpcc::SUMMARY,
        options: tpcc::option_specs(),
        make: tpcc::create,
    }),
];

fn of_sysbench(script: &sysbench::Script) -> WorkloadSpec {
    WorkloadSpec {
        name: script.name,
        summary: script.summary,
        options: sysbench::option_specs(script.name),
        make: sysbench::create,
    }
}

/// All workloads, in the order in which help texts list them.
pub fn workloads() -> Vec<WorkloadSpec> {
    let others = OTHERS.iter().map(|(_, make)| make());
    sysbench::SCRIPTS.iter().map(of_sysbench).chain(others).collect()
}

/// The workload of this name.
pub fn find(name: &str) -> Option<WorkloadSpec> {
    // Only this one is made: a plan with many variants asks for each of them.
    let script = sysbench::SCRIPTS.iter().find(|script| script.name == name);
    let other = || OTHERS.iter().find(|(other, _)| *other == name).map(|(_, make)| make());
    script.map(of_sysbench).or_else(other)
}
