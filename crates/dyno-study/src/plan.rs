//! The ordered list of trials that a study asks for.

use dyno_units::{Nanoseconds, Seed};

use crate::{Arrivals, Database, LoadLevel, Study, WorkloadChoice};

/// What will be done, in order. A pure function of the study and the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The question.
    pub title: String,
    /// The seed of everything random in the run.
    pub seed: Seed,
    /// All variants.
    pub variants: Vec<Variant>,
    /// The steps of every trial, in order.
    pub steps: Vec<PlannedStep>,
    /// The trials, in the order in which they run.
    pub trials: Vec<PlannedTrial>,
    /// Rest between steps and between trials.
    pub rest: Nanoseconds,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name, made of its levels; unique in the plan.
    pub name: String,
    /// Its level of each factor, in factor order.
    pub levels: Vec<Level>,
    /// The variant it is compared with, as an index; none for a baseline.
    pub baseline: Option<usize>,
    /// The database with all settings of this variant.
    pub database: Database,
    /// The workload with all options of this variant.
    pub workload: WorkloadChoice,
}

/// A level of a factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The factor: `database`, `workload`, `setting.NAME`, `option.NAME`.
    pub factor: String,
    /// The level as text.
    pub level: String,
}

/// One stretch of load inside a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    /// Its name: `8 clients`, `500/s`.
    pub name: String,
    /// How hard.
    pub load: LoadLevel,
    /// Warm-up before it.
    pub warm_up: Nanoseconds,
    /// Measured time.
    pub duration: Nanoseconds,
}

/// One execution of one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTrial {
    /// Its number in the run, counted from 1.
    pub number: u32,
    /// The variant, as an index.
    pub variant: usize,
    /// Which repetition of the variant, counted from 1.
    pub repetition: u32,
    /// The block, counted from 1.
    pub block: u32,
}

/// Makes the plan of a checked study. `seed` is used where the study fixes none.
pub fn plan(_study: &Study, _seed: Seed) -> Plan {
    let _ = Arrivals::Poisson;
    unimplemented!()
}
