//! A database as a workload sees it: statements in, replies out.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Poll;

use crate::{KeptRows, LastRows, Row};
use dyno_model::Name;

/// One connection to a server.
///
/// *Cold* calls (`prepare`, `query`, `load_rows`) block and may allocate; they serve set-up,
/// populating and checks. *Hot* calls (`send_*`, `poll_reply`), which are measured, never block,
/// and never allocate once warm.
///
/// In flight is at most one statement, or one *pipeline*: statements sent together, whose replies
/// come one after the other. A product that replies at once without a descriptor (SQLite in the
/// process) works in `poll_reply`, and has no pipelines.
pub trait Connection: Send {
    fn dialect(&self) -> Dialect;

    /// Otherwise on files: its dialect means nothing, and there is no catalog.
    fn speaks_sql(&self) -> bool {
        true
    }

    /// For a message with the server's text: one harmless line, without the password. Cold.
    fn shown(&self, text: &str) -> String {
        dyno_units::clean_text(text)
    }

    /// Readable when a reply arrives; none without waits. Constant for the connection's life.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Replaces earlier statements; `send_execute` uses their index. Cold.
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), StatementError>;

    /// One more statement: at the end, or in place of an unused one. Cold. Fails with the server's
    /// error, or if the product prepares only all at once.
    fn prepare_at(&mut self, _idx: usize, statement: &Statement) -> Result<(), StatementError> {
        let message = format!("a single statement cannot be prepared: {}", statement.sql);
        Err(StatementError::new(ErrorClass::Refused, "prepare", message))
    }

    /// Hot. `poll_reply` returns errors of sending, too, so that one place deals with errors.
    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]);

    fn send_text(&mut self, sql: &str);

    /// Keeps rows of `n_columns` columns (0: any number) as texts for [`Connection::kept_rows`]. Not in a pipeline;
    /// only for products reached by a protocol. Hot.
    fn send_text_keeping(&mut self, sql: &str, _n_columns: usize) {
        self.send_text(sql);
    }

    /// Of any number of queries, keeps last rows and names of columns for [`Connection::last_rows`]. Not
    /// in a pipeline. False, with nothing sent, if the product keeps none. Hot.
    fn send_text_keeping_last(&mut self, _sql: &str) -> bool {
        false
    }

    /// Continues the statement in flight: writes the rest, and reads what has arrived with a
    /// bounded number of reads, so that the caller sees its clock during long replies. Ready when
    /// the reply is complete. Hot.
    ///
    /// With a descriptor and nothing to write, call only when it is readable: a read right after a
    /// send would waste a system call.
    fn poll_reply(&mut self) -> Poll<Result<Reply, StatementError>>;

    /// From here on `send_execute` and `send_text` only buffer, until
    /// [`Connection::send_pipeline`]. False, with no effect, if the product has no pipelines. Hot.
    fn begin_pipeline(&mut self) -> bool {
        false
    }

    /// `poll_reply` then returns the replies in the order of statements. Hot.
    ///
    /// After a failed statement, PostgreSQL skips the rest, and the error is the last reply;
    /// MariaDB and MySQL execute and reply to the next one. [`Connection::n_awaited`] tells which.
    fn send_pipeline(&mut self) {}

    /// A reply that arrived together with an earlier one; never reads. If pending, wait as for a
    /// single statement's reply. Hot.
    fn poll_received(&mut self) -> Poll<Result<Reply, StatementError>> {
        Poll::Pending
    }

    /// Replies to come: 1 with a single statement in flight. Connections without pipelines need not
    /// count, as their session sends nothing before the reply.
    fn n_awaited(&self) -> usize {
        0
    }

    /// Rows of the latest prepared statement that keeps them ([`Statement::keeping_rows`]), until
    /// the next statement is sent, or the next reply of a pipeline polled. Of several results, the
    /// first with rows. Hot.
    fn kept_rows(&self) -> &KeptRows {
        KeptRows::none()
    }

    /// Last rows of the latest statement that keeps them ([`Statement::keeping_last_row`],
    /// [`Connection::send_text_keeping_last`]), until the next one is sent. Hot.
    fn last_rows(&self) -> &LastRows {
        LastRows::none()
    }

    /// As of the latest reply; none if the product does not say. Hot.
    fn is_in_transaction(&self) -> Option<bool> {
        None
    }

    /// Takes the latest notices and warnings besides replies, oldest first, if the protocol has them. Cold.
    fn notices(&mut self) -> Vec<ErrorDetails> {
        Vec::new()
    }

    /// Bytes of the statement in flight are unwritten, so wait for writability, too. Also true
    /// after a failed send, so that [`Connection::poll_reply`] returns that.
    fn wants_write(&self) -> bool {
        false
    }

    /// A worker with a single client lets reads and writes block, which saves the wait for
    /// readiness. Cold. `timeout_ns` bounds a blocking read (0: unbounded), after which
    /// `poll_reply` is pending.
    fn set_blocking(&mut self, blocking: bool, timeout_ns: u64) -> Result<(), StatementError>;

    /// Bounds each later `query` and `prepare` as a whole (0, as at first: only the connection's
    /// own bound for `prepare`). Beyond it they fail, and the connection is lost. Cold.
    fn set_cold_limit(&mut self, _limit_ns: u64) {}

    fn query(&mut self, sql: &str) -> Result<TextRows, StatementError>;

    /// All rows as text, with names of columns, empty if unknown. Cold.
    fn query_named(&mut self, sql: &str) -> Result<NamedRows, StatementError> {
        Ok(NamedRows { columns: Vec::new(), rows: self.query(sql)? })
    }

    /// For a statement that takes rows (COPY … FROM STDIN), in the open transaction. `next_row` writes
    /// rows until it returns false. Returns the number stored. Cold. Fails with the server's error, or
    /// if the product has no such statements.
    fn copy_rows(&mut self, sql: &str, _next_row: NextRow<'_>) -> Done<u64> {
        Err(StatementError::new(ErrorClass::Refused, "copy", format!("no rows can be sent: {sql}")))
    }

    /// In the product's fastest way. `next_row` writes rows until it returns false. Returns the
    /// number stored. Cold.
    fn load_rows(&mut self, table: &str, columns: &[Name], next_row: NextRow<'_>) -> Done<u64>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    MySql,
    PostgreSql,
    Sqlite,
    /// No transactions, no owners: each table's first column has the comment [`crate::TABLE_MARK`].
    ClickHouse,
}

