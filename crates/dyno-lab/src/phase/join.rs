//! Joins further members to the primary, which has its rows: replicas, nodes of its cluster, and a router in
//! front of it.

use dyno_database::{
    Clustering, Endpoint, Part, Replication, ServerSpec, SplitBy, finish, replicating,
    start_replica, wait_until_synced,
};
use dyno_host::{CopyError, CopyLayout};
use dyno_units::Nanoseconds;

use super::Phase;
use crate::datasets::Staging;
use crate::deployment::{Route, Source, part_of, split_by};
use crate::site::Site;
use crate::trial::{Trial, TrialError, log_bytes};

/// How long the nodes of a cluster may take to see each other once all have started.
const SYNC_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

/// Brings up the members that follow the primary or stand in front of it.
pub(super) struct Join;

impl Phase for Join {
    fn name(&self) -> String {
        "join".to_owned()
    }

    fn run(&self, trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
        trial.join_replicas()?;
        trial.join_nodes()?;
        trial.join_shards()?;
        for member in 0..trial.deployment.members.len() {
            if let Source::Route(route) = trial.deployment.members[member].source.clone() {
                trial.join_router(member, &route)?;
            }
        }
        Ok(())
    }
}

impl Trial<'_, '_> {
    fn replication(&self) -> Option<(ServerSpec, Replication)> {
        let mut sources = self.deployment.members.iter().map(|member| &member.source);
        let source = sources.find(|source| matches!(part_of(source), Part::Primary(_)))?;
        match (source, part_of(source)) {
            (Source::Start(spec), Part::Primary(replication)) => Some((spec.clone(), replication)),
            _ => None,
        }
    }

    /// Copies the data that a primary is started on for each replica, unless the product does that by itself, and
    /// for each further shard.
    pub(super) fn copy_for_replicas(
        &mut self,
        data: &Staging,
        spec: &ServerSpec,
    ) -> Result<(), TrialError> {
        let lab = self.lab;
        let copies = match &spec.part {
            Part::Primary(_) | Part::Node(_) if !self.joins_on_copies(spec)? => 0,
            Part::Primary(replication) => replication.replicas,
            Part::Node(node) => node.cluster.nodes.saturating_sub(1),
            _ => self.variant.database.shards.saturating_sub(1),
        };
        for _ in 0..copies {
            let copy = Staging::make(&lab.keeper, "data")?;
            let (owner, is_stopped) = (lab.keeper.run_as(), || lab.abort.is_raised());
            let layout = self.place(0).map_or(CopyLayout::AsOriginal, |place| place.copies());
            match dyno_host::copy_folder(&data.data(), &copy.data(), owner, layout, &is_stopped) {
                Ok(()) => self.copies.push(copy),
                Err(CopyError::Stopped) => return Err(TrialError::Abandoned),
                Err(CopyError::Failed(why)) => {
                    let message = format!("the data could not be copied for another member: {why}");
                    return Err(TrialError::new(message));
                }
            }
        }
        Ok(())
    }

    /// Whether the members that follow a server with this specification, or join it, are started on copies of its data;
    /// otherwise the product copies them itself, or they begin without any.
    pub(super) fn joins_on_copies(&self, spec: &ServerSpec) -> Result<bool, TrialError> {
        let product = self.lab.products.get(&spec.product)?;
        Ok(match &spec.part {
            Part::Primary(_) => !replicating(product)?.copies_data(),
            // What copies data between nodes on one machine does not reach another one.
            Part::Node(_) => {
                self.deployment.hosts.is_some()
                    || product.clustering().is_some_and(|one| one.starts_on_copies())
            }
            _ => false,
        })
    }

    fn join_replicas(&mut self) -> Result<(), TrialError> {
        let Some((primary, replication)) = self.replication() else { return Ok(()) };
        let lab = self.lab;
        let product = lab.products.get(&primary.product)?;
        for member in 0..self.deployment.members.len() {
            let Source::Follow(spec, number) = self.deployment.members[member].source.clone()
            else {
                continue;
            };
            let began = lab.clock.now();
            let (site, database) = (self.site(member)?, &self.variant.database);
            let data = self.copies.pop();
            let path = data.as_ref().map(Staging::data);
            let primary = (self.primary()?, &replication, number);
            let start = |spec: &ServerSpec| site.start((lab, database), spec, path.as_deref());
            let following = start_replica(product, &spec, primary, &lab.clock, start)?;
            self.ready(member, Box::new(following), began)?;
            self.check_abort()?;
        }
        finish(product, self.primary()?, &self.deployment.replicas(), lab.clock.as_ref())?;
        let (n, mode) = (replication.replicas, replication.mode);
        let replicas = if n == 1 { "1 replica streams" } else { &format!("{n} replicas stream") };
        self.note(format!(
            "{replicas}, {mode}: a row written on the primary was seen on each of them"
        ))
    }

