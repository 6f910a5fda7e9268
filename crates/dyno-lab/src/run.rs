//! A run: all trials of a plan that have not ended yet.

mod on_hosts;
mod trial;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use dyno_database::Endpoint;
use dyno_record::{EventKind, FailedTrial, RunWriter, WriteError, WriteErrorKind};
use dyno_study::{Plan, PlannedTrial};
use dyno_units::Nanoseconds;

use crate::events::Listener;
use crate::failures::{Failures, is_disk_full};
use crate::stopping::Stopping;
use crate::{EventLog, Failure, Lab, RunOrder, TrialEnd, voiding};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Trials that finished now.
    pub finished: u32,
    pub failed: u32,
    /// Of the finished ones, those after which something could not be removed that was made for them.
    pub uncleaned: u32,
    /// Trials that had ended before.
    pub kept: u32,
    /// Those of them that had failed.
    pub failed_before: u32,
    /// Trials not begun because their variants fail each time, by variant.
    pub hopeless: BTreeMap<String, Hopeless>,
    /// Why the run ended before its last trial; none where it did not.
    pub stopped: Option<String>,
    /// Trials not begun because their variants are settled.
    pub settled: u32,
    /// Trials not begun because the time budget would not have sufficed.
    pub over_budget: u32,
    pub interrupted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hopeless {
    /// Not begun.
    pub n_trials: u32,
    pub why: String,
    /// A run that is continued does not know how far such trials came, and begins others.
    pub was_deployed: bool,
}

/// Runs the plan's trials that have not ended. Errors are those of the record: an error in a trial
/// marks it as failed, and the next one runs, unless it would fail in the same way.
pub fn run(lab: &Lab, order: &RunOrder<'_>, listener: Listener<'_>) -> Result<RunEnd> {
    let mut course = Course::open(lab, order, listener)?;
    let done = match order.design.trial_hosts.is_empty() {
        true => course.all_trials(),
        false => course.all_trials_on_hosts(),
    };
    // Also where the record cannot be written.
    for message in lab.hosts.give_back() {
        course.note(message)?;
    }
    done?;
    lab.keeper.kernel().release();
    course.note_not_begun()?;
    Ok(course.end)
}

/// Runs only this trial; returns how it ended, and its record's folder. Fails if the record cannot be
/// written, or the plan has no such trial.
pub(crate) fn run_one(
    lab: &Lab,
    order: &RunOrder<'_>,
    number: u32,
    listener: Listener<'_>,
) -> Result<(TrialEnd, PathBuf)> {
    let planned = order.plan.trials.iter().find(|planned| planned.number == number);
    let planned = planned.with_context(|| format!("the plan has no trial {number}"))?;
    let mut course = Course::open(lab, order, listener)?;
    let (events, record) = (&mut course.events, &mut course.record);
    let end = trial::run(lab, order, planned, events, record);
    lab.keeper.kernel().release();
    let end = end?;
    let folder = dyno_record::trial_folders(&order.folder).into_iter().find(|(n, _)| *n == number);
    Ok((end, folder.context("the trial left no record")?.1))
}

struct Course<'a, 't> {
    lab: &'a Lab,
    order: &'a RunOrder<'a>,
    events: EventLog<'t>,
    record: RunWriter,
    /// Trials still to be looked at, in order; void ones come again at the end.
    queue: VecDeque<&'a PlannedTrial>,
    /// Numbers of trials that have ended and are not done again.
    ended: Vec<u32>,
    failures: Failures,
    stopping: Stopping<'a>,
    /// When it began, on the lab's clock; the time budget counts from here.
    began: Nanoseconds,
    /// The longest trial so far; before the first one, what the plan knows.
    longest: Nanoseconds,
    end: RunEnd,
}

