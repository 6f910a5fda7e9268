//! A declared workload from a server's log: the transactions of its sessions, grouped by statements, and the sources of
//! their values.
//!
//! `log` feeds lines to a format's reader (`mysql_log`, `postgresql_log` with `log_line_prefix`), which finds each
//! session's statements. `control` knows their effects on session and transaction, and finds what should not be
//! replayed; `statement` takes values out, but not literals that belong to the statement; `sessions` makes transactions
//! and counts equal ones; `values` describes the values at each place (`typed`: those whose form shows their type);
//! `relations`, which are equal or differ by a constant; `write` makes the study and `steps` its transactions. `counted`
//! uses statements that a server has counted instead. Logs come from elsewhere: everything kept is limited, and each
//! statement counts as replayed or as left out, with the reason.

mod control;
mod counted;
mod log;
mod log_line_prefix;
mod mysql_log;
mod postgresql_log;
mod relations;
mod sessions;
mod statement;
mod steps;
#[cfg(test)]
mod tests;
mod typed;
mod values;
mod write;

use std::collections::BTreeMap;
use std::io;

use crate::Dialect;

pub use counted::{CountedColumn, CountedColumns, CountedStatement, capture_counted};
pub use log::capture;

#[derive(Clone, Debug)]
pub struct Request {
    /// The format of the log; none to recognise it.
    pub format: Option<Format>,
    /// The setting `log_line_prefix` of PostgreSQL's plain log; none to guess it.
    pub prefix: Option<String>,
    /// The database whose statements are captured; none for the one with the most.
    pub schema: Option<String>,
    /// The most kinds of transactions.
    pub kinds: usize,
    /// Whether texts that occur often are written as they are.
    pub has_texts: bool,
    /// Whether statements that call routines or run code are replayed: CALL and DO.
    pub has_routines: bool,
    /// The URL of the server that the study will load; none for one to be filled in.
    pub url: Option<String>,
    /// What the log is called in comments.
    pub source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    MySqlGeneral,
    MySqlSlow,
    PostgreSqlPlain,
    PostgreSqlCsv,
    /// Digests that MariaDB or MySQL has counted; no log.
    MySqlDigests,
    /// Statements that PostgreSQL has counted; no log.
    PostgreSqlStatements,
}

impl Format {
    /// All formats of logs.
    pub const ALL: [Format; 4] =
        [Format::MySqlGeneral, Format::MySqlSlow, Format::PostgreSqlPlain, Format::PostgreSqlCsv];

    /// Its name, what it is, and its dialect.
    fn facts(self) -> (&'static str, &'static str, Dialect) {
        use Dialect::{MySql, PostgreSql};
        match self {
            Format::MySqlGeneral => ("mysql-general", "general log of MariaDB or MySQL", MySql),
            Format::MySqlSlow => ("mysql-slow", "slow log of MariaDB or MySQL", MySql),
            Format::PostgreSqlPlain => ("postgresql", "log of PostgreSQL", PostgreSql),
            Format::PostgreSqlCsv => ("postgresql-csv", "log of PostgreSQL as CSV", PostgreSql),
            Format::MySqlDigests => {
                ("performance_schema", "statement digests of the performance schema", MySql)
            }
            Format::PostgreSqlStatements => {
                ("pg_stat_statements", "pg_stat_statements", PostgreSql)
            }
        }
    }

    /// As an option names it.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    pub fn text(self) -> &'static str {
        self.facts().1
    }

    pub fn is_log(self) -> bool {
        Format::ALL.contains(&self)
    }

    fn dialect(self) -> Dialect {
        self.facts().2
    }
}

