//! A connection to SQLite: `send_*` stores a statement, `poll_reply` executes it.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::task::Poll;
use std::time::Duration;

use dyno_model::Name;
use dyno_workload::{
    Cell, ConnectError, Connection, Dialect, ErrorClass, KeptRows, NamedRows, Reply, Row,
    Statement, StatementError, TextRows, Value,
};
use rusqlite::types::ValueRef;
use rusqlite::{OpenFlags, ToSql, types::ToSqlOutput};

use super::pragma::{self, Pragma};

use crate::error::StatementResult as Result;

/// Rows filled in between two commits: limits the journal, and gives other workers their turn.
const ROWS_PER_COMMIT: u64 = 100_000;

/// How long filling waits for the other workers that fill; they write one after the other.
const FILL_WAIT: Duration = Duration::from_secs(600);

pub(super) struct SqliteConnection {
    pub(super) database: rusqlite::Connection,
    // Statements are in `database`'s cache, found by text. That costs some 0.1 µs per execution (a
    // point select in memory takes 0.6 µs); a struct that borrows from itself would avoid it, but
    // not in safe Rust.
    statements: Vec<String>,
    // For each of them, whether its rows are kept.
    keeps_rows: Vec<bool>,
    kept: KeptRows,
    in_flight: Option<InFlight>,
    values: Vec<KeptValue>,
    // Bytes of text values, or the text of a statement.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum InFlight {
    Execute(usize),
    Text,
}

#[derive(Clone, Copy, Debug)]
enum KeptValue {
    Null,
    Integer(i64),
    Real(f64),
    Text { start: usize, end: usize },
}

/// Text as SQLite takes it, without a check that it is UTF-8: SQLite does not check either.
struct TextBytes<'a>(&'a [u8]);

impl ToSql for TextBytes<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

