//! Servers on hosts: started by an agent, used here by their URL. Each has an agent of its own, also on a host that
//! generates load, so that neither is disturbed by the other's end.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dyno_database::{
    AttachOptions, Endpoint, Listening, Part, Protocol, Secret, Server, ServerSpec,
};
use dyno_load::AbortFlag;
use dyno_record::MemberHost;
use dyno_study::{Database, Design, HostPool};
use dyno_units::{Nanoseconds, locked};

use super::channel::{Channel, Said};
use super::hosted::{Hosted, There, Used};
use super::reach::Say;
use super::{Agents, POLL, Wanted};
use crate::agent::message::{
    Answer, Hello, Order, RouteOrder, ServerDone, ServerOrder, ServerUp, StartOrder,
};
use crate::agent::part;
use crate::{Context, Lab, Result, Route, TrialError, fail};

/// How long an error of one host is kept back: the loss of another may be its cause.
const LOST_PAUSE: Duration = Duration::from_millis(500);

/// What hosts are to do, by their indexes.
type Orders = Vec<(usize, ServerOrder)>;

/// Agents on a pool's hosts, each with one server at most; both end on drop. A server's part in its deployment is
/// in its specification, as on this machine.
pub(crate) struct ServerHosts {
    pub(super) agents: Agents,
    /// How many orders were given; held while answers are waited for.
    n_tasks: Mutex<u64>,
    abort: AbortFlag,
    /// Of each host, the address at which its server is reached, as this machine knows it.
    addresses: Vec<Ipv4Addr>,
    password: Secret,
    pub(super) data_folder: Option<String>,
    up: Mutex<Vec<Option<ServerUp>>>,
}

impl ServerHosts {
    /// On the pool's first `servers` hosts, and for a router on the next host or, without one, on the first. Fails if
    /// one cannot be started or has another version.
    pub(crate) fn start(
        lab: &Lab,
        design: &Design,
        (pool, servers, has_router): (&HostPool, usize, bool),
        say: Say<'_>,
    ) -> Result<ServerHosts> {
        let wanted = Wanted { least: servers, most: servers, has_further: has_router };
        let agents = Agents::start(lab, pool, wanted, say)?;
        let left = agents.hosts.len() - usize::from(has_router);
        if left < servers {
            return fail(format!(
                "{servers} servers need a host each; of {}, {left} are left",
                pool.name
            ));
        }
        let password = dyno_host::random_token();
        let password = password.context("no password can be made for the servers")?;
        let here = || lab.keeper.root().to_str().map(str::to_owned);
        let addresses: Result<_> = agents.addresses.iter().map(|one| resolve(one)).collect();
        Ok(ServerHosts {
            addresses: addresses?,
            agents,
            n_tasks: Mutex::new(0),
            abort: lab.abort.clone(),
            password: Secret::new(password),
            data_folder: if pool.is_local() { here() } else { design.data_folder.clone() },
            up: Mutex::new(vec![None; servers + usize::from(has_router)]),
        })
    }

    pub(crate) fn name(&self, idx: usize) -> &str {
        &self.agents.hosts[idx].0
    }

    /// Why one of them can no longer be reached.
    pub(crate) fn lost(&self) -> Option<String> {
        self.agents.lost()
    }

    pub(super) fn channel(&self, idx: usize) -> &Arc<Channel> {
        &self.agents.channels.0[idx]
    }

    pub(crate) fn there(self: &Arc<Self>, idx: usize) -> There {
        There { hosts: Arc::clone(self), idx }
    }

    pub(crate) fn in_words(&self) -> String {
        format!("hosts of servers: {}", self.agents.hosts_in_words())
    }

    pub(crate) fn facts(&self, idx: usize, server: Option<&Endpoint>) -> MemberHost {
        let Hello { machine, dyno, cpus, facts, .. } = self.agents.hellos[idx].clone();
        let clock = self.agents.clock.as_ref();
        let network = server.and_then(|one| super::measure_network(one, clock));
        MemberHost { name: self.name(idx).to_owned(), machine, dyno, cpus, facts, network }
    }

    pub(crate) fn pid(&self, idx: usize) -> Option<i32> {
        locked(&self.up)[idx].as_ref()?.pid
    }

    /// Starts servers on hosts, by index, all at once; each on the data that its agent holds, if any. Fails, with the
    /// host's name, if one did not start or cannot be reached by its URL.
    pub(crate) fn start_servers(
        self: &Arc<Self>,
        lab: &Lab,
        database: &Database,
        servers: &[(usize, &ServerSpec)],
    ) -> Result<Vec<Box<dyn Server>>> {
        let orders = servers.iter().map(|(idx, spec)| (*idx, self.order(database, *idx, spec)));
        let done = self.perform_all(orders.collect())?;
        let mut all = Vec::new();
        for ((idx, spec), done) in servers.iter().zip(done) {
            let ServerDone::Up(up) = done else { return Err(self.out_of_turn(*idx)) };
            let protocol = lab.products.protocol(&spec.product)?;
            all.push(self.attach(*idx, *up, protocol)?);
        }
        Ok(all)
    }

