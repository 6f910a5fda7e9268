//! A server or a router on a host, as it is used from here: asked by its URL, watched and stopped through its agent.

use std::sync::Arc;

use dyno_database::{
    Act, Acted, Away, BuildFacts, Control, DeployError, Endpoint, Server, ServerFacts,
};
use dyno_host::{Probe, ThreadListing};
use dyno_units::Nanoseconds;
use dyno_workload::{Connector, Dialect};

use super::server::ServerHosts;
use crate::agent::message::{RouterUp, ServerDone, ServerOrder};
use crate::error::TrialError;

pub(super) struct Hosted {
    hosts: Arc<ServerHosts>,
    idx: usize,
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
    pub(super) fn new(
        (hosts, idx): (&Arc<ServerHosts>, usize),
        endpoint: Endpoint,
        used: Used,
    ) -> Result<Hosted, TrialError> {
        let protocol = endpoint.protocol;
        let dialect = protocol.dialect.ok_or_else(|| {
            TrialError::new("routers are only started in front of servers that speak SQL")
        })?;
        let connector = match &used {
            Used::Server(attached, _) => attached.connector(),
            Used::Router(about) if about.supports_named_statements => protocol.connector(&endpoint),
            Used::Router(_) => protocol.unnamed_connector(&endpoint),
        };
        Ok(Hosted { hosts: Arc::clone(hosts), idx, endpoint, dialect, connector, used })
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
        Some(Box::new(HostedControl { hosts: Arc::clone(&self.hosts), idx: self.idx }))
    }

    fn down(&mut self) -> Option<String> {
        // What its own machine says of its end is more than that the connection is lost.
        let lost = match &mut self.used {
            Used::Server(attached, _) => attached.down(),
            Used::Router(_) => None,
        };
        self.hosts.down(self.idx, lost)
    }

    fn log_tail(&self, lines: usize) -> Vec<String> {
        self.hosts.log_tail(self.idx, lines)
    }

    fn data_bytes(&self) -> Option<u64> {
        self.hosts.look(self.idx, 0)?.2
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
            Used::Router(_) => Ok(self.hosts.perform(self.idx, ServerOrder::Check).map(drop)?),
        }
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let Hosted { hosts, idx, used, .. } = *self;
        // What is attached leaves everything; the connections that it holds open end first.
        let left = match used {
            Used::Server(attached, _) => attached.stop(),
            Used::Router(_) => Ok(()),
        };
        hosts.perform(idx, ServerOrder::Stop).map_err(DeployError::from).and(left)
    }
}

/// Faults of servers on hosts, carried out by the agent that started the server.
struct HostedControl {
    hosts: Arc<ServerHosts>,
    idx: usize,
}

impl HostedControl {
    /// When something was done there, by the clock here: not before the order was given, and not after its answer came.
    fn here(&self, acted: Acted, [sent, answered]: [Nanoseconds; 2]) -> Acted {
        let trip = self.hosts.channel(self.idx).best_trip();
        let time = |there: Nanoseconds, otherwise: Nanoseconds| {
            let here = trip.map_or(otherwise, |trip| trip.to_controller(there));
            here.clamp(sent, answered)
        };
        Acted { began: time(acted.began, sent), ended: time(acted.ended, answered) }
    }
}

impl Control for HostedControl {
    fn act(&self, act: Act) -> Result<Acted, DeployError> {
        let HostedControl { hosts, idx } = self;
        let order = ServerOrder::Act { act, nodes: hosts.nodes() };
        let clock = &hosts.agents.clock;
        let sent = clock.now();
        let ServerDone::Acted(acted) = hosts.perform(*idx, order)? else {
            return Err(hosts.out_of_turn(*idx).into());
        };
        Ok(self.here(acted, [sent, clock.now()]))
    }

    fn is_back(&self) -> Result<(), Away> {
        let HostedControl { hosts, idx } = self;
        let down = |error| Away::Down(DeployError::from(error).message);
        match hosts.perform(*idx, ServerOrder::IsBack).map_err(down)? {
            ServerDone::Back(Err(Away::Down(how))) => {
                Err(Away::Down(format!("host {}: {how}", hosts.channel(*idx).name)))
            }
            ServerDone::Back(back) => back,
            _ => Err(down(hosts.out_of_turn(*idx))),
        }
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn lost(&self) -> Option<String> {
        self.hosts.agents.lost()
    }
}
