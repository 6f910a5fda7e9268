//! Jobs of a study as activities of a step.

use dyno_database::Server;
use dyno_study::{JobChoice, JobLoad, JobWork};
use dyno_units::Nanoseconds;
use dyno_workload::Connection;

use crate::activity::{
    Activity, BatchJob, Batches, Beside, Command, CommandJob, Sql, SqlJob, shown,
};
use crate::run::Lab;
use crate::trial::TrialError;

/// How long a statement before or after a job may take.
const STATEMENT_LIMIT: Nanoseconds = Nanoseconds::from_secs(3600);

/// The longest that a load goes on beside a job that ends it.
pub(crate) const LONGEST_LOAD: Nanoseconds = Nanoseconds::from_secs(7 * 24 * 3600);

/// The activity of a job; `server` is the one that is measured.
///
/// # Errors
///
/// It needs a server that there is not.
pub(crate) fn activity<'a>(
    job: &JobChoice,
    lab: &Lab,
    server: Option<&dyn Server>,
) -> Result<Beside<'a>, TrialError> {
    let activity: Box<dyn Activity + Send> = match &job.work {
        JobWork::Command { command, figures } => {
            let command = CommandJob {
                name: job.name.clone(),
                command: command.clone(),
                environment: server.map(Server::client_environment).unwrap_or_default(),
                figures: figures.clone(),
            };
            Box::new(Command::new(command, &lab.keeper, &lab.clock))
        }
        JobWork::Batches { statements, at_once, pause } => {
            let batches = BatchJob {
                name: job.name.clone(),
                statements: statements.clone(),
                at_once: *at_once,
                pause: *pause,
            };
            Box::new(Batches::new(batches, needed(job, server)?.connector(), &lab.clock))
        }
        JobWork::Sql { statements, at_once } => {
            let sql = SqlJob {
                name: job.name.clone(),
                statements: statements.clone(),
                at_once: *at_once,
                is_alone: job.load == JobLoad::Off,
            };
            Box::new(Sql::new(sql, needed(job, server)?.connector(), &lab.clock))
        }
    };
    Ok(Beside { activity, ends_step: job.load != JobLoad::On, starts_after: job.start_after })
}

/// Sends the statements that come before a job.
///
/// # Errors
///
/// One of them failed.
pub(crate) fn prepare(job: &JobChoice, server: Option<&dyn Server>) -> Result<(), TrialError> {
    if job.before.is_empty() {
        return Ok(());
    }
    let mut connection = connect(job, server)?;
    for statement in &job.before {
        connection.query(statement).map_err(|error| {
            let statement = shown(statement);
            TrialError::new(format!("before the job `{}`: `{statement}`: {error}", job.name))
        })?;
    }
    Ok(())
}

/// Asks whether a job that has ended did what it was to do.
///
/// # Errors
///
/// It did not, or the statement failed.
pub(crate) fn check(job: &JobChoice, server: Option<&dyn Server>) -> Result<(), TrialError> {
    let Some(statement) = &job.check else { return Ok(()) };
    let failed = |why: String| {
        let statement = shown(statement);
        TrialError::new(format!("the check of the job `{}`, `{statement}`, {why}", job.name))
    };
    let rows = connect(job, server)?.query(statement);
    let rows = rows.map_err(|error| failed(format!("failed: {error}")))?;
    match rows.first().map(|row| row.first().and_then(Option::as_deref).unwrap_or_default()) {
        None => Err(failed("returned no row".to_owned())),
        Some(value) if is_true(value) => Ok(()),
        Some(value) => Err(failed(format!("returned `{}`", shown(value)))),
    }
}

/// Whether a value means yes, as the products write it.
fn is_true(value: &str) -> bool {
    let value = value.trim();
    let is_zero = value.parse::<f64>().is_ok_and(|number| number == 0.0);
    !is_zero && !["", "f", "false", "no"].iter().any(|no| value.eq_ignore_ascii_case(no))
}

fn connect(
    job: &JobChoice,
    server: Option<&dyn Server>,
) -> Result<Box<dyn Connection>, TrialError> {
    let mut connection = (needed(job, server)?.connector())()?;
    connection.set_cold_limit(STATEMENT_LIMIT.0);
    Ok(connection)
}

fn needed<'s>(
    job: &JobChoice,
    server: Option<&'s dyn Server>,
) -> Result<&'s dyn Server, TrialError> {
    server.ok_or_else(|| {
        TrialError::new(format!(
            "the job `{}` sends SQL to the server that is measured, and this one is simulated",
            job.name
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_met_by_what_products_call_true() {
        for value in ["1", "t", "true", "ready", "17", "0.5"] {
            assert!(is_true(value), "{value}");
        }
        for value in ["", "0", "0.0", "f", "FALSE", " no "] {
            assert!(!is_true(value), "{value}");
        }
    }
}
