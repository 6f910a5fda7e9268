//! Jobs of a study as activities of a step.

use std::sync::Arc;

use dyno_database::Server;
use dyno_record::MemberRole;
use dyno_study::{JobChoice, JobLoad, JobWork};
use dyno_units::Direction::Higher;
use dyno_units::{Metric, Nanoseconds, Unit, metric};
use dyno_workload::{Connection, Workload};

use crate::activity::{Activity, Beside, StepEnd, Surroundings, batches, command, shown, sql};
use crate::command::Stage;
use crate::site::JobSite;
use crate::{Context, Deployment, Lab, Result, There, TrialError, fail};

/// How long a statement before or after a job may take.
const STATEMENT_LIMIT: Nanoseconds = Nanoseconds::from_secs(3600);

/// The longest that a load goes on beside a job that ends it.
pub(crate) const LONGEST_LOAD: Nanoseconds = Nanoseconds::from_secs(7 * 24 * 3600);

/// Of tables, by name.
type Digests = Vec<(String, String)>;

#[derive(Default)]
pub(crate) struct Prepared {
    site: Option<Arc<JobSite>>,
    /// Those that must be the same after it.
    tables: Digests,
}

#[derive(Default)]
pub(crate) struct Target<'d> {
    /// Its server; none if that is simulated.
    server: Option<&'d dyn Server>,
    other: Option<&'d dyn Server>,
    /// The host of its server; none if that is on this machine.
    there: Option<There>,
    is_measured: bool,
}

impl<'d> Target<'d> {
    pub(crate) fn of(job: &JobChoice, deployment: &'d Deployment) -> Result<Target<'d>> {
        let other = deployment.other_database();
        let Some(member) = deployment.wanted(job.member.as_deref()) else {
            return match &job.member {
                // A machine without servers.
                None => Ok(Target { other, ..Target::default() }),
                Some(wanted) => fail(format!(
                    "the job `{}` cannot work with {wanted}: there is no such member",
                    job.name
                )),
            };
        };
        Ok(Target {
            server: member.server(),
            other,
            there: deployment.there(member),
            is_measured: member.facts.role == MemberRole::Primary,
        })
    }

    fn site(&self, lab: &Lab) -> Result<Arc<JobSite>> {
        let site = match &self.there {
            Some(there) => JobSite::There(there.clone()),
            None => {
                let servers = (self.server, self.other);
                JobSite::here(&lab.keeper, lab.program.as_deref(), servers)?
            }
        };
        Ok(Arc::new(site))
    }
}

pub(crate) fn activity<'a>(
    job: &JobChoice,
    lab: &Lab,
    target: &Target<'_>,
    prepared: &Prepared,
) -> Result<Beside<'a>> {
    // What another server uses is not seen as the measured one's.
    let is_alone = job.load == JobLoad::Off && target.is_measured;
    let connector = || Ok::<_, TrialError>((needed(job, target.server)?.connector(), &lab.clock));
    let activity = match &job.work {
        JobWork::Command { command: words, figures } => {
            let site = prepared.site.clone().map_or_else(|| target.site(lab), Ok)?;
            command(Stage::Work, (words, figures), (site, &lab.clock))
        }
        JobWork::Batches { statements, at_once, pause } => {
            batches(statements.clone(), (*at_once, *pause), connector()?)
        }
        JobWork::Sql { statements, at_once } => sql(statements.clone(), *at_once, connector()?),
    };
    let activity = Box::new(activity.named(job.name.clone(), is_alone));
    Ok(Beside { activity, ends_step: job.load != JobLoad::On, starts_after: job.start_after })
}

pub(crate) fn prepare(
    job: &JobChoice,
    lab: &Lab,
    target: &Target<'_>,
    workload: &dyn Workload,
) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    if job.same_tables {
        let mut connection = connect(job, target.server)?;
        let tables = workload.tables(connection.dialect());
        prepared.tables = digests(connection.as_mut(), tables.into_iter().map(|table| table.name))?;
    }
    if !job.setup.is_empty() {
        let site = target.site(lab)?;
        let setup = command(Stage::Setup, (&job.setup, &[]), (Arc::clone(&site), &lab.clock));
        let mut at = Surroundings { stop: &lab.abort, journal: None };
        setup.named(format!("{}: setup", job.name), false).run(&mut at)?;
        if lab.abort.is_raised() {
            return Err(TrialError::Abandoned);
        }
        prepared.site = Some(site);
    }
    if job.before.is_empty() {
        return Ok(prepared);
    }
    let mut connection = connect(job, target.server)?;
    for statement in &job.before {
        let what = format!("before the job `{}`: `{}`", job.name, shown(statement));
        connection.query(statement).context(what)?;
    }
    Ok(prepared)
}

fn digests(from: &mut dyn Connection, names: impl Iterator<Item = String>) -> Result<Digests> {
    let digest = |table: String| {
        let found = dyno_database::digest(from, &table);
        let found = found.context(format_args!("the table {table} cannot be read"))?;
        let found = found
            .context("`same_tables` needs checksums of tables, which this product does not have")?;
        Ok((table, found))
    };
    names.map(digest).collect()
}

/// Fails if the job that ended did not do its work, or the check's statement failed.
pub(crate) fn check(job: &JobChoice, target: &Target<'_>, prepared: &Prepared) -> Result {
    let server = target.server;
    if !prepared.tables.is_empty() {
        let names = prepared.tables.iter().map(|(table, _)| table.clone());
        let found = digests(connect(job, server)?.as_mut(), names)?;
        let mut both = prepared.tables.iter().zip(&found);
        if let Some(((table, before), (_, after))) = both.find(|(before, after)| before != after) {
            return fail(format!(
                "the table {table} was changed by the job `{}`: count and checksum were {before} \
                 before it, and are {after} after it",
                job.name
            ));
        }
    }
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

const DATA_PER_S: Metric = metric(
    "job.data_per_s",
    Unit::BytesPerSecond,
    Higher,
    "data rate of the job",
    "size of the server's data files after the job, divided by the job's time",
)
.secondary();

pub(crate) fn add_data_rate(job: &JobChoice, target: &Target<'_>, end: &mut StepEnd) {
    let time = end.metrics.iter().find(|metric| metric.id.as_str() == "job.time");
    let time = time.and_then(|metric| end.summary.figures.get(&metric.id)).copied();
    let bytes = target.server.filter(|_| job.same_tables).and_then(Server::data_bytes);
    if let (Some(bytes), Some(time)) = (bytes, time.filter(|time| *time > 0.0)) {
        end.summary.figures.insert(DATA_PER_S.id, bytes as f64 / time);
        end.metrics.push(DATA_PER_S);
    }
}

fn is_true(value: &str) -> bool {
    let value = value.trim();
    let is_zero = value.parse::<f64>().is_ok_and(|number| number == 0.0);
    !is_zero && !["", "f", "false", "no"].iter().any(|no| value.eq_ignore_ascii_case(no))
}

fn connect(job: &JobChoice, server: Option<&dyn Server>) -> Result<Box<dyn Connection>> {
    let mut connection = (needed(job, server)?.connector())()?;
    connection.set_cold_limit(STATEMENT_LIMIT.0);
    Ok(connection)
}

fn needed<'s>(job: &JobChoice, server: Option<&'s dyn Server>) -> Result<&'s dyn Server> {
    server.context(format_args!(
        "the job `{}` sends SQL to the server that is measured, and this one is simulated",
        job.name
    ))
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
