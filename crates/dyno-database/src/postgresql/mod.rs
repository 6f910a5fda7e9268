//! PostgreSQL: a private server from the programs on this machine, or one that runs already.

mod attached;
mod check;
mod connection;
mod data;
pub(crate) mod debt;
mod facts;
mod files;
mod private;
pub(crate) mod probe;
mod programs;
mod protocol;
mod settings;
mod startup;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use dyno_workload::{ConnectError, Connection, Connector};

pub(crate) use attached::attach;
pub(crate) use check::check_settings;
pub use connection::PgConnection;
pub(crate) use data::data_shape;
pub(crate) use files::{file_kind, thread_group};
pub(crate) use private::start;
pub use probe::pgbouncer::{Pool, parse_pools};
pub(crate) use settings::refused_setting;

use crate::{DeployError, Endpoint, ServerFacts};
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

/// The same, of the type that they are.
fn opener(endpoint: Endpoint) -> impl Fn() -> Result<PgConnection, ConnectError> {
    let cache = ScramCache::default();
    move || match startup::open(&endpoint, &cache) {
        Ok(mut connection) => {
            // What is to be done with it may take its time: to make an index, to count all rows.
            connection.set_cold_limit(0);
            Ok(connection)
        }
        Err(failure) => Err(failure.error),
    }
}

/// What the server at an endpoint says of itself.
pub(crate) fn endpoint_facts(endpoint: &Endpoint) -> Result<ServerFacts, DeployError> {
    facts::ask(endpoint)
}

/// An error of a statement that Dyno needed for itself.
fn statement_failed(what: &str, error: impl std::fmt::Display) -> DeployError {
    DeployError::new(format!("PostgreSQL: cannot {what}: {error}"))
}

/// A name as SQL takes it, whatever characters are in it.
fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
