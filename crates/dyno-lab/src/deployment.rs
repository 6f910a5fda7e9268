//! The members of a trial, and where its workload connects. Most deployments have one member; a study may
//! add replicas and a router. A simulated server keeps its rows in a second member. A trial without a server
//! has a deployment without members.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dyno_database::{
    AttachOptions, Cluster, Clustering, DeployError, Endpoint, Following, Node, Part, Place,
    Replicating, Replication, Server, ServerSpec, Sharding, SplitBy,
};
use dyno_host::{Probe, ProcessGroup};
use dyno_load::simulation::SimulatedServer;
use dyno_record::{Entry, MemberFacts, MemberRole};
use dyno_study::{Database, Design, LoadLevel, Product, Variant};
use dyno_units::{ByteCount, Reading, SettingValue};
use dyno_workload::Connector;

use crate::error::{Result, TrialError, fail};
use crate::hosts::{MadeVolume, ServerHosts, There, WatchedHost};
use crate::lab::{Basis, Lab};
use crate::route::Route;
use crate::volume::limits;
use crate::{machine, simulated};

mod further;
mod instance;
mod kept;
mod limited;
mod recorded;

pub(crate) use further::{Promoted, attach, endpoint};
pub(crate) use instance::{Instance, LoadOrder};
pub use kept::{Kept, KeptMember};
pub(crate) use limited::unknown as unknown_members;
pub(crate) use recorded::recorded;

#[derive(Default)]
pub(crate) struct Deployment {
    pub(crate) members: Vec<Member>,
    /// The agents that have its servers; none if these are on the machine that runs the study.
    pub(crate) hosts: Option<Arc<ServerHosts>>,
    pub(crate) promoted: Arc<OnceLock<Promoted>>,
}

pub(crate) struct Member {
    /// For the record: name, role, entries; the place once provided, the server's facts once up.
    pub(crate) facts: MemberFacts,
    /// Index among the variant's hosts; none on the machine that runs the study.
    pub(crate) host: Option<usize>,
    pub(crate) source: Source,
    pub(crate) place: Option<Place>,
    pub(crate) volumes: Vec<MadeVolume>,
    pub(crate) instance: Option<Instance>,
}

/// Replicas and shards have numbers, from 1. A shard starts on a copy of the primary's data, and keeps its share of them;
/// the other server, for the job of the study, starts empty.
#[derive(Clone)]
pub(crate) enum Source {
    Start(ServerSpec),
    Follow(ServerSpec, u32),
    Join(ServerSpec),
    Shard(ServerSpec, u32),
    Front(ServerSpec),
    Route(Route),
    Other(ServerSpec),
    Attach { endpoint: Box<Endpoint>, options: AttachOptions, version: Option<String> },
    Simulate(Box<SimulatedServer>),
}

const OTHER_DATABASE: &str = "other-database";

impl Member {
    fn new(name: &str, role: MemberRole, entries: &[Entry], source: Source) -> Member {
        let (name, entries) = (name.to_owned(), entries.to_vec());
        Member {
            facts: MemberFacts { name, role, entries, ..MemberFacts::default() },
            host: None,
            source,
            place: None,
            volumes: Vec::new(),
            instance: None,
        }
    }

    /// Its server, if it is up and not simulated.
    pub(crate) fn server(&self) -> Option<&dyn Server> {
        self.instance.as_ref()?.server()
    }

    pub(crate) fn serves(&self, entry: Entry) -> bool {
        self.facts.entries.contains(&entry)
    }
}

/// Of a member to which the clients of a load connect.
const LOADED: [Entry; 2] = [Entry::Write, Entry::Read];

impl Deployment {
    pub(crate) fn of(basis: Basis<'_>, variant: &Variant) -> Result<Deployment> {
        let mut members = match machine::is_chosen(basis.products, variant) {
            true => Vec::new(),
            false => Deployment::measured(basis, variant)?,
        };
        if let Some(database) = &variant.other_database {
            let source = Source::Other(spec(basis, database)?);
            members.push(Member::new(OTHER_DATABASE, MemberRole::OtherDatabase, &[], source));
        }
        Ok(Deployment { members, ..Deployment::default() })
    }

