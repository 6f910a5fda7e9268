//! Servers on hosts: each is started by an agent there, and used from here by its URL.
//!
//! Its agent is one of its own, also on a host that generates load, so that neither is disturbed by the other's end.

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dyno_database::{
    AttachOptions, BuildFacts, Control, CostSource, DebtMeter, DeployError, Endpoint, Listening,
    Part, Protocol, Secret, Server, ServerFacts, ServerSpec,
};
use dyno_host::{Probe, ThreadListing};
use dyno_load::AbortFlag;
use dyno_record::MemberHost;
use dyno_study::{Database, Design, HostPool};
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connector, Dialect};

use super::channel::{Channel, Said};
use super::fault::HostedControl;
use super::reach::Say;
use super::router::HostedRouter;
use super::{Agents, POLL, Wanted};
use crate::agent::message::{
    Answer, Hello, Order, Password, RouteOrder, ServerDone, ServerOrder, ServerUp, StartOrder,
};
use crate::agent::part::PartOrder;
use crate::deployment::{Route, build_of};
use crate::run::Lab;
use crate::trial::TrialError;

/// How long starting a server may take, its system tables included.
const START_LIMIT: Nanoseconds = Nanoseconds::from_secs(600);
/// How long stopping it in order may take, or its data from one host to another.
const DATA_LIMIT: Nanoseconds = Nanoseconds::from_secs(3600);
/// How long an error of one host is kept back: the loss of another may be its cause.
const LOST_PAUSE: Duration = Duration::from_millis(500);
const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(150);
pub(super) const LOOK_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

/// The agents on the hosts of a pool, each with one server at most. They end with this, and their servers with
/// them. What a server is for among the members of its deployment is part of its specification, as on this machine.
pub(crate) struct ServerHosts {
    pub(super) channels: Vec<Arc<Channel>>,
    names: Vec<String>,
    pub(super) hellos: Vec<Hello>,
    /// Held while answers are waited for.
    agents: Mutex<Conversation>,
    pub(super) clock: Arc<dyn Clock>,
    abort: AbortFlag,
    /// Of each host, the address at which its server is reached, as this machine knows it.
    addresses: Vec<Ipv4Addr>,
    password: Secret,
    pub(super) data_folder: Option<String>,
    cpus: Vec<u32>,
    up: Mutex<Vec<Option<ServerUp>>>,
}

struct Conversation {
    all: Agents,
    n_tasks: Cell<u64>,
}

/// An order for the agent of a host, by its index.
pub(super) type Ordered = (usize, ServerOrder);

/// Whether the user's wish to stop ends a wait.
#[derive(Clone, Copy)]
pub(super) enum Waiting<'l> {
    UntilAbort(&'l AbortFlag),
    InAnyCase,
}

