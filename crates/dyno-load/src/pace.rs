//! Drives one client: keeps due, sent and done, and decides what follows an error.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::rc::Rc;
use std::task::Poll;

use dyno_units::{Nanoseconds, RandomStream};
use dyno_workload::{ConnectError, Connection, Ended, Next, Pace, StatementError, Tally};

use crate::counted::Times;
use crate::load::{ArrivalSource, ClientPlan};
use crate::reactor::{Reactor, WaitMode};
use crate::worker_state::{Mode, WorkerState};

/// First and longest.
const RETRY_PAUSE: (Nanoseconds, Nanoseconds) =
    (Nanoseconds::from_millis(1), Nanoseconds::from_millis(100));

/// First and longest, before another try to connect.
const CONNECT_PAUSE: (Nanoseconds, Nanoseconds) =
    (Nanoseconds::from_millis(10), Nanoseconds::from_secs(1));

/// The Insert Benchmark's limiter: after a longer burst the next one follows at once.
const LONGEST_BURST: Nanoseconds = Nanoseconds::from_millis(950);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Turn,
    /// For one of the arrivals that the worker's clients share.
    Arrival,
    Schedule,
    Reply,
    /// For a pause to end or a connection to open.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectStage {
    Unasked,
    Pausing,
    Opening,
}

// Hot fields first: one cache line and a few bytes.
#[repr(C, align(64))]
pub(crate) struct ClientPace<R> {
    worker: Rc<WorkerState<R>>,
    due: Cell<Nanoseconds>,
    sent: Cell<Nanoseconds>,
    // Commits until the quota is done; the largest number if there is none.
    pub(crate) n_left: Cell<u64>,
    source: ArrivalSource,
    slot: u32,
    retries_made: Cell<u32>,
    wait_mode: Cell<WaitMode>,
    // A client that never waits yields to others after each transaction.
    yields: Cell<bool>,
    has_finished: Cell<bool>,
    // The worker's time is this client's last `done`, and can serve as `sent`.
    is_time_fresh: Cell<bool>,
    is_overdue: Cell<bool>,
    // An event came while no reply was awaited; the reactor will not repeat it.
    has_event: Cell<bool>,
    // The server closed the connection: no more events.
    is_closed: Cell<bool>,
    is_first_wait: Cell<bool>,
    pub(crate) waiting: Cell<Waiting>,
    statement_since: Cell<Option<Nanoseconds>>,
    is_queued: Cell<bool>,
    is_granted: Cell<bool>,

    burst_began: Cell<Option<Nanoseconds>>,
    burst_left: Cell<u64>,

    wake: Cell<Option<Nanoseconds>>,
    pause: Cell<Nanoseconds>,
    stage: Cell<ConnectStage>,
    is_reconnecting: Cell<bool>,
    connects_failed: Cell<u32>,
    jitter: RefCell<RandomStream>,
}

impl<R: Reactor> ClientPace<R> {
    pub(crate) fn new(
        worker: Rc<WorkerState<R>>,
        slot: u32,
        plan: &ClientPlan,
        jitter: RandomStream,
    ) -> Self {
        ClientPace {
            worker,
            slot,
            source: plan.source,
            wait_mode: Cell::new(WaitMode::Immediate),
            waiting: Cell::new(Waiting::Turn),
            is_queued: Cell::new(false),
            yields: Cell::new(false),
            due: Cell::default(),
            sent: Cell::default(),
            is_granted: Cell::default(),
            is_time_fresh: Cell::new(false),
            retries_made: Cell::new(0),
            n_left: Cell::new(plan.quota.unwrap_or(u64::MAX)),
            has_finished: Cell::new(false),
            burst_began: Cell::default(),
            burst_left: Cell::new(0),
            statement_since: Cell::default(),
            is_overdue: Cell::new(false),
            has_event: Cell::new(false),
            is_closed: Cell::new(false),
            is_first_wait: Cell::new(false),
            wake: Cell::default(),
            pause: Cell::default(),
            stage: Cell::new(ConnectStage::Unasked),
            is_reconnecting: Cell::new(false),
            connects_failed: Cell::new(0),
            jitter: RefCell::new(jitter),
        }
    }

    #[inline]
    pub(crate) fn enqueue(&self) {
        if !self.is_queued.replace(true) {
            self.worker.queue.borrow_mut().push_back(self.slot);
        }
    }

