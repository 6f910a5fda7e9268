//! The process behind `dyno up`: it owns the servers until it is told to end.
//!
//! It leaves the terminal's session, reads what to start from its standard input, says on its standard
//! output once how that went, and then waits. Its keeper holds the owner files of the servers' folders:
//! if it is killed, the next Dyno can prove that they are left over.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use anyhow::{Context, bail};
use dyno_database::{
    Cluster, DeployError, Endpoint, Following, Node, Part, Place, Products, Reach, Replication,
    RouterLaunch, Server, ServerSpec,
};
use dyno_host::{Hold, Keeper, Register, Registered, RegisteredMember, ServerLimits};
use dyno_load::AbortFlag;
use dyno_units::{ByteCount, Clock, Nanoseconds, SettingValue};

use super::up::{Order, Said};
use crate::clock::SystemClock;
use crate::written::scalar;
use crate::{End, lab, signals};

/// The hidden command that becomes the holder.
pub(crate) const COMMAND: &str = "hold";

/// How many clients a router in front of a server of `dyno up` accepts.
const CLIENTS_MOST: usize = 1000;

const POLL: Nanoseconds = Nanoseconds::from_millis(100);

pub(crate) fn run() -> anyhow::Result<End> {
    // It is a child that leads no group, so this cannot fail; if it does, it stays in the session.
    let _ = rustix::process::setsid();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read what to start")?;
    let order: Order = serde_json::from_str(&text).context("cannot read what to start")?;
    let abort = AbortFlag::new();
    signals::raise(&abort, "stopping …")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut holder = match Holder::start(&order, &clock) {
        Ok(holder) => holder,
        Err(error) => {
            say(&Said::Failed(format!("{error:#}")))?;
            return Ok(End::Bad);
        }
    };
    // If nobody listens any more, nobody knows that it is there.
    if say(&Said::Up(holder.registered.clone())).is_ok() {
        while !abort.is_raised() {
            holder.watch();
            clock.sleep_until(clock.now() + POLL);
        }
    }
    holder.end()
}

/// Says something to the command that started it. Nothing is printed later.
fn say(said: &Said) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(&serde_json::to_vec(said)?)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

struct Holder {
    hold: Hold,
    servers: Servers,
    registered: Registered,
}

/// Servers of a deployment by the names of their members, the primary first. The last is stopped first, also
/// when a later one does not start.
#[derive(Default)]
struct Servers(Vec<(String, Box<dyn Server>)>);

impl Servers {
    /// Stops all; the first error of the primary or, if it has none, of the others.
    fn stop(mut self) -> Result<(), DeployError> {
        let mut result = Ok(());
        while let Some((_, server)) = self.0.pop() {
            result = server.stop().and(result);
        }
        result
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        while let Some((_, server)) = self.0.pop() {
            // Why it is stopped is said by whoever does so.
            let _ = server.stop();
        }
    }
}

impl Holder {
    fn start(order: &Order, clock: &Arc<dyn Clock>) -> anyhow::Result<Holder> {
        let register = Register::open(&lab::register()?)?;
        let hold = register.hold(&order.name)?;
        let keeper = Arc::new(lab::keeper(&order.root)?.with_builds(lab::builds()?));
        let mut registered = Registered {
            name: order.name.clone(),
            since_unix_ms: clock.unix_millis(),
            root: keeper.root().to_owned(),
            members: Vec::new(),
            failure: None,
        };
        // Should it be killed while servers start, `down` finds them there.
        hold.publish(&registered)?;
        let environment = lab::environment(keeper.root());
        let spec = ServerSpec {
            version: order.version.clone(),
            from: order.from.clone(),
            programs: order.programs.clone(),
            image: order.image.clone(),
            engine: order.engine.clone(),
            settings: settings(
                "--setting",
                &order.settings,
                ByteCount(environment.usable_memory_bytes()),
            )?,
            limits: ServerLimits { memory: order.memory.map(ByteCount), ..ServerLimits::default() },
            admits_client: true,
            ..ServerSpec::new(&order.product)
        };
        let place = Place::under(&keeper);
        let deploying = Deploying { order, register, products: dyno_lab::products(), place, clock };
        let (servers, members) = deploying.all(spec)?;
        registered.members = members;
        hold.publish(&registered)?;
        Ok(Holder { hold, servers, registered })
    }

