//! Runs one trial, and records its end.

use dyno_database::Products;
use dyno_model::WorkloadStep;
use dyno_record::{Canary, EventKind, RunWriter, TrialPlan, TrialSummary, TrialWriter, WriteError};
use dyno_study::{Plan, Product, Variant};
use dyno_workload::MadeWorkload;

use crate::check::check_promotion;
use crate::deployment::is_observed;
use crate::failures::is_disk_full;
use crate::phase::{phases, start_agents};
use crate::trial::{Results, foreign};
use crate::{
    Deployment, EventLog, Failure, Lab, Result, RunOrder, Trial, TrialEnd, TrialError, fail,
    plan_workload,
};

pub(super) fn run(
    lab: &Lab,
    order: &RunOrder<'_>,
    trial: &TrialPlan,
    events: &mut EventLog<'_>,
    record: &mut RunWriter,
) -> Result<TrialEnd, WriteError> {
    let variant = &order.plan.variants[trial.variant];
    let began_unix_ms = lab.clock.unix_millis();
    let mut writer = record.begin_trial(trial, &variant.name)?;
    events.in_trial(
        &mut writer,
        EventKind::TrialBegan {
            trial: trial.number,
            variant: variant.name.clone(),
            repetition: trial.repetition,
        },
    )?;
    let before = has_canary(lab, variant).then(|| canary(lab));
    let mut results = Results::default();
    let end = match perform(lab, order, trial, (&mut results, events, &mut writer)) {
        Ok(()) if results.clean_up_failure.is_some() => TrialEnd::FinishedUncleaned,
        Ok(()) => TrialEnd::Finished,
        Err(TrialError::Record(error)) => return Err(error),
        Err(TrialError::Abandoned) => TrialEnd::Abandoned,
        // What was cut off by the user fails for no other reason.
        Err(_) if lab.abort.is_raised() => TrialEnd::Abandoned,
        Err(TrialError::Failed { message, log }) => failed(lab, &results, variant, &message, &log),
    };
    let Some(outcome) = end.outcome() else {
        events.in_trial(&mut writer, end.event(trial.number))?;
        return Ok(end);
    };
    if let Some(message) = &results.clean_up_failure {
        let kind = EventKind::CleanUpFailed { trial: trial.number, message: foreign(message) };
        events.in_trial(&mut writer, kind)?;
    }
    let may_go_well = results.may_go_well();
    let summary = results.into_summary(trial, outcome, (began_unix_ms, 0), None);
    let (end, mut summary) = checked(&writer, (end, summary), may_go_well);
    events.in_trial(&mut writer, end.event(trial.number))?;
    summary.ended_unix_ms = lab.clock.unix_millis();
    summary.canary = before.map(|before_s| Canary { before_s, after_s: canary(lab) });
    writer.finish(summary)?;
    Ok(end)
}

/// A trial that would make the run unreadable has failed, without what it measured.
fn checked(
    writer: &TrialWriter,
    (end, summary): (TrialEnd, TrialSummary),
    may_go_well: bool,
) -> (TrialEnd, TrialSummary) {
    let Err(why) = writer.check(&summary) else { return (end, summary) };
    let end = match end {
        TrialEnd::Failed(failure) => TrialEnd::Failed(failure),
        _ => {
            let (message, was_deployed) = (foreign(&why), !summary.server.version.is_empty());
            TrialEnd::Failed(Failure { message, log: Vec::new(), was_deployed, may_go_well })
        }
    };
    let summary = TrialSummary {
        number: summary.number,
        variant: summary.variant,
        repetition: summary.repetition,
        block: summary.block,
        outcome: end.outcome().unwrap_or(summary.outcome),
        began_unix_ms: summary.began_unix_ms,
        server: summary.server,
        members: summary.members,
        ..TrialSummary::default()
    };
    (end, summary)
}

/// Not if the trial is simulated, or the lab does not check the host. What is only observed is not disturbed by work of
/// Dyno's.
fn has_canary(lab: &Lab, variant: &Variant) -> bool {
    let is_simulated = match &variant.database.product {
        Product::Private(name) => {
            lab.products.spec(name).is_some_and(|product| product.is_simulated)
        }
        Product::Url(_) => false,
    };
    lab.checks_host && !is_simulated && !is_observed(variant)
}

