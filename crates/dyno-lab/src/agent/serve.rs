//! The agent's side of the conversation. The thread that reads orders answers pings itself, so that
//! the times in its answers are right under load; a load has its own thread. Writers wait until the
//! controller has read earlier output, so that none piles up.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_load::{
    AbortFlag, IntervalPart, Job, LoadError, Phase, Slice, SliceEnd, StepEvent, StepSpec,
    StepTotals, run_slice,
};
use dyno_model::StepRequest;
use dyno_units::{Clock, Nanoseconds, Seed, locked};
use dyno_workload::MadeWorkload;
use dyno_workload::catalog::Catalog;

use super::message::{Answer, Hello, LoadEnd, LoadOrder, Order, Work};
use super::server::{Hosting, ServerThread};
use super::trial::{RunTrial, TrialThread};
use super::{DYNO, FrameError, PROTOCOL, read_frame, write_frame};
use crate::hosts::measure_network;

/// Silence after which an agent ends without its controller, which pings every second.
const SILENCE_MOST: Nanoseconds = Nanoseconds::from_secs(60);

const POLL: Duration = Duration::from_millis(100);

/// How a generator's share of a step is run: [`run_slice`], or a simulation in tests.
pub type RunSlice = Arc<
    dyn Fn(
            &StepSpec,
            &Job,
            Slice,
            &mut dyn FnMut(Nanoseconds) -> Result<Nanoseconds, LoadError>,
            &mut dyn FnMut(StepEvent<'_>),
        ) -> Result<StepTotals, LoadError>
        + Send
        + Sync,
>;

pub struct AgentSetup {
    clock: Arc<dyn Clock>,
    catalog: Catalog,
    hello: Hello,
    run: RunSlice,
    hosting: Option<Arc<Hosting>>,
    trials: Option<Arc<RunTrial>>,
}

impl AgentSetup {
    pub fn new(
        clock: Arc<dyn Clock>,
        (machine, cpus): (String, u32),
        facts: BTreeMap<String, String>,
    ) -> AgentSetup {
        let run: RunSlice = Arc::new(|spec, job, slice, begin, observe| {
            run_slice(spec, job, slice, begin, observe)
        });
        let (protocol, dyno, boot) = (PROTOCOL, DYNO.to_owned(), dyno_host::boot_id());
        let hello = Hello { protocol, dyno, machine, facts, cpus, boot };
        let catalog = Catalog::built_in();
        AgentSetup { clock, catalog, hello, run, hosting: None, trials: None }
    }

    #[must_use]
    pub fn running(self, run: RunSlice) -> AgentSetup {
        AgentSetup { run, ..self }
    }

    #[must_use]
    pub fn hosting(self, hosting: Hosting) -> AgentSetup {
        AgentSetup { hosting: Some(Arc::new(hosting)), ..self }
    }

    #[must_use]
    pub fn running_trials(self, run: Arc<RunTrial>) -> AgentSetup {
        AgentSetup { trials: Some(run), ..self }
    }
}

/// Follows orders until the input ends; its server has ended then. The caller must end the process, and
/// with it a running load. `on_silence` is called after a minute without input, and must do the same.
/// Fails, with the reason, on input that is not from a controller of this version, or if the output is
/// closed.
pub fn serve(
    input: &mut dyn Read,
    output: Box<dyn Write + Send>,
    setup: AgentSetup,
    on_silence: Box<dyn Fn() + Send>,
) -> Result<(), String> {
    let setup = Arc::new(setup);
    let heard = Arc::new(AtomicU64::new(setup.clock.now().0));
    let out = Outlet(Arc::new(Mutex::new(output)));
    // Dropped with this function, which ends the watch.
    let (_alive, ended) = channel();
    watch(&setup.clock, &heard, ended, on_silence)?;
    let mut agent = Agent { setup, out, load: None, made: None, server: None, trial: None };
    let Some(first) = next(input)? else { return Ok(()) };
    agent.greet(&first)?;
    while let Some(order) = next(input)? {
        heard.store(agent.setup.clock.now().0, Ordering::Relaxed);
        agent.obey(order)?;
    }
    Ok(())
}

/// The next order; none at the end of the input.
fn next(input: &mut dyn Read) -> Result<Option<Order>, String> {
    match read_frame(input) {
        Ok(order) => Ok(Some(order)),
        Err(FrameError::Closed) => Ok(None),
        Err(FrameError::Broken(error)) => {
            Err(format!("the connection to the controller is lost: {error}"))
        }
        Err(FrameError::Wrong(why)) => Err(why),
        Err(FrameError::Foreign(_)) => {
            Err("the input is not a message from Dyno: `dyno agent` is started by a study with \
                 `generators`, `on` or `trials_on`, not by hand"
                .to_owned())
        }
    }
}

/// Looks for silence until the other end of `ended` is gone.
fn watch(
    clock: &Arc<dyn Clock>,
    heard: &Arc<AtomicU64>,
    ended: Receiver<()>,
    on_silence: Box<dyn Fn() + Send>,
) -> Result<(), String> {
    let (clock, heard) = (Arc::clone(clock), Arc::clone(heard));
    let work = move || {
        while ended.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            let last = Nanoseconds(heard.load(Ordering::Relaxed));
            if clock.now().saturating_sub(last) > SILENCE_MOST {
                on_silence();
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("dyno-agent-watch".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

#[derive(Clone)]
pub(super) struct Outlet(Arc<Mutex<Box<dyn Write + Send>>>);

impl Outlet {
    pub(super) fn say(&self, answer: &Answer) -> Result<(), String> {
        let mut out = locked(&self.0);
        write_frame(&mut **out, answer)
            .map_err(|error| format!("the connection to the controller is lost: {error}"))
    }
}

struct Agent {
    setup: Arc<AgentSetup>,
    out: Outlet,
    load: Option<RunningLoad>,
    /// The workload of the last load: a trial's clients go on where they were in the step before.
    made: Option<(Work, MadeWorkload)>,
    server: Option<ServerThread>,
    trial: Option<TrialThread>,
}

struct RunningLoad {
    number: u64,
    begin: Sender<Nanoseconds>,
    abort: AbortFlag,
    thread: JoinHandle<()>,
}

impl Agent {
    fn greet(&self, first: &Order) -> Result<(), String> {
        let Order::Hello(Hello { protocol, dyno, .. }) = first else {
            return Err("the controller did not report its version first".to_owned());
        };
        // Also to one of another version, so that it can say of which this one is.
        self.out.say(&Answer::Hello(self.setup.hello.clone()))?;
        if (*protocol, dyno.as_str()) == (PROTOCOL, DYNO) {
            return Ok(());
        }
        Err(format!(
            "the controller is Dyno {dyno} (protocol {protocol}), and this agent is Dyno {DYNO} \
             (protocol {PROTOCOL}): install the same version on both machines"
        ))
    }

    fn obey(&mut self, order: Order) -> Result<(), String> {
        match order {
            Order::Hello(_) => Err("the controller said hello twice".to_owned()),
            Order::Ping { id } => {
                let clock = &self.setup.clock;
                let (received, unix_ms) = (clock.now(), clock.unix_millis());
                // What waiting for the outlet takes would count as the way.
                let mut out = locked(&self.out.0);
                let pong = Answer::Pong { id, received, sent: clock.now(), unix_ms };
                write_frame(&mut **out, &pong)
                    .map_err(|error| format!("the connection to the controller is lost: {error}"))
            }
            Order::Load(order) => self.load(*order),
            Order::Begin { load, at } => {
                // One that has failed meanwhile has said so.
                if let Some(running) = self.load.as_ref().filter(|running| running.number == load) {
                    let _ = running.begin.send(at);
                }
                Ok(())
            }
            Order::Server { task, order } => match self.server() {
                Ok(server) => {
                    server.order(task, order);
                    Ok(())
                }
                Err(message) => self.out.say(&Answer::Undone { task, message, log: Vec::new() }),
            },
            Order::Trial(order) => {
                let run = self.setup.trials.as_ref().ok_or("this agent cannot run trials")?;
                self.trial = Some(TrialThread::start(Arc::clone(run), *order, self.out.clone())?);
                Ok(())
            }
            Order::Sample { id } => {
                if let Ok(server) = self.server() {
                    server.sample(id);
                }
                Ok(())
            }
            Order::Stop => {
                self.load.iter().for_each(|running| running.abort.raise());
                self.trial.iter().for_each(TrialThread::stop);
                Ok(())
            }
        }
    }

    fn server(&mut self) -> Result<&ServerThread, String> {
        if self.server.is_none() {
            let hosting = self.setup.hosting.as_ref().ok_or("this agent cannot start servers")?;
            let thread = ServerThread::start(Arc::clone(hosting), &self.setup.clock, &self.out)?;
            self.server = Some(thread);
        }
        self.server.as_ref().ok_or_else(String::new)
    }

    fn load(&mut self, order: LoadOrder) -> Result<(), String> {
        if let Some(before) = self.load.take() {
            before.abort.raise();
            let _ = before.thread.join();
        }
        let (number, out) = (order.load, self.out.clone());
        let fail = |message: String| out.say(&Answer::Failed { load: number, message });
        let workload = match self.workload(&order.work) {
            Ok(workload) => workload,
            Err(message) => return fail(message),
        };
        let abort = AbortFlag::new();
        let connector = match order.server.endpoint() {
            Ok(endpoint) if order.supports_named_statements => {
                endpoint.protocol.connector(&endpoint)
            }
            Ok(endpoint) => endpoint.protocol.unnamed_connector(&endpoint),
            Err(error) => return fail(error.0),
        };
        let clock = Arc::clone(&self.setup.clock);
        let job = Job { workload, connector, clock, abort: abort.clone() };
        let (begin, begins) = channel();
        let (setup, outlet) = (Arc::clone(&self.setup), self.out.clone());
        let work = move || {
            let answer = match share(&setup, &outlet, (&order, &job), &begins) {
                Ok(end) => Answer::Ended(Box::new(end)),
                Err(message) => Answer::Failed { load: number, message },
            };
            let _ = outlet.say(&answer);
        };
        let thread = thread::Builder::new().name("dyno-generator".to_owned()).spawn(work);
        match thread {
            Ok(thread) => {
                self.load = Some(RunningLoad { number, begin, abort, thread });
                Ok(())
            }
            Err(error) => fail(format!("cannot start a thread for the load: {error}")),
        }
    }

    fn workload(&mut self, work: &Work) -> Result<MadeWorkload, String> {
        if let Some((_, made)) = self.made.as_ref().filter(|(known, _)| known == work) {
            return Ok(made.clone());
        }
        let spec = self.setup.catalog.find(&work.workload);
        let spec = spec.ok_or_else(|| format!("this Dyno has no workload `{}`", work.workload))?;
        let request = StepRequest { clients: work.clients, duration: work.duration };
        let planned = spec.plan(&work.options, request, Seed(work.seed));
        let made = MadeWorkload::new(planned.map_err(|error| error.to_string())?);
        self.made = Some((work.clone(), made.clone()));
        Ok(made)
    }
}

fn share(
    setup: &AgentSetup,
    out: &Outlet,
    (order, job): (&LoadOrder, &Job),
    begins: &Receiver<Nanoseconds>,
) -> Result<LoadEnd, String> {
    let slice = Slice { index: order.index, count: order.count.max(1) };
    let own = slice.share_of(order.step.spec.load.clients());
    let usual = (setup.hello.cpus as usize / order.sharing.max(1)).max(1);
    let workers = order.workers.unwrap_or(usual).clamp(1, own.max(1));
    let spec = order.step.spec(workers).ok_or("this agent does not know this kind of load")?;
    let endpoint = order.server.endpoint().map_err(|error| error.0)?;
    let network = || measure_network(&endpoint, setup.clock.as_ref());
    let network = order.measures_network.then(network).flatten();
    let (load, counted_before) = (order.load, job.workload.clients.counts());
    let mut begin = |_| {
        out.say(&Answer::Connected { load, clients: own }).map_err(LoadError)?;
        await_begin(setup.clock.as_ref(), begins, &job.abort)
    };
    let mut idx = 0;
    let mut cpu: [Option<(f64, f64)>; 2] = [None; 2];
    let mut observe = |event: StepEvent<'_>| match event {
        StepEvent::Connected { .. } => {}
        StepEvent::PhaseBegan { phase, .. } => {
            if phase == Phase::Measure {
                cpu[0] = dyno_host::own_cpu();
            }
        }
        StepEvent::Interval(interval) => {
            cpu[1] = dyno_host::own_cpu();
            let part = IntervalPart::of(interval);
            if out.say(&Answer::Interval { load, idx, part }).is_err() {
                job.abort.raise();
            }
            idx += 1;
        }
    };
    let totals = (setup.run)(&spec, job, slice, &mut begin, &mut observe);
    let totals = totals.map_err(|error| error.0)?;
    // They have counted since the trial began.
    let counts = job.workload.clients.counts();
    let counts = counts.iter().zip(counted_before).map(|(now, before)| now - before).collect();
    let process_cpu = cpu[0].zip(cpu[1]);
    let process_cpu = process_cpu.map(|(began, ended)| (ended.0 - began.0, ended.1 - began.1));
    let rss_bytes = dyno_host::own_rss_bytes().unwrap_or_default();
    Ok(LoadEnd { load, end: SliceEnd::of(&totals), counts, process_cpu, rss_bytes, network })
}

fn await_begin(
    clock: &dyn Clock,
    begins: &Receiver<Nanoseconds>,
    abort: &AbortFlag,
) -> Result<Nanoseconds, LoadError> {
    let at = loop {
        match begins.recv_timeout(POLL) {
            Ok(at) => break at,
            Err(RecvTimeoutError::Timeout) if !abort.is_raised() => {}
            Err(_) => return Err(LoadError("stopped before the load began".to_owned())),
        }
    };
    let late = clock.now().saturating_sub(at);
    if late == Nanoseconds::ZERO {
        return Ok(at);
    }
    // It would begin with a burst of arrivals that are overdue, which the others do not have.
    Err(LoadError(format!("the order to begin arrived {late} too late")))
}
