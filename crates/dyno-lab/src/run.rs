//! A run: all trials of a plan that have not ended yet.

mod on_hosts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use dyno_database::{Endpoint, Place, Products};
use dyno_host::Keeper;
use dyno_load::AbortFlag;
use dyno_record::{
    Environment, Event, EventKind, FailedTrial, Manifest, RunWriter, TrialPlan, WriteErrorKind,
};
use dyno_study::{Design, Plan, PlannedTrial, UserProbe};
use dyno_units::{ByteCount, Clock, Nanoseconds};
use dyno_workload::catalog::Catalog;

use crate::calibration::Calibration;
use crate::datasets::Limits;
use crate::deployment::Basis;
use crate::events::EventLog;
use crate::failures::{Failure, Failures, is_disk_full};
use crate::hosts::HeldHosts;
use crate::stopping::{Decide, Stopping};
use crate::trial::{self, TrialEnd};
use crate::voiding::{self, Void};

pub struct Lab {
    pub clock: Arc<dyn Clock>,
    pub keeper: Arc<Keeper>,
    pub products: Products,
    pub abort: AbortFlag,
    pub environment: Environment,
    pub calibration: Option<Calibration>,
    /// How many data sets are kept, and for how long.
    pub data_sets: Limits,
    pub catalog: Catalog,
    /// Dyno's own file, which is started as an agent on this machine; none where that is not known.
    pub program: Option<PathBuf>,
    /// Measure the host's speed before and after each trial; of no use if the record is not kept.
    pub checks_host: bool,
    /// Devices that the user has named as ones that may be formatted.
    pub format_devices: Vec<PathBuf>,
    pub hosts: HeldHosts,
}

impl Lab {
    /// The host's memory that may be used, of which settings may ask a share.
    pub(crate) fn memory(&self) -> ByteCount {
        ByteCount(self.environment.usable_memory_bytes())
    }

    pub(crate) fn basis(&self) -> Basis<'_> {
        Basis { products: &self.products, memory: self.memory() }
    }

    /// Where the files of its servers live without a volume.
    pub(crate) fn place(&self) -> Place {
        Place::under(&self.keeper)
    }
}

pub struct RunOrder<'a> {
    pub plan: &'a Plan,
    pub design: &'a Design,
    pub manifest: &'a Manifest,
    pub probes: &'a [UserProbe],
    /// Who says which variants need no more repetitions, where the plan wants that.
    pub decide: Option<Decide<'a>>,
    /// The study as text, if its trials run on hosts.
    pub text: Option<&'a StudyText>,
    /// Whether trials that have failed are done again; what they left is kept.
    pub retry_failed: bool,
    /// Who says which blocks are void, where the plan wants that.
    pub void: Option<Void<'a>>,
    /// Who watches, where somebody looks on while nothing is sent.
    pub watching: Option<Watching>,
    /// The run directory; holds an earlier part of the same run, or nothing yet.
    pub folder: PathBuf,
}

/// A study as it goes to hosts, which read it again.
#[derive(Clone, Debug, Default)]
pub struct StudyText {
    pub source: String,
    /// The texts of the files that it names, by their names there.
    pub files: BTreeMap<String, String>,
    /// Whether programs and images may be fetched there.
    pub fetch: bool,
}

