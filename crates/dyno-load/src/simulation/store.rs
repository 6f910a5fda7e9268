//! Connections of a simulated server, and its rows, if it has some: a real database executes each
//! statement at the simulated moment at which it completes, so that effects follow simulated time.
//!
//! One connection writes at a time, as in SQLite, but never fails: writers wait in line and occupy
//! no place of the server. The lock is held from the statement that asks for it (`BEGIN IMMEDIATE`,
//! or the first write) to the end of the transaction. Reads need no lock.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Poll;

use dyno_model::Name;
use dyno_workload::{
    ConnectError, Connection, Connector, Dialect, Done, ErrorClass, KeptRows, NextRow, Reply, Row,
    Statement, StatementClass, StatementError, TextRows, Value,
};

use super::server::{Fate, MayFail, Queue, injected_failure};

/// A database that answers at once; its readers see what was committed before they began.
#[derive(Clone)]
pub struct Store(Connector);

impl Store {
    pub fn new(connector: Connector) -> Store {
        Store(connector)
    }

    pub(super) fn connect(&self) -> Result<Box<dyn Connection>, ConnectError> {
        let connection = (self.0)()?;
        if connection.descriptor().is_some() {
            return Err(refused("its rows are in a database that does not answer at once"));
        }
        Ok(connection)
    }
}

pub(super) fn refused(reason: &str) -> ConnectError {
    let (address, reason) = ("the simulated server".to_owned(), reason.to_owned());
    ConnectError { address, reason, details: None }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Store")
    }
}

impl PartialEq for Store {
    fn eq(&self, other: &Store) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Default)]
pub(super) struct WriteLock {
    holder: Option<usize>,
    line: VecDeque<(usize, MayFail)>,
}

impl WriteLock {
    /// False if the connection is now in line.
    pub(super) fn ask(&mut self, connection: usize, may_fail: MayFail) -> bool {
        let is_free = self.holder.is_none();
        if is_free {
            self.holder = Some(connection);
        } else {
            self.line.push_back((connection, may_fail));
        }
        is_free
    }

