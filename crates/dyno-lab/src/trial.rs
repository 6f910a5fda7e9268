//! Runs the phases of a trial and keeps their results.

use std::collections::BTreeMap;

use dyno_database::{CatalogError, DeployError, Products, Server};
use dyno_host::KeeperError;
use dyno_load::LoadError;
use dyno_model::WorkloadStep;
use dyno_record::{
    AuditRow, Canary, DataSet, EventKind, MemberFacts, MemberRole, RunOff, RunWriter, Settled,
    StepSummary, TrialOutcome, TrialPlan, TrialSummary, TrialWriter, WriteError,
};
use dyno_study::{Plan, Variant};
use dyno_units::{Metric, Reading, clean_text, redact_secrets, redact_tokens};

use dyno_workload::{AuditTotals, ConnectError, MadeWorkload, StatementError, Workload};
use serde::{Deserialize, Serialize};

use crate::canary::HostCanary;
use crate::datasets::Staging;
use crate::deployment::Deployment;
use crate::events::EventLog;
use crate::failures::{Failure, is_disk_full};
use crate::hosts::Agents;
use crate::manifest::plan_workload;
use crate::phase::{DoneThere, Phase, phases, start_agents};
use crate::run::{Lab, RunOrder};

const LOG_LINES: usize = 30;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrialEnd {
    Finished,
    /// The same, but what was made for it could not be removed.
    FinishedUncleaned,
    Failed(Failure),
    /// The user stopped it; it is not recorded as ended.
    Abandoned,
}

#[derive(Debug)]
pub(crate) enum TrialError {
    /// Something outside went wrong: the trial is marked failed and the next one runs.
    Failed {
        message: String,
        log: Vec<String>,
    },
    Abandoned,
    /// The record cannot be written: the run ends.
    Record(WriteError),
}

impl TrialError {
    pub(crate) fn new(message: impl Into<String>) -> TrialError {
        TrialError::Failed { message: message.into(), log: Vec::new() }
    }
}

impl From<DeployError> for TrialError {
    fn from(error: DeployError) -> TrialError {
        TrialError::Failed { message: error.message, log: error.log }
    }
}

impl From<TrialError> for DeployError {
    fn from(error: TrialError) -> DeployError {
        match error {
            TrialError::Failed { message, log } => DeployError { message, log },
            _ => DeployError::new("the order was not followed"),
        }
    }
}

impl From<WriteError> for TrialError {
    fn from(error: WriteError) -> TrialError {
        TrialError::Record(error)
    }
}

macro_rules! failed_by {
    ($($error:ty),*) => {$(
        impl From<$error> for TrialError {
            fn from(error: $error) -> TrialError {
                TrialError::new(error.to_string())
            }
        }
    )*};
}

failed_by!(CatalogError, StatementError, ConnectError, LoadError, KeeperError);

impl From<anyhow::Error> for TrialError {
    fn from(error: anyhow::Error) -> TrialError {
        TrialError::new(format!("{error:#}"))
    }
}

/// What a trial has come to so far; what is there is kept when it fails.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) members: Vec<MemberFacts>,
    pub(crate) data: DataSet,
    pub(crate) steps: Vec<StepSummary>,
    /// The wait before the next step.
    pub(crate) settled: Option<Settled>,
    pub(crate) did: AuditTotals,
    pub(crate) done_there: Vec<DoneThere>,
    pub(crate) audit: Vec<AuditRow>,
    pub(crate) run_off: Option<RunOff>,
    pub(crate) probes_cpu_s: f64,
    pub(crate) probes_wall_s: f64,
    pub(crate) meanings: BTreeMap<String, Reading>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) clean_up_failure: Option<String>,
}

impl Results {
    fn was_deployed(&self) -> bool {
        self.members.iter().any(|member| !member.server.version.is_empty())
    }

    /// The summary of a trial that has ended; `times` are its begin and end, Unix milliseconds.
    pub(crate) fn into_summary(
        mut self,
        trial: &TrialPlan,
        outcome: TrialOutcome,
        (began_unix_ms, ended_unix_ms): (u64, u64),
        canary: Option<Canary>,
    ) -> TrialSummary {
        // What is said of the trial's server is said of the primary member, once.
        let primary = self.members.iter_mut().find(|member| member.role == MemberRole::Primary);
        let server = primary.map(|member| std::mem::take(&mut member.server)).unwrap_or_default();
        TrialSummary {
            number: trial.number,
            variant: trial.variant,
            repetition: trial.repetition,
            block: trial.block,
            outcome,
            began_unix_ms,
            ended_unix_ms,
            server,
            members: self.members,
            host: None,
            data: self.data,
            steps: self.steps,
            run_off: self.run_off,
            audit: self.audit,
            canary,
            meanings: self.meanings,
            metrics: self.metrics,
            probes_cpu_s: self.probes_cpu_s,
            probes_wall_s: self.probes_wall_s,
        }
    }
}