/// Seconds of a small fixed piece of work: before and after each trial, they show whether the host
/// changed speed.
fn canary(lab: &Lab) -> f64 {
    dyno_load::canary(lab.clock.as_ref()).as_secs_f64()
}

fn perform(
    lab: &Lab,
    order: &RunOrder<'_>,
    planned: &TrialPlan,
    (results, events, writer): (&mut Results, &mut EventLog<'_>, &mut TrialWriter),
) -> Result {
    let variant = &order.plan.variants[planned.variant];
    let workload = plan_workload(&lab.catalog, order.plan, variant)?;
    let own = workload.steps().to_vec();
    check_steps(order.plan, &own)?;
    check_promotion(order.plan, variant, &*workload)?;
    let agents = order.design.generators.as_ref().map(start_agents);
    let phases: Vec<_> = agents.into_iter().chain(phases(order.plan, variant, &own)).collect();
    let mut deployment = Deployment::of(lab.basis(order.design), variant)?;
    let workload = MadeWorkload::new(workload);
    deployment.leave_untouched(&workload);
    let mut trial = Trial {
        lab,
        order,
        planned,
        variant,
        workload,
        deployment,
        copies: Vec::new(),
        generators: None,
        results,
        events,
        writer,
    };
    let result = trial.run(&phases);
    let members = trial.deployment.members.iter().map(|member| member.facts.clone());
    trial.results.summary.members = members.collect();
    result
}

/// Refuses steps of a workload that are not those of the plan.
fn check_steps(plan: &Plan, own: &[WorkloadStep]) -> Result {
    // The workload has no part in steps of a job that runs alone, and these are called after the job.
    if plan.steps.iter().all(|step| !step.has_load) {
        return Ok(());
    }
    let planned = plan.steps.iter().map(|step| step.name.as_str());
    if own.is_empty() || planned.eq(own.iter().map(|step| step.name.as_ref())) {
        return Ok(());
    }
    fail("the workload's steps differ from those of the plan")
}

fn failed(lab: &Lab, results: &Results, variant: &Variant, why: &str, log: &[String]) -> TrialEnd {
    let volumes: Vec<String> = variant.volumes().into_iter().map(|volume| volume.name).collect();
    let advice = advice(&lab.products, &volumes, log, why);
    let message = foreign(&format!("{why}{advice}"));
    let log: Vec<String> = log.iter().map(|line| foreign(line)).collect();
    let (was_deployed, may_go_well) = (results.was_deployed(), results.may_go_well());
    TrialEnd::Failed(Failure { message, log, was_deployed, may_go_well })
}

/// Advice if the message or the server's log reports a full disk; `volumes` are the trial's.
fn advice(products: &Products, volumes: &[String], log: &[String], message: &str) -> String {
    if !is_disk_full(products, log, message) {
        return String::new();
    }
    if volumes.is_empty() {
        return "; the disk with the server's data is full: free some space, use fewer rows, or put \
                private servers on another disk with `--data-folder` (in a study: `data_folder`)"
            .to_owned();
    }
    format!("; volume {} is full: give it a larger `size`, or use fewer rows", volumes.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_gets_advice() {
        let check = |message: &str, log: &str, is_full: bool| {
            let log = [log.to_owned()];
            let found = advice(&crate::machine::products(), &[], &log, message);
            assert_eq!(found.contains("free some space"), is_full, "{message}, {log:?}: {found}");
            let volumes = ["small".to_owned(), "logs".to_owned()];
            let found = advice(&crate::machine::products(), &volumes, &log, message);
            let is_said = found.contains("volume small or logs is full: give it a larger `size`");
            assert_eq!(is_said, is_full, "{message}, {log:?}: {found}");
        };
        check("populating t: The table 't' is full (1114)", "", true);
        check("it ended", "PANIC:  could not write to file: No space left on device", true);
        check("populating t: database or disk is full (SQLITE_FULL)", "", true);
        check("gone", "InnoDB: preallocating 58720256 bytes failed with error 28", true);
        check("The table 't' has no index", "disk usage is fine", false);
    }
}