impl ServerHosts {
    /// Starts an agent on each of the first `servers` hosts of a pool, and one for a router if there is to be one: on
    /// the next host or, if there is none, on the first one.
    ///
    /// # Errors
    ///
    /// One cannot be started, or is of another version.
    pub(crate) fn start(
        lab: &Lab,
        design: &Design,
        (pool, servers, has_router): (&HostPool, usize, bool),
        say: Say<'_>,
    ) -> Result<ServerHosts, TrialError> {
        let wanted = Wanted { least: servers, most: servers, has_further: has_router };
        let all = Agents::start(lab, pool, wanted, say)?;
        let left = all.hosts.len() - usize::from(has_router);
        if left < servers {
            return Err(TrialError::new(format!(
                "{servers} servers need a host each; of {}, {left} are left",
                pool.name
            )));
        }
        let password = dyno_host::random_token().map_err(|error| {
            TrialError::new(format!("no password can be made for the servers: {error}"))
        })?;
        let here = || lab.keeper.root().to_str().map(str::to_owned);
        let addresses: Result<_, TrialError> =
            all.addresses.iter().map(|one| resolve(one)).collect();
        Ok(ServerHosts {
            channels: all.channels.0.clone(),
            names: all.hosts.iter().map(|(name, _)| name.clone()).collect(),
            addresses: addresses?,
            hellos: all.hellos.clone(),
            agents: Mutex::new(Conversation { all, n_tasks: Cell::new(0) }),
            clock: Arc::clone(&lab.clock),
            abort: lab.abort.clone(),
            password: Secret::new(password),
            data_folder: if pool.is_local() { here() } else { design.data_folder.clone() },
            cpus: design.server_cpus.clone(),
            up: Mutex::new(vec![None; servers + usize::from(has_router)]),
        })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn in_words(&self) -> String {
        let hosts = self.channels.iter().zip(&self.hellos);
        let hosts: Vec<String> = hosts
            .map(|(channel, hello)| format!("{} ({})", channel.name, hello.in_words()))
            .collect();
        format!("hosts of servers: {}", hosts.join(", "))
    }

    pub(crate) fn facts(&self, idx: usize, server: Option<&Endpoint>) -> MemberHost {
        let hello = &self.hellos[idx];
        MemberHost {
            name: self.names[idx].clone(),
            machine: hello.machine.clone(),
            dyno: hello.dyno.clone(),
            cpus: hello.cpus,
            facts: hello.facts.clone(),
            network: server.and_then(|one| super::measure_network(one, self.clock.as_ref())),
        }
    }

    pub(crate) fn pid(&self, idx: usize) -> Option<i32> {
        self.up()[idx].as_ref()?.pid
    }

    /// Starts servers of a database on hosts, by their indexes, all at once; each on the data that its agent holds, if
    /// it holds any. They are used by their URLs.
    ///
    /// # Errors
    ///
    /// One did not start, or cannot be reached from here; the message names its host.
    pub(crate) fn start_servers(
        self: &Arc<Self>,
        lab: &Lab,
        database: &Database,
        servers: &[(usize, &ServerSpec)],
    ) -> Result<Vec<Box<dyn Server>>, TrialError> {
        let orders =
            servers.iter().map(|(idx, spec)| Ok((*idx, self.order(database, *idx, spec)?)));
        let orders = orders.collect::<Result<Vec<Ordered>, DeployError>>()?;
        let done = self.ordered(lab, orders, START_LIMIT)?;
        let mut all = Vec::new();
        for ((idx, spec), done) in servers.iter().zip(done) {
            let ServerDone::Up(up) = done else { return Err(out_of_turn(&self.channels[*idx])) };
            let protocol = lab.products.protocol(&spec.product)?;
            all.push(self.attach(*idx, *up, protocol)?);
        }
        Ok(all)
    }

    fn order(
        &self,
        database: &Database,
        idx: usize,
        spec: &ServerSpec,
    ) -> Result<ServerOrder, DeployError> {
        // The shares of memory in the study are of the host's own; what Dyno adds is in the specification.
        let mut settings = database.settings.clone();
        if let Part::Replica(_) = &spec.part {
            settings.extend(database.replica_settings.clone());
        }
        for (name, value) in &spec.settings {
            settings.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Ok(ServerOrder::Start(Box::new(StartOrder {
            product: spec.product.clone(),
            version: spec.version.clone(),
            engine: spec.engine.clone(),
            programs: database.programs.clone(),
            from: spec.from.clone(),
            settings,
            cpus: self.cpus.clone(),
            address: self.addresses[idx],
            password: Password(self.password.reveal().to_owned()),
            part: PartOrder::of(&spec.part, self.nodes())?,
            data_folder: self.data_folder.clone(),
        })))
    }

    /// Starts a router on a host; it is used by its address. Returns it with what is worth knowing about it.
    ///
    /// # Errors
    ///
    /// It did not start; the message names its host.
    pub(crate) fn start_router(
        self: &Arc<Self>,
        lab: &Lab,
        idx: usize,
        (route, to, also): (&Route, &Endpoint, &[Endpoint]),
    ) -> Result<(Box<dyn Server>, Vec<String>), TrialError> {
        let order = ServerOrder::Route(Box::new(RouteOrder {
            router: route.product.clone(),
            options: route.options.clone(),
            to: to.to_string(),
            also: also.iter().map(Endpoint::to_string).collect(),
            clients: route.clients,
            cpus: route.cpus.clone(),
            address: self.addresses[idx],
            password: Password(self.password.reveal().to_owned()),
            data_folder: self.data_folder.clone(),
        }));
        let done = self.ordered(lab, vec![(idx, order)], START_LIMIT)?.into_iter().next();
        let Some(ServerDone::Up(up)) = done else {
            return Err(out_of_turn(&self.channels[idx]));
        };
        let Some(about) = up.router.clone() else { return Err(out_of_turn(&self.channels[idx])) };
        let endpoint = self.endpoint(idx, &up, to.protocol);
        self.up()[idx] = Some(*up);
        let notes = about.notes.clone();
        let router = HostedRouter::new(Arc::clone(self), idx, (endpoint, about))?;
        Ok((Box::new(router), notes))
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Where the nodes of a cluster that are up are reached by others, in the order of their numbers.
    pub(super) fn nodes(&self) -> Vec<SocketAddrV4> {
        let up = self.up();
        let all = up.iter().zip(&self.addresses);
        all.filter_map(|(up, ip)| Some(SocketAddrV4::new(*ip, up.as_ref()?.group?))).collect()
    }

    /// Finds out whether the server of a host still answers, as its agent sees it.
    pub(super) fn check(&self, idx: usize) -> Result<(), DeployError> {
        self.in_any_case(idx, ServerOrder::Check, LOOK_LIMIT).map(drop)
    }

    /// How a server that is up is reached: where it was ordered, as the user that was ordered. A host that could say
    /// more could send the load, and this machine's logins, to any server.
    fn endpoint(&self, idx: usize, up: &ServerUp, protocol: &'static dyn Protocol) -> Endpoint {
        let address = SocketAddrV4::new(self.addresses[idx], up.port);
        Listening { address, password: self.password.clone() }.endpoint(protocol)
    }

    /// Stops the servers of hosts in order, all at once; their agents hold their data.
    ///
    /// # Errors
    ///
    /// One did not stop; the message names its host.
    pub(crate) fn halt(&self, lab: &Lab, hosts: &[usize]) -> Result<(), TrialError> {
        let orders = hosts.iter().map(|idx| (*idx, ServerOrder::Halt)).collect();
        hosts.iter().for_each(|idx| self.up()[*idx] = None);
        self.ordered(lab, orders, DATA_LIMIT).map(drop)
    }

    /// Has the data that the agent of a host holds copied to others, all at once and past this machine.
    ///
    /// # Errors
    ///
    /// They did not arrive; the message names the host.
    pub(crate) fn copy(&self, lab: &Lab, from: usize, to: &[usize]) -> Result<(), TrialError> {
        let send = ServerOrder::Send { takers: to.len() };
        let done = self.ordered(lab, vec![(from, send)], LOOK_LIMIT)?;
        let Some(ServerDone::Sending { port, token }) = done.into_iter().next() else {
            return Err(out_of_turn(&self.channels[from]));
        };
        let address = SocketAddrV4::new(self.addresses[from], port);
        let fetch = |idx: &usize| {
            let (from, token, data_folder) = (address, token.clone(), self.data_folder.clone());
            (*idx, ServerOrder::Fetch { from, token, data_folder })
        };
        self.ordered(lab, to.iter().map(fetch).collect(), DATA_LIMIT).map(drop)
    }

    /// Gives orders to the agents of hosts, all at once, and waits until they are followed; what came of each.
    pub(super) fn ordered(
        &self,
        lab: &Lab,
        orders: Vec<Ordered>,
        limit: Nanoseconds,
    ) -> Result<Vec<ServerDone>, TrialError> {
        let agents = self.agents();
        let say = |(idx, order): Ordered| (idx, self.say(&agents, idx, order));
        let tasks: Vec<(usize, u64)> = orders.into_iter().map(say).collect();
        self.wait(&agents, &tasks, limit, Waiting::UntilAbort(&lab.abort))
    }

    /// The server of a host, used by its URL; nothing is made in it that is not removed with it.
    ///
    /// # Errors
    ///
    /// It cannot be reached from here.
    fn attach(
        self: &Arc<Self>,
        idx: usize,
        up: ServerUp,
        protocol: &'static dyn Protocol,
    ) -> Result<Box<dyn Server>, TrialError> {
        let name = &self.channels[idx].name;
        let build = up.build.clone().map(build_of);
        let endpoint = self.endpoint(idx, &up, protocol);
        self.up()[idx] = Some(up);
        // It is Dyno's own, and removed as a whole.
        let options = AttachOptions {
            allow_existing_tables: true,
            makes_nothing: true,
            ..AttachOptions::default()
        };
        let attached = dyno_database::attach(&endpoint, options).map_err(|error| TrialError::Failed {
            message: format!(
                "host {name}: its server at {endpoint} cannot be reached from here: {error}; give the \
                 host table the `address` at which all hosts reach it"
            ),
            log: self.log_tail(idx, 30),
        })?;
        Ok(Box::new(HostedServer { hosts: Arc::clone(self), idx, attached, build }))
    }

    /// Stops the server of a host and removes its data.
    pub(super) fn stop(&self, idx: usize) -> Result<(), DeployError> {
        self.in_any_case(idx, ServerOrder::Stop, STOP_LIMIT).map(drop)
    }

    /// Gives an order to the agent of a host, and waits until it is followed, also if the user wants to stop.
    pub(super) fn in_any_case(
        &self,
        idx: usize,
        order: ServerOrder,
        limit: Nanoseconds,
    ) -> Result<ServerDone, DeployError> {
        self.numbered(idx, order, limit, Waiting::InAnyCase).map(|(_, done)| done)
    }

    /// The same, but no longer than until the user wants to stop.
    pub(super) fn unless_stopped(
        &self,
        idx: usize,
        order: ServerOrder,
        limit: Nanoseconds,
    ) -> Result<ServerDone, DeployError> {
        self.numbered(idx, order, limit, Waiting::UntilAbort(&self.abort)).map(|(_, done)| done)
    }

    /// The same with the order's number, which answers that come later have as well.
    pub(super) fn numbered(
        &self,
        idx: usize,
        order: ServerOrder,
        limit: Nanoseconds,
        waiting: Waiting<'_>,
    ) -> Result<(u64, ServerDone), DeployError> {
        let agents = self.agents();
        let task = self.say(&agents, idx, order);
        let done = self.wait(&agents, &[(idx, task)], limit, waiting);
        match done.map(|done| done.into_iter().next()) {
            Ok(Some(done)) => Ok((task, done)),
            Err(TrialError::Failed { message, log }) => Err(DeployError { message, log }),
            Ok(None) | Err(_) => Err(DeployError::new("the order was not followed")),
        }
    }

    /// How the server of a host is: why it is down, the end of its log, bytes of its data.
    pub(super) fn look(
        &self,
        idx: usize,
        log_lines: usize,
    ) -> Option<(Option<String>, Vec<String>, Option<u64>)> {
        if self.channels[idx].lost().is_some() {
            return None;
        }
        let agents = self.agents();
        let task = self.say(&agents, idx, ServerOrder::Look { log_lines });
        let done = self.wait(&agents, &[(idx, task)], LOOK_LIMIT, Waiting::InAnyCase).ok()?;
        match done.into_iter().next()? {
            ServerDone::Seen { down, log, data_bytes } => Some((down, log, data_bytes)),
            _ => None,
        }
    }

    /// Why the server of a host is down; `seen` is what is seen from here.
    pub(super) fn down(&self, idx: usize, seen: Option<String>) -> Option<String> {
        let channel = &self.channels[idx];
        if let Some(why) = channel.lost() {
            return Some(why);
        }
        let (down, ..) = self.look(idx, 0)?;
        let why = down.or(seen)?;
        Some(format!("host {}: {why}", channel.name))
    }

    pub(super) fn log_tail(&self, idx: usize, lines: usize) -> Vec<String> {
        self.look(idx, lines).map(|(_, log, _)| log).unwrap_or_default()
    }

    fn up(&self) -> MutexGuard<'_, Vec<Option<ServerUp>>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agents(&self) -> MutexGuard<'_, Conversation> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an order to the agent of a host; returns its number.
    fn say(&self, agents: &Conversation, idx: usize, order: ServerOrder) -> u64 {
        let task = agents.n_tasks.get() + 1;
        agents.n_tasks.set(task);
        self.channels[idx].say(&Order::Server { task, order });
        task
    }

    /// Waits until the orders are followed; what came of each, in their order.
    fn wait(
        &self,
        agents: &Conversation,
        tasks: &[(usize, u64)],
        limit: Nanoseconds,
        waiting: Waiting<'_>,
    ) -> Result<Vec<ServerDone>, TrialError> {
        let mut done: Vec<Option<ServerDone>> = tasks.iter().map(|_| None).collect();
        let until = self.clock.now() + limit;
        while let Some(missing) = done.iter().position(Option::is_none) {
            let lost = tasks.iter().find_map(|(idx, _)| self.channels[*idx].lost());
            if let Some(why) = lost {
                return Err(TrialError::new(why));
            }
            if let Waiting::UntilAbort(abort) = waiting
                && abort.is_raised()
            {
                return Err(TrialError::Abandoned);
            }
            match agents.all.answers.recv_timeout(POLL) {
                Ok((_, Said::Lost(why))) => return Err(TrialError::new(why)),
                Ok((idx, Said::Answer(answer))) => {
                    self.take(idx, *answer, (tasks, &mut done), agents)?
                }
                Err(_) => {}
            }
            // Also if something has come: a host may answer without end what nobody has asked.
            if done[missing].is_none() && self.clock.now() >= until {
                let channel = &self.channels[tasks[missing].0];
                let why = channel.lose(&format!("its server is not ready after {limit}"));
                return Err(TrialError::new(why));
            }
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// Takes an answer of a host: what came of an order is put into its place.
    fn take(
        &self,
        idx: usize,
        answer: Answer,
        (tasks, done): (&[(usize, u64)], &mut [Option<ServerDone>]),
        agents: &Conversation,
    ) -> Result<(), TrialError> {
        let of = |task: u64| tasks.iter().position(|one| *one == (idx, task));
        match answer {
            Answer::Done { task, done: what } => {
                if let Some(at) = of(task) {
                    done[at] = Some(what);
                }
                Ok(())
            }
            Answer::Undone { task, message, log } if of(task).is_some() => {
                // If it is for want of another host, that is what happened.
                if let Ok((_, Said::Lost(why))) = agents.all.answers.recv_timeout(LOST_PAUSE) {
                    return Err(TrialError::new(why));
                }
                let message = format!("host {}: {message}", self.channels[idx].name);
                Err(TrialError::Failed { message, log })
            }
            // Of an order that nobody waits for any more.
            Answer::Undone { .. } => Ok(()),
            _ => Err(out_of_turn(&self.channels[idx])),
        }
    }
}

fn resolve(name: &str) -> Result<Ipv4Addr, TrialError> {
    let failed = |why: &dyn std::fmt::Display| {
        TrialError::new(format!(
            "the address of host {name} cannot be found from here: {why}; give the host table the \
             `address` at which all hosts reach it"
        ))
    };
    let found = (name, 0).to_socket_addrs().map_err(|error| failed(&error))?;
    let v4 = |one: SocketAddr| match one {
        SocketAddr::V4(one) => Some(*one.ip()),
        SocketAddr::V6(_) => None,
    };
    found.into_iter().find_map(v4).ok_or_else(|| failed(&"it has no IPv4 address"))
}

pub(super) fn out_of_turn(channel: &Channel) -> TrialError {
    TrialError::new(channel.lose("its agent answered out of turn"))
}

/// A server on a host: asked by its URL, watched and stopped through its agent.
struct HostedServer {
    hosts: Arc<ServerHosts>,
    idx: usize,
    attached: Box<dyn Server>,
    build: Option<BuildFacts>,
}

impl Server for HostedServer {
    fn dialect(&self) -> Dialect {
        self.attached.dialect()
    }

    fn connector(&self) -> Connector {
        self.attached.connector()
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        Ok(ServerFacts { build: self.build.clone(), ..self.attached.facts()? })
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        self.attached.endpoint()
    }

    fn control(&self) -> Option<Box<dyn Control>> {
        Some(Box::new(HostedControl::new(&self.hosts, self.idx)))
    }

    fn down(&mut self) -> Option<String> {
        // What its own machine says of its end is more than that the connection is lost.
        let lost = self.attached.down();
        self.hosts.down(self.idx, lost)
    }

    fn log_tail(&self, lines: usize) -> Vec<String> {
        self.hosts.log_tail(self.idx, lines)
    }

    fn data_bytes(&self) -> Option<u64> {
        self.hosts.look(self.idx, 0)?.2
    }

    fn stores_data(&self) -> bool {
        self.attached.stores_data()
    }

    fn probes(&self, _: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        self.attached.probes(None)
    }

    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        self.attached.debt_meter()
    }

    fn cost_source(
        &self,
        access: dyno_database::Access,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn CostSource>, String> {
        self.attached.cost_source(access, clock)
    }

    fn check_alive(&self) -> Result<(), DeployError> {
        self.attached.check_alive()
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let HostedServer { hosts, idx, attached, .. } = *self;
        // What is attached leaves everything; the connections that it holds open end first.
        let left = attached.stop();
        hosts.stop(idx).and(left)
    }

    fn stop_and_keep_data(self: Box<Self>, _: &Path) -> Result<(), DeployError> {
        Err(DeployError::new("the data of a server on another host stay there"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    use dyno_units::ManualClock;
    use serde_json::{Value, json};

    use super::super::WatchedHost;
    use super::super::tests::pipes;
    use super::*;
    use crate::agent::{DYNO, PROTOCOL, read_frame, write_frame};

    /// What would hide text on a terminal, and turn it around.
    const HOSTILE: &str = "\u{1b}[8mevil\u{202e}";

    fn done(task: u64, done: &Value) -> Value {
        json!({ "done": { "task": task, "done": done } })
    }

    /// The host of an agent that answers each order about its server with this, made of the order's number.
    fn hosts_of(answer: fn(u64, &Value) -> Value, with: Value) -> Arc<ServerHosts> {
        hosts_saying((answer, 1), with)
    }

    /// The same of one that says its answer so many times. Each takes a millisecond.
    fn hosts_saying(
        (answer, times): (fn(u64, &Value) -> Value, usize),
        with: Value,
    ) -> Arc<ServerHosts> {
        let clock = Arc::new(ManualClock::new());
        let passing = Arc::clone(&clock);
        let start = |_: usize| {
            let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
            let (with, passing) = (with.clone(), Arc::clone(&passing));
            thread::spawn(move || {
                let _: Result<Order, _> = read_frame(&mut theirs);
                let machine = HOSTILE.to_owned();
                let facts = [(HOSTILE.to_owned(), HOSTILE.to_owned())].into();
                let dyno = DYNO.to_owned();
                let hello = Hello { protocol: PROTOCOL, dyno, machine, facts, ..Hello::default() };
                let _ = write_frame(&mut theirs, &Answer::Hello(hello));
                while let Ok(order) = read_frame::<Order>(&mut theirs) {
                    let said = match order {
                        Order::Server { task, .. } => answer(task, &with),
                        Order::Sample { id } => json!({ "sampled": { "id": id, "sample": with } }),
                        _ => continue,
                    };
                    for _ in 0..times {
                        if write_frame(&mut theirs, &said).is_err() {
                            return;
                        }
                        passing.advance_to(passing.now() + Nanoseconds::from_millis(1));
                    }
                }
            });
            Ok((None, pipes(ours)))
        };
        let abort = AbortFlag::new();
        let clock: Arc<dyn Clock> = clock;
        let all = Agents::with(&["db1".to_owned()], &start, &clock, (&abort, false));
        let all = all.unwrap_or_else(|error| panic!("{error:?}"));
        Arc::new(ServerHosts {
            channels: all.channels.0.clone(),
            names: vec!["db1".to_owned()],
            hellos: all.hellos.clone(),
            agents: Mutex::new(Conversation { all, n_tasks: Cell::new(0) }),
            clock,
            abort,
            addresses: vec![Ipv4Addr::LOCALHOST],
            password: Secret::new("hush"),
            data_folder: None,
            cpus: Vec::new(),
            up: Mutex::new(vec![None]),
        })
    }

    #[test]
    fn a_host_does_not_choose_the_server_that_is_worked_on() {
        let folder = tempfile::tempdir().expect("there is a folder");
        let own = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        let port = own.local_addr().expect("it has one").port();
        thread::spawn(move || own.accept().map(drop));
        // What only this machine may log in to.
        let socket = folder.path().join(".s.PGSQL.5432");
        let (by_socket, by_port) = (
            UnixListener::bind(&socket).expect("it is made"),
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port"),
        );
        by_socket.set_nonblocking(true).expect("it can be asked");
        by_port.set_nonblocking(true).expect("it can be asked");
        let elsewhere = by_port.local_addr().expect("it has one");
        for url in [
            format!("postgresql://root@x/shop?host={}", folder.path().display()),
            format!("mysql://root@x/shop?socket={}", socket.display()),
            format!("postgresql://root@{elsewhere}/shop"),
        ] {
            // The forms of this and of earlier versions, and whatever else a stranger may send.
            let forged = json!({ "up": {
                "url": url, "port": port, "pid": 1, "build": null, "group": null, "router": null,
                "host": elsewhere.ip(), "address": elsewhere, "user": "root", "catalog": "shop",
                "socket": socket, "protocol": "mysql",
            }});
            let hosts = hosts_of(done, forged);
            let done = hosts.in_any_case(0, ServerOrder::Check, START_LIMIT).expect("it answers");
            let ServerDone::Up(up) = done else { panic!("{done:?}") };
            let endpoint = Endpoint::from_url("postgresql://x@y/z").expect("it is a URL");
            let Err(error) = hosts.attach(0, *up, endpoint.protocol) else {
                panic!("nothing answers there");
            };
            let TrialError::Failed { message, .. } = error else { panic!("{error:?}") };
            let ordered = format!("postgresql://dyno_client@127.0.0.1:{port}/dyno ");
            assert!(message.contains(&ordered), "{message}");
        }
        assert!(by_socket.accept().is_err() && by_port.accept().is_err());
    }

    #[test]
    fn what_a_host_says_is_bounded_and_harmless() {
        let hosts = hosts_of(done, json!("alive"));
        let facts = hosts.facts(0, None);
        let texts = facts.facts.iter().flat_map(|(name, value)| [name, value]);
        for text in texts.chain([&facts.machine, &hosts.in_words()]) {
            assert!(!text.contains(dyno_units::is_unsafe_char), "{text:?}");
            assert!(text.contains("evil"), "{text:?}");
        }
        let check = |answer: fn(u64, &Value) -> Value, with: Value, expected: &str| {
            let hosts = hosts_of(answer, with);
            let error = hosts.in_any_case(0, ServerOrder::Check, START_LIMIT).expect_err(expected);
            assert!(error.message.contains(expected), "{}", error.message);
        };
        let ended = |_: u64, end: &Value| json!({ "command_ended": { "task": 77, "end": end } });
        check(ended, json!({ "Err": "x" }), "order 77 is of no command that runs");
        let long =
            json!({ "seen": { "down": "x".repeat(2 << 20), "log": [], "data_bytes": null } });
        check(done, long, "is too long");
        check(done, json!({ "sending": { "port": 70_000, "token": "" } }), "cannot be decoded");
    }

    #[test]
    fn a_host_that_answers_without_end_is_not_waited_for_without_end() {
        // In place of its answer comes one to an order that nobody has given, again and again.
        let forged = |_: u64, done: &Value| json!({ "done": { "task": 0, "done": done } });
        let hosts = hosts_saying((forged, usize::MAX), json!("alive"));
        let error = hosts.in_any_case(0, ServerOrder::Stop, LOOK_LIMIT).expect_err("it is late");
        assert_eq!(error.message, "host db1: its server is not ready after 10 s");
    }

    #[test]
    fn the_notes_of_a_host_have_an_end() {
        let sample = json!({ "machine": {}, "router": {}, "notes": vec![HOSTILE; 70] });
        let hosts = hosts_of(done, sample);
        let (member, of_router) = ("primary".to_owned(), Vec::new());
        let mut probe =
            hosts.probe(vec![WatchedHost { idx: 0, member, is_measured: true, of_router }]);
        let mut readings = dyno_host::Readings::new();
        let mut read = || {
            probe.read(Nanoseconds::ZERO, &mut readings);
            probe.take_notes()
        };
        let counts = [read(), read(), read()].map(|notes| {
            assert!(notes.iter().all(|note| note.starts_with("host db1: ")), "{notes:?}");
            assert!(!notes.iter().any(|note| note.contains(dyno_units::is_unsafe_char)));
            notes.len()
        });
        assert_eq!(counts, [70, 30, 0]);
    }

    #[test]
    fn a_host_is_reached_by_its_address() {
        assert_eq!(resolve("localhost").expect("it is known"), Ipv4Addr::LOCALHOST);
        let TrialError::Failed { message, .. } = resolve("::1").expect_err("it is not IPv4") else {
            panic!("another error");
        };
        assert!(message.contains("::1") && message.contains("`address`"), "{message}");
    }
}
