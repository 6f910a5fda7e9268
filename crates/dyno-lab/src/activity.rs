//! A step is a set of activities that run side by side; each is a file in this folder.
//!
//! A step begins when its load is measured, or at once without a load. When all activities that end it have ended, it
//! stops the others. The load, or what replaces it, runs on the step's thread, other activities on threads of their
//! own; probes are read around all.

mod batches;
mod command;
mod dips;
mod faults;
mod job;
mod journal;
mod load;
mod observation;
mod sessions;
mod sql;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use dyno_host::Probe;
use dyno_load::AbortFlag;
use dyno_record::{EventKind, StepSummary};
use dyno_units::{Clock, Metric, Nanoseconds, Reading};
use dyno_workload::AuditTotals;

use crate::observe::Cost;
use crate::{DoneThere, Result, Span, TrialError, fail};

pub(crate) use batches::batches;
pub(crate) use command::command;
pub(crate) use dips::VolumeDips;
pub(crate) use faults::Faults;
pub(crate) use journal::{Journal, keep_samples, watched};
pub(crate) use load::{
    Length, LoadActivity, LoadPlan, p95_us, response_times, throughput, watched_load,
};
pub(crate) use observation::ObservationActivity;
pub(crate) use sql::{shown, sql};

const POLL: Nanoseconds = Nanoseconds::from_millis(10);

pub(crate) trait Activity {
    /// Its name, unique in the step.
    fn name(&self) -> &str;

    /// The figures that it measures, but for those of a load, which are known.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    /// What is read of it every second while it goes on.
    fn probe(&mut self) -> Option<Box<dyn Probe>> {
        None
    }

    /// Returns when the work is done or stopped. A failure fails the step.
    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result;

    /// Adds what it has measured to what has come of the step, also if it has failed or was stopped.
    fn add_to(&mut self, end: &mut StepEnd);

    /// Adds what follows from the readings of the step, which are in its summary by now.
    fn add_readings_to(&self, end: &mut StepEnd) {
        let _ = end;
    }
}

#[derive(Default)]
pub(crate) struct StepEnd {
    pub(crate) summary: StepSummary,
    pub(crate) metrics: Vec<Metric>,
    /// What the clients did, warm-up included.
    pub(crate) did: AuditTotals,
    /// The same for each server, if several generators loaded several of them.
    pub(crate) done_there: Vec<DoneThere>,
    pub(crate) probes: Cost,
    pub(crate) meanings: BTreeMap<String, Reading>,
    /// Whether its load, or else what goes on in it, had begun.
    pub(crate) has_begun: bool,
}

pub(crate) struct Surroundings<'s, 'a, 't> {
    pub(crate) stop: &'s AbortFlag,
    /// What is written down; only for the activity that runs on the step's own thread.
    pub(crate) journal: Option<&'s mut Journal<'a, 't>>,
}

impl Surroundings<'_, '_, '_> {
    /// Waits until a time; whether it came before the activity is to stop.
    fn wait(&self, clock: &dyn Clock, until: Nanoseconds) -> bool {
        while !self.stop.is_raised() {
            let now = clock.now();
            if now >= until {
                return true;
            }
            clock.sleep_until(until.min(now + POLL));
        }
        false
    }
}

/// An activity with a thread of its own.
pub(crate) struct Beside<'a> {
    pub(crate) activity: Box<dyn Activity + Send + 'a>,
    pub(crate) ends_step: bool,
    /// How long after the step's beginning it begins.
    pub(crate) starts_after: Nanoseconds,
}

pub(crate) struct Activities<'a> {
    /// The one on the step's own thread: a load, or an observation. It ends the step if no other one does.
    pub(crate) here: Option<Box<dyn Activity + 'a>>,
    pub(crate) beside: Vec<Beside<'a>>,
}