impl<'a, 't> Course<'a, 't> {
    fn open(
        lab: &'a Lab,
        order: &'a RunOrder<'a>,
        listener: Listener<'t>,
    ) -> Result<Course<'a, 't>> {
        let mut events = EventLog { clock: Arc::clone(&lab.clock), listener };
        let mut record = open_record(order)?;
        for what in lab.keeper.end_leftovers(lab.clock.as_ref()) {
            events.in_run(&mut record, EventKind::LeftoverEnded { what })?;
        }
        // Where trials run on hosts, the agents do this there.
        let is_here = order.design.trial_hosts.is_empty();
        let mut variants = order.plan.variants.iter();
        if is_here && variants.any(|variant| !variant.database.kernel.is_empty()) {
            for what in lab.keeper.kernel().hold(lab.clock.as_ref())? {
                events.in_run(&mut record, EventKind::LeftoverEnded { what })?;
            }
        }
        for message in login_warnings(order.plan) {
            events.in_run(&mut record, EventKind::Noted { message })?;
        }
        voiding::set_aside(order, &mut events, &mut record)?;
        let (ended, failures, failed_before) = history(lab, &record, order.retry_failed);
        Ok(Course {
            end: RunEnd { kept: ended.len() as u32, failed_before, ..RunEnd::default() },
            queue: order.plan.trials.iter().collect(),
            stopping: Stopping::new(order.plan, &order.folder, order.decide),
            began: lab.clock.now(),
            longest: order.plan.trial_time_least(),
            lab,
            order,
            events,
            record,
            ended,
            failures,
        })
    }

    fn all_trials(&mut self) -> Result<()> {
        let lab = self.lab;
        while let Some(planned) = self.queue.pop_front() {
            if self.is_left_out(planned)? {
                continue;
            }
            let began = lab.clock.now();
            let rest = self.order.plan.rest;
            if self.end.finished + self.end.failed > 0 && rest > Nanoseconds::ZERO {
                let seconds = rest.as_secs_f64();
                self.event(EventKind::Rested { seconds })?;
                lab.sleep(rest);
            }
            if lab.abort.is_raised() {
                self.end.interrupted = true;
                break;
            }
            let (events, record) = (&mut self.events, &mut self.record);
            let end = trial::run(lab, self.order, planned, events, record)?;
            self.count(planned.variant, &end);
            if self.end.interrupted || self.note_stop() {
                break;
            }
            self.longest = self.longest.max(lab.clock.now().saturating_sub(began));
            if self.queue.front().is_none_or(|next| next.block != planned.block) {
                self.repeat_void_blocks()?;
            }
        }
        Ok(())
    }

    fn event(&mut self, kind: EventKind) -> Result<(), WriteError> {
        self.events.in_run(&mut self.record, kind)
    }

    fn note(&mut self, message: String) -> Result<(), WriteError> {
        self.event(EventKind::Noted { message })
    }

    /// It has ended, its variant is settled or fails each time, or the time budget is too small.
    fn is_left_out(&mut self, planned: &PlannedTrial) -> Result<bool> {
        // What was decided before a trial that has ended was announced at that time.
        let is_over = self.ended.iter().any(|number| *number >= planned.number);
        for event in self.stopping.look(planned.block)?.into_iter().filter(|_| !is_over) {
            self.event(event)?;
        }
        if self.ended.contains(&planned.number) {
            return Ok(true);
        }
        let plan = self.order.plan;
        if let Some(why) = self.stopping.settled(planned.variant) {
            self.end.settled += 1;
            if !is_over {
                let (variant, why) = (plan.variants[planned.variant].name.clone(), why.to_owned());
                let PlannedTrial { number: trial, repetition, .. } = *planned;
                self.event(EventKind::TrialSkipped { trial, variant, repetition, why })?;
            }
            return Ok(true);
        }
        if let Some((why, was_deployed)) = self.failures.hopeless(planned.variant) {
            let name = plan.variants[planned.variant].name.clone();
            let new = || Hopeless { n_trials: 0, why: why.to_owned(), was_deployed };
            self.end.hopeless.entry(name).or_insert_with(new).n_trials += 1;
            return Ok(true);
        }
        let done = self.lab.clock.now() + self.longest;
        let is_over_budget =
            self.order.design.budget.is_some_and(|budget| done > self.began + budget);
        self.end.over_budget += u32::from(is_over_budget);
        Ok(is_over_budget)
    }

