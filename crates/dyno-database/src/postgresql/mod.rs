//! PostgreSQL: a private server from the programs on this machine, or one that is already running.

mod attached;
mod check;
mod connection;
mod cost;
mod data;
pub(crate) mod debt;
mod facts;
mod files;
mod packages;
mod prepared;
mod private;
pub(crate) mod probe;
mod product;
mod programs;
mod protocol;
mod replica;
mod routines;
pub(crate) mod settings;
mod shards;
mod sql;
mod startup;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use dyno_workload::{ConnectError, Connection, Connector};

pub use connection::PgConnection;
pub use probe::pgbouncer::{Pool, parse_pools};
pub(crate) use product::FAMILY;
pub use product::PROTOCOL;
#[cfg(any(test, fuzzing))]
pub(crate) use protocol::fuzz;

use crate::{DeployError, Endpoint};
use protocol::ScramCache;

/// Opens one connection; blocks. [`connector`] is better for many.
pub fn connect(endpoint: &Endpoint) -> Result<PgConnection, ConnectError> {
    startup::open(endpoint, &ScramCache::default()).map_err(|failure| failure.error)
}

/// Opens connections to one endpoint, which derive the keys of its password only once.
pub fn connector(endpoint: Endpoint) -> Connector {
    let open = opener(endpoint);
    Arc::new(move || Ok(Box::new(open()?) as Box<dyn Connection>))
}

fn opener(endpoint: Endpoint) -> impl Fn() -> Result<PgConnection, ConnectError> {
    let cache = ScramCache::default();
    move || match startup::open(&endpoint, &cache) {
        Ok(mut connection) => {
            // Its statements may take long, such as creating an index or counting all rows.
            connection.set_cold_limit(0);
            Ok(connection)
        }
        Err(failure) => Err(failure.error),
    }
}

/// Opens connections to a pooler that may send each transaction to another server: no statement has a
/// name.
pub(crate) fn pooled_connector(endpoint: Endpoint) -> Connector {
    let open = opener(endpoint);
    Arc::new(move || Ok(Box::new(open()?.parsing_each()) as Box<dyn Connection>))
}

fn statement_failed(what: &str, error: impl std::fmt::Display) -> DeployError {
    DeployError::new(format!("PostgreSQL: cannot {what}: {error}"))
}

fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
