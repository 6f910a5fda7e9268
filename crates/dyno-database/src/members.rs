//! Wires the members of a deployment: replicas stream, a row travels, tables agree.

use std::sync::Arc;

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Connector};

use crate::dialects::listed_tables;
use crate::error::Result;
use crate::part::{Follow, LagMeter, Part, ReplicationMode};
use crate::{
    Clustering, DeployError, Product, Replicating, Replication, Server, ServerSpec, Sharding,
};

const STREAM_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

/// How long a row may take from the primary to a replica.
const TRAVEL_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);

const STATEMENT_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

const POLL: Nanoseconds = Nanoseconds::from_millis(20);

const TRAVEL_TABLE: &str = "dyno_travelling_row";

/// A replica that is up and streams.
pub struct Following {
    pub name: String,
    pub server: Box<dyn Server>,
    pub follow: Follow,
}

pub fn replicating(product: &Product) -> Result<&dyn Replicating> {
    product.replicating.ok_or_else(|| {
        let title = &product.spec.title;
        DeployError::new(format!("{title} has no replicas; leave `replicas` out"))
    })
}

/// Fails if the product has no clusters of this kind.
pub fn clustering<'p>(product: &'p Product, kind: &str) -> Result<&'p dyn Clustering> {
    product.clustering.filter(|clustering| clustering.kind() == kind).ok_or_else(|| {
        let title = &product.spec.title;
        DeployError::new(format!(
            "{title} has no cluster `{kind}`; leave it out, or choose another product"
        ))
    })
}

pub fn sharding(product: &Product) -> Result<&dyn Sharding> {
    product.sharding.ok_or_else(|| {
        let title = &product.spec.title;
        DeployError::new(format!("{title} has no shards; leave `shards` out"))
    })
}

/// See [`Replicating::lead`]. Fails if the primary cannot be followed.
pub(crate) fn lead(
    product: &Product,
    primary: &dyn Server,
    replication: &Replication,
) -> Result<()> {
    let endpoint = primary.endpoint().ok_or_else(no_address)?;
    replicating(product)?.lead(endpoint, replication)
}

fn no_address() -> DeployError {
    DeployError::new("the primary has no address at which a replica could reach it")
}

/// Starts a replica with `start`, and waits until it streams. Its data are a copy of those that the primary started
/// on, unless both began empty or the product copies. Fails if it does not start or stream.
pub fn start_replica<E: From<DeployError>>(
    product: &Product,
    spec: &ServerSpec,
    (primary, replication, number): (&dyn Server, &Replication, u32),
    clock: &Arc<dyn Clock>,
    start: impl FnOnce(&ServerSpec) -> Result<Box<dyn Server>, E>,
) -> Result<Following, E> {
    let primary = primary.endpoint().ok_or_else(no_address)?.clone();
    let follow = Follow { number, primary, replication: replication.clone() };
    let spec = ServerSpec { part: Part::Replica(follow.clone()), ..spec.clone() };
    let replicating = replicating(product)?;
    let following = Following { name: follow.name(), server: start(&spec)?, follow };
    match wait_until_streaming(&following, replicating, clock) {
        Ok(()) => Ok(following),
        Err(message) => {
            let log = following.server.log_tail(30);
            // The first error is the one to report.
            let _ = following.server.stop();
            Err(DeployError { message, log }.into())
        }
    }
}

impl Following {
    /// Reads how far it is behind; none if it has no address.
    pub fn lag_meter(&self, replicating: &dyn Replicating) -> Option<Box<dyn LagMeter>> {
        Some(replicating.lag_meter(&self.follow, self.server.endpoint()?))
    }
}

fn wait_until_streaming(
    following: &Following,
    replicating: &dyn Replicating,
    clock: &Arc<dyn Clock>,
) -> Result<(), String> {
    let name = &following.name;
    let mut meter = following.lag_meter(replicating).ok_or("a replica has no address")?;
    let until = clock.now() + STREAM_LIMIT;
    loop {
        let reason = match meter.read(clock.now()) {
            Ok(lag) if lag.is_streaming => return Ok(()),
            Ok(lag) => lag.reason,
            Err(reason) => reason,
        };
        if clock.now() >= until {
            return Err(format!(
                "{name} is still not streaming {STREAM_LIMIT} after its start: {reason}"
            ));
        }
        clock.sleep_until(clock.now() + POLL);
    }
}