impl Dialect {
    pub const ALL: [Dialect; 4] =
        [Dialect::MySql, Dialect::PostgreSql, Dialect::Sqlite, Dialect::ClickHouse];

    pub const WITH_TRANSACTIONS: [Dialect; 3] =
        [Dialect::MySql, Dialect::PostgreSql, Dialect::Sqlite];

    pub fn has_transactions(self) -> bool {
        self != Dialect::ClickHouse
    }

    /// What stands around a name, and is doubled within it.
    pub fn name_quote(self) -> char {
        match self {
            Dialect::MySql => '`',
            Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => '"',
        }
    }

    /// The statement after which the server knows what is in a table, and need not find out while it is
    /// measured. ClickHouse has nothing to analyse, and merges the parts that filling has left.
    pub(crate) fn analyze(self, table: &str) -> String {
        match self {
            Dialect::MySql => format!("ANALYZE TABLE {table}"),
            Dialect::PostgreSql => format!("VACUUM ANALYZE {table}"),
            Dialect::Sqlite => format!("ANALYZE {table}"),
            Dialect::ClickHouse => format!("OPTIMIZE TABLE {table} FINAL"),
        }
    }

    pub fn placeholder(self, position: usize) -> String {
        match self {
            Dialect::PostgreSql => format!("${position}"),
            Dialect::MySql | Dialect::Sqlite | Dialect::ClickHouse => "?".to_owned(),
        }
    }

    /// Turns `?` placeholders into this dialect's. `sql` must not hold a `?` in a literal.
    pub fn placeholders(self, sql: &str) -> String {
        let mut parts = sql.split('?');
        let first = parts.next().unwrap_or_default().to_owned();
        (1..).zip(parts).fold(first, |out, (nth, part)| out + &self.placeholder(nth) + part)
    }
}

/// Writes the next row; false after the last.
pub type NextRow<'a> = &'a mut dyn FnMut(&mut Row) -> bool;

/// Opens connections to one server; called from any thread. Blocks.
pub type Connector = Arc<dyn Fn() -> Result<Box<dyn Connection>, ConnectError> + Send + Sync>;

/// Rows of a cold query: each column as text, or none for NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedRows {
    /// The column names the server sent; of several results, those of the last one.
    pub columns: Vec<String>,
    pub rows: TextRows,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text, with the placeholders of the dialect (`?`, `$1`).
    pub sql: String,
    pub class: StatementClass,
    /// Whether the client reads the rows; otherwise they are counted and skipped undecoded.
    pub keeps_rows: bool,
    /// Unnamed: parsed for each execution. Only in PostgreSQL; other products refuse to prepare it.
    pub is_unnamed: bool,
    /// The number of values if they and the columns go as texts, whose types the server finds; prepared
    /// at the first execution. Only in PostgreSQL; other products refuse to prepare it.
    pub texts: Option<usize>,
    /// Keeps the last row of each result with names of columns; columns must be texts.
    pub keeps_last: bool,
    /// Run once as text after the others: an SQL PREPARE, whose statement clients execute.
    pub is_set_up: bool,
}

