//! Adds up what several generators count in one step.

use std::collections::BTreeMap;

use dyno_units::{Nanoseconds, clean_text};
use serde::{Deserialize, Serialize};

use crate::collector::{Collector, Until};
use crate::engine::Watch;
use crate::load::roles_of;
use crate::part::{COUNT_MOST, INTERVAL_COUNT_MOST, IntervalPart};
use crate::recorder::WorkerEnd;
use crate::step::Loaded;
use crate::timeline::Timeline;
use crate::{AbortFlag, LoadError, OUTCOMES, RoleTotals, StepSpec, StepTotals};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceEnd {
    pub workers: usize,
    pub clients: usize,
    /// User CPU time of the workers in the measurement phase.
    pub cpu_user: Nanoseconds,
    pub cpu_system: Nanoseconds,
    /// Time that workers waited for a CPU, if the kernel reports it.
    pub run_queue: Option<Nanoseconds>,
    /// CPU time of the busiest worker as a share of the measurement phase.
    pub busiest_worker: f64,
    pub in_flight_at_end: u64,
    pub error_examples: BTreeMap<String, String>,
    /// Warm-up included.
    pub committed: u64,
    pub measured: IntervalPart,
    /// The measurement phase by the generator's own clock.
    pub measured_for: Nanoseconds,
}

impl SliceEnd {
    pub fn of(totals: &StepTotals) -> SliceEnd {
        let examples = totals.error_examples.iter();
        SliceEnd {
            workers: totals.generator.workers,
            clients: totals.roles.iter().map(|role| role.clients).sum(),
            cpu_user: totals.generator.cpu_user,
            cpu_system: totals.generator.cpu_system,
            run_queue: totals.generator.run_queue,
            busiest_worker: totals.generator.busiest_worker,
            in_flight_at_end: totals.in_flight_at_end,
            error_examples: examples
                .map(|(outcome, message)| ((*outcome).to_owned(), message.clone()))
                .collect(),
            committed: totals.roles.iter().map(|role| role.committed).sum(),
            measured: IntervalPart::of(0, &totals.measured),
            measured_for: totals.measure_ended.saturating_sub(totals.measure_began),
        }
    }
}

pub struct StepMerge {
    collector: Collector,
    next: Vec<u64>,
    roles: Vec<RoleTotals>,
    workers: usize,
    busiest_worker: f64,
}

impl StepMerge {
    pub fn new(spec: &StepSpec, began: Nanoseconds, n_generators: usize, n_kinds: usize) -> Self {
        let timeline = Timeline::new(began, spec.warm_up, spec.duration);
        let until = Until { finish: None, steady_for: None, gone_limit: spec.gone_limit };
        let stop = AbortFlag::new();
        StepMerge {
            collector: Collector::new((timeline, n_generators), until, n_kinds, stop),
            next: vec![0; n_generators],
            roles: roles_of(&spec.load),
            workers: 0,
            busiest_worker: 0.0,
        }
    }

    pub fn announce(&mut self, now: Nanoseconds, observe: Watch<'_>) -> Option<Nanoseconds> {
        self.collector.announce(now, observe)
    }

    /// Passes on the intervals that all generators have sent. Fails if this is not the generator's
    /// next interval, is not one of this step, is damaged, or has impossible counts.
    pub fn add(&mut self, of: usize, part: &IntervalPart, observe: Watch<'_>) -> Loaded {
        let next = &mut self.next[of];
        if part.idx != *next {
            let why = format!("interval {} came in place of interval {next}", part.idx);
            return Err(LoadError(why));
        }
        *next += 1;
        if !part.is_within(INTERVAL_COUNT_MOST) {
            let why = format!("interval {} is damaged, or its counts are impossible", part.idx);
            return Err(LoadError(why));
        }
        if self.collector.accept_part(part, observe) {
            return Ok(());
        }
        Err(LoadError(format!("interval {} does not belong to this step", part.idx)))
    }

    pub fn end(&mut self, end: &SliceEnd) -> Result<(), LoadError> {
        let threads = [end.workers, end.clients].map(|n| n as u64);
        let counts = [end.in_flight_at_end, end.committed].into_iter().chain(threads);
        if !end.measured.is_within(COUNT_MOST) || counts.max().is_some_and(|n| n > COUNT_MOST) {
            return Err(LoadError("its end is damaged, or its counts are impossible".to_owned()));
        }
        self.workers += end.workers;
        self.busiest_worker = self.busiest_worker.max(end.busiest_worker);
        if let Some(role) = self.roles.first_mut() {
            role.clients += end.clients;
            role.committed += end.committed;
        }
        let example =
            |name: &&'static str| Some((*name, clean_text(end.error_examples.get(*name)?)));
        self.collector.add_end(WorkerEnd {
            cpu_user: end.cpu_user,
            cpu_system: end.cpu_system,
            run_queue: end.run_queue,
            in_flight_at_end: end.in_flight_at_end,
            error_examples: OUTCOMES.iter().filter_map(example).collect(),
            roles: Vec::new(),
        });
        Ok(())
    }

    pub fn is_complete(&self) -> bool {
        self.collector.is_complete()
    }

    pub fn finish(self) -> Result<StepTotals, LoadError> {
        let mut totals = self.collector.finish()?;
        totals.generator.workers = self.workers;
        totals.generator.busiest_worker = self.busiest_worker;
        totals.roles = self.roles;
        Ok(totals)
    }
}
