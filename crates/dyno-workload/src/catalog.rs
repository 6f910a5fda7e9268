//! The catalogue of workloads.

use crate::{
    dbstress, documents, files, insert_benchmark, key_order, none, sysbench, tpcb, tpcc, vectors,
};

pub use crate::workload::{PlanError, PlanInput, Planned, WorkloadSpec};

#[derive(Clone, Debug)]
pub struct Catalog {
    workloads: Vec<WorkloadSpec>,
}

impl Catalog {
    pub fn built_in() -> Catalog {
        let mut workloads = sysbench::specs();
        workloads.extend([dbstress::spec(), key_order::spec(), insert_benchmark::spec()]);
        workloads.extend([tpcb::spec(), tpcc::spec(), vectors::spec(), documents::spec()]);
        workloads.extend(files::specs());
        workloads.push(none::spec());
        Catalog { workloads }
    }

    pub fn add(&mut self, spec: WorkloadSpec) {
        self.workloads.retain(|other| other.name != spec.name);
        self.workloads.push(spec);
    }

    pub fn workloads(&self) -> &[WorkloadSpec] {
        &self.workloads
    }

    pub fn find(&self, name: &str) -> Option<&WorkloadSpec> {
        self.workloads.iter().find(|spec| spec.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dyno_model::StepRequest;
    use dyno_units::{Nanoseconds, Seed};
    use proptest::prelude::*;

    use crate::Workload;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// A study is checked with a plan of another seed than its trials have.
        #[test]
        fn the_seed_of_a_plan_does_not_change_its_steps(
            seed in any::<u64>(),
            clients in 1_usize..64,
            seconds in 1_u64..600,
        ) {
            let request = StepRequest { clients, duration: Nanoseconds::from_secs(seconds) };
            for spec in Catalog::built_in().workloads() {
                let planned = |seed| spec.plan(&BTreeMap::new(), request, Seed(seed));
                let (ours, theirs) = match (planned(seed), planned(0)) {
                    (Ok(ours), Ok(theirs)) => (ours, theirs),
                    (ours, theirs) => {
                        prop_assert_eq!(ours.err(), theirs.err(), "{}", spec.name);
                        continue;
                    }
                };
                prop_assert_eq!(ours.steps(), theirs.steps(), "{}", spec.name);
                prop_assert_eq!(ours.kinds(), theirs.kinds(), "{}", spec.name);
                // How many rows they have may be drawn: the lines of an order of TPC-C are.
                let tables = |planned: &dyn Workload| -> Vec<(usize, u64)> {
                    planned.table_shapes().iter().map(|shape| (shape.first, shape.n_tables)).collect()
                };
                prop_assert_eq!(tables(&*ours), tables(&*theirs), "{}", spec.name);
                for is_open in [false, true] {
                    prop_assert_eq!(ours.check_load(is_open), theirs.check_load(is_open));
                }
            }
        }
    }
}
