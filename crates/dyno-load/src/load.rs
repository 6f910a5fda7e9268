//! The clients of a load, and whether it can be run.

use dyno_model::{Arrivals, Load, Name, Pacing, Role, name};
use dyno_units::Nanoseconds;

use crate::schedule::Slice;
use crate::{LoadError, RoleTotals, StepSpec};

/// The roles, nothing counted yet; a load without roles has one without a name.
pub(crate) fn roles_of(load: &Load) -> Vec<RoleTotals> {
    let role = |name: &Name| RoleTotals { name: name.clone(), ..RoleTotals::default() };
    match load {
        Load::Roles(roles) => roles.iter().map(|one| role(&one.name)).collect(),
        Load::Closed { .. } | Load::Open { .. } | Load::Stepped { .. } => vec![role(&name(""))],
    }
}

/// Clients are counted over all roles.
pub(crate) fn client_plan(load: &Load, idx: usize) -> ClientPlan {
    let n_in_role = load.clients();
    let whole = |source| ClientPlan { source, quota: None, role: 0, idx_in_role: idx, n_in_role };
    match load {
        Load::Closed { .. } => whole(ArrivalSource::Closed),
        Load::Open { .. } | Load::Stepped { .. } => whole(ArrivalSource::Shared),
        Load::Roles(roles) => {
            let (mut idx_in_role, mut role) = (idx, 0);
            while idx_in_role >= roles[role].clients {
                idx_in_role -= roles[role].clients;
                role += 1;
            }
            let Role { clients: n_in_role, pacing, quota, .. } = roles[role];
            let source = ArrivalSource::of(pacing);
            ClientPlan { source, quota, role, idx_in_role, n_in_role }
        }
    }
}

pub(crate) fn n_with_quota(load: &Load) -> usize {
    let Load::Roles(roles) = load else { return 0 };
    roles.iter().filter(|role| role.quota.is_some()).map(|role| role.clients).sum()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClientPlan {
    pub(crate) source: ArrivalSource,
    pub(crate) quota: Option<u64>,
    pub(crate) role: usize,
    pub(crate) idx_in_role: usize,
    pub(crate) n_in_role: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ArrivalSource {
    Closed,
    Shared,
    Own {
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
        let (workers, all) = (spec.workers, spec.load.clients());
        let (nth, n) = (slice.index + 1, slice.count);
        return refuse(&format!(
            "{workers} workers of generator {nth} of {n} have {clients} of {all} clients; give at \
             least one client to each worker"
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
            .map(|idx| client_plan(&load, idx))
            .map(|plan| (plan.role, plan.idx_in_role, plan.n_in_role))
            .collect();
        assert_eq!(parts, [(0, 0, 2), (0, 1, 2), (2, 0, 3), (2, 1, 3), (2, 2, 3)]);
    }

    #[test]
    fn without_roles_all_clients_play_the_same_part() {
        let plan = client_plan(&Load::Closed { clients: 7 }, 4);
        assert_eq!((plan.role, plan.idx_in_role, plan.n_in_role, plan.quota), (0, 4, 7, None));
    }
}
