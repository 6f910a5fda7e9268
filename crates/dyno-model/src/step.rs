//! Steps that a workload defines itself: loads on the same tables, one after the other.

use std::fmt;

use dyno_units::Nanoseconds;

use crate::Name;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepRequest {
    /// The most clients of a step; for the Insert Benchmark, the tables that are written at once.
    pub clients: usize,
    /// Length of the steps that end by time.
    pub duration: Nanoseconds,
}

impl StepRequest {
    /// For uses that run none of the workload's own steps: one client, one second.
    pub const LEAST: StepRequest = StepRequest { clients: 1, duration: Nanoseconds::from_secs(1) };
}

#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadStep {
    /// `l.i0`, `q100`.
    pub name: Name,
    /// At least one.
    pub roles: Vec<Role>,
    /// Length of a step without quotas; a step whose quotas are not done by then is unfinished.
    pub limit: Nanoseconds,
    /// Longest wait before the step for the engine's deferred work; zero for no wait.
    pub settle: Nanoseconds,
}

impl WorkloadStep {
    pub fn connections(&self) -> usize {
        self.roles.iter().map(|role| role.clients).sum()
    }

    pub fn ends_by_quota(&self) -> bool {
        self.roles.iter().any(|role| role.quota.is_some())
    }

    /// Whether its time is a result: it ends by quotas, none of them at a given rate.
    pub fn is_timed(&self) -> bool {
        let is_scheduled = |role: &Role| role.quota.is_some() && role.pacing.rate().is_some();
        self.ends_by_quota() && !self.roles.iter().any(is_scheduled)
    }
}

/// Clients that do the same work at the same pace. Clients are numbered role after role.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// `inserter`, `deleter`, `query`.
    pub name: Name,
    /// Each has its own connection.
    pub clients: usize,
    pub pacing: Pacing,
    /// Transactions that each client has to commit before it ends; those given up do not count.
    pub quota: Option<u64>,
    /// The kinds of its transactions; empty if the workload does not say.
    pub kinds: Vec<Name>,
}

impl fmt::Display for Role {
    /// Writes `4 × inserter at 100/s until 5000 are committed`, with rate and quota per client.
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    Closed,
    /// Evenly spread arrivals, whatever the server does; each client has its own schedule.
    Constant {
        /// Per second and client.
        rate: f64,
    },
    /// As [`Pacing::Constant`], with exponential gaps.
    Poisson {
        /// Per second and client.
        rate: f64,
    },
    /// The Insert Benchmark's limiter: each second begins with `per_burst` transactions, one after
    /// the other. A burst of more than a second delays the next one for good.
    Bursts {
        /// At least 1.
        per_burst: u64,
    },
}

impl Pacing {
    /// Per second and client; `None` if closed.
    pub fn rate(self) -> Option<f64> {
        match self {
            Pacing::Closed => None,
            Pacing::Constant { rate } | Pacing::Poisson { rate } => Some(rate),
            Pacing::Bursts { per_burst } => Some(per_burst as f64),
        }
    }

    /// The word for it in records.
    pub fn word(self) -> &'static str {
        match self {
            Pacing::Closed => "closed",
            Pacing::Constant { .. } => "constant",
            Pacing::Poisson { .. } => "poisson",
            Pacing::Bursts { .. } => "bursts",
        }
    }
}
