//! What a worker and its clients share: the time, the interval being written, who acts next.

use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use dyno_units::{Clock, Nanoseconds};

use crate::reactor::Reactor;
use crate::recorder::{Recorder, WorkerEnd};
use crate::schedule::Schedule;
use crate::timeline::Timeline;
use crate::usage::Usage;
use crate::{AbortFlag, Phase};

/// How far arrivals may fall behind before the oldest are given up as missed. Nobody waits longer
/// for an answer; and a server that comes back is not buried under what nobody wants any more.
pub(crate) const BACKLOG_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

/// What all clients of a worker go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Clients of this worker.
    pub(crate) n_clients: usize,
    pub(crate) retries: u32,
    /// Zero for none.
    pub(crate) statement_timeout: Nanoseconds,
}

impl Rules {
    /// How often statements in flight are looked at: a quarter of their time limit, but ten times
    /// a second at least. Also the longest time that a blocking read keeps a worker from looking
    /// up.
    pub(crate) fn watch_period(&self) -> Nanoseconds {
        match self.statement_timeout.0 {
            0 => Nanoseconds(LONGEST_WATCH_NS),
            limit => Nanoseconds((limit / 4).clamp(1_000_000, LONGEST_WATCH_NS)),
        }
    }
}

const LONGEST_WATCH_NS: u64 = 100_000_000;

/// Where a worker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Clients begin transactions.
    Running,
    /// The measure phase is over; attempts in flight are awaited.
    Draining,
    /// Everything is dropped.
    Quit,
}

/// The arrivals of one worker under open load.
pub(crate) struct ArrivalQueue {
    /// The next arrival to be sent. Arrivals that wait are those between this position and the
    /// present; nothing is stored for them.
    to_send: Schedule,
    /// The next arrival to be counted as due.
    to_count: Schedule,
}

impl ArrivalQueue {
    pub(crate) fn new(schedule: Schedule) -> ArrivalQueue {
        ArrivalQueue { to_count: schedule.clone(), to_send: schedule }
    }
}

/// What a worker and its clients share. Lives in one thread: cells, no locks.
pub(crate) struct WorkerState<R> {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reactor: R,
    pub(crate) rules: Rules,
    pub(crate) recorder: RefCell<Recorder>,
    /// Clients to be polled, in order; each at most once.
    pub(crate) queue: RefCell<VecDeque<u32>>,
    /// Clients that wait for an arrival, longest first.
    pub(crate) idle: RefCell<VecDeque<u32>>,
    /// Clients to be polled at a time.
    pub(crate) timers: RefCell<BinaryHeap<Reverse<(Nanoseconds, u32)>>>,
    pub(crate) in_flight: Cell<u64>,
    arrivals: OnceCell<RefCell<ArrivalQueue>>,
    timeline: OnceCell<Timeline>,
    mode: Cell<Mode>,
    // The clock when it was last read.
    now: Cell<Nanoseconds>,
    interval_idx: Cell<u64>,
    next_boundary: Cell<Nanoseconds>,
    // The caller's flag, and the one with which the collector ends a step that cannot go on.
    aborts: [AbortFlag; 2],
    usage: Cell<[Usage; 2]>,
    in_flight_at_end: Cell<u64>,
}

