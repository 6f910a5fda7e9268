//! The load: a workload's timed transactions, sent by the generator in `dyno-load`.

use dyno_database::Server;
use dyno_load::{
    AbortFlag, EndedBy, GONE_LIMIT, Interval, LoadError, Phase, StepEvent, StepSpec, StepTotals,
};
use dyno_model::{Load, Name};
use dyno_record::{
    EncodedCounts, EncodedHistogram, Entry, EventKind, HostSummary, IntervalColumns,
    IntervalRecord, KindInterval, KindSummary, StepSummary, WriteError, new_histogram,
};
use dyno_units::Nanoseconds;
use dyno_units::reading::known;
use dyno_workload::{AuditTotals, MadeWorkload, MeasuredStep};
use hdrhistogram::Histogram;

use super::{Activity, Journal, StepEnd, Surroundings};
use crate::agent::message::Work;
use crate::deployment::{Deployment, Instance, LoadOrder};
use crate::error::{Context, Result, TrialError};
use crate::events::kinds_event;
use crate::hosts::{Agents, Generated, LoadRequest};
use crate::lab::{Lab, RunOrder};
use crate::observe::{Span, Watched, six_digits};
use crate::totals::{DoneThere, generator, outcomes, totals};

const BIN: Nanoseconds = Nanoseconds::from_millis(100);

pub(crate) struct LoadActivity<'a> {
    lab: &'a Lab,
    workload: &'a MadeWorkload,
    deployment: &'a Deployment,
    target: &'a Instance,
    /// The hosts that generate it, with what they do; none where this process does.
    generators: Option<(&'a Agents, Work)>,
    workers: Option<u32>,
    spec: StepSpec,
    /// The step's name, in a search with the load that is tried.
    name: String,
    outcome: Option<Outcome>,
    measured: Option<Measured>,
}

struct Measured {
    committed: Vec<u64>,
    seconds: f64,
    cpu_s: Option<f64>,
}

struct Outcome {
    totals: StepTotals,
    intervals: Intervals,
    did: AuditTotals,
    done_there: Vec<DoneThere>,
    /// User and system CPU seconds of the whole process in the measurement phase, in real time.
    process_cpu: Option<(f64, f64)>,
    hosts: Vec<HostSummary>,
    /// Whether the step ended it before its time.
    was_stopped: bool,
}

pub(crate) struct LoadPlan {
    /// The trial's block: all its variants draw the same random numbers.
    pub(crate) block: u32,
    pub(crate) step: usize,
    pub(crate) name: String,
    /// Which load probe of a search it is, counted from 1; 0 for a step that searches nothing.
    pub(crate) probe: u32,
    /// Whether faults are injected meanwhile: that activity waits until the server is back.
    pub(crate) has_faults: bool,
    pub(crate) load: Load,
    pub(crate) length: Length,
}

#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) warm_up: Nanoseconds,
    /// Measured time; the longest one of a step that ends when something is done, or is steady.
    pub(crate) duration: Nanoseconds,
    /// How long throughput has to be steady before the step ends, where that ends it.
    pub(crate) until_steady: Option<Nanoseconds>,
}

