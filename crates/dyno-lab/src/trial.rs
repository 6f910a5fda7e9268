//! One trial, from deploy to teardown. Only sequences; each phase is its own file.

mod find;
mod own;
mod run_off;
mod settle;

use std::cell::Cell;
use std::collections::BTreeMap;

use dyno_database::{CatalogError, DeployError, Products};
use dyno_load::LoadError;
use dyno_model::{Load, WorkloadStep};
use dyno_record::{
    AuditRow, Canary, DataSet, EventKind, RunOff, RunWriter, ServerFacts, StepSummary,
    TrialOutcome, TrialPlan, TrialSummary, TrialWriter, WriteError,
};
use dyno_study::{LoadLevel, Variant};
use dyno_units::{Nanoseconds, Reading, clean_text, redact_secrets};
use dyno_workload::{AuditTotals, ConnectError, MadeWorkload, StatementError};

use crate::audit::{audit, failure};
use crate::canary::Watchbird;
use crate::data::log_bytes;
use crate::deploy::Site;
use crate::drive::{Drive, Length, StepEnd};
use crate::failures::{Failure, is_disk_full};
use crate::manifest::plan_workload;
use crate::run::{Lab, RunOrder, sleep};
use crate::telling::Telling;

/// Lines of a server's log that a failed trial keeps.
const LOG_LINES: usize = 30;

/// How long a private server may take to answer after the last step.
const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrialEnd {
    /// All its steps were done.
    Finished,
    /// The same, but what was made for it could not be removed.
    FinishedUncleaned,
    /// It is recorded as failed.
    Failed(Failure),
    /// The user stopped it; it is not recorded as ended.
    Abandoned,
}

/// Why a trial could not be done.
#[derive(Debug)]
pub(crate) enum TrialError {
    /// Something outside went wrong: the trial is marked failed and the next one runs.
    Failed { message: String, log: Vec<String> },
    /// The user wants to stop.
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

failed_by!(CatalogError, StatementError, ConnectError, LoadError);

/// What a trial has come to so far; what is there is kept when it fails.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) server: ServerFacts,
    pub(crate) data: DataSet,
    steps: Vec<StepSummary>,
    /// What the clients did in all steps.
    did: AuditTotals,
    audit: Vec<AuditRow>,
    run_off: Option<RunOff>,
    probes_cpu_s: f64,
    probes_wall_s: f64,
    meanings: BTreeMap<String, Reading>,
    /// Why what was made for it could not be removed.
    clean_up_failure: Option<String>,
}

impl Progress {
    /// Adds what one load cost and did; returns its summary.
    fn take(&mut self, end: StepEnd) -> StepSummary {
        self.did.add(&end.did);
        self.probes_cpu_s += end.probes.cpu.as_secs_f64();
        self.probes_wall_s += end.probes.wall.as_secs_f64();
        self.meanings.extend(end.meanings);
        end.summary
    }

