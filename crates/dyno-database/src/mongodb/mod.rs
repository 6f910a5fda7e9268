//! Document stores of MongoDB's protocol: a private FerretDB from the program on this machine, or any server by URL.
//! To read its numbers:
//!
//! - Each operation is a command in one OP_MSG, its answer another, without compression. A command is a template into
//!   which values are written.
//! - Commands have no write or read concern: the server's apply.
//! - There are no sessions, and no retries as in drivers: a failed command is an error of its class.
//! - The URL names the one server: a `mongos`, a standalone server, or a replica set's primary.
//!
//! FerretDB 1 keeps documents as JSON in SQLite or PostgreSQL. Dyno starts it with SQLite, a file per database.

mod attached;
mod cold;
mod connection;
mod facts;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod login;
mod notes;
mod private;
mod product;
mod reply;
mod settings;
mod template;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use product::FAMILY;
pub(crate) use product::PROTOCOL;

use dyno_workload::Connector;

use crate::Endpoint;
use crate::error::Result;
use crate::scram::ScramCache;
use connection::MongoConnection;

/// Opens connections to one endpoint, which derive the keys of its password only once.
fn connector(endpoint: Endpoint) -> Connector {
    let cache = ScramCache::default();
    crate::server::connector(move || login::open(&endpoint, &cache))
}

/// Opens one connection; cold calls have half a minute each.
fn open(endpoint: &Endpoint) -> Result<MongoConnection> {
    Ok(login::open(endpoint, &ScramCache::default())?)
}
