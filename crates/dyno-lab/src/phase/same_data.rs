//! Checks that several servers are over the same data, as the study says.

use dyno_units::Nanoseconds;
use dyno_workload::{Connection, TextRows};

use super::agree::row;
use super::audit::ask;
use crate::{Context, Result, Trial, fail};

/// For a server to show another one's writes: nodes of some clusters apply them later.
const LIMIT: Nanoseconds = Nanoseconds::from_secs(10);
const POLL: Nanoseconds = Nanoseconds::from_millis(100);

/// Before the load: refuses a server of another version, one that is named twice, and one with other data.
pub(super) fn before(trial: &mut Trial<'_, '_>) -> Result {
    let Some(first) = trial.deployment.server() else { return Ok(()) };
    let version = first.facts()?.version;
    for (name, server, endpoint) in trial.deployment.further_servers() {
        let other = server.facts()?.version;
        if other != version {
            return fail(format!(
                "{name} ({endpoint}) is {other}, and the first server is {version}: servers \
                 that share the same data must have the same version"
            ));
        }
    }
    check_different(trial)?;
    match agreed(trial)?.into_iter().find(|(_, answer)| answer.is_err()) {
        Some((name, Err(why))) => fail(format!(
            "{name} {why}: `more_urls` must name servers that share the data of `url`"
        )),
        _ => Ok(()),
    }
}

/// Fails if two of the addresses lead to one server.
fn check_different(trial: &Trial<'_, '_>) -> Result {
    let first = trial.deployment.server().map(|server| ("the first server".to_owned(), server));
    let others = trial.deployment.further_servers();
    let others = others.map(|(name, server, endpoint)| (format!("{name} ({endpoint})"), server));
    let failed = "cannot find out whether the servers are different ones";
    let mut known: Vec<(String, Box<dyn Connection>)> = Vec::new();
    for (name, server) in first.into_iter().chain(others) {
        let mut connection = (server.connector())().context(failed)?;
        for (other, before) in &mut known {
            let token = dyno_host::random_token().context(failed)?;
            let is_same =
                dyno_database::is_same_server(before.as_mut(), connection.as_mut(), &token);
            if is_same.context(failed)? == Some(true) {
                return fail(format!(
                    "{name} is {other} under another address: list each server once in `url` and \
                     `more_urls`"
                ));
            }
        }
        known.push((name, connection));
    }
    Ok(())
}

/// After the load: what the audit finds through the first server is found through each other one.
pub(super) fn after(trial: &mut Trial<'_, '_>) -> Result {
    let began = trial.lab.clock.now();
    let rows = agreed(trial)?.into_iter().map(|(name, answer)| {
        let is_equal = answer.is_ok();
        row(
            format!("{name} has the same data as the first server"),
            "the same number of rows, and the same answers to the audit's queries".to_owned(),
            answer.map_or_else(|why| format!("it {why}"), |n| format!("{n} of {n}")),
            is_equal,
        )
    });
    let rows = rows.collect();
    trial.audited(rows, began)
}

/// What [`compare`] finds as soon as all is well, or at the end of the time limit.
fn agreed(trial: &Trial<'_, '_>) -> Result<Vec<(String, Result<usize, String>)>> {
    let clock = &trial.lab.clock;
    let until = clock.now() + LIMIT;
    loop {
        let found = compare(trial)?;
        if found.iter().all(|(_, answer)| answer.is_ok()) || clock.now() >= until {
            return Ok(found);
        }
        clock.sleep_until(clock.now() + POLL);
    }
}

/// For each further server, the number of audit queries that it answers like the first, after a comparison of row
/// counts; or the difference.
fn compare(trial: &Trial<'_, '_>) -> Result<Vec<(String, Result<usize, String>)>> {
    let Some(first) = trial.deployment.server() else { return Ok(Vec::new()) };
    let dialect = first.dialect();
    let tables = trial.workload.tables(dialect);
    let counts = tables.iter().map(|table| format!("SELECT COUNT(*) FROM {}", table.name));
    let mut queries: Vec<String> = counts.collect();
    queries.extend(trial.workload.audit_queries(dialect));
    let expected = ask(&first.connector(), &queries).context("the first server does not answer")?;
    let servers = trial.deployment.further_servers().map(|(name, server, endpoint)| {
        let answers = ask(&server.connector(), &queries);
        let answer = answers.map_err(|why| format!("does not answer: {why}"));
        let answer = answer.and_then(|answers| same(&expected, &answers));
        (format!("{name} ({endpoint})"), answer)
    });
    Ok(servers.collect())
}

/// How many answers there are, if all are the same.
fn same(expected: &[TextRows], answers: &[TextRows]) -> Result<usize, String> {
    let differing = expected.iter().zip(answers).filter(|(one, other)| one != other).count();
    match differing {
        0 => Ok(expected.len()),
        n => Err(format!(
            "has different data from the first server, according to {n} of {} queries",
            expected.len()
        )),
    }
}