impl SqliteConnection {
    /// Opens the database file, which must exist, and applies the settings.
    pub(super) fn open(path: &Path, pragmas: &[Pragma]) -> Result<SqliteConnection, ConnectError> {
        let failed = |reason: String| ConnectError {
            address: path.display().to_string(),
            reason,
            details: None,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = rusqlite::Connection::open_with_flags(path, flags)
            .map_err(|error| failed(error.to_string()))?;
        pragma::apply(&database, pragmas).map_err(failed)?;
        Ok(SqliteConnection::over(database))
    }

    pub(super) fn over(database: rusqlite::Connection) -> SqliteConnection {
        SqliteConnection {
            database,
            statements: Vec::new(),
            keeps_rows: Vec::new(),
            kept: KeptRows::default(),
            in_flight: None,
            values: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn execute(&mut self, statement: usize) -> rusqlite::Result<Reply> {
        if !self.keeps_rows[statement] {
            return self.execute_into(statement, None);
        }
        // Taken out and put back, because the statement borrows from the database beside it.
        let mut kept = std::mem::take(&mut self.kept);
        let result = self.execute_into(statement, Some(&mut kept));
        self.kept = kept;
        result
    }

    fn execute_into(
        &self,
        statement: usize,
        kept: Option<&mut KeptRows>,
    ) -> rusqlite::Result<Reply> {
        let mut cached = self.database.prepare_cached(&self.statements[statement])?;
        for (idx, value) in self.values.iter().enumerate() {
            let position = idx + 1;
            match *value {
                KeptValue::Null => cached.raw_bind_parameter(position, rusqlite::types::Null)?,
                KeptValue::Integer(value) => cached.raw_bind_parameter(position, value)?,
                KeptValue::Real(value) => cached.raw_bind_parameter(position, value)?,
                KeptValue::Text { start, end } => {
                    cached.raw_bind_parameter(position, TextBytes(&self.bytes[start..end]))?;
                }
            }
        }
        self.finish(&mut cached, kept)
    }

    fn execute_text(&self) -> rusqlite::Result<Reply> {
        let sql = std::str::from_utf8(&self.bytes).expect("kept from a &str");
        match sql {
            // Clients send it after any error; SQLite may have rolled back itself.
            "ROLLBACK" if self.database.is_autocommit() => Ok(Reply::default()),
            "BEGIN" | "COMMIT" | "ROLLBACK" => {
                self.finish(&mut *self.database.prepare_cached(sql)?, None)
            }
            _ => self.finish(&mut self.database.prepare(sql)?, None),
        }
    }

    /// Steps through a bound statement, reading every column of every row, as a program would.
    fn finish(
        &self,
        statement: &mut rusqlite::Statement<'_>,
        mut kept: Option<&mut KeptRows>,
    ) -> rusqlite::Result<Reply> {
        let n_columns = statement.column_count();
        if let Some(kept) = &mut kept {
            kept.clear(n_columns);
        }
        let n_changed_before = self.database.total_changes();
        let mut n_rows = 0;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            for column in 0..n_columns {
                let value = std::hint::black_box(row.get_ref(column)?);
                if let Some(kept) = &mut kept {
                    keep(value, kept);
                }
            }
            n_rows += 1;
        }
        let n_changed = self.database.total_changes() - n_changed_before;
        Ok(Reply { rows: n_rows, affected: n_changed, warnings: 0 })
    }

    /// Inserts rows and commits; returns how many, and whether `next_row` has more.
    fn fill_some(
        &self,
        insert: &str,
        row: &mut Row,
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> rusqlite::Result<(u64, bool)> {
        // IMMEDIATE, so that the wait for other writers is at the beginning and cannot fail later.
        self.database.execute_batch("BEGIN IMMEDIATE")?;
        let mut n_rows = 0;
        let mut has_more = true;
        {
            let mut statement = self.database.prepare_cached(insert)?;
            while n_rows < ROWS_PER_COMMIT {
                row.clear();
                has_more = next_row(row);
                if !has_more {
                    break;
                }
                for (idx, cell) in row.cells().iter().enumerate() {
                    match *cell {
                        Cell::Null => {
                            statement.raw_bind_parameter(idx + 1, rusqlite::types::Null)?;
                        }
                        Cell::Integer(value) => statement.raw_bind_parameter(idx + 1, value)?,
                        Cell::Text { .. } => {
                            statement.raw_bind_parameter(idx + 1, TextBytes(row.text(*cell)))?;
                        }
                    }
                }
                statement.raw_execute()?;
                n_rows += 1;
            }
        }
        self.database.execute_batch("COMMIT")?;
        Ok((n_rows, has_more))
    }

    fn fill(
        &self,
        insert: &str,
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> rusqlite::Result<u64> {
        let mut row = Row::new();
        let mut n_rows = 0;
        loop {
            let (n_filled, has_more) = self.fill_some(insert, &mut row, next_row)?;
            n_rows += n_filled;
            if !has_more {
                return Ok(n_rows);
            }
        }
    }
}

fn keep(value: ValueRef<'_>, kept: &mut KeptRows) {
    match value {
        ValueRef::Null => kept.push_null(),
        ValueRef::Integer(number) => kept.push_integer(number),
        ValueRef::Real(number) => kept.push_real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => kept.push_text(bytes),
    }
}

impl Connection for SqliteConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<()> {
        if let Some(statement) =
            statements.iter().find(|statement| statement.is_unnamed || statement.texts.is_some())
        {
            let message = format!("SQLite has no unnamed statements: {}", statement.sql);
            return Err(StatementError::new(ErrorClass::Refused, "SQLITE_MISUSE", message));
        }
        self.database.flush_prepared_statement_cache();
        // Room for BEGIN, COMMIT and ROLLBACK as well.
        self.database.set_prepared_statement_cache_capacity(statements.len() + 3);
        for statement in statements {
            self.database.prepare_cached(&statement.sql).map_err(statement_error)?;
        }
        self.statements = statements.iter().map(|statement| statement.sql.clone()).collect();
        self.keeps_rows = statements.iter().map(|statement| statement.keeps_rows).collect();
        Ok(())
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        self.values.clear();
        self.bytes.clear();
        for value in values {
            self.values.push(match *value {
                Value::Null => KeptValue::Null,
                Value::Integer(value) => KeptValue::Integer(value),
                Value::Real(value) => KeptValue::Real(value),
                Value::Text(text) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(text);
                    KeptValue::Text { start, end: self.bytes.len() }
                }
            });
        }
        self.in_flight = Some(InFlight::Execute(statement));
    }

    fn send_text(&mut self, sql: &str) {
        self.bytes.clear();
        self.bytes.extend_from_slice(sql.as_bytes());
        self.in_flight = Some(InFlight::Text);
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply>> {
        let outcome = match self.in_flight.take() {
            Some(InFlight::Execute(statement)) => self.execute(statement),
            Some(InFlight::Text) => self.execute_text(),
            None => {
                return Poll::Ready(Err(StatementError::new(
                    ErrorClass::Refused,
                    "SQLITE_MISUSE",
                    "no statement is in flight",
                )));
            }
        };
        Poll::Ready(outcome.map_err(statement_error))
    }

    fn kept_rows(&self) -> &KeptRows {
        &self.kept
    }

    fn set_blocking(&mut self, _blocking: bool, _timeout_ns: u64) -> Result<()> {
        // There is nothing to wait for.
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<TextRows> {
        self.query_named(sql).map(|answer| answer.rows)
    }

    fn query_named(&mut self, sql: &str) -> Result<NamedRows> {
        let collect = || -> rusqlite::Result<NamedRows> {
            let mut statement = self.database.prepare(sql)?;
            let n_columns = statement.column_count();
            let names = statement.column_names();
            let columns = names.into_iter().map(str::to_owned).collect();
            let mut rows = statement.query([])?;
            let mut texts = TextRows::new();
            while let Some(row) = rows.next()? {
                let mut columns = Vec::with_capacity(n_columns);
                for column in 0..n_columns {
                    columns.push(pragma::value_text(row.get_ref(column)?));
                }
                texts.push(columns);
            }
            Ok(NamedRows { columns, rows: texts })
        };
        collect().map_err(statement_error)
    }

    fn load_rows(
        &mut self,
        table: &str,
        columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64> {
        let marks = vec!["?"; columns.len()].join(", ");
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        let table = quoted(table);
        let insert = format!("INSERT INTO {table} ({}) VALUES ({marks})", names.join(", "));
        let wait_ms: i64 = self
            .database
            .query_row("PRAGMA busy_timeout", [], |row| row.get(0))
            .map_err(statement_error)?;
        self.database.busy_timeout(FILL_WAIT).map_err(statement_error)?;
        let outcome = self.fill(&insert, next_row).map_err(statement_error);
        let wait = Duration::from_millis(wait_ms.max(0) as u64);
        self.database.busy_timeout(wait).map_err(statement_error)?;
        if outcome.is_err() {
            // Earlier commits stay. The rollback's error would hide the first one.
            let _ = self.database.execute_batch("ROLLBACK");
        }
        // Checkpoints now, not during the measurement; of several fillers, the last one.
        self.query("PRAGMA wal_checkpoint(TRUNCATE)")?;
        outcome
    }
}

fn statement_error(error: rusqlite::Error) -> StatementError {
    use rusqlite::ErrorCode;
    let Some(failure) = error.sqlite_error() else {
        return StatementError::new(ErrorClass::Refused, "rusqlite", error.to_string());
    };
    let (class, code) = match (failure.code, failure.extended_code) {
        (ErrorCode::DatabaseBusy, 517) => (ErrorClass::Serialization, "SQLITE_BUSY_SNAPSHOT"),
        (ErrorCode::DatabaseBusy, 261) => (ErrorClass::LockTimeout, "SQLITE_BUSY_RECOVERY"),
        (ErrorCode::DatabaseBusy, _) => (ErrorClass::LockTimeout, "SQLITE_BUSY"),
        (ErrorCode::DatabaseLocked, _) => (ErrorClass::LockTimeout, "SQLITE_LOCKED"),
        (ErrorCode::ConstraintViolation, 1555) => {
            (ErrorClass::DuplicateKey, "SQLITE_CONSTRAINT_PRIMARYKEY")
        }
        (ErrorCode::ConstraintViolation, 2067) => {
            (ErrorClass::DuplicateKey, "SQLITE_CONSTRAINT_UNIQUE")
        }
        (ErrorCode::ConstraintViolation, 2579) => {
            (ErrorClass::DuplicateKey, "SQLITE_CONSTRAINT_ROWID")
        }
        (ErrorCode::OperationInterrupted, _) => (ErrorClass::TimedOut, "SQLITE_INTERRUPT"),
        (_, extended) => {
            let code = format!("SQLITE {extended}");
            return StatementError::new(ErrorClass::Refused, code, error.to_string());
        }
    };
    StatementError::new(class, code, error.to_string())
}
