//! Volumes made, limited and measured by the agent whose server has its data on them.

use std::sync::Arc;

use dyno_host::VolumeSpec;
use dyno_record::PlaceFacts;

use super::server::ServerHosts;
use crate::agent::message::{ProvideOrder, ServerDone, ServerOrder};
use crate::trial::TrialError;
use crate::volume::MadeVolume;

impl ServerHosts {
    /// Makes places for servers' data on all hosts at once: volumes for data and logs, or folders. Returns each place
    /// with its volumes. Fails, with the host's name, if one cannot be made.
    pub(crate) fn provide(
        self: &Arc<Self>,
        hosts: &[usize],
        [data, logs]: [Option<&VolumeSpec>; 2],
    ) -> Result<Vec<(PlaceFacts, Vec<MadeVolume>)>, TrialError> {
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
            let volume = |(spec, number)| MadeVolume::there(spec, (self, idx), number);
            Ok((*facts, volumes.map(volume).collect()))
        });
        provided.collect()
    }
}
