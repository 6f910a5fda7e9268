//! The loop that every client runs: wait until a transaction is due, do it, tell how it ended.
//!
//! The loop knows no clock. When a transaction is due, when it was sent and done, whether to try
//! again, and for how long: all that is the load generator's, behind [`Pace`].

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use dyno_units::{Nanoseconds, RandomStream};

use crate::{ConnectError, Connection, Session, Statement, StatementError, Tally};

/// Decides when a client acts, and is told how it went. Implemented by the load generator, one
/// for each client; all methods take `&self` because the session and the loop share it.
pub trait Pace {
    /// Ready when the next transaction is due: true to do one, false to end.
    fn poll_due(&self) -> Poll<bool>;

    /// A transaction is about to be sent (again, after a retry).
    fn sent(&self);

    /// The transaction of this kind has ended; says what to do next.
    fn done(&self, kind: usize, tally: Tally, result: Result<Ended, &StatementError>) -> Next;

    /// The client will pause for this long (keying, thinking): [`Pace::poll_pause`] tells when it
    /// is over; at once where something else than the client says when transactions begin. False
    /// when the client is to end instead. The pause before a retry is the pace's own.
    fn begin_pause(&self, length: Nanoseconds) -> bool;

    /// Ready when the pause is over: the one before a retry, or the one that was begun.
    fn poll_pause(&self) -> Poll<()>;

    /// The client now has this connection: wait for its descriptor from here on.
    fn attach(&self, connection: &mut dyn Connection) -> Result<(), StatementError>;

    /// The client's connection is about to be dropped.
    fn detach(&self);

    /// A statement has been sent. True when its reply is worth waiting for before the connection
    /// is polled the first time; false when polling finds it, or blocks until it is there.
    fn statement_sent(&self, connection: &dyn Connection) -> bool {
        let _ = connection;
        false
    }

    /// The statement in flight is not complete: poll again when the connection's descriptor is
    /// readable, or writable where [`Connection::wants_write`].
    fn awaits_reply(&self, connection: &dyn Connection);

    /// Whether the statement in flight has run out of its time limit.
    fn is_overdue(&self) -> bool;

    /// Ready when a new connection is open, or cannot be had.
    fn poll_connect(&self) -> Poll<Result<Box<dyn Connection>, ConnectError>>;

    /// A reconnect failed; false when the client should give up.
    fn reconnect_failed(&self, error: &ConnectError) -> bool;
}

/// How a transaction ended that did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// The server confirmed the commit.
    #[default]
    Committed,
    /// The client rolled back because the workload wants it so ([`Session::roll_back_as_meant`]).
    RolledBack,
}

/// What a client does after a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Waits for the next transaction.
    Proceed,
    /// Rolls back, pauses, and tries the same kind again under the same due time.
    Retry,
    /// Rolls back and waits for the next transaction: the outcome was final.
    GiveUp,
    /// Gets a new connection, then waits for the next transaction.
    Reconnect,
    /// Ends.
    Stop,
}

/// Everything one client is given.
pub struct Seat {
    /// Which client this is, counted from 0.
    pub client_idx: usize,
    /// How many clients there are in this step.
    pub n_clients: usize,
    /// Index of the step among [`crate::Workload::steps`]; 0 where the workload defines none.
    pub step: usize,
    /// Index of the client's role in that step; 0 where the workload defines none.
    pub role: usize,
    /// Which client of its role this is, counted from 0.
    pub idx_in_role: usize,
    /// How many clients its role has.
    pub n_in_role: usize,
    /// The client's own random stream.
    pub random: RandomStream,
    /// Its connection, statements prepared.
    pub session: Session,
    /// The statements, to prepare again after a reconnect.
    pub statements: Rc<[Statement]>,
    /// Its pace.
    pub pace: Rc<dyn Pace>,
}

/// The transactions of one client.
pub trait Transactions {
    /// Draws the kind of the next transaction.
    fn draw(&mut self, random: &mut RandomStream) -> usize;

    /// How long a transaction of this kind has to be put off because another client lags behind:
    /// zero to do it now. Asked again after each such pause, and it is due when the last one is
    /// over. A workload that puts off does so under closed load only: elsewhere pauses have no
    /// length.
    fn put_off(&mut self, kind: usize) -> Nanoseconds {
        let _ = kind;
        Nanoseconds::ZERO
    }

    /// Pause before a transaction of this kind (keying time); the transaction is due when it is
    /// over. Asked once for each transaction; heeded under closed load only, since under open load
    /// a schedule says what is due when.
    fn pause_before(&mut self, kind: usize, random: &mut RandomStream) -> Nanoseconds {
        let _ = (kind, random);
        Nanoseconds::ZERO
    }

    /// Pause after a transaction of this kind has ended in whatever way (think time); heeded under
    /// closed load only.
    fn pause_after(&mut self, kind: usize, random: &mut RandomStream) -> Nanoseconds {
        let _ = (kind, random);
        Nanoseconds::ZERO
    }

    /// Does one transaction of this kind. After an error the loop rolls back.
    fn perform(
        &mut self,
        kind: usize,
        random: &mut RandomStream,
        session: &mut Session,
    ) -> impl Future<Output = Result<(), StatementError>>;
}

/// Runs a client until its pace ends it.
pub async fn drive<T: Transactions>(mut transactions: T, seat: Seat) {
    let Seat { mut random, mut session, statements, pace, .. } = seat;
    // Once: what lies behind a counted pointer to something unsized is looked for each time.
    let pace: &dyn Pace = pace.as_ref();
    while poll_fn(|_| pace.poll_due()).await {
        let kind = transactions.draw(&mut random);
        loop {
            let length = transactions.put_off(kind);
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
            // Taken after a failure as well: what an attempt had rolled back as meant before it failed
            // says nothing of the next one.
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
                    // A rollback that fails has lost its connection or its transaction; either
                    // way the connection's state is unknown, and a fresh one is not.
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

/// Pauses for this long, which is not zero; false when the step has ended meanwhile. Not called at
/// all where there is no pause: a future that ends at once costs something too.
async fn pause(pace: &dyn Pace, length: Nanoseconds) -> bool {
    if !pace.begin_pause(length) {
        return false;
    }
    poll_fn(|_| pace.poll_pause()).await;
    // The step may have ended in the pause, and then nothing more is sent.
    pace.begin_pause(Nanoseconds::ZERO)
}

/// Tries to get a new connection until there is one, or the pace gives up.
async fn reconnect(session: &mut Session, statements: &[Statement], pace: &dyn Pace) -> bool {
    loop {
        match session.reconnect(statements).await {
            Ok(()) => return true,
            Err(error) if !pace.reconnect_failed(&error) => return false,
            Err(_) => {}
        }
    }
}
