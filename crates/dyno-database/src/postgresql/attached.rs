//! A PostgreSQL server that Dyno did not start.

use std::sync::{Arc, Mutex};

use dyno_units::{Nanoseconds, locked};
use dyno_workload::{Connection, Connector, StatementError};

use super::connection::PgConnection;
use super::protocol::ScramCache;
use super::sql::{literal, quote_name};
use super::startup::{self, OpenError};
use super::{connect, routines};
use crate::attached::{Attached, Hold, replaced, stays};
use crate::catalog::contents;
use crate::dialects::ask;
use crate::error::{Context, DeployError, Result, fail};
use crate::sql::first_cell;
use crate::transport::CATALOG_LIMIT;
use crate::waiting::SET_UP_LIMIT;
use crate::{AttachOptions, Endpoint, LocalServer, Server, claim_catalog, drop_claimed_tables};

/// The catalog from which others are made and dropped.
const MAINTENANCE_CATALOG: &str = "postgres";

/// The server's processes that serve connections of ours.
type Backends = Arc<Mutex<Vec<i32>>>;

/// SQLSTATE `object_in_use`.
const IN_USE: &str = "55006";

/// SQLSTATE `invalid_catalog_name`.
const NO_CATALOG: &str = "3D000";

struct GuardedServer {
    // Open all the time: its end shows that the server went down, at no cost to the server.
    guard: PgConnection,
    // The contents of the catalog after Dyno made it; `None` if it existed before.
    made_with: Option<Vec<String>>,
    // The server's processes of the connections that were opened.
    backends: Backends,
}

/// Uses a running server; makes the catalog if it is missing.
pub(crate) fn attach(endpoint: &Endpoint, options: AttachOptions) -> Result<Box<dyn Server>> {
    let mut made_with = None;
    let mut guard = match startup::open(endpoint, &ScramCache::default()) {
        Err(OpenError { code: Some(code), .. }) if code == NO_CATALOG && !options.makes_nothing => {
            let (guard, contents) = open_made(endpoint)?;
            made_with = Some(contents);
            guard
        }
        other => other.map_err(|failure| failure.error)?,
    };
    let backends = Backends::default();
    note_backend(&backends, &guard);
    let claimed = routines::check(&mut guard).and_then(|_| {
        if options.makes_nothing {
            return Ok(());
        }
        let claimed = claim_catalog(&mut guard, options.allow_existing_tables);
        claimed.map_err(|error| error.to_string())
    });
    if let Err(message) = claimed {
        drop(guard);
        let Some(made_with) = made_with else { return fail(message) };
        return fail(match drop_made(endpoint, &backends, &made_with) {
            true => message,
            false => stays(endpoint, message),
        });
    }
    let local = LocalServer::find(endpoint, &mut guard);
    let connector = noting_connector(endpoint, &backends);
    let hold = GuardedServer { guard, made_with, backends };
    Ok(Box::new(Attached { connector, ..Attached::new(endpoint, options, local, hold) }))
}

/// Makes the catalog, and opens it; also returns what it holds then.
fn open_made(endpoint: &Endpoint) -> Result<(PgConnection, Vec<String>)> {
    make_catalog(endpoint)?;
    let open = || -> Result<(PgConnection, Vec<String>)> {
        let mut guard = connect(endpoint)?;
        // Before 15, every user may create objects in a new database. If Dyno may not change
        // that, the server sends a notice.
        guard.query("REVOKE CREATE ON SCHEMA public FROM PUBLIC")?;
        let contents = contents(&mut guard)?;
        Ok((guard, contents))
    };
    open().map_err(|error| DeployError { message: stays(endpoint, &error.message), ..error })
}

/// Drops a catalog that cannot be used after all, over connections of its own: the one that was used may be lost. False
/// if it stays, as it does if others were quick to put something into it.
fn drop_made(endpoint: &Endpoint, backends: &Backends, made_with: &[String]) -> bool {
    let is_empty = connect(endpoint).is_ok_and(|mut connection| {
        note_backend(backends, &connection);
        is_as_made(&mut connection, made_with).is_ok_and(|is_as_made| is_as_made)
    });
    is_empty && drop_catalog(endpoint, backends).is_ok()
}

/// Whether it holds nothing but what it was made with.
fn is_as_made(guard: &mut PgConnection, made_with: &[String]) -> Result<bool, StatementError> {
    Ok(contents(guard)?.iter().all(|thing| made_with.contains(thing)))
}

fn maintenance(endpoint: &Endpoint) -> Result<PgConnection> {
    let endpoint = Endpoint { catalog: MAINTENANCE_CATALOG.to_owned(), ..endpoint.clone() };
    let mut connection = connect(&endpoint)?;
    connection.set_cold_limit(CATALOG_LIMIT.0);
    Ok(connection)
}

