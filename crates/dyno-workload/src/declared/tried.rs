//! Runs each kind of transaction once before any load, and rolls it back: shows whether the server accepts
//! statements with their values before thousands of attempts are refused.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::prelude::*;
use crate::sysbench::sequence::Sequences;
use crate::{ConnectError, Next, Tried};

use super::audit::Counts;
use super::client::Client;
use super::definition::place;
use super::generator::Numbers;
use super::transaction::{Action, Transaction};
use super::{Declared, Dialect, Workload};

/// How long a read waits, and how many reads a reply may take: it is waited for for 20 seconds at most.
const READ_LIMIT: Nanoseconds = Nanoseconds::from_millis(100);
const READS_MOST: u32 = 200;

/// Other values are drawn before a kind counts as refused: a single one may be out of range by chance.
const TRIES: u64 = 3;

/// Of a client that waits for each reply within reads that block.
#[derive(Default)]
struct Patience {
    /// Reads that have found no whole reply.
    reads: Cell<u32>,
}

impl Pace for Patience {
    fn poll_due(&self) -> Poll<bool> {
        Poll::Ready(false)
    }

    fn sent(&self) {}

    fn done(&self, _: usize, _: Tally, _: Result<Ended, &StatementError>) -> Next {
        Next::Stop
    }

    fn begin_pause(&self, _: Nanoseconds) -> bool {
        false
    }

    fn poll_pause(&self) -> Poll<()> {
        Poll::Ready(())
    }

    fn attach(&self, connection: &mut dyn Connection) -> Result<(), StatementError> {
        connection.set_blocking(true, READ_LIMIT.0)
    }

    fn detach(&self) {}

    fn statement_sent(&self, _: &dyn Connection) -> bool {
        self.reads.set(0);
        false
    }

    fn awaits_reply(&self, _: &dyn Connection) {
        self.reads.set(self.reads.get() + 1);
    }

    fn is_overdue(&self) -> bool {
        self.reads.get() >= READS_MOST
    }

    fn poll_connect(&self) -> Poll<Result<Box<dyn Connection>, ConnectError>> {
        let reason = "no other connection is opened".to_owned();
        let address = "the server".to_owned();
        Poll::Ready(Err(ConnectError { address, reason, details: None }))
    }

    fn reconnect_failed(&self, _: &ConnectError) -> bool {
        false
    }
}

/// Runs what waits for nothing but reads that block.
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
}

/// Why a kind is not tried: what it does may not be undone.
fn obstacle(transaction: &Transaction, dialect: Dialect) -> Option<&'static str> {
    let forms = transaction.steps.iter().filter_map(|step| match &step.action {
        Action::Sql(sql) => sql.forms[place(dialect)].as_ref().ok(),
        Action::RollBack => None,
    });
    let mut forms = forms.filter(|form| !form.is_read && !form.is_write);
    forms.next().map(|_| "not all of its statements only read or write rows")
}

/// Whether the error means that the kind cannot run; errors that depend on present rows do not.
fn judged(error: StatementError) -> Tried {
    let code = error.state.as_ref().map_or(error.code.as_str(), |state| state.as_str());
    // Integrity constraints.
    let is_of_rows = code.starts_with("23") || error.code.starts_with("SQLITE_CONSTRAINT");
    let is_of_rows = is_of_rows || error.code == "dyno:expression";
    match error.class {
        ErrorClass::Refused if !is_of_rows => Tried::Refused(error),
        _ => Tried::Not(format!("it was not tried to its end: {error}")),
    }
}

impl Declared {
    /// See [`crate::Clients::try_kinds`].
    pub(super) fn try_kinds(
        &self,
        connection: Box<dyn Connection>,
        first: &[Option<i64>],
    ) -> Result<Vec<Tried>, StatementError> {
        let definition = &self.definition;
        let dialect = connection.dialect();
        // All of its own: nothing here is counted, or moves what clients draw.
        let seed = Seed(0).derive("tried", 0);
        let sequence = || Sequences::default().member(0, 1);
        let numbers = |first: &Option<i64>| Numbers { first: *first, sequence: sequence() };
        let sequences = first.iter().map(numbers).collect();
        let own = (sequences, Counts::new(definition).client(), seed.0);
        let mut client = Client::new(definition, dialect, own).undone();
        let pace = Rc::new(Patience::default());
        let mut session = Session::open(connection, &self.statements(dialect), pace)?;
        let mut is_lost = false;
        let kinds = definition.transactions.iter().enumerate().map(|(kind, transaction)| {
            if is_lost {
                return Tried::Not("the connection was lost before".to_owned());
            }
            if let Some(why) = obstacle(transaction, dialect) {
                return Tried::Not(why.to_owned());
            }
            let mut tried = Tried::Done;
            for nth in 0..TRIES {
                let mut random = seed.derive("kind", kind as u64 * TRIES + nth).stream();
                let result = finish(client.perform(kind, &mut random, &mut session));
                let is_over = matches!(session.take_ended(), Ended::RolledBack);
                is_lost = result.as_ref().is_err_and(|error| error.class.loses_connection())
                    || (!is_over && finish(session.rollback()).is_err());
                tried = result.map_or_else(judged, |()| Tried::Done);
                if is_lost || !matches!(tried, Tried::Refused(_)) {
                    break;
                }
            }
            tried
        });
        Ok(kinds.collect())
    }
}