impl Activities<'_> {
    /// To the end of the step; fails with the first failure. Measurements are returned anyway.
    pub(crate) fn run(&mut self, journal: &mut Journal<'_, '_>) -> (StepEnd, Result) {
        let (spans, result) = self.run_side_by_side(journal);
        let stopped = journal.stop_observing();
        let mut end = StepEnd { has_begun: journal.has_begun, ..StepEnd::default() };
        end.summary.step = journal.step;
        if self.here.is_none() {
            add_seconds(&mut end.summary, journal.measure_began, &spans);
        }
        let here = self.here.iter_mut().map(|activity| &mut **activity as &mut dyn Activity);
        let beside =
            self.beside.iter_mut().map(|beside| &mut *beside.activity as &mut dyn Activity);
        for activity in here.chain(beside) {
            end.metrics.extend(activity.metrics());
            activity.add_to(&mut end);
        }
        end.meanings = journal.add_readings(&mut end.summary);
        self.here.iter().for_each(|activity| activity.add_readings_to(&mut end));
        self.beside.iter().for_each(|beside| beside.activity.add_readings_to(&mut end));
        match stopped {
            Ok(cost) => {
                end.probes = cost;
                (end, result)
            }
            Err(error) => (end, Err(TrialError::Record(error))),
        }
    }

    /// Returns start and length of the seconds that the step took without a load on its own thread.
    fn run_side_by_side(&mut self, journal: &mut Journal<'_, '_>) -> (Vec<Span>, Result) {
        let abort = &journal.lab.abort;
        // A load that is alone is stopped by nobody but the user.
        let is_alone = self.beside.is_empty();
        let stop = if is_alone { abort.clone() } else { abort.child() };
        let n_enders = AtomicUsize::new(self.beside.iter().filter(|one| one.ends_step).count());
        let ends_here = n_enders.load(Ordering::Relaxed) == 0;
        let names: Vec<String> =
            self.beside.iter().map(|beside| beside.activity.name().to_owned()).collect();
        let (here, beside) = (&mut self.here, &mut self.beside);
        thread::scope(|scope| {
            let (send, ended) = channel();
            for (idx, beside) in beside.iter_mut().enumerate() {
                let (send, begin, stopped) = (send.clone(), journal.gate(), stop.clone());
                let (clock, n_enders) = (Arc::clone(&journal.lab.clock), &n_enders);
                let work = move || beside.work(idx, &begin, (&stopped, n_enders), (&clock, &send));
                let thread = thread::Builder::new().name("dyno-activity".to_owned());
                if let Err(error) = thread.spawn_scoped(scope, work) {
                    stop.raise();
                    journal.close_gates();
                    let message = format!("cannot start a thread for an activity: {error}");
                    return (Vec::new(), fail(message));
                }
            }
            drop(send);
            let result = match here {
                Some(activity) => {
                    let journal = Some(&mut *journal);
                    activity.run(&mut Surroundings { stop: &stop, journal })
                }
                None => journal.begin_now().map_err(TrialError::from),
            };
            if !is_alone && (result.is_err() || (ends_here && here.is_some())) {
                stop.raise();
            }
            journal.close_gates();
            let (spans, others) = until_all_ended(&ended, &names, journal);
            (spans, result.and(others))
        })
    }
}

impl Beside<'_> {
    fn work(
        &mut self,
        idx: usize,
        begin: &Receiver<()>,
        (stop, n_enders): (&AbortFlag, &AtomicUsize),
        (clock, send): (&Arc<dyn Clock>, &Sender<Ended>),
    ) {
        // Nobody opens the gate if the load could not begin.
        if begin.recv().is_err() {
            return;
        }
        let mut surroundings = Surroundings { stop, journal: None };
        // Also if it is to stop already: it then says so itself.
        surroundings.wait(&**clock, clock.now() + self.starts_after);
        let began = clock.now();
        let result = self.activity.run(&mut surroundings);
        let took = clock.now().saturating_sub(began);
        let is_last = self.ends_step && n_enders.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last || result.is_err() {
            stop.raise();
        }
        // The step waits for this.
        let _ = send.send(Ended { idx, took, result });
    }
}

fn add_seconds(summary: &mut StepSummary, began: Option<Nanoseconds>, spans: &[Span]) {
    let (Some(began), Some((last, length))) = (began, spans.last()) else { return };
    let relative =
        |(start, _): &Span| (start.saturating_sub(began).as_secs_f64() * 1e3).round() / 1e3;
    summary.measured_s = (*last + *length).saturating_sub(began).as_secs_f64();
    summary.ended_by = Some("activity".to_owned());
    summary.intervals.start_s = spans.iter().map(relative).collect();
    summary.spans = Some(spans.iter().map(|(at, length)| (at.0, length.0)).collect());
}

struct Ended {
    idx: usize,
    took: Nanoseconds,
    result: Result,
}

/// Waits for all activities with threads of their own, and records what the probes read each second. Returns start and length of these seconds, and the first failure.
fn until_all_ended(
    ended: &Receiver<Ended>,
    names: &[String],
    journal: &mut Journal<'_, '_>,
) -> (Vec<Span>, Result) {
    let clock = Arc::clone(&journal.lab.clock);
    let (mut spans, mut result) = (Vec::new(), Ok(()));
    let mut start = clock.now();
    loop {
        let until = start + Nanoseconds::SECOND;
        let one = ended.recv_timeout(until.saturating_sub(clock.now()).to_duration());
        let is_over = matches!(one, Err(RecvTimeoutError::Disconnected));
        let now = clock.now();
        let mut written = Ok(());
        if is_over || now >= until {
            if now > start {
                spans.push((start, now.saturating_sub(start)));
            }
            start = now;
            written = journal.take_samples();
        }
        if let Ok(Ended { idx, took, result: this }) = one {
            let kind = EventKind::ActivityEnded {
                step: journal.step,
                activity: names[idx].clone(),
                took_s: took.as_secs_f64(),
                is_done: this.is_ok(),
            };
            written = written.and(journal.event(kind));
            result = result.and(this);
        }
        if let Err(error) = written {
            // Without a record there is nothing to measure for: the run ends.
            journal.lab.abort.raise();
            result = Err(TrialError::Record(error));
        }
        if is_over {
            return (spans, result);
        }
    }
}
