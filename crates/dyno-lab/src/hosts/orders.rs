//! What agents are ordered to do beside their servers: volumes, commands of jobs, page caches.

use std::sync::Arc;

use dyno_host::{Dips, IoLimit, Volume, VolumeSpec, VolumeUsage};
use dyno_load::AbortFlag;
use dyno_record::{EventKind, PlaceFacts};
use dyno_units::Nanoseconds;

use super::POLL;
use super::hosted::There;
use super::server::ServerHosts;
use crate::agent::message::{ProvideOrder, ServerDone, ServerOrder};
use crate::command::STOP_LIMIT;
use crate::{CommandEnd, CommandOrder, Result, VolumeAct, fail};

#[derive(Clone)]
pub(crate) struct MadeVolume {
    /// Its name in the study, with that of its host if it is on one.
    pub(crate) name: String,
    pub(crate) limit: IoLimit,
    pub(crate) dips: Option<Dips>,
    at: At,
}

#[derive(Clone)]
enum At {
    Here(Arc<Volume>),
    /// On a host; its number there.
    There(There, usize),
}

impl MadeVolume {
    pub(crate) fn here(volume: Arc<Volume>) -> MadeVolume {
        MadeVolume {
            name: volume.name().to_owned(),
            limit: *volume.limit(),
            dips: volume.dips().copied(),
            at: At::Here(volume),
        }
    }

    fn there(spec: &VolumeSpec, there: There, number: usize) -> MadeVolume {
        MadeVolume {
            name: format!("{} on {}", spec.name, there.name()),
            limit: spec.limit,
            dips: spec.dips,
            at: At::There(there, number),
        }
    }

    pub(crate) fn is_limited(&self) -> bool {
        !self.limit.is_none() || self.dips.is_some()
    }

    /// Does something to it; `processes` are those of its server that are on this machine.
    pub(crate) fn act(&self, act: VolumeAct, processes: &[i32]) -> Result {
        match &self.at {
            At::Here(volume) => Ok(act.on(volume, processes)?),
            At::There(there, volume) => {
                there.perform(ServerOrder::Volume { volume: *volume, act }).map(drop)
            }
        }
    }

    pub(crate) fn usage(&self) -> Result<VolumeUsage> {
        match &self.at {
            At::Here(volume) => Ok(volume.usage()?),
            At::There(there, _) => match there.perform(ServerOrder::Measure)? {
                ServerDone::Measured(usage) => Ok(*usage),
                _ => Err(there.out_of_turn()),
            },
        }
    }

    /// The name of its disk (`loop0`), if that is one of this machine.
    pub(crate) fn disk_name(&self) -> Option<String> {
        match &self.at {
            At::Here(volume) => volume.disk_name(),
            At::There(..) => None,
        }
    }
}

/// How long the end of a command may take longer than stopping it.
const LATE: Nanoseconds = Nanoseconds::from_secs(10);

/// One agent of each host, by the names that the study gives them: what a host says of itself must not spare another
/// one. Local agents share this machine, and a router may share the host of a server.
fn one_of_each(names: &[&str], is_local: bool) -> Vec<usize> {
    let is_new = |idx: &usize| *idx == 0 || !(is_local || names[..*idx].contains(&names[*idx]));
    (0..names.len()).filter(is_new).collect()
}

impl There {
    /// Runs the command to its end or `stop`. Fails, with the host's name, if it or its agent does.
    pub(crate) fn run_command(&self, order: &CommandOrder, stop: &AbortFlag) -> Result<CommandEnd> {
        let channel = self.channel();
        let run = ServerOrder::Run(Box::new(order.clone()));
        let task = self.hosts.numbered(vec![(self.idx, run)])?.0[0].1;
        let mut until = None;
        loop {
            match channel.command_end(task, POLL) {
                Some(Ok(end)) => return Ok(end),
                Some(Err(why)) => {
                    return fail(format!("host {}: {why}", channel.name));
                }
                None => {}
            }
            if let Some(why) = channel.lost() {
                return fail(why);
            }
            match until {
                None if stop.is_raised() => {
                    self.perform(ServerOrder::Interrupt)?;
                    until = Some(self.hosts.agents.clock.now() + STOP_LIMIT + LATE);
                }
                Some(until) if self.hosts.agents.clock.now() > until => {
                    let why = format!("the command `{}` does not end", order.name);
                    return Err(channel.fail(&why));
                }
                _ => {}
            }
        }
    }

    /// Removes what commands left to each other; what cannot be removed now goes with the agent.
    pub(crate) fn end_job(&self) {
        if self.channel().lost().is_none() {
            let _ = self.perform(ServerOrder::EndJob);
        }
    }
}

impl ServerHosts {
    /// Makes places for servers' data on all hosts at once: volumes for data and logs, or folders.
    /// Returns each place with its volumes. Fails, with the host's name, if one cannot be made.
    pub(crate) fn provide(
        self: &Arc<Self>,
        hosts: &[usize],
        [data, logs]: [Option<&VolumeSpec>; 2],
    ) -> Result<Vec<(PlaceFacts, Vec<MadeVolume>)>> {
        let order = ProvideOrder {
            data: data.cloned(),
            logs: logs.cloned(),
            data_folder: self.data_folder.clone(),
        };
        let provide = |idx: &usize| (*idx, ServerOrder::Provide(Box::new(order.clone())));
        let done = self.perform_all(hosts.iter().map(provide).collect())?;
        let provided = hosts.iter().zip(done).map(|(&idx, done)| {
            let ServerDone::Provided(facts) = done else { return Err(self.out_of_turn(idx)) };
            let volumes = data.into_iter().chain(logs).zip(0..);
            let volume = |(spec, number)| MadeVolume::there(spec, self.there(idx), number);
            Ok((*facts, volumes.map(volume).collect()))
        });
        provided.collect()
    }

    /// Fails, with the host's name, if a host's page cache may not be emptied.
    pub(crate) fn may_drop_caches(&self) -> Result {
        let hosts = 0..self.agents.hellos.len();
        let orders = hosts.map(|idx| (idx, ServerOrder::MayDropCaches)).collect();
        self.perform_all(orders).map(drop)
    }

    /// On all hosts at once. Fails, with the host's name, if one could not be emptied.
    pub(crate) fn drop_caches(&self) -> Result<Vec<EventKind>> {
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
