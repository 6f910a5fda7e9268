//! Volumes on hosts: made, limited and measured by the agent of the server whose data lie on them.

use std::sync::Arc;

use dyno_host::{Dips, IoLimit, VolumeSpec, VolumeUsage};
use dyno_record::PlaceFacts;
use dyno_units::Nanoseconds;

use super::server::{LOOK_LIMIT, ServerHosts, out_of_turn};
use crate::agent::message::{ProvideOrder, ServerDone, ServerOrder};
use crate::run::Lab;
use crate::trial::TrialError;

/// How long making, limiting or measuring volumes may take: what was written is on the device first.
const VOLUME_LIMIT: Nanoseconds = Nanoseconds::from_secs(600);

#[derive(Clone)]
pub(crate) struct HostedVolume {
    hosts: Arc<ServerHosts>,
    idx: usize,
    /// Its number there: of the data, then of the logs.
    number: usize,
    /// Its name in the study, and that of its host: `fast on sql1`.
    name: String,
    limit: IoLimit,
    dips: Option<Dips>,
}

impl ServerHosts {
    /// Has the agents of hosts make places for the data of their servers, all at once: volumes of these specifications for
    /// data and for logs, or their folders. Returns what is known of each place, with its volumes.
    ///
    /// # Errors
    ///
    /// One cannot be made; the message names its host.
    pub(crate) fn provide(
        self: &Arc<Self>,
        lab: &Lab,
        hosts: &[usize],
        (data, logs): (Option<&VolumeSpec>, Option<&VolumeSpec>),
    ) -> Result<Vec<(PlaceFacts, Vec<HostedVolume>)>, TrialError> {
        let order = ProvideOrder {
            data: data.cloned(),
            logs: logs.cloned(),
            data_folder: self.data_folder.clone(),
        };
        let provide = |idx: &usize| (*idx, ServerOrder::Provide(Box::new(order.clone())));
        let done = self.ordered(lab, hosts.iter().map(provide).collect(), VOLUME_LIMIT)?;
        let provided = hosts.iter().zip(done).map(|(&idx, done)| {
            let ServerDone::Provided(facts) = done else {
                return Err(out_of_turn(&self.channels[idx]));
            };
            let volume = |(number, spec): (usize, &VolumeSpec)| HostedVolume {
                hosts: Arc::clone(self),
                idx,
                number,
                name: format!("{} on {}", spec.name, self.names()[idx]),
                limit: spec.limit,
                dips: spec.dips,
            };
            let volumes = data.into_iter().chain(logs).enumerate().map(volume);
            Ok((*facts, volumes.collect()))
        });
        provided.collect()
    }
}

impl HostedVolume {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn limit(&self) -> &IoLimit {
        &self.limit
    }

    pub(crate) fn dips(&self) -> Option<&Dips> {
        self.dips.as_ref()
    }

    pub(crate) fn set_limit(&self, binds: bool) -> Result<(), TrialError> {
        let order = ServerOrder::Limit { volume: self.number, binds };
        self.hosts.in_any_case(self.idx, order, VOLUME_LIMIT)?;
        Ok(())
    }

    pub(crate) fn dip(&self, is_lower: bool) -> Result<(), TrialError> {
        let order = ServerOrder::Dip { volume: self.number, is_lower };
        self.hosts.in_any_case(self.idx, order, LOOK_LIMIT)?;
        Ok(())
    }

    pub(crate) fn usage(&self, lab: &Lab) -> Result<VolumeUsage, TrialError> {
        let order = vec![(self.idx, ServerOrder::Measure)];
        match self.hosts.ordered(lab, order, VOLUME_LIMIT)?.into_iter().next() {
            Some(ServerDone::Measured(usage)) => Ok(*usage),
            _ => Err(out_of_turn(&self.hosts.channels[self.idx])),
        }
    }
}