    fn measured(basis: Basis<'_>, variant: &Variant) -> Result<Vec<Member>> {
        let member = Member::new;
        let (source, rows) = source(basis, variant)?;
        let route = route(basis, variant)?;
        let (shards, front) = (shards(variant, &source), front(basis, variant, &source));
        let mut entries = match &source {
            // Its rows, if it has any, are in a member of their own.
            Source::Simulate(_) => LOADED.to_vec(),
            _ if route.is_some() || front.is_some() => vec![Entry::Admin],
            _ => vec![Entry::Write, Entry::Read, Entry::Admin],
        };
        let store = rows
            .map(|spec| member("store", MemberRole::Store, &[Entry::Admin], Source::Start(spec)));
        let replicas = replicas(basis, variant, &source);
        let nodes = nodes(&source);
        let hosts = hosts(basis.design, variant);
        let name = match (part_of(&source), &route) {
            (Part::Node(node), _) => node.name(),
            (Part::Alone, None) if front.is_some() => dyno_database::shard_name(1),
            (Part::Alone, None) => match hosts.first() {
                Some(host) => host.clone(),
                None => "server".to_owned(),
            },
            _ => "primary".to_owned(),
        };
        let reads = &variant.database.reads_on;
        // The workload only reads: all that its clients send.
        let takes_reads: &[Entry] = if variant.database.reads_elsewhere() { &LOADED } else { &[] };
        if !takes_reads.is_empty() && reads == "replicas" {
            entries.retain(|entry| *entry == Entry::Admin);
        }
        let further = further::sources(variant, &source)?;
        let independent = further::independent(variant, &source, &hosts);
        let primary = member(&name, MemberRole::Primary, &entries, source);
        let mut members: Vec<Member> = [primary].into_iter().chain(store).collect();
        for (number, spec) in (1..).zip(replicas) {
            let name = dyno_database::replica_name(number);
            let source = Source::Follow(spec, number);
            members.push(member(&name, MemberRole::Replica, takes_reads, source));
        }
        let loads_all = variant.database.cluster.as_ref().is_some_and(|one| one.load_on_all);
        let also: &[Entry] = if loads_all && route.is_none() { &LOADED } else { &[] };
        for (number, source) in (2..).zip(further) {
            members.push(member(&format!("server-{number}"), MemberRole::Node, &LOADED, source));
        }
        for (name, source) in independent {
            members.push(member(name, MemberRole::Node, &LOADED, source));
        }
        for (node, spec) in nodes {
            members.push(member(&node.name(), MemberRole::Node, also, Source::Join(spec)));
        }
        for (number, spec) in (2..).zip(shards) {
            let name = dyno_database::shard_name(number);
            members.push(member(&name, MemberRole::Shard, &[], Source::Shard(spec, number)));
        }
        if let Some(spec) = front {
            let all = [Entry::Write, Entry::Read, Entry::Admin];
            let name = dyno_database::SHARD_ROUTER;
            members.push(member(name, MemberRole::Router, &all, Source::Front(spec)));
        }
        if let Some((name, route)) = route {
            members.push(member(name, MemberRole::Router, &LOADED, Source::Route(route)));
        }
        limited::apply(&mut members, &variant.database, basis.memory)?;
        // One for each agent, in the order of both; a router comes last.
        if !hosts.is_empty() {
            members.iter_mut().zip(0..).for_each(|(member, idx)| member.host = Some(idx));
        }
        Ok(members)
    }

    pub(crate) fn other_database(&self) -> Option<&dyn Server> {
        let is_other = |member: &&Member| matches!(member.source, Source::Other(_));
        self.members.iter().find(is_other)?.server()
    }

    /// The host of a member; none on the machine that runs the study.
    pub(crate) fn there(&self, member: &Member) -> Option<There> {
        Some(self.hosts.as_ref()?.there(member.host?))
    }

    /// The member that a study names: the primary if it names none.
    pub(crate) fn wanted(&self, name: Option<&str>) -> Option<&Member> {
        self.members.iter().find(|member| match name {
            None | Some("primary") => member.facts.role == MemberRole::Primary,
            Some(name) => member.facts.name == name,
        })
    }

    pub(crate) fn replication(&self) -> Option<(&ServerSpec, &Replication)> {
        self.members.iter().find_map(|member| {
            let Source::Start(spec) = &member.source else { return None };
            let Part::Primary(replication) = &spec.part else { return None };
            Some((spec, replication))
        })
    }

