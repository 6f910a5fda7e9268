//! The loop of every client: wait until a transaction is due, do it, report how it ended. The loop
//! knows no clock: the load generator, behind [`Pace`], decides when a transaction is due, when it
//! was sent and done, and whether to retry.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use dyno_units::{Nanoseconds, RandomStream};

use crate::{
    ConnectError, Connection, Done, ErrorClass, Session, Statement, StatementError, Tally,
};

/// Decides when a client acts, and gets the outcomes. The load generator implements it for each
/// client; methods take `&self`, as session and loop share it.
pub trait Pace {
    /// Ready when the next transaction is due: true to do one, false to end.
    fn poll_due(&self) -> Poll<bool>;

    /// A transaction is about to be sent (again, after a retry).
    fn sent(&self);

    /// The transaction of this kind has ended; returns what to do next.
    fn done(&self, kind: usize, tally: Tally, result: Result<Ended, &StatementError>) -> Next;

    /// A pause (keying, thinking) until [`Pace::poll_pause`] is ready, which is at once if a
    /// schedule decides when transactions begin. False if the client is to end. The pace itself
    /// decides pauses before retries.
    fn begin_pause(&self, length: Nanoseconds) -> bool;

    /// Ready when the pause is over: the one before a retry, or the one that was begun.
    fn poll_pause(&self) -> Poll<()>;

    /// A pause within a transaction, under any load, until [`Pace::poll_pause`] is ready.
    fn begin_sleep(&self, _length: Nanoseconds) {}

    fn now(&self) -> Nanoseconds {
        Nanoseconds::ZERO
    }

    /// The time when the clock was last read: a moment ago.
    fn latest(&self) -> Nanoseconds {
        self.now()
    }

    /// The client retries at once: failure and retry count, and it stays in flight.
    fn retried_at_once(&self, _kind: usize, _tally: Tally, _error: &StatementError) {}

    /// When the transaction of the last [`Pace::poll_due`] was due; now, without a schedule.
    fn due(&self) -> Nanoseconds {
        self.latest()
    }

    /// The transaction that is due will not be sent: it counts as missed.
    fn skipped(&self) {}

    /// It has done all its work: steps that last until all quotas are done do not wait.
    fn finished(&self) {}

    /// The client now has this connection: wait for its descriptor from here on.
    fn attach(&self, connection: &mut dyn Connection) -> Done;

    fn detach(&self);

    /// True to wait before the first poll, which would find no reply, and not block for it.
    fn statement_sent(&self, _connection: &dyn Connection) -> bool {
        false
    }

    /// Poll again when the connection is readable, or writable if [`Connection::wants_write`].
    fn awaits_reply(&self, connection: &dyn Connection);

    fn is_overdue(&self) -> bool;

    /// Ready when a new connection is open, or could not be opened.
    fn poll_connect(&self) -> Poll<Result<Box<dyn Connection>, ConnectError>>;

    /// A reconnect failed; false if the client should give up.
    fn reconnect_failed(&self, error: &ConnectError) -> bool;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    #[default]
    Committed,
    /// As the workload demands ([`Session::roll_back_as_designed`]).
    RolledBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Proceed,
    /// Rolls back, pauses, and tries the same kind again under the same due time.
    Retry,
    /// Rolls back and waits for the next transaction: the outcome was final.
    GiveUp,
    Reconnect,
    Stop,
}

/// The whole run of a client as a future; it ends when its pace says so.
pub type ClientFuture = Pin<Box<dyn Future<Output = ()>>>;

pub struct ClientContext {
    pub client_idx: usize,
    pub n_clients: usize,
    /// Index of the step among [`crate::Workload::steps`]; 0 if the workload defines none.
    pub step: usize,
    /// Index of the client's role in that step; 0 if the workload defines none.
    pub role: usize,
    pub idx_in_role: usize,
    pub n_in_role: usize,
    pub random: RandomStream,
    pub session: Session,
    /// The statements, to prepare again after a reconnect.
    pub statements: Rc<[Statement]>,
    pub pace: Rc<dyn Pace>,
}

pub trait Transactions {
    /// Draws the kind of the next transaction; kind 0 where there is nothing to draw.
    fn draw(&mut self, _random: &mut RandomStream) -> usize {
        0
    }

    /// Delay because another client lags behind; zero to go on. Called again after each pause; the
    /// transaction is due after the last. Only under closed load: otherwise pauses have no length.
    fn delay_before(&mut self, _kind: usize) -> Nanoseconds {
        Nanoseconds::ZERO
    }