    #[inline]
    pub(crate) fn dequeued(&self) {
        self.is_queued.set(false);
        self.waiting.set(Waiting::Turn);
    }

    #[inline]
    pub(crate) fn on_event(&self) {
        if self.waiting.get() == Waiting::Reply {
            self.enqueue();
        } else {
            self.has_event.set(true);
        }
    }

    pub(crate) fn on_close(&self) {
        self.is_closed.set(true);
    }

    pub(crate) fn on_wake(&self) {
        if matches!(self.waiting.get(), Waiting::Schedule | Waiting::Other) {
            self.enqueue();
        }
    }

    #[inline]
    pub(crate) fn grant(&self) {
        self.is_granted.set(true);
        self.enqueue();
    }

    pub(crate) fn scan(&self, now: Nanoseconds, limit: Nanoseconds) {
        let is_waiting = self.waiting.get() == Waiting::Reply;
        let since = self.statement_since.get();
        if is_waiting && since.is_some_and(|since| now.saturating_sub(since) >= limit) {
            self.is_overdue.set(true);
            self.enqueue();
        }
    }

    /// Half of an exponentially growing pause plus a random share of the other half, so that
    /// clients that failed together do not retry together.
    fn jittered(&self, (first, longest): (Nanoseconds, Nanoseconds), n_before: u32) -> Nanoseconds {
        let whole = first.0.saturating_mul(1 << n_before.min(20)).min(longest.0).max(2 * first.0);
        Nanoseconds(whole / 2 + self.jitter.borrow_mut().below(whole / 2))
    }

    fn wake_at(&self, wake: Nanoseconds) {
        self.wake.set(Some(wake));
        self.worker.timers.borrow_mut().push(Reverse((wake, self.slot)));
    }

    fn poll_sleep(&self) -> Poll<()> {
        if self.pause.get() == Nanoseconds::ZERO {
            return Poll::Ready(());
        }
        let now = self.worker.read_clock();
        match self.wake.get() {
            Some(wake) if now >= wake => {
                self.wake.set(None);
                return Poll::Ready(());
            }
            Some(_) => {}
            None => self.wake_at(now + self.pause.get()),
        }
        self.waiting.set(Waiting::Other);
        Poll::Pending
    }

    fn after_failure(&self, error: &StatementError) -> Next {
        if self.worker.mode() != Mode::Running {
            return Next::Stop;
        }
        let n_before = self.retries_made.get();
        if error.class.is_transient() && n_before < self.worker.rules.retries {
            self.retries_made.set(n_before + 1);
            self.pause.set(self.jittered(RETRY_PAUSE, n_before));
            self.worker.recorder.borrow_mut().retried();
            return Next::Retry;
        }
        self.retries_made.set(0);
        self.abandon_transaction();
        if error.class.loses_connection() { Next::Reconnect } else { Next::GiveUp }
    }

    fn abandon_transaction(&self) {
        if let ArrivalSource::Own { .. } = self.source {
            self.worker.want_another_arrival(self.slot);
        }
    }

    #[inline]
    fn is_last_commit(&self) -> bool {
        let n_left = self.n_left.get() - 1;
        self.n_left.set(n_left);
        n_left == 0
    }

    fn poll_time(&self, at: Nanoseconds) -> Poll<bool> {
        if self.worker.now() >= at {
            self.wake.set(None);
            return Poll::Ready(true);
        }
        if self.wake.get() != Some(at) {
            self.wake_at(at);
        }
        self.is_time_fresh.set(false);
        self.waiting.set(Waiting::Schedule);
        Poll::Pending
    }

    fn poll_own_arrival(&self) -> Poll<bool> {
        match self.worker.take_own_arrival(self.slot) {
            Ok(due) => {
                self.wake.set(None);
                self.due.set(due);
                Poll::Ready(true)
            }
            Err(next) => self.poll_time(next),
        }
    }

