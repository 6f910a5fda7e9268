//! Sets the limits of volumes before the first step and lifts them before the audit: only measurements are
//! limited.

use dyno_record::EventKind;

use crate::trial::{Trial, TrialError};
use crate::volume::{MadeVolume, VolumeAct};

/// Binds the limit of each volume. What filling has left in the page cache is on the device first.
pub(super) fn limit(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    for (volume, processes) in volumes(trial) {
        volume.act(VolumeAct::Bind, &processes)?;
        let words = volume.limit.words();
        trial.limited(&volume, words)?;
    }
    Ok(())
}

pub(super) fn lift(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    for (volume, _) in volumes(trial) {
        volume.act(VolumeAct::Lift, &[])?;
        trial.limited(&volume, None)?;
    }
    Ok(())
}

/// The volumes with limits, each with the processes of its member's server.
fn volumes(trial: &Trial<'_, '_>) -> Vec<(MadeVolume, Vec<i32>)> {
    let members = trial.deployment.members.iter();
    let all = members.flat_map(|member| {
        let server = member.instance.as_ref().and_then(|instance| instance.server());
        let processes = server.map(|server| server.processes()).unwrap_or_default();
        member.volumes.iter().map(move |volume| (volume.clone(), processes.clone()))
    });
    all.filter(|(volume, _)| volume.is_limited()).collect()
}

impl Trial<'_, '_> {
    fn limited(&mut self, volume: &MadeVolume, limit: Option<String>) -> Result<(), TrialError> {
        let volume = volume.name.clone();
        self.event(EventKind::VolumeLimited { volume, limit })
    }
}
