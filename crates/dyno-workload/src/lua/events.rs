//! When the events of a client begin and end. Its script asks without being left, where the answer is
//! there: that saves half of the changes between the script and the worker for events of one statement.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};

use dyno_sysbench::Events;
use dyno_units::Nanoseconds;

use super::Shared;
use super::statistics::ClientCells;
use crate::{Ended, Next, Pace, Tally};

/// The kind of its transactions; there is one.
pub(super) const KIND: usize = 0;

/// The events of one client.
pub(super) struct EventLoop {
    shared: Arc<Shared>,
    cells: Arc<ClientCells>,
    pace: Rc<dyn Pace>,
    /// When the event began that is under way, as far as its latency is concerned.
    began: Cell<Option<Nanoseconds>>,
    /// What the event has done so far.
    tally: RefCell<Tally>,
    /// The script was told that the next event takes a while.
    is_told: Cell<bool>,
    is_over: Cell<bool>,
}

impl EventLoop {
    pub(super) fn new(shared: Arc<Shared>, cells: Arc<ClientCells>, pace: Rc<dyn Pace>) -> Self {
        EventLoop {
            shared,
            cells,
            pace,
            began: Cell::new(None),
            tally: RefCell::default(),
            is_told: Cell::new(false),
            is_over: Cell::new(false),
        }
    }

    /// The event has done this, too.
    pub(super) fn add(&self, tally: &Tally) {
        self.tally.borrow_mut().add(tally);
    }

    /// What the event has done so far; the next one begins with nothing.
    pub(super) fn take_tally(&self) -> Tally {
        self.tally.take()
    }

    /// Whether an event is under way. It is not any more.
    pub(super) fn give_up(&self) -> bool {
        self.began.take().is_some()
    }

    /// No further event begins.
    pub(super) fn end(&self) {
        self.pace.finished();
        self.is_over.set(true);
    }

    /// An event has ended well.
    pub(super) fn done(&self) {
        let Some(began) = self.began.take() else { return };
        let next = self.pace.done(KIND, self.take_tally(), Ok(Ended::Committed));
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
        Poll::Ready(true)
    }
}

impl Events for EventLoop {
    fn next(&self) -> Option<bool> {
        self.done();
        match self.poll_more() {
            Poll::Ready(more) => Some(more),
            Poll::Pending => {
                self.is_told.set(true);
                None
            }
        }
    }
}
