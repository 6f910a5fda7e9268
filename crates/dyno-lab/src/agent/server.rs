//! An agent's server: a private one as on Dyno's own machine, but open to clients on other machines. It has its
//! own thread for start, restart and stop, so that the agent keeps answering. It ends with the agent: in order
//! here, or through the agent's guard if that is killed ([`MakeKeeper`]).

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use dyno_database::{
    Act, Control, DeployError, Listening, Part, Place, Products, Secret, Server, ServerFacts,
    ServerSpec,
};
use dyno_host::{HostSpec, Keeper, Probe, Readings, Sampler, Volume};
use dyno_load::AbortFlag;
use dyno_units::{ByteCount, Clock, locked};

use super::command::Job;
use super::message::{
    Answer, ProvideOrder, RouteOrder, RouterUp, Sample, Seen, ServerDone, ServerOrder, ServerUp,
    ServerUrl, StartOrder,
};
use super::part;
use super::serve::Outlet;
use super::transfer::{self, Sending};
use crate::datasets::Staging;
use crate::route::start_router;
use crate::{CommandOrder, Context, VolumeAct, volume};

/// Makes the keeper of an agent's server under the folder, or the default one. What it keeps ends with the agent,
/// even a killed one. The error is the reason.
pub type MakeKeeper = Box<dyn Fn(Option<&Path>) -> Result<Keeper, String> + Send + Sync>;

pub struct Hosting {
    pub products: Products,
    pub keeper: MakeKeeper,
    /// Memory of the machine, of which settings may ask a share.
    pub memory: ByteCount,
    pub program: Option<PathBuf>,
}

/// The thread with the agent's server, and the one that reads the machine's probes. They end with this.
pub(super) struct ServerThread {
    ended: AbortFlag,
    orders: Option<Sender<(u64, ServerOrder)>>,
    samples: Option<Sender<u64>>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        (self.orders, self.samples) = (None, None);
        self.ended.raise();
        // One that starts just now is not waited for.
        dyno_database::stop_waiting();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[derive(Default)]
struct Watched {
    machine: HostSpec,
    /// Probes of a router, which nobody else can reach.
    of_router: Vec<Box<dyn Probe>>,
}

/// The same; taken by their thread when it is new.
type WatchedNow = Arc<Mutex<Option<Watched>>>;

impl ServerThread {
    pub(super) fn start(
        hosting: Arc<Hosting>,
        clock: &Arc<dyn Clock>,
        out: &Outlet,
    ) -> Result<ServerThread, String> {
        let (orders, taken) = channel();
        let (samples, asked) = channel();
        let watched = WatchedNow::default();
        let failed = |error| format!("no thread can be started for a server: {error}");
        let ended = AbortFlag::new();
        let mut own = ServerThread {
            ended: ended.clone(),
            orders: Some(orders),
            samples: Some(samples),
            threads: vec![],
        };
        let mut keeping = Keeping {
            hosting,
            clock: Arc::clone(clock),
            watched: Arc::clone(&watched),
            ended,
            keeper: None,
            place: None,
            volumes: Vec::new(),
            running: None,
            is_router: false,
            address: None,
            held: None,
            sending: None,
            job: Job::default(),
        };
        let outlet = out.clone();
        let work = move || keeping.serve(&taken, &outlet);
        let thread = thread::Builder::new().name("dyno-server".to_owned()).spawn(work);
        own.threads.push(thread.map_err(failed)?);
        let (clock, outlet) = (Arc::clone(clock), out.clone());
        let work = move || sample(&asked, &watched, clock.as_ref(), &outlet);
        let thread = thread::Builder::new().name("dyno-probes".to_owned()).spawn(work);
        own.threads.push(thread.map_err(failed)?);
        Ok(own)
    }

    pub(super) fn order(&self, task: u64, order: ServerOrder) {
        if let Some(orders) = &self.orders {
            // A thread that has ended has said why, or its panic is reported.
            let _ = orders.send((task, order));
        }
    }

