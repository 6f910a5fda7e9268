//! A client's events and statements. While replies are there, scripts continue without a switch to the worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, ready};

use dyno_sysbench::{Events, Executed, Held};

use crate::prelude::*;

use super::Shared;
use super::client::value_of;
use super::links::{Links, MOST_VALUES, Quick};
use super::statistics::ClientCells;
use crate::Next;

/// Statements after which the worker gets its turn, even if a script has no events.
const MOST_AT_ONCE: u32 = 1000;

/// The kind of its transactions; there is one.
pub(super) const KIND: usize = 0;

// Hot fields first, so that they share cache lines.
#[repr(C, align(64))]
pub(super) struct EventLoop {
    cells: Arc<ClientCells>,
    pace: Rc<dyn Pace>,
    shared: Arc<Shared>,
    /// When the event began that is under way, as far as its latency is concerned.
    began: Cell<Option<Nanoseconds>>,
    /// Statements since the worker had its turn, or the event began.
    n_at_once: Cell<u32>,
    /// The script was told that the next event takes a while.
    is_told: Cell<bool>,
    is_over: Cell<bool>,
    /// The connections, as long as the script runs.
    links: RefCell<Links>,
    /// The statement that was sent last whose result the script has not, and its error if it failed.
    sent: RefCell<(usize, Option<StatementError>)>,
}

impl EventLoop {
    pub(super) fn new(shared: Arc<Shared>, cells: Arc<ClientCells>, pace: Rc<dyn Pace>) -> Self {
        EventLoop {
            shared,
            cells,
            pace,
            began: Cell::new(None),
            links: RefCell::default(),
            sent: RefCell::default(),
            n_at_once: Cell::new(0),
            is_told: Cell::new(false),
            is_over: Cell::new(false),
        }
    }

    /// The script goes on, with these connections.
    pub(super) fn lend(&self, links: Links) {
        self.links.replace(links);
    }

    pub(super) fn take_back(&self) -> Links {
        self.links.take()
    }

    /// The statement that was sent without leaving the script, and its error if it has failed.
    pub(super) fn take_sent(&self) -> (usize, Option<StatementError>) {
        self.sent.take()
    }

    /// Whether an event is under way. It is not any more.
    pub(super) fn give_up(&self) -> bool {
        self.began.take().is_some()
    }

    /// No further event begins.
    pub(super) fn end(&self) {
        // The clock may have been read last when the event began.
        self.pace.now();
        self.pace.finished();
        self.is_over.set(true);
    }

    pub(super) fn done(&self, tally: Tally) {
        let Some(began) = self.began.take() else { return };
        let next = self.pace.done(KIND, tally, Ok(Ended::Committed));
        let now = self.pace.latest();
        self.cells.event_ended(now, now.saturating_sub(began));
        if next == Next::Stop {
            self.is_over.set(true);
        }
    }

    /// Ready when the next event has begun: true; or when there is none.
    pub(super) fn poll_more(&self) -> Poll<bool> {
        if self.is_told.take() {
            // The pace wakes the client.
            return Poll::Pending;
        }
        if self.is_over.get() || !ready!(self.pace.poll_due()) {
            return Poll::Ready(false);
        }
        if !self.shared.takes_event() {
            self.end();
            return Poll::Ready(false);
        }
        self.pace.sent();
        let is_paced = self.shared.settings.is_paced;
        let began = if is_paced { self.pace.due() } else { self.pace.latest() };
        self.cells.began(began);
        self.cells.event_began();
        self.began.set(Some(began));
        self.n_at_once.set(0);
        Poll::Ready(true)
    }
}

impl Events for EventLoop {
    fn next(&self) -> Option<bool> {
        let tally = self.links.borrow_mut().main.as_mut().map(Session::take_tally);
        self.done(tally.unwrap_or_default());
        match self.poll_more() {
            Poll::Ready(more) => Some(more),
            Poll::Pending => {
                self.is_told.set(true);
                None
            }
        }
    }

    fn execute(&self, statement: usize, held: &[Held], bytes: &[u8]) -> Executed {
        let mut links = self.links.borrow_mut();
        let Some((session, quick)) = links.own(statement) else { return Executed::NotSent };
        let value = |at: usize| value_of(held[at], quick.kind(at), bytes);
        // Room for no more values than there are, since it is written first.
        match held.len() {
            1 => self.sent_with(session, (statement, quick), &[value(0)]),
            2 => self.sent_with(session, (statement, quick), &[value(0), value(1)]),
            n => {
                let mut few = [Value::Null; MOST_VALUES];
                let Some(values) = few.get_mut(..n) else { return Executed::NotSent };
                values.iter_mut().enumerate().for_each(|(at, place)| *place = value(at));
                self.sent_with(session, (statement, quick), values)
            }
        }
    }
}

impl EventLoop {
    /// Sends a statement; what it came to, if that is known at once.
    #[inline]
    fn sent_with(
        &self,
        session: &mut Session,
        (statement, quick): (usize, Quick),
        values: &[Value<'_>],
    ) -> Executed {
        let n_at_once = self.n_at_once.get() + 1;
        let is_turn = n_at_once >= MOST_AT_ONCE;
        self.n_at_once.set(if is_turn { 0 } else { n_at_once });
        match session.execute_at_once((quick.prepared as usize, quick.class), values, is_turn) {
            Some(Ok(answer)) => {
                let has_rows = quick.class == StatementClass::Read || answer.rows > 0;
                self.cells.answered(has_rows, answer.affected);
                if has_rows { Executed::Rows(answer.rows) } else { Executed::NoRows }
            }
            unknown => {
                self.sent.replace((statement, unknown.and_then(Result::err)));
                Executed::Sent
            }
        }
    }
}
