//! A measured step.

use dyno_model::{Load, WorkloadStep};
use dyno_record::{EventKind, StepSummary, VolumeDip};
use dyno_study::{JobChoice, JobLoad, LoadLevel, PlannedStep, ProbeSource, Variant};
use dyno_units::Nanoseconds;

use crate::activity::{
    Activities, Activity, Beside, Faults, Journal, Length, LoadActivity, LoadPlan,
    ObservationActivity, StepEnd, VolumeDips, p95_us, response_times, throughput, watched,
    watched_load,
};
use crate::hosts::work_of;
use crate::job::{self, Prepared, Target};
use crate::{Result, RunOrder, Trial, Watched, fail};

pub(super) struct Step {
    pub(super) step: usize,
    pub(super) planned: PlannedStep,
    /// What the variant's workload does in it, if it defines its steps itself.
    pub(super) own: Option<WorkloadStep>,
}

impl Step {
    pub(super) fn run(&self, trial: &mut Trial<'_, '_>) -> Result {
        let (mut summary, result) = self.measure(trial)?;
        summary.settled = trial.results.settled.take();
        if let Some(message) = self.unfinished(&summary) {
            trial.note(message)?;
        }
        // A step of a workload that was measured has kinds. Of what was only observed, nothing waited.
        let has_load = trial.workload.outline().observation.is_none();
        let ended = (has_load && !summary.kinds.is_empty()).then(|| EventKind::StepEnded {
            step: self.step,
            throughput: throughput(&summary),
            p95_us: p95_us(&summary),
            measured_s: Some(summary.measured_s),
        });
        for dip in summary.dips.clone() {
            let VolumeDip { volume, start_s, length_s, limit } = dip;
            let step = self.step;
            trial.event(EventKind::VolumeDipped { step, volume, start_s, length_s, limit })?;
        }
        for fault in summary.faults.clone() {
            trial.event(EventKind::FaultMade { step: self.step, fault })?;
        }
        if let Some(fault) = trial.variant.fault().filter(|_| summary.faults.is_empty()) {
            let (name, at) = (fault.name, fault.at);
            trial.note(format!(
                "the fault {name} did not happen: the measured time ended before {at}"
            ))?;
        }
        let dead_end = dead_end(&summary).filter(|_| has_load);
        trial.results.summary.steps.push(summary);
        ended.map_or(Ok(()), |ended| trial.event(ended))?;
        result?;
        if let Some(why) = dead_end {
            return fail(format!("{}: {why}", self.planned.name));
        }
        // Clients that try to connect again and again fail one by one, but no step fails by that.
        match trial.deployment.down() {
            Some(_) => fail("the server exited under load"),
            None => Ok(()),
        }
    }

    /// What was measured, and how it ended. An error if nothing was measured.
    fn measure(&self, trial: &mut Trial<'_, '_>) -> Result<(StepSummary, Result)> {
        let job = trial.variant.job();
        if let LoadLevel::Search(search) = &self.planned.load {
            if let Some(JobChoice { name, .. }) = job {
                return fail(format!("the job {name} cannot run during a search for a load"));
            }
            return Ok((self.search(trial, search)?, Ok(())));
        }
        let load = match (&self.planned.load, &self.own) {
            _ if job.as_ref().is_some_and(|job| job.load == JobLoad::Off) => None,
            (LoadLevel::Given(load), _) => Some(load.clone()),
            (_, Some(own)) => Some(Load::Roles(own.roles.clone())),
            _ => return fail("the workload does not define the plan's steps"),
        };
        let mut load = load.map(|load| self.load(trial, 0, load));
        let mut prepared = Prepared::default();
        if let Some(job) = &job {
            let target = Target::of(job, &trial.deployment)?;
            prepared = job::prepare(job, trial.lab, &target, &*trial.workload)?;
            // Simulated time does not wait for a job in real time.
            let goes_on = job.load == JobLoad::UntilDone && !trial.deployment.is_simulated();
            let goes_on = load.as_mut().filter(|_| goes_on);
            goes_on.into_iter().for_each(|load| load.length.duration = job::LONGEST_LOAD);
        }
        let (mut end, result) = self.run_activities(trial, load, &prepared)?;
        let is_done = |name: &str| {
            let mut ended = end.summary.activities.iter().filter(|one| one.name == name);
            result.is_ok() && ended.any(|one| one.is_done)
        };
        let done = job.as_ref().filter(|job| is_done(&job.name));
        let result = match done {
            Some(job) => Target::of(job, &trial.deployment).and_then(|target| {
                job::add_data_rate(job, &target, &mut end);
                job::check(job, &target, &prepared)
            }),
            None => result,
        };
        let is_measured = !end.summary.kinds.is_empty() || !end.summary.activities.is_empty();
        match result {
            Err(error) if !is_measured => Err(error),
            result => Ok((trial.take(end), result)),
        }
    }

