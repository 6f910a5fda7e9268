//! Runs the trials of a plan: deploy, prepare, warm up, measure, tear down. The only impure stage
//! of the pipeline: it writes the record and emits one ordered stream of events, but knows neither
//! who listens nor how the record will be used.

mod activity;
pub mod agent;
mod check;
mod command;
mod deployment;
mod disk;
mod error;
mod events;
mod failures;
#[cfg(test)]
mod fixture;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod hosts;
mod job;
mod lab;
mod machine;
mod manifest;
pub mod observe;
mod phase;
mod prepare;
mod question;
mod route;
mod run;
mod search;
mod simulated;
mod site;
mod statements;
mod stopping;
mod totals;
mod trial;
mod voiding;
mod volume;

pub use check::{check_members, check_settings, check_without_programs};
pub use deployment::{Kept, KeptMember};
pub use disk::{ExpectedData, expected_disk};
pub use dyno_database::datasets;
pub use hosts::{HeldHosts, kubernetes_manifest};
pub use lab::{CalibratedRate, Calibration, Lab, RunOrder, StudyText, Void, Watching};
pub use machine::products;
pub use manifest::make_manifest;
pub use question::{questions, questions_in_words};
pub use run::{Hopeless, RunEnd, run};
pub use statements::{RefusedSql, StatementCheck, check_statements};
pub use stopping::Decide;
pub use volume::check_volumes;

pub(crate) use command::{CommandEnd, CommandOrder};
pub(crate) use deployment::{Deployment, Instance, Source};
pub(crate) use error::{Context, Result, TrialError, fail};
pub(crate) use events::EventLog;
pub(crate) use failures::{Failure, TrialEnd};
pub(crate) use hosts::{Agents, MadeVolume, ServerHosts, There};
pub(crate) use manifest::plan_workload;
pub(crate) use observe::{Span, Watched};
pub(crate) use route::Route;
pub(crate) use totals::DoneThere;
pub(crate) use trial::Trial;
pub(crate) use volume::VolumeAct;
