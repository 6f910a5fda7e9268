//! Page caches of the servers' machines.

use dyno_record::EventKind;

use super::server::ServerHosts;
use crate::agent::message::{ServerDone, ServerOrder};
use crate::trial::TrialError;

impl ServerHosts {
    /// One host of each machine: local agents share one, and a router may share that of a server.
    fn one_of_each_machine(&self) -> Vec<usize> {
        let mut seen = Vec::new();
        let is_new = |idx: &usize| {
            let boot = &self.agents.hellos[*idx].boot;
            let is_new = !seen.contains(&boot);
            seen.push(boot);
            is_new
        };
        (0..self.agents.hellos.len()).filter(is_new).collect()
    }

    /// Fails, with the host's name, if a host's page cache may not be emptied.
    pub(crate) fn may_drop_caches(&self) -> Result<(), TrialError> {
        let hosts = 0..self.agents.hellos.len();
        let orders = hosts.map(|idx| (idx, ServerOrder::MayDropCaches)).collect();
        self.perform_all(orders).map(drop)
    }

    /// On all hosts at once. Fails, with the host's name, if one could not be emptied.
    pub(crate) fn drop_caches(&self) -> Result<Vec<EventKind>, TrialError> {
        let hosts = self.one_of_each_machine();
        let orders = hosts.iter().map(|idx| (*idx, ServerOrder::DropCaches)).collect();
        let done = self.perform_all(orders)?;
        let dropped = hosts.into_iter().zip(done).filter_map(|(idx, done)| match done {
            ServerDone::CachesDropped { before_bytes, after_bytes } => {
                let host = Some(self.name(idx).to_owned());
                Some(EventKind::CachesDropped { host, before_bytes, after_bytes })
            }
            _ => None,
        });
        Ok(dropped.collect())
    }
}