    pub(crate) fn replicas(&self) -> Vec<&Following> {
        self.members.iter().filter_map(|member| member.instance.as_ref()?.following()).collect()
    }

    pub(crate) fn replicating<'l>(&self, lab: &'l Lab) -> Option<&'l dyn Replicating> {
        self.members.iter().find_map(|member| match &member.source {
            Source::Follow(spec, _) => lab.products.find(&spec.product)?.replicating,
            _ => None,
        })
    }

    pub(crate) fn clustering<'l>(&self, lab: &'l Lab) -> Option<&'l dyn Clustering> {
        self.members.iter().find_map(|member| match &member.source {
            Source::Join(spec) => lab.products.find(&spec.product)?.clustering,
            _ => None,
        })
    }

    /// The sharding, the router's address and the shards', once all are up; none without shards.
    pub(crate) fn sharding<'l>(
        &self,
        lab: &'l Lab,
    ) -> Option<(&'l dyn Sharding, Endpoint, Vec<Endpoint>)> {
        let reach = |member: &Member| member.server()?.endpoint().cloned();
        let is_front = |member: &&Member| matches!(member.source, Source::Front(_));
        let router = self.members.iter().find(is_front)?;
        let Source::Front(spec) = &router.source else { return None };
        let sharding = lab.products.find(&spec.product)?.sharding?;
        let shards = self.holders().map(reach).collect::<Option<Vec<Endpoint>>>()?;
        Some((sharding, reach(router)?, shards))
    }

    /// The members that hold the data or, of shards, a part of them.
    fn holders(&self) -> impl Iterator<Item = &Member> {
        let is_holder =
            |member: &&Member| matches!(member.facts.role, MemberRole::Primary | MemberRole::Shard);
        self.members.iter().filter(is_holder)
    }

    pub(crate) fn holding(&self) -> impl Iterator<Item = &dyn Server> {
        self.holders().filter_map(Member::server)
    }

    pub(crate) fn nodes(&self) -> Vec<(String, Endpoint)> {
        let is_node = |member: &&Member| {
            matches!(member.source, Source::Join(_))
                || matches!(part_of(&member.source), Part::Node(_))
        };
        let node = |member: &Member| {
            let endpoint = member.server()?.endpoint()?.clone();
            Some((member.facts.name.clone(), endpoint))
        };
        self.members.iter().filter(is_node).filter_map(node).collect()
    }

    /// To all that take load, in turn, or to the current writer; none if one member takes all.
    pub(crate) fn spread(&self, lab: &Lab) -> Option<Connector> {
        if let Some(writer) = self.writer(lab) {
            return Some(writer);
        }
        let all = self.members.iter().filter(|member| member.serves(Entry::Write));
        let all: Vec<Connector> =
            all.filter_map(|member| Some(member.server()?.connector())).collect();
        if let ([primary], false) = (&all[..], self.replicas().is_empty()) {
            return Some(further::or_promoted(primary, &self.promoted));
        }
        (all.len() > 1).then(|| {
            let next = AtomicUsize::new(0);
            Arc::new(move || all[next.fetch_add(1, Ordering::Relaxed) % all.len()]()) as Connector
        })
    }

    /// Connects to the cluster's node that takes writes; none if all do, or clients use another member.
    fn writer(&self, lab: &Lab) -> Option<Connector> {
        let question = self.clustering(lab)?.takes_writes()?;
        let mut members = self.members.iter();
        let loaded = members.find(|member| member.serves(Entry::Write))?;
        let Part::Node(node) = part_of(&loaded.source) else { return None };
        if node.cluster.writes_on_all {
            return None;
        }
        let is_node =
            |member: &&Member| matches!(member.facts.role, MemberRole::Primary | MemberRole::Node);
        let nodes = self.members.iter().filter(is_node);
        let nodes = nodes.filter_map(|one| Some(one.server()?.connector()));
        Some(dyno_database::to_writer(nodes.collect(), question))
    }

    /// Processes, a group per member, and probes of members other than the measured server. A replica's
    /// probe is its lag; its work shows in its processes.
    pub(crate) fn watched_beside(&self, lab: &Lab) -> (Vec<ProcessGroup>, Vec<Box<dyn Probe>>) {
        let (mut groups, mut probes): (Vec<ProcessGroup>, Vec<Box<dyn Probe>>) = Default::default();
        let beside = |member: &&Member| {
            !matches!(member.facts.role, MemberRole::Primary | MemberRole::Store)
        };
        for member in self.members.iter().filter(beside) {
            let Some(instance) = &member.instance else { continue };
            let Some(server) = instance.server() else { continue };
            let name = member.facts.name.clone();
            // Those on hosts are seen there.
            if member.host.is_none() {
                let pids = server.watched_processes();
                groups.push(ProcessGroup { name: name.clone(), pids, has_descendants: true });
            }
            match (&member.source, instance.following()) {
                (Source::Follow(..), Some(following)) => {
                    let replicating = self.replicating(lab);
                    let meter = replicating.and_then(|one| following.lag_meter(one));
                    probes.extend(meter.map(|meter| dyno_database::lag_probe(&name, meter)));
                }
                // They have probes with their names.
                (Source::Join(_) | Source::Shard(..) | Source::Front(_), _) => {}
                // Their readings would have the names of those of the primary.
                (Source::Other(_) | Source::Attach { .. } | Source::Start(_), _) => {}
                _ => probes.extend(server.probes(None)),
            }
        }
        if let Some(clustering) = self.clustering(lab) {
            let nodes = self.nodes();
            probes.extend(nodes.iter().map(|(name, endpoint)| clustering.probe(name, endpoint)));
        }
        if let Some((sharding, router, shards)) = self.sharding(lab) {
            let named = (1..).map(dyno_database::shard_name).zip(&shards);
            let named = named.chain([(dyno_database::SHARD_ROUTER.to_owned(), &router)]);
            probes.extend(named.map(|(name, endpoint)| sharding.probe(&name, endpoint)));
        }
        (groups, probes)
    }

    /// Without the router's probes that are `off`; none if all are on this machine.
    pub(crate) fn host_probe(&self, lab: &Lab, off: &[&str]) -> Option<Box<dyn Probe>> {
        let hosts = self.hosts.as_ref()?;
        let watched = self.members.iter().filter_map(|member| {
            // What independent servers use is added up; of others, the primary is what is measured.
            let is_measured = matches!(member.source, Source::Start(_));
            let of_router = match &member.source {
                Source::Route(route) => lab.products.router(&route.product).ok()?.readings(),
                _ => &[],
            };
            let is_on = |reading: &&Reading| {
                !off.iter().any(|probe| reading.id.split('.').next() == Some(*probe))
            };
            let of_router = of_router.iter().filter(is_on).cloned().collect();
            let (idx, member) = (member.host?, member.facts.name.clone());
            let host = hosts.name(idx).to_owned();
            Some(WatchedHost { idx, host, member, is_measured, of_router })
        });
        Some(hosts.probe(watched.collect()))
    }

    pub(crate) fn entry(&self, entry: Entry) -> Option<&Instance> {
        let member = self.members.iter().find(|member| member.serves(entry))?;
        member.instance.as_ref()
    }

    /// The primary, if it is up and not simulated. Clients may connect to a router instead.
    pub(crate) fn server(&self) -> Option<&dyn Server> {
        self.wanted(None)?.server()
    }

    /// The server that sees all rows, if any: of shards the router once it is up, and before that the first
    /// shard; of replicas the promoted one.
    pub(crate) fn tables(&self) -> Option<&dyn Server> {
        if let Some(promoted) = self.promoted.get() {
            return self.named(&promoted.name);
        }
        let mut all = self.members.iter().rev().filter(|member| member.serves(Entry::Admin));
        all.find_map(Member::server)
    }

    /// All servers that are up, in real time or with the rows of a simulated one.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &dyn Server> {
        self.members.iter().filter_map(Member::server)
    }

    pub(crate) fn data_disk(&self) -> Option<String> {
        let mut volumes = self.members.iter().filter_map(|member| member.volumes.first());
        volumes.find_map(|volume| volume.disk_name())
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.entry(Entry::Write).is_some_and(|instance| instance.server().is_none())
    }

    pub(crate) fn down(&mut self) -> Option<String> {
        let has_shards =
            self.members.iter().any(|member| matches!(member.source, Source::Front(_)));
        self.members.iter_mut().find_map(|member| {
            let down = member.instance.as_mut()?.down()?;
            let MemberFacts { name, role, .. } = &member.facts;
            let is_named = matches!(role, MemberRole::Node | MemberRole::OtherDatabase);
            Some(if has_shards || is_named { format!("{name}: {down}") } else { down })
        })
    }

    /// The last lines of the log of the first member that is down, or else of the first one that has a log.
    pub(crate) fn log_tail(&mut self, lines: usize) -> Vec<String> {
        let is_down = |member: &mut Member| {
            member.instance.as_mut().is_some_and(|instance| instance.down().is_some())
        };
        let down = self.members.iter_mut().position(is_down);
        let members = self.members.iter().skip(down.unwrap_or_default());
        let servers = members.filter_map(Member::server);
        let mut logs = servers.map(|server| server.log_tail(lines));
        logs.find(|log| !log.is_empty()).unwrap_or_default()
    }

    /// The servers by URL, without passwords, from which tables of Dyno's are to be dropped.
    pub(crate) fn to_drop_from(&self) -> Vec<String> {
        let to_drop = |member: &Member| match &member.source {
            Source::Attach { endpoint, options, .. } => {
                let drops = !options.keep_tables && !options.makes_nothing;
                (drops && member.instance.is_some()).then(|| endpoint.to_string())
            }
            _ => None,
        };
        self.members.iter().filter_map(to_drop).collect()
    }

    /// Stops all members, the last first, then releases their places; fails with the first error.
    pub(crate) fn tear_down(&mut self) -> Result<(), DeployError> {
        let instances = self.members.iter_mut().rev().filter_map(|member| member.instance.take());
        let stopped = instances.map(|instance| instance.stop()).fold(Ok(()), Result::and);
        let places = self.members.iter().rev().filter_map(|member| member.place.as_ref());
        let released = places.map(|place| place.release().map_err(DeployError::from));
        let result = released.fold(stopped, Result::and);
        // Their agents end, and with them what they have not removed yet.
        self.members.iter_mut().for_each(|member| member.volumes.clear());
        self.hosts = None;
        result
    }
}