impl Activity for LoadActivity<'_> {
    fn name(&self) -> &str {
        "load"
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result {
        let journal = at.journal.as_deref_mut().context("a load runs on the thread of its step")?;
        let mut listener = Listener {
            name: &self.name,
            kinds: self.workload.kinds(),
            journal,
            cpu_began: None,
            cpu_latest: None,
            intervals: Intervals::default(),
            did: AuditTotals::default(),
            failure: None,
        };
        let generated = self.generate(at.stop, &mut |event| listener.on_event(event));
        let own_cpu = listener.process_cpu().filter(|_| self.target.server().is_some());
        let Listener { intervals, mut did, failure, .. } = listener;
        if let Some(error) = failure {
            return Err(TrialError::Record(error));
        }
        let Generated { totals, hosts, process_cpu, done_there } = generated?;
        let process_cpu = if hosts.is_empty() { own_cpu } else { process_cpu };
        if totals.aborted && self.lab.abort.is_raised() {
            return Err(TrialError::Abandoned);
        }
        did.in_flight = totals.in_flight_at_end;
        let was_stopped = totals.aborted;
        self.outcome =
            Some(Outcome { totals, intervals, did, done_there, process_cpu, hosts, was_stopped });
        Ok(())
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let Some(mut outcome) = self.outcome.take() else { return };
        end.did.add(&outcome.did);
        end.done_there = std::mem::take(&mut outcome.done_there);
        let Outcome { totals, process_cpu, .. } = &outcome;
        let kinds = totals.measured.kinds.iter();
        self.measured = Some(Measured {
            committed: kinds.map(|kind| kind.outcomes.committed()).collect(),
            seconds: totals.measure_ended.saturating_sub(totals.measure_began).as_secs_f64(),
            cpu_s: process_cpu.map(|(user_s, system_s)| user_s + system_s),
        });
        self.summarise(outcome, &mut end.summary);
    }

    fn add_readings_to(&self, end: &mut StepEnd) {
        let Some(Measured { committed, seconds, cpu_s }) = &self.measured else { return };
        let memory = end.summary.readings.get(known::SERVER_RSS).map_or(&[][..], Vec::as_slice);
        let measured = MeasuredStep {
            step: self.spec.step,
            committed,
            seconds: *seconds,
            cpu_s: *cpu_s,
            server_memory: memory.iter().flatten().copied().reduce(f64::max),
        };
        end.summary.figures.extend(self.workload.figures(&measured));
        end.metrics.extend(self.workload.outline().metrics.iter().cloned());
    }
}

