//! The load of a step.

use dyno_units::SteppedRate;

use crate::Role;

/// The load of a step: how many clients, and what makes them act.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// A closed load: a number of clients, each with one transaction after the other.
    Closed {
        /// Number of clients; at least 1.
        clients: usize,
    },
    /// An open load: arrivals follow a schedule, whatever the server does. While all clients are
    /// busy, arrivals wait for up to a minute, and are then given up as missed.
    Open {
        /// Offered rate, arrivals per second.
        rate: f64,
        arrivals: Arrivals,
        /// Clients that serve the arrivals: the most transactions in flight.
        clients: usize,
    },
    /// An open load with a changing rate. Its first rate holds during the warm-up, its course
    /// begins with the measured time.
    Stepped {
        /// Offered rates, arrivals per second, with their times.
        rate: SteppedRate,
        arrivals: Arrivals,
        /// Clients that serve the arrivals: the most transactions in flight.
        clients: usize,
    },
    /// The roles of a step that the workload defines, running concurrently, each with its own
    /// pacing and quota. A client's arrivals wait for that client only, for up to a minute.
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

    /// Whether an offered rate decides when transactions begin.
    pub fn is_open(&self) -> bool {
        match self {
            Load::Open { .. } | Load::Stepped { .. } => true,
            Load::Closed { .. } | Load::Roles(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    Constant,
    /// With exponential gaps, as independent users arrive.
    Poisson,
}

impl Arrivals {
    /// All kinds of arrivals, the default first.
    pub const ALL: [Arrivals; 2] = [Arrivals::Poisson, Arrivals::Constant];

    /// The name in study files and records.
    pub fn word(self) -> &'static str {
        match self {
            Arrivals::Constant => "constant",
            Arrivals::Poisson => "poisson",
        }
    }
}