/// Makes commits wait if so wanted; fails if a row does not reach each replica.
pub fn finish(
    product: &Product,
    primary: &dyn Server,
    replicas: &[&Following],
    clock: &dyn Clock,
) -> Result<()> {
    let Some(first) = replicas.first() else { return Ok(()) };
    if first.follow.replication.mode == ReplicationMode::Synchronous {
        replicating(product)?.wait_for_replicas(&first.follow.primary)?;
    }
    send_row(replicating(product)?, &primary.connector(), replicas, clock).map_err(DeployError::new)
}

fn send_row(
    replicating: &dyn Replicating,
    primary: &Connector,
    replicas: &[&Following],
    clock: &dyn Clock,
) -> Result<(), String> {
    let token = dyno_host::random_token().map_err(|error| error.to_string())?;
    let mut connection = connect(primary)?;
    let mut send = |sql: String| {
        let sent = connection.query(&sql);
        sent.map_err(|error| format!("the primary refuses the test row: {error}"))
    };
    send(format!("CREATE TABLE {TRAVEL_TABLE} (token VARCHAR(40) PRIMARY KEY)"))?;
    send(format!("INSERT INTO {TRAVEL_TABLE} VALUES ('{token}')"))?;
    for replica in replicas {
        wait_for_row(replicating, replica, &token, clock)?;
    }
    send(format!("DROP TABLE {TRAVEL_TABLE}"))?;
    Ok(())
}

fn wait_for_row(
    replicating: &dyn Replicating,
    replica: &Following,
    token: &str,
    clock: &dyn Clock,
) -> Result<(), String> {
    let name = &replica.name;
    let mut meter = replica.lag_meter(replicating).ok_or("a replica has no address")?;
    wait_until_caught_up(meter.as_mut(), TRAVEL_LIMIT, clock)
        .map_err(|why| format!("{name} does not follow the primary: {why}"))?;
    let rows = connect(&replica.server.connector())?
        .query(&format!("SELECT token FROM {TRAVEL_TABLE}"))
        .map_err(|error| format!("{name} does not have the table that the primary has: {error}"))?;
    match rows == [[Some(token.to_owned())]] {
        true => Ok(()),
        false => Err(format!("a row that was written on the primary has not arrived on {name}")),
    }
}

fn connect(connector: &Connector) -> Result<Box<dyn Connection>, String> {
    let mut connection = connector().map_err(|error| error.to_string())?;
    connection.set_cold_limit(STATEMENT_LIMIT.0);
    Ok(connection)
}

/// Fails, with the lag, after `limit`.
pub fn wait_until_caught_up(
    meter: &mut dyn LagMeter,
    limit: Nanoseconds,
    clock: &dyn Clock,
) -> Result<(), String> {
    let until = clock.now() + limit;
    loop {
        let lag = meter.read(clock.now())?;
        if lag.is_caught_up() {
            return Ok(());
        }
        if clock.now() >= until {
            return Err(match (lag.is_streaming, lag.bytes) {
                (false, _) => format!("it does not stream: {}", lag.reason),
                (true, Some(bytes)) => format!("{bytes} bytes of log behind after {limit}"),
                (true, None) => "it does not report how far behind it is".to_owned(),
            });
        }
        clock.sleep_until(clock.now() + POLL);
    }
}

/// The tables whose row count or checksum differs, and the number compared. The statement `list` lists
/// tables. Nothing may write meanwhile. Fails if a table cannot be read.
pub fn tables_that_differ(
    list: &str,
    first: &Connector,
    other: &Connector,
) -> Result<(Vec<String>, usize), String> {
    let mut connections = [connect(first)?, connect(other)?];
    // A large table takes its time.
    connections.iter_mut().for_each(|connection| connection.set_cold_limit(0));
    let tables = |connection| listed_tables(connection, list).map_err(|error| error.to_string());
    let [first, other] = &mut connections;
    let all = tables(first.as_mut())?;
    let theirs = tables(other.as_mut())?;
    let mut differing: Vec<String> =
        theirs.into_iter().filter(|table| !all.contains(table)).collect();
    for table in &all {
        let ours = crate::digest(first.as_mut(), table).map_err(|error| error.to_string())?;
        // What is missing there differs.
        if crate::digest(other.as_mut(), table).ok() != Some(ours) {
            differing.push(table.clone());
        }
    }
    let differing = differing.iter().map(|table| first.shown(table)).collect();
    Ok((differing, all.len()))
}
