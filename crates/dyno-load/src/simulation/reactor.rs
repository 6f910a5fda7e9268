//! Waits in simulated time: moves the clock to the next event.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_units::{Clock, ManualClock, Nanoseconds};
use dyno_workload::{ConnectError, Connection, Connector, Done};

use super::server::{Queue, SimulatedServer};
use crate::reactor::{Deadline, Happened, Reactor, Usage, WaitMode};
use crate::step::Loaded;

type Opened = Result<Box<dyn Connection>, ConnectError>;

pub(super) struct SimulatedReactor {
    clock: Arc<ManualClock>,
    queue: Queue,
    // The client of each connection; each connection has a new number.
    clients: RefCell<BTreeMap<usize, u32>>,
    opened: RefCell<Vec<(u32, Opened)>>,
}

impl SimulatedReactor {
    pub(super) fn new(
        server: &SimulatedServer,
        clock: &Arc<ManualClock>,
        measure_began: Nanoseconds,
    ) -> SimulatedReactor {
        let queue = Queue::new(server, clock, measure_began);
        let (clients, opened) = Default::default();
        SimulatedReactor { clock: Arc::clone(clock), queue, clients, opened }
    }

    pub(super) fn connector(&self) -> Connector {
        let queue = self.queue.clone();
        Arc::new(move || queue.connect())
    }
}

impl Reactor for SimulatedReactor {
    fn attach(&self, slot: u32, _: &mut dyn Connection, _is_alone: bool) -> Done<WaitMode> {
        // A connection is attached before the next one is opened.
        self.clients.borrow_mut().insert(self.queue.newest_connection(), slot);
        Ok(WaitMode::Readiness)
    }

    fn rearm(&self, _slot: u32, _connection: &dyn Connection) {}

    fn detach(&self, slot: u32, _wait_mode: WaitMode) {
        self.clients.borrow_mut().retain(|_, owner| *owner != slot);
    }

    fn open(&self, slot: u32) {
        self.opened.borrow_mut().push((slot, self.queue.connect()));
    }

    fn take_opened(&self, slot: u32) -> Option<Opened> {
        let mut opened = self.opened.borrow_mut();
        let position = opened.iter().position(|(owner, _)| *owner == slot)?;
        Some(opened.swap_remove(position).1)
    }

    fn wait(&self, now: Nanoseconds, deadline: Deadline, happened: &mut Happened) -> Loaded {
        let until = match self.queue.next_completion() {
            Some(at) => at.min(deadline.at).max(now),
            None => deadline.at,
        };
        self.clock.advance_to(until);
        let clients = self.clients.borrow();
        self.queue.take_completed(self.clock.now(), |connection| {
            happened.ready.extend(clients.get(&connection));
        });
        Ok(())
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
}
