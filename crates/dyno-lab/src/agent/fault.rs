//! A fault of a server on a host, as it travels to the agent that has started it, and what comes of it.
//!
//! The agent acts by the handle with which it started the server, with the code that does it on the controller's machine. When
//! something is done is said by the agent's clock; the controller knows how that differs from its own.

use std::net::SocketAddrV4;

use dyno_database::{Act, Away, Control, DeployError, Server};
use dyno_units::Nanoseconds;
use serde::{Deserialize, Serialize};

use super::message::ServerDone;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultOrder {
    Kill,
    Freeze,
    Thaw,
    Stop,
    Start {
        /// Where all nodes of its cluster are reached by others, in the order of their numbers.
        nodes: Vec<SocketAddrV4>,
    },
    CutOff,
    Rejoin,
    CheckNetwork,
    IsBack,
}

/// When something was done, by the agent's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActedThere {
    pub(crate) began: Nanoseconds,
    pub(crate) ended: Nanoseconds,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AwayThere {
    /// Not yet: what it says.
    NotYet(String),
    /// It has ended: how.
    Down(String),
}

impl FaultOrder {
    pub(crate) fn of(act: Act, nodes: Vec<SocketAddrV4>) -> FaultOrder {
        match act {
            Act::Kill => FaultOrder::Kill,
            Act::Freeze => FaultOrder::Freeze,
            Act::Thaw => FaultOrder::Thaw,
            Act::Stop => FaultOrder::Stop,
            Act::Start => FaultOrder::Start { nodes },
            Act::CutOff => FaultOrder::CutOff,
            Act::Rejoin => FaultOrder::Rejoin,
            Act::CheckNetwork => FaultOrder::CheckNetwork,
        }
    }

    /// What it orders to do; none if it only asks.
    fn act(&self) -> Option<Act> {
        Some(match self {
            FaultOrder::Kill => Act::Kill,
            FaultOrder::Freeze => Act::Freeze,
            FaultOrder::Thaw => Act::Thaw,
            FaultOrder::Stop => Act::Stop,
            FaultOrder::Start { .. } => Act::Start,
            FaultOrder::CutOff => Act::CutOff,
            FaultOrder::Rejoin => Act::Rejoin,
            FaultOrder::CheckNetwork => Act::CheckNetwork,
            FaultOrder::IsBack => return None,
        })
    }

    /// Does it to a server.
    ///
    /// # Errors
    ///
    /// It could not be done; says why.
    pub(super) fn follow(&self, server: &mut dyn Server) -> Result<ServerDone, DeployError> {
        if let FaultOrder::Start { nodes } = self {
            server.meet(nodes);
        }
        let none = || DeployError::new("the server is not a process that the agent has started");
        let control: Box<dyn Control> = server.control().ok_or_else(none)?;
        let Some(act) = self.act() else {
            return Ok(ServerDone::Back(match control.is_back() {
                Ok(()) => None,
                Err(Away::NotYet(reason)) => Some(AwayThere::NotYet(reason)),
                Err(Away::Down(how)) => Some(AwayThere::Down(how)),
            }));
        };
        let acted = control.act(act)?;
        Ok(ServerDone::Acted(ActedThere { began: acted.began, ended: acted.ended }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_arrives_as_it_was_sent() {
        let node: SocketAddrV4 = "10.0.0.1:4567".parse().expect("it is an address");
        for act in [
            Act::Kill,
            Act::Freeze,
            Act::Thaw,
            Act::Stop,
            Act::Start,
            Act::CutOff,
            Act::Rejoin,
            Act::CheckNetwork,
        ] {
            let order = FaultOrder::of(act, vec![node]);
            let text = serde_json::to_string(&order).expect("it is text");
            let back: FaultOrder = serde_json::from_str(&text).expect("it is an order");
            assert_eq!((back.act(), &back), (Some(act), &order));
        }
    }
}
