//! A transaction's talk with the server: statements of its set of tables, counted.

use crate::{Dialect, ErrorClass, KeptRows, Reply, Session, StatementClass, StatementError, Value};

use super::statements::{BatchSql, Sql};

/// One transaction's statements.
pub(super) struct Talk<'a> {
    session: &'a mut Session,
    /// Index of the first statement of the set.
    base: usize,
    /// Statements sent, BEGIN and COMMIT included.
    pub(super) statements: u64,
    /// Rows received.
    pub(super) rows: u64,
}

impl<'a> Talk<'a> {
    pub(super) fn new(session: &'a mut Session, base: usize) -> Talk<'a> {
        Talk { session, base, statements: 0, rows: 0 }
    }

    /// Begins a transaction. In SQLite one that is going to write must say so in the beginning:
    /// between its first read and its first write another might have written, and then it could
    /// only be tried again.
    pub(super) async fn begin(&mut self, writes: bool) -> Result<(), StatementError> {
        self.statements += 1;
        if writes && self.session.dialect() == Dialect::Sqlite {
            self.session.text("BEGIN IMMEDIATE", StatementClass::Other).await?;
        } else {
            self.session.begin().await?;
        }
        Ok(())
    }

    pub(super) async fn commit(&mut self) -> Result<(), StatementError> {
        self.statements += 1;
        self.session.commit().await?;
        Ok(())
    }

    pub(super) async fn roll_back_as_meant(&mut self) -> Result<(), StatementError> {
        self.statements += 1;
        self.session.roll_back_as_meant().await
    }

    /// A procedure has rolled back.
    pub(super) fn was_rolled_back_as_meant(&mut self) {
        self.session.was_rolled_back_as_meant();
    }

    pub(super) async fn ask<const N: usize>(
        &mut self,
        sql: Sql,
        values: [i64; N],
    ) -> Result<Reply, StatementError> {
        self.execute(sql.index(), &values.map(Value::Integer)).await
    }

    pub(super) async fn ask_with(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
    ) -> Result<Reply, StatementError> {
        self.execute(sql.index(), values).await
    }

    pub(super) async fn ask_batch(
        &mut self,
        sql: BatchSql,
        further: usize,
        values: &[Value<'_>],
    ) -> Result<Reply, StatementError> {
        self.execute(sql.index() + further, values).await
    }

    /// Executes the statement of this index in the set.
    pub(super) async fn execute(
        &mut self,
        idx: usize,
        values: &[Value<'_>],
    ) -> Result<Reply, StatementError> {
        self.statements += 1;
        let reply = self.session.execute(self.base + idx, values).await?;
        self.rows += reply.rows;
        Ok(reply)
    }

    /// The rows of the latest statement that returns some.
    pub(super) fn kept(&self) -> &KeptRows {
        self.session.kept_rows()
    }

    /// A whole number of the first row.
    pub(super) fn integer(&self, column: usize, what: &str) -> Result<i64, StatementError> {
        self.kept().integer(0, column).ok_or_else(|| missing(what))
    }

    /// A decimal of the first row, in units of 10^-`scale`.
    pub(super) fn fixed(
        &self,
        column: usize,
        scale: u32,
        what: &str,
    ) -> Result<i64, StatementError> {
        self.kept().fixed(0, column, scale).ok_or_else(|| missing(what))
    }
}

/// The server has no such row, which the population has.
#[cold]
pub(super) fn missing(what: &str) -> StatementError {
    let message = format!(
        "the server told no {what}: the tables are not as this workload fills and leaves them"
    );
    StatementError::new(ErrorClass::Refused, "dyno-tpcc", message)
}