/// Runs one trial. An error is one of the record.
pub(crate) fn run(
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
    let canary = HostCanary::begin(lab, variant);
    let mut results = Results::default();
    let result = match perform(lab, order, trial, (&mut results, events, &mut writer)) {
        Err(TrialError::Record(error)) => Err(TrialError::Record(error)),
        // What was cut off by the user fails for no other reason.
        Err(_) if lab.abort.is_raised() => Err(TrialError::Abandoned),
        result => result,
    };
    let (outcome, end) = match result {
        Ok(()) if results.clean_up_failure.is_some() => {
            (TrialOutcome::Finished, TrialEnd::FinishedUncleaned)
        }
        Ok(()) => (TrialOutcome::Finished, TrialEnd::Finished),
        Err(TrialError::Record(error)) => return Err(error),
        Err(TrialError::Abandoned) => {
            let kind = EventKind::TrialAbandoned { trial: trial.number };
            events.in_trial(&mut writer, kind)?;
            return Ok(TrialEnd::Abandoned);
        }
        Err(TrialError::Failed { message, log }) => failed(lab, &results, variant, &message, &log),
    };
    announce_end(trial, &outcome, results.clean_up_failure.as_deref(), events, &mut writer)?;
    let ended_unix_ms = lab.clock.unix_millis();
    let times = (began_unix_ms, ended_unix_ms);
    writer.finish(results.into_summary(trial, outcome, times, canary.end(lab)))?;
    Ok(end)
}