    /// The summary of a trial that has ended; `times` are its begin and end, Unix milliseconds.
    fn into_summary(
        self,
        trial: &TrialPlan,
        outcome: TrialOutcome,
        (began_unix_ms, ended_unix_ms): (u64, u64),
        canary: Option<Canary>,
    ) -> TrialSummary {
        TrialSummary {
            number: trial.number,
            variant: trial.variant,
            repetition: trial.repetition,
            block: trial.block,
            outcome,
            began_unix_ms,
            ended_unix_ms,
            server: self.server,
            data: self.data,
            steps: self.steps,
            run_off: self.run_off,
            audit: self.audit,
            canary,
            meanings: self.meanings,
            metrics: Vec::new(),
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
    telling: &mut Telling<'_>,
    record: &mut RunWriter,
) -> Result<TrialEnd, WriteError> {
    let variant = &order.plan.variants[trial.variant];
    let began_unix_ms = lab.clock.unix_millis();
    let mut writer = record.begin_trial(trial, &variant.name)?;
    telling.of_trial(
        &mut writer,
        EventKind::TrialBegan {
            trial: trial.number,
            variant: variant.name.clone(),
            repetition: trial.repetition,
        },
    )?;
    let canary = Watchbird::begin(lab, variant);
    let mut progress = Progress::default();
    let own = Vec::new();
    let mut stage = Stage { lab, order, trial, variant, own, telling, writer: &mut writer };
    let result = match stage.bracket(&mut progress) {
        Err(TrialError::Record(error)) => Err(TrialError::Record(error)),
        // What was cut off by the user fails for no other reason.
        Err(_) if lab.abort.is_raised() => Err(TrialError::Abandoned),
        result => result,
    };
    let (outcome, end) = match result {
        Ok(()) if progress.clean_up_failure.is_some() => {
            (TrialOutcome::Finished, TrialEnd::FinishedUncleaned)
        }
        Ok(()) => (TrialOutcome::Finished, TrialEnd::Finished),
        Err(TrialError::Record(error)) => return Err(error),
        Err(TrialError::Abandoned) => {
            let kind = EventKind::TrialAbandoned { trial: trial.number };
            telling.of_trial(&mut writer, kind)?;
            return Ok(TrialEnd::Abandoned);
        }
        Err(TrialError::Failed { message, log }) => failed(lab, &progress, &message, &log),
    };
    announce_end(trial, &outcome, progress.clean_up_failure.as_deref(), telling, &mut writer)?;
    let ended_unix_ms = lab.clock.unix_millis();
    let times = (began_unix_ms, ended_unix_ms);
    writer.finish(progress.into_summary(trial, outcome, times, canary.end(lab)))?;
    Ok(end)
}

/// The outcome of a trial that could not be done, with the end of the server's log.
fn failed(
    lab: &Lab,
    progress: &Progress,
    message: &str,
    log: &[String],
) -> (TrialOutcome, TrialEnd) {
    let message = foreign(&format!("{message}{}", advice(&lab.products, log, message)));
    let log: Vec<String> = log.iter().map(|line| foreign(line)).collect();
    let was_deployed = !progress.server.version.is_empty();
    let failure = Failure { message: message.clone(), log: log.clone(), was_deployed };
    (TrialOutcome::Failed { message, server_log: log }, TrialEnd::Failed(failure))
}

/// Emits the last events of a trial: what could not be removed, and how it ended.
fn announce_end(
    trial: &TrialPlan,
    outcome: &TrialOutcome,
    clean_up_failure: Option<&str>,
    telling: &mut Telling<'_>,
    writer: &mut TrialWriter,
) -> Result<(), WriteError> {
    if let Some(message) = clean_up_failure {
        let kind = EventKind::CleanUpFailed { trial: trial.number, message: foreign(message) };
        telling.of_trial(writer, kind)?;
    }
    let kind = match outcome {
        TrialOutcome::Finished => EventKind::TrialFinished { trial: trial.number },
        TrialOutcome::Failed { message, server_log } => EventKind::TrialFailed {
            trial: trial.number,
            message: message.clone(),
            server_log: server_log.clone(),
        },
    };
    telling.of_trial(writer, kind)
}

/// What all phases of one trial need.
pub(crate) struct Stage<'a, 't> {
    pub(crate) lab: &'a Lab,
    pub(crate) order: &'a RunOrder<'a>,
    trial: &'a TrialPlan,
    pub(crate) variant: &'a Variant,
    /// The steps that the workload itself defines; none where the plan's loads are its steps.
    own: Vec<WorkloadStep>,
    pub(crate) telling: &'a mut Telling<'t>,
    pub(crate) writer: &'a mut TrialWriter,
}

impl<'s> Stage<'s, '_> {
    /// Deploys, does everything, and tears down whatever happened.
    fn bracket(&mut self, progress: &mut Progress) -> Result<(), TrialError> {
        let planned = plan_workload(&self.lab.catalog, self.order.plan, self.variant)
            .map_err(|error| TrialError::new(error.to_string()))?;
        self.own = self.own_steps(planned.as_ref())?;
        let workload = MadeWorkload::new(planned);
        let mut site = self.deploy(&*workload, progress)?;
        let result = self.inside(&mut site, &workload, progress);
        let result = result.map_err(|error| explain(error, &mut site));
        // What was measured stands, whatever becomes of the server and its tables.
        progress.clean_up_failure = site.stop().err().map(|error| error.message);
        result
    }

    fn inside(
        &mut self,
        site: &mut Site,
        workload: &MadeWorkload,
        progress: &mut Progress,
    ) -> Result<(), TrialError> {
        if let Some(server) = site.with_tables() {
            // Again, because a copy of data that is kept was populated by another workload.
            workload.check(server.dialect()).map_err(TrialError::new)?;
        }
        if workload.needs_rows() && !site.with_tables().is_some_and(|server| server.stores_data()) {
            return Err(TrialError::new(
                "the workload works on rows that it has read, and this server stores none; use a \
                 database, or the simulated one with a `store`",
            ));
        }
        for step in 0..self.order.plan.steps.len() {
            if step > 0 {
                self.rest(site)?;
            }
            self.step(site, workload, step, progress)?;
        }
        check_alive(self.lab, site)?;
        if let Site::Real(server) = site {
            progress.data.bytes_after = server.data_bytes();
            progress.data.log_bytes_after = log_bytes(server.as_ref());
        }
        self.run_off(site, progress)?;
        self.audit(site, workload, progress)
    }

    fn rest(&mut self, site: &Site) -> Result<(), TrialError> {
        let length = self.order.plan.rest;
        if matches!(site, Site::Real(_)) && length > Nanoseconds::ZERO {
            let kind = EventKind::Rested { seconds: length.as_secs_f64() };
            self.telling.of_trial(self.writer, kind)?;
            sleep(self.lab, length);
        }
        if self.lab.abort.is_raised() { Err(TrialError::Abandoned) } else { Ok(()) }
    }

    fn step(
        &mut self,
        site: &mut Site,
        workload: &MadeWorkload,
        step: usize,
        progress: &mut Progress,
    ) -> Result<(), TrialError> {
        let order = self.order;
        let settled = self.settle(site, &**workload, step)?;
        let mut summary = match &order.plan.steps[step].load {
            LoadLevel::Search(search) => self.find(site, workload, (step, search), progress)?,
            LoadLevel::Given(load) => self.load(site, workload, (step, load.clone()), progress)?,
            LoadLevel::Own(_) => {
                let load = Load::Roles(self.own[step].roles.clone());
                self.load(site, workload, (step, load), progress)?
            }
        };
        summary.settled = settled;
        self.tell_unfinished(step, &summary)?;
        let ended = EventKind::StepEnded {
            step,
            throughput: crate::drive::throughput(&summary),
            p95_us: crate::drive::p95_us(&summary),
        };
        progress.steps.push(summary);
        self.telling.of_trial(self.writer, ended)?;
        if let Some(why) = progress.steps.last().and_then(dead_end) {
            return Err(TrialError::new(format!("{}: {why}", order.plan.steps[step].name)));
        }
        // Clients that try to connect again and again fail one by one, but no step fails by that.
        if let Site::Real(server) = site
            && server.down().is_some()
        {
            return Err(TrialError::new("the server ended during the step"));
        }
        Ok(())
    }

    /// A step with a load that is known.
    fn load(
        &mut self,
        site: &mut Site,
        workload: &MadeWorkload,
        (step, load): (usize, Load),
        progress: &mut Progress,
    ) -> Result<StepSummary, TrialError> {
        let drive = self.drive(workload, (step, 0), load);
        Ok(progress.take(drive.run(site, self.telling, self.writer)?))
    }

    fn drive<'d>(
        &self,
        workload: &'d MadeWorkload,
        (step, probe): (usize, u32),
        load: Load,
    ) -> Drive<'d>
    where
        's: 'd,
    {
        let has_begun = Cell::new(false);
        let block = self.trial.block;
        let planned = &self.order.plan.steps[step];
        // A variant's own step may have quotas where that of the plan has none.
        let own = self.own.get(step);
        let until_steady =
            planned.until_steady.filter(|_| !own.is_some_and(WorkloadStep::ends_by_quota));
        // The plan has the longest time of all variants.
        let duration = match own {
            Some(own) if until_steady.is_none() => own.limit,
            _ => planned.duration,
        };
        let length = Length { warm_up: planned.warm_up, duration, until_steady };
        Drive {
            lab: self.lab,
            order: self.order,
            variant: self.variant,
            block,
            workload,
            step,
            probe,
            load,
            length,
            has_begun,
        }
    }

