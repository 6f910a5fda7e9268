//! Runs one step: starts the workers, gives them a common start, collects their reports.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connector, MadeWorkload};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::collector::{Collector, Until};
use crate::load::{check, check_slice};
use crate::reactor::EpollReactor;
use crate::recorder::{Outlet, Report, WorkerInterval};
use crate::schedule::Slice;
use crate::step::Loaded;
use crate::timeline::{Finish, Timeline};
use crate::worker::{ClientSetup, Worker};
use crate::worker_state::Ends;
use crate::{AbortFlag, Interval, LoadError, Phase, StepSpec, StepTotals};

#[derive(Clone)]
pub struct Job {
    pub workload: MadeWorkload,
    pub connector: Connector,
    pub clock: Arc<dyn Clock>,
    pub abort: AbortFlag,
}

/// Events of a running step. An interval is reported when the last worker has finished it; the
/// measurement phase may be reported just before the last interval of the warm-up.
#[derive(Debug)]
pub enum StepEvent<'a> {
    /// All connections are open and their statements prepared.
    Connected {
        clients: usize,
        took: Nanoseconds,
    },
    PhaseBegan {
        phase: Phase,
        at: Nanoseconds,
    },
    Interval(&'a Interval),
}

/// Is told the events of a step.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(StepEvent<'_>);

/// Runs one step and reports its events to `observe`, on the calling thread.
///
/// Opens all connections, warms up, measures, awaits attempts in flight for the statement's time
/// limit (five seconds if none), and closes the connections. The measurement ends with the last
/// quota, or with the second in which throughput has become steady, or with the step's duration. An
/// idle worker notices the end within 0.1 s; what it does meanwhile counts as done at the end.
///
/// Fails if the specification is impossible, a connection, its statements or a worker cannot be
/// made, nothing commits for [`StepSpec::gone_limit`] while clients fail to reconnect, or quotas
/// are done in the warm-up. A raised abort flag is no error once the load has begun: see
/// [`StepTotals::aborted`].
pub fn run_step(spec: &StepSpec, job: &Job, observe: Watch<'_>) -> Loaded<StepTotals> {
    run_slice(spec, job, Slice::WHOLE, &mut |_| Ok(job.clock.now()), observe)
}

/// Runs one generator's slice of a step's schedule and clients; [`Slice::part`] cuts it for the
/// workers. Each generator uses its own clock; a [`crate::StepMerge`] adds up what they send.
///
/// `begin` gets the time that opening the connections took, and returns when the step begins. Fails
/// as [`run_step`] and `begin` do, if the slice has no client, or if [`check_slice`] refuses it.
pub fn run_slice(
    spec: &StepSpec,
    job: &Job,
    slice: Slice,
    begin: &mut dyn FnMut(Nanoseconds) -> Result<Nanoseconds, LoadError>,
    observe: Watch<'_>,
) -> Result<StepTotals, LoadError> {
    check(spec)?;
    check_slice(spec, slice)?;
    let asked = job.clock.now();
    thread::scope(|scope| {
        let pool = WorkerPool::spawn(scope, spec, job, slice)?;
        if let Err(error) = pool.await_connections() {
            return Err(pool.cancel(error));
        }
        let took = job.clock.now() - asked;
        job.workload.clients.connected(took);
        let clients = slice.share_of(spec.load.clients());
        observe(StepEvent::Connected { clients, took });
        let began = match begin(took) {
            Ok(began) => began,
            Err(error) => return Err(pool.cancel(error)),
        };
        let timeline = Timeline::new(began, spec.warm_up, spec.duration);
        pool.collect(timeline, job, observe)
    })
}

struct WorkerPool<'scope> {
    reports: Receiver<Report>,
    // Dropping a worker's channel ends the worker.
    orders: Vec<Sender<Timeline>>,
    returns: Vec<Sender<WorkerInterval>>,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
    stop: AbortFlag,
    until: Until,
}

