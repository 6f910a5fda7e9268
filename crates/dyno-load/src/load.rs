//! The clients of a load, and whether it can be run.

use dyno_model::{Arrivals, Load, Name, Pacing, Role, name};
use dyno_units::Nanoseconds;

use crate::schedule::Slice;
use crate::{LoadError, StepSpec};

pub(crate) trait ClientPlans {
    /// Roles with their numbers of clients; a load without roles has one without a name.
    fn roles(&self) -> Vec<(Name, usize)>;

    /// Clients are counted over all roles.
    fn client_plan(&self, client_idx: usize) -> ClientPlan;

    fn n_with_quota(&self) -> usize;
}

impl ClientPlans for Load {
    fn roles(&self) -> Vec<(Name, usize)> {
        match self {
            Load::Roles(roles) => {
                roles.iter().map(|role| (role.name.clone(), role.clients)).collect()
            }
            Load::Closed { .. } | Load::Open { .. } | Load::Stepped { .. } => {
                vec![(name(""), self.clients())]
            }
        }
    }

    fn client_plan(&self, client_idx: usize) -> ClientPlan {
        let whole = |source| ClientPlan {
            source,
            quota: None,
            role: 0,
            idx_in_role: client_idx,
            n_in_role: self.clients(),
        };
        match self {
            Load::Closed { .. } => whole(ArrivalSource::Closed),
            Load::Open { .. } | Load::Stepped { .. } => whole(ArrivalSource::Shared),
            Load::Roles(roles) => {
                let mut idx_in_role = client_idx;
                let mut role = 0;
                while idx_in_role >= roles[role].clients {
                    idx_in_role -= roles[role].clients;
                    role += 1;
                }
                let Role { clients, pacing, quota, .. } = roles[role];
                ClientPlan {
                    source: ArrivalSource::of(pacing),
                    quota,
                    role,
                    idx_in_role,
                    n_in_role: clients,
                }
            }
        }
    }

    fn n_with_quota(&self) -> usize {
        match self {
            Load::Closed { .. } | Load::Open { .. } | Load::Stepped { .. } => 0,
            Load::Roles(roles) => {
                roles.iter().filter(|role| role.quota.is_some()).map(|role| role.clients).sum()
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClientPlan {
    pub(crate) source: ArrivalSource,
    /// Transactions to commit.
    pub(crate) quota: Option<u64>,
    pub(crate) role: usize,
    pub(crate) idx_in_role: usize,
    pub(crate) n_in_role: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ArrivalSource {
    /// The end of the previous transaction.
    Closed,
    /// An arrival shared by the worker's clients.
    Shared,
    /// An arrival of the client's own schedule.
    Own {
        /// Per second and client.
        rate: f64,
        arrivals: Arrivals,
    },
    /// Closed, but in bursts that begin a second apart.
    Bursts {
        /// At least 1.
        per_burst: u64,
    },
}

impl ArrivalSource {
    fn of(pacing: Pacing) -> ArrivalSource {
        match pacing {
            Pacing::Closed => ArrivalSource::Closed,
            Pacing::Constant { rate } => ArrivalSource::Own { rate, arrivals: Arrivals::Constant },
            Pacing::Poisson { rate } => ArrivalSource::Own { rate, arrivals: Arrivals::Poisson },
            Pacing::Bursts { per_burst } => ArrivalSource::Bursts { per_burst },
        }
    }

    /// Whether transactions are due by a schedule, whatever the server does.
    #[inline]
    pub(crate) fn is_scheduled(self) -> bool {
        matches!(self, ArrivalSource::Shared | ArrivalSource::Own { .. })
    }
}

pub(crate) fn check(spec: &StepSpec) -> Result<(), LoadError> {
    let clients = spec.load.clients();
    if clients == 0 {
        return refuse("it has no clients; give at least one");
    }
    if spec.workers == 0 || spec.workers > clients {
        return refuse(&format!(
            "it has {} workers for {clients} clients; give at least 1 worker and at most one for \
             each client",
            spec.workers
        ));
    }
    if spec.duration == Nanoseconds::ZERO {
        return refuse("its measurement phase has no duration; give at least one second");
    }
    match &spec.load {
        // A stepped rate is valid by construction.
        Load::Closed { .. } | Load::Stepped { .. } => Ok(()),
        Load::Open { rate, .. } => check_rate("its", *rate),
        Load::Roles(roles) => roles.iter().try_for_each(check_role),
    }
}

pub(crate) fn check_slice(spec: &StepSpec, slice: Slice) -> Result<(), LoadError> {
    if slice == Slice::WHOLE {
        return Ok(());
    }
    let clients = slice.share_of(spec.load.clients());
    if slice.index >= slice.count || clients == 0 || spec.workers > clients {
        return refuse(&format!(
            "{} workers of generator {} of {} have {clients} of {} clients; give at least one client \
             to each worker",
            spec.workers,
            slice.index + 1,
            slice.count,
            spec.load.clients()
        ));
    }
    if spec.until_steady.is_some() || matches!(spec.load, Load::Roles(_)) {
        return refuse("several generators can only run steps that end by time and have no roles");
    }
    Ok(())
}

fn check_role(role: &Role) -> Result<(), LoadError> {
    let name = &role.name;
    if role.quota == Some(0) {
        return refuse(&format!("role {name} has a quota of 0 transactions; give at least one"));
    }
    match role.pacing {
        Pacing::Closed => Ok(()),
        Pacing::Constant { rate } | Pacing::Poisson { rate } => {
            check_rate(&format!("role {name}'s"), rate)
        }
        Pacing::Bursts { per_burst: 0 } => {
            refuse(&format!("role {name} has bursts of 0 transactions; give at least one"))
        }
        Pacing::Bursts { .. } => Ok(()),
    }
}

fn check_rate(whose: &str, rate: f64) -> Result<(), LoadError> {
    if rate > 0.0 && rate.is_finite() {
        return Ok(());
    }
    refuse(&format!("{whose} offered rate is {rate}; give a positive number per second"))
}

fn refuse(why: &str) -> Result<(), LoadError> {
    Err(LoadError(format!("a step cannot be run: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(role: &'static str, clients: usize) -> Role {
        Role { name: name(role), clients, pacing: Pacing::Closed, quota: None, kinds: Vec::new() }
    }

    #[test]
    fn clients_are_numbered_role_after_role() {
        let load = Load::Roles(vec![role("a", 2), role("none", 0), role("b", 3)]);
        assert_eq!(load.clients(), 5);
        let parts: Vec<_> = (0..5)
            .map(|idx| load.client_plan(idx))
            .map(|plan| (plan.role, plan.idx_in_role, plan.n_in_role))
            .collect();
        assert_eq!(parts, [(0, 0, 2), (0, 1, 2), (2, 0, 3), (2, 1, 3), (2, 2, 3)]);
    }

    #[test]
    fn without_roles_all_clients_play_the_same_part() {
        let plan = Load::Closed { clients: 7 }.client_plan(4);
        assert_eq!((plan.role, plan.idx_in_role, plan.n_in_role, plan.quota), (0, 4, 7, None));
    }
}