    /// Notes it when a server goes down. Its folder stays until it is told to end, for its log.
    fn watch(&mut self) {
        let mut servers = self.servers.0.iter_mut();
        if self.registered.failure.is_none()
            && let Some(how) = servers.find_map(|(name, server)| Some((name, server.down()?)))
        {
            let is_alone = self.registered.members.len() == 1;
            let (name, how) = how;
            self.registered.failure = Some(if is_alone { how } else { format!("{name}: {how}") });
            // What cannot be written is seen by the process that is missing.
            let _ = self.hold.publish(&self.registered);
        }
    }

    fn end(mut self) -> anyhow::Result<End> {
        let was_down = self.registered.failure.is_some();
        match self.servers.stop() {
            Err(error) if !was_down => {
                self.registered.failure = Some(error.to_string());
                self.hold.publish(&self.registered)?;
                self.hold.leave();
                Ok(End::Bad)
            }
            _ => Ok(End::Good),
        }
    }
}

struct Deploying<'a> {
    order: &'a Order,
    register: Register,
    products: Products,
    place: Place,
    clock: &'a Arc<dyn Clock>,
}

impl Deploying<'_> {
    /// Starts all members, in the order in which they need each other.
    fn all(&self, spec: ServerSpec) -> anyhow::Result<(Servers, Vec<RegisteredMember>)> {
        let order = self.order;
        if let Some(nodes) = order.nodes {
            return self.cluster(&spec, nodes);
        }
        if let Some(shards) = order.shards {
            return self.shards(&spec, shards);
        }
        self.products.check_settings(&spec, &self.place)?;
        let replication = match order.replicas {
            0 => None,
            n => Some(Replication::new(n, order.replication.parse().map_err(anyhow::Error::msg)?)?),
        };
        let part = replication.clone().map_or(Part::Alone, Part::Primary);
        let is_alone = order.replicas == 0 && order.behind.is_none();
        let name = if is_alone { "server" } else { "primary" };
        let primary_spec = ServerSpec { part, ..spec.clone() };
        let primary = self.products.start(&primary_spec, &self.place, self.clock)?;
        let mut members = vec![self.member((name, "primary"), &order.product, &*primary)?];
        let mut servers = Servers(vec![(name.to_owned(), primary)]);
        if let Some(replication) = replication {
            self.replicas(&spec, &replication, &mut servers, &mut members)?;
        }
        if let Some(router) = &order.behind {
            let router = self.products.router(router)?;
            let to = servers.0[0].1.reach().context("the server has no address")?.endpoint;
            let pooler = router.start(&RouterLaunch {
                options: &order.behind_options,
                to: &to,
                also: &[],
                open: None,
                clients: CLIENTS_MOST,
                cpus: &[],
                place: &self.place,
                clock: self.clock,
            })?;
            let name = router.spec().member;
            members.push(self.member((name, name), router.spec().name, &*pooler)?);
            servers.0.push((name.to_owned(), pooler));
        }
        Ok((servers, members))
    }

    /// Starts the nodes of a cluster, each after the one before it.
    fn cluster(
        &self,
        spec: &ServerSpec,
        nodes: u32,
    ) -> anyhow::Result<(Servers, Vec<RegisteredMember>)> {
        let cluster = Cluster::new(nodes, false)?;
        let (mut servers, mut members) = (Servers::default(), Vec::new());
        for number in 1..=nodes {
            let node = Node { number, cluster: cluster.clone(), joins_at: None };
            let name = node.name();
            let spec = ServerSpec { part: Part::Node(node), ..spec.clone() };
            if number == 1 {
                self.products.check_settings(&spec, &self.place)?;
            }
            let server = self.products.start(&spec, &self.place, self.clock)?;
            let found = self.member((&name, "node"), &spec.product, &*server);
            servers.0.push((name, server));
            members.push(found?);
        }
        Ok((servers, members))
    }

    /// Starts shards without tables, and the router in front of them, which knows where they are. It is the
    /// first of the members, because it is what a client connects to.
    fn shards(
        &self,
        spec: &ServerSpec,
        shards: u32,
    ) -> anyhow::Result<(Servers, Vec<RegisteredMember>)> {
        let memory = ByteCount(lab::environment(&self.order.root).usable_memory_bytes());
        let front = ServerSpec {
            settings: settings("--router-setting", &self.order.router_settings, memory)?,
            engine: None,
            part: Part::Router,
            ..spec.clone()
        };
        self.products.check_settings(spec, &self.place)?;
        self.products.check_settings(&front, &self.place)?;
        let (mut servers, mut members) = (Servers::default(), Vec::new());
        let mut start = |spec: &ServerSpec, name: &str, role: &str| {
            let server = self.products.start(spec, &self.place, self.clock)?;
            let found = self.member((name, role), &spec.product, &*server);
            let reach = server.reach();
            servers.0.push((name.to_owned(), server));
            members.push(found?);
            Ok(reach.context("the server has no address")?.endpoint)
        };
        let endpoints: Vec<Endpoint> = (1..=shards)
            .map(|number| start(spec, &dyno_database::shard_name(number), "shard"))
            .collect::<anyhow::Result<_>>()?;
        let router = start(&front, dyno_database::SHARD_ROUTER, "router")?;
        members.rotate_right(1);
        let product = self.products.get(&spec.product)?;
        dyno_database::sharding(product)?.introduce(&router, &endpoints)?;
        Ok((servers, members))
    }

    fn replicas(
        &self,
        spec: &ServerSpec,
        replication: &Replication,
        servers: &mut Servers,
        members: &mut Vec<RegisteredMember>,
    ) -> anyhow::Result<()> {
        let product = self.products.get(&spec.product)?;
        let mut all: Vec<Following> = Vec::new();
        let started = (1..=replication.replicas).try_for_each(|number| {
            let primary = (&*servers.0[0].1, replication, number);
            let start = |spec: &ServerSpec| self.products.start(spec, &self.place, self.clock);
            let replica = dyno_database::start_replica(product, spec, primary, self.clock, start)?;
            all.push(replica);
            anyhow::Ok(())
        });
        let finished = started.and_then(|()| {
            let replicas: Vec<&Following> = all.iter().collect();
            let primary = &*servers.0[0].1;
            Ok(dyno_database::finish(product, primary, &replicas, self.clock.as_ref())?)
        });
        for Following { name, server, .. } in all {
            members.push(self.member((&name, "replica"), &spec.product, &*server)?);
            servers.0.push((name, server));
        }
        finished
    }

    /// What is known of a server that is up. Its password, if it has one, is in a file of its own.
    fn member(
        &self,
        (name, role): (&str, &str),
        product: &str,
        server: &dyn Server,
    ) -> anyhow::Result<RegisteredMember> {
        let facts = server.facts()?;
        let Reach { endpoint, log } = server.reach().context("the server has no address")?;
        let url = match &endpoint.password {
            None => endpoint.to_string(),
            Some(password) => {
                let file = format!("{name}.password");
                let text = format!("{}\n", password.reveal());
                let file = self.register.keep_secret(&self.order.name, &file, &text)?;
                endpoint.url_with_password_file(&file)
            }
        };
        Ok(RegisteredMember {
            name: name.to_owned(),
            role: role.to_owned(),
            product: product.to_owned(),
            version: facts.version,
            url,
            client_port: server.client_port(),
            pid: server.processes().first().copied().unwrap_or_default(),
            data: server.data_files().map(|data| data.root).unwrap_or_default(),
            log,
            programs: facts.build.map(|build| build.programs).unwrap_or_default(),
        })
    }
}

