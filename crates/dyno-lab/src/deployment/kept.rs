//! How members that Dyno starts come up; and a deployment without a trial, whose members are started empty and stay until
//! they are stopped.

use dyno_database::{DeployError, Replication, Server, ServerSpec, finish, start_replica};
use dyno_record::MemberRole;
use dyno_study::{Design, Variant};

use super::{Deployment, Instance, Source};
use crate::lab::Lab;
use crate::route::start_router;

impl Deployment {
    /// Starts what a source says with `start`; none if it is a router, or not a server of Dyno's own. A replica follows
    /// the primary then.
    pub(crate) fn start<E: From<DeployError>>(
        &self,
        lab: &Lab,
        source: &Source,
        start: impl FnOnce(&ServerSpec) -> Result<Box<dyn Server>, E>,
    ) -> Result<Option<Instance>, E> {
        Ok(Some(match source {
            Source::Follow(spec, number) => {
                let product = lab.products.get(&spec.product)?;
                let (_, replication) = self.replication().ok_or_else(no_primary)?;
                let primary = (self.joinable()?, replication, *number);
                let replica = start_replica(product, spec, primary, &lab.clock, start)?;
                Instance::Replica(Box::new(replica))
            }
            Source::Start(spec)
            | Source::Join(spec)
            | Source::Shard(spec, _)
            | Source::Front(spec) => Instance::Server(start(spec)?),
            Source::Route(_) | Source::Other(_) | Source::Attach { .. } | Source::Simulate(_) => {
                return Ok(None);
            }
        }))
    }

    pub(crate) fn joinable(&self) -> Result<&dyn Server, DeployError> {
        self.server().ok_or_else(no_primary)
    }

    /// Sees that rows of the primary reach its replicas; returns how they follow it, if there are any.
    pub(crate) fn finish_replicas(&self, lab: &Lab) -> Result<Option<&Replication>, DeployError> {
        let Some((spec, replication)) = self.replication() else { return Ok(None) };
        let product = lab.products.get(&spec.product)?;
        finish(product, self.joinable()?, &self.replicas(), lab.clock.as_ref())?;
        Ok(Some(replication))
    }
}

fn no_primary() -> DeployError {
    DeployError::new("there is no server that others could join")
}

/// A deployment that is up. Its members are stopped with this, the last first.
pub struct Kept(Deployment);

pub struct KeptMember<'k> {
    pub name: &'k str,
    pub role: &'k str,
    pub product: &'k str,
    pub server: &'k dyn Server,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Why it is stopped is said by whoever does so.
        let _ = self.0.tear_down();
    }
}

impl Kept {
    /// Starts all members, in the order in which they need each other; if one does not start, those before it are stopped.
    /// Servers admit their products' own clients, and a router so many clients.
    pub fn start(
        lab: &Lab,
        (design, variant): (&Design, &Variant),
        clients: usize,
    ) -> Result<Kept, DeployError> {
        let mut kept = Kept(Deployment::of(lab.basis(design), variant)?);
        for member in &kept.0.members {
            if let Source::Start(spec) | Source::Front(spec) = &member.source {
                lab.products.check_settings(spec, &lab.place())?;
            }
        }
        for idx in 0..kept.0.members.len() {
            let (place, source) = (lab.place(), kept.0.members[idx].source.clone());
            let start = |spec: &ServerSpec| {
                let spec = ServerSpec { admits_client: true, ..spec.clone() };
                lab.products.start(&spec, &place, &lab.clock)
            };
            let instance = match source {
                Source::Route(mut route) => {
                    route.clients = clients;
                    let to = kept.0.joinable()?.endpoint().ok_or_else(no_primary)?;
                    let (servers, at) = ((to, &[][..], None), (&place, &lab.clock));
                    Some(Instance::Server(start_router(&lab.products, &route, servers, at)?.0))
                }
                source => kept.0.start(lab, &source, start)?,
            };
            kept.0.members[idx].instance = instance;
        }
        kept.0.finish_replicas(lab)?;
        if let Some((sharding, router, shards)) = kept.0.sharding(lab) {
            sharding.introduce(&router, &shards)?;
        }
        Ok(kept)
    }

    pub fn members(&self) -> impl Iterator<Item = KeptMember<'_>> {
        let mut first = "primary";
        for member in &self.0.members {
            match member.source {
                Source::Join(_) => first = "node",
                Source::Front(_) => first = "shard",
                _ => {}
            }
        }
        self.0.members.iter().filter_map(move |member| {
            let name = member.facts.name.as_str();
            let role = match member.facts.role {
                MemberRole::Replica => "replica",
                MemberRole::Node => "node",
                MemberRole::Shard => "shard",
                MemberRole::Router => name,
                _ => first,
            };
            let product = match &member.source {
                Source::Route(route) => &route.product,
                Source::Start(spec) | Source::Front(spec) | Source::Join(spec) => &spec.product,
                Source::Follow(spec, _) | Source::Shard(spec, _) => &spec.product,
                Source::Other(_) | Source::Attach { .. } | Source::Simulate(_) => return None,
            };
            let server = member.server()?;
            Some(KeptMember { name, role, product, server })
        })
    }

    /// Why it is down, with the name of the member, if it has several; none while all are up.
    pub fn down(&mut self) -> Option<String> {
        let is_alone = self.0.members.len() == 1;
        self.0.members.iter_mut().find_map(|member| {
            let down = member.instance.as_mut()?.down()?;
            // A replica says its name.
            let is_named = is_alone || matches!(member.source, Source::Follow(..));
            Some(if is_named { down } else { format!("{}: {down}", member.facts.name) })
        })
    }

    /// Fails with the first of what went wrong; all else is done nevertheless.
    pub fn stop(mut self) -> Result<(), DeployError> {
        self.0.tear_down()
    }
}
