//! A running server, reached by its URL.

use dyno_workload::{Connection, Connector, Dialect, StatementError};

use super::MySqlConnection;
use crate::catalog::{claim_catalog, contents, drop_claimed_tables};
use crate::transport::CATALOG_LIMIT;
use crate::waiting::SET_UP_LIMIT;
use crate::{AttachOptions, DeployError, Endpoint, LocalServer, Server, ServerFacts};

/// The server's error for a catalog that does not exist.
const UNKNOWN_CATALOG: &str = "1049";

struct AttachedServer {
    endpoint: Endpoint,
    // Whether Dyno made the catalog, and may drop it.
    made_catalog: bool,
    keeps_tables: bool,
    // The parts of it on this host, to be observed.
    local: Option<LocalServer>,
}

/// Uses a running server: makes the catalog if it is missing, and claims it.
pub(crate) fn attach(
    endpoint: &Endpoint,
    options: AttachOptions,
) -> Result<Box<dyn Server>, DeployError> {
    let mut connection = MySqlConnection::open(endpoint, None)
        .map_err(|error| DeployError::new(error.to_string()))?;
    let made_catalog = use_catalog(&mut connection, &endpoint.catalog, !options.makes_nothing)
        .map_err(|error| DeployError::new(format!("the database cannot be used: {error}")))?;
    let local = LocalServer::find(endpoint, &mut connection);
    let keeps_tables = options.keep_tables || options.makes_nothing;
    let server = AttachedServer { endpoint: endpoint.clone(), made_catalog, keeps_tables, local };
    if options.makes_nothing {
        return Ok(Box::new(server));
    }
    if let Err(error) = claim_catalog(&mut connection, options.allow_existing_tables) {
        if made_catalog {
            // The first error is the one to report.
            let _ = drop_catalog(&mut connection, &endpoint.catalog);
        }
        return Err(DeployError::new(error.to_string()));
    }
    Ok(Box::new(server))
}

/// Makes a catalog the connection's default. True if it had to be made, where that is allowed.
fn use_catalog(
    connection: &mut MySqlConnection,
    catalog: &str,
    may_make: bool,
) -> Result<bool, StatementError> {
    let quoted = format!("`{}`", catalog.replace('`', "``"));
    match connection.query(&format!("USE {quoted}")) {
        Ok(_) => return Ok(false),
        Err(error) if error.code == UNKNOWN_CATALOG && may_make => {}
        Err(error) => return Err(error),
    }
    connection.set_cold_limit(CATALOG_LIMIT.0);
    connection.query(&format!("CREATE DATABASE {quoted}"))?;
    connection.set_cold_limit(SET_UP_LIMIT.0);
    connection.query(&format!("USE {quoted}"))?;
    Ok(true)
}

/// Drops the connection's catalog, unless another user has put something into it: tables, routines,
/// events.
fn drop_catalog(connection: &mut MySqlConnection, catalog: &str) -> Result<(), StatementError> {
    if contents(connection)?.is_empty() {
        connection.query(&format!("DROP DATABASE `{}`", catalog.replace('`', "``")))?;
    }
    Ok(())
}

impl Server for AttachedServer {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn connector(&self) -> Connector {
        super::connector(self.endpoint.clone())
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn local(&self) -> Option<&LocalServer> {
        self.local.as_ref()
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        super::endpoint_facts(&self.endpoint)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        if self.keeps_tables {
            return Ok(());
        }
        let failed = |error: String| {
            DeployError::new(format!(
                "Dyno's tables on {} were not dropped: {error}",
                self.endpoint
            ))
        };
        let mut connection =
            super::connect(&self.endpoint).map_err(|error| failed(error.to_string()))?;
        connection.set_cold_limit(CATALOG_LIMIT.0);
        drop_claimed_tables(&mut connection).map_err(|error| failed(error.to_string()))?;
        if self.made_catalog {
            drop_catalog(&mut connection, &self.endpoint.catalog)
                .map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }
}