fn replicas(basis: Basis<'_>, variant: &Variant, primary: &Source) -> Vec<ServerSpec> {
    let (Source::Start(spec), Part::Primary(replication)) = (primary, part_of(primary)) else {
        return Vec::new();
    };
    let own = variant.database.replica_settings.iter();
    let own = own.map(|(name, value)| (name.clone(), value.resolve(basis.memory)));
    let settings = spec.settings.clone().into_iter().chain(own).collect();
    let spec = ServerSpec { settings, part: Part::Alone, ..spec.clone() };
    vec![spec; replication.replicas as usize]
}

/// Hosts of the variant's servers, in the order of members, without a router; empty on this machine.
fn hosts(design: &Design, variant: &Variant) -> Vec<String> {
    let mut pools = design.server_hosts.iter();
    let pool = pools.find(|pool| Some(&pool.name) == variant.database.on.as_ref());
    pool.map_or(Vec::new(), |pool| {
        pool.names.iter().take(variant.database.servers_on(pool)).cloned().collect()
    })
}

fn shards(variant: &Variant, first: &Source) -> Vec<ServerSpec> {
    let Source::Start(spec) = first else { return Vec::new() };
    vec![spec.clone(); variant.database.shards.saturating_sub(1) as usize]
}

pub(crate) fn split_by(variant: &Variant) -> SplitBy {
    if variant.database.shard_by == SplitBy::WORDS[1] { SplitBy::Key } else { SplitBy::Table }
}

