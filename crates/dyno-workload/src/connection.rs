//! A database from the workload's point of view: statements go in, replies come out.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Poll;

use crate::{Dialect, KeptRows, LastRows, Row};
use dyno_model::Name;

/// One connection to a server.
///
/// Two kinds of calls. *Cold* ones (`prepare`, `query`, `load_rows`) block until they are done and
/// may allocate; they serve set-up, populating and checks. *Hot* ones (`send_*`, `poll_reply`)
/// never block and never allocate once the connection is warm; they are what is measured.
///
/// At most one statement is in flight, or one *pipeline*: several statements that were sent
/// together, and whose replies come one after the other. A product that answers at once and has no
/// descriptor to wait for (SQLite in the process) does all its work in `poll_reply`, and has no
/// pipelines.
pub trait Connection: Send {
    fn dialect(&self) -> Dialect;

    /// Whether it carries SQL. Else it carries operations on files, its dialect means nothing, and
    /// there is no catalog in which tables could be noted.
    fn speaks_sql(&self) -> bool {
        true
    }

    /// A text that holds what the server has sent, for a message: as one harmless line, without the
    /// password if the connection has one. Cold.
    fn shown(&self, text: &str) -> String {
        dyno_units::clean_text(text)
    }

    /// The descriptor that becomes readable when a reply arrives, or none if a reply never has
    /// to be waited for. It stays the same one for the connection's life.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Prepares statements, in order; `send_execute` names them by their index. Cold. Replaces
    /// what was prepared before.
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), StatementError>;

    /// Prepares one more statement: at the end of those that were, or in the place of one that is not
    /// executed any more. Cold.
    ///
    /// # Errors
    ///
    /// The server's; the product prepares all statements at once.
    fn prepare_at(&mut self, _idx: usize, statement: &Statement) -> Result<(), StatementError> {
        let message = format!("a single statement cannot be prepared: {}", statement.sql);
        Err(StatementError::new(ErrorClass::Refused, "prepare", message))
    }

    /// Sends prepared statement `statement` with its values. Hot.
    ///
    /// An error in sending is kept and returned by `poll_reply`, so that there is one place that
    /// deals with errors.
    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]);

    /// Sends a text statement (BEGIN, COMMIT, a generated INSERT). Hot.
    fn send_text(&mut self, sql: &str);

    /// The same with a statement that returns rows of `n_columns` columns, which are kept as texts
    /// for [`Connection::kept_rows`]; with 0, whatever columns there are. Not in a pipeline. A product that is not reached by a
    /// protocol keeps none. Hot.
    fn send_text_keeping(&mut self, sql: &str, _n_columns: usize) {
        self.send_text(sql);
    }

    /// The same with a statement of any number of queries, whose last rows and names of columns are kept
    /// for [`Connection::last_rows`]. Not in a pipeline. False if the product keeps none; then nothing
    /// is sent. Hot.
    fn send_text_keeping_last(&mut self, _sql: &str) -> bool {
        false
    }

    /// Continues the statement in flight: writes what remains to be written, and reads what has
    /// arrived, with a bounded number of reads, so that the caller sees its clock however long the
    /// reply is. Ready when the reply is complete. Hot.
    ///
    /// If there is a descriptor and nothing is left to write, this is called only once the
    /// descriptor is readable: a read right after a send would find nothing, and cost a system
    /// call.
    fn poll_reply(&mut self) -> Poll<Result<Reply, StatementError>>;

    /// Begins a pipeline: from here on `send_execute` and `send_text` only buffer what they are
    /// given, until [`Connection::send_pipeline`] sends all of it. False if the product has no
    /// pipelines; then nothing has begun. Hot.
    fn begin_pipeline(&mut self) -> bool {
        false
    }

    /// Sends the pipeline; nothing if it is empty. `poll_reply` then returns one reply after the
    /// other, in the order of the statements. Hot.
    ///
    /// What happens after a failed statement depends on the product: PostgreSQL skips the rest of
    /// the pipeline, and the error is the last reply; MariaDB and MySQL execute the next statement,
    /// and its reply follows. [`Connection::n_awaited`] distinguishes the two.
    fn send_pipeline(&mut self) {}

    /// The next reply of a pipeline, if it has arrived together with one before; never reads.
    /// If it has not, wait for it as for the reply to a single statement. Hot.
    fn poll_received(&mut self) -> Poll<Result<Reply, StatementError>> {
        Poll::Pending
    }

    /// Replies that are still to come: 1 while a single statement is in flight.
    ///
    /// A connection without pipelines need not count: its session sends nothing before the reply is
    /// there.
    fn n_awaited(&self) -> usize {
        0
    }

    /// The rows of the latest reply to a prepared statement whose rows are kept
    /// ([`Statement::keeping_rows`]); they are there until the next statement is sent, or the next
    /// reply of a pipeline is polled for. A statement with several results keeps the rows of the
    /// first one that has any. Hot.
    fn kept_rows(&self) -> &KeptRows {
        KeptRows::none()
    }

    /// The last rows of the latest statement whose last rows are kept
    /// ([`Statement::keeping_last_row`], [`Connection::send_text_keeping_last`]), until the next
    /// statement is sent. Hot.
    fn last_rows(&self) -> &LastRows {
        LastRows::none()
    }

    /// Whether a transaction is open, as the server said with its latest reply; none if the product
    /// does not say it. Hot.
    fn is_in_transaction(&self) -> Option<bool> {
        None
    }

    /// Takes the last notices and warnings that the server has sent beside its replies, oldest first, where its
    /// protocol has them. Cold.
    fn notices(&mut self) -> Vec<ErrorDetails> {
        Vec::new()
    }

    /// Whether bytes of the statement in flight are still to be written, so that writability has
    /// to be waited for as well; also true if sending has failed, so that
    /// [`Connection::poll_reply`] is called and can return it.
    fn wants_write(&self) -> bool {
        false
    }

    /// Whether reads and writes may block the thread. A worker with a single client sets
    /// this: a blocking read saves the wait for readiness. Cold.
    ///
    /// `timeout_ns` bounds one blocking read (0: no bound); a read that runs out of it makes
    /// `poll_reply` return pending.
    fn set_blocking(&mut self, blocking: bool, timeout_ns: u64) -> Result<(), StatementError>;

    /// Bounds each `query` and each `prepare` from here on, as a whole (0: no bound but the one
    /// that a connection gives `prepare` by itself, as at first). One that runs out of it fails,
    /// and the connection is lost. Cold.
    fn set_cold_limit(&mut self, _limit_ns: u64) {}

    /// Runs a statement and returns all rows as text. Cold.
    fn query(&mut self, sql: &str) -> Result<TextRows, StatementError>;

    /// Runs a statement and returns all rows as text, with the names of their columns. Cold.
    ///
    /// A connection that does not know names leaves them empty.
    fn query_named(&mut self, sql: &str) -> Result<NamedRows, StatementError> {
        Ok(NamedRows { columns: Vec::new(), rows: self.query(sql)? })
    }

    /// Runs a statement that takes rows from the client (COPY … FROM STDIN), with the rows that
    /// `next_row` writes until it returns false, in the transaction that is open. Returns the number of
    /// rows stored. Cold.
    ///
    /// # Errors
    ///
    /// The product has no such statements; the server's.
    fn copy_rows(
        &mut self,
        sql: &str,
        _next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64, StatementError> {
        Err(StatementError::new(ErrorClass::Refused, "copy", format!("no rows can be sent: {sql}")))
    }

    /// Fills `table` (its name and column names are given) with the rows that `next_row` writes
    /// until it returns false, in the fastest way that the product has. Cold. Returns the number of
    /// rows stored.
    fn load_rows(
        &mut self,
        table: &str,
        columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64, StatementError>;
}

/// Opens connections to one server; called from any thread. Blocks.
pub type Connector = Arc<dyn Fn() -> Result<Box<dyn Connection>, ConnectError> + Send + Sync>;

/// Rows of a cold query: each column as text, or none for NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedRows {
    /// The column names the server sent; of several results, those of the last one.
    pub columns: Vec<String>,
    /// The rows of the last result, as text.
    pub rows: TextRows,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text, with the placeholders of the dialect (`?`, `$1`).
    pub sql: String,
    pub class: StatementClass,
    /// Whether the client reads the rows; otherwise they are counted and skipped undecoded.
    pub keeps_rows: bool,
    /// Whether the server parses it again for each execution, as an unnamed statement. Only
    /// PostgreSQL has those; other products refuse to prepare it.
    pub is_unnamed: bool,
    /// How many values it has if they and its columns go as texts, whose types the server finds, and it
    /// is prepared when it is first executed. Only PostgreSQL has such statements; other products
    /// refuse to prepare them.
    pub texts: Option<usize>,
    /// Whether the last row of each of its results is kept, with the names of the columns; only if its
    /// columns are texts.
    pub keeps_last: bool,
    /// Whether it is run once, as text, when the others are prepared: an SQL-level PREPARE, whose
    /// statement clients then execute as text. It follows those that are prepared.
    pub is_set_up: bool,
}