    /// Asks the server whether it did what it confirmed, where it has rows.
    fn audit(
        &mut self,
        site: &Site,
        workload: &MadeWorkload,
        progress: &mut Progress,
    ) -> Result<(), TrialError> {
        let Some(server) = site.with_tables() else { return Ok(()) };
        if !server.stores_data() {
            return Ok(());
        }
        let began = self.lab.clock.now();
        let rows = audit(&server.connector(), server.dialect(), workload, &progress.did);
        let kind = EventKind::Audited {
            n_passed: rows.iter().filter(|row| row.pass && !row.is_undecided).count(),
            failed: rows.iter().filter(|row| !row.pass).map(failure).collect(),
            took_s: self.lab.clock.now().saturating_sub(began).as_secs_f64(),
        };
        progress.audit = rows;
        Ok(self.telling.of_trial(self.writer, kind)?)
    }
}

/// A step is not to be trusted if nothing committed in this share of its measured time, at its end …
const DEAD_SHARE: f64 = 1.0 / 3.0;
/// … and in at least so many seconds …
const DEAD_LEAST_S: f64 = 2.0;
/// … which is this many times as long as its slowest transactions but one in a hundred took.
const DEAD_TIMES_P99: f64 = 10.0;

/// Why a step is not to be trusted that had done work and then did none any more: its server hangs, or
/// has gone away. None where work went on, or there was none that could have stopped. A search tries
/// loads that are too high on purpose.
fn dead_end(step: &StepSummary) -> Option<String> {
    let seconds = step.intervals.start_s.iter().zip(&step.intervals.throughput);
    let last = seconds.rev().find(|(_, throughput)| **throughput > 0.0).map(|(start, _)| *start)?;
    // The last second with a commit may have had it at its very end.
    let dead_s = step.measured_s - (last + 1.0).max(0.0);
    let p99_s = crate::drive::response_times(step).value_at_quantile(0.99) as f64 / 1e9;
    let is_dead = step.search.is_none()
        && dead_s >= DEAD_LEAST_S
        && dead_s >= DEAD_SHARE * step.measured_s
        && dead_s >= DEAD_TIMES_P99 * p99_s;
    is_dead.then(|| {
        format!(
            "nothing committed in the last {dead_s:.1} s of {:.1} s, although transactions had \
             committed before; {} attempts were still waiting for an answer at the end",
            step.measured_s,
            step.in_flight_at_end.unwrap_or_default()
        )
    })
}