    pub(super) fn sample(&self, id: u64) {
        if let Some(samples) = &self.samples {
            let _ = samples.send(id);
        }
    }
}

fn sample(asked: &Receiver<u64>, watched: &WatchedNow, clock: &dyn Clock, out: &Outlet) {
    let mut sampler = Sampler::of(&HostSpec::default());
    let mut of_router = Vec::new();
    for id in asked {
        let new = locked(watched).take();
        if let Some(new) = new {
            sampler = Sampler::of(&new.machine);
            of_router = new.of_router;
        }
        let now = clock.now();
        let mut sample = Sample { machine: sampler.read(now), ..Sample::default() };
        for probe in &mut of_router {
            let mut readings = Readings::new();
            probe.read(now, &mut readings);
            sample.router.extend(readings);
            sample.notes.extend(probe.take_notes());
        }
        // The process that it takes for the generator is this one, which only watches.
        sample.machine.retain(|name, _| !name.split('.').any(|part| part == "generator"));
        sample.machine.retain(|_, value| value.is_finite());
        sample.router.retain(|_, value| value.is_finite());
        if out.say(&Answer::Sampled { id, sample }).is_err() {
            return;
        }
    }
}

struct Keeping {
    hosting: Arc<Hosting>,
    clock: Arc<dyn Clock>,
    watched: WatchedNow,
    ended: AbortFlag,
    keeper: Option<Arc<Keeper>>,
    /// Where its data live; under the keeper's root if it is not there.
    place: Option<Place>,
    /// What was made for them; that of the data first.
    volumes: Vec<Arc<Volume>>,
    running: Option<Box<dyn Server>>,
    is_router: bool,
    address: Option<Ipv4Addr>,
    held: Option<Staging>,
    sending: Option<Sending>,
    job: Job,
}

impl Keeping {
    fn serve(&mut self, orders: &Receiver<(u64, ServerOrder)>, out: &Outlet) {
        for (task, order) in orders {
            let answer = match self.obey(task, order, out) {
                Ok(done) => Answer::Done { task, done },
                Err(DeployError { message, log }) => Answer::Undone { task, message, log },
            };
            if out.say(&answer).is_err() {
                break;
            }
        }
        // Nobody wants its data: it is killed, and its folder removed.
        self.job = Job::default();
        self.running = None;
        (self.sending, self.held) = (None, None);
        let _ = self.release();
    }

    fn obey(
        &mut self,
        task: u64,
        order: ServerOrder,
        out: &Outlet,
    ) -> Result<ServerDone, DeployError> {
        match order {
            ServerOrder::Provide(order) => return self.provide(&order),
            ServerOrder::Volume { volume, act } => {
                // Dips come while the load is measured: no process is looked up for them.
                let processes = match act {
                    VolumeAct::Bind => self.running.as_ref().ok_or_else(no_server)?.processes(),
                    _ => Vec::new(),
                };
                act.on(self.volume(volume)?, &processes)?;
                if let VolumeAct::Bind | VolumeAct::Lift = act {
                    // The group whose limit is read may be another one now.
                    self.watch_server(Vec::new());
                }
            }
            ServerOrder::Measure => {
                return Ok(ServerDone::Measured(Box::new(self.volume(0)?.usage()?)));
            }
            ServerOrder::Start(order) => return self.start(*order),
            ServerOrder::Route(order) => return self.route(*order),
            ServerOrder::Halt => self.halt()?,
            ServerOrder::Send { takers } => return self.send(takers),
            ServerOrder::Fetch { from, token, data_folder } => {
                let keeper = self.keeper(data_folder.as_deref())?;
                let staging = self.staging(&keeper)?;
                let to = staging.data();
                transfer::fetch((from, token.reveal()), (&to, keeper.run_as()), &self.ended)?;
                self.held = Some(staging);
            }
            ServerOrder::Act { act, nodes } => return self.act(act, &nodes),
            ServerOrder::IsBack => return Ok(ServerDone::Back(self.control()?.is_back())),
            ServerOrder::Run(order) => self.run(task, *order, out)?,
            ServerOrder::Interrupt => self.job.interrupt(),
            ServerOrder::EndJob => self.job = Job::default(),
            ServerOrder::MayDropCaches => {
                dyno_host::page_cache_problem()
                    .map_or(Ok(()), |problem| Err(DeployError::new(problem)))?;
            }
            ServerOrder::DropCaches => {
                let (before_bytes, after_bytes) = dyno_host::drop_page_cache()?;
                return Ok(ServerDone::CachesDropped { before_bytes, after_bytes });
            }
            ServerOrder::Stop => self.stop()?,
            ServerOrder::Check => self.running.as_ref().ok_or_else(no_server)?.check_alive()?,
            ServerOrder::Look { log_lines } => {
                let server = self.running.as_mut().ok_or_else(no_server)?;
                let (down, log) = (server.down(), server.log_tail(log_lines));
                return Ok(ServerDone::Seen(Seen { down, log, data_bytes: server.data_bytes() }));
            }
        }
        Ok(ServerDone::Followed)
    }

