//! Study file → [`Study`] → [`Plan`], with diagnostics that point at the line.
//!
//! Pure: no file is read here, no host asked, no database known. What products, workloads and
//! options exist is handed in as a [`Vocabulary`], so that a study can be checked in an editor.

pub mod diagnostic;
mod fault;
#[cfg(any(test, fuzzing))]
mod fixture;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod host;
mod job;
mod keys;
mod nearest;
mod parse;
pub mod plan;
pub mod reference;
mod requirement;
pub mod schema;
mod search;
mod study;
mod vocabulary;
mod volume;

pub use diagnostic::Diagnostic;
pub use fault::{FaultChoice, FaultKind};
pub use host::{HostPool, KubernetesRequest, Lost, Reach, SlurmRequest, with_name};
pub use job::{JobChoice, JobLoad, JobWork};
pub use keys::CLIENTS_MAX;
pub use nearest::nearest_words;
pub use parse::{declared_place, parse, parse_setting};
#[doc(inline)]
pub use plan::{BlockOrder, Plan, PlannedStep, PlannedTrial, plan, plan_in};
pub use requirement::{Bound, Requirement};
pub use search::{Limit, Search, Sought, Statistic};
pub use study::{
    Behind, Cluster, DataOrigin, Database, Design, Factor, FieldValue, Level, LoadLevel, Order,
    OwnLoad, Price, ProbeSource, Product, Study, Table, UserProbe, Variant, WorkloadChoice,
};
pub use vocabulary::{
    Options, Planned, PlannedWorkload, ProductWord, RouterWord, SettingRules, Vocabulary,
    WorkloadRules, WorkloadWord,
};

#[cfg(test)]
mod studies_tests;
