//! Faults of servers on hosts: each happens there, done by the agent that has started the server.

use std::sync::Arc;

use dyno_database::{Act, Acted, Away, Control, DeployError};
use dyno_units::{Clock, Nanoseconds};

use super::channel::Channel;
use super::server::ServerHosts;
use crate::agent::fault::{ActedThere, AwayThere, FaultOrder};
use crate::agent::message::{ServerDone, ServerOrder};

/// How long it may take to do something to a server: longer than an agent waits for its end, or for an answer of its own.
const LIMIT: Nanoseconds = Nanoseconds::from_secs(200);

/// The same for starting it again: it may have to find out first what its data hold.
const START_LIMIT: Nanoseconds = Nanoseconds::from_secs(2000);

pub(super) struct HostedControl {
    hosts: Arc<ServerHosts>,
    idx: usize,
    clock: Arc<dyn Clock>,
}

impl HostedControl {
    pub(super) fn new(hosts: &Arc<ServerHosts>, idx: usize) -> HostedControl {
        HostedControl { hosts: Arc::clone(hosts), idx, clock: hosts.clock() }
    }

    fn channel(&self) -> &Channel {
        &self.hosts.channels[self.idx]
    }

    fn order(&self, order: FaultOrder) -> Result<ServerDone, DeployError> {
        match order {
            FaultOrder::Start { .. } => {
                self.hosts.unless_stopped(self.idx, ServerOrder::Fault(order), START_LIMIT)
            }
            _ => self.hosts.in_any_case(self.idx, ServerOrder::Fault(order), LIMIT),
        }
    }

    fn out_of_turn(&self) -> DeployError {
        DeployError::new(self.channel().lose("its agent answered out of turn"))
    }

    /// When something was done there, by the clock here: not before the order was given, and not after its answer came.
    fn here(&self, acted: ActedThere, [sent, answered]: [Nanoseconds; 2]) -> Acted {
        let trip = self.channel().best_trip();
        let time = |there: Nanoseconds, otherwise: Nanoseconds| {
            let here = trip.map_or(otherwise, |trip| trip.to_controller(there));
            here.clamp(sent, answered)
        };
        Acted { began: time(acted.began, sent), ended: time(acted.ended, answered) }
    }
}

impl Control for HostedControl {
    fn act(&self, act: Act) -> Result<Acted, DeployError> {
        let order = FaultOrder::of(act, self.hosts.nodes());
        let sent = self.clock.now();
        let done = self.order(order)?;
        let ServerDone::Acted(acted) = done else { return Err(self.out_of_turn()) };
        Ok(self.here(acted, [sent, self.clock.now()]))
    }

    fn is_back(&self) -> Result<(), Away> {
        let done = self.order(FaultOrder::IsBack).map_err(|error| Away::Down(error.message))?;
        match done {
            ServerDone::Back(None) => Ok(()),
            ServerDone::Back(Some(AwayThere::NotYet(reason))) => Err(Away::NotYet(reason)),
            ServerDone::Back(Some(AwayThere::Down(how))) => {
                Err(Away::Down(format!("host {}: {how}", self.channel().name)))
            }
            _ => Err(Away::Down(self.out_of_turn().message)),
        }
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn lost(&self) -> Option<String> {
        self.hosts.channels.iter().find_map(|channel| channel.lost())
    }
}
