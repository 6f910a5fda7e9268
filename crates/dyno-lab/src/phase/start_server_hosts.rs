//! Starts the agents for servers.

use std::sync::Arc;

use dyno_record::EventKind;

use crate::hosts::ServerHosts;
use crate::trial::{Trial, TrialError};

/// Starts an agent on each host that gets a server, and waits until all of them are there.
pub(super) fn start_server_hosts(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    let (design, database) = (trial.order.design, &trial.variant.database);
    let mut pools = design.server_hosts.iter();
    let Some(pool) = pools.find(|pool| Some(&pool.name) == database.on.as_ref()) else {
        return Ok(());
    };
    let used = (pool, database.servers_on(pool), database.behind.is_some());
    let mut told = Ok(());
    let Trial { lab, events, writer, .. } = trial;
    // What is waited for is told while it is.
    let mut say = |message: String| {
        let event = events.in_trial(writer, EventKind::Noted { message });
        told = std::mem::replace(&mut told, Ok(())).and(event);
    };
    let started = ServerHosts::start(lab, design, used, &mut say);
    told?;
    let hosts = started?;
    if trial.order.plan.drop_caches {
        // Found out now, and not after everything has been populated.
        hosts.may_drop_caches()?;
    }
    let message = hosts.in_words();
    trial.deployment.name_hosted(&hosts);
    trial.deployment.hosts = Some(Arc::new(hosts));
    trial.note(message)
}