    /// Returns the next writer, if that has changed.
    pub(super) fn leave(&mut self, connection: usize) -> Option<(usize, MayFail)> {
        self.line.retain(|(waiting, _)| *waiting != connection);
        if self.holder != Some(connection) {
            return None;
        }
        let next = self.line.pop_front();
        self.holder = next.map(|(waiting, _)| waiting);
        next
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Begins,
    Ends,
    Nothing,
}

fn meaning(sql: &str) -> (bool, Effect) {
    let mut words = sql.split_ascii_whitespace().map(str::to_ascii_uppercase);
    let first = words.next().unwrap_or_default();
    match first.trim_end_matches(';') {
        "BEGIN" => {
            let writes =
                words.next().is_some_and(|word| word == "IMMEDIATE" || word == "EXCLUSIVE");
            (writes, Effect::Begins)
        }
        "COMMIT" | "END" | "ROLLBACK" => (false, Effect::Ends),
        "SELECT" | "VALUES" | "EXPLAIN" => (false, Effect::Nothing),
        _ => (true, Effect::Nothing),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Idle,
    InLine,
    Decided(Fate),
}

pub(super) struct SimulatedConnection {
    number: usize,
    queue: Queue,
    dialect: Dialect,
    // `None` without a store, and while the connection is being closed.
    rows: Option<Box<dyn Connection>>,
    classes: Vec<StatementClass>,
    // Of the latest statement.
    class: StatementClass,
    state: State,
    effect: Effect,
    is_in_transaction: bool,
    // Holds the write lock, or waits for it.
    is_writer: bool,
}

impl SimulatedConnection {
    pub(super) fn new(
        number: usize,
        queue: Queue,
        dialect: Dialect,
        rows: Option<Box<dyn Connection>>,
    ) -> SimulatedConnection {
        SimulatedConnection {
            number,
            queue,
            dialect: rows.as_ref().map_or(dialect, |rows| rows.dialect()),
            rows,
            classes: Vec::new(),
            class: StatementClass::Other,
            state: State::Idle,
            effect: Effect::Nothing,
            is_in_transaction: false,
            is_writer: false,
        }
    }

    fn send(&mut self, (writes, effect): (bool, Effect), may_fail: MayFail) {
        let writes = writes && self.rows.is_some();
        self.effect = effect;
        let now = self.queue.now();
        let mut inner = self.queue.lock();
        let fate = if writes && !self.is_writer {
            inner.submit_writing(now, self.number, may_fail)
        } else {
            Some(inner.submit(now, self.number, may_fail))
        };
        drop(inner);
        self.is_writer |= writes;
        self.state = fate.map_or(State::InLine, State::Decided);
    }

    /// Executes the statement; releases the lock if the transaction is over.
    fn finish(&mut self, ending: Result<(), ErrorClass>) -> Result<Reply, StatementError> {
        let late = "the database with the rows of the simulated server did not answer at once";
        let late = || StatementError::new(ErrorClass::Refused, "dyno-simulated", late);
        let result = match (ending, &mut self.rows) {
            (Err(class), _) => Err(injected_failure(class)),
            (Ok(()), None) => Ok(reply_without_rows(self.class)),
            (Ok(()), Some(rows)) => match rows.poll_reply() {
                Poll::Ready(result) => result,
                Poll::Pending => Err(late()),
            },
        };
        match self.effect {
            Effect::Begins if result.is_ok() => self.is_in_transaction = true,
            Effect::Ends if result.is_ok() => self.is_in_transaction = false,
            _ => {}
        }
        if self.is_writer && !self.is_in_transaction {
            self.is_writer = false;
            self.queue.release(self.number);
        }
        result
    }
}

fn reply_without_rows(class: StatementClass) -> Reply {
    match class {
        StatementClass::Read => Reply { rows: 1, ..Reply::default() },
        StatementClass::Write => Reply { affected: 1, ..Reply::default() },
        StatementClass::Other => Reply::default(),
    }
}

impl Drop for SimulatedConnection {
    /// Rolls back before another connection may write.
    fn drop(&mut self) {
        self.rows = None;
        self.queue.release(self.number);
    }
}

impl Connection for SimulatedConnection {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<(), StatementError> {
        self.classes = statements.iter().map(|statement| statement.class).collect();
        self.rows.as_mut().map_or(Ok(()), |rows| rows.prepare(statements))
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        if let Some(rows) = &mut self.rows {
            rows.send_execute(statement, values);
        }
        self.class = self.classes[statement];
        self.send((self.class == StatementClass::Write, Effect::Nothing), MayFail::Yes);
    }

    fn send_text(&mut self, sql: &str) {
        if let Some(rows) = &mut self.rows {
            rows.send_text(sql);
        }
        self.class = StatementClass::Other;
        self.send(meaning(sql), MayFail::No);
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply, StatementError>> {
        if self.state == State::InLine
            && let Some(fate) = self.queue.lock().take_granted(self.number)
        {
            self.state = State::Decided(fate);
        }
        let State::Decided((at, ending)) = self.state else { return Poll::Pending };
        if at.is_none_or(|at| self.queue.now() < at) {
            return Poll::Pending;
        }
        self.state = State::Idle;
        Poll::Ready(self.finish(ending))
    }

    fn kept_rows(&self) -> &KeptRows {
        self.rows.as_ref().map_or(KeptRows::none(), |rows| rows.kept_rows())
    }

    fn set_blocking(&mut self, _blocking: bool, _timeout_ns: u64) -> Result<(), StatementError> {
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<TextRows, StatementError> {
        self.rows.as_mut().map_or(Ok(TextRows::new()), |rows| rows.query(sql))
    }

    fn load_rows(&mut self, table: &str, columns: &[Name], next_row: NextRow<'_>) -> Done<u64> {
        if let Some(rows) = &mut self.rows {
            return rows.load_rows(table, columns, next_row);
        }
        let (mut row, mut n_rows) = (Row::new(), 0);
        while next_row(&mut row) {
            row.clear();
            n_rows += 1;
        }
        Ok(n_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_reports_what_a_statement_does() {
        let check = |sql: &str, writes: bool, effect: Effect| {
            assert_eq!(meaning(sql), (writes, effect), "{sql}");
        };
        check("BEGIN", false, Effect::Begins);
        check("begin immediate", true, Effect::Begins);
        check("BEGIN DEFERRED", false, Effect::Begins);
        check("COMMIT", false, Effect::Ends);
        check("ROLLBACK;", false, Effect::Ends);
        check(" SELECT 1", false, Effect::Nothing);
        check("INSERT INTO t VALUES (1)", true, Effect::Nothing);
        check("CREATE INDEX i ON t (x)", true, Effect::Nothing);
        check("", true, Effect::Nothing);
    }

    #[test]
    fn the_lock_goes_on_in_the_order_of_asking() {
        let mut lock = WriteLock::default();
        assert!(lock.ask(1, MayFail::No));
        assert!(!lock.ask(2, MayFail::No));
        assert!(!lock.ask(3, MayFail::Yes));
        assert!(!lock.ask(4, MayFail::No));
        assert_eq!(lock.leave(2), None);
        assert_eq!(lock.leave(1), Some((3, MayFail::Yes)));
        assert_eq!(lock.leave(1), None);
        assert_eq!(lock.leave(3), Some((4, MayFail::No)));
        assert_eq!(lock.leave(4), None);
        assert!(lock.ask(5, MayFail::No));
    }
}