    fn start(&mut self, order: StartOrder) -> Result<ServerDone, DeployError> {
        if self.running.is_some() {
            return Err(DeployError::new("a server is running here already"));
        }
        // Whoever fetched the data has them.
        self.sending = None;
        let StartOrder { spec, followed, open, data_folder } = order;
        let keeper = self.keeper(data_folder.as_deref())?;
        let settings = spec.settings.into_iter();
        let settings = settings.map(|(name, value)| (name, value.resolve(self.hosting.memory)));
        let listening = listen(&open)?;
        let clustering = self.hosting.products.get(&spec.product)?.clustering;
        let shares_port = clustering.is_some_and(|one| one.shares_port());
        let part = part::arrive((spec.part, followed), &listening, shares_port)?;
        let (settings, open) = (settings.collect(), Some(listening.clone()));
        let spec = ServerSpec { settings, part, open, ..spec };
        let (products, place) = (&self.hosting.products, self.place(&keeper));
        let server = match self.held.take() {
            Some(held) => products.start_on(&held.data(), &spec, &place, &self.clock)?,
            None => products.start(&spec, &place, &self.clock)?,
        };
        let group = if let Part::Node(node) = &spec.part { Some(node.ports().group) } else { None };
        self.is_router = false;
        let server = self.running.insert(server);
        let build = server.facts()?.build;
        let up = ServerUp { build, group, ..up(&**server, &listening) };
        self.address = Some(*listening.address.ip());
        self.watch_server(Vec::new());
        Ok(ServerDone::Up(Box::new(up)))
    }

    /// Stops the job and the server, and removes its data and what was made for them.
    fn stop(&mut self) -> Result<(), DeployError> {
        self.job = Job::default();
        let stopped = match self.running.take() {
            Some(server) => {
                self.watch(Watched::default());
                server.stop()
            }
            None => Ok(()),
        };
        (self.sending, self.held) = (None, None);
        stopped.and(self.release())
    }

    fn act(&mut self, act: Act, nodes: &[SocketAddrV4]) -> Result<ServerDone, DeployError> {
        let server = self.running.as_mut().ok_or_else(no_server)?;
        if act == Act::Start {
            server.meet(nodes);
        }
        let acted = self.control()?.act(act)?;
        if let (Act::Start, Some(server)) = (act, &self.running) {
            // It is another process now.
            let probes = if self.is_router { server.probes(None) } else { Vec::new() };
            self.watch_server(probes);
        }
        Ok(ServerDone::Acted(acted))
    }

    fn control(&self) -> Result<Box<dyn Control>, DeployError> {
        let server = self.running.as_ref().ok_or_else(no_server)?;
        let control = server.control();
        Ok(control.context("the server is not a process that the agent has started")?)
    }

    fn route(&mut self, order: RouteOrder) -> Result<ServerDone, DeployError> {
        if self.running.is_some() {
            return Err(DeployError::new("a server is running here already"));
        }
        let RouteOrder { route, to, also, open, data_folder } = order;
        let keeper = self.keeper(data_folder.as_deref())?;
        let listening = listen(&open)?;
        let also = also.iter().map(ServerUrl::endpoint).collect::<Result<Vec<_>, _>>()?;
        let (servers, place) =
            ((&to.endpoint()?, &also[..], Some(&listening)), Place::under(&keeper));
        let at = (&place, &self.clock);
        let (started, notes) = start_router(&self.hosting.products, &route, servers, at)?;
        self.is_router = true;
        let server = self.running.insert(started);
        let ServerFacts { product, version, settings, .. } = server.facts()?;
        let supports_named_statements = server.supports_named_statements();
        let about = RouterUp { product, version, settings, supports_named_statements, notes };
        let up = ServerUp { router: Some(about), ..up(&**server, &listening) };
        let probes = server.probes(None);
        self.watch_server(probes);
        Ok(ServerDone::Up(Box::new(up)))
    }

    fn run(&mut self, task: u64, order: CommandOrder, out: &Outlet) -> Result<(), DeployError> {
        let (Some(server), Some(keeper)) = (&self.running, &self.keeper) else {
            return Err(no_server());
        };
        let beside = (&**server, keeper, self.hosting.program.as_deref());
        self.job.run((task, order), beside, (&self.clock, out), &self.ended)
    }

