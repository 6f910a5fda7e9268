//! The volumes of an agent's server: made before it starts, and removed when it has stopped, or with the agent.

use std::sync::Arc;

use dyno_database::{DeployError, Place};
use dyno_host::{Keeper, Volume, VolumeUsage};
use dyno_record::PlaceFacts;
use dyno_units::Clock;

use super::message::ProvideOrder;
use crate::deployment::recorded_place;

/// The place of an agent's server. What was made for it is removed with this.
pub(super) struct Provided {
    place: Place,
    /// That of the data first.
    volumes: Vec<Arc<Volume>>,
}

impl Provided {
    /// Makes the volumes of an order.
    ///
    /// # Errors
    ///
    /// One cannot be made; what was made is removed again.
    pub(super) fn make(
        keeper: &Arc<Keeper>,
        order: &ProvideOrder,
        clock: &Arc<dyn Clock>,
    ) -> Result<Provided, DeployError> {
        let mut made = Provided { place: Place::under(keeper), volumes: Vec::new() };
        if let Some(spec) = &order.data {
            let volume = Arc::new(Volume::make(keeper, spec, clock)?);
            made.place = Place::on(keeper, volume.clone());
            made.volumes.push(volume);
        }
        if let Some(spec) = &order.logs {
            let volume = Arc::new(Volume::make(keeper, spec, clock)?);
            made.place = made.place.clone().with_logs_on(volume.clone());
            made.volumes.push(volume);
        }
        Ok(made)
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn facts(&self) -> PlaceFacts {
        recorded_place(self.place.facts())
    }

    /// The disk that data lie on, if it is a volume's.
    pub(super) fn data_disk(&self) -> Option<String> {
        self.volumes.first()?.disk_name()
    }

    /// Binds the limit of a volume for these processes of the server; lifts it if there are none.
    ///
    /// # Errors
    ///
    /// There is no such volume, or the kernel refuses.
    pub(super) fn limit(
        &self,
        volume: usize,
        processes: Option<Vec<i32>>,
    ) -> Result<(), DeployError> {
        let volume = self.volume(volume)?;
        match processes {
            Some(processes) => volume.bind_limit(&processes)?,
            None => volume.lift_limit()?,
        }
        Ok(())
    }

    /// Lowers the limit of a volume to that of its dips, or raises it again.
    ///
    /// # Errors
    ///
    /// There is no such volume, or the kernel refuses.
    pub(super) fn dip(&self, volume: usize, is_lower: bool) -> Result<(), DeployError> {
        Ok(self.volume(volume)?.dip(is_lower)?)
    }

    fn volume(&self, volume: usize) -> Result<&Volume, DeployError> {
        let volume = self.volumes.get(volume);
        Ok(volume.ok_or_else(|| DeployError::new("there is no such volume"))?)
    }

    /// What the data take.
    ///
    /// # Errors
    ///
    /// They lie on no volume, or it cannot be read.
    pub(super) fn usage(&self) -> Result<VolumeUsage, DeployError> {
        Ok(self.volume(0)?.usage()?)
    }

    /// Removes what was made.
    ///
    /// # Errors
    ///
    /// Something is left.
    pub(super) fn release(mut self) -> Result<(), DeployError> {
        self.volumes.clear();
        Ok(self.place.release()?)
    }
}

impl Drop for Provided {
    fn drop(&mut self) {
        // What stays is removed by the guard, or by the next agent.
        if !self.volumes.is_empty() {
            let _ = self.place.release();
        }
    }
}
