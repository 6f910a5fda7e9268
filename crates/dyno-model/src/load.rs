//! The load of a step.

use dyno_units::SteppedRate;

use crate::Role;

/// How many clients a step has, and what makes them act.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Load {
    /// Each client starts a transaction when the last one has ended.
    Closed {
        /// At least 1.
        clients: usize,
    },
    /// Arrivals by a schedule, whatever the server does; one not sent within a minute is missed.
    Open {
        /// Arrivals per second.
        rate: f64,
        arrivals: Arrivals,
        /// The most transactions in flight.
        clients: usize,
    },
    /// Open; the first rate also holds during the warm-up, after which the schedule begins.
    #[serde(skip)]
    Stepped { rate: SteppedRate, arrivals: Arrivals, clients: usize },
    /// Roles that run concurrently. An arrival waits only for its own client, for up to a minute.
    #[serde(skip)]
    Roles(Vec<Role>),
}

impl Load {
    pub fn clients(&self) -> usize {
        match self {
            Load::Closed { clients }
            | Load::Open { clients, .. }
            | Load::Stepped { clients, .. } => *clients,
            Load::Roles(roles) => roles.iter().map(|role| role.clients).sum(),
        }
    }

    pub fn is_open(&self) -> bool {
        match self {
            Load::Open { .. } | Load::Stepped { .. } => true,
            Load::Closed { .. } | Load::Roles(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Arrivals {
    Constant,
    /// With exponential gaps, as independent users arrive.
    Poisson,
}

impl Arrivals {
    /// The default first.
    pub const ALL: [Arrivals; 2] = [Arrivals::Poisson, Arrivals::Constant];

    /// In study files and records.
    pub fn word(self) -> &'static str {
        match self {
            Arrivals::Constant => "constant",
            Arrivals::Poisson => "poisson",
        }
    }
}
