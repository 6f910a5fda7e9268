//! A server or a router on a host, as it is used from here: asked by its URL, watched and stopped through its agent.

use std::sync::Arc;

use dyno_database::{
    Act, Acted, Away, BuildFacts, Control, DeployError, Endpoint, Server, ServerFacts,
};
use dyno_host::{Probe, ThreadListing};
use dyno_units::Nanoseconds;
use dyno_workload::{Connector, Dialect};

use super::channel::Channel;
use super::server::ServerHosts;
use crate::agent::message::{RouterUp, Seen, ServerDone, ServerOrder};
use crate::error::{Context, Result, TrialError};

pub(super) struct Hosted {
    there: There,
    endpoint: Endpoint,
    dialect: Dialect,
    connector: Connector,
    used: Used,
}

pub(super) enum Used {
    /// Attached by its URL; its agent knows where its programs come from.
    Server(Box<dyn Server>, Option<BuildFacts>),
    /// What its agent says of it: a router has no tables to be asked, and its statistics are at a socket of its machine.
    Router(RouterUp),
}

impl Hosted {
    pub(super) fn new(there: There, endpoint: Endpoint, used: Used) -> Result<Hosted> {
        let protocol = endpoint.protocol;
        let needed = "routers are only started in front of servers that speak SQL";
        let dialect = protocol.dialect.context(needed)?;
        let connector = match &used {
            Used::Server(attached, _) => attached.connector(),
            Used::Router(about) if about.supports_named_statements => protocol.connector(&endpoint),
            Used::Router(_) => protocol.unnamed_connector(&endpoint),
        };
        Ok(Hosted { there, endpoint, dialect, connector, used })
    }
}

impl Server for Hosted {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        Ok(match &self.used {
            Used::Server(attached, build) => {
                ServerFacts { build: build.clone(), ..attached.facts()? }
            }
            Used::Router(about) => ServerFacts {
                product: about.product.clone(),
                version: about.version.clone(),
                transport: "tcp",
                settings: about.settings.clone(),
                ..ServerFacts::default()
            },
        })
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn control(&self) -> Option<Box<dyn Control>> {
        Some(Box::new(self.there.clone()))
    }

    fn down(&mut self) -> Option<String> {
        // What its own machine says of its end is more than that the connection is lost.
        let lost = match &mut self.used {
            Used::Server(attached, _) => attached.down(),
            Used::Router(_) => None,
        };
        self.there.down(lost)
    }

    fn log_tail(&self, lines: usize) -> Vec<String> {
        self.there.log_tail(lines)
    }

    fn data_bytes(&self) -> Option<u64> {
        self.there.look(0)?.data_bytes
    }

    fn supports_named_statements(&self) -> bool {
        match &self.used {
            Used::Server(..) => true,
            Used::Router(about) => about.supports_named_statements,
        }
    }

    fn stores_data(&self) -> bool {
        matches!(self.used, Used::Server(..))
    }

    fn probes(&self, _: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        match &self.used {
            Used::Server(attached, _) => attached.probes(None),
            Used::Router(_) => Vec::new(),
        }
    }

    fn check_alive(&self) -> Result<(), DeployError> {
        match &self.used {
            Used::Server(attached, _) => attached.check_alive(),
            Used::Router(_) => Ok(self.there.perform(ServerOrder::Check).map(drop)?),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let Hosted { there, used, .. } = *self;
        // What is attached leaves everything; the connections that it holds open end first.
        let left = match used {
            Used::Server(attached, _) => attached.stop(),
            Used::Router(_) => Ok(()),
        };
        there.perform(ServerOrder::Stop).map_err(DeployError::from).and(left)
    }
}

/// The host of a server.
#[derive(Clone)]
pub(crate) struct There {
    pub(crate) hosts: Arc<ServerHosts>,
    pub(crate) idx: usize,
}

impl There {
    pub(crate) fn name(&self) -> &str {
        self.hosts.name(self.idx)
    }

    pub(super) fn channel(&self) -> &Channel {
        self.hosts.channel(self.idx)
    }

    /// Has its agent follow an order, and waits until it has.
    pub(super) fn perform(&self, order: ServerOrder) -> Result<ServerDone> {
        self.hosts.perform(self.idx, order)
    }

    pub(super) fn out_of_turn(&self) -> TrialError {
        self.hosts.out_of_turn(self.idx)
    }

    pub(super) fn look(&self, log_lines: usize) -> Option<Seen> {
        if self.channel().lost().is_some() {
            return None;
        }
        match self.perform(ServerOrder::Look { log_lines }).ok()? {
            ServerDone::Seen(seen) => Some(seen),
            _ => None,
        }
    }

    /// Why its server is down; `seen` is what is seen from here.
    fn down(&self, seen: Option<String>) -> Option<String> {
        let channel = self.channel();
        if let Some(why) = channel.lost() {
            return Some(why);
        }
        let why = self.look(0)?.down.or(seen)?;
        Some(format!("host {}: {why}", channel.name))
    }

    pub(super) fn log_tail(&self, lines: usize) -> Vec<String> {
        self.look(lines).map(|seen| seen.log).unwrap_or_default()
    }

    /// When something was done there, by the clock here: not before the order was given, and not after its answer came.
    fn here(&self, acted: Acted, [sent, answered]: [Nanoseconds; 2]) -> Acted {
        let trip = self.channel().best_trip();
        let time = |there: Nanoseconds, otherwise: Nanoseconds| {
            let here = trip.map_or(otherwise, |trip| trip.to_controller(there));
            here.clamp(sent, answered)
        };
        Acted { began: time(acted.began, sent), ended: time(acted.ended, answered) }
    }
}

/// Faults, carried out by the agent that started the server.
impl Control for There {
    fn act(&self, act: Act) -> Result<Acted, DeployError> {
        let order = ServerOrder::Act { act, nodes: self.hosts.nodes() };
        let clock = &self.hosts.agents.clock;
        let sent = clock.now();
        let ServerDone::Acted(acted) = self.perform(order)? else {
            return Err(self.out_of_turn().into());
        };
        Ok(self.here(acted, [sent, clock.now()]))
    }

    fn is_back(&self) -> Result<(), Away> {
        let down = |error| Away::Down(DeployError::from(error).message);
        match self.perform(ServerOrder::IsBack).map_err(down)? {
            ServerDone::Back(Err(Away::Down(how))) => {
                Err(Away::Down(format!("host {}: {how}", self.channel().name)))
            }
            ServerDone::Back(back) => back,
            _ => Err(down(self.out_of_turn())),
        }
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn lost(&self) -> Option<String> {
        self.hosts.lost()
    }
}