/// Says of a failure what the server says: that it is down, and the last lines of its log.
pub(crate) fn explain(error: TrialError, site: &mut Site) -> TrialError {
    match (error, site) {
        (TrialError::Failed { message, log }, Site::Real(server)) => {
            let message = match server.down() {
                Some(why) => format!("the server went down: {why}; then: {message}"),
                None => message,
            };
            let log = if log.is_empty() { server.log_tail(LOG_LINES) } else { log };
            TrialError::Failed { message, log }
        }
        (error, _) => error,
    }
}

/// Refuses the steps of a private server that does not answer after the last one: it may have stood
/// still for any part of them, and a client that waits for it when its time is over counts nowhere.
fn check_alive(lab: &Lab, site: &mut Site) -> Result<(), TrialError> {
    let Site::Real(server) = site else { return Ok(()) };
    if server.processes().is_empty() {
        return Ok(());
    }
    let until = lab.clock.now() + ANSWER_LIMIT;
    loop {
        let Err(error) = server.check_alive() else { return Ok(()) };
        // The connections of the last step may still be counted against its limit.
        if server.down().is_some() || lab.clock.now() >= until {
            return Err(error.into());
        }
        sleep(lab, Nanoseconds::from_millis(100));
        if lab.abort.is_raised() {
            return Err(TrialError::Abandoned);
        }
    }
}

