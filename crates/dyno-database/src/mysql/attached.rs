//! A running server, reached by its URL.

use dyno_workload::{Connection, StatementError};

use super::MySqlConnection;
use super::sql::quoted;
use crate::attached::{Attached, Hold, stays};
use crate::catalog::{claim_catalog, contents, drop_claimed_tables};
use crate::error::{Context, Result, fail};
use crate::transport::CATALOG_LIMIT;
use crate::waiting::SET_UP_LIMIT;
use crate::{AttachOptions, Endpoint, LocalServer, Server};

/// The server's error for a catalog that does not exist.
const UNKNOWN_CATALOG: &str = "1049";

/// Whether Dyno made the catalog, and may drop it.
struct Made {
    catalog: bool,
}

/// Uses a running server: makes the catalog if it is missing, and claims it.
pub(crate) fn attach(endpoint: &Endpoint, options: AttachOptions) -> Result<Box<dyn Server>> {
    let mut connection = MySqlConnection::open(endpoint, None)?;
    let catalog = use_catalog(&mut connection, &endpoint.catalog, !options.makes_nothing)
        .context("the database cannot be used")?;
    let local = LocalServer::find(endpoint, &mut connection);
    if !options.makes_nothing
        && let Err(error) = claim_catalog(&mut connection, options.allow_existing_tables)
    {
        drop(connection);
        return fail(match catalog && !drop_made(endpoint) {
            true => stays(endpoint, error),
            false => error.to_string(),
        });
    }
    Ok(Box::new(Attached::new(endpoint, options, local, Made { catalog })))
}

/// Makes a catalog the connection's default. True if it had to be made, where that is allowed.
fn use_catalog(
    connection: &mut MySqlConnection,
    catalog: &str,
    may_make: bool,
) -> Result<bool, StatementError> {
    let quoted = quoted(catalog);
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

/// Drops a catalog that cannot be used after all, over a connection of its own: the one that was used may be lost. False
/// if it stays.
fn drop_made(endpoint: &Endpoint) -> bool {
    super::connect(endpoint).is_ok_and(|mut connection| {
        connection.set_cold_limit(CATALOG_LIMIT.0);
        drop_catalog(&mut connection, &endpoint.catalog).is_ok_and(|is_dropped| is_dropped)
    })
}

/// False if another user has put tables, routines or events into it, for which it stays.
fn drop_catalog(connection: &mut MySqlConnection, catalog: &str) -> Result<bool, StatementError> {
    let is_empty = contents(connection)?.is_empty();
    if is_empty {
        connection.query(&format!("DROP DATABASE {}", quoted(catalog)))?;
    }
    Ok(is_empty)
}

impl Hold for Made {
    fn remove(self: Box<Self>, endpoint: &Endpoint) -> Result<()> {
        let failed = format!("Dyno's tables on {endpoint} were not dropped");
        let mut connection = super::connect(endpoint).context(&failed)?;
        connection.set_cold_limit(CATALOG_LIMIT.0);
        drop_claimed_tables(&mut connection).context(&failed)?;
        match self.catalog {
            true => drop_catalog(&mut connection, &endpoint.catalog).context(&failed).map(drop),
            false => Ok(()),
        }
    }
}
