//! The shape that every workload has.

use std::future::Future;
use std::pin::Pin;

use crate::{Row, Seat, Statement};

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
