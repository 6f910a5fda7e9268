//! `none`: nothing is sent. What goes on by itself is observed: on a server, in a process, on the machine.
//!
//! It has one step without clients. How long that is, the study's `duration` says.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use dyno_model::{Name, OptionError, OptionSpec, WorkloadStep};
use dyno_units::{Nanoseconds, parse_duration};

use crate::catalog::{PlanError, PlanInput, WorkloadSpec};
use crate::options::Options;
use crate::{
    ClientContext, ClientFuture, Clients, Dialect, Observation, Row, Statement, Table, Target,
    Workload,
};

pub const NAME: &str = "none";

const STEP: Name = Name::Borrowed("observe");

/// Probes and intervals are made for seconds.
const EVERY_LEAST: Nanoseconds = Nanoseconds::SECOND;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::text("every", "1s", "time between readings; at least 1s"),
    OptionSpec::count(
        "pid",
        "0",
        "a running process to observe with all its descendants, instead of the server's; the step \
         ends with it; 0 for none",
    ),
];

pub fn spec() -> WorkloadSpec {
    let summary = "nothing is sent: observes a server, a process or this machine as it is";
    WorkloadSpec::new(NAME, summary, OPTIONS.to_vec(), plan).on(Target::Anything)
}

fn plan(input: &PlanInput<'_>) -> Result<Arc<dyn Workload>, PlanError> {
    let step = WorkloadStep {
        name: STEP,
        roles: Vec::new(),
        limit: input.request.duration,
        settle: Nanoseconds::ZERO,
    };
    let observation = observation(input.options)?;
    Ok(Arc::new(Nothing { options: input.options.pairs(), steps: [step], observation }))
}

fn observation(options: &Options) -> Result<Observation, OptionError> {
    let wrong = |name: &str, reason: String| OptionError { name: name.to_owned(), reason };
    let text = options.text("every");
    let every = parse_duration(text).map_err(|error| wrong("every", error.to_string()))?;
    if every < EVERY_LEAST {
        return Err(wrong("every", format!("must be at least {EVERY_LEAST}, not {text}")));
    }
    let process = match options.count("pid") {
        0 => None,
        pid => Some(
            i32::try_from(pid).map_err(|_| wrong("pid", "there is no such process".to_owned()))?,
        ),
    };
    Ok(Observation { every, process })
}

/// What is planned, and the clients that it does not have.
struct Nothing {
    options: Vec<(String, String)>,
    steps: [WorkloadStep; 1],
    observation: Observation,
}

impl Workload for Nothing {
    fn name(&self) -> &str {
        NAME
    }

    fn kinds(&self) -> &[Name] {
        &[]
    }

    fn options(&self) -> Vec<(String, String)> {
        self.options.clone()
    }

    fn works_on(&self) -> Target {
        Target::Anything
    }

    /// Nothing is sent.
    fn check(&self, _dialect: Dialect) -> Result<(), String> {
        Ok(())
    }

    fn check_apart(&self) -> Result<(), String> {
        Ok(())
    }

    fn steps(&self) -> &[WorkloadStep] {
        &self.steps
    }

    fn observation(&self) -> Option<Observation> {
        Some(self.observation)
    }

    fn tables(&self, _dialect: Dialect) -> Vec<Table> {
        Vec::new()
    }

    fn makes_nothing(&self) -> bool {
        true
    }

    fn fill_row(&self, _table_idx: usize, _number: u64, _row: &mut Row) {}

    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        Vec::new()
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        self
    }
}

impl Clients for Nothing {
    /// One that has nothing to do.
    fn client(&self, _context: ClientContext) -> ClientFuture {
        Box::pin(std::future::ready(()))
    }
}