    /// Ready within a burst, then when the next one begins.
    fn poll_burst(&self, per_burst: u64) -> Poll<bool> {
        if self.burst_left.get() == 0 {
            let now = self.worker.now();
            let next = match (self.wake.get(), self.burst_began.get()) {
                (Some(wake), _) => wake,
                (None, Some(began)) if now.saturating_sub(began) < LONGEST_BURST => {
                    began + Nanoseconds::SECOND
                }
                (None, _) => now,
            };
            if self.poll_time(next).is_pending() {
                return Poll::Pending;
            }
            self.burst_began.set(Some(now));
            self.burst_left.set(per_burst);
        }
        self.burst_left.set(self.burst_left.get() - 1);
        Poll::Ready(true)
    }

    #[inline]
    fn poll_arrival(&self) -> Poll<bool> {
        let due = match self.is_granted.take() {
            true => self.worker.take_granted(),
            false => self.worker.take_arrival(),
        };
        match due {
            Some(due) => {
                self.due.set(due);
                Poll::Ready(true)
            }
            None => {
                self.worker.idle.borrow_mut().push_back(self.slot);
                self.waiting.set(Waiting::Arrival);
                Poll::Pending
            }
        }
    }
}

impl<R: Reactor> Pace for ClientPace<R> {
    #[inline]
    fn poll_due(&self) -> Poll<bool> {
        if self.worker.mode() != Mode::Running {
            return Poll::Ready(false);
        }
        if self.yields.take() {
            self.is_time_fresh.set(false);
            self.enqueue();
            return Poll::Pending;
        }
        match self.source {
            ArrivalSource::Closed => Poll::Ready(true),
            ArrivalSource::Shared => self.poll_arrival(),
            ArrivalSource::Own { .. } => self.poll_own_arrival(),
            ArrivalSource::Bursts { per_burst } => self.poll_burst(per_burst),
        }
    }

    #[inline]
    fn sent(&self) {
        let worker = &*self.worker;
        let is_open = self.source.is_scheduled();
        let is_first = self.retries_made.get() == 0;
        // Before the clock is read, which may end the step: the attempt then counts as in flight.
        worker.in_flight.set(worker.in_flight.get() + 1);
        if is_first && !is_open {
            worker.recorder.borrow_mut().began();
        }
        let is_fresh = self.is_time_fresh.take() && !is_open;
        let now = if is_fresh { worker.now() } else { worker.read_clock() };
        self.sent.set(now);
        if !is_first {
            return;
        }
        if is_open {
            worker.recorder.borrow_mut().lagged(now - self.due.get());
        } else {
            self.due.set(now);
        }
    }

    #[inline]
    fn done(&self, kind: usize, tally: Tally, result: Result<Ended, &StatementError>) -> Next {
        let worker = &*self.worker;
        let now = worker.read_clock();
        worker.in_flight.set(worker.in_flight.get() - 1);
        self.yields.set(self.wait_mode.get() == WaitMode::Immediate && worker.rules.n_clients > 1);
        match result {
            Ok(ended) => {
                let response = now - self.due.get();
                let times = Times { done: now, response, service: now - self.sent.get() };
                self.retries_made.set(0);
                self.is_time_fresh.set(true);
                if ended == Ended::RolledBack {
                    worker.recorder.borrow_mut().rolled_back(kind, &tally);
                    self.abandon_transaction();
                    return Next::Proceed;
                }
                let counts = worker.recorder.borrow_mut().committed(kind, times, &tally);
                if counts && self.is_last_commit() {
                    worker.client_finished(self.slot);
                    return Next::Stop;
                }
                Next::Proceed
            }
            Err(error) => {
                worker.recorder.borrow_mut().failed(kind, error, &tally);
                self.after_failure(error)
            }
        }
    }

    fn begin_pause(&self, length: Nanoseconds) -> bool {
        let is_paced = self.source != ArrivalSource::Closed;
        self.pause.set(if is_paced { Nanoseconds::ZERO } else { length });
        if self.pause.get() > Nanoseconds::ZERO {
            // After the pause, the last `done` is not the present any more.
            self.is_time_fresh.set(false);
        }
        self.worker.mode() == Mode::Running
    }

    fn begin_sleep(&self, length: Nanoseconds) {
        self.pause.set(length);
        self.is_time_fresh.set(false);
    }

    fn now(&self) -> Nanoseconds {
        self.worker.read_clock()
    }

    #[inline]
    fn latest(&self) -> Nanoseconds {
        self.worker.now()
    }

    fn retried_at_once(&self, kind: usize, tally: Tally, error: &StatementError) {
        let mut recorder = self.worker.recorder.borrow_mut();
        recorder.failed(kind, error, &tally);
        recorder.retried();
    }

