//! A client's connection, with counters.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::connection::{ConnectError, Connection, Reply, Statement, StatementClass};
use crate::{Dialect, Done, Ended, ErrorClass, KeptRows, LastRows, Pace, StatementError, Value};

mod pipeline;

/// What a client has sent and received since the tally was last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// Statements that returned rows and changed none.
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub rows_received: u64,
    pub rows_changed: u64,
    pub warnings: u64,
}

impl Tally {
    pub fn statements(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Adds another tally to this one. Servers say what they like: a sum does not begin again at 0.
    pub fn add(&mut self, other: &Tally) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.rows_received += other.rows_received;
        self.rows_changed = self.rows_changed.saturating_add(other.rows_changed);
        self.warnings += other.warnings;
    }
}

/// A client's connection: sends statements, waits for their replies, counts both.
///
/// A statement is counted when its reply is complete, whether it succeeded or not.
// Hot fields first, so that they share cache lines.
#[repr(C)]
pub struct Session {
    connection: Box<dyn Connection>,
    pace: Rc<dyn Pace>,
    tally: Tally,
    ended: Ended,
    classes: Vec<StatementClass>,
    // The statement whose reply was not there at once, and whether it is waited for before it is polled.
    unanswered: Option<(StatementClass, bool)>,
    // Of the statements of a pipeline whose replies are to be taken, oldest first.
    asked: VecDeque<StatementClass>,
    has_pipelines: bool,
    // The next reply of the pipeline is its first.
    is_first_reply: bool,
}

/// Prepares statements and runs those that only set something up; the classes of the prepared ones.
fn prepare_on(connection: &mut dyn Connection, all: &[Statement]) -> Done<Vec<StatementClass>> {
    let (set_ups, prepared): (Vec<Statement>, Vec<Statement>) =
        all.iter().cloned().partition(|statement| statement.is_set_up);
    connection.prepare(&prepared)?;
    for statement in set_ups {
        connection.query(&statement.sql)?;
    }
    Ok(prepared.iter().map(|statement| statement.class).collect())
}

impl Session {
    pub fn open(
        mut connection: Box<dyn Connection>,
        statements: &[Statement],
        pace: Rc<dyn Pace>,
    ) -> Result<Session, StatementError> {
        let classes = prepare_on(connection.as_mut(), statements)?;
        pace.attach(connection.as_mut())?;
        Ok(Session {
            connection,
            classes,
            pace,
            tally: Tally::default(),
            ended: Ended::Committed,
            unanswered: None,
            asked: VecDeque::new(),
            has_pipelines: false,
            is_first_reply: false,
        })
    }

    /// Replaces prepared statements, for a client whose statements depend on its context, before
    /// its first transaction. Blocks. A reconnect prepares [`crate::ClientContext::statements`], so
    /// set those, too. Fails if the server refuses one.
    pub fn prepare(&mut self, statements: &[Statement]) -> Result<(), StatementError> {
        self.classes = prepare_on(self.connection.as_mut(), statements)?;
        Ok(())
    }

    /// See [`Connection::prepare_at`]. Blocks. Fails if the server refuses.
    pub fn prepare_at(&mut self, idx: usize, statement: &Statement) -> Result<(), StatementError> {
        self.connection.prepare_at(idx, statement)?;
        match self.classes.get_mut(idx) {
            Some(class) => *class = statement.class,
            None => self.classes.push(statement.class),
        }
        Ok(())
    }

    pub fn connection(&mut self) -> &mut dyn Connection {
        self.connection.as_mut()
    }

    pub fn dialect(&self) -> Dialect {
        self.connection.dialect()
    }

    #[inline]
    pub fn execute(&mut self, statement: usize, values: &[Value<'_>]) -> Answer<'_> {
        self.connection.send_execute(statement, values);
        let class = self.classes[statement];
        self.answer(class)
    }

    /// Returns the reply if it is there at once, as when reads block and it is not wanted `later`; otherwise
    /// [`Session::unanswered`] waits for it.
    pub fn execute_at_once(
        &mut self,
        (statement, class): (usize, StatementClass),
        values: &[Value<'_>],
        later: bool,
    ) -> Option<Result<Reply, StatementError>> {
        self.connection.send_execute(statement, values);
        let connection = self.connection.as_mut();
        let waits_first = self.pace.statement_sent(connection) && !connection.wants_write();
        if waits_first || later {
            self.unanswered = Some((class, true));
            return None;
        }
        let result = match connection.poll_reply() {
            Poll::Ready(result) => result,
            Poll::Pending if self.pace.is_overdue() => Err(overdue()),
            Poll::Pending => {
                self.unanswered = Some((class, false));
                return None;
            }
        };
        self.count(class, &result);
        Some(result)
    }

    /// The reply to the statement that [`Session::execute_at_once`] has sent.
    pub fn unanswered(&mut self) -> Answer<'_> {
        let unanswered = self.unanswered.take();
        // Without one, the connection says that no statement is in flight.
        let (class, waits_first) = unanswered.unwrap_or((StatementClass::Other, false));
        Answer { session: self, class, waits_first, is_unlimited: false }
    }

    /// Sends a text statement, counted as `class`, and waits for its reply.
    #[inline]
    pub fn text(&mut self, sql: &str, class: StatementClass) -> Answer<'_> {
        self.connection.send_text(sql);
        self.answer(class)
    }

    #[inline]
    pub fn text_keeping(&mut self, sql: &str, columns: usize, class: StatementClass) -> Answer<'_> {
        self.connection.send_text_keeping(sql, columns);
        self.answer(class)
    }