impl<R: Reactor> WorkerState<R> {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        reactor: R,
        rules: Rules,
        recorder: Recorder,
        aborts: [AbortFlag; 2],
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
            timers: RefCell::new(BinaryHeap::with_capacity(n)),
            in_flight: Cell::new(0),
            arrivals: OnceCell::new(),
            timeline: OnceCell::new(),
            mode: Cell::new(Mode::Running),
            interval_idx: Cell::new(0),
            next_boundary: Cell::new(Nanoseconds(u64::MAX)),
            aborts,
            usage: Cell::default(),
            in_flight_at_end: Cell::new(0),
        }
    }

    /// Begins the step.
    pub(crate) fn begin(&self, timeline: Timeline, arrivals: Option<ArrivalQueue>) {
        let first = timeline.span(0).expect("a step has at least one interval");
        self.timeline.set(timeline).expect("a worker begins once");
        if let Some(arrivals) = arrivals {
            let _ = self.arrivals.set(RefCell::new(arrivals));
        }
        self.recorder.borrow_mut().begin(&first);
        self.next_boundary.set(first.end);
        self.usage.set([self.reactor.usage(); 2]);
    }

    /// The clock when it was last read; at most one turn of the loop old.
    #[inline]
    pub(crate) fn now(&self) -> Nanoseconds {
        self.now.get()
    }

    /// Reads the clock, and ends the intervals that are over.
    #[inline]
    pub(crate) fn read_clock(&self) -> Nanoseconds {
        let now = self.clock.now();
        self.now.set(now);
        if now >= self.next_boundary.get() {
            self.cross(now);
        }
        now
    }

    pub(crate) fn next_boundary(&self) -> Nanoseconds {
        self.next_boundary.get()
    }

    pub(crate) fn measure_ended(&self) -> Nanoseconds {
        self.timeline.get().map_or(Nanoseconds(u64::MAX), |timeline| timeline.ended)
    }

    /// Where the worker is in its life; looks at the abort flags.
    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        if self.aborts[0].is_raised() || self.aborts[1].is_raised() {
            self.mode.set(Mode::Quit);
        }
        self.mode.get()
    }

    /// Whether arrivals come by a schedule.
    #[inline]
    pub(crate) fn is_open_load(&self) -> bool {
        self.arrivals.get().is_some()
    }

    /// Takes the next arrival if it is due.
    #[inline]
    pub(crate) fn take_arrival(&self) -> Option<Nanoseconds> {
        let mut arrivals = self.arrivals.get()?.borrow_mut();
        if arrivals.to_send.peek() > self.now.get() {
            return None;
        }
        self.give_up_stale(&mut arrivals);
        Some(arrivals.to_send.take())
    }

    /// When the next arrival is due that a client is waiting for.
    pub(crate) fn next_arrival(&self) -> Option<Nanoseconds> {
        let arrivals = self.arrivals.get()?;
        (!self.idle.borrow().is_empty()).then(|| arrivals.borrow().to_send.peek())
    }

    /// Counts the arrivals that have become due, and gives up those that have waited too long.
    pub(crate) fn keep_arrivals(&self) {
        let (Some(arrivals), Mode::Running) = (self.arrivals.get(), self.mode.get()) else {
            return;
        };
        let mut arrivals = arrivals.borrow_mut();
        let n_due = arrivals.to_count.skip_before(self.now.get());
        self.recorder.borrow_mut().were_due(n_due);
        self.give_up_stale(&mut arrivals);
    }

    /// Gives up the arrivals that have waited longer than anybody would.
    #[inline]
    fn give_up_stale(&self, arrivals: &mut ArrivalQueue) {
        let limit = self.now.get().saturating_sub(BACKLOG_LIMIT);
        if arrivals.to_send.peek() < limit {
            let n_missed = self.give_up(arrivals, limit);
            self.recorder.borrow_mut().missed(n_missed);
        }
    }

    /// Gives up the arrivals due before `limit`; tells how many were due in this phase.
    fn give_up(&self, arrivals: &mut ArrivalQueue, limit: Nanoseconds) -> u64 {
        let timeline = self.timeline.get().expect("arrivals come after the beginning");
        let span = timeline.span(self.interval_idx.get());
        if span.is_some_and(|span| span.phase == Phase::Measure) {
            // They were counted as due in the warm-up, and so cannot be missed in the measure phase.
            arrivals.to_send.skip_before(timeline.measure_began.min(limit));
        }
        arrivals.to_send.skip_before(limit)
    }

    #[cold]
    fn cross(&self, now: Nanoseconds) {
        while now >= self.next_boundary.get() {
            self.end_interval();
        }
    }

    fn end_interval(&self) {
        let timeline = self.timeline.get().expect("boundaries come after the beginning");
        let idx = self.interval_idx.get();
        let span = timeline.span(idx).expect("there is an interval until the end");
        let next = timeline.span(idx + 1);
        let mut recorder = self.recorder.borrow_mut();
        if let Some(arrivals) = self.arrivals.get() {
            let mut arrivals = arrivals.borrow_mut();
            recorder.were_due(arrivals.to_count.skip_before(span.end));
            if next.is_none() {
                recorder.missed(self.give_up(&mut arrivals, timeline.ended));
            }
        }
        match &next {
            Some(next) if next.phase != span.phase => {
                self.usage.set([self.reactor.usage(); 2]);
            }
            Some(_) => {}
            None => {
                self.usage.set([self.usage.get()[0], self.reactor.usage()]);
                self.in_flight_at_end.set(self.in_flight.get());
                self.mode.set(Mode::Draining);
            }
        }
        recorder.turn_over(next.as_ref());
        self.interval_idx.set(idx + 1);
        self.next_boundary.set(next.map_or(Nanoseconds(u64::MAX), |next| next.end));
    }

    /// What the worker tells when it ends.
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
            error_examples: self.recorder.borrow_mut().take_error_examples(),
        }
    }
}
