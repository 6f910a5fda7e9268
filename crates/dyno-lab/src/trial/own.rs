//! Steps that the workload itself defines.

use dyno_model::WorkloadStep;
use dyno_record::{EventKind, StepSummary};
use dyno_workload::Workload;

use super::{Stage, TrialError};

impl Stage<'_, '_> {
    /// The variant's own steps; none where the plan's loads are its steps.
    pub(super) fn own_steps(
        &self,
        workload: &dyn Workload,
    ) -> Result<Vec<WorkloadStep>, TrialError> {
        let plan = self.order.plan;
        let steps = workload.steps().to_vec();
        if steps.is_empty() {
            return Ok(steps);
        }
        let planned = plan.steps.iter().map(|step| step.name.as_str());
        if !planned.eq(steps.iter().map(|step| step.name.as_ref())) {
            let message = "the workload's steps differ from those of the plan";
            return Err(TrialError::new(message));
        }
        Ok(steps)
    }

    /// Tells that a step ran out of its longest time before all was done, or it was steady.
    pub(super) fn tell_unfinished(
        &mut self,
        step: usize,
        summary: &StepSummary,
    ) -> Result<(), TrialError> {
        let planned = &self.order.plan.steps[step];
        let name = &planned.name;
        let message = match summary.ended_by.as_deref() {
            Some("limit") => {
                let limit = self.own.get(step).map_or(planned.duration, |own| own.limit);
                format!(
                    "step {name} was ended at its time limit, {limit}, before its work was done: \
                     the tables are not as the workload intends, and its duration is not a result"
                )
            }
            Some("unsteady") => format!(
                "step {name} was ended at its time limit, {}, before its throughput was steady",
                planned.duration
            ),
            _ => return Ok(()),
        };
        Ok(self.telling.of_trial(self.writer, EventKind::Noted { message })?)
    }
}
