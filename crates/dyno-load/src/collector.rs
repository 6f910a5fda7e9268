//! Merges the workers' intervals, in order, and adds them up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use dyno_units::Nanoseconds;
use dyno_workload::ConnectError;

use crate::counted::Counted;
use crate::engine::{StepEvent, Watch};
use crate::part::IntervalPart;
use crate::recorder::{Report, WorkerEnd, WorkerInterval};
use crate::timeline::{Finish, Steadiness, Timeline};
use crate::{AbortFlag, EndedBy, GeneratorUse, Interval, LoadError, Phase, StepSpec, StepTotals};

pub(crate) struct Collector {
    timeline: Timeline,
    // `None` if the step has a fixed length.
    finish: Option<Arc<Finish>>,
    // `None` if throughput need not become steady.
    steadiness: Option<Steadiness>,
    is_steady: bool,
    n_workers: usize,
    n_kinds: usize,
    // Intervals that not all workers have reported yet, oldest first.
    partial: VecDeque<Partial>,
    // Empty ones, for reuse.
    spare: Vec<Counted>,
    interval: Interval,
    next_idx: u64,
    began: Vec<Phase>,
    measured: Counted,
    measure_ended: Nanoseconds,
    end: WorkerEnd,
    busiest: Nanoseconds,
    n_ended: usize,
    // Workers whose last interval is in.
    n_last: usize,
    returns: Vec<Sender<WorkerInterval>>,
    // Raised to end all workers when one cannot go on.
    stop: AbortFlag,
    failure: Option<LoadError>,
    gone_for: Nanoseconds,
    gone_limit: Option<Nanoseconds>,
}

/// What ends a step before its longest time.
pub(crate) struct Until {
    pub(crate) finish: Option<Arc<Finish>>,
    pub(crate) steady_for: Option<Nanoseconds>,
    /// How long nothing may commit while clients fail to reconnect; `None` for no limit.
    pub(crate) gone_limit: Option<Nanoseconds>,
}

impl Until {
    pub(crate) fn of(spec: &StepSpec, finish: Arc<Finish>) -> Until {
        let StepSpec { until_steady: steady_for, gone_limit, .. } = *spec;
        Until { finish: Some(finish), steady_for, gone_limit }
    }
}

struct Partial {
    counted: Counted,
    n_reported: usize,
    connect_failures: u64,
    connect_error: Option<ConnectError>,
}

impl Collector {
    /// Of workers in this process, whose intervals go back to them.
    pub(crate) fn returning(self, returns: Vec<Sender<WorkerInterval>>) -> Collector {
        Collector { returns, ..self }
    }

