//! Archiving: moves old rows of a table to another database in batches.
//!
//! A batch is one transaction of the source: its rows are read and locked, inserted at the destination where
//! missing there, read back and compared, and only then deleted. So a run that ends anywhere leaves every row in
//! the source, in the destination, or in both with the same key; keys of the last kind are noted in the source,
//! and the next run stores their rows again as they are by then.

mod batch;
mod note;
mod sql;
mod table;
#[cfg(test)]
mod tests;
mod value;

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, Dialect, ErrorClass, StatementError, TextRows};

pub use batch::archive_between;

use crate::Endpoint;
use crate::dialects::sql_of;
use crate::protocol::checked;

/// An archiving failed; what was archived before stays archived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ArchiveError {
    message: String,
    /// Whether the same batch may succeed if it is begun again.
    may_repeat: bool,
    may_continue: bool,
}

impl ArchiveError {
    fn new(message: impl Into<String>) -> ArchiveError {
        let message = dyno_units::clean_text(&message.into());
        ArchiveError { message, may_repeat: false, may_continue: false }
    }

    /// Whether the same run may go on from here when it is begun again: nothing but a server or a lock was in its way.
    pub fn may_continue(&self) -> bool {
        self.may_continue
    }
}

type Result<T, E = ArchiveError> = std::result::Result<T, E>;

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(ArchiveError::new(why))
}

#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    /// The table, of this name on both sides.
    pub table: String,
    /// Which rows: an SQL condition of the source.
    pub condition: String,
    /// Rows of a batch, at least 1.
    pub batch: u64,
    /// The most rows to archive; none for all.
    pub limit: Option<u64>,
    /// Whether the table is made at the destination if it is missing.
    pub creates: bool,
    /// What the destination is called, always in the same words.
    pub destination: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Rows deleted from the source, after they were seen at the destination.
    pub rows: u64,
    /// Rows that the destination had before: an earlier run was stopped before it deleted them.
    pub found: u64,
    pub batches: u64,
    /// Batches that were begun again after a deadlock or a lock that was not granted in time.
    pub repeated: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableBytes {
    /// What it takes on disk; 0 if the table is not there.
    pub bytes: u64,
    /// Whether it is an estimate of the server, because the size of its file could not be read.
    pub is_estimate: bool,
}

/// One end of an archiving: its dialect, and how a statement is sent there.
pub struct ArchiveSide {
    dialect: Dialect,
    pub ask: Ask,
    is_in_transaction: bool,
    /// Settings of each transaction, in which names are looked up as they were checked.
    pinned: Vec<String>,
}

type Ask = Box<dyn FnMut(&str) -> Result<TextRows, StatementError>>;

impl ArchiveSide {
    pub fn new(mut connection: Box<dyn Connection>) -> ArchiveSide {
        let dialect = connection.dialect();
        ArchiveSide::sending(dialect, Box::new(move |sql| connection.query(sql)))
    }

    pub fn sending(dialect: Dialect, ask: Ask) -> ArchiveSide {
        ArchiveSide { dialect, ask, is_in_transaction: false, pinned: Vec::new() }
    }

    /// Reads with a query, which is rolled back where settings are a transaction's; how long it took. Fails with the
    /// server's error.
    pub fn time(&mut self, sql: &str, clock: &dyn Clock) -> Result<Nanoseconds, StatementError> {
        let is_in_transaction = sql::needs_transaction(self.dialect);
        if is_in_transaction {
            self.send("BEGIN")?;
        }
        let began = clock.now();
        let read = (self.ask)(sql);
        let took = clock.now().saturating_sub(began);
        if is_in_transaction && !read.as_ref().is_err_and(|error| error.class.loses_connection()) {
            self.send("ROLLBACK")?;
        }
        read.map(|_| took)
    }