impl<'a> LoadActivity<'a> {
    pub(crate) fn new(
        plan: LoadPlan,
        (lab, order): (&'a Lab, &RunOrder<'_>),
        workload: &'a MadeWorkload,
        deployment: &'a Deployment,
    ) -> Result<LoadActivity<'a>> {
        let target = deployment
            .entry(Entry::Write)
            .context("the trial has no server that the workload could connect to")?;
        let blocks_worker = deployment.server().is_some_and(Server::blocks_worker);
        Ok(LoadActivity {
            lab,
            workload,
            deployment,
            target,
            generators: None,
            workers: order.design.workers,
            name: plan.name(),
            spec: plan.spec(lab, order, blocks_worker),
            outcome: None,
            measured: None,
        })
    }

    pub(crate) fn on(self, generators: Option<(&'a Agents, Work)>) -> LoadActivity<'a> {
        LoadActivity { generators, ..self }
    }

    fn generate(
        &self,
        abort: &AbortFlag,
        observe: &mut dyn FnMut(StepEvent<'_>),
    ) -> Result<Generated, LoadError> {
        let LoadActivity { lab, workload, deployment, .. } = *self;
        let Some((generators, work)) = &self.generators else {
            let rows = deployment.tables().map(Server::connector);
            let spread = deployment.spread(lab);
            let order = LoadOrder { lab, workload, abort, rows, spread };
            let totals = self.target.run_load(&self.spec, &order, observe)?;
            let (hosts, done_there) = (Vec::new(), Vec::new());
            return Ok(Generated { totals, hosts, process_cpu: None, done_there });
        };
        let endpoints = deployment.load_endpoints();
        if endpoints.is_empty() {
            return Err(LoadError("agents cannot connect to it: it has no address".to_owned()));
        }
        let request = LoadRequest {
            endpoints: &endpoints,
            supports_named_statements: deployment.supports_named_statements(),
            work: work.clone(),
            workload,
            workers: self.workers,
            measures_network: deployment.hosts.is_some(),
            abort,
        };
        generators.run_load(&self.spec, &request, observe)
    }

    /// How close the workers came to what they can do on this machine.
    fn add_share(&self, server: &dyn Server, summary: &mut StepSummary) {
        let Some(calibration) = &self.lab.calibration else { return };
        let workers = f64::from(summary.generator.workers.max(1));
        let statements = (summary.reads + summary.writes + summary.others) as f64;
        let rate = statements / summary.measured_s.max(f64::MIN_POSITIVE) / workers;
        let clients = self.spec.load.clients() as f64 / workers;
        let share = calibration.share(server.dialect(), clients, rate);
        summary.generator.share_of_calibrated = share;
        summary.generator.calibration_disturbed = calibration.is_disturbed;
    }

    fn summarise(&self, outcome: Outcome, summary: &mut StepSummary) {
        let Outcome { totals, intervals, process_cpu, hosts, was_stopped, .. } = outcome;
        let measured = &totals.measured;
        let ended_by = if was_stopped { "activity" } else { ended_by(totals.ended_by) };
        summary.ended_by = Some(ended_by.to_owned());
        let measured_for = totals.measure_ended.saturating_sub(totals.measure_began);
        summary.measured_s = measured_for.as_secs_f64();
        summary.kinds = kinds(self.workload.kinds(), measured, intervals.commits_100ms());
        summary.reads = measured.tally.reads;
        summary.writes = measured.tally.writes;
        summary.others = measured.tally.others;
        summary.rows_received = measured.tally.rows_received;
        summary.rows_changed = measured.tally.rows_changed;
        summary.warnings = measured.tally.warnings;
        summary.due = measured.due;
        summary.missed = measured.missed;
        summary.in_flight_at_end = Some(totals.in_flight_at_end);
        summary.retries = measured.retries;
        summary.reconnects = measured.reconnects;
        summary.lag = EncodedHistogram::encode(&measured.lag);
        summary.generator = generator(&totals.generator);
        if let Some((user_s, system_s)) = process_cpu {
            summary.generator.process_cpu_user_s = Some(user_s);
            summary.generator.process_cpu_system_s = Some(system_s);
        }
        let examples = totals.error_examples.iter();
        summary.error_examples =
            examples.map(|(outcome, message)| ((*outcome).to_owned(), message.clone())).collect();
        let spans = intervals.spans.iter().map(|(start, length)| (start.0, length.0));
        summary.spans = Some(spans.collect());
        summary.intervals = intervals.into_columns(totals.measure_began);
        summary.hosts = hosts;
        // What other machines can do was not measured.
        let is_here = self.generators.as_ref().is_none_or(|(generators, _)| generators.is_local());
        if let Some(server) = self.target.server().filter(|_| is_here) {
            self.add_share(server, summary);
        }
    }
}

impl LoadPlan {
    fn spec(&self, lab: &Lab, order: &RunOrder<'_>, blocks_worker: bool) -> StepSpec {
        let design = order.design;
        let load = self.load.clone();
        let seed = order.plan.seed;
        let seed = seed.derive("load", u64::from(self.block) << 16 | self.step as u64);
        let workers = match design.workers {
            Some(workers) => workers as usize,
            None if blocks_worker => load.clients(),
            None => lab.environment.cpus.max(1) as usize,
        };
        StepSpec {
            step: match &load {
                Load::Roles(_) => self.step,
                Load::Closed { .. } | Load::Open { .. } | Load::Stepped { .. } => 0,
            },
            warm_up: self.length.warm_up,
            duration: self.length.duration,
            until_steady: self.length.until_steady,
            gone_limit: (!self.has_faults).then_some(GONE_LIMIT),
            statement_timeout: design.statement_timeout,
            retries: design.retries,
            workers: workers.clamp(1, load.clients().max(1)),
            cpus: design.generator_cpus.clone(),
            // A level that is measured again meets other arrivals.
            seed: match self.probe {
                0 => seed,
                probe => seed.derive("probe", u64::from(probe)),
            },
            load,
        }
    }

    fn name(&self) -> String {
        let name = &self.name;
        match (self.probe, &self.load) {
            (0, _) | (_, Load::Roles(_) | Load::Stepped { .. }) => name.clone(),
            (probe, Load::Open { rate, .. }) => format!("{name}, probe {probe}: {rate}/s"),
            (probe, Load::Closed { clients: 1 }) => format!("{name}, probe {probe}: 1 client"),
            (probe, Load::Closed { clients }) => {
                format!("{name}, probe {probe}: {clients} clients")
            }
        }
    }
}

/// What is observed in a step with load: also what the workload itself asks its tables.
pub(crate) fn watched_load(watched: Watched, load: &MadeWorkload, server: &dyn Server) -> Watched {
    let query = load.readings_query(server.dialect());
    match query.filter(|_| server.stores_data()) {
        Some(sql) => watched.with(dyno_database::sql_probe(
            server.connector(),
            load.name(),
            &sql,
            Nanoseconds::SECOND,
        )),
        None => watched,
    }
}

fn ended_by(ended: EndedBy) -> &'static str {
    match ended {
        EndedBy::Time => "time",
        EndedBy::Quota => "quota",
        EndedBy::Steady => "steady",
        EndedBy::Limit => "limit",
        EndedBy::Unsteady => "unsteady",
    }
}

fn kinds(names: &[Name], measured: &Interval, mut commits: Vec<EncodedCounts>) -> Vec<KindSummary> {
    commits.resize(names.len(), EncodedCounts::default());
    let kinds = names.iter().zip(&measured.kinds).zip(commits);
    let kinds = kinds.map(|((name, kind), commits)| KindSummary {
        commits_100ms: Some(commits),
        name: name.clone().into_owned(),
        outcomes: outcomes(kind.outcomes.0),
        response: EncodedHistogram::encode(&kind.response),
        service: EncodedHistogram::encode(&kind.service),
    });
    kinds.collect()
}

/// Committed transactions per second of a step.
pub(crate) fn throughput(summary: &StepSummary) -> f64 {
    let committed: u64 =
        summary.kinds.iter().filter_map(|kind| kind.outcomes.get("committed")).sum();
    if summary.measured_s > 0.0 { committed as f64 / summary.measured_s } else { 0.0 }
}

/// p95 response time of a step, all kinds together, in microseconds.
pub(crate) fn p95_us(summary: &StepSummary) -> f64 {
    response_times(summary).value_at_quantile(0.95) as f64 / 1e3
}

/// Response times of a step, all kinds together, in nanoseconds.
pub(crate) fn response_times(summary: &StepSummary) -> Histogram<u64> {
    let mut all = new_histogram();
    for kind in &summary.kinds {
        if let Some(histogram) = kind.response.decode() {
            // All of Dyno's histograms have the same bounds.
            all.add(histogram).expect("the bounds are the same");
        }
    }
    all
}

struct Listener<'s, 'a, 't> {
    name: &'s str,
    kinds: &'s [Name],
    journal: &'s mut Journal<'a, 't>,
    /// User and system CPU seconds of the whole process when the measurement phase began …
    cpu_began: Option<(f64, f64)>,
    /// … and at the end of the latest interval.
    cpu_latest: Option<(f64, f64)>,
    intervals: Intervals,
    did: AuditTotals,
    failure: Option<WriteError>,
}