pub(crate) fn front(basis: Basis<'_>, variant: &Variant, first: &Source) -> Option<ServerSpec> {
    let Source::Start(spec) = first else { return None };
    if variant.database.shards == 0 {
        return None;
    }
    let limit = basis.products.spec(&spec.product)?.connection_limit.as_ref();
    let is_limit = |name: &String| limit.is_some_and(|limit| limit.setting == *name);
    let shared = spec.settings.clone().into_iter().filter(|(name, _)| is_limit(name));
    let own = variant.database.router_settings.iter();
    let own = own.map(|(name, value)| (name.clone(), value.resolve(basis.memory)));
    let settings = shared.chain(own).collect();
    Some(ServerSpec { settings, engine: None, part: Part::Router, ..spec.clone() })
}

fn nodes(primary: &Source) -> Vec<(Node, ServerSpec)> {
    let (Source::Start(spec), Part::Node(first)) = (primary, part_of(primary)) else {
        return Vec::new();
    };
    let others = 2..=first.cluster.nodes;
    let node = |number| {
        let node = Node { number, cluster: first.cluster.clone(), joins_at: None };
        (node.clone(), ServerSpec { part: Part::Node(node), ..spec.clone() })
    };
    others.map(node).collect()
}

pub(crate) fn part_of(source: &Source) -> Part {
    if let Source::Start(spec) = source { spec.part.clone() } else { Part::Alone }
}