fn perform(
    lab: &Lab,
    order: &RunOrder<'_>,
    planned: &TrialPlan,
    (results, events, writer): (&mut Results, &mut EventLog<'_>, &mut TrialWriter),
) -> Result<(), TrialError> {
    let variant = &order.plan.variants[planned.variant];
    let workload = plan_workload(&lab.catalog, order.plan, variant)?;
    let own = workload.steps().to_vec();
    check_steps(order.plan, &own)?;
    check_promotion(order.plan, variant, &*workload)?;
    let agents = order.design.generators.as_ref().map(start_agents);
    let phases: Vec<_> = agents.into_iter().chain(phases(order.plan, variant, &own)).collect();
    let mut deployment = Deployment::of(lab.basis(), order.design, variant)?;
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
    trial.results.members = trial.deployment.recorded();
    result
}

/// Refuses steps of a workload that are not those of the plan.
fn check_steps(plan: &Plan, own: &[WorkloadStep]) -> Result<(), TrialError> {
    // The workload has no part in steps of a job that runs alone, and these are called after the job.
    if plan.steps.iter().all(|step| !step.has_load) {
        return Ok(());
    }
    let planned = plan.steps.iter().map(|step| step.name.as_str());
    if own.is_empty() || planned.eq(own.iter().map(|step| step.name.as_ref())) {
        return Ok(());
    }
    Err(TrialError::new("the workload's steps differ from those of the plan"))
}

/// Refuses to promote a replica where it could not be told what was lost.
pub(crate) fn check_promotion(
    plan: &Plan,
    variant: &Variant,
    workload: &dyn Workload,
) -> Result<(), TrialError> {
    let Some(fault) = variant.fault().filter(|fault| fault.promotes) else { return Ok(()) };
    let refused =
        |why: &str| Err(TrialError::new(format!("the fault {} cannot promote: {why}", fault.name)));
    if plan.steps.len() > 1 {
        return refused(
            "after the first step, the primary is another server; give the study one step, with one number \
             of clients or one rate",
        );
    }
    if !workload.counts_commits() {
        return refused(&format!(
            "how many transactions are lost cannot be counted in the tables of the workload {}; use tpcb, \
             key-order or oltp_insert",
            workload.name()
        ));
    }
    Ok(())
}

fn failed(
    lab: &Lab,
    results: &Results,
    variant: &Variant,
    message: &str,
    log: &[String],
) -> (TrialOutcome, TrialEnd) {
    let volumes: Vec<String> = variant.volumes().into_iter().map(|volume| volume.name).collect();
    let advice = advice(&lab.products, &volumes, log, message);
    let message = foreign(&format!("{message}{advice}"));
    let log: Vec<String> = log.iter().map(|line| foreign(line)).collect();
    let was_deployed = results.was_deployed();
    let failure = Failure { message: message.clone(), log: log.clone(), was_deployed };
    (TrialOutcome::Failed { message, server_log: log }, TrialEnd::Failed(failure))
}

fn announce_end(
    trial: &TrialPlan,
    outcome: &TrialOutcome,
    clean_up_failure: Option<&str>,
    events: &mut EventLog<'_>,
    writer: &mut TrialWriter,
) -> Result<(), WriteError> {
    if let Some(message) = clean_up_failure {
        let kind = EventKind::CleanUpFailed { trial: trial.number, message: foreign(message) };
        events.in_trial(writer, kind)?;
    }
    let kind = match outcome {
        TrialOutcome::Finished => EventKind::TrialFinished { trial: trial.number },
        TrialOutcome::Failed { message, server_log } => EventKind::TrialFailed {
            trial: trial.number,
            message: message.clone(),
            server_log: server_log.clone(),
        },
    };
    events.in_trial(writer, kind)
}

pub(crate) struct Trial<'a, 't> {
    pub(crate) lab: &'a Lab,
    pub(crate) order: &'a RunOrder<'a>,
    pub(crate) planned: &'a TrialPlan,
    pub(crate) variant: &'a Variant,
    pub(crate) workload: MadeWorkload,
    pub(crate) deployment: Deployment,
    /// Copies of the primary's data for replicas that have not started yet.
    pub(crate) copies: Vec<Staging>,
    /// The agents that generate its load; none where this process does.
    pub(crate) generators: Option<Agents>,
    pub(crate) results: &'a mut Results,
    pub(crate) events: &'a mut EventLog<'t>,
    pub(crate) writer: &'a mut TrialWriter,
}

impl Trial<'_, '_> {
    /// Runs the phases in order. After the first one that fails, only those that run in every case.
    fn run(&mut self, phases: &[Phase]) -> Result<(), TrialError> {
        let mut result = Ok(());
        for phase in phases {
            if result.is_err() && !phase.runs_after_failure {
                continue;
            }
            if let Err(TrialError::Failed { message, .. }) = &result {
                let announced = self.announce_wait(message);
                result = announced.and(result);
            }
            let outcome = self.run_phase(phase);
            result = result.and(outcome.map_err(|error| self.explain(error)));
        }
        result
    }

    fn run_phase(&mut self, phase: &Phase) -> Result<(), TrialError> {
        let name = phase.name.clone();
        let began = self.lab.clock.now();
        let announced = self.event(EventKind::TrialPhaseBegan { phase: name.clone() });
        let outcome = match (&announced, phase.runs_after_failure) {
            (_, true) => (phase.run)(self),
            (Ok(()), false) => self.check_abort().and_then(|()| (phase.run)(self)),
            (Err(_), false) => Ok(()),
        };
        let ended = self.event(EventKind::TrialPhaseEnded {
            phase: name,
            took_s: self.lab.clock.now().saturating_sub(began).as_secs_f64(),
            is_done: outcome.is_ok(),
        });
        announced.and(outcome).and(ended)
    }

    pub(crate) fn event(&mut self, kind: EventKind) -> Result<(), TrialError> {
        Ok(self.events.in_trial(self.writer, kind)?)
    }

    pub(crate) fn note(&mut self, message: String) -> Result<(), TrialError> {
        self.event(EventKind::Noted { message })
    }

    /// Before waiting for servers by URL: one that no longer answers takes its time.
    fn announce_wait(&mut self, failure: &str) -> Result<(), TrialError> {
        let servers = self.deployment.to_drop_from();
        // Whoever has stopped the trial knows why it ends.
        if servers.is_empty() || self.lab.abort.is_raised() {
            return Ok(());
        }
        let servers = servers.join(" and ");
        self.note(foreign(&format!(
            "the trial has failed: {failure}; waiting for {servers} to drop Dyno's tables; Ctrl-C ends the wait"
        )))
    }

    pub(crate) fn check_abort(&self) -> Result<(), TrialError> {
        if self.lab.abort.is_raised() { Err(TrialError::Abandoned) } else { Ok(()) }
    }

    /// Says of a failure what the servers say: which one is down, and the last lines of its log.
    fn explain(&mut self, error: TrialError) -> TrialError {
        let TrialError::Failed { message, log } = error else { return error };
        let message = match self.deployment.down() {
            // That is what failed.
            Some(why) if message.contains(&why) => message,
            Some(why) => format!("the server went down: {why}; then: {message}"),
            None => message,
        };
        let log = if log.is_empty() { self.deployment.log_tail(LOG_LINES) } else { log };
        TrialError::Failed { message, log }
    }
}

/// Bytes of logs among the server's data, as far as its files tell.
pub(crate) fn log_bytes(server: &dyn Server) -> Option<u64> {
    server.data_files()?.log_bytes()
}

/// A text in which a server or its log may be quoted, as it may be shown and kept.
pub(crate) fn foreign(text: &str) -> String {
    clean_text(&redact_tokens(&redact_secrets(text)))
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
    fn what_a_server_said_is_kept_without_secrets_and_controls() {
        let check = |text: &str, expected: &str| assert_eq!(foreign(text), expected);
        check("FATAL:\x1b[31m no mysql://me:pw@h\n", "FATAL:\u{fffd}[31m no mysql://me:***@h ");
        let token = "3c23f39a0d2e4b5f8a7c6d5e4f3a2b1c";
        check(
            &format!("connecting to group '{token}', peer '10.0.0.1:4567'"),
            "connecting to group '***', peer '10.0.0.1:4567'",
        );
        assert!(foreign(&"x".repeat(1 << 20)).len() < 5000);
    }

    #[test]
    fn a_disk_that_is_full_gets_advice() {
        let check = |message: &str, log: &str, is_full: bool| {
            let log = [log.to_owned()];
            let found = advice(&crate::products(), &[], &log, message);
            assert_eq!(found.contains("free some space"), is_full, "{message}, {log:?}: {found}");
            let volumes = ["small".to_owned(), "logs".to_owned()];
            let found = advice(&crate::products(), &volumes, &log, message);
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
