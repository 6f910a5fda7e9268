//! Page caches of the servers' machines.

use dyno_record::EventKind;

use super::server::ServerHosts;
use crate::agent::message::{ServerDone, ServerOrder};
use crate::trial::TrialError;

/// One agent of each host, by the names that the study gives them: what a host says of itself must not spare another
/// one. Local agents share this machine, and a router may share the host of a server.
fn one_of_each(names: &[&str], is_local: bool) -> Vec<usize> {
    let is_new = |idx: &usize| *idx == 0 || !(is_local || names[..*idx].contains(&names[*idx]));
    (0..names.len()).filter(is_new).collect()
}

impl ServerHosts {
    /// Fails, with the host's name, if a host's page cache may not be emptied.
    pub(crate) fn may_drop_caches(&self) -> Result<(), TrialError> {
        let hosts = 0..self.agents.hellos.len();
        let orders = hosts.map(|idx| (idx, ServerOrder::MayDropCaches)).collect();
        self.perform_all(orders).map(drop)
    }

    /// On all hosts at once. Fails, with the host's name, if one could not be emptied.
    pub(crate) fn drop_caches(&self) -> Result<Vec<EventKind>, TrialError> {
        let names: Vec<&str> = (0..self.agents.hellos.len()).map(|idx| self.name(idx)).collect();
        let hosts = one_of_each(&names, self.agents.is_local());
        let orders = hosts.iter().map(|idx| (*idx, ServerOrder::DropCaches)).collect();
        let done = self.perform_all(orders)?;
        let dropped = hosts.into_iter().zip(done).map(|(idx, done)| match done {
            ServerDone::CachesDropped { before_bytes, after_bytes } => {
                let host = Some(self.name(idx).to_owned());
                Ok(EventKind::CachesDropped { host, before_bytes, after_bytes })
            }
            _ => Err(self.out_of_turn(idx)),
        });
        dropped.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_drops_its_caches_once() {
        let check = |names: &[&str], is_local: bool, expected: &[usize]| {
            assert_eq!(one_of_each(names, is_local), expected, "{names:?}");
        };
        check(&["a", "b", "c", "b"], false, &[0, 1, 2]);
        check(&["a", "b"], true, &[0]);
        check(&[], true, &[]);
    }
}
