//! Joins members to the filled primary: replicas, nodes of its cluster, and a router.

use dyno_database::{
    Endpoint, Part, Replication, ServerSpec, SplitBy, replicating, wait_until_synced,
};
use dyno_host::{CopyError, CopyLayout};
use dyno_units::Nanoseconds;

use crate::datasets::Staging;
use crate::deployment::split_by;
use crate::site::Site;
use crate::trial::{bytes_of_all, log_bytes};
use crate::{Context, Instance, Result, Route, Source, Trial, TrialError, fail};

/// How long the nodes of a cluster may take to see each other once all have started.
const SYNC_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

pub(super) fn join(trial: &mut Trial<'_, '_>) -> Result {
    trial.join_members()?;
    trial.finish_replicas()?;
    trial.sync_nodes()?;
    trial.split_tables()?;
    for member in 0..trial.deployment.members.len() {
        if let Source::Route(route) = trial.deployment.members[member].source.clone() {
            trial.join_router(member, &route)?;
        }
    }
    Ok(())
}

impl Trial<'_, '_> {
    /// Copies the data that a primary is started on for each replica, unless the product does that by itself, and
    /// for each further shard.
    pub(super) fn copy_for_replicas(&mut self, data: &Staging, spec: &ServerSpec) -> Result {
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
                    return fail(message);
                }
            }
        }
        Ok(())
    }

    /// Whether members that follow or join this server start on copies of its data; otherwise the product copies them,
    /// or they start empty.
    pub(super) fn joins_on_copies(&self, spec: &ServerSpec) -> Result<bool> {
        let product = self.lab.products.get(&spec.product)?;
        Ok(match &spec.part {
            Part::Primary(_) => !replicating(product)?.copies_data(),
            // What copies data between nodes on one machine does not reach another one.
            Part::Node(_) => {
                self.deployment.hosts.is_some()
                    || product.clustering.is_some_and(|one| one.starts_on_copies())
            }
            _ => false,
        })
    }

    /// Starts the members that join the primary, one after the other: each on a copy of its data, or without any if the
    /// product copies them itself.
    fn join_members(&mut self) -> Result {
        let (lab, variant) = (self.lab, self.variant);
        for member in 0..self.deployment.members.len() {
            if self.deployment.members[member].instance.is_some() {
                continue;
            }
            let began = lab.clock.now();
            let mut source = self.deployment.members[member].source.clone();
            let (site, data) = (self.site(member)?, self.copies.pop());
            match (&mut source, &site, &data) {
                (Source::Join(spec), Site::There(..), _) => self.join_there(spec)?,
                (Source::Shard(_, number), _, None) => {
                    let name = dyno_database::shard_name(*number);
                    return fail(format!("there is no copy of the data for {name}"));
                }
                _ => {}
            }
            let path = data.as_ref().map(Staging::data);
            let start =
                |spec: &ServerSpec| site.start((lab, &variant.database), spec, path.as_deref());
            if let Some(instance) = self.deployment.start(lab, &source, start)? {
                self.ready(member, instance, began)?;
                self.check_abort()?;
            }
        }
        Ok(())
    }

    fn finish_replicas(&mut self) -> Result {
        let Some(&Replication { replicas: n, mode, .. }) =
            self.deployment.finish_replicas(self.lab)?
        else {
            return Ok(());
        };
        let replicas = if n == 1 { "1 replica streams" } else { &format!("{n} replicas stream") };
        self.note(format!(
            "{replicas}, {mode}: a row written on the primary was seen on each of them"
        ))
    }

    /// In order, each on a copy of the first node's data, or empty, to get them from a node.
    fn sync_nodes(&mut self) -> Result {
        match self.synced()?.len() {
            0 => Ok(()),
            n => self.note(format!("{n} nodes form the cluster, and all are synced")),
        }
    }

    /// The nodes of the cluster that are up, once they see each other.
    fn synced(&self) -> Result<Vec<(String, Endpoint)>> {
        let nodes = self.deployment.nodes();
        if let Some(clustering) = self.deployment.clustering(self.lab) {
            wait_until_synced(clustering, &nodes, SYNC_LIMIT, self.lab.clock.as_ref())
                .context("the cluster is not complete")?;
        }
        Ok(nodes)
    }

    /// Tells a node that joins on another host with a copy of the data what those that run have committed.
    fn join_there(&self, spec: &mut ServerSpec) -> Result {
        // They have committed the same as soon as the last one has joined.
        let running = self.synced()?;
        if let Some(clustering) = self.deployment.clustering(self.lab)
            && let (Part::Node(node), Some((_, first))) = (&mut spec.part, running.first())
        {
            node.joins_at = clustering.position(first)?;
        }
        Ok(())
    }

    fn split_tables(&mut self) -> Result {
        let lab = self.lab;
        let Some((sharding, router, shards)) = self.deployment.sharding(lab) else { return Ok(()) };
        let by = split_by(self.variant);
        sharding.introduce(&router, &shards)?;
        let split = dyno_database::split(sharding, &router, &shards, by)?;
        // What the data take from here on, so that it can be compared with what they take after the last step.
        let all = || self.deployment.holding();
        self.results.summary.data.bytes = bytes_of_all(all(), |server| server.data_bytes());
        self.results.summary.data.log_bytes = bytes_of_all(all(), log_bytes);
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

    fn join_router(&mut self, member: usize, route: &Route) -> Result {
        let lab = self.lab;
        let began = lab.clock.now();
        let site = self.site(member)?;
        let to = self.deployment.joinable()?.endpoint().cloned();
        let to = to.context("the primary has no address for a router")?;
        let nodes = self.deployment.nodes();
        let others = nodes.into_iter().skip(1).filter(|_| route.to_all);
        let also: Vec<Endpoint> = others.map(|(_, endpoint)| endpoint).collect();
        let (server, notes) = site.start_router(lab, route, (&to, &also))?;
        self.ready(member, Instance::Server(server), began)?;
        notes.into_iter().try_for_each(|note| self.note(note))
    }
}
