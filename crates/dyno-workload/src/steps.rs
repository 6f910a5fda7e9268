//! Steps that a workload itself defines: stretches of load on the same tables, one after the other.

use dyno_units::Nanoseconds;

/// What a study says to a workload that defines its own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFrame {
    /// Clients, as the workload counts them (the Insert Benchmark: tables written at once).
    pub clients: usize,
    /// Length of the steps that end by time.
    pub duration: Nanoseconds,
}

/// A step that a workload defines.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnStep {
    /// Its name: `l.i0`, `q100`.
    pub name: String,
    /// Who does what in it, at the same time; at least one.
    pub roles: Vec<Role>,
    /// Its longest time. A step in which no role has a quota lasts just so long; one with quotas
    /// ends when all of them are done, and one that runs out of this time is told as unfinished.
    pub limit: Nanoseconds,
    /// Wait before the step until the engine has paid its debt (flushing, purge, compaction,
    /// vacuum), but at most this long; zero for no wait.
    pub settle: Nanoseconds,
}

impl OwnStep {
    /// Connections of all roles.
    pub fn connections(&self) -> usize {
        self.roles.iter().map(|role| role.clients).sum()
    }

    /// Whether it ends when something is done, rather than by time.
    pub fn has_quota(&self) -> bool {
        self.roles.iter().any(|role| role.quota.is_some())
    }
}

/// Clients of one step that do the same thing in the same manner.
///
/// The clients of a step are numbered role after role: those of the first role come first.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Its name: `inserter`, `deleter`, `query`.
    pub name: &'static str,
    /// How many of them; each has a connection of its own.
    pub clients: usize,
    /// When their transactions begin.
    pub pacing: Pacing,
    /// Transactions that each of these clients has to commit, and then ends; none to go on until
    /// the step ends. A client that gives up a transaction has not done it and begins another.
    pub quota: Option<u64>,
}

/// When the transactions of a role begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// One after the other, as fast as they go.
    Closed,
    /// Evenly spread arrivals, whatever the server does; each client has a schedule of its own.
    Constant {
        /// Transactions per second and client.
        rate: f64,
    },
    /// As [`Pacing::Constant`], with exponential gaps.
    Poisson {
        /// Transactions per second and client.
        rate: f64,
    },
    /// The Insert Benchmark's own limiter, for parity: `per_burst` transactions at once at the start
    /// of each second, one after the other; a second that was too short for them delays the next
    /// burst, and nothing is ever caught up.
    Bursts {
        /// Transactions of one burst, at least 1.
        per_burst: u64,
    },
}
