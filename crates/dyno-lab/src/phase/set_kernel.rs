//! Changes kernel settings for a trial before its servers come up.

use dyno_record::EventKind;

use crate::trial::{Trial, TrialError};

/// Changes what the trial's database asks for; the tear-down puts it back.
pub(super) fn set_kernel(trial: &mut Trial<'_, '_>) -> Result<(), TrialError> {
    if trial.deployment.is_simulated() {
        return Ok(());
    }
    let (kernel, wanted) = (trial.lab.keeper.kernel(), &trial.variant.database.kernel);
    kernel.change(wanted)?;
    let settings = kernel.values(wanted.keys().map(String::as_str));
    trial.event(EventKind::KernelSet { settings })
}
