//! A transaction's exchange with the server: statements on its table set, counted.

use crate::{
    Dialect, Done, ErrorClass, KeptRows, Reply, Session, StatementClass, StatementError, Value,
};

use super::statements::Sql;

pub(super) struct Transaction<'a> {
    session: &'a mut Session,
    /// Index of the first statement of the set.
    base: usize,
    /// Statements sent, BEGIN and COMMIT included.
    pub(super) statements: u64,
    /// Round trips: one for each statement, or for several that are sent together.
    pub(super) round_trips: u64,
    pub(super) rows: u64,
    /// Statements of the pipeline whose replies were not taken yet.
    n_pushed: u64,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(session: &'a mut Session, base: usize) -> Transaction<'a> {
        Transaction { session, base, statements: 0, round_trips: 0, rows: 0, n_pushed: 0 }
    }

    fn sends_one(&mut self) {
        self.statements += 1;
        self.round_trips += 1;
    }

    /// In SQLite a transaction must say at its start that it will write: another could write
    /// between its first read and write, and it could only be retried.
    pub(super) async fn begin(&mut self, writes: bool) -> Done {
        self.sends_one();
        if writes && self.session.dialect() == Dialect::Sqlite {
            self.session.text("BEGIN IMMEDIATE", StatementClass::Other).await?;
        } else {
            self.session.begin().await?;
        }
        Ok(())
    }

    pub(super) async fn commit(&mut self) -> Done {
        self.sends_one();
        self.session.commit().await?;
        Ok(())
    }

    pub(super) async fn roll_back_as_designed(&mut self) -> Done {
        self.sends_one();
        self.session.roll_back_as_designed().await
    }

    pub(super) fn rolled_back_as_designed(&mut self) {
        self.session.rolled_back_as_designed();
    }

    pub(super) async fn ask<const N: usize>(&mut self, sql: Sql, values: [i64; N]) -> Done<Reply> {
        self.execute(sql.index(), &values.map(Value::Integer)).await
    }

    pub(super) async fn ask_with(&mut self, sql: Sql, values: &[Value<'_>]) -> Done<Reply> {
        self.execute(sql.index(), values).await
    }

    /// Executes the statement of this index in the set.
    pub(super) async fn execute(&mut self, idx: usize, values: &[Value<'_>]) -> Done<Reply> {
        self.sends_one();
        let reply = self.session.execute(self.base + idx, values).await?;
        self.rows += reply.rows;
        Ok(reply)
    }

    pub(super) fn together(&mut self) {
        debug_assert_eq!(self.n_pushed, 0, "replies were not taken");
        self.session.begin_pipeline();
    }

    /// A pipeline that is also a transaction.
    ///
    /// MariaDB and MySQL go on after a failed statement. After BEGIN, if one became a deadlock's
    /// victim, each later one would commit by itself. Without autocommit they form a transaction,
    /// which is rolled back after an error like any other.
    pub(super) fn begin_together(&mut self) {
        self.together();
        self.push_text(match self.session.dialect() {
            Dialect::MySql => "SET autocommit = 0",
            Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => "BEGIN",
        });
    }

    fn push_text(&mut self, sql: &str) {
        self.session.push_text(sql, StatementClass::Other);
        self.n_pushed += 1;
    }

    pub(super) fn push<const N: usize>(&mut self, sql: Sql, values: [i64; N]) {
        self.push_with(sql.index(), &values.map(Value::Integer));
    }

    /// Appends the statement of this index in the set.
    pub(super) fn push_with(&mut self, idx: usize, values: &[Value<'_>]) {
        self.session.push_execute(self.base + idx, values);
        self.n_pushed += 1;
    }

    pub(super) fn send(&mut self) {
        self.session.send_pipeline();
        self.statements += self.n_pushed;
        self.round_trips += u64::from(self.n_pushed > 0);
    }

    pub(super) async fn next(&mut self) -> Done<Reply> {
        let reply = self.session.next_reply().await?;
        self.n_pushed -= 1;
        self.rows += reply.rows;
        Ok(reply)
    }

    /// Takes `n` replies, of which only an error matters.
    pub(super) async fn pass(&mut self, n: u64) -> Done {
        for _ in 0..n {
            self.next().await?;
        }
        Ok(())
    }

    /// Commits what was pushed. PostgreSQL skips a COMMIT after a failed statement, so it is in the
    /// pipeline; MariaDB and MySQL would commit the rest, so there it is only if nothing was
    /// written (`writes`).
    pub(super) async fn send_and_commit(&mut self, writes: bool) -> Done {
        let is_piped = !writes || self.session.dialect() == Dialect::PostgreSql;
        if is_piped {
            self.push_text("COMMIT");
        }
        self.send();
        self.pass(self.n_pushed).await?;
        if is_piped { Ok(()) } else { self.commit().await }
    }

    pub(super) async fn send_and_roll_back_as_designed(&mut self) -> Done {
        self.push_text("ROLLBACK");
        self.send();
        self.pass(self.n_pushed).await?;
        self.session.rolled_back_as_designed();
        Ok(())
    }

    /// The rows of the latest statement that returns some.
    pub(super) fn kept(&self) -> &KeptRows {
        self.session.kept_rows()
    }

    /// A whole number of the first row.
    pub(super) fn integer(&self, column: usize, what: &str) -> Done<i64> {
        self.kept().integer(0, column).ok_or_else(|| missing(what))
    }

    /// A decimal of the first row, in units of 10^-`scale`.
    pub(super) fn fixed(&self, column: usize, scale: u32, what: &str) -> Done<i64> {
        self.kept().fixed(0, column, scale).ok_or_else(|| missing(what))
    }
}

/// The error for a row that the filled tables have and the server did not return.
#[cold]
pub(super) fn missing(what: &str) -> StatementError {
    let message = format!("the server returned no {what}: something else has changed the tables");
    StatementError::new(ErrorClass::Refused, "dyno-tpcc", message)
}
