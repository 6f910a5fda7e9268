//! A ClickHouse server that Dyno did not start.

use dyno_units::Nanoseconds;
use dyno_workload::Connection;

use super::connection::{self, ClickHouseConnection};
use crate::attached::{Attached, Hold, replaced, stays};
use crate::catalog::contents;
use crate::error::{Context, DeployError, Result, fail};
use crate::sql::first_cell;
use crate::transport::CATALOG_LIMIT;
use crate::{AttachOptions, Endpoint, LocalServer, Server, claim_catalog, drop_claimed_tables};

/// The catalog from which others are made and dropped.
const MAINTENANCE_CATALOG: &str = "default";

const ALIVE_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

struct GuardedServer {
    guard: ClickHouseConnection,
    /// Whether Dyno made the catalog.
    is_made: bool,
}

pub(super) fn open(endpoint: &Endpoint) -> Result<ClickHouseConnection> {
    connection::open(endpoint, None).map_err(|failure| failure.error.into())
}

/// A statement about the catalog, sent from another one.
fn maintain(endpoint: &Endpoint, words: &str) -> Result<()> {
    let catalog = &endpoint.catalog;
    let is_plain = catalog.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_plain || catalog.is_empty() {
        return fail(format!(
            "Dyno creates no database named `{catalog}` in ClickHouse, because the name would have \
             to be quoted; choose a name of letters, digits and `_`"
        ));
    }
    let elsewhere = Endpoint { catalog: MAINTENANCE_CATALOG.to_owned(), ..endpoint.clone() };
    let mut connection = open(&elsewhere)?;
    connection.set_cold_limit(CATALOG_LIMIT.0);
    let failed = format!("ClickHouse: cannot {words} `{catalog}`");
    connection.query(&format!("{words} {catalog}")).context(failed).map(drop)
}

/// Uses a running server; makes the catalog if it is missing.
pub(super) fn attach(endpoint: &Endpoint, options: AttachOptions) -> Result<Box<dyn Server>> {
    let mut is_made = false;
    let mut guard = match connection::open(endpoint, None) {
        Err(failure) if failure.lacks_database && !options.makes_nothing => {
            maintain(endpoint, "CREATE DATABASE")?;
            is_made = true;
            open(endpoint).map_err(|error| DeployError {
                message: stays(endpoint, &error.message),
                ..error
            })?
        }
        other => other.map_err(|failure| failure.error)?,
    };
    if !options.makes_nothing
        && let Err(error) = claim_catalog(&mut guard, options.allow_existing_tables)
    {
        drop(guard);
        return fail(match is_made && !drop_made(endpoint) {
            true => stays(endpoint, error),
            false => error.to_string(),
        });
    }
    let local = LocalServer::find(endpoint, &mut guard);
    let hold = GuardedServer { guard, is_made };
    Ok(Box::new(Attached::new(endpoint, options, local, hold)))
}

/// Drops a catalog that cannot be used after all, over connections of its own: the one that was used may be lost. False
/// if it stays, as it does if others were quick to put something into it.
fn drop_made(endpoint: &Endpoint) -> bool {
    let is_empty = open(endpoint)
        .is_ok_and(|mut connection| contents(&mut connection).is_ok_and(|left| left.is_empty()));
    is_empty && maintain(endpoint, "DROP DATABASE").is_ok()
}

impl Hold for GuardedServer {
    /// The server does not end a connection when it goes down that it has ended as idle before: it is asked.
    fn down(&mut self, endpoint: &Endpoint) -> Option<String> {
        self.guard.set_cold_limit(ALIVE_LIMIT.0);
        let reason = self.guard.query("SELECT 1").err()?;
        replaced(&mut self.guard, reason, open(endpoint))
    }

    /// Those of its columns, compressed.
    fn data_bytes(&mut self, _: &Endpoint) -> Option<u64> {
        let asked = "SELECT sum(data_compressed_bytes + marks_bytes) FROM system.columns \
                     WHERE database = currentDatabase()";
        first_cell(self.guard.query(asked).ok()?)?.parse().ok()
    }

    fn remove(self: Box<Self>, endpoint: &Endpoint) -> Result<()> {
        let GuardedServer { guard, is_made } = *self;
        drop(guard);
        let mut connection = open(endpoint)?;
        connection.set_cold_limit(CATALOG_LIMIT.0);
        drop_claimed_tables(&mut connection)
            .context(format!("Dyno's tables on {endpoint} were not dropped"))?;
        // What others have made in it prevents its removal.
        match is_made && contents(&mut connection)?.is_empty() {
            true => maintain(endpoint, "DROP DATABASE"),
            false => Ok(()),
        }
    }
}