    /// Sends a statement with the settings that it needs. Where they are a transaction's, any statement is in one, and
    /// behind its beginning: a server reads the literals of a whole message before it makes a setting in it.
    fn send(&mut self, sql: &str) -> Result<TextRows, StatementError> {
        match sql {
            "BEGIN" => {
                self.is_in_transaction = true;
                let begin = sql::begin(self.dialect);
                let pinned = self.pinned.iter().map(|one| format!("; {one}"));
                (self.ask)(&pinned.fold(begin, |all, one| all + &one))
            }
            "COMMIT" | "ROLLBACK" => {
                self.is_in_transaction = false;
                (self.ask)(sql)
            }
            _ if self.is_in_transaction || !sql::needs_transaction(self.dialect) => (self.ask)(sql),
            _ => {
                let sent = self.send("BEGIN").and_then(|_| self.send(sql));
                let sent = sent.and_then(|rows| self.send("COMMIT").map(|_| rows));
                if let Err(error) = &sent
                    && !error.class.loses_connection()
                {
                    // The first error is the one to report.
                    let _ = self.send("ROLLBACK");
                }
                sent
            }
        }
    }

    fn rows(&mut self, doing: &str, sql: &str) -> Result<TextRows> {
        self.send(sql).map_err(|error| {
            let repeatable =
                [ErrorClass::Deadlock, ErrorClass::Serialization, ErrorClass::LockTimeout];
            let may_repeat = repeatable.contains(&error.class);
            let is_gone = [ErrorClass::Disconnected, ErrorClass::TimedOut].contains(&error.class);
            ArchiveError {
                may_repeat,
                may_continue: may_repeat || is_gone,
                message: format!("cannot {doing}: {error}"),
            }
        })
    }

    fn cell(&mut self, doing: &str, sql: &str) -> Result<Option<String>> {
        Ok(self.rows(doing, sql)?.into_iter().flatten().next().flatten())
    }
}

/// Source, destination, source again for notes. Fails for unreachable or unsupported servers, and for those
/// on which other users' functions would run, also in what the condition reads at the source, and a query at both.
pub fn archive_sides(
    from: &Endpoint,
    to: &Endpoint,
    condition: &str,
    query: Option<&str>,
) -> Result<[ArchiveSide; 3]> {
    let connect = |what: &str, endpoint: &Endpoint| {
        let opened = checked(&endpoint.protocol.connector(endpoint), endpoint);
        opened.map_err(|error| ArchiveError::new(format!("the {what} {endpoint}: {error}")))
    };
    let side = |(connection, pinned)| ArchiveSide { pinned, ..ArchiveSide::new(connection) };
    let mut source = connect("source", from)?;
    check_read(&mut source, "condition", Some(condition))?;
    check_read(&mut source, "query", query)?;
    let source = side(source);
    if !matches!(source.dialect, Dialect::MySql | Dialect::PostgreSql) {
        return refuse(
            "rows can be archived only from MariaDB, MySQL and PostgreSQL: deleting them \
             afterwards needs transactions",
        );
    }
    let mut destination = connect("destination", to)?;
    check_read(&mut destination, "query", query)?;
    Ok([source, side(destination), side(connect("source", from)?)])
}

/// Fails if it reads what runs code of other users.
fn check_read(
    (connection, pinned): &mut (Box<dyn Connection>, Vec<String>),
    what: &str,
    sql: Option<&str>,
) -> Result<()> {
    match sql_of(connection.dialect()).check_read.zip(sql) {
        None => Ok(()),
        Some((check, sql)) => check(connection.as_mut(), pinned, sql)
            .map_err(|why| ArchiveError::new(format!("the {what}: {why}"))),
    }
}

/// Fails with the server's error.
pub fn archive_bytes(side: &mut ArchiveSide, table: &str) -> Result<TableBytes> {
    for statement in sql::file_bytes(side.dialect, table) {
        // Of the views one is there, which not everybody may read.
        let cell = side.send(&statement).ok().and_then(|rows| rows.into_iter().flatten().next());
        if let Some(bytes) = cell.flatten().and_then(|text| text.parse().ok()) {
            return Ok(TableBytes { bytes, is_estimate: false });
        }
    }
    let mut size = None;
    for statement in sql::bytes(side.dialect, table) {
        size = side.cell("read the size of the table", &statement)?;
    }
    let bytes = size.and_then(|text| text.parse().ok()).unwrap_or(0);
    Ok(TableBytes { bytes, is_estimate: bytes > 0 && side.dialect == Dialect::MySql })
}
