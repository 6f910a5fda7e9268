//! Volumes on hosts: made, limited and measured by the agent of the server whose data lie on them.

use std::sync::Arc;

use dyno_host::VolumeSpec;
use dyno_record::PlaceFacts;

use super::server::ServerHosts;
use crate::agent::message::{ProvideOrder, ServerDone, ServerOrder};
use crate::trial::TrialError;
use crate::volume::MadeVolume;

impl ServerHosts {
    /// Has the agents of hosts make places for the data of their servers, all at once: volumes of these specifications for
    /// data and for logs, or their folders. Returns what is known of each place, with its volumes.
    ///
    /// # Errors
    ///
    /// One cannot be made; the message names its host.
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