/// Settings that an option gives in the form NAME=VALUE, shares of memory resolved.
pub(super) fn settings(
    option: &str,
    pairs: &[String],
    memory: ByteCount,
) -> anyhow::Result<BTreeMap<String, SettingValue>> {
    let setting = |pair: &String| {
        let Some((name, value)) = pair.split_once('=') else {
            bail!("{option}: write NAME=VALUE, not `{pair}`");
        };
        match dyno_study::parse_setting(&scalar(value).to_string()) {
            Ok(value) => Ok((name.to_owned(), value.resolve(memory))),
            Err(why) => bail!("{option} {name}: {why}"),
        }
    };
    pairs.iter().map(setting).collect()
}

/// Ends what dead holders and runs have left under a root. Returns what it ended, in words.
pub(super) fn clean_up(root: &std::path::Path, clock: &dyn Clock) -> anyhow::Result<Vec<String>> {
    Ok(Keeper::new(root)?.end_leftovers(clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_in_a_study() {
        let read = |pair: &str| settings("--setting", &[pair.to_owned()], ByteCount(1 << 30));
        let found = read("shared_buffers=25%").unwrap();
        assert_eq!(found["shared_buffers"], SettingValue::Bytes(ByteCount(1 << 28)));
        assert_eq!(read("a=1").unwrap()["a"], SettingValue::Integer(1));
        assert!(read("a").unwrap_err().to_string().contains("NAME=VALUE"));
        assert!(read("a=200%").is_err());
    }
}
