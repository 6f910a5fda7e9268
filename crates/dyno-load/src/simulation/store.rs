//! Rows of a simulated server: a real database executes each statement at the simulated moment at
//! which it completes, so that effects follow simulated time.
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
    ConnectError, Connection, Connector, Dialect, ErrorClass, KeptRows, Reply, Row, Statement,
    StatementClass, StatementError, TextRows, Value,
};

use super::server::{Fate, MayFail, Queue, injected_failure};

/// A database that answers at once; its readers see what was committed before they began.
#[derive(Clone)]
pub struct Store(Connector);

impl Store {
    pub fn new(connector: Connector) -> Store {
        Store(connector)
    }

    /// Refuses a connection whose replies have to be waited for.
    pub(super) fn connect(&self) -> Result<Box<dyn Connection>, ConnectError> {
        let connection = (self.0)()?;
        if connection.descriptor().is_some() {
            return Err(ConnectError {
                address: "the simulated server".to_owned(),
                reason: "its rows are in a database that does not answer at once".to_owned(),
                details: None,
            });
        }
        Ok(connection)
    }
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

/// Whether the statement writes, and its effect on the transaction.
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

pub(super) struct StoringConnection {
    number: usize,
    queue: Queue,
    // `None` while the connection is being closed.
    rows: Option<Box<dyn Connection>>,
    classes: Vec<StatementClass>,
    state: State,
    effect: Effect,
    is_in_transaction: bool,
    // Holds the write lock, or waits for it.
    is_writer: bool,
}

impl StoringConnection {
    pub(super) fn new(number: usize, queue: Queue, rows: Box<dyn Connection>) -> StoringConnection {
        StoringConnection {
            number,
            queue,
            rows: Some(rows),
            classes: Vec::new(),
            state: State::Idle,
            effect: Effect::Nothing,
            is_in_transaction: false,
            is_writer: false,
        }
    }

    fn rows(&mut self) -> &mut dyn Connection {
        self.rows.as_deref_mut().expect("it is there until the connection is dropped")
    }

    fn send(&mut self, (writes, effect): (bool, Effect), may_fail: MayFail) {
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
        let result = match ending {
            Err(class) => Err(injected_failure(class)),
            Ok(()) => match self.rows().poll_reply() {
                Poll::Ready(result) => result,
                Poll::Pending => Err(StatementError::new(
                    ErrorClass::Refused,
                    "dyno-simulated",
                    "the database with the rows of the simulated server did not answer at once",
                )),
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

impl Drop for StoringConnection {
    /// Rolls back before another connection may write.
    fn drop(&mut self) {
        self.rows = None;
        self.queue.release(self.number);
    }
}

impl Connection for StoringConnection {
    fn dialect(&self) -> Dialect {
        self.rows.as_ref().expect("it is there until the connection is dropped").dialect()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<(), StatementError> {
        self.classes = statements.iter().map(|statement| statement.class).collect();
        self.rows().prepare(statements)
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        self.rows().send_execute(statement, values);
        let writes = self.classes[statement] == StatementClass::Write;
        self.send((writes, Effect::Nothing), MayFail::Yes);
    }

    fn send_text(&mut self, sql: &str) {
        self.rows().send_text(sql);
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
        self.rows().query(sql)
    }

    fn load_rows(
        &mut self,
        table: &str,
        columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64, StatementError> {
        self.rows().load_rows(table, columns, next_row)
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