impl Listener<'_, '_, '_> {
    fn on_event(&mut self, event: StepEvent<'_>) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.write(event) {
            self.journal.lab.abort.raise();
            self.failure = Some(error);
        }
    }

    fn write(&mut self, event: StepEvent<'_>) -> Result<(), WriteError> {
        let step = self.journal.step;
        match event {
            StepEvent::Connected { .. } => Ok(()),
            StepEvent::PhaseBegan { phase, at } => {
                self.journal.begin(at)?;
                if phase == Phase::Measure {
                    self.journal.measure(at);
                    self.cpu_began = dyno_host::own_cpu();
                }
                let (name, phase) = (self.name.to_owned(), phase_name(phase).to_owned());
                self.journal.event(EventKind::PhaseBegan { step, name, phase })
            }
            StepEvent::Interval(interval) => {
                self.cpu_latest = dyno_host::own_cpu();
                self.journal.take_samples()?;
                self.intervals.push(interval);
                self.did.add(&totals(interval));
                let columns = &self.intervals.columns;
                let since = |began| interval.start.saturating_sub(began).0 / 1_000_000_000;
                let second = self.journal.measure_began.map_or(-1, |began| since(began) as i64);
                self.journal.events.notify(EventKind::IntervalEnded {
                    step,
                    second,
                    throughput: columns.throughput.last().copied().unwrap_or_default(),
                    p95_us: columns.p95_us.last().copied().unwrap_or_default(),
                });
                let told = kinds_event(self.name.to_owned(), self.kinds, interval);
                self.journal.events.notify(told);
                let kinds = self.kinds.iter().zip(&interval.kinds).map(|(name, kind)| {
                    KindInterval { kind: name, response: &kind.response, service: &kind.service }
                });
                self.journal.writer.interval(&IntervalRecord {
                    step,
                    phase: phase_name(interval.phase),
                    start_ns: interval.start.0,
                    length_ns: interval.length.0,
                    kinds: kinds.collect(),
                })
            }
        }
    }

    fn process_cpu(&self) -> Option<(f64, f64)> {
        let (began, latest) = (self.cpu_began?, self.cpu_latest?);
        Some((latest.0 - began.0, latest.1 - began.1))
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::WarmUp => "warm-up",
        Phase::Measure => "measure",
    }
}

