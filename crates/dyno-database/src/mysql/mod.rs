//! MariaDB and MySQL.
//!
//! The connection is Dyno's own, from framing up; it shares one event loop with thousands of
//! others and costs less than the server's own client library. Only the arithmetic of the
//! authentication plug-ins comes from elsewhere.

mod account;
mod attached;
mod channel;
mod check;
mod connection;
mod cost;
mod data;
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
mod sql;

use std::sync::Arc;

use dyno_workload::{ConnectError, Connection, Connector};

pub use connection::MySqlConnection;
pub use probe::{Level, RocksDbStatus, parse_innodb_status, parse_rocksdb_status};
pub(crate) use product::FAMILY;
pub use product::PROTOCOL;
#[cfg(any(test, fuzzing))]
pub(crate) use protocol::fuzz;

use crate::{DeployError, Endpoint, ServerFacts};

pub fn connector(endpoint: Endpoint) -> Connector {
    Arc::new(move || {
        let mut connection = connect(&endpoint)?;
        // Its statements may take long, such as creating an index or counting all rows.
        connection.set_cold_limit(0);
        Ok(Box::new(connection) as Box<dyn Connection>)
    })
}

pub(crate) fn endpoint_facts(endpoint: &Endpoint) -> Result<ServerFacts, DeployError> {
    let mut connection = connect(endpoint).map_err(|error| DeployError::new(error.to_string()))?;
    facts::ask(&mut connection, endpoint)
        .map_err(|error| DeployError::new(format!("the server's facts cannot be read: {error}")))
}

/// Opens one connection to the endpoint's catalog. Blocks.
pub fn connect(endpoint: &Endpoint) -> Result<MySqlConnection, ConnectError> {
    MySqlConnection::open(endpoint, Some(&endpoint.catalog))
}
