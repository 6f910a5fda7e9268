//! Starts the agents that generate load, and those for servers.

use std::sync::Arc;

use dyno_study::HostPool;

use crate::hosts::{Say, Wanted};
use crate::{Agents, Result, ServerHosts, Trial};

pub(super) fn start_agents(trial: &mut Trial<'_, '_>, pool: &HostPool) -> Result {
    let lab = trial.lab;
    let generators = trial.saying(|say| Agents::start(lab, pool, Wanted::on_all(pool), say))?;
    let message = generators.in_words();
    trial.generators = Some(generators);
    trial.note(message)
}

pub(super) fn start_server_hosts(trial: &mut Trial<'_, '_>) -> Result {
    let (lab, design, database) = (trial.lab, trial.order.design, &trial.variant.database);
    let mut pools = design.server_hosts.iter();
    let Some(pool) = pools.find(|pool| Some(&pool.name) == database.on.as_ref()) else {
        return Ok(());
    };
    let used = (pool, database.servers_on(pool), database.behind.is_some());
    let hosts = trial.saying(|say| ServerHosts::start(lab, design, used, say))?;
    if trial.order.plan.drop_caches {
        // Found out now, and not after everything has been populated.
        hosts.may_drop_caches()?;
    }
    let message = hosts.in_words();
    trial.deployment.name_hosted(&hosts);
    trial.deployment.hosts = Some(Arc::new(hosts));
    trial.note(message)
}

impl Trial<'_, '_> {
    fn saying<T>(&mut self, start: impl FnOnce(Say<'_>) -> Result<T>) -> Result<T> {
        let mut told = Ok(());
        let started = start(&mut |message| {
            let event = self.note(message);
            told = std::mem::replace(&mut told, Ok(())).and(event);
        });
        told.and(started)
    }
}
