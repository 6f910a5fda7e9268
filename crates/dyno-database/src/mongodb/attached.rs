//! A server of MongoDB's protocol that Dyno did not start.

use std::sync::{Arc, Mutex, PoisonError};

use bson::raw::RawBsonRef;
use bson::rawdoc;
use dyno_units::Clock;
use dyno_workload::{Connection as _, Connector, Dialect};

use super::connection::MongoConnection;
use super::private::{NO_COSTS, check_alive};
use super::{command_failed, facts, notes, open};
use crate::transport::CATALOG_LIMIT;
use crate::{
    Access, AttachOptions, CostSource, DeployError, Endpoint, LocalServer, Server, ServerFacts,
};

struct AttachedServer {
    endpoint: Endpoint,
    connector: Connector,
    /// Its end says that the server is gone.
    guard: Mutex<MongoConnection>,
    /// Whether Dyno made the database: it had no collections.
    is_made: bool,
    keeps_tables: bool,
    local: Option<LocalServer>,
}

fn deploy_error(error: impl std::fmt::Display) -> DeployError {
    DeployError::new(error.to_string())
}

/// Uses a running server. Its databases are made by what is put into them.
pub(super) fn attach(
    endpoint: &Endpoint,
    options: AttachOptions,
) -> Result<Box<dyn Server>, DeployError> {
    let mut guard = open(endpoint)?;
    let is_made = notes::collections(&mut guard).map_err(deploy_error)?.is_empty();
    if !options.makes_nothing {
        notes::claim(&mut guard, options.allow_existing_tables).map_err(deploy_error)?;
    }
    let local = LocalServer::find(endpoint, &mut guard);
    Ok(Box::new(AttachedServer {
        endpoint: endpoint.clone(),
        connector: super::connector(endpoint.clone()),
        guard: Mutex::new(guard),
        is_made,
        keeps_tables: options.keep_tables || options.makes_nothing,
        local,
    }))
}

impl Server for AttachedServer {
    /// None is spoken.
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
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

    fn down(&mut self) -> Option<String> {
        self.guard.get_mut().unwrap_or_else(PoisonError::into_inner).lost()
    }

    /// Bytes of the database's collections and indexes, as the server reports them.
    fn data_bytes(&self) -> Option<u64> {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = rawdoc! { "dbStats": 1, "$db": self.endpoint.catalog.as_str() };
        let stats = guard.command(&asked).ok()?;
        let bytes = |name| super::reply::number(&stats, name);
        let all = bytes("totalSize").or_else(|| Some(bytes("storageSize")? + bytes("indexSize")?));
        u64::try_from(all?).ok()
    }

    fn cost_source(
        &self,
        _access: Access,
        _clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        Err(NO_COSTS.to_owned())
    }

    fn check_alive(&self) -> Result<(), DeployError> {
        check_alive(&self.connector)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let AttachedServer { endpoint, guard, is_made, keeps_tables, .. } = *self;
        if keeps_tables {
            return Ok(());
        }
        drop(guard);
        let mut connection = open(&endpoint)?;
        connection.set_cold_limit(CATALOG_LIMIT.0);
        notes::drop_all(&mut connection).map_err(|error| {
            DeployError::new(format!("Dyno's collections on {endpoint} were not dropped: {error}"))
        })?;
        // What others have made in it prevents its removal.
        let is_empty = notes::collections(&mut connection).map_err(deploy_error)?.is_empty();
        if is_made && is_empty && is_listed(&mut connection) {
            let command = rawdoc! { "dropDatabase": 1, "$db": endpoint.catalog.as_str() };
            let dropped = connection.command(&command);
            dropped
                .map_err(|error| command_failed("drop the database that Dyno created", error))?;
        }
        Ok(())
    }
}

/// Whether the server still lists the database: most forget one that is empty by themselves.
fn is_listed(connection: &mut MongoConnection) -> bool {
    let asked = rawdoc! {
        "listDatabases": 1, "nameOnly": true, "filter": { "name": connection.database() }, "$db": "admin",
    };
    // Who may not ask may not drop it either.
    let Ok(answer) = connection.command(&asked) else { return false };
    let listed = answer.get("databases").ok().flatten().and_then(RawBsonRef::as_array);
    listed.is_some_and(|databases| !databases.is_empty())
}