    fn order(&self, database: &Database, idx: usize, spec: &ServerSpec) -> ServerOrder {
        let mut spec = spec.clone();
        // The shares of memory in the study are of the host's own.
        spec.settings.extend(database.settings.clone());
        if let Part::Replica(_) = &spec.part {
            spec.settings.extend(database.replica_settings.clone());
        }
        let followed = part::leave(&mut spec.part, &self.nodes());
        let (open, data_folder) = (self.listening(idx, 0), self.data_folder.clone());
        ServerOrder::Start(Box::new(StartOrder { spec, followed, open, data_folder }))
    }

    fn listening(&self, idx: usize, port: u16) -> Listening {
        let address = SocketAddrV4::new(self.addresses[idx], port);
        Listening { address, password: self.password.clone() }
    }

    /// Returns the router with a note on it. Fails, with the host's name, if it did not start.
    pub(crate) fn start_router(
        self: &Arc<Self>,
        idx: usize,
        (route, to, also): (&Route, &Endpoint, &[Endpoint]),
    ) -> Result<(Box<dyn Server>, Vec<String>)> {
        let order = ServerOrder::Route(Box::new(RouteOrder {
            route: route.clone(),
            to: to.into(),
            also: also.iter().map(Into::into).collect(),
            open: self.listening(idx, 0),
            data_folder: self.data_folder.clone(),
        }));
        let ServerDone::Up(up) = self.perform(idx, order)? else {
            return Err(self.out_of_turn(idx));
        };
        let Some(about) = up.router.clone() else { return Err(self.out_of_turn(idx)) };
        let endpoint = self.endpoint(idx, &up, to.protocol);
        locked(&self.up)[idx] = Some(*up);
        let notes = about.notes.clone();
        let router = Hosted::new(self.there(idx), endpoint, Used::Router(about))?;
        Ok((Box::new(router), notes))
    }

    /// Where the nodes of a cluster that are up are reached by others, in the order of their numbers.
    pub(super) fn nodes(&self) -> Vec<SocketAddrV4> {
        let up = locked(&self.up);
        let all = up.iter().zip(&self.addresses);
        all.filter_map(|(up, ip)| Some(SocketAddrV4::new(*ip, up.as_ref()?.group?))).collect()
    }

    /// How a server that is up is reached: where it was ordered, as the user that was ordered. A host that could say
    /// more could send the load, and this machine's logins, to any server.
    fn endpoint(&self, idx: usize, up: &ServerUp, protocol: &'static Protocol) -> Endpoint {
        self.listening(idx, up.port).endpoint(protocol)
    }

    /// In order, all at once; agents keep their data. Fails, with the host's name, if one fails.
    pub(crate) fn halt(&self, hosts: &[usize]) -> Result {
        let orders = hosts.iter().map(|idx| (*idx, ServerOrder::Halt)).collect();
        hosts.iter().for_each(|idx| locked(&self.up)[*idx] = None);
        self.perform_all(orders).map(drop)
    }

    /// All at once, not through this machine. Fails, with the host's name, if one fails.
    pub(crate) fn copy(&self, from: usize, to: &[usize]) -> Result {
        let send = ServerOrder::Send { takers: to.len() };
        let ServerDone::Sending { port, token } = self.perform(from, send)? else {
            return Err(self.out_of_turn(from));
        };
        let address = SocketAddrV4::new(self.addresses[from], port);
        let fetch = |idx: &usize| {
            let (from, token, data_folder) = (address, token.clone(), self.data_folder.clone());
            (*idx, ServerOrder::Fetch { from, token, data_folder })
        };
        self.perform_all(to.iter().map(fetch).collect()).map(drop)
    }

