//! The shape that every workload has.

use std::future::Future;
use std::pin::Pin;

use crate::{AuditRow, AuditTotals, OwnStep, Row, Seat, Statement, StepFrame, TextRows};

/// A client's whole life as a future: it ends when its pace says so.
pub type ClientFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What clients ask, for any database.
pub trait Workload: Send + Sync {
    /// Its name in study files and on the command line.
    fn name(&self) -> &'static str;

    /// The kinds of its transactions; elsewhere a kind is an index into this list.
    fn kinds(&self) -> &[&'static str];

    /// Its options, resolved, as name and value: what a record keeps.
    fn options(&self) -> Vec<(String, String)>;

    /// Whether it can run on this dialect with its options; if not, why not and what to do.
    ///
    /// Options are read before it is known where the workload will run; what only some products
    /// have is refused here, before any table is made.
    fn check(&self, dialect: Dialect) -> Result<(), String> {
        let _ = dialect;
        Ok(())
    }

    /// Whether its transactions go on with what they read: on a server that stores nothing they
    /// would all fail.
    fn needs_rows(&self) -> bool {
        false
    }

    /// Whether it can run under such a load with its options: open, where a rate tells when
    /// transactions begin, or closed. If not, why not and what to do.
    fn check_load(&self, is_open: bool) -> Result<(), String> {
        let _ = is_open;
        Ok(())
    }

    /// Rows that its own steps put into its tables, as far as its options tell: for estimates of disk.
    /// Asked after [`Workload::steps`].
    fn rows_of_steps(&self) -> u64 {
        0
    }

    /// The steps that the workload itself defines, in their order; none where the study's load
    /// levels are its steps. Clients learn from their [`Seat`] which step and role is theirs. The
    /// instance that runs is asked before its tables are made: they may depend on the frame.
    ///
    /// # Errors
    ///
    /// Why the workload cannot run so, and what to do: too few rows for so many clients.
    fn steps(&self, frame: &StepFrame) -> Result<Vec<OwnStep>, String> {
        let _ = frame;
        Ok(Vec::new())
    }

    /// Which kinds the transactions of a role of its own steps are, by name; none where it does not
    /// tell.
    fn kinds_of_role(&self, role: &str) -> &'static [&'static str] {
        let _ = role;
        &[]
    }

    /// The tables, in the order in which they are made.
    fn tables(&self, dialect: Dialect) -> Vec<Table>;

    /// Writes row `number` (counted from 0) of table `table_idx` of [`Workload::tables`].
    ///
    /// A pure function of its arguments and the workload's seed: any worker can make any row, in
    /// any order, and it is the same row on every machine.
    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row);

    /// The statements each connection prepares.
    fn statements(&self, dialect: Dialect) -> Vec<Statement>;

    /// One client. Allocates here, once, and not again while it runs.
    fn client(&self, seat: Seat) -> ClientFuture;

    /// What to ask the server every second while the load runs, if anything: a statement that costs
    /// little, and whose one row has named columns of numbers. They are read as
    /// `probe.WORKLOAD.COLUMN`.
    fn readings_query(&self, dialect: Dialect) -> Option<String> {
        let _ = dialect;
        None
    }

    /// What to ask the server when the load has ended, for [`Workload::audit`] to judge.
    ///
    /// Numbers that are compared with each other must come from one statement, so that all are of
    /// one moment: what was in flight when the load ended may still be finishing.
    fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        let _ = dialect;
        Vec::new()
    }

    /// Whether the server did what it confirmed. `answers` are those to
    /// [`Workload::audit_queries`], one for each, in their order. A pure function.
    ///
    /// The tables must have been as [`Workload::fill_row`] fills them when the first of the
    /// transactions in `totals` began.
    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let _ = (totals, answers);
        Vec::new()
    }
}

/// The SQL a product speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB and MySQL.
    MySql,
    /// PostgreSQL.
    PostgreSql,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::MySql, Dialect::PostgreSql, Dialect::Sqlite];

    /// The placeholder of parameter `position`, counted from 1.
    pub fn placeholder(self, position: usize) -> String {
        match self {
            Dialect::PostgreSql => format!("${position}"),
            Dialect::MySql | Dialect::Sqlite => "?".to_owned(),
        }
    }

    /// Turns `?` placeholders into this dialect's. `sql` must not hold a `?` in a literal.
    pub fn placeholders(self, sql: &str) -> String {
        let mut out = String::with_capacity(sql.len() + 8);
        let mut position = 0;
        for c in sql.chars() {
            if c == '?' {
                position += 1;
                out.push_str(&self.placeholder(position));
            } else {
                out.push(c);
            }
        }
        out
    }
}

/// A table to be made and filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The statement that makes it, empty.
    pub create: String,
    /// The columns that [`Workload::fill_row`] gives, in its order.
    pub columns: Vec<&'static str>,
    /// How many rows to fill in.
    pub rows: u64,
    /// Statements to run after it is filled: secondary indexes, statistics.
    pub after: Vec<String>,
}
