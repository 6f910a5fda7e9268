//! PostgreSQL: a private server from the programs on this machine, or a running one.

mod attached;
mod check;
mod connection;
mod cost;
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
pub(crate) mod sql;
mod startup;
#[cfg(test)]
mod tests;
mod wire;

use dyno_workload::{ConnectError, Connector};

pub use connection::PgConnection;
pub use probe::pgbouncer::{Pool, parse_pools};
pub(crate) use product::FAMILY;
pub use product::PROTOCOL;
#[cfg(any(test, fuzzing))]
pub(crate) use protocol::fuzz;

use crate::Endpoint;
use protocol::ScramCache;

/// Opens one connection; blocks. [`connector`] is better for many.
pub fn connect(endpoint: &Endpoint) -> Result<PgConnection, ConnectError> {
    startup::open(endpoint, &ScramCache::default()).map_err(|failure| failure.error)
}

/// Opens connections to one endpoint, which derive the keys of its password only once.
pub fn connector(endpoint: Endpoint) -> Connector {
    crate::server::connector(opener(endpoint))
}

fn opener(endpoint: Endpoint) -> impl Fn() -> Result<PgConnection, ConnectError> {
    let cache = ScramCache::default();
    move || startup::open(&endpoint, &cache).map_err(|failure| failure.error)
}

/// For a pooler that may send each transaction to another server: statements have no names.
pub(crate) fn pooled_connector(endpoint: Endpoint) -> Connector {
    let open = opener(endpoint);
    crate::server::connector(move || Ok(open()?.parsing_each()))
}