/// A text in which a server or its log may be quoted, as it may be shown and kept.
fn foreign(text: &str) -> String {
    clean_text(&redact_secrets(text))
}

/// What to do, where the message or the server's log tells of a disk that is full.
fn advice(products: &Products, log: &[String], message: &str) -> &'static str {
    if is_disk_full(products, log, message) {
        "; the disk with the server's data is full: free some space, use fewer rows, or put \
         private servers on another disk with `--data-folder` (in a study: `data_folder`)"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_said_is_kept_without_secrets_and_controls() {
        let check = |text: &str, expected: &str| assert_eq!(foreign(text), expected);
        check("FATAL:\x1b[31m no mysql://me:pw@h\n", "FATAL:\u{fffd}[31m no mysql://me:***@h ");
        assert!(foreign(&"x".repeat(1 << 20)).len() < 5000);
    }

    #[test]
    fn a_disk_that_is_full_gets_advice() {
        let check = |message: &str, log: &str, is_full: bool| {
            let found = advice(&crate::products(), &[log.to_owned()], message);
            assert_eq!(found.contains("free some space"), is_full, "{message}, {log}: {found}");
        };
        check("populating t: The table 't' is full (1114)", "", true);
        check("it ended", "PANIC:  could not write to file: No space left on device", true);
        check("populating t: database or disk is full (SQLITE_FULL)", "", true);
        check("gone", "InnoDB: preallocating 58720256 bytes failed with error 28", true);
        check("The table 't' has no index", "disk usage is fine", false);
    }

    /// A step whose seconds, one of warm-up before them, have these throughputs.
    fn step(throughput: &[f64], response_ns: u64) -> StepSummary {
        let n = throughput.len();
        let mut times = dyno_record::new_histogram();
        times.record(response_ns).expect("it is within the bounds");
        let times = serde_json::to_value(dyno_record::EncodedHistogram::encode(&times));
        let times = times.expect("it is text");
        let zeros = vec![0.0; n];
        let start_s: Vec<f64> = (0..n).map(|second| second as f64 - 1.0).collect();
        serde_json::from_value(serde_json::json!({
            "step": 0, "measured_s": n as f64 - 1.0, "reads": 0, "writes": 0, "others": 0,
            "kinds": [{"name": "k", "outcomes": {}, "response": times, "service": times}],
            "rows_received": 0, "rows_changed": 0, "warnings": 0, "due": 0, "missed": 0,
            "in_flight_at_end": 8, "retries": 0, "reconnects": 0, "lag": "",
            "generator": dyno_record::GeneratorSummary::default(), "server_cpu_s": null,
            "error_examples": {}, "readings": {},
            "intervals": {
                "start_s": start_s, "throughput": throughput, "errors": zeros, "missed": zeros,
                "p50_us": zeros, "p95_us": zeros, "p99_us": zeros, "max_us": zeros,
                "lag_p99_us": zeros,
            },
        }))
        .expect("it is a step")
    }

    #[test]
    fn a_step_that_ends_dead_is_not_to_be_trusted() {
        let check = |throughput: &[f64], response_ms: u64, expected: bool| {
            let found = dead_end(&step(throughput, response_ms * 1_000_000));
            assert_eq!(found.is_some(), expected, "{throughput:?}: {found:?}");
        };
        // A server that was frozen two seconds after the measure phase had begun.
        let frozen = [13460.0, 23717.0, 21692.0, 669.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        check(&frozen, 1, true);
        let message = dead_end(&step(&frozen, 1_000_000)).expect("it is dead");
        assert!(
            message.contains("last 5.0 s of 8.0 s") && message.contains("8 attempts"),
            "{message}"
        );
        check(&[9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 0.0, 0.0], 1, false);
        check(&[9.0, 9.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0], 1, false);
        check(&[9.0, 9.0, 0.0, 0.0], 1, true);
        // Transactions that take that long.
        check(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0], 1500, false);
        // Nothing was ever done: other messages tell of that.
        check(&[0.0; 9], 1, false);
        // All died in the warm-up.
        check(&[9.0, 0.0, 0.0, 0.0, 0.0], 0, true);
    }
}