    pub(crate) fn new(
        (timeline, n_workers): (Timeline, usize),
        until: Until,
        n_kinds: usize,
        stop: AbortFlag,
    ) -> Collector {
        let mut measured = Counted::new(n_kinds);
        measured.phase = Phase::Measure;
        measured.start = timeline.measure_began;
        Collector {
            timeline,
            finish: until.finish,
            steadiness: until.steady_for.map(Steadiness::new),
            gone_limit: until.gone_limit,
            is_steady: false,
            n_workers,
            n_kinds,
            partial: VecDeque::new(),
            spare: Vec::new(),
            interval: Interval::empty(n_kinds),
            next_idx: 0,
            began: Vec::new(),
            measured,
            measure_ended: timeline.measure_began,
            end: WorkerEnd::default(),
            busiest: Nanoseconds::ZERO,
            n_ended: 0,
            n_last: 0,
            returns: Vec::new(),
            stop,
            failure: None,
            gone_for: Nanoseconds::ZERO,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.n_ended == self.n_workers
    }

    /// Reports the phases that have begun; returns when the next one begins.
    pub(crate) fn announce(&mut self, now: Nanoseconds, observe: Watch<'_>) -> Option<Nanoseconds> {
        let Timeline { began, measure_began, .. } = self.timeline;
        for (phase, at) in [(Phase::WarmUp, began), (Phase::Measure, measure_began)] {
            let is_empty = phase == Phase::WarmUp && began == measure_began;
            if is_empty || self.began.contains(&phase) {
                continue;
            }
            if now < at {
                return Some(at);
            }
            self.began.push(phase);
            observe(StepEvent::PhaseBegan { phase, at });
        }
        None
    }

    pub(crate) fn accept(&mut self, report: Report, observe: Watch<'_>) {
        match report {
            Report::Connected => {}
            Report::Interval(report) => {
                self.merge(report);
                self.pass_on(observe);
            }
            Report::Ended(end) => self.add_end(end),
            Report::Failed(error) => {
                self.n_ended += 1;
                self.fail(error);
            }
        }
    }

    fn fail(&mut self, error: LoadError) {
        self.failure.get_or_insert(error);
        self.stop.raise();
    }

    /// `None` if it does not belong to the step.
    pub(crate) fn ends(&self, idx: u64) -> Option<Nanoseconds> {
        self.timeline.span(idx).map(|span| span.end)
    }

    /// Adds an interval of another process; false if it does not fit the step.
    pub(crate) fn accept_part(
        &mut self,
        idx: u64,
        part: &IntervalPart,
        observe: Watch<'_>,
    ) -> bool {
        if self.timeline.span(idx).is_none() {
            return false;
        }
        let Some(partial) = self.partial_at(idx) else { return false };
        let fits = partial.counted.add_part(part);
        partial.n_reported += 1;
        self.pass_on(observe);
        fits
    }

    /// `None` if it has been passed on.
    fn partial_at(&mut self, idx: u64) -> Option<&mut Partial> {
        let position = idx.checked_sub(self.next_idx)?;
        while self.partial.len() as u64 <= position {
            let idx = self.next_idx + self.partial.len() as u64;
            let fresh = || Counted::new(self.n_kinds);
            let mut counted = self.spare.pop().unwrap_or_else(fresh);
            if let Some(span) = self.timeline.span(idx) {
                counted.stamp(&span);
            }
            let (n_reported, connect_failures, connect_error) = (0, 0, None);
            let fresh = Partial { counted, n_reported, connect_failures, connect_error };
            self.partial.push_back(fresh);
        }
        Some(&mut self.partial[position as usize])
    }

    fn merge(&mut self, mut report: WorkerInterval) {
        let Some(partial) = self.partial_at(report.idx) else { return };
        partial.counted.add(&report.counted);
        partial.n_reported += 1;
        partial.connect_failures += std::mem::take(&mut report.connect_failures);
        partial.connect_error = report.connect_error.take().or(partial.connect_error.take());
        self.n_last += usize::from(std::mem::take(&mut report.is_last));
        report.counted.clear();
        // A worker that has ended does not want the interval back.
        let _ = self.returns[report.worker_idx].send(report);
    }

    /// When quotas, clients or steadiness ended the step; `None` before.
    fn finished_at(&self) -> Option<Nanoseconds> {
        self.finish.as_ref().map(|finish| finish.at()).filter(|at| *at < Nanoseconds(u64::MAX))
    }

    /// Cuts the last interval at the step's end and adds what workers recorded before they knew it.
    fn cut(&mut self, end: Nanoseconds) {
        let Some(last) = self.timeline.last_idx(end).checked_sub(self.next_idx) else { return };
        while self.partial.len() as u64 > last + 1 {
            let Some(late) = self.partial.pop_back() else { return };
            let Some(before) = self.partial.back_mut() else { return };
            before.counted.add_late(&late.counted);
            before.connect_failures += late.connect_failures;
            before.connect_error = late.connect_error.or(before.connect_error.take());
        }
        if self.partial.len() as u64 == last + 1
            && let Some(partial) = self.partial.back_mut()
        {
            partial.counted.length = end.saturating_sub(partial.counted.start);
        }
    }

    fn is_front_complete(&self, finished_at: Option<Nanoseconds>) -> bool {
        // Workers that have reported the last interval may not know yet that it is the last.
        let is_last = finished_at.is_some_and(|at| self.timeline.last_idx(at) <= self.next_idx);
        let Some(front) = self.partial.front() else { return false };
        front.n_reported == self.n_workers && (!is_last || self.n_last == self.n_workers)
    }

    fn pass_on(&mut self, observe: Watch<'_>) {
        let finished_at = self.finished_at();
        if let Some(end) = finished_at {
            self.cut(end);
        }
        while self.is_front_complete(finished_at) {
            let Some(partial) = self.partial.pop_front() else { return };
            self.next_idx += 1;
            let interval = &partial.counted;
            self.announce(interval.start, observe);
            interval.write_to(&mut self.interval);
            observe(StepEvent::Interval(&self.interval));
            if interval.phase == Phase::Measure {
                self.measured.add(interval);
                self.measure_ended = interval.start + interval.length;
            }
            self.watch_throughput(&partial.counted);
            self.watch_server(&partial);
            let mut spare = partial.counted;
            spare.clear();
            self.spare.push(spare);
        }
    }

    /// Ends a steady step at the end of the running second.
    fn watch_throughput(&mut self, counted: &Counted) {
        let (Some(finish), Some(steadiness)) = (&self.finish, &mut self.steadiness) else { return };
        // A shorter last interval gives no comparable rate.
        if self.is_steady
            || counted.phase != Phase::Measure
            || counted.length != Nanoseconds::SECOND
            || !steadiness.push(counted.commits() as f64)
        {
            return;
        }
        // Some workers may have reported later intervals already; none is beyond these.
        let running = self.next_idx + self.partial.len() as u64;
        if let Some(span) = self.timeline.span(running) {
            self.is_steady = true;
            finish.end_at(span.end);
        }
    }

    fn watch_server(&mut self, partial: &Partial) {
        if partial.counted.commits() > 0 {
            self.gone_for = Nanoseconds::ZERO;
        } else if partial.connect_failures > 0 {
            self.gone_for += partial.counted.length;
        }
        if let Some(limit) = self.gone_limit.filter(|limit| self.gone_for >= *limit)
            && let Some(error) = &partial.connect_error
        {
            self.fail(LoadError(format!(
                "the server went away: nothing has committed for {limit}; {error}"
            )));
        }
    }

    pub(crate) fn add_end(&mut self, end: WorkerEnd) {
        self.n_ended += 1;
        let mine = &mut self.end;
        self.busiest = self.busiest.max(end.cpu_user + end.cpu_system);
        mine.cpu_user += end.cpu_user;
        mine.cpu_system += end.cpu_system;
        if let Some(waited) = end.run_queue {
            mine.run_queue = Some(mine.run_queue.unwrap_or_default() + waited);
        }
        mine.in_flight_at_end += end.in_flight_at_end;
        if mine.roles.is_empty() {
            mine.roles = end.roles;
        } else {
            for (mine, theirs) in mine.roles.iter_mut().zip(end.roles) {
                mine.clients += theirs.clients;
                mine.committed += theirs.committed;
                mine.unfinished += theirs.unfinished;
            }
        }
        for (outcome, example) in end.error_examples {
            mine.error_examples.entry(outcome).or_insert(example);
        }
    }

    pub(crate) fn finish(mut self) -> Result<StepTotals, LoadError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let finished_at = self.finished_at();
        let planned_end = finished_at.unwrap_or(self.timeline.ended);
        if planned_end <= self.timeline.measure_began {
            return Err(LoadError(
                "all clients had done what they were to do before the warm-up ended, so nothing was \
                 measured; shorten the warm-up or let them do more"
                    .to_owned(),
            ));
        }
        let length = self.measure_ended - self.timeline.measure_began;
        self.measured.length = length;
        self.measured.write_to(&mut self.interval);
        let busiest_worker = match length {
            Nanoseconds::ZERO => 0.0,
            length => self.busiest.as_secs_f64() / length.as_secs_f64(),
        };
        let WorkerEnd { cpu_user, cpu_system, run_queue, .. } = self.end;
        let workers = self.n_workers;
        Ok(StepTotals {
            measure_began: self.timeline.measure_began,
            measure_ended: self.measure_ended,
            measured: self.interval,
            generator: GeneratorUse { cpu_user, cpu_system, run_queue, busiest_worker, workers },
            error_examples: self.end.error_examples,
            in_flight_at_end: self.end.in_flight_at_end,
            aborted: self.measure_ended < planned_end,
            ended_by: match (self.finish.is_some_and(|finish| finish.is_planned), finished_at) {
                (_, Some(_)) if self.is_steady => EndedBy::Steady,
                (_, Some(_)) => EndedBy::Quota,
                (false, None) => EndedBy::Time,
                (true, None) if self.steadiness.is_some() => EndedBy::Unsteady,
                (true, None) => EndedBy::Limit,
            },
            roles: self.end.roles,
        })
    }
}
