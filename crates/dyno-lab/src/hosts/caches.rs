//! The page caches of the machines that have servers.

use dyno_units::Nanoseconds;

use super::server::ServerHosts;
use crate::agent::message::{ServerDone, ServerOrder};
use crate::run::Lab;
use crate::trial::TrialError;

/// How long it may take: all that is not on disk yet is written first.
const LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);

pub(crate) struct Dropped {
    pub(crate) host: String,
    pub(crate) before_bytes: u64,
    pub(crate) after_bytes: u64,
}

impl ServerHosts {
    /// One host of each machine: local agents share one, and a router may share that of a server.
    fn one_of_each_machine(&self) -> Vec<usize> {
        let mut seen = Vec::new();
        let is_new = |idx: &usize| {
            let boot = &self.hellos[*idx].boot;
            let is_new = !seen.contains(&boot);
            seen.push(boot);
            is_new
        };
        (0..self.hellos.len()).filter(is_new).collect()
    }

    /// Finds out whether the page caches of all hosts may be emptied.
    ///
    /// # Errors
    ///
    /// One may not; the message names the host.
    pub(crate) fn may_drop_caches(&self, lab: &Lab) -> Result<(), TrialError> {
        let hosts = 0..self.hellos.len();
        let orders = hosts.map(|idx| (idx, ServerOrder::MayDropCaches)).collect();
        self.ordered(lab, orders, LIMIT).map(drop)
    }

    /// Empties the page caches of all hosts, all at once.
    ///
    /// # Errors
    ///
    /// One could not be emptied; the message names the host.
    pub(crate) fn drop_caches(&self, lab: &Lab) -> Result<Vec<Dropped>, TrialError> {
        let hosts = self.one_of_each_machine();
        let orders = hosts.iter().map(|idx| (*idx, ServerOrder::DropCaches)).collect();
        let done = self.ordered(lab, orders, LIMIT)?;
        let dropped = hosts.into_iter().zip(done).filter_map(|(idx, done)| match done {
            ServerDone::CachesDropped { before_bytes, after_bytes } => {
                let host = self.names()[idx].clone();
                Some(Dropped { host, before_bytes, after_bytes })
            }
            _ => None,
        });
        Ok(dropped.collect())
    }
}
