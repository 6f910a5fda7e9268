//! What a worker and its clients share: the time, the current interval, the queue of clients.

use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use dyno_units::{Clock, Nanoseconds};

use crate::arrivals::{ArrivalQueue, BACKLOG_LIMIT, OwnArrivals};
use crate::reactor::{Reactor, Usage};
use crate::recorder::{Recorder, WorkerEnd};
use crate::timeline::{Finish, Span, Timeline};
use crate::{AbortFlag, Phase};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) n_clients: usize,
    pub(crate) retries: u32,
    pub(crate) statement_timeout: Nanoseconds,
}

impl Rules {
    /// How often statements in flight are checked, and how long a blocking read may hold a worker:
    /// a quarter of the time limit, at least ten times a second.
    pub(crate) fn watch_period(&self) -> Nanoseconds {
        match self.statement_timeout.0 {
            0 => Nanoseconds(LONGEST_WATCH_NS),
            limit => Nanoseconds((limit / 4).clamp(1_000_000, LONGEST_WATCH_NS)),
        }
    }
}

const LONGEST_WATCH_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Running,
    Draining,
    /// At once; what is in flight is dropped.
    Quit,
}

pub(crate) struct Ends {
    /// The caller's flag, and the collector's.
    pub(crate) aborts: [AbortFlag; 2],
    pub(crate) finish: Arc<Finish>,
}

/// Lives in one thread: cells, no locks.
// Hot fields first.
#[repr(C, align(64))]
pub(crate) struct WorkerState<R> {
    pub(crate) clock: Arc<dyn Clock>,
    // When last read.
    now: Cell<Nanoseconds>,
    pub(crate) next_boundary: Cell<Nanoseconds>,
    pub(crate) in_flight: Cell<u64>,
    finish: Arc<Finish>,
    // The end may have come: it is planned, or all clients of this worker have ended.
    may_finish: Cell<bool>,
    aborts: [AbortFlag; 2],
    mode: Cell<Mode>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) reactor: R,
    pub(crate) rules: Rules,
    /// To be polled, in order; each at most once.
    pub(crate) queue: RefCell<VecDeque<u32>>,
    /// Waiting for an arrival, longest first.
    pub(crate) idle: RefCell<VecDeque<u32>>,
    /// Due times of arrivals that idle clients were given and have not taken yet.
    granted: RefCell<VecDeque<Nanoseconds>>,
    pub(crate) timers: RefCell<BinaryHeap<Reverse<(Nanoseconds, u32)>>>,
    pub(crate) arrivals: OnceCell<RefCell<ArrivalQueue>>,
    // By slot; `None` without a schedule of the client's own, or after its end.
    own_arrivals: OnceCell<Vec<RefCell<Option<OwnArrivals>>>>,
    timeline: OnceCell<Timeline>,
    // Of the measurement phase; the end of time until known.
    pub(crate) ended: Cell<Nanoseconds>,
    // Their quota is done, or they have ended.
    pub(crate) n_finished: Cell<usize>,
    interval_idx: Cell<u64>,
    usage: Cell<[Usage; 2]>,
    in_flight_at_end: Cell<u64>,
}