    /// Before a transaction (keying time), which is due afterwards. Called once per transaction,
    /// and only under closed load: under open load a schedule decides.
    fn pause_before(&mut self, _kind: usize, _random: &mut RandomStream) -> Nanoseconds {
        Nanoseconds::ZERO
    }

    /// After a transaction has ended in any way (think time); only under closed load.
    fn pause_after(&mut self, _kind: usize, _random: &mut RandomStream) -> Nanoseconds {
        Nanoseconds::ZERO
    }

    /// Does one transaction of this kind. After an error the loop rolls back.
    fn perform(
        &mut self,
        kind: usize,
        random: &mut RandomStream,
        session: &mut Session,
    ) -> impl Future<Output = Done>;
}

/// A client that cannot begin: each of its transactions fails with the reason.
pub(crate) struct Refused(pub(crate) StatementError);

impl Transactions for Refused {
    async fn perform(&mut self, _: usize, _: &mut RandomStream, _: &mut Session) -> Done {
        Err(self.0.clone())
    }
}

pub(crate) fn refused(context: ClientContext, reason: &str) -> ClientFuture {
    let error = StatementError::new(ErrorClass::Refused, "usage", reason);
    Box::pin(drive(Refused(error), context))
}

pub(crate) fn with_statements(
    client: impl Transactions + 'static,
    statements: Vec<Statement>,
    mut context: ClientContext,
) -> ClientFuture {
    if let Err(error) = context.session.prepare(&statements) {
        let StatementError { class, code, message, .. } = error;
        let message = format!("a statement could not be prepared: {message}");
        return Box::pin(drive(Refused(StatementError::new(class, code, message)), context));
    }
    context.statements = statements.into();
    Box::pin(drive(client, context))
}

pub async fn drive<T: Transactions>(mut transactions: T, context: ClientContext) {
    let ClientContext { mut random, mut session, statements, pace, .. } = context;
    // Once: each access through a counted pointer to an unsized type computes the address again.
    let pace: &dyn Pace = pace.as_ref();
    while poll_fn(|_| pace.poll_due()).await {
        let kind = transactions.draw(&mut random);
        loop {
            let length = transactions.delay_before(kind);
            if length == Nanoseconds::ZERO {
                break;
            }
            if !pause(pace, length).await {
                return;
            }
        }
        let length = transactions.pause_before(kind, &mut random);
        if length > Nanoseconds::ZERO && !pause(pace, length).await {
            return;
        }
        loop {
            pace.sent();
            let result = transactions.perform(kind, &mut random, &mut session).await;
            // Also after a failure: an earlier rollback says nothing about the next attempt.
            let ended = session.take_ended();
            let ended = result.as_ref().map(|()| ended);
            let next = pace.done(kind, session.take_tally(), ended);
            match next {
                Next::Proceed => break,
                Next::Stop => return,
                Next::Reconnect => {
                    if !reconnect(&mut session, &statements, pace).await {
                        return;
                    }
                    break;
                }
                Next::Retry | Next::GiveUp => {
                    session.drop_replies().await;
                    // After a failed rollback the connection's state is unknown.
                    if session.rollback().await.is_err()
                        && !reconnect(&mut session, &statements, pace).await
                    {
                        return;
                    }
                    if next == Next::GiveUp {
                        break;
                    }
                    poll_fn(|_| pace.poll_pause()).await;
                }
            }
        }
        let length = transactions.pause_after(kind, &mut random);
        if length > Nanoseconds::ZERO && !pause(pace, length).await {
            return;
        }
    }
}

/// `length` is not zero; false when the step has ended. Not called without a pause: even a ready
/// future has a cost.
async fn pause(pace: &dyn Pace, length: Nanoseconds) -> bool {
    if !pace.begin_pause(length) {
        return false;
    }
    poll_fn(|_| pace.poll_pause()).await;
    // The step may have ended in the pause, and then nothing more is sent.
    pace.begin_pause(Nanoseconds::ZERO)
}

async fn reconnect(session: &mut Session, statements: &[Statement], pace: &dyn Pace) -> bool {
    loop {
        match session.reconnect(statements).await {
            Ok(()) => return true,
            Err(error) if !pace.reconnect_failed(&error) => return false,
            Err(_) => {}
        }
    }
}
