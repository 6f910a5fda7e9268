//! A PostgreSQL server that somebody else runs.

use std::sync::{Arc, Mutex, PoisonError};

use dyno_host::{DataFiles, Probe, ThreadGroups, ThreadListing};
use dyno_workload::{Connection, Connector, Dialect};

use super::connection::PgConnection;
use super::protocol::ScramCache;
use super::startup::{self, OpenError};
use super::{connect, connector, facts, quote_name, statement_failed, thread_group};
use crate::transport::CATALOG_LIMIT;
use crate::{
    DebtMeter, DeployError, Endpoint, LocalServer, Server, ServerFacts, claim_catalog,
    drop_claimed_tables,
};

/// The catalog from which others are made and dropped.
const MAINTENANCE_CATALOG: &str = "postgres";

/// SQLSTATE `invalid_catalog_name`.
const NO_CATALOG: &str = "3D000";

/// A server that was up before Dyno came.
struct AttachedServer {
    endpoint: Endpoint,
    connector: Connector,
    // Open all the time: its end tells that the server went down, at no cost to the server.
    guard: Mutex<PgConnection>,
    made_catalog: bool,
    // What of it is on this host, to be watched.
    local: Option<LocalServer>,
}

/// Uses a server that runs already; makes the catalog if it is missing.
pub(crate) fn attach(
    endpoint: &Endpoint,
    allow_foreign_tables: bool,
) -> Result<Box<dyn Server>, DeployError> {
    let mut made_catalog = false;
    let mut guard = match startup::open(endpoint, &ScramCache::default()) {
        Err(OpenError { code: Some(code), .. }) if code == NO_CATALOG => {
            make_catalog(endpoint)?;
            made_catalog = true;
            connect(endpoint).map_err(told)?
        }
        other => other.map_err(|failure| told(failure.error))?,
    };
    if let Err(error) = claim_catalog(&mut guard, allow_foreign_tables) {
        drop(guard);
        if made_catalog {
            drop_catalog(endpoint)?;
        }
        return Err(DeployError::new(error.to_string()));
    }
    let local = LocalServer::find(endpoint, &mut guard);
    Ok(Box::new(AttachedServer {
        endpoint: endpoint.clone(),
        local,
        connector: connector(endpoint.clone()),
        guard: Mutex::new(guard),
        made_catalog,
    }))
}

fn told(error: impl std::fmt::Display) -> DeployError {
    DeployError::new(error.to_string())
}

fn maintenance(endpoint: &Endpoint) -> Result<PgConnection, DeployError> {
    let endpoint = Endpoint { catalog: MAINTENANCE_CATALOG.to_owned(), ..endpoint.clone() };
    let mut connection = connect(&endpoint).map_err(told)?;
    connection.set_cold_limit(CATALOG_LIMIT.0);
    Ok(connection)
}

fn make_catalog(endpoint: &Endpoint) -> Result<(), DeployError> {
    let sql = format!("CREATE DATABASE {}", quote_name(&endpoint.catalog));
    let what = format!("make the catalog `{}`", endpoint.catalog);
    maintenance(endpoint)?.query(&sql).map_err(|error| statement_failed(&what, error))?;
    Ok(())
}

/// Whether nobody has put relations of his own into the catalog.
fn is_empty(connection: &mut PgConnection) -> Result<bool, dyno_workload::StatementError> {
    let sql = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' LIMIT 1";
    Ok(connection.query(sql)?.is_empty())
}

/// Drops the catalog that Dyno made, and ends connections to it that were left open.
fn drop_catalog(endpoint: &Endpoint) -> Result<(), DeployError> {
    let sql = format!("DROP DATABASE {}", quote_name(&endpoint.catalog));
    let what = format!("drop the catalog `{}`", endpoint.catalog);
    let mut connection = maintenance(endpoint)?;
    // FORCE came with PostgreSQL 13; before, it is a syntax error.
    match connection.query(&format!("{sql} WITH (FORCE)")) {
        Err(error) if error.code == "42601" => connection.query(&sql),
        other => other,
    }
    .map_err(|error| statement_failed(&what, error))?;
    Ok(())
}

impl AttachedServer {
    fn with_guard<T>(&self, work: impl FnOnce(&mut PgConnection) -> T) -> T {
        work(&mut self.guard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Server for AttachedServer {
    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        facts::ask(&self.endpoint)
    }

    fn processes(&self) -> Vec<i32> {
        Vec::new()
    }

    fn watched_processes(&self) -> Vec<i32> {
        self.local.iter().map(|local| local.pid).collect()
    }

    fn data_files(&self) -> Option<DataFiles> {
        self.local.as_ref()?.data.clone()
    }

    fn thread_groups(&self) -> Option<ThreadGroups> {
        Some(thread_group)
    }

    /// The reason that the server gave when it ended Dyno's idle connection, unless it can be
    /// reached again.
    fn down(&mut self) -> Option<String> {
        let guard = self.guard.get_mut().unwrap_or_else(PoisonError::into_inner);
        let reason = guard.lost()?;
        match connect(&self.endpoint) {
            Ok(connection) => {
                *guard = connection;
                None
            }
            Err(error) => Some(format!("{reason}; {error}")),
        }
    }

    fn log_tail(&self, _lines: usize) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of the catalog as the server tells them, without the write-ahead log.
    fn data_bytes(&self) -> Option<u64> {
        let rows =
            self.with_guard(|guard| guard.query("SELECT pg_database_size(current_database())"));
        rows.ok()?.into_iter().flatten().next()??.parse().ok()
    }

    fn probes(&self, threads: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        super::probe::probes(&self.connector(), threads)
    }

    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        Ok(super::debt::meter(self.connector()))
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let AttachedServer { endpoint, guard, made_catalog, .. } = *self;
        let mut guard = guard.into_inner().unwrap_or_else(PoisonError::into_inner);
        if guard.lost().is_some() {
            guard = connect(&endpoint).map_err(told)?;
        }
        guard.set_cold_limit(CATALOG_LIMIT.0);
        drop_claimed_tables(&mut guard).map_err(told)?;
        let is_ours = made_catalog && is_empty(&mut guard).map_err(told)?;
        drop(guard);
        if is_ours { drop_catalog(&endpoint) } else { Ok(()) }
    }
}