    pub(super) fn run_activities(
        &self,
        trial: &mut Trial<'_, '_>,
        load: Option<LoadPlan>,
        prepared: &Prepared,
    ) -> Result<(StepEnd, Result)> {
        trial.results.was_loaded = true;
        let Trial { lab, order, variant, workload, deployment, generators, events, writer, .. } =
            trial;
        let observation = workload.outline().observation.filter(|_| load.is_some());
        let has_load = load.is_some() && observation.is_none();
        let length = load.as_ref().map_or(Nanoseconds(u64::MAX), |load| load.length.duration);
        let generators = generators.as_ref().map(|all| (all, work_of(order.plan, variant)));
        let here = load.map(|plan| -> Result<Box<dyn Activity + '_>> {
            if let Some(how) = observation {
                let by = (&**lab, order.watching.as_ref());
                return Ok(Box::new(ObservationActivity::new(by, &plan.name, how, plan.length)?));
            }
            let load = LoadActivity::new(plan, (lab, order), workload, deployment)?;
            Ok(Box::new(load.on(generators)))
        });
        let here = here.transpose()?;
        let volumes = deployment.members.iter().flat_map(|member| &member.volumes);
        let dips: Vec<VolumeDips> =
            volumes.filter_map(|volume| VolumeDips::of(volume, &lab.clock)).collect();
        let server = deployment.server();
        let job = variant.job().map(|job| {
            let target = Target::of(&job, deployment)?;
            job::activity(&job, lab, &target, prepared)
        });
        let faults = variant.fault().map(|fault| Faults::of((fault, length), lab, deployment));
        let faults = faults.transpose()?.map(|faults| aside(Box::new(faults)));
        let dips = dips.into_iter().map(|dips| aside(Box::new(dips)));
        let job = job.transpose()?.into_iter();
        let mut beside: Vec<Beside<'_>> = job.chain(dips).chain(faults).collect();
        let is_for_nobody = server.is_none() && !deployment.is_simulated();
        if let Some(name) = sql_for_nobody(order, variant).filter(|_| is_for_nobody) {
            return fail(format!("the probe `{name}` sends SQL, and there is no server"));
        }
        let process = observation.and_then(|observation| observation.process);
        let watched = (server.is_some() || !deployment.is_simulated()).then(|| {
            let watched = watched(lab, order, &variant.database.name, (deployment, process));
            let watched = match observation {
                Some(observation) => watched.with_period(observation.every),
                None => watched,
            };
            match server.filter(|_| has_load) {
                Some(server) => watched_load(watched, workload, server),
                None => watched,
            }
        });
        let probes = beside.iter_mut().filter_map(|beside| beside.activity.probe());
        let watched = watched.map(|watched| probes.fold(watched, Watched::with));
        let is_local = process.is_some()
            || deployment.hosts.is_some()
            || server.is_some_and(|server| !server.watched_processes().is_empty());
        let keeps = order.watching.as_ref().is_none_or(|watching| watching.keeps_readings);
        let mut activities = Activities { here, beside };
        let to = (&mut **events, &mut **writer);
        let mut journal = Journal::new(lab, self.step, to, (watched, is_local), keeps);
        Ok(activities.run(&mut journal))
    }

    /// The load of this step; `probe` counts the load probes of a search from 1.
    pub(super) fn load(&self, trial: &Trial<'_, '_>, probe: u32, load: Load) -> LoadPlan {
        // A variant's own step may have quotas where that of the plan has none.
        let own = self.own.as_ref();
        let until_steady =
            self.planned.until_steady.filter(|_| !own.is_some_and(WorkloadStep::ends_by_quota));
        // The plan has the longest time of all variants.
        let duration = match own {
            Some(own) if until_steady.is_none() => own.limit,
            _ => self.planned.duration,
        };
        LoadPlan {
            block: trial.planned.block,
            step: self.step,
            name: self.planned.name.clone(),
            probe,
            has_faults: trial.variant.fault().is_some(),
            load,
            length: Length { warm_up: self.planned.warm_up, duration, until_steady },
        }
    }

    /// What to say of a step that ran out of its longest time before all was done, or it was steady.
    fn unfinished(&self, summary: &StepSummary) -> Option<String> {
        let name = &self.planned.name;
        match summary.ended_by.as_deref() {
            Some("limit") => {
                let limit = self.own.as_ref().map_or(self.planned.duration, |own| own.limit);
                Some(format!(
                    "{name} was ended at its time limit, {limit}, before its work was done: \
                     the tables are not in the state that the workload expects, and the \
                     step's time cannot be used"
                ))
            }
            Some("unsteady") => Some(format!(
                "{name} was ended at its time limit, {}, before its throughput was steady",
                self.planned.duration
            )),
            _ => None,
        }
    }
}

