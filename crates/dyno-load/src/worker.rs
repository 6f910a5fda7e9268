//! A worker: one thread's clients, and the loop that polls them.

use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{
    ClientContext, ClientFuture, ConnectError, Connection, MadeWorkload, Pace, Session, Statement,
};

use crate::arrivals::{ArrivalQueue, OwnArrivals};
use crate::load::{ClientPlan, client_plan, roles_of};
use crate::pace::{ClientPace, Waiting};
use crate::reactor::{Deadline, Happened, Reactor};
use crate::recorder::{Outlet, Recorder, WorkerEnd};
use crate::schedule::Slice;
use crate::timeline::Timeline;
use crate::worker_state::{Ends, Mode, Rules, WorkerState};
use crate::{LoadError, StepSpec};

/// The abort flag is checked at least this often.
const LONGEST_WAIT: Nanoseconds = Nanoseconds::from_millis(100);

/// For attempts in flight at the end, if statements have no time limit.
const DRAIN_LIMIT: Nanoseconds = Nanoseconds::from_secs(5);

struct Client<R> {
    plan: ClientPlan,
    future: Option<ClientFuture>,
    pace: Rc<ClientPace<R>>,
}

pub(crate) struct Worker<R: Reactor> {
    pub(crate) state: Rc<WorkerState<R>>,
    clients: Vec<Client<R>>,
    n_living: usize,
    happened: Happened,
    next_scan: Nanoseconds,
    workload: Option<MadeWorkload>,
}

/// A worker has each `slice.count`-th client from `slice.index` on. Clients are numbered role after
/// role, so each worker gets its share of each role, to within one client.
pub(crate) struct ClientSetup<'a> {
    pub(crate) workload: &'a MadeWorkload,
    pub(crate) spec: &'a StepSpec,
    /// Among the workers of all generators.
    pub(crate) slice: Slice,
}

impl<R: Reactor> Worker<R> {
    pub(crate) fn new(
        setup: &ClientSetup<'_>,
        (clock, reactor): (Arc<dyn Clock>, R),
        outlet: Outlet,
        ends: Ends,
    ) -> Worker<R> {
        let ClientSetup { workload, spec, slice } = setup;
        let n = slice.share_of(spec.load.clients());
        let StepSpec { retries, statement_timeout, .. } = **spec;
        let rules = Rules { n_clients: n, retries, statement_timeout };
        let recorder = Recorder::new(workload.kinds().len(), outlet);
        Worker {
            state: Rc::new(WorkerState::new(clock, reactor, rules, recorder, ends)),
            clients: Vec::with_capacity(n),
            n_living: 0,
            happened: Happened::default(),
            next_scan: Nanoseconds::ZERO,
            workload: None,
        }
    }

    pub(crate) fn open_clients(
        &mut self,
        setup: &ClientSetup<'_>,
        connect: &dyn Fn() -> Result<Box<dyn Connection>, ConnectError>,
    ) -> Result<(), LoadError> {
        let ClientSetup { workload, spec, slice } = setup;
        let n_clients = spec.load.clients();
        let mut statements: Option<Rc<[Statement]>> = None;
        for slot in 0..self.state.rules.n_clients {
            if self.state.mode() == Mode::Quit {
                return Err(LoadError("stopped while the connections were opened".to_owned()));
            }
            let client_idx = slice.index + slot * slice.count;
            let which = || format!("client {} of {n_clients}", client_idx + 1);
            let connection =
                connect().map_err(|error| LoadError(format!("{}: {error}", which())))?;
            let dialect = connection.dialect();
            let statements =
                statements.get_or_insert_with(|| workload.statements(dialect).into()).clone();
            let plan = client_plan(&spec.load, client_idx);
            let jitter = spec.seed.derive("backoff", client_idx as u64).stream();
            let pace = ClientPace::new(Rc::clone(&self.state), slot as u32, &plan, jitter);
            let pace = Rc::new(pace);
            let shared: Rc<dyn Pace> = pace.clone();
            let session =
                Session::open(connection, &statements, Rc::clone(&shared)).map_err(|error| {
                    LoadError(format!("{}: cannot prepare its statements: {error}", which()))
                })?;
            let context = ClientContext {
                client_idx,
                n_clients,
                step: spec.step,
                role: plan.role,
                idx_in_role: plan.idx_in_role,
                n_in_role: plan.n_in_role,
                random: spec.seed.derive("client", client_idx as u64).stream(),
                session,
                statements,
                pace: shared,
            };
            self.clients.push(Client { plan, future: Some(workload.client(context)), pace });
        }
        self.n_living = self.clients.len();
        self.workload = Some((*workload).clone());
        Ok(())
    }

    fn all_ended(&self) -> LoadError {
        let why = self.workload.as_ref().and_then(|made| made.clients.why_ended());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        LoadError(format!("all clients of the workload ended before the step did{why}"))
    }

