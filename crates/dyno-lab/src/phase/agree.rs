//! Compares the members' data with the first member's after the last step.

use dyno_database::{
    Following, Replicating, ReplicationMode, Server, SplitBy, tables_that_differ,
    wait_until_caught_up, wait_until_synced,
};
use dyno_record::AuditRow;
use dyno_units::{Clock, Nanoseconds};

use crate::deployment::split_by;
use crate::{Result, Source, Trial};

/// How long a replica may take to apply what it is behind.
const LIMIT: Nanoseconds = Nanoseconds::from_secs(120);

/// Waits until the replicas have caught up, and compares their tables with those of the primary. What
/// differs is a demand of the audit that is not met.
pub(super) fn replicas(trial: &mut Trial<'_, '_>) -> Result {
    let lab = trial.lab;
    let began = lab.clock.now();
    if trial.deployment.promoted.get().is_some() {
        // Nobody follows the first primary any more, nor yet the new one.
        return Ok(());
    }
    let Some(replicating) = trial.deployment.replicating(lab) else { return Ok(()) };
    let Some(primary) = trial.deployment.server() else { return Ok(()) };
    let replicas = trial.deployment.replicas();
    let clock = lab.clock.as_ref();
    let rows = replicas.iter().flat_map(|one| compare(replicating, primary, one, clock));
    let mut rows: Vec<AuditRow> = rows.collect();
    rows.extend(replicas.first().and_then(|replica| acknowledged(replicating, replica)));
    trial.audited(rows, began)
}

/// Waits until all nodes of a cluster have the same transactions, so that an audit of one holds for all.
pub(super) fn sync(trial: &mut Trial<'_, '_>) -> Result {
    let lab = trial.lab;
    let Some(clustering) = trial.deployment.clustering(lab) else { return Ok(()) };
    let began = lab.clock.now();
    let nodes = trial.deployment.nodes();
    let synced = wait_until_synced(clustering, &nodes, LIMIT, lab.clock.as_ref());
    let name = "all nodes have committed the same transactions after the load".to_owned();
    let found = in_time(name, synced, lab.clock.now().saturating_sub(began));
    trial.audited(vec![found], began)
}

pub(super) fn nodes(trial: &mut Trial<'_, '_>) -> Result {
    let lab = trial.lab;
    let Some(clustering) = trial.deployment.clustering(lab) else { return Ok(()) };
    let began = lab.clock.now();
    let Some(first) = trial.deployment.server() else { return Ok(()) };
    let others = trial.deployment.members.iter().filter_map(|member| {
        let server = member.server()?;
        matches!(member.source, Source::Join(_)).then_some((&member.facts.name, server))
    });
    let first_name = dyno_database::node_name(1);
    let rows = others.map(|(name, server)| {
        let found =
            tables_that_differ(clustering.tables(), &first.connector(), &server.connector());
        equal(format!("{name} has the same rows as {first_name}, by count and checksum"), found)
    });
    let rows = rows.collect();
    trial.audited(rows, began)
}

/// Compares the router's row counts with the sums of its shards. A difference fails a demand of the audit.
pub(super) fn shards(trial: &mut Trial<'_, '_>) -> Result {
    let lab = trial.lab;
    let Some((sharding, router, shards)) = trial.deployment.sharding(lab) else {
        return Ok(());
    };
    let began = lab.clock.now();
    let by = split_by(trial.variant);
    let found = dyno_database::tables_that_differ_from_shards(sharding, &router, &shards, by);
    let found = found.map_err(|error| error.message);
    let name = match by {
        SplitBy::Table => "the router counts as many rows as all shards together",
        SplitBy::Key => {
            "the router counts as many rows as all shards together, and each shard has only \
             its own rows"
        }
    };
    let name = name.to_owned();
    trial.audited(vec![equal(name, found)], began)
}

/// The demand that a member has the rows of another one.
fn equal(name: String, found: Result<(Vec<String>, usize), String>) -> AuditRow {
    let (measured, is_equal) = match found {
        Ok((differing, n)) if differing.is_empty() => (format!("{n} of {n} tables"), true),
        Ok((differing, _)) => (format!("differences in {}", differing.join(", ")), false),
        Err(why) => (why, false),
    };
    row(name, "all tables".to_owned(), measured, is_equal)
}

fn in_time(name: String, done: Result<(), String>, took: Nanoseconds) -> AuditRow {
    let pass = done.is_ok();
    let measured = done.map_or_else(|why| why, |()| format!("{:.1} s", took.as_secs_f64()));
    row(name, format!("within {LIMIT}"), measured, pass)
}

fn compare(
    replicating: &dyn Replicating,
    primary: &dyn Server,
    replica: &Following,
    clock: &dyn Clock,
) -> Vec<AuditRow> {
    let name = &replica.name;
    let began = clock.now();
    let Some(mut meter) = replica.lag_meter(replicating) else { return Vec::new() };
    let caught_up = wait_until_caught_up(meter.as_mut(), LIMIT, clock);
    let demand = format!("{name} catches up with the primary after the load");
    let mut rows = vec![in_time(demand, caught_up, clock.now().saturating_sub(began))];
    if rows[0].pass {
        let (primary, replica) = (primary.connector(), replica.server.connector());
        let found = tables_that_differ(replicating.tables(), &primary, &replica);
        let demand = format!("{name} has the same rows as the primary, by count and checksum");
        rows.push(equal(demand, found));
    }
    rows
}

/// Whether each commit waited for a replica, if it was to; none if that is not counted.
fn acknowledged(replicating: &dyn Replicating, replica: &Following) -> Option<AuditRow> {
    if replica.follow.replication.mode != ReplicationMode::Synchronous {
        return None;
    }
    let (measured, pass) = match replicating.unacknowledged(&replica.follow.primary) {
        Ok(None) => return None,
        Ok(Some(n)) => (n.to_string(), n == 0),
        Err(error) => (error.message, false),
    };
    let name = "commits that did not wait for a replica".to_owned();
    Some(row(name, "0".to_owned(), measured, pass))
}

pub(super) fn row(name: String, expected: String, measured: String, pass: bool) -> AuditRow {
    AuditRow { name, expected, measured, pass, is_undecided: false }
}