/// From the beginning of the step, which does not wait for its end.
fn aside<'a>(activity: Box<dyn Activity + Send + 'a>) -> Beside<'a> {
    Beside { activity, ends_step: false, starts_after: Nanoseconds::ZERO }
}

impl Trial<'_, '_> {
    /// Adds what came of one run of activities; returns their summary.
    pub(super) fn take(&mut self, end: StepEnd) -> StepSummary {
        let results = &mut *self.results;
        results.did.add(&end.did);
        let n = results.done_there.len().max(end.done_there.len());
        results.done_there.resize_with(n, Default::default);
        results.done_there.iter_mut().zip(&end.done_there).for_each(|(sum, done)| sum.add(done));
        results.summary.probes_cpu_s += end.probes.cpu.as_secs_f64();
        results.summary.probes_wall_s += end.probes.wall.as_secs_f64();
        results.summary.meanings.extend(end.meanings);
        for metric in end.metrics {
            if results.summary.metrics.iter().all(|known| known.id != metric.id) {
                results.summary.metrics.push(metric);
            }
        }
        end.summary
    }
}

/// A probe of the study's own that sends SQL to the server of a variant.
fn sql_for_nobody<'a>(order: &RunOrder<'a>, variant: &Variant) -> Option<&'a str> {
    let mut probes = order.probes.iter().filter(|probe| probe.is_read_in(&variant.database.name));
    probes.find_map(|probe| matches!(probe.source, ProbeSource::Sql(_)).then_some(&*probe.name))
}

/// A step is not to be trusted if nothing committed in this share of its measured time, at its end …
const DEAD_SHARE: f64 = 1.0 / 3.0;
/// … and in at least so many seconds …
const DEAD_LEAST_S: f64 = 2.0;
/// … which is this many times as long as its slowest transactions but one in a hundred took.
const DEAD_TIMES_P99: f64 = 10.0;

/// Why a step whose work stopped for good is not trusted: its server hangs or has gone away. None if
/// work went on, or never began. Not for searches, which try excessive loads, and servers with faults,
/// which are away on purpose: whether they answer is checked after the step.
fn dead_end(step: &StepSummary) -> Option<String> {
    let seconds = step.intervals.start_s.iter().zip(&step.intervals.throughput);
    let last = seconds.rev().find(|(_, throughput)| **throughput > 0.0).map(|(start, _)| *start)?;
    // The last second with a commit may have had it at its very end.
    let dead_s = step.measured_s - (last + 1.0).max(0.0);
    let p99_s = response_times(step).value_at_quantile(0.99) as f64 / 1e9;
    let is_dead = step.search.is_none()
        && step.faults.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // A server that was frozen two seconds after the measurement phase had begun.
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
