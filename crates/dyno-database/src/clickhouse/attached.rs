//! A ClickHouse server that Dyno did not start.

use std::sync::{Mutex, PoisonError};

use dyno_units::Nanoseconds;
use dyno_workload::{Connection, Connector, Dialect};

use super::connection::{self, ClickHouseConnection};
use super::{facts, statement_failed};
use crate::catalog::contents;
use crate::transport::CATALOG_LIMIT;
use crate::{
    AttachOptions, DeployError, Endpoint, LocalServer, Server, ServerFacts, claim_catalog,
    drop_claimed_tables,
};

/// The catalog from which others are made and dropped.
const MAINTENANCE_CATALOG: &str = "default";

const ALIVE_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

struct AttachedServer {
    endpoint: Endpoint,
    guard: Mutex<ClickHouseConnection>,
    is_made: bool,
    keeps_tables: bool,
    local: Option<LocalServer>,
}

fn deploy_error(error: impl std::fmt::Display) -> DeployError {
    DeployError::new(error.to_string())
}

pub(super) fn open(endpoint: &Endpoint) -> Result<ClickHouseConnection, DeployError> {
    connection::open(endpoint, None).map_err(|failure| deploy_error(failure.error))
}

/// A statement about the catalog, sent from another one.
fn maintain(endpoint: &Endpoint, words: &str) -> Result<(), DeployError> {
    let catalog = &endpoint.catalog;
    let is_plain = catalog.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_plain || catalog.is_empty() {
        return Err(DeployError::new(format!(
            "Dyno creates no database named `{catalog}` in ClickHouse, because the name would have \
             to be quoted; choose a name of letters, digits and `_`"
        )));
    }
    let elsewhere = Endpoint { catalog: MAINTENANCE_CATALOG.to_owned(), ..endpoint.clone() };
    let mut connection = open(&elsewhere)?;
    connection.set_cold_limit(CATALOG_LIMIT.0);
    let failed = |error| statement_failed(&format!("{words} `{catalog}`"), error);
    connection.query(&format!("{words} {catalog}")).map(drop).map_err(failed)
}

/// Uses a running server; makes the catalog if it is missing.
pub(super) fn attach(
    endpoint: &Endpoint,
    options: AttachOptions,
) -> Result<Box<dyn Server>, DeployError> {
    let mut is_made = false;
    let mut guard = match connection::open(endpoint, None) {
        Err(failure) if failure.lacks_database && !options.makes_nothing => {
            maintain(endpoint, "CREATE DATABASE")?;
            is_made = true;
            open(endpoint)?
        }
        other => other.map_err(|failure| deploy_error(failure.error))?,
    };
    if !options.makes_nothing
        && let Err(error) = claim_catalog(&mut guard, options.allow_existing_tables)
    {
        drop(guard);
        if is_made {
            maintain(endpoint, "DROP DATABASE")?;
        }
        return Err(deploy_error(error));
    }
    let local = LocalServer::find(endpoint, &mut guard);
    Ok(Box::new(AttachedServer {
        endpoint: endpoint.clone(),
        guard: Mutex::new(guard),
        is_made,
        keeps_tables: options.keep_tables || options.makes_nothing,
        local,
    }))
}

impl Server for AttachedServer {
    fn dialect(&self) -> Dialect {
        Dialect::ClickHouse
    }

    fn connector(&self) -> Connector {
        connection::connector(self.endpoint.clone(), None)
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn local(&self) -> Option<&LocalServer> {
        self.local.as_ref()
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        facts::ask(&self.endpoint, &mut open(&self.endpoint)?)
    }

    fn blocks_worker(&self) -> bool {
        true
    }

    /// The server does not end a connection when it goes down that it has ended as idle before: it is asked.
    fn down(&mut self) -> Option<String> {
        let guard = self.guard.get_mut().unwrap_or_else(PoisonError::into_inner);
        guard.set_cold_limit(ALIVE_LIMIT.0);
        let reason = guard.query("SELECT 1").err()?;
        match open(&self.endpoint) {
            Ok(connection) => {
                *guard = connection;
                None
            }
            Err(error) => Some(format!("{reason}; {error}")),
        }
    }

    /// Bytes of the catalog's columns, compressed, as the server reports them.
    fn data_bytes(&self) -> Option<u64> {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = "SELECT sum(data_compressed_bytes + marks_bytes) FROM system.columns \
                     WHERE database = currentDatabase()";
        guard.query(asked).ok()?.into_iter().flatten().next()??.parse().ok()
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let AttachedServer { endpoint, guard, is_made, keeps_tables, .. } = *self;
        if keeps_tables {
            return Ok(());
        }
        drop(guard);
        let mut connection = open(&endpoint)?;
        connection.set_cold_limit(CATALOG_LIMIT.0);
        let failed = |error: String| {
            DeployError::new(format!("Dyno's tables on {endpoint} were not dropped: {error}"))
        };
        drop_claimed_tables(&mut connection).map_err(|error| failed(error.to_string()))?;
        // What others have made in it prevents its removal.
        let is_empty = contents(&mut connection).map_err(deploy_error)?.is_empty();
        if is_made && is_empty {
            return maintain(&endpoint, "DROP DATABASE");
        }
        Ok(())
    }
}