impl<R: Reactor> WorkerState<R> {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        reactor: R,
        rules: Rules,
        recorder: Recorder,
        ends: Ends,
    ) -> WorkerState<R> {
        let n = rules.n_clients;
        WorkerState {
            now: Cell::new(clock.now()),
            clock,
            reactor,
            rules,
            recorder: RefCell::new(recorder),
            queue: RefCell::new(VecDeque::with_capacity(n)),
            idle: RefCell::new(VecDeque::with_capacity(n)),
            granted: RefCell::new(VecDeque::with_capacity(n)),
            timers: RefCell::new(BinaryHeap::with_capacity(n)),
            in_flight: Cell::new(0),
            arrivals: OnceCell::new(),
            own_arrivals: OnceCell::new(),
            timeline: OnceCell::new(),
            ended: Cell::new(Nanoseconds(u64::MAX)),
            may_finish: Cell::new(ends.finish.is_planned),
            finish: ends.finish,
            n_finished: Cell::new(0),
            mode: Cell::new(Mode::Running),
            interval_idx: Cell::new(0),
            next_boundary: Cell::new(Nanoseconds(u64::MAX)),
            aborts: ends.aborts,
            usage: Cell::default(),
            in_flight_at_end: Cell::new(0),
        }
    }

    pub(crate) fn begin(
        &self,
        timeline: Timeline,
        shared: Option<ArrivalQueue>,
        own: Vec<Option<OwnArrivals>>,
    ) {
        let first = timeline.span(0).expect("a step has at least one interval");
        self.timeline.set(timeline).expect("a worker begins once");
        if let Some(arrivals) = shared {
            let _ = self.arrivals.set(RefCell::new(arrivals));
        }
        let _ = self.own_arrivals.set(own.into_iter().map(RefCell::new).collect());
        self.recorder.borrow_mut().begin(&first);
        self.next_boundary.set(first.end);
        self.usage.set([self.reactor.usage(); 2]);
    }

    /// At most one turn of the loop old.
    #[inline]
    pub(crate) fn now(&self) -> Nanoseconds {
        self.now.get()
    }

    /// Also ends the intervals that are over.
    #[inline]
    pub(crate) fn read_clock(&self) -> Nanoseconds {
        let now = self.clock.now();
        self.now.set(now);
        if now >= self.next_boundary.get() || self.is_finished(now) {
            self.cross(now);
        }
        now
    }

    #[inline]
    fn is_finished(&self, now: Nanoseconds) -> bool {
        self.may_finish.get() && now >= self.finish.at()
    }

    /// Called when a quota is done or a client ends; the last one of all workers ends the step.
    #[cold]
    pub(crate) fn client_finished(&self, slot: u32) {
        self.n_finished.set(self.n_finished.get() + 1);
        if let Some(own) = self.own(slot) {
            own.take();
        }
        if self.n_finished.get() == self.rules.n_clients {
            self.may_finish.set(true);
        }
        self.finish.client_done(self.now.get());
        self.cross(self.now.get());
    }

    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        if self.aborts[0].is_raised() || self.aborts[1].is_raised() {
            self.mode.set(Mode::Quit);
        }
        self.mode.get()
    }

    #[inline]
    pub(crate) fn take_arrival(&self) -> Option<Nanoseconds> {
        let mut arrivals = self.arrivals.get()?.borrow_mut();
        if arrivals.to_send.peek() > self.now.get() {
            return None;
        }
        self.give_up_stale(&mut arrivals);
        Some(arrivals.to_send.take())
    }

    /// Sets an arrival aside for a client that is about to be polled; false if none is due.
    #[inline]
    pub(crate) fn grant_arrival(&self) -> bool {
        let Some(due) = self.take_arrival() else { return false };
        self.granted.borrow_mut().push_back(due);
        true
    }

    #[inline]
    pub(crate) fn take_granted(&self) -> Option<Nanoseconds> {
        self.granted.borrow_mut().pop_front()
    }

    fn own(&self, slot: u32) -> Option<&RefCell<Option<OwnArrivals>>> {
        self.own_arrivals.get()?.get(slot as usize)
    }

    /// The client's next own arrival if it is due, else when it will be.
    pub(crate) fn take_own_arrival(&self, slot: u32) -> Result<Nanoseconds, Nanoseconds> {
        let never = Err(Nanoseconds(u64::MAX));
        let Some(own) = self.own(slot) else { return never };
        let mut own = own.borrow_mut();
        let Some(own) = own.as_mut() else { return never };
        let now = self.now.get();
        let mut recorder = self.recorder.borrow_mut();
        recorder.were_due(own.count(now));
        let limit = now.saturating_sub(BACKLOG_LIMIT);
        while own.peek() < limit {
            recorder.missed(own.give_up(limit, self.counted_from()));
            recorder.were_due(own.count(now));
        }
        let Some((due, n_counted)) = own.take(now) else { return Err(own.peek()) };
        recorder.were_due(n_counted);
        Ok(due)
    }

    /// An abandoned transaction does not count towards the quota.
    #[cold]
    pub(crate) fn want_another_arrival(&self, slot: u32) {
        if let Some(own) = self.own(slot)
            && let Some(own) = own.borrow_mut().as_mut()
        {
            own.want_another();
        }
    }

    /// Since when arrivals counted as due in the current phase.
    fn counted_from(&self) -> Nanoseconds {
        let timeline = self.timeline.get().expect("arrivals come after the beginning");
        let span = timeline.span(self.interval_idx.get());
        match span.is_some_and(|span| span.phase == Phase::Measure) {
            true => timeline.measure_began,
            false => Nanoseconds::ZERO,
        }
    }

    /// `None` if no client waits for one.
    pub(crate) fn next_arrival(&self) -> Option<Nanoseconds> {
        let arrivals = self.arrivals.get()?;
        (!self.idle.borrow().is_empty()).then(|| arrivals.borrow().to_send.peek())
    }

    /// Counts due arrivals, and gives up those that have waited too long.
    pub(crate) fn keep_arrivals(&self) {
        let (Some(arrivals), Mode::Running) = (self.arrivals.get(), self.mode.get()) else {
            return;
        };
        let mut arrivals = arrivals.borrow_mut();
        let n_due = arrivals.to_count.skip_before(self.now.get());
        self.recorder.borrow_mut().were_due(n_due);
        self.give_up_stale(&mut arrivals);
    }

    #[inline]
    fn give_up_stale(&self, arrivals: &mut ArrivalQueue) {
        let limit = self.now.get().saturating_sub(BACKLOG_LIMIT);
        if arrivals.to_send.peek() < limit {
            let n_missed = self.give_up(arrivals, limit);
            self.recorder.borrow_mut().missed(n_missed);
        }
    }

    /// Gives up arrivals due before `limit`; returns how many were due in this phase.
    fn give_up(&self, arrivals: &mut ArrivalQueue, limit: Nanoseconds) -> u64 {
        // The others were counted as due in the warm-up, and are not missed in the measurement.
        arrivals.to_send.skip_before(self.counted_from().min(limit));
        arrivals.to_send.skip_before(limit)
    }

    #[cold]
    fn cross(&self, now: Nanoseconds) {
        while self.mode.get() == Mode::Running
            && (now >= self.next_boundary.get() || self.is_finished(now))
        {
            self.end_interval();
        }
    }

    fn end_interval(&self) {
        let timeline = self.timeline.get().expect("boundaries come after the beginning");
        let idx = self.interval_idx.get();
        let span = timeline.span(idx).expect("there is an interval until the end");
        // Clients of another worker may have ended the step before this interval began; the
        // collector knows where such an interval belongs.
        let finish = Some(self.finish.at()).filter(|at| *at <= span.end);
        let end = finish.unwrap_or(span.end);
        let next = if finish.is_some() { None } else { timeline.span(idx + 1) };
        self.end_arrivals(end, next.is_none());
        match &next {
            Some(next) if next.phase != span.phase => self.usage.set([self.reactor.usage(); 2]),
            Some(_) => {}
            None => {
                self.usage.set([self.usage.get()[0], self.reactor.usage()]);
                self.in_flight_at_end.set(self.in_flight.get());
                self.ended.set(end);
                self.mode.set(Mode::Draining);
            }
        }
        self.turn_over(idx + 1, next.as_ref());
    }

    /// Counts arrivals due before `end`; at the last end, gives up those that wait.
    fn end_arrivals(&self, end: Nanoseconds, is_last: bool) {
        let mut recorder = self.recorder.borrow_mut();
        if let Some(arrivals) = self.arrivals.get() {
            let mut arrivals = arrivals.borrow_mut();
            recorder.were_due(arrivals.to_count.skip_before(end));
            if is_last {
                // The end came between the schedule's turn and the clients'.
                let granted = self.granted.take();
                let from = self.counted_from();
                recorder.missed(granted.into_iter().filter(|due| *due >= from).count() as u64);
                recorder.missed(self.give_up(&mut arrivals, end));
            }
        }
        for own in self.own_arrivals.get().into_iter().flatten() {
            let mut own = own.borrow_mut();
            let Some(own) = own.as_mut() else { continue };
            recorder.were_due(own.count(end));
            if is_last {
                recorder.missed(own.give_up(end, self.counted_from()));
            }
        }
    }

    fn turn_over(&self, next_idx: u64, next: Option<&Span>) {
        self.recorder.borrow_mut().turn_over(next);
        self.interval_idx.set(next_idx);
        self.next_boundary.set(next.map_or(Nanoseconds(u64::MAX), |next| next.end));
    }

    pub(crate) fn end(&self) -> WorkerEnd {
        if self.mode.get() == Mode::Quit {
            self.usage.set([self.usage.get()[0], self.reactor.usage()]);
        }
        let [began, ended] = self.usage.get();
        let (cpu_user, cpu_system) = ended.split_since(&began);
        WorkerEnd {
            cpu_user,
            cpu_system,
            run_queue: ended.run_queue_since(&began),
            in_flight_at_end: self.in_flight_at_end.get(),
            error_examples: std::mem::take(&mut self.recorder.borrow_mut().error_examples),
            roles: Vec::new(),
        }
    }
}
