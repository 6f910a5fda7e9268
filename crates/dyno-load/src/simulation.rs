//! Steps in simulated time on a server whose true behaviour is known, by the code that measures
//! real servers. Everything follows from the seeds: results repeat to the nanosecond.

mod reactor;
mod server;
mod store;

pub use server::{Noise, ServiceTime, SimulatedServer};
pub use store::Store;

use std::sync::Arc;
use std::sync::mpsc::channel;

use dyno_units::{Clock, ManualClock, Nanoseconds};
use dyno_workload::MadeWorkload;

use crate::collector::{Collector, Until};
use crate::engine::Watch;
use crate::load::{check, check_slice};
use crate::recorder::{Outlet, Report};
use crate::schedule::Slice;
use crate::timeline::{Finish, Timeline};
use crate::worker::{ClientSetup, Worker};
use crate::worker_state::Ends;
use crate::{AbortFlag, LoadError, StepEvent, StepSpec, StepTotals};
use reactor::SimulatedReactor;

/// Runs on the calling thread and moves `clock` to the step's end. All clients belong to one
/// worker, whatever `spec` says; no CPU is bound. Fails as [`run_step`](crate::run_step).
pub fn run_simulated_step(
    spec: &StepSpec,
    workload: &MadeWorkload,
    server: &SimulatedServer,
    clock: &Arc<ManualClock>,
    observe: Watch<'_>,
) -> Result<StepTotals, LoadError> {
    let read = Arc::clone(clock) as Arc<dyn Clock>;
    run_with(spec, workload, server, (clock, read, Slice::WHOLE), observe)
}

/// [`run_slice`](crate::run_slice) on a server of its own. `clock` is the generator's: it moves to
/// the time that `begin` returns, then to the step's end. Fails as [`run_slice`](crate::run_slice).
pub fn run_simulated_slice(
    (spec, slice): (&StepSpec, Slice),
    workload: &MadeWorkload,
    (server, clock): (&SimulatedServer, &Arc<ManualClock>),
    begin: &mut dyn FnMut(Nanoseconds) -> Result<Nanoseconds, LoadError>,
    observe: Watch<'_>,
) -> Result<StepTotals, LoadError> {
    check(spec)?;
    check_slice(spec, slice)?;
    clock.advance_to(begin(Nanoseconds::ZERO)?);
    let read = Arc::clone(clock) as Arc<dyn Clock>;
    run_with(spec, workload, server, (clock, read, slice), observe)
}

/// `read` is the worker's clock, and may take time to read.
fn run_with(
    spec: &StepSpec,
    workload: &MadeWorkload,
    server: &SimulatedServer,
    (clock, read, slice): (&Arc<ManualClock>, Arc<dyn Clock>, Slice),
    observe: Watch<'_>,
) -> Result<StepTotals, LoadError> {
    check(spec)?;
    let timeline = Timeline::new(clock.now(), spec.warm_up, spec.duration);
    let reactor = SimulatedReactor::new(server, clock, timeline.measure_began);
    let (report, reports) = channel();
    let (give_back, returned) = channel();
    let stop = AbortFlag::new();
    let outlet = Outlet { worker_idx: 0, reports: report, returned };
    let connector = reactor.connector();
    let finish = Finish::of(spec);
    let ends = Ends { aborts: [AbortFlag::new(), stop.clone()], finish: Arc::clone(&finish) };
    let setup = ClientSetup { workload, spec, slice };
    let mut worker = Worker::new(&setup, (read, reactor), outlet, ends);
    worker.open_clients(&setup, connector.as_ref())?;
    let clients = slice.share_of(spec.load.clients());
    observe(StepEvent::Connected { clients, took: clock.now() - timeline.began });

    let (until, n_kinds) = (Until::of(spec, finish), workload.kinds().len());
    let collector = Collector::new((timeline, 1), until, n_kinds, stop);
    let mut collector = collector.returning(vec![give_back]);
    worker.begin(timeline, spec, slice);
    loop {
        let goes_on = worker.turn()?;
        collector.announce(clock.now(), observe);
        for report in reports.try_iter() {
            collector.accept(report, observe);
        }
        if !goes_on {
            break;
        }
    }
    collector.accept(Report::Ended(worker.end(spec)), observe);
    collector.finish()
}

#[cfg(test)]
mod tests;