    /// Starts the schedules and queues all clients; called once. `slice` cuts a shared schedule.
    pub(crate) fn begin(&self, timeline: Timeline, spec: &StepSpec, slice: Slice) {
        let shared = ArrivalQueue::shared(spec, timeline.began, slice);
        let own = |client: &Client<R>| OwnArrivals::of(spec, &client.plan, timeline.began);
        self.state.begin(timeline, shared, self.clients.iter().map(own).collect());
        self.clients.iter().for_each(|client| client.pace.enqueue());
    }

    pub(crate) fn turn(&mut self) -> Result<bool, LoadError> {
        let now = self.state.read_clock();
        match self.state.mode() {
            Mode::Running
                if self.n_living == 0 && self.state.n_finished.get() < self.clients.len() =>
            {
                return Err(self.all_ended());
            }
            Mode::Running => self.wake_due(now),
            Mode::Draining => {
                self.sweep();
                if self.n_living == 0 || now >= self.drained_at() {
                    self.drop_clients();
                    return Ok(false);
                }
            }
            Mode::Quit => {
                self.drop_clients();
                return Ok(false);
            }
        }
        self.scan_overdue(now);
        self.poll_queue();
        let deadline = self.deadline();
        self.state.reactor.wait(self.state.now(), deadline, &mut self.happened)?;
        let Happened { ready, closed, woken } = &mut self.happened;
        let pace = |slot: u32| &self.clients[slot as usize].pace;
        closed.drain(..).for_each(|slot| pace(slot).on_close());
        ready.drain(..).for_each(|slot| pace(slot).on_event());
        woken.drain(..).for_each(|slot| pace(slot).on_wake());
        Ok(true)
    }

    fn wake_due(&self, now: Nanoseconds) {
        let state = &*self.state;
        let mut timers = state.timers.borrow_mut();
        while let Some(&Reverse((wake, slot))) = timers.peek()
            && wake <= now
        {
            timers.pop();
            self.clients[slot as usize].pace.on_wake();
        }
        if state.arrivals.get().is_none() {
            return;
        }
        state.keep_arrivals();
        let mut idle = state.idle.borrow_mut();
        while let Some(&slot) = idle.front()
            && state.grant_arrival()
        {
            idle.pop_front();
            self.clients[slot as usize].pace.grant();
        }
    }

    fn scan_overdue(&mut self, now: Nanoseconds) {
        let limit = self.state.rules.statement_timeout;
        if limit == Nanoseconds::ZERO || now < self.next_scan {
            return;
        }
        self.next_scan = now + self.state.rules.watch_period();
        self.clients.iter().for_each(|client| client.pace.scan(now, limit));
    }

    /// Each client queued now, once; those queued meanwhile wait.
    fn poll_queue(&mut self) {
        let n_queued = self.state.queue.borrow().len();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..n_queued {
            let Some(slot) = self.state.queue.borrow_mut().pop_front() else { return };
            let client = &mut self.clients[slot as usize];
            client.pace.dequeued();
            let Some(future) = &mut client.future else { continue };
            if future.as_mut().poll(&mut context).is_ready() {
                client.future = None;
                self.n_living -= 1;
            }
        }
    }

    fn deadline(&self) -> Deadline {
        let state = &*self.state;
        let now = state.now();
        if !state.queue.borrow().is_empty() {
            return Deadline { at: now, is_precise: false };
        }
        let mut at = (now + LONGEST_WAIT).min(state.next_boundary.get());
        if state.rules.statement_timeout > Nanoseconds::ZERO {
            at = at.min(self.next_scan);
        }
        if state.mode() != Mode::Running {
            return Deadline { at: at.min(self.drained_at()), is_precise: false };
        }
        // Think time a millisecond too long is as wrong as an arrival sent late.
        let wake = state.timers.borrow().peek().map(|&Reverse((wake, _))| wake);
        match [wake, state.next_arrival()].into_iter().flatten().min() {
            Some(due) if due < at => Deadline { at: due, is_precise: true },
            _ => Deadline { at, is_precise: false },
        }
    }

    /// When the measurement phase is over.
    fn sweep(&mut self) {
        for client in &mut self.clients {
            let is_waiting_idly =
                !matches!(client.pace.waiting.get(), Waiting::Turn | Waiting::Reply);
            if client.future.is_some() && is_waiting_idly {
                client.future = None;
                self.n_living -= 1;
            }
        }
    }

    fn drop_clients(&mut self) {
        self.clients.iter_mut().for_each(|client| client.future = None);
        self.n_living = 0;
    }

    pub(crate) fn end(&self, spec: &StepSpec) -> WorkerEnd {
        let mut roles = roles_of(&spec.load);
        for client in &self.clients {
            let totals = &mut roles[client.plan.role];
            let n_left = client.pace.n_left.get();
            totals.clients += 1;
            totals.committed += client.plan.quota.unwrap_or(u64::MAX) - n_left;
            totals.unfinished += usize::from(client.plan.quota.is_some() && n_left > 0);
        }
        WorkerEnd { roles, ..self.state.end() }
    }

    fn drained_at(&self) -> Nanoseconds {
        let limit = self.state.rules.statement_timeout;
        self.state.ended.get() + if limit == Nanoseconds::ZERO { DRAIN_LIMIT } else { limit }
    }
}