    /// Starts the other nodes of a cluster, one after the other, each on a copy of the first one's data, or
    /// without any: then it gets them from one that is there.
    fn join_nodes(&mut self) -> Result<(), TrialError> {
        let lab = self.lab;
        let Some(clustering) = self.deployment.clustering(lab) else { return Ok(()) };
        for member in 0..self.deployment.members.len() {
            let Source::Join(spec) = self.deployment.members[member].source.clone() else {
                continue;
            };
            let began = lab.clock.now();
            let site = self.site(member)?;
            let spec = match site {
                Site::There(..) => self.joining(spec, clustering)?,
                Site::Here(_) => spec,
            };
            let data = self.copies.pop();
            let path = data.as_ref().map(Staging::data);
            let server = site.start((lab, &self.variant.database), &spec, path.as_deref())?;
            self.ready(member, Box::new(server), began)?;
            self.check_abort()?;
        }
        let nodes = self.deployment.nodes();
        wait_until_synced(clustering, &nodes, SYNC_LIMIT, lab.clock.as_ref())
            .map_err(|why| TrialError::new(format!("the cluster is not complete: {why}")))?;
        self.note(format!("{} nodes form the cluster, and all are synced", nodes.len()))
    }

    /// The specification of a node that joins with a copy of the data: it knows what those that run have committed.
    fn joining(
        &self,
        mut spec: ServerSpec,
        clustering: &dyn Clustering,
    ) -> Result<ServerSpec, TrialError> {
        let running = self.deployment.nodes();
        // They have committed the same as soon as the last one has joined.
        wait_until_synced(clustering, &running, SYNC_LIMIT, self.lab.clock.as_ref())
            .map_err(|why| TrialError::new(format!("the cluster is not complete: {why}")))?;
        if let (Part::Node(node), Some((_, first))) = (&mut spec.part, running.first()) {
            node.joins_at = clustering.position(first)?;
        }
        Ok(spec)
    }

    /// Starts the other shards, each on a copy of all tables, and the router; then each shard keeps its share.
    fn join_shards(&mut self) -> Result<(), TrialError> {
        let lab = self.lab;
        for member in 0..self.deployment.members.len() {
            let began = lab.clock.now();
            let server = match self.deployment.members[member].source.clone() {
                Source::Shard(spec, number) => {
                    let name = dyno_database::shard_name(number);
                    let data = self.copies.pop();
                    let data = data.ok_or_else(|| {
                        TrialError::new(format!("there is no copy of the data for {name}"))
                    })?;
                    lab.products.start_on(&data.data(), &spec, &self.place(member)?, &lab.clock)?
                }
                Source::Front(spec) => {
                    lab.products.start(&spec, &self.place(member)?, &lab.clock)?
                }
                _ => continue,
            };
            self.ready(member, Box::new(server), began)?;
            self.check_abort()?;
        }
        let Some((sharding, router, shards)) = self.deployment.sharding(lab) else { return Ok(()) };
        let by = split_by(self.variant);
        sharding.introduce(&router, &shards)?;
        let split = dyno_database::split(sharding, &router, &shards, by)?;
        // What the data take from here on, so that it can be compared with what they take after the last step.
        let all = || self.deployment.holding();
        self.results.data.bytes = all().map(|server| server.data_bytes()).sum();
        self.results.data.log_bytes = all().map(log_bytes).sum();
        let each = (1..).zip(&split.each);
        let each = |unit: &str| -> Vec<String> {
            let part = |(number, n): (u32, &u64)| {
                format!("{n}{unit} on {}", dyno_database::shard_name(number))
            };
            each.clone().map(part).collect()
        };
        self.note(match by {
            SplitBy::Table => format!(
                "{} tables were split among the shards, whole and in turn: {}",
                split.tables,
                each("").join(", ")
            ),
            SplitBy::Key => format!(
                "the rows of {} tables were split among the shards by key: {}",
                split.tables,
                each(" rows").join(", ")
            ),
        })
    }

    fn join_router(&mut self, member: usize, route: &Route) -> Result<(), TrialError> {
        let lab = self.lab;
        let began = lab.clock.now();
        let site = self.site(member)?;
        let to = self.primary()?.endpoint().cloned();
        let to = to.ok_or_else(|| TrialError::new("the primary has no address for a router"))?;
        let nodes = self.deployment.nodes();
        let others = nodes.into_iter().skip(1).filter(|_| route.to_all);
        let also: Vec<Endpoint> = others.map(|(_, endpoint)| endpoint).collect();
        let (server, notes) = site.start_router(lab, route, (&to, &also))?;
        self.ready(member, Box::new(server), began)?;
        notes.into_iter().try_for_each(|note| self.note(note))
    }

    fn primary(&self) -> Result<&dyn dyno_database::Server, TrialError> {
        let server = self.deployment.server();
        server.ok_or_else(|| TrialError::new("there is no server that others could join"))
    }
}