impl<'scope> WorkerPool<'scope> {
    fn spawn<'env>(
        scope: &'scope Scope<'scope, 'env>,
        spec: &'env StepSpec,
        job: &'env Job,
        slice: Slice,
    ) -> Result<WorkerPool<'scope>, LoadError> {
        let (report, reports) = channel();
        let finish = Finish::of(spec);
        let (orders, returns, threads) = Default::default();
        let (stop, until) = (AbortFlag::new(), Until::of(spec, Arc::clone(&finish)));
        let mut pool = WorkerPool { reports, orders, returns, threads, stop, until };
        for index in 0..spec.workers {
            let (order, ordered) = channel();
            let (give_back, returned) = channel();
            let outlet = Outlet { worker_idx: index, reports: report.clone(), returned };
            let (stop, finish) = (pool.stop.clone(), Arc::clone(&finish));
            let slice = slice.part(index, spec.workers);
            let task = WorkerTask { spec, job, index, slice, stop, finish };
            let name = format!("dyno-load-{index}");
            let thread = thread::Builder::new()
                .name(name.clone())
                .spawn_scoped(scope, move || task.run(outlet, &ordered))
                .map_err(|error| LoadError(format!("cannot start worker {name}: {error}")))?;
            pool.orders.push(order);
            pool.returns.push(give_back);
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    fn await_connections(&self) -> Result<(), LoadError> {
        let mut n_ready = 0;
        while n_ready < self.threads.len() {
            match self.reports.recv() {
                Ok(Report::Connected) => n_ready += 1,
                Ok(Report::Failed(error)) => return Err(error),
                Ok(_) => {}
                Err(_) => return Err(LoadError("a worker has panicked".to_owned())),
            }
        }
        Ok(())
    }

    /// Ends all workers; returns `error`.
    fn cancel(self, error: LoadError) -> LoadError {
        self.stop.raise();
        drop(self.orders);
        for thread in self.threads {
            // The panic has already been reported.
            let _ = thread.join();
        }
        error
    }

    fn collect(self, timeline: Timeline, job: &Job, observe: Watch<'_>) -> Loaded<StepTotals> {
        let n_kinds = job.workload.kinds().len();
        let workers = (timeline, self.returns.len());
        let collector = Collector::new(workers, self.until, n_kinds, self.stop);
        let mut collector = collector.returning(self.returns);
        for order in &self.orders {
            // A worker that cannot take its order has reported its failure.
            let _ = order.send(timeline);
        }
        while !collector.is_complete() {
            let now = job.clock.now();
            let report = match collector.announce(now, observe) {
                Some(at) => self.reports.recv_timeout((at - now).to_duration()),
                None => self.reports.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match report {
                Ok(report) => collector.accept(report, observe),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let n_panicked = self.threads.into_iter().filter_map(|thread| thread.join().err()).count();
        if n_panicked > 0 {
            return Err(LoadError(format!("{n_panicked} of the workers have panicked")));
        }
        collector.finish()
    }
}

struct WorkerTask<'a> {
    spec: &'a StepSpec,
    job: &'a Job,
    index: usize,
    slice: Slice,
    stop: AbortFlag,
    finish: Arc<Finish>,
}

impl WorkerTask<'_> {
    fn run(&self, outlet: Outlet, orders: &Receiver<Timeline>) {
        let reports = outlet.reports.clone();
        let last_report = match self.work(outlet, orders) {
            Ok(Some(worker)) => Report::Ended(worker.end(self.spec)),
            Ok(None) => return,
            Err(error) => Report::Failed(error),
        };
        let _ = reports.send(last_report);
    }

    /// `None` if the step never began.
    fn work(
        &self,
        outlet: Outlet,
        orders: &Receiver<Timeline>,
    ) -> Result<Option<Worker<EpollReactor>>, LoadError> {
        let WorkerTask { spec, job, slice, .. } = *self;
        self.bind()?;
        let setup = ClientSetup { workload: &job.workload, spec, slice };
        let reactor = EpollReactor::new(Arc::clone(&job.connector))?;
        let aborts = [job.abort.clone(), self.stop.clone()];
        let ends = Ends { aborts, finish: Arc::clone(&self.finish) };
        let mut worker = Worker::new(&setup, (Arc::clone(&job.clock), reactor), outlet, ends);
        worker.open_clients(&setup, job.connector.as_ref())?;
        worker.state.recorder.borrow().report(Report::Connected);
        let Ok(timeline) = orders.recv() else { return Ok(None) };
        // All generators begin together, at a time that lies ahead.
        job.clock.sleep_until(timeline.began);
        worker.begin(timeline, spec, slice);
        while worker.turn()? {}
        Ok(Some(worker))
    }

    fn bind(&self) -> Result<(), LoadError> {
        let cpus = &self.spec.cpus;
        if cpus.is_empty() {
            return Ok(());
        }
        let cpu = cpus[self.index % cpus.len()] as usize;
        let refuse = |why: &str| LoadError(format!("cannot bind a worker to CPU {cpu}: {why}"));
        if cpu >= CpuSet::MAX_CPU {
            return Err(refuse("there is no such CPU"));
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|error| refuse(&error.to_string()))
    }
}

#[cfg(test)]
mod tests;