/// Somebody who looks on while nothing is sent.
#[derive(Clone, Debug)]
pub struct Watching {
    /// Raised when the observation is to end, in order: as if its time were over.
    pub end: AbortFlag,
    /// Whether the readings are kept in the record, and not only told.
    pub keeps_readings: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Trials that finished now.
    pub finished: u32,
    /// Trials that failed now.
    pub failed: u32,
    /// Of the finished ones, those after which something could not be removed that was made for them.
    pub uncleaned: u32,
    /// Trials that had ended before.
    pub kept: u32,
    /// Those of them that had failed.
    pub failed_before: u32,
    /// Trials not begun because their variants cannot be deployed: of each variant, how many and why.
    pub hopeless: BTreeMap<String, (u32, String)>,
    /// Why the run ended before its last trial; none where it did not.
    pub stopped: Option<String>,
    /// Trials not begun because their variants are settled.
    pub settled: u32,
    /// Trials not begun because the time budget would not have sufficed.
    pub over_budget: u32,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// Runs the plan's trials that have not ended. Errors are those of the record: an error in a trial
/// marks it as failed, and the next one runs, unless it would fail in the same way.
pub fn run(
    lab: &Lab,
    order: &RunOrder<'_>,
    listener: &mut dyn FnMut(&Event),
) -> anyhow::Result<RunEnd> {
    let mut course = Course::open(lab, order, listener)?;
    let done = match order.design.trial_hosts.is_empty() {
        true => course.all_trials(),
        false => course.all_trials_on_hosts(),
    };
    // Also where the record cannot be written.
    for message in lab.hosts.give_back() {
        course.events.in_run(&mut course.record, EventKind::Noted { message })?;
    }
    done?;
    lab.keeper.kernel().release();
    note_not_begun(&course.end, &mut course.events, &mut course.record)?;
    Ok(course.end)
}

/// Runs only this trial; returns how it ended, and its record's folder. Fails if the record cannot be
/// written, or the plan has no such trial.
pub(crate) fn run_one(
    lab: &Lab,
    order: &RunOrder<'_>,
    number: u32,
    listener: &mut dyn FnMut(&Event),
) -> anyhow::Result<(TrialEnd, PathBuf)> {
    let planned = order.plan.trials.iter().find(|planned| planned.number == number);
    let planned = planned.with_context(|| format!("the plan has no trial {number}"))?;
    let mut course = Course::open(lab, order, listener)?;
    let (events, record) = (&mut course.events, &mut course.record);
    let end = trial::run(lab, order, &trial_plan(planned), events, record);
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
    /// Opens the record, and cleans up what an earlier Dyno left there and on the host.
    fn open(
        lab: &'a Lab,
        order: &'a RunOrder<'a>,
        listener: &'t mut dyn FnMut(&Event),
    ) -> anyhow::Result<Course<'a, 't>> {
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

    /// Runs the trials that have not ended yet, one after the other.
    fn all_trials(&mut self) -> anyhow::Result<()> {
        let lab = self.lab;
        while let Some(planned) = self.queue.pop_front() {
            if self.is_left_out(planned)? {
                continue;
            }
            let began = lab.clock.now();
            if self.end.finished + self.end.failed > 0 {
                rest(lab, self.order.plan.rest, &mut self.events, &mut self.record)?;
            }
            if lab.abort.is_raised() {
                self.end.interrupted = true;
                break;
            }
            if self.trial(planned)?.is_break() {
                break;
            }
            self.longest = self.longest.max(lab.clock.now().saturating_sub(began));
            if self.queue.front().is_none_or(|next| next.block != planned.block) {
                self.repeat_void_blocks()?;
            }
        }
        Ok(())
    }

    /// It has ended, its variant is settled or undeployable, or the time budget is too small.
    fn is_left_out(&mut self, planned: &PlannedTrial) -> anyhow::Result<bool> {
        // What was decided before a trial that has ended was announced at that time.
        let is_over = self.ended.iter().any(|number| *number >= planned.number);
        for event in self.stopping.look(planned.block)?.into_iter().filter(|_| !is_over) {
            self.events.in_run(&mut self.record, event)?;
        }
        if self.ended.contains(&planned.number) {
            return Ok(true);
        }
        let plan = self.order.plan;
        if let Some(why) = self.stopping.settled(planned.variant) {
            self.end.settled += 1;
            if !is_over {
                self.events.in_run(&mut self.record, skipped(plan, planned, why))?;
            }
            return Ok(true);
        }
        if let Some(why) = self.failures.hopeless(planned.variant) {
            let name = plan.variants[planned.variant].name.clone();
            self.end.hopeless.entry(name).or_insert_with(|| (0, why.to_owned())).0 += 1;
            return Ok(true);
        }
        let done = self.lab.clock.now() + self.longest;
        let is_over_budget =
            self.order.design.budget.is_some_and(|budget| done > self.began + budget);
        self.end.over_budget += u32::from(is_over_budget);
        Ok(is_over_budget)
    }

    /// Runs one trial and counts it. Breaks where the run has to end with it.
    fn trial(&mut self, planned: &PlannedTrial) -> anyhow::Result<ControlFlow<()>> {
        let (events, record) = (&mut self.events, &mut self.record);
        let end = trial::run(self.lab, self.order, &trial_plan(planned), events, record)?;
        self.count(planned.variant, &end);
        if self.end.interrupted {
            return Ok(ControlFlow::Break(()));
        }
        self.end.stopped = self.failures.ends_run().or_else(|| self.lab.hosts.lost());
        Ok(match self.end.stopped {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        })
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

    /// Queues the trials of blocks that are void now after all others, in the order of blocks.
    fn repeat_void_blocks(&mut self) -> anyhow::Result<()> {
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
        };
        failures.add(trial.variant, Some(&failure));
    }
    (ended, failures, failed.len() as u32)
}

fn note_not_begun(
    end: &RunEnd,
    events: &mut EventLog<'_>,
    record: &mut RunWriter,
) -> anyhow::Result<()> {
    let mut messages: Vec<String> = end
        .hopeless
        .iter()
        .map(|(variant, (n, why))| {
            let what = match why.starts_with("host ") {
                true => "what it needs on that host cannot be started",
                false => "its server cannot be deployed",
            };
            let trials = if *n == 1 { "trial" } else { "trials" };
            let were = if *n == 1 { "was" } else { "were" };
            format!("{n} more {trials} of {variant} {were} not started: {what} ({why})")
        })
        .collect();
    messages.extend(end.stopped.clone());
    if end.over_budget > 0 {
        messages.push(format!(
            "{} trials were not started: they would have exceeded the time budget",
            end.over_budget
        ));
    }
    for message in messages {
        events.in_run(record, EventKind::Noted { message })?;
    }
    Ok(())
}

/// Warnings of servers to which a password goes over a network without encryption, each once.
fn login_warnings(plan: &Plan) -> BTreeSet<String> {
    let urls = plan.variants.iter().flat_map(|variant| variant.database.urls());
    urls.filter_map(|url| Endpoint::from_url_of_server(url).ok()?.login_warning())
        .map(|warning| format!("warning: {warning}"))
        .collect()
}

fn trial_plan(planned: &PlannedTrial) -> TrialPlan {
    TrialPlan {
        number: planned.number,
        variant: planned.variant,
        repetition: planned.repetition,
        block: planned.block,
    }
}

fn skipped(plan: &Plan, planned: &PlannedTrial, why: &str) -> EventKind {
    EventKind::TrialSkipped {
        trial: planned.number,
        variant: plan.variants[planned.variant].name.clone(),
        repetition: planned.repetition,
        why: why.to_owned(),
    }
}

/// Continues what is in the folder, or begins there.
fn open_record(order: &RunOrder<'_>) -> anyhow::Result<RunWriter> {
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

/// Lets the machine come to rest, in slices so that Ctrl-C is heard.
fn rest(
    lab: &Lab,
    length: Nanoseconds,
    events: &mut EventLog<'_>,
    record: &mut RunWriter,
) -> anyhow::Result<()> {
    if length > Nanoseconds::ZERO {
        events.in_run(record, EventKind::Rested { seconds: length.as_secs_f64() })?;
        sleep(lab, length);
    }
    Ok(())
}

/// Sleeps unless the user wants to stop.
pub(crate) fn sleep(lab: &Lab, length: Nanoseconds) {
    let until = lab.clock.now() + length;
    while lab.clock.now() < until && !lab.abort.is_raised() {
        let slice = lab.clock.now() + Nanoseconds::from_millis(100);
        lab.clock.sleep_until(slice.min(until));
    }
}