fn route(basis: Basis<'_>, variant: &Variant) -> Result<Option<(&'static str, Route)>> {
    let Some(behind) = &variant.database.behind else { return Ok(None) };
    let router = basis.products.router(&behind.product)?;
    let route = Route {
        product: behind.product.clone(),
        options: behind.options.clone(),
        to_all: router.spec().shares_load
            && variant.database.cluster.as_ref().is_some_and(|one| one.load_on_all),
        clients: most_clients(basis.design),
        cpus: basis.design.server_cpus.clone(),
    };
    Ok(Some((router.spec().member, route)))
}

fn most_clients(design: &Design) -> usize {
    design.loads.iter().map(LoadLevel::clients).max().unwrap_or(1)
}

pub(crate) fn resolved(database: &Database, memory: ByteCount) -> BTreeMap<String, SettingValue> {
    let settings = database.settings.iter();
    settings.map(|(name, value)| (name.clone(), value.resolve(memory))).collect()
}

/// How the variant's server comes up; of a simulated one, also the server of its rows, if it has any.
pub(crate) fn source(basis: Basis<'_>, variant: &Variant) -> Result<(Source, Option<ServerSpec>)> {
    let database = &variant.database;
    let name = match &database.product {
        Product::Url(url) => {
            let endpoint = endpoint(variant, url)?;
            let options = AttachOptions {
                allow_existing_tables: database.allow_existing_tables,
                keep_tables: database.keep_tables,
                makes_nothing: false,
            };
            let (endpoint, version) = (Box::new(endpoint), database.version.clone());
            return Ok((Source::Attach { endpoint, options, version }, None));
        }
        Product::Private(name) => name,
    };
    if basis.products.get(name)?.spec.is_simulated {
        let (server, rows) = simulated::server(&resolved(database, basis.memory))?;
        return Ok((Source::Simulate(Box::new(server)), rows));
    }
    let spec = spec(basis, database)?;
    Ok((Source::Start(spec), None))
}

pub(crate) fn spec(basis: Basis<'_>, database: &Database) -> Result<ServerSpec> {
    let Product::Private(name) = &database.product else {
        return fail(format!("the database {} is already running", database.name));
    };
    let product = &basis.products.get(name)?.spec;
    let mut settings = resolved(database, basis.memory);
    // The study's own value stands.
    let most_clients = most_clients(basis.design);
    if let Some(limit) = &product.connection_limit
        && most_clients > limit.default_clients
    {
        let connections = SettingValue::Integer((most_clients + limit.spare) as i64);
        settings.entry(limit.setting.clone()).or_insert(connections);
    }
    let programs = database.programs.as_ref().map(|folder| match database.on {
        // A server's current folder is its own.
        None => std::path::absolute(folder).unwrap_or_else(|_| PathBuf::from(folder)),
        Some(_) => PathBuf::from(folder),
    });
    Ok(ServerSpec {
        product: name.clone(),
        version: database.version.clone(),
        engine: database.engine.clone(),
        programs,
        from: database.from.clone(),
        image: database.image.clone(),
        settings,
        cpus: basis.design.server_cpus.clone(),
        limits: limits(database),
        admits_client: false,
        open: None,
        part: match (database.replicas, &database.cluster) {
            (_, Some(cluster)) => {
                dyno_database::clustering(basis.products.get(name)?, &cluster.kind)?;
                let made = Cluster::new(cluster.nodes, cluster.load_on_all)?;
                Part::Node(Node { number: 1, cluster: made, joins_at: None })
            }
            (0, None) => Part::Alone,
            (replicas, None) => {
                let mode =
                    database.replication.parse().map_err(|word: String| TrialError::new(word))?;
                Part::Primary(Replication::new(replicas, mode)?)
            }
        },
    })
}

pub(crate) fn is_observed(variant: &Variant) -> bool {
    variant.workload.workload == dyno_workload::none::NAME
}