    /// None if the product keeps none. See [`Connection::send_text_keeping_last`].
    pub fn text_keeping_last(&mut self, sql: &str, class: StatementClass) -> Option<Answer<'_>> {
        self.connection.send_text_keeping_last(sql).then(|| self.answer(class))
    }

    /// The last rows of the latest statement that keeps them; see [`Connection::last_rows`].
    pub fn last_rows(&self) -> &LastRows {
        self.connection.last_rows()
    }

    pub fn is_in_transaction(&self) -> Option<bool> {
        self.connection.is_in_transaction()
    }

    /// For a statement that may take hours (making an index): without the statements' time limit.
    pub fn text_without_limit(&mut self, sql: &str, class: StatementClass) -> Answer<'_> {
        Answer { is_unlimited: true, ..self.text(sql, class) }
    }

    pub fn begin(&mut self) -> Answer<'_> {
        self.text("BEGIN", StatementClass::Other)
    }

    pub fn commit(&mut self) -> Answer<'_> {
        self.text("COMMIT", StatementClass::Other)
    }

    pub fn rollback(&mut self) -> Answer<'_> {
        self.text("ROLLBACK", StatementClass::Other)
    }

    /// As the workload demands: counts neither as failed nor as committed.
    pub async fn roll_back_as_designed(&mut self) -> Result<(), StatementError> {
        self.rollback().await?;
        self.ended = Ended::RolledBack;
        Ok(())
    }

    /// Notes that the server rolled the transaction back by design (in a stored procedure).
    pub fn rolled_back_as_designed(&mut self) {
        self.ended = Ended::RolledBack;
    }

    pub fn kept_rows(&self) -> &KeptRows {
        self.connection.kept_rows()
    }

    /// Takes the transaction's outcome; the next one counts as committed unless it says otherwise.
    pub fn take_ended(&mut self) -> Ended {
        std::mem::take(&mut self.ended)
    }

    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Replaces a lost connection; waits without blocking the other clients of the worker.
    pub async fn reconnect(&mut self, statements: &[Statement]) -> Result<(), ConnectError> {
        self.pace.detach();
        let pace = Rc::clone(&self.pace);
        let mut connection = poll_fn(|_| pace.poll_connect()).await?;
        let failed = |error: StatementError| ConnectError {
            address: "the server".to_owned(),
            reason: error.to_string(),
            details: error.details,
        };
        prepare_on(connection.as_mut(), statements).map_err(failed)?;
        self.pace.attach(connection.as_mut()).map_err(failed)?;
        self.connection = connection;
        self.asked.clear();
        Ok(())
    }

    #[inline]
    fn answer(&mut self, class: StatementClass) -> Answer<'_> {
        let connection = self.connection.as_ref();
        let waits_first = self.pace.statement_sent(connection) && !connection.wants_write();
        Answer { session: self, class, waits_first, is_unlimited: false }
    }

    #[inline]
    fn count(&mut self, class: StatementClass, result: &Result<Reply, StatementError>) {
        let tally = &mut self.tally;
        match class {
            StatementClass::Read => tally.reads += 1,
            StatementClass::Write => tally.writes += 1,
            StatementClass::Other => tally.others += 1,
        }
        if let Ok(reply) = result {
            tally.rows_received += reply.rows;
            tally.rows_changed = tally.rows_changed.saturating_add(reply.affected);
            tally.warnings += reply.warnings;
        }
    }
}

/// The reply to a sent statement: a hand-written future, as every statement passes through it, and
/// each layer of futures costs instructions.
#[must_use = "a statement whose reply is not awaited keeps the next one from being sent"]
pub struct Answer<'a> {
    session: &'a mut Session,
    class: StatementClass,
    // The reply is waited for before the connection is polled the first time.
    waits_first: bool,
    // The statement may take any time.
    is_unlimited: bool,
}

impl Future for Answer<'_> {
    type Output = Result<Reply, StatementError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let Answer { session, class, waits_first, is_unlimited } = self.get_mut();
        let Session { connection, pace, .. } = &mut **session;
        if std::mem::take(waits_first) {
            pace.awaits_reply(connection.as_ref());
            return Poll::Pending;
        }
        let result = match connection.poll_reply() {
            Poll::Ready(result) => result,
            Poll::Pending if !*is_unlimited && pace.is_overdue() => Err(overdue()),
            Poll::Pending => {
                pace.awaits_reply(connection.as_ref());
                return Poll::Pending;
            }
        };
        session.count(*class, &result);
        Poll::Ready(result)
    }
}

#[cold]
fn overdue() -> StatementError {
    let message = "no reply within the statement's time limit";
    StatementError::new(ErrorClass::TimedOut, "timeout", message)
}
