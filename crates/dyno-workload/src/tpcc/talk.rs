//! A transaction's talk with the server: statements of its set of tables, counted.

use crate::{Dialect, ErrorClass, KeptRows, Reply, Session, StatementClass, StatementError, Value};

use super::statements::Sql;

/// One transaction's statements.
pub(super) struct Talk<'a> {
    session: &'a mut Session,
    /// Index of the first statement of the set.
    base: usize,
    /// Statements sent, BEGIN and COMMIT included.
    pub(super) statements: u64,
    /// Round trips: one for each statement, or for several that are sent together.
    pub(super) round_trips: u64,
    /// Rows received.
    pub(super) rows: u64,
    /// Statements of the pipeline whose replies were not taken yet.
    n_pushed: u64,
}

impl<'a> Talk<'a> {
    pub(super) fn new(session: &'a mut Session, base: usize) -> Talk<'a> {
        Talk { session, base, statements: 0, round_trips: 0, rows: 0, n_pushed: 0 }
    }

    fn sends_one(&mut self) {
        self.statements += 1;
        self.round_trips += 1;
    }

    /// Begins a transaction. In SQLite one that is going to write must say so in the beginning:
    /// between its first read and its first write another might have written, and then it could
    /// only be tried again.
    pub(super) async fn begin(&mut self, writes: bool) -> Result<(), StatementError> {
        self.sends_one();
        if writes && self.session.dialect() == Dialect::Sqlite {
            self.session.text("BEGIN IMMEDIATE", StatementClass::Other).await?;
        } else {
            self.session.begin().await?;
        }
        Ok(())
    }

    pub(super) async fn commit(&mut self) -> Result<(), StatementError> {
        self.sends_one();
        self.session.commit().await?;
        Ok(())
    }

    pub(super) async fn roll_back_as_meant(&mut self) -> Result<(), StatementError> {
        self.sends_one();
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

    /// Executes the statement of this index in the set.
    pub(super) async fn execute(
        &mut self,
        idx: usize,
        values: &[Value<'_>],
    ) -> Result<Reply, StatementError> {
        self.sends_one();
        let reply = self.session.execute(self.base + idx, values).await?;
        self.rows += reply.rows;
        Ok(reply)
    }

    /// Begins statements that are sent together.
    pub(super) fn together(&mut self) {
        debug_assert_eq!(self.n_pushed, 0, "replies were not taken");
        self.session.begin_pipeline();
    }

    /// Begins statements that are sent together, and with them a transaction.
    ///
    /// MariaDB and MySQL go on with what stands behind a statement that fails. Were the transaction
    /// begun by BEGIN and one of its statements a deadlock's victim, those behind it would each
    /// commit by themselves. Without autocommit they make a transaction of their own, which is
    /// rolled back as any other is after an error.
    pub(super) fn begin_together(&mut self) {
        self.together();
        self.push_text(match self.session.dialect() {
            Dialect::MySql => "SET autocommit = 0",
            Dialect::PostgreSql | Dialect::Sqlite => "BEGIN",
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

    /// Sends what was pushed.
    pub(super) fn send(&mut self) {
        self.session.send_pipeline();
        self.statements += self.n_pushed;
        self.round_trips += u64::from(self.n_pushed > 0);
    }

    /// The next reply to what was sent together.
    pub(super) async fn next(&mut self) -> Result<Reply, StatementError> {
        let reply = self.session.next_reply().await?;
        self.n_pushed -= 1;
        self.rows += reply.rows;
        Ok(reply)
    }

    /// Takes so many replies of which nothing is needed but that there was no error.
    pub(super) async fn pass(&mut self, n: u64) -> Result<(), StatementError> {
        for _ in 0..n {
            self.next().await?;
        }
        Ok(())
    }

    /// Sends what was pushed and commits. PostgreSQL passes over a COMMIT that stands behind a
    /// statement that failed, so it goes along; MariaDB and MySQL would commit what there is, so
    /// there it goes along only where nothing was written (`writes`).
    pub(super) async fn send_and_commit(&mut self, writes: bool) -> Result<(), StatementError> {
        let goes_along = !writes || self.session.dialect() == Dialect::PostgreSql;
        if goes_along {
            self.push_text("COMMIT");
        }
        self.send();
        self.pass(self.n_pushed).await?;
        if goes_along { Ok(()) } else { self.commit().await }
    }

    /// Sends what was pushed and rolls back, because the workload wants it so.
    pub(super) async fn send_and_roll_back_as_meant(&mut self) -> Result<(), StatementError> {
        self.push_text("ROLLBACK");
        self.send();
        self.pass(self.n_pushed).await?;
        self.session.was_rolled_back_as_meant();
        Ok(())
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
    let message = format!("the server returned no {what}: something else has changed the tables");
    StatementError::new(ErrorClass::Refused, "dyno-tpcc", message)
}