    fn provide(&mut self, order: &ProvideOrder) -> Result<ServerDone, DeployError> {
        let keeper = self.keeper(order.data_folder.as_deref())?;
        let mut place = Place::under(&keeper);
        let specs = [order.data.as_ref(), order.logs.as_ref()];
        let made = volume::provide(&mut place, specs, &self.clock);
        let facts = place.facts();
        self.place = Some(place);
        match made {
            Ok(volumes) => self.volumes = volumes,
            Err(error) => {
                let _ = self.release();
                return Err(error.into());
            }
        }
        Ok(ServerDone::Provided(Box::new(facts)))
    }

    fn volume(&self, number: usize) -> Result<&Volume, DeployError> {
        Ok(self.volumes.get(number).context("there is no such volume")?)
    }

    /// Removes what was made for the data. What stays is removed by the guard, or by the next agent.
    fn release(&mut self) -> Result<(), DeployError> {
        self.volumes.clear();
        Ok(self.place.take().map_or(Ok(()), |place| place.release())?)
    }

    fn place(&self, keeper: &Arc<Keeper>) -> Place {
        self.place.clone().unwrap_or_else(|| Place::under(keeper))
    }

    /// A folder for data between two servers, where they are moved without being copied.
    fn staging(&self, keeper: &Arc<Keeper>) -> Result<Staging, DeployError> {
        Staging::beside(keeper, &self.place(keeper), "data")
            .map_err(|error| DeployError::new(error.to_string()))
    }

    fn keeper(&mut self, data_folder: Option<&str>) -> Result<Arc<Keeper>, DeployError> {
        if let Some(keeper) = &self.keeper {
            return Ok(Arc::clone(keeper));
        }
        let keeper = (self.hosting.keeper)(data_folder.map(Path::new));
        let keeper = Arc::new(keeper.map_err(DeployError::new)?);
        self.keeper = Some(Arc::clone(&keeper));
        Ok(keeper)
    }

    /// Stops the server in order, so that its data are complete: one that is started on them has nothing in its memory.
    fn halt(&mut self) -> Result<(), DeployError> {
        let (Some(server), Some(keeper)) = (self.running.take(), &self.keeper) else {
            return Err(no_server());
        };
        let staging = self.staging(keeper)?;
        server.stop_and_keep_data(&staging.data())?;
        self.held = Some(staging);
        Ok(())
    }

    fn send(&mut self, takers: usize) -> Result<ServerDone, DeployError> {
        let (Some(held), Some(address)) = (&self.held, self.address) else {
            return Err(DeployError::new("there are no data"));
        };
        let sending = transfer::offer(held.data(), (address, takers), &self.ended)?;
        let (port, token) = (sending.address.port(), Secret::new(sending.token.clone()));
        self.sending = Some(sending);
        Ok(ServerDone::Sending { port, token })
    }

    fn watch_server(&self, of_router: Vec<Box<dyn Probe>>) {
        let Some(server) = &self.running else { return };
        let machine = HostSpec {
            server_pids: server.watched_processes(),
            data: server.data_files(),
            data_disk: self.volumes.first().and_then(|volume| volume.disk_name()),
            threads: server.thread_groups(),
            ..HostSpec::default()
        };
        self.watch(Watched { machine, of_router });
    }

    fn watch(&self, watched: Watched) {
        *locked(&self.watched) = Some(watched);
    }
}

fn no_server() -> DeployError {
    DeployError::new("there is no server")
}

fn up(server: &dyn Server, listening: &Listening) -> ServerUp {
    ServerUp {
        port: listening.address.port(),
        pid: server.processes().first().copied(),
        ..ServerUp::default()
    }
}

/// Finds a free port of the address by which clients reach this machine.
fn listen(open: &Listening) -> Result<Listening, DeployError> {
    let address = *open.address.ip();
    Listening::at(address, open.password.clone()).map_err(|error| {
        DeployError::new(format!(
            "no server can listen at {address}, where clients are to reach it: {error}; give the host \
             table the `address` of this machine that the others reach"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listens_at_an_address_of_its_machine() {
        let at = |ip| {
            let address = SocketAddrV4::new(ip, 0);
            listen(&Listening { address, password: Secret::new("x") })
        };
        let listening = at(Ipv4Addr::LOCALHOST).expect("there is a loopback");
        assert!(listening.address.ip().is_loopback() && listening.address.port() > 0);
        // Of TEST-NET-1, which no machine has.
        let error = at(Ipv4Addr::new(192, 0, 2, 1)).expect_err("it is nobody's");
        let error = error.message;
        assert!(error.contains("192.0.2.1") && error.contains("`address`"), "{error}");
    }
}
