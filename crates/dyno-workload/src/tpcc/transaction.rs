//! A transaction's exchange with the server: statements on its table set, counted.

use crate::prelude::*;

use super::statements::Sql;

/// A statement that does not need the replies of others that are sent with it.
pub(super) type Ask<'a> = (Sql, &'a [Value<'a>]);

pub(super) struct Transaction<'a> {
    session: &'a mut Session,
    base: usize,
    is_pipelined: bool,
    pub(super) statements: u64,
    /// Round trips: one for each statement, or for several that are sent together.
    pub(super) round_trips: u64,
    pub(super) rows: u64,
    n_pushed: u64,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(session: &'a mut Session, base: usize, is_pipelined: bool) -> Self {
        let (statements, round_trips, rows, n_pushed) = (0, 0, 0, 0);
        Transaction { session, base, is_pipelined, statements, round_trips, rows, n_pushed }
    }

    fn sends_one(&mut self) {
        self.statements += 1;
        self.round_trips += 1;
    }

    /// In SQLite a transaction must say at its start that it will write: another could write
    /// between its first read and write, and it could only be retried. In a pipeline, BEGIN goes with
    /// the first statements.
    pub(super) async fn begin(&mut self, writes: bool) -> Done {
        if self.is_pipelined {
            self.begin_together();
            return Ok(());
        }
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

    pub(super) async fn execute(&mut self, idx: usize, values: &[Value<'_>]) -> Done<Reply> {
        self.sends_one();
        let reply = self.session.execute(self.base + idx, values).await?;
        self.rows += reply.rows;
        Ok(reply)
    }

    /// Sends statements, and has each reply read, with its place among them.
    pub(super) async fn exchange(
        &mut self,
        asks: &[Ask<'_>],
        mut read: impl FnMut(&Transaction<'_>, usize) -> Done,
    ) -> Done {
        if self.is_pipelined {
            let n_begun = self.n_pushed;
            self.push_all(asks);
            self.send();
            self.pass(n_begun).await?;
        }
        for (nth, (sql, values)) in asks.iter().enumerate() {
            if self.is_pipelined {
                self.next().await?
            } else {
                self.ask_with(*sql, values).await?
            };
            read(self, nth)?;
        }
        Ok(())
    }

    pub(super) async fn exchange_and_commit(&mut self, asks: &[Ask<'_>], writes: bool) -> Done {
        if self.is_pipelined {
            self.push_all(asks);
            return self.send_and_commit(writes).await;
        }
        self.exchange(asks, |_, _| Ok(())).await?;
        self.commit().await
    }

    fn push_all(&mut self, asks: &[Ask<'_>]) {
        if self.n_pushed == 0 {
            self.together();
        }
        asks.iter().for_each(|(sql, values)| self.push_with(sql.index(), values));
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

    pub(super) fn kept(&self) -> &KeptRows {
        self.session.kept_rows()
    }

    pub(super) fn integer(&self, column: usize, what: &str) -> Done<i64> {
        self.kept().integer(0, column).ok_or_else(|| missing(what))
    }

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
