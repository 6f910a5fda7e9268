//! Steps that a workload defines itself: loads on the same tables, one after the other.

use std::fmt;

use dyno_units::Nanoseconds;

use crate::Name;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepRequest {
    /// The most clients that a step has, as the workload counts them (the Insert Benchmark: tables
    /// written at once).
    pub clients: usize,
    /// Length of the steps that end by time.
    pub duration: Nanoseconds,
}

impl StepRequest {
    /// For uses that run no step of the workload's own: one client, one second.
    pub const LEAST: StepRequest = StepRequest { clients: 1, duration: Nanoseconds::from_secs(1) };
}

#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadStep {
    /// Its name: `l.i0`, `q100`.
    pub name: Name,
    /// The roles that run in it concurrently; at least one.
    pub roles: Vec<Role>,
    /// Its longest time. A step without quotas lasts exactly this long; one with quotas ends when
    /// all of them are done, and is reported as unfinished if it runs out of this time.
    pub limit: Nanoseconds,
    /// Longest wait before the step until the engine has finished its deferred work (flushing,
    /// purge, compaction, vacuum); zero for no wait.
    pub settle: Nanoseconds,
}

impl WorkloadStep {
    pub fn connections(&self) -> usize {
        self.roles.iter().map(|role| role.clients).sum()
    }

    pub fn ends_by_quota(&self) -> bool {
        self.roles.iter().any(|role| role.quota.is_some())
    }

    /// Whether the time that it takes is a result: it ends when quotas are done, and none of them at a
    /// rate that was given.
    pub fn is_timed(&self) -> bool {
        let is_scheduled = |role: &Role| role.quota.is_some() && role.pacing.rate().is_some();
        self.ends_by_quota() && !self.roles.iter().any(is_scheduled)
    }
}

/// Clients of one step that do the same work with the same pacing.
///
/// The clients of a step are numbered role after role: those of the first role come first.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Its name: `inserter`, `deleter`, `query`.
    pub name: Name,
    /// Number of clients; each has its own connection.
    pub clients: usize,
    pub pacing: Pacing,
    /// Transactions that each client has to commit before it ends; `None` to go on until the step
    /// ends. A transaction that is given up does not count, and the client begins another.
    pub quota: Option<u64>,
    /// The kinds of its transactions; empty if the workload does not say.
    pub kinds: Vec<Name>,
}

impl fmt::Display for Role {
    /// Writes `4 × inserter at 100/s until 5000 are committed`; rate and quota are those of each
    /// client, the rate with at most three decimals.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} × {}", self.clients, self.name)?;
        if let Some(rate) = self.pacing.rate() {
            write!(out, " at {}/s", (rate * 1e3).round() / 1e3)?;
        }
        match self.quota {
            Some(quota) => write!(out, " until {quota} are committed"),
            None => Ok(()),
        }
    }
}

/// When the transactions of a role begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// One after the other, as fast as possible.
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
    /// The Insert Benchmark's own limiter, for parity: `per_burst` transactions at once at the
    /// start of each second, one after the other; a burst that takes longer than a second delays
    /// the next one, and the delay is never made up.
    Bursts {
        /// Transactions of one burst, at least 1.
        per_burst: u64,
    },
}

impl Pacing {
    /// Transactions per second that each client offers; `None` if one follows the other.
    pub fn rate(self) -> Option<f64> {
        match self {
            Pacing::Closed => None,
            Pacing::Constant { rate } | Pacing::Poisson { rate } => Some(rate),
            Pacing::Bursts { per_burst } => Some(per_burst as f64),
        }
    }

    /// The name in records.
    pub fn word(self) -> &'static str {
        match self {
            Pacing::Closed => "closed",
            Pacing::Constant { .. } => "constant",
            Pacing::Poisson { .. } => "poisson",
            Pacing::Bursts { .. } => "bursts",
        }
    }
}
