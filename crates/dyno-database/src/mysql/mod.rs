//! MariaDB and MySQL. The connection is Dyno's own, from framing up: thousands share an event loop,
//! at less cost than the server's client library. Only the arithmetic of authentication plug-ins
//! comes from elsewhere.

mod account;
mod attached;
mod channel;
mod check;
mod connection;
mod cost;
pub(crate) mod debt;
mod dump;
mod facts;
mod files;
mod galera;
mod group;
mod install;
mod load;
mod login;
mod option_file;
mod packages;
mod private;
pub(crate) mod probe;
mod product;
mod protocol;
mod reach;
mod replica;
mod spider;
pub(crate) mod sql;

use dyno_workload::{ConnectError, Connection, Connector};

pub use connection::MySqlConnection;
pub use probe::{Level, RocksDbStatus, parse_innodb_status, parse_rocksdb_status};
pub(crate) use product::FAMILY;
pub use product::PROTOCOL;
#[cfg(any(test, fuzzing))]
pub(crate) use protocol::fuzz;

use crate::error::{Context, Result};
use crate::transport::CATALOG_LIMIT;
use crate::{Endpoint, ServerFacts};

pub fn connector(endpoint: Endpoint) -> Connector {
    crate::server::connector(move || connect(&endpoint))
}

pub(crate) fn endpoint_facts(endpoint: &Endpoint) -> Result<ServerFacts> {
    let mut connection = connect(endpoint)?;
    facts::ask(&mut connection, endpoint).context("the server's facts cannot be read")
}

/// Opens one whose calls may take as long as what concerns a whole catalog.
fn open(endpoint: &Endpoint) -> Result<MySqlConnection> {
    let mut connection = connect(endpoint)?;
    connection.set_cold_limit(CATALOG_LIMIT.0);
    Ok(connection)
}

/// Opens one connection to the endpoint's catalog. Blocks.
pub fn connect(endpoint: &Endpoint) -> Result<MySqlConnection, ConnectError> {
    MySqlConnection::open(endpoint, Some(&endpoint.catalog))
}