    /// Whatever is made in the server is removed with it. Fails if it cannot be reached from here.
    fn attach(
        self: &Arc<Self>,
        idx: usize,
        up: ServerUp,
        protocol: &'static Protocol,
    ) -> Result<Box<dyn Server>> {
        let (there, name) = (self.there(idx), &self.channel(idx).name);
        let build = up.build.clone();
        let endpoint = self.endpoint(idx, &up, protocol);
        locked(&self.up)[idx] = Some(up);
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
            log: there.log_tail(30),
        })?;
        Ok(Box::new(Hosted::new(there, endpoint, Used::Server(attached, build))?))
    }

    /// Has the agent of a host follow an order, and waits until it has.
    pub(super) fn perform(&self, idx: usize, order: ServerOrder) -> Result<ServerDone> {
        let done = self.perform_all(vec![(idx, order)])?.into_iter().next();
        done.ok_or_else(|| self.out_of_turn(idx))
    }

    /// The same of several hosts, all at once; what came of each order.
    pub(super) fn perform_all(&self, orders: Vec<(usize, ServerOrder)>) -> Result<Vec<ServerDone>> {
        self.numbered(orders).map(|(_, done)| done)
    }

    /// The same, with the host and the number of each order, which answers that come later have as well.
    pub(super) fn numbered(&self, orders: Orders) -> Result<(Vec<(usize, u64)>, Vec<ServerDone>)> {
        let mut n_tasks = locked(&self.n_tasks);
        let limit = orders.first().map(|(_, order)| order.limit()).unwrap_or_default();
        let say = |(idx, order): (usize, ServerOrder)| {
            *n_tasks += 1;
            self.channel(idx).say(&Order::Server { task: *n_tasks, order });
            (idx, *n_tasks)
        };
        let tasks: Vec<(usize, u64)> = orders.into_iter().map(say).collect();
        let done = self.wait(&tasks, limit)?;
        Ok((tasks, done))
    }

    /// Waits until the orders are followed; what came of each, in their order.
    fn wait(
        &self,
        tasks: &[(usize, u64)],
        (limit, ends_on_stop): (Nanoseconds, bool),
    ) -> Result<Vec<ServerDone>> {
        let mut done: Vec<Option<ServerDone>> = tasks.iter().map(|_| None).collect();
        let clock = &self.agents.clock;
        let until = clock.now() + limit;
        while let Some(missing) = done.iter().position(Option::is_none) {
            let lost = tasks.iter().find_map(|(idx, _)| self.channel(*idx).lost());
            if let Some(why) = lost {
                return fail(why);
            }
            if ends_on_stop && self.abort.is_raised() {
                return Err(TrialError::Abandoned);
            }
            match self.agents.answers.recv_timeout(POLL) {
                Ok((_, Said::Lost(why))) => return fail(why),
                Ok((idx, Said::Answer(answer))) => self.take(idx, *answer, (tasks, &mut done))?,
                Err(_) => {}
            }
            // Also if something has come: a host may answer without end what nobody has asked.
            if done[missing].is_none() && clock.now() >= until {
                let why = format!("its server is not ready after {limit}");
                return Err(self.channel(tasks[missing].0).fail(&why));
            }
        }
        Ok(done.into_iter().flatten().collect())
    }

    fn take(
        &self,
        idx: usize,
        answer: Answer,
        (tasks, done): (&[(usize, u64)], &mut [Option<ServerDone>]),
    ) -> Result {
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
                if let Ok((_, Said::Lost(why))) = self.agents.answers.recv_timeout(LOST_PAUSE) {
                    return fail(why);
                }
                let message = format!("host {}: {message}", self.channel(idx).name);
                Err(TrialError::Failed { message, log })
            }
            // Of an order that nobody waits for any more.
            Answer::Undone { .. } => Ok(()),
            _ => Err(self.out_of_turn(idx)),
        }
    }

    pub(super) fn out_of_turn(&self, idx: usize) -> TrialError {
        self.channel(idx).fail("its agent answered out of turn")
    }
}

fn resolve(name: &str) -> Result<Ipv4Addr> {
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    use dyno_database::DeployError;
    use dyno_units::{Clock, ManualClock};
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
            agents: all,
            n_tasks: Mutex::new(0),
            abort,
            addresses: vec![Ipv4Addr::LOCALHOST],
            password: Secret::new("hush"),
            data_folder: None,
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
            let done = hosts.perform(0, ServerOrder::Check).expect("it answers");
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
        let hosts = hosts_of(done, json!("followed"));
        let facts = hosts.facts(0, None);
        let texts = facts.facts.iter().flat_map(|(name, value)| [name, value]);
        for text in texts.chain([&facts.machine, &hosts.in_words()]) {
            assert!(!text.contains(dyno_units::is_unsafe_char), "{text:?}");
            assert!(text.contains("evil"), "{text:?}");
        }
        let check = |answer: fn(u64, &Value) -> Value, with: Value, expected: &str| {
            let hosts = hosts_of(answer, with);
            let error = hosts.perform(0, ServerOrder::Check).expect_err(expected);
            let message = DeployError::from(error).message;
            assert!(message.contains(expected), "{message}");
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
        let hosts = hosts_saying((forged, usize::MAX), json!("followed"));
        let error = hosts.perform(0, ServerOrder::Check).expect_err("it is late");
        assert_eq!(
            DeployError::from(error).message,
            "host db1: its server is not ready after 10 s"
        );
    }

    #[test]
    fn a_host_that_does_not_say_that_it_dropped_its_caches_is_lost() {
        let hosts = hosts_of(done, json!("followed"));
        let error = hosts.drop_caches().err().expect("it is lost");
        let message = DeployError::from(error).message;
        assert!(message.contains("answered out of turn"), "{message}");
    }

    #[test]
    fn the_notes_of_a_host_have_an_end() {
        let sample = json!({ "machine": {}, "router": {}, "notes": vec![HOSTILE; 70] });
        let hosts = hosts_of(done, sample);
        let (member, of_router) = ("primary".to_owned(), Vec::new());
        let host = hosts.name(0).to_owned();
        let watched = WatchedHost { idx: 0, host, member, is_measured: true, of_router };
        let mut probe = hosts.probe(vec![watched]);
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