fn make_catalog(endpoint: &Endpoint) -> Result<()> {
    let sql = format!("CREATE DATABASE {}", quote_name(&endpoint.catalog));
    let what = format!("PostgreSQL: cannot create the database `{}`", endpoint.catalog);
    maintenance(endpoint)?.query(&sql).context(what).map(drop)
}

fn note_backend(backends: &Backends, connection: &PgConnection) {
    if connection.backend_pid > 0 {
        let mut pids = locked(backends);
        pids.push(connection.backend_pid);
    }
}

/// Opens connections, and remembers the server's processes that serve them.
fn noting_connector(endpoint: &Endpoint, backends: &Backends) -> Connector {
    let open = super::opener(endpoint.clone());
    let backends = Arc::clone(backends);
    crate::server::connector(move || {
        let connection = open()?;
        note_backend(&backends, &connection);
        Ok(connection)
    })
}

/// Drops Dyno's catalog. Ends Dyno's own connections that are still open on the server (a client
/// gave up on a running statement); with other users' connections, the catalog stays.
fn drop_catalog(endpoint: &Endpoint, backends: &Backends) -> Result<()> {
    let what = format!("PostgreSQL: cannot drop the database `{}`", endpoint.catalog);
    let mut connection = maintenance(endpoint)?;
    let pids = locked(backends).clone();
    if !pids.is_empty() {
        let pids = pids.iter().map(i32::to_string).collect::<Vec<String>>().join(", ");
        let end = format!(
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
             WHERE pid IN ({pids}) AND datname = {} AND usename = CURRENT_USER \
             AND application_name = 'dyno'",
            literal(&endpoint.catalog)
        );
        let ended = ask(&mut connection, &end);
        ended.context(&what)?;
    }
    // The server waits some seconds for sessions that are about to end.
    match connection.query(&format!("DROP DATABASE {}", quote_name(&endpoint.catalog))) {
        Err(error) if error.code == IN_USE => fail(format!(
            "the database `{}`, which Dyno created, was not dropped, because others are connected \
             to it: {error}; drop it once they have disconnected",
            endpoint.catalog
        )),
        other => other.context(what).map(drop),
    }
}

impl GuardedServer {
    /// Drops what Dyno made on the server, if that still answers within `alive_limit`. What dropping may take
    /// is far more, and would be waited for in vain.
    fn remove_within(self, alive_limit: Nanoseconds, endpoint: &Endpoint) -> Result<()> {
        let GuardedServer { mut guard, made_with, backends } = self;
        let failed = format!("Dyno's tables on {endpoint} were not dropped");
        if guard.lost().is_some() {
            guard = connect(endpoint).context(&failed)?;
        }
        guard.set_cold_limit(alive_limit.0);
        guard.query("SELECT 1").context(&failed)?;
        guard.set_cold_limit(CATALOG_LIMIT.0);
        drop_claimed_tables(&mut guard).context(&failed)?;
        let Some(made_with) = made_with else { return Ok(()) };
        let is_as_made = is_as_made(&mut guard, &made_with)?;
        drop(guard);
        // Objects of others prevent its removal.
        if is_as_made { drop_catalog(endpoint, &backends) } else { Ok(()) }
    }
}

impl Hold for GuardedServer {
    /// The reason that the server gave when it ended Dyno's idle connection, unless it can be
    /// reached again.
    fn down(&mut self, endpoint: &Endpoint) -> Option<String> {
        let reason = self.guard.lost()?;
        replaced(&mut self.guard, reason, connect(endpoint))
    }

    /// Without the write-ahead log.
    fn data_bytes(&mut self, _: &Endpoint) -> Option<u64> {
        let rows = self.guard.query("SELECT pg_database_size(current_database())");
        first_cell(rows.ok()?)?.parse().ok()
    }

    fn remove(self: Box<Self>, endpoint: &Endpoint) -> Result<()> {
        self.remove_within(SET_UP_LIMIT, endpoint)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_server_that_has_fallen_silent_is_not_given_the_time_to_drop_tables() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            // Come in, I am ready.
            stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
            let mut asked = Vec::new();
            let _ = stream.read_to_end(&mut asked);
            asked
        });
        let url = format!("postgresql://me@127.0.0.1:{port}/t");
        let endpoint = Endpoint::from_url(&url).unwrap();
        let guard = connect(&endpoint).unwrap();
        let attached = GuardedServer { guard, made_with: None, backends: Backends::default() };
        let limit = Nanoseconds::from_millis(50);
        let error = attached.remove_within(limit, &endpoint).unwrap_err().message;
        assert!(error.contains("were not dropped"), "{error}");
        assert!(error.contains("within 50 ms"), "{error}");
        let asked = String::from_utf8_lossy(&server.join().unwrap()).into_owned();
        assert!(asked.contains("SELECT 1") && !asked.contains("dyno_tables"), "{asked:?}");
    }
}
