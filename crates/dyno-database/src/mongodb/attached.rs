//! A server of MongoDB's protocol that Dyno did not start.

use bson::raw::RawBsonRef;
use bson::rawdoc;
use dyno_workload::Connection as _;

use super::connection::MongoConnection;
use super::{notes, open};
use crate::attached::{Attached, Hold};
use crate::error::{Context, Result};
use crate::transport::CATALOG_LIMIT;
use crate::{AttachOptions, Endpoint, LocalServer, Server};

struct GuardedServer {
    /// Its end says that the server is gone.
    guard: MongoConnection,
    /// Whether Dyno made the database: it had no collections.
    is_made: bool,
}

/// Uses a running server. Its databases are made by what is put into them.
pub(super) fn attach(endpoint: &Endpoint, options: AttachOptions) -> Result<Box<dyn Server>> {
    let mut guard = open(endpoint)?;
    let is_made = notes::collections(&mut guard)?.is_empty();
    if !options.makes_nothing {
        notes::claim(&mut guard, options.allow_existing_tables)?;
    }
    let local = LocalServer::find(endpoint, &mut guard);
    let hold = GuardedServer { guard, is_made };
    Ok(Box::new(Attached::new(endpoint, options, local, hold)))
}

impl Hold for GuardedServer {
    fn down(&mut self, _: &Endpoint) -> Option<String> {
        self.guard.lost()
    }

    /// Those of its collections and indexes.
    fn data_bytes(&mut self, endpoint: &Endpoint) -> Option<u64> {
        let asked = rawdoc! { "dbStats": 1, "$db": endpoint.catalog.as_str() };
        let stats = self.guard.command(&asked).ok()?;
        let bytes = |name| super::reply::number(&stats, name);
        let sum = || Some(bytes("storageSize")?.saturating_add(bytes("indexSize")?));
        let all = bytes("totalSize").or_else(sum);
        u64::try_from(all?).ok()
    }

    fn remove(self: Box<Self>, endpoint: &Endpoint) -> Result<()> {
        let GuardedServer { guard, is_made } = *self;
        drop(guard);
        let mut connection = open(endpoint)?;
        connection.set_cold_limit(CATALOG_LIMIT.0);
        notes::drop_all(&mut connection)
            .context(format!("Dyno's collections on {endpoint} were not dropped"))?;
        // What others have made in it prevents its removal.
        let is_empty = notes::collections(&mut connection)?.is_empty();
        if is_made && is_empty && is_listed(&mut connection) {
            let command = rawdoc! { "dropDatabase": 1, "$db": endpoint.catalog.as_str() };
            let dropped = connection.command(&command);
            dropped.context("cannot drop the database that Dyno created")?;
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