impl Statement {
    /// A statement whose rows are only counted.
    pub fn new(sql: impl Into<String>, class: StatementClass) -> Statement {
        let sql = sql.into();
        Statement {
            sql,
            class,
            keeps_rows: false,
            is_unnamed: false,
            texts: None,
            keeps_last: false,
            is_set_up: false,
        }
    }

    /// A statement that is run once when the others are prepared.
    pub fn set_up(sql: impl Into<String>) -> Statement {
        Statement { is_set_up: true, ..Statement::new(sql, StatementClass::Other) }
    }

    /// The same statement, its rows kept for [`Connection::kept_rows`].
    pub fn keeping_rows(self) -> Statement {
        Statement { keeps_rows: true, ..self }
    }

    /// The same statement with so many values that go as texts, prepared when it is first executed: as
    /// PostgreSQL's own programs do it for statements that they do not know.
    pub fn of_texts(self, n_values: usize) -> Statement {
        Statement { texts: Some(n_values), ..self }
    }

    /// The same statement of texts, its last row kept for [`Connection::last_rows`].
    pub fn keeping_last_row(self) -> Statement {
        Statement { keeps_last: true, ..self }
    }

    /// The same statement, parsed again for each execution: what PostgreSQL's drivers send if
    /// nothing was prepared (Parse, Bind, Describe, Execute, Sync in one round trip).
    pub fn unnamed(self) -> Statement {
        Statement { is_unnamed: true, ..self }
    }
}

