//! Stores of documents that speak MongoDB's protocol: a private FerretDB from the program on this machine, or any
//! running server by its URL.
//!
//! What an expert must know to read its numbers:
//!
//! - Each operation is a command in one OP_MSG, and its answer another; nothing is compressed. A command is a
//!   template that is made once, with its values written into it.
//! - Commands give no write concern and no read concern: those of the server hold.
//! - There are no sessions and no retries of the driver's kind: a command that fails is an error of its class.
//! - The connection is to the one server that the URL names: a `mongos`, a server that stands alone, or the primary of
//!   a replica set.
//!
//! FerretDB 1 keeps documents as JSON in SQLite or PostgreSQL. Dyno starts it with SQLite, a file for each database.

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
mod programs;
mod reply;
mod settings;
mod template;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use product::FAMILY;
pub(crate) use product::PROTOCOL;

use dyno_workload::Connector;

use crate::scram::ScramCache;
use crate::{DeployError, Endpoint};
use connection::MongoConnection;

/// Opens connections to one endpoint, which derive the keys of its password only once.
fn connector(endpoint: Endpoint) -> Connector {
    let cache = ScramCache::default();
    crate::server::connector(move || login::open(&endpoint, &cache))
}

/// Opens one connection; cold calls have half a minute each.
fn open(endpoint: &Endpoint) -> Result<MongoConnection, DeployError> {
    Ok(login::open(endpoint, &ScramCache::default())?)
}
