//! Faults of servers on hosts, carried out by the agent that started the server.

use std::sync::Arc;

use dyno_database::{Act, Acted, Away, Control, DeployError};
use dyno_units::Nanoseconds;

use super::server::ServerHosts;
use crate::agent::message::{ServerDone, ServerOrder};

pub(super) struct HostedControl {
    pub(super) hosts: Arc<ServerHosts>,
    pub(super) idx: usize,
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