/// The per-second columns of a step while it runs.
#[derive(Default)]
struct Intervals {
    spans: Vec<Span>,
    columns: IntervalColumns,
    /// Commits of each kind in each 100 ms.
    commits: Vec<Vec<u32>>,
}

impl Intervals {
    fn push(&mut self, interval: &Interval) {
        self.commits.resize(interval.kinds.len(), Vec::new());
        // Bins that an interval, being shorter than a second, does not reach are left out.
        let n_bins = interval.length.0.div_ceil(BIN.0) as usize;
        for (commits, kind) in self.commits.iter_mut().zip(&interval.kinds) {
            commits.extend(kind.bins.iter().take(n_bins));
        }
        let mut merged = new_histogram();
        for kind in &interval.kinds {
            merged.add(&kind.response).expect("the bounds are the same");
        }
        let us = |quantile: f64| six_digits(merged.value_at_quantile(quantile) as f64 / 1e3);
        let seconds = interval.length.as_secs_f64().max(1e-9);
        let per_s = |count: u64| six_digits(count as f64 / seconds);
        let committed = interval.kinds.iter().map(|kind| kind.outcomes.committed()).sum();
        let failed = interval.kinds.iter().map(|kind| kind.outcomes.failed()).sum();
        self.spans.push((interval.start, interval.length));
        self.columns.throughput.push(per_s(committed));
        self.columns.errors.push(per_s(failed));
        self.columns.missed.push(per_s(interval.missed));
        self.columns.p50_us.push(us(0.5));
        self.columns.p95_us.push(us(0.95));
        self.columns.p99_us.push(us(0.99));
        self.columns.max_us.push(six_digits(merged.max() as f64 / 1e3));
        let lag_p99_us = interval.lag.value_at_quantile(0.99) as f64 / 1e3;
        self.columns.lag_p99_us.push(six_digits(lag_p99_us));
    }

    fn commits_100ms(&self) -> Vec<EncodedCounts> {
        self.commits.iter().map(|counts| EncodedCounts::encode(counts)).collect()
    }

    fn into_columns(mut self, measure_began: Nanoseconds) -> IntervalColumns {
        let relative = |(start, _): &Span| {
            let seconds = (start.0 as f64 - measure_began.0 as f64) / 1e9;
            (seconds * 1e3).round() / 1e3
        };
        self.columns.start_s = self.spans.iter().map(relative).collect();
        self.columns
    }
}