    #[inline]
    fn due(&self) -> Nanoseconds {
        if self.source.is_scheduled() { self.due.get() } else { self.worker.now() }
    }

    fn skipped(&self) {
        self.worker.recorder.borrow_mut().missed(1);
        // Others act before the next one is skipped.
        self.yields.set(true);
    }

    fn finished(&self) {
        // Counting twice would end the step for another client.
        if self.n_left.get() > 0 && !self.has_finished.replace(true) {
            self.worker.client_finished(self.slot);
        }
    }

    fn poll_pause(&self) -> Poll<()> {
        self.poll_sleep()
    }

    fn attach(&self, connection: &mut dyn Connection) -> Result<(), StatementError> {
        let is_alone = self.worker.rules.n_clients == 1;
        let wait_mode = self.worker.reactor.attach(self.slot, connection, is_alone)?;
        if wait_mode == WaitMode::Blocking {
            connection.set_blocking(true, self.worker.rules.watch_period().0)?;
        }
        self.wait_mode.set(wait_mode);
        self.has_event.set(false);
        self.is_closed.set(false);
        if self.is_reconnecting.replace(false) {
            self.connects_failed.set(0);
            self.worker.recorder.borrow_mut().reconnected();
        }
        Ok(())
    }

    fn detach(&self) {
        // Called again for each try to connect.
        if !self.is_reconnecting.replace(true) {
            self.worker.reactor.detach(self.slot, self.wait_mode.get());
        }
    }

    #[inline]
    fn statement_sent(&self, _: &dyn Connection) -> bool {
        self.is_overdue.set(false);
        let has_news = self.has_event.take() || self.is_closed.get();
        let waits = self.wait_mode.get() == WaitMode::Readiness && !has_news;
        self.is_first_wait.set(waits);
        // A blocking client notes the beginning only after a long wait.
        let since = (self.wait_mode.get() == WaitMode::Readiness).then(|| self.worker.now());
        self.statement_since.set(since);
        waits
    }

    #[inline]
    fn awaits_reply(&self, connection: &dyn Connection) {
        self.waiting.set(Waiting::Reply);
        match self.wait_mode.get() {
            WaitMode::Readiness => {
                // Earlier arrivals get reported; a read's rest or a pending write would not.
                if !self.is_first_wait.replace(false) || connection.wants_write() {
                    self.worker.reactor.rearm(self.slot, connection);
                }
            }
            WaitMode::Immediate | WaitMode::Blocking => self.enqueue(),
        }
    }

    fn is_overdue(&self) -> bool {
        let timeout = self.worker.rules.statement_timeout;
        if self.wait_mode.get() == WaitMode::Readiness || timeout == Nanoseconds::ZERO {
            return self.is_overdue.get();
        }
        // The first read ended without a whole reply. Counting from here saves a clock reading for
        // each statement, and is late only by that short read.
        let now = self.worker.read_clock();
        let since = self.statement_since.get().unwrap_or(now);
        self.statement_since.set(Some(since));
        now.saturating_sub(since) >= timeout
    }

    fn poll_connect(&self) -> Poll<Result<Box<dyn Connection>, ConnectError>> {
        if self.stage.get() == ConnectStage::Pausing {
            if self.poll_sleep().is_pending() {
                return Poll::Pending;
            }
            self.stage.set(ConnectStage::Unasked);
        }
        if self.stage.get() == ConnectStage::Unasked {
            self.worker.reactor.open(self.slot);
            self.stage.set(ConnectStage::Opening);
        }
        match self.worker.reactor.take_opened(self.slot) {
            Some(result) => {
                self.stage.set(ConnectStage::Unasked);
                Poll::Ready(result)
            }
            None => {
                self.waiting.set(Waiting::Other);
                Poll::Pending
            }
        }
    }

    fn reconnect_failed(&self, error: &ConnectError) -> bool {
        self.worker.recorder.borrow_mut().connect_failed(error);
        let n_before = self.connects_failed.get();
        self.connects_failed.set(n_before + 1);
        self.pause.set(self.jittered(CONNECT_PAUSE, n_before));
        self.stage.set(ConnectStage::Pausing);
        self.worker.mode() == Mode::Running
    }
}