    /// Notes why the run has to end with the trials that have ended, if it has; returns whether.
    fn note_stop(&mut self) -> bool {
        self.end.stopped = self.failures.ends_run().or_else(|| self.lab.hosts.lost());
        self.end.stopped.is_some()
    }

    fn count(&mut self, variant: usize, end: &TrialEnd) {
        match end {
            TrialEnd::Finished | TrialEnd::FinishedUncleaned => {
                self.end.finished += 1;
                self.end.uncleaned += u32::from(*end == TrialEnd::FinishedUncleaned);
                self.failures.add(variant, None);
            }
            TrialEnd::Failed(failure) => {
                self.end.failed += 1;
                self.failures.add(variant, Some(failure));
            }
            TrialEnd::Abandoned => self.end.interrupted = true,
        }
    }

    fn note_not_begun(&mut self) -> Result<(), WriteError> {
        let hopeless = self.end.hopeless.iter().map(|(variant, Hopeless { n_trials, why, .. })| {
            let is_one = *n_trials == 1;
            let (trials, were) = if is_one { ("trial", "was") } else { ("trials", "were") };
            format!("{n_trials} more {trials} of {variant} {were} not started: {why}")
        });
        let mut messages: Vec<String> = hopeless.collect();
        messages.extend(self.end.stopped.clone());
        if self.end.over_budget > 0 {
            messages.push(format!(
                "{} trials were not started: they would have exceeded the time budget",
                self.end.over_budget
            ));
        }
        messages.into_iter().try_for_each(|message| self.note(message))
    }

    /// Queues the trials of blocks that are void now after all others, in the order of blocks.
    fn repeat_void_blocks(&mut self) -> Result<()> {
        let again = voiding::set_aside(self.order, &mut self.events, &mut self.record)?;
        self.ended.retain(|number| !again.contains(number));
        let trials = self.order.plan.trials.iter();
        self.queue.extend(trials.filter(|planned| again.contains(&planned.number)));
        Ok(())
    }
}

/// The run's earlier trials: numbers that are not repeated, failures, and their number.
fn history(lab: &Lab, record: &RunWriter, retry_failed: bool) -> (Vec<u32>, Failures, u32) {
    let (mut ended, failed) = (record.ended_trials(), record.failed_trials());
    let mut failures = Failures::new(&lab.products);
    if retry_failed {
        ended.retain(|number| !failed.iter().any(|trial| trial.number == *number));
        return (ended, failures, 0);
    }
    // A disk that was full may have room again; of a variant's servers nothing has changed.
    let is_full =
        |trial: &FailedTrial| is_disk_full(&lab.products, &trial.server_log, &trial.message);
    for trial in failed.iter().filter(|trial| !is_full(trial)) {
        let failure = Failure {
            message: trial.message.clone(),
            log: trial.server_log.clone(),
            was_deployed: trial.was_deployed,
            // Records do not say how far a trial came whose server was up.
            may_go_well: trial.was_deployed,
        };
        failures.add(trial.variant, Some(&failure));
    }
    (ended, failures, failed.len() as u32)
}

/// Warnings of servers to which a password goes over a network without encryption, each once.
fn login_warnings(plan: &Plan) -> BTreeSet<String> {
    let urls = plan.variants.iter().flat_map(|variant| variant.database.urls());
    let warnings = urls.filter_map(|url| Endpoint::from_url_of_server(url).ok()?.login_warning());
    warnings.map(|warning| format!("warning: {warning}")).collect()
}

/// Continues what is in the folder, or begins there.
fn open_record(order: &RunOrder<'_>) -> Result<RunWriter> {
    let record = if order.folder.join("manifest.json").exists() {
        RunWriter::resume(&order.folder, order.manifest)
    } else {
        RunWriter::create(&order.folder, order.manifest)
    };
    match record {
        // It says so itself.
        Err(error) if error.kind == WriteErrorKind::Usage => Err(error.into()),
        record => record.context("cannot open the run's folder"),
    }
}