impl Statement {
    pub fn new(sql: impl Into<String>, class: StatementClass) -> Statement {
        let sql = sql.into();
        let (keeps_rows, is_unnamed, keeps_last, is_set_up) = (false, false, false, false);
        Statement { sql, class, keeps_rows, is_unnamed, texts: None, keeps_last, is_set_up }
    }

    pub fn set_up(sql: impl Into<String>) -> Statement {
        Statement { is_set_up: true, ..Statement::new(sql, StatementClass::Other) }
    }

    pub fn keeping_rows(self) -> Statement {
        Statement { keeps_rows: true, ..self }
    }

    /// Values as texts, as PostgreSQL's own programs send statements that they do not know.
    pub fn of_texts(self, n_values: usize) -> Statement {
        Statement { texts: Some(n_values), ..self }
    }

    /// The same statement of texts, its last row kept for [`Connection::last_rows`].
    pub fn keeping_last_row(self) -> Statement {
        Statement { keeps_last: true, ..self }
    }

    /// Parsed for each execution, as PostgreSQL's drivers do without preparing (Parse, Bind,
    /// Describe, Execute, Sync in one round trip).
    pub fn unnamed(self) -> Statement {
        Statement { is_unnamed: true, ..self }
    }
}

/// The classes of statements that are counted (sysbench's read, write, other).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    Read,
    Write,
    /// Anything else: BEGIN, COMMIT, SET.
    Other,
}

impl StatementClass {
    pub fn of_text(sql: &str) -> StatementClass {
        let text = sql.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let is_one_of =
            |words: &[&str]| words.iter().any(|word| text[..end].eq_ignore_ascii_case(word));
        if is_one_of(&["select", "values", "table", "with", "show"]) {
            StatementClass::Read
        } else if is_one_of(&["insert", "update", "delete", "merge", "replace"]) {
            StatementClass::Write
        } else {
            StatementClass::Other
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub rows: u64,
    pub affected: u64,
    /// Number of warnings, if the server reports it.
    pub warnings: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct StatementError {
    pub class: ErrorClass,
    /// The product's own code: `1213`, `40001`, `SQLITE_BUSY`.
    pub code: String,
    pub message: String,
    /// The same in the server's own fields, where its protocol has them.
    pub details: Option<Box<ErrorDetails>>,
    /// The SQLSTATE that the server sent, where it is not the code.
    pub state: Option<SqlState>,
}

/// An SQLSTATE: five letters or digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlState([u8; 5]);

impl SqlState {
    pub fn new(bytes: &[u8]) -> Option<SqlState> {
        let bytes: [u8; 5] = bytes.try_into().ok()?;
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(SqlState(bytes))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorDetails {
    /// How grave it is: `ERROR`, `FATAL`.
    pub severity: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Where it happened; may have several lines.
    pub context: Option<String>,
    /// Where it stands in the statement, in characters, from 1.
    pub position: Option<usize>,
}

pub type Done<T = ()> = Result<T, StatementError>;

impl StatementError {
    pub fn new(class: ErrorClass, code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        StatementError { class, code, message, details: None, state: None }
    }
}

/// The message of a statement that is refused because it exchanges rows with its client.
pub const COPY_REFUSED: &str = "COPY FROM STDIN is not a statement, nor is COPY TO STDOUT";

/// Kinds of failure, by what a client does about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The server chose this transaction as a deadlock's victim: retry.
    Deadlock,
    /// A serialization failure under the isolation level: retry.
    Serialization,
    /// Lock wait timeout: roll back, retry.
    LockTimeout,
    DuplicateKey,
    Disconnected,
    /// No reply within the statement's time limit: reconnect.
    TimedOut,
    Refused,
}

impl ErrorClass {
    pub const ALL: [ErrorClass; 7] = {
        use ErrorClass::*;
        [Deadlock, Serialization, LockTimeout, DuplicateKey, Disconnected, TimedOut, Refused]
    };

    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Deadlock => "deadlock",
            ErrorClass::Serialization => "serialization",
            ErrorClass::LockTimeout => "lock_timeout",
            ErrorClass::DuplicateKey => "duplicate_key",
            ErrorClass::Disconnected => "disconnected",
            ErrorClass::TimedOut => "timed_out",
            ErrorClass::Refused => "refused",
        }
    }

    pub fn is_transient(self) -> bool {
        matches!(self, ErrorClass::Deadlock | ErrorClass::Serialization | ErrorClass::LockTimeout)
    }

    pub fn loses_connection(self) -> bool {
        matches!(self, ErrorClass::Disconnected | ErrorClass::TimedOut)
    }
}

/// A connection that could not be opened. The text names the address and never the password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot connect to {address}: {reason}")]
pub struct ConnectError {
    /// The address: host and port, or socket path; no secret.
    pub address: String,
    pub reason: String,
    /// What the server said, if it refused the connection and its protocol has fields for it.
    pub details: Option<Box<ErrorDetails>>,
}
