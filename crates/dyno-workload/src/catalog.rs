//! The catalogue of workloads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dyno_model::{DefinitionProblem, Name, OptionError, OptionSpec, StepRequest};
use dyno_units::Seed;

use crate::options::Options;
use crate::{
    Outline, Target, Workload, dbstress, documents, files, insert_benchmark, key_order, none,
    sysbench, tpcb, tpcc, vectors,
};

#[derive(Clone)]
pub struct WorkloadSpec {
    pub name: Name,
    pub summary: Name,
    pub options: Vec<OptionSpec>,
    pub target: Target,
    plan: Plan,
    problems: Option<Problems>,
}

type Problems = Arc<dyn Fn(&Given) -> Vec<DefinitionProblem> + Send + Sync>;

type Plan = Arc<dyn Fn(&PlanInput<'_>) -> Planned + Send + Sync>;

/// Option values as a study gives them, by name.
type Given = BTreeMap<String, String>;

pub type Planned = Result<Arc<dyn Workload>, PlanError>;

#[derive(Clone, Debug)]
pub struct PlanInput<'a> {
    pub name: &'a Name,
    pub options: &'a Options,
    pub target: Target,
    pub request: StepRequest,
    pub seed: Seed,
}

impl PlanInput<'_> {
    /// Of a workload with these kinds, and no steps of its own.
    pub(crate) fn outline(&self, kinds: impl Into<Vec<Name>>) -> Outline {
        let (name, options) = (self.name.clone(), self.options.pairs());
        let (kinds, target) = (kinds.into(), self.target);
        Outline { name, kinds, options, target, ..Outline::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Option(#[from] OptionError),
    /// It cannot run under this load: why not, and what to do.
    #[error("{0}")]
    Load(String),
}

impl WorkloadSpec {
    /// A workload with the function that plans it, which must be pure.
    pub fn new(
        name: impl Into<Name>,
        summary: impl Into<Name>,
        options: Vec<OptionSpec>,
        plan: impl Fn(&PlanInput<'_>) -> Planned + Send + Sync + 'static,
    ) -> WorkloadSpec {
        let (name, summary, plan) = (name.into(), summary.into(), Arc::new(plan));
        WorkloadSpec { name, summary, options, target: Target::Sql, plan, problems: None }
    }

    /// Adds a pure function that finds all errors of a study's declaration, with their places.
    #[must_use]
    pub fn checked_by(
        self,
        problems: impl Fn(&Given) -> Vec<DefinitionProblem> + Send + Sync + 'static,
    ) -> WorkloadSpec {
        WorkloadSpec { problems: Some(Arc::new(problems)), ..self }
    }

    pub fn problems(&self, given: &Given) -> Vec<DefinitionProblem> {
        self.problems.as_ref().map(|problems| problems(given)).unwrap_or_default()
    }

    #[must_use]
    pub fn on(self, target: Target) -> WorkloadSpec {
        WorkloadSpec { target, ..self }
    }

    /// Missing options get defaults. Pure: the same arguments give the same steps, tables, rows and
    /// statements. Fails for an unknown or wrong option, and a load that the workload cannot run
    /// with them.
    pub fn plan(&self, given: &Given, request: StepRequest, seed: Seed) -> Planned {
        let options = Options::resolve(&self.options, given)?;
        let (name, target) = (&self.name, self.target);
        (self.plan)(&PlanInput { name, options: &options, target, request, seed })
    }
}

impl fmt::Debug for WorkloadSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WorkloadSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

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
    use dyno_units::Nanoseconds;
    use proptest::prelude::*;

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