/// The classes of statements that are counted (sysbench's read, write, other).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// Returns rows, changes none.
    Read,
    /// Changes rows: INSERT, UPDATE, DELETE.
    Write,
    /// Anything else: BEGIN, COMMIT, SET.
    Other,
}

impl StatementClass {
    /// The class of a statement, by its first word.
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
    /// Text or binary data, as bytes.
    Text(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub rows: u64,
    /// Rows the statement changed, as reported by the server.
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
    /// The product's own message.
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
    /// None if it is not one.
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

/// What comes of statements.
pub type Done<T = ()> = Result<T, StatementError>;

impl StatementError {
    pub fn new(
        class: ErrorClass,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> StatementError {
        StatementError {
            class,
            code: code.into(),
            message: message.into(),
            details: None,
            state: None,
        }
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
    /// The connection is gone: reconnect.
    Disconnected,
    /// No reply within the statement's time limit: reconnect.
    TimedOut,
    /// The server refused for any other reason.
    Refused,
}

impl ErrorClass {
    /// All classes, in the order of their indexes.
    pub const ALL: [ErrorClass; 7] = [
        ErrorClass::Deadlock,
        ErrorClass::Serialization,
        ErrorClass::LockTimeout,
        ErrorClass::DuplicateKey,
        ErrorClass::Disconnected,
        ErrorClass::TimedOut,
        ErrorClass::Refused,
    ];

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

    /// Whether the same transaction may succeed when it is tried again.
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
