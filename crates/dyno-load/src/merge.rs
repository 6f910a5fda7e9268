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
use crate::{AbortFlag, GeneratorUse, LoadError, OUTCOMES, RoleTotals, StepSpec, StepTotals};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceEnd {
    pub generator: GeneratorUse,
    pub clients: usize,
    pub in_flight_at_end: u64,
    pub error_examples: BTreeMap<String, String>,
    /// Warm-up included.
    pub committed: u64,
    pub measured: IntervalPart,
}

impl SliceEnd {
    pub fn of(totals: &StepTotals) -> SliceEnd {
        let examples = totals.error_examples.iter();
        SliceEnd {
            generator: totals.generator.clone(),
            clients: totals.roles.iter().map(|role| role.clients).sum(),
            in_flight_at_end: totals.in_flight_at_end,
            error_examples: examples
                .map(|(outcome, message)| ((*outcome).to_owned(), message.clone()))
                .collect(),
            committed: totals.roles.iter().map(|role| role.committed).sum(),
            measured: IntervalPart::of(&totals.measured),
        }
    }
}

/// By how much a generator's clock may have gone ahead in a step. Intervals are kept until all generators have sent
/// theirs.
const AHEAD_MOST: Nanoseconds = Nanoseconds::from_secs(60);

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
    /// next interval, is not one of this step, has not ended `now`, is damaged, or has impossible
    /// counts.
    pub fn add(
        &mut self,
        (of, now): (usize, Nanoseconds),
        (idx, part): (u64, &IntervalPart),
        observe: Watch<'_>,
    ) -> Loaded {
        let next = &mut self.next[of];
        if idx != *next {
            return Err(LoadError(format!("interval {idx} came in place of interval {next}")));
        }
        *next += 1;
        if self.collector.ends(idx).is_some_and(|end| end > now + AHEAD_MOST) {
            return Err(LoadError(format!("interval {idx} came before it had ended")));
        }
        if !part.is_within(INTERVAL_COUNT_MOST) {
            let why = format!("interval {idx} is damaged, or its counts are impossible");
            return Err(LoadError(why));
        }
        if self.collector.accept_part(idx, part, observe) {
            return Ok(());
        }
        Err(LoadError(format!("interval {idx} does not belong to this step")))
    }

    pub fn end(&mut self, end: &SliceEnd) -> Result<(), LoadError> {
        let GeneratorUse { cpu_user, cpu_system, run_queue, busiest_worker, workers } =
            end.generator;
        let threads = [workers, end.clients].map(|n| n as u64);
        let counts = [end.in_flight_at_end, end.committed].into_iter().chain(threads);
        let all = counts.fold(0, u64::saturating_add);
        if !end.measured.is_within(COUNT_MOST) || all > COUNT_MOST {
            return Err(LoadError("its end is damaged, or its counts are impossible".to_owned()));
        }
        self.workers += workers;
        self.busiest_worker = self.busiest_worker.max(busiest_worker);
        if let Some(role) = self.roles.first_mut() {
            role.clients += end.clients;
            role.committed += end.committed;
        }
        let example =
            |name: &&'static str| Some((*name, clean_text(end.error_examples.get(*name)?)));
        self.collector.add_end(WorkerEnd {
            cpu_user,
            cpu_system,
            run_queue,
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

#[cfg(test)]
mod tests {
    use dyno_model::Load;
    use dyno_units::Seed;

    use super::*;

    #[test]
    fn an_interval_from_the_future_is_refused() {
        let spec = StepSpec {
            load: Load::Closed { clients: 2 },
            step: 0,
            warm_up: Nanoseconds::ZERO,
            duration: Nanoseconds::from_secs(86_400),
            until_steady: None,
            gone_limit: None,
            statement_timeout: Nanoseconds::ZERO,
            retries: 0,
            workers: 1,
            cpus: Vec::new(),
            seed: Seed(1),
        };
        let mut merge = StepMerge::new(&spec, Nanoseconds::ZERO, 2, 0);
        let part = IntervalPart::default();
        let now = Nanoseconds::from_secs(10);
        let mut add = |idx| merge.add((0, now), (idx, &part), &mut |_| {});
        (0..70).for_each(|idx| add(idx).expect("its clock may be ahead"));
        assert_eq!(add(70), Err(LoadError("interval 70 came before it had ended".to_owned())));
    }
}