/// Why a statement is not in the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It makes or changes users, rights or passwords.
    Users,
    Schema,
    Session,
    Variable,
    /// A savepoint, or one of two-phase commit.
    Savepoint,
    File,
    Binary,
    /// It has a placeholder whose value is unknown.
    Placeholder,
    /// It has something that a study would read as a name.
    Colon,
    /// Several statements were sent as one.
    Several,
    ManyValues,
    Long,
    /// It has an end that is missing, or is cut off.
    NotUnderstood,
    /// The end of its transaction is not in the log.
    Unfinished,
    /// It was rolled back to a savepoint.
    RolledBack,
    Failed,
    /// It is part of a stored routine.
    Inner,
    /// It calls a routine or runs code, whose effects the log does not show.
    Routine,
    /// It uses tables of the server, or controls the server or its sessions.
    Server,
    /// It has a comment that the server executes.
    Executable,
    /// Its transaction has too many statements.
    ManyStatements,
    /// There were too many different statements, transactions or sessions before it.
    Limits,
    OtherSchema,
    /// It belongs to a rare kind of transaction.
    Rare,
    UnknownValue,
    /// It has a literal that the server has not replaced by a placeholder.
    Literal,
    NoText,
    /// Its table is one of many that differ by a number, and not among the most frequent.
    ManyTables,
}

impl Reason {
    /// What was left out, after a number of statements.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Users => "about users, privileges and passwords",
            Reason::Schema => "that change or maintain tables (CREATE, ALTER, TRUNCATE …)",
            Reason::Session => "of the session or the server (SET, USE, SHOW, KILL …)",
            Reason::Variable => "that use session variables (@name)",
            Reason::Savepoint => "for savepoints and two-phase commit",
            Reason::File => "that read or write files",
            Reason::Binary => "with binary or hexadecimal data",
            Reason::Placeholder => "with placeholders whose values are not in the log",
            Reason::Colon => "with a colon before a name, which a study reads as a value",
            Reason::Several => "that were sent together as one",
            Reason::ManyValues => "with more than 255 values",
            Reason::Long => "that are too long (1 MiB; 64 KiB without their values)",
            Reason::NotUnderstood => "that are truncated or not understood",
            Reason::Unfinished => "in transactions whose end is not in the log",
            Reason::RolledBack => "that were rolled back to a savepoint",
            Reason::Failed => "that the server refused",
            Reason::Routine => "that call routines or run code (CALL, DO; kept with --routines)",
            Reason::Server => {
                "that use the server's own tables, or functions that control it (mysql.user, \
                 pg_terminate_backend …)"
            }
            Reason::Executable => "with comments that the server executes (/*! … */)",
            Reason::Inner => "inside stored routines, which execute them when they are called",
            Reason::ManyStatements => "in transactions of more than 1000 statements",
            Reason::Limits => "beyond the memory limit: too many different statements",
            Reason::OtherSchema => "in other databases",
            Reason::UnknownValue => "with placeholders whose meaning is not clear",
            Reason::Literal => "with literals in their texts (kept with --texts)",
            Reason::NoText => {
                "executions of prepared statements, which this server counts without their texts"
            }
            Reason::Rare => "in rare kinds of transactions",
            Reason::ManyTables => {
                "on tables that differ from others only by a number and are not among the 64 most \
                 frequent"
            }
        }
    }
}

/// What became of the statements of a log. `read` is the sum of all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub read: u64,
    pub replayed: u64,
    /// BEGIN, COMMIT and ROLLBACK, which have become the transactions.
    pub control: u64,
    pub left_out: BTreeMap<Reason, u64>,
}

impl Counts {
    fn leave_out(&mut self, reason: Reason, n: u64) {
        if n > 0 {
            let count = self.left_out.entry(reason).or_default();
            *count = count.saturating_add(n);
        }
    }
}

#[derive(Clone, Debug)]
pub struct Captured {
    pub study: String,
    pub format: Format,
    /// The database whose statements were captured, if the log says.
    pub schema: Option<String>,
    pub kinds: usize,
    pub transactions: u64,
    pub counts: Counts,
}

#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    #[error(
        "the first lines look like neither a general or slow log of MariaDB or MySQL nor a log of PostgreSQL; if \
         it is one, give --format and, for PostgreSQL, --prefix with the value of log_line_prefix"
    )]
    UnknownFormat,
    /// The setting `log_line_prefix` that was given, or none that fits.
    #[error("{0}")]
    Prefix(String),
    #[error("{0}")]
    Values(String),
    #[error("it contains nothing to replay: {0}")]
    Nothing(String),
}

pub type Outcome = Result<Captured, CaptureError>;
