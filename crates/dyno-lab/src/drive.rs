//! Puts a step's load on the site, and makes its summary from what comes out.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_database::Server;
use dyno_host::CommandProbe;
use dyno_load::simulation::run_simulated_step;
use dyno_load::{
    EndedBy, GeneratorUse, Interval, Job, OUTCOMES, Phase, StepEvent, StepSpec, StepTotals,
    run_step,
};
use dyno_model::{Load, Name};
use dyno_record::{
    EncodedCounts, EncodedHistogram, EventKind, GeneratorSummary, IntervalColumns, IntervalRecord,
    KindInterval, KindSummary, StepSummary, TrialWriter, WriteError, new_histogram,
};
use dyno_study::{ProbeSource, Variant};
use dyno_units::reading::known;
use dyno_units::{ManualClock, Nanoseconds, Reading, Registry};
use dyno_workload::{AuditTotals, MadeWorkload};
use hdrhistogram::Histogram;

use crate::audit;
use crate::deploy::Site;
use crate::live::{kinds_told, readings_told};
use crate::observe::{Cost, Observed, Observer, Sample, Series, Watched, six_digits};
use crate::run::{Lab, RunOrder};
use crate::simulated::SimulatedSite;
use crate::telling::Telling;
use crate::trial::TrialError;

/// Length of the bins in which commits are counted.
const BIN: Nanoseconds = Nanoseconds::from_millis(100);

/// How long a command of the study's own may take for a reading.
const PROBE_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

/// One step of one trial.
pub(crate) struct Drive<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) order: &'a RunOrder<'a>,
    pub(crate) variant: &'a Variant,
    /// The trial's block: all its variants draw the same random numbers.
    pub(crate) block: u32,
    pub(crate) workload: &'a MadeWorkload,
    /// Index of the step.
    pub(crate) step: usize,
    /// Which load probe of a search it is, counted from 1; 0 for a step that searches nothing.
    pub(crate) probe: u32,
    /// How hard.
    pub(crate) load: Load,
    /// How long.
    pub(crate) length: Length,
    /// Set when all clients are connected and the load begins.
    pub(crate) has_begun: Cell<bool>,
}

/// How long a step is.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) warm_up: Nanoseconds,
    /// Measured time; the longest one of a step that ends when something is done, or is steady.
    pub(crate) duration: Nanoseconds,
    /// How long throughput has to be steady before the step ends, where that ends it.
    pub(crate) until_steady: Option<Nanoseconds>,
}

/// What a step came to.
pub(crate) struct StepEnd {
    pub(crate) summary: StepSummary,
    pub(crate) probes: Cost,
    /// What the clients did, warm-up included.
    pub(crate) did: AuditTotals,
    /// What its readings mean.
    pub(crate) meanings: BTreeMap<String, Reading>,
}

impl Drive<'_> {
    /// Runs the step; every interval is in the record before the next one is.
    pub(crate) fn run(
        &self,
        site: &mut Site,
        telling: &mut Telling<'_>,
        writer: &mut TrialWriter,
    ) -> Result<StepEnd, TrialError> {
        let mut listener = Listener {
            drive: self,
            telling,
            writer,
            watched: match site {
                Site::Real(server) => Some(self.watched(server.as_ref())),
                Site::Simulated(_) => None,
            },
            observer: None,
            registry: Registry::default(),
            measure_began: None,
            cpu_began: None,
            cpu_latest: None,
            series: Series::default(),
            intervals: Intervals::default(),
            did: AuditTotals::default(),
            failure: None,
        };
        let result = match site {
            Site::Real(server) => {
                let job = Job {
                    workload: self.workload.clone(),
                    connector: server.connector(),
                    clock: Arc::clone(&self.lab.clock),
                    abort: self.lab.abort.clone(),
                };
                let spec = self.spec(server.blocks_worker());
                run_step(&spec, &job, &mut |event| listener.hear(event))
            }
            Site::Simulated(site) => self.simulate(site, &mut listener),
        };
        let probes = listener.stop_observing();
        let process_cpu = listener.process_cpu();
        let Listener { series, registry, intervals, mut did, failure, .. } = listener;
        if let Some(error) = failure {
            return Err(TrialError::Record(error));
        }
        let totals = result?;
        if totals.aborted {
            return Err(TrialError::Abandoned);
        }
        did.in_flight = totals.in_flight_at_end;
        let is_local = matches!(site, Site::Real(server) if !server.watched_processes().is_empty());
        let readings = series.align(&intervals.spans);
        let meanings = registry.meanings(readings.keys());
        let mut summary = self.summarise(&totals, intervals, readings, is_local);
        if let (Site::Real(_), Some((user_s, system_s))) = (&*site, process_cpu) {
            summary.generator.process_cpu_user_s = Some(user_s);
            summary.generator.process_cpu_system_s = Some(system_s);
        }
        if let Site::Real(server) = site {
            if summary.generator.rss_bytes == 0 {
                // On a machine so busy that no reading came in time, the present stands for the most.
                summary.generator.rss_bytes = dyno_host::own_rss_bytes().unwrap_or_default();
            }
            summary.generator.share_of_calibrated = self.share(server.as_ref(), &summary);
            summary.generator.calibration_disturbed =
                self.lab.calibration.as_ref().is_some_and(|calibration| calibration.is_disturbed);
        }
        Ok(StepEnd { summary, probes, did, meanings })
    }

    /// What is observed while the load runs.
    fn watched(&self, server: &dyn Server) -> Watched {
        let watched = watched(self.lab, self.order, &self.variant.database.name, server);
        let query = self.workload.readings_query(server.dialect());
        match query.filter(|_| server.stores_data()) {
            Some(sql) => watched.with(dyno_database::sql_probe(
                server.connector(),
                self.workload.name(),
                &sql,
                Nanoseconds::SECOND,
            )),
            None => watched,
        }
    }

    /// How close the workers came to what they can do on this machine.
    fn share(&self, server: &dyn Server, summary: &StepSummary) -> Option<f64> {
        let calibration = self.lab.calibration.as_ref()?;
        let workers = f64::from(summary.generator.workers.max(1));
        let statements = (summary.reads + summary.writes + summary.others) as f64;
        let rate = statements / summary.measured_s.max(f64::MIN_POSITIVE) / workers;
        let clients = self.load.clients() as f64 / workers;
        calibration.share(server.dialect(), clients, rate)
    }

    fn simulate(
        &self,
        site: &SimulatedSite,
        listener: &mut Listener<'_, '_>,
    ) -> Result<StepTotals, dyno_load::LoadError> {
        let clock = Arc::new(ManualClock::new());
        let spec = self.spec(false);
        let server = site.for_step().with_seed(spec.seed.derive("server", 0));
        run_simulated_step(&spec, self.workload, &server, &clock, &mut |event| {
            listener.hear(event);
        })
    }

    fn spec(&self, blocks_worker: bool) -> StepSpec {
        let design = self.order.design;
        let load = self.load.clone();
        let seed = self.order.plan.seed;
        let seed = seed.derive("load", u64::from(self.block) << 16 | self.step as u64);
        let workers = match design.workers {
            Some(workers) => workers as usize,
            None if blocks_worker => load.clients(),
            None => self.lab.environment.cpus.max(1) as usize,
        };
        StepSpec {
            step: match &load {
                Load::Roles(_) => self.step,
                Load::Closed { .. } | Load::Open { .. } | Load::Stepped { .. } => 0,
            },
            warm_up: self.length.warm_up,
            duration: self.length.duration,
            until_steady: self.length.until_steady,
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

    /// The step's name, in a search with the load that is tried.
    fn name(&self) -> String {
        let name = &self.order.plan.steps[self.step].name;
        match (self.probe, &self.load) {
            (0, _) | (_, Load::Roles(_) | Load::Stepped { .. }) => name.clone(),
            (probe, Load::Open { rate, .. }) => format!("{name}, probe {probe}: {rate}/s"),
            (probe, Load::Closed { clients: 1 }) => format!("{name}, probe {probe}: 1 client"),
            (probe, Load::Closed { clients }) => {
                format!("{name}, probe {probe}: {clients} clients")
            }
        }
    }

    fn summarise(
        &self,
        totals: &StepTotals,
        intervals: Intervals,
        readings: BTreeMap<String, Vec<Option<f64>>>,
        is_local: bool,
    ) -> StepSummary {
        let measured = &totals.measured;
        let server_cpu_s = is_local
            .then(|| {
                let column = readings.get(known::SERVER_CPU)?;
                measured_sum(&intervals.spans, totals.measure_began, column)
            })
            .flatten();
        let commits = intervals.commits_100ms();
        let spans = intervals.spans.iter().map(|(start, length)| (start.0, length.0)).collect();
        let columns = intervals.into_columns(totals.measure_began);
        let rss = readings.get(known::GENERATOR_RSS).into_iter().flatten().flatten();
        StepSummary {
            ended_by: Some(ended_by(totals.ended_by).to_owned()),
            settled: None,
            step: self.step,
            measured_s: totals.measure_ended.saturating_sub(totals.measure_began).as_secs_f64(),
            kinds: kinds(self.workload.kinds(), measured, commits),
            reads: measured.tally.reads,
            writes: measured.tally.writes,
            others: measured.tally.others,
            rows_received: measured.tally.rows_received,
            rows_changed: measured.tally.rows_changed,
            warnings: measured.tally.warnings,
            due: measured.due,
            missed: measured.missed,
            in_flight_at_end: Some(totals.in_flight_at_end),
            retries: measured.retries,
            reconnects: measured.reconnects,
            lag: EncodedHistogram::encode(&measured.lag),
            generator: generator(&totals.generator, rss.fold(0.0, |most, &rss| rss.max(most))),
            server_cpu_s,
            error_examples: totals
                .error_examples
                .iter()
                .map(|(outcome, message)| ((*outcome).to_owned(), message.clone()))
                .collect(),
            intervals: columns,
            readings,
            spans: Some(spans),
            search: None,
            figures: BTreeMap::new(),
        }
    }
}

/// The server, the host, and what the study itself wants to be read beside this database.
pub(crate) fn watched(
    lab: &Lab,
    order: &RunOrder<'_>,
    database: &String,
    server: &dyn Server,
) -> Watched {
    let wanted = order
        .probes
        .iter()
        .filter(|probe| probe.databases.is_empty() || probe.databases.contains(database));
    let off: Vec<&str> = order.design.probes_off.iter().map(String::as_str).collect();
    let usual = Watched::server(server, &lab.clock).without(&off);
    wanted.fold(usual, |watched, probe| match &probe.source {
        ProbeSource::Command(command) => {
            let times = (probe.every, PROBE_LIMIT);
            let clock = Arc::clone(&lab.clock);
            let command = CommandProbe::new(&probe.name, command, times, clock);
            watched.with(Box::new(command.without_variables(&probe.hidden_variables)))
        }
        ProbeSource::Sql(sql) => {
            let connector = server.connector();
            watched.with(dyno_database::sql_probe(connector, &probe.name, sql, probe.every))
        }
    })
}

/// Adds up a column of rates over the measured intervals; none where a value is missing, so that
/// a gap is not taken for zero.
fn measured_sum(
    spans: &[(Nanoseconds, Nanoseconds)],
    measure_began: Nanoseconds,
    column: &[Option<f64>],
) -> Option<f64> {
    spans
        .iter()
        .zip(column)
        .filter(|((start, _), _)| *start >= measure_began)
        .map(|((_, length), rate)| rate.map(|rate| rate * length.as_secs_f64()))
        .sum()
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
    let outcomes = |kind: &dyno_load::KindInterval| {
        let counted = OUTCOMES.iter().zip(kind.outcomes.0).filter(|(_, count)| *count > 0);
        counted.map(|(name, count)| ((*name).to_owned(), count)).collect()
    };
    names
        .iter()
        .zip(&measured.kinds)
        .zip(commits)
        .map(|((name, kind), commits)| KindSummary {
            commits_100ms: Some(commits),
            name: name.clone().into_owned(),
            outcomes: outcomes(kind),
            response: EncodedHistogram::encode(&kind.response),
            service: EncodedHistogram::encode(&kind.service),
        })
        .collect()
}

fn generator(used: &GeneratorUse, rss_bytes: f64) -> GeneratorSummary {
    GeneratorSummary {
        workers: used.workers as u32,
        cpu_user_s: used.cpu_user.as_secs_f64(),
        cpu_system_s: used.cpu_system.as_secs_f64(),
        process_cpu_user_s: None,
        process_cpu_system_s: None,
        run_queue_s: used.run_queue.map(Nanoseconds::as_secs_f64),
        busiest_worker: used.busiest_worker,
        rss_bytes: rss_bytes as u64,
        share_of_calibrated: None,
        calibration_disturbed: false,
    }
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

/// Hears what happens in a step, and writes it down.
struct Listener<'a, 't> {
    drive: &'a Drive<'a>,
    telling: &'a mut Telling<'t>,
    writer: &'a mut TrialWriter,
    /// What will be observed; none for a simulated server, and once it is.
    watched: Option<Watched>,
    observer: Option<Observer>,
    registry: Registry,
    measure_began: Option<Nanoseconds>,
    /// User and system CPU seconds of the whole process when the measure phase began …
    cpu_began: Option<(f64, f64)>,
    /// … and at the end of the latest interval.
    cpu_latest: Option<(f64, f64)>,
    series: Series,
    intervals: Intervals,
    did: AuditTotals,
    failure: Option<WriteError>,
}

impl Listener<'_, '_> {
    fn hear(&mut self, event: StepEvent<'_>) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.write(event) {
            // Without a record there is nothing to measure for: the run ends.
            self.drive.lab.abort.raise();
            self.failure = Some(error);
        }
    }

    fn write(&mut self, event: StepEvent<'_>) -> Result<(), WriteError> {
        match event {
            StepEvent::Connected { .. } => Ok(()),
            StepEvent::PhaseBegan { phase, at } => {
                self.drive.has_begun.set(true);
                self.observe_from(at)?;
                if phase == Phase::Measure {
                    self.measure_began = Some(at);
                    self.cpu_began = dyno_host::own_cpu();
                }
                let kind = EventKind::PhaseBegan {
                    step: self.drive.step,
                    name: self.drive.name(),
                    phase: phase_name(phase).to_owned(),
                };
                self.telling.of_trial(self.writer, kind)
            }
            StepEvent::Interval(interval) => {
                self.cpu_latest = dyno_host::own_cpu();
                self.take_samples()?;
                self.intervals.push(interval);
                self.did.add(&audit::totals(interval));
                let columns = &self.intervals.columns;
                let second = match self.measure_began {
                    Some(began) => (interval.start.saturating_sub(began).0 / 1_000_000_000) as i64,
                    None => -1,
                };
                self.telling.only_told(EventKind::IntervalEnded {
                    step: self.drive.step,
                    second,
                    throughput: columns.throughput.last().copied().unwrap_or_default(),
                    p95_us: columns.p95_us.last().copied().unwrap_or_default(),
                });
                let names = self.drive.workload.kinds();
                self.telling.only_told(kinds_told(self.drive.name(), names, interval));
                self.writer.interval(&IntervalRecord {
                    step: self.drive.step,
                    phase: phase_name(interval.phase),
                    start_ns: interval.start.0,
                    length_ns: interval.length.0,
                    kinds: self
                        .drive
                        .workload
                        .kinds()
                        .iter()
                        .zip(&interval.kinds)
                        .map(|(name, kind)| KindInterval {
                            kind: name,
                            response: &kind.response,
                            service: &kind.service,
                        })
                        .collect(),
                })
            }
        }
    }

    /// Starts the probes at the first phase of a real step.
    fn observe_from(&mut self, at: Nanoseconds) -> Result<(), WriteError> {
        let Some(watched) = self.watched.take() else { return Ok(()) };
        let clock = Arc::clone(&self.drive.lab.clock);
        match Observer::start(watched, clock, at) {
            Ok(observer) => {
                self.registry = observer.registry().clone();
                self.observer = Some(observer);
                Ok(())
            }
            // Without probes there are no readings, and the load is what is measured.
            Err(error) => self.note(format!("nothing is observed in this step: {error}")),
        }
    }

    fn take_samples(&mut self) -> Result<(), WriteError> {
        let Some(observer) = &self.observer else { return Ok(()) };
        let (samples, notes) = observer.take();
        self.keep(samples, notes)
    }

    fn keep(&mut self, samples: Vec<Sample>, notes: Vec<String>) -> Result<(), WriteError> {
        for sample in &samples {
            self.telling.only_told(readings_told(sample));
        }
        keep_samples(self.writer, &mut self.series, samples)?;
        notes.into_iter().try_for_each(|note| self.note(note))
    }

    fn note(&mut self, message: String) -> Result<(), WriteError> {
        self.telling.of_trial(self.writer, EventKind::Noted { message })
    }

    /// CPU of the whole process in the measure phase.
    fn process_cpu(&self) -> Option<(f64, f64)> {
        let (began, latest) = (self.cpu_began?, self.cpu_latest?);
        Some((latest.0 - began.0, latest.1 - began.1))
    }

    fn stop_observing(&mut self) -> Cost {
        let Some(observer) = self.observer.take() else { return Cost::default() };
        let Observed { samples, notes, cost } = observer.finish();
        if let Err(error) = self.keep(samples, notes) {
            self.failure.get_or_insert(error);
        }
        cost
    }
}

/// Writes samples down, and adds them to their series.
pub(crate) fn keep_samples(
    writer: &mut TrialWriter,
    series: &mut Series,
    samples: Vec<Sample>,
) -> Result<(), WriteError> {
    for sample in samples {
        let short = sample.values.iter().map(|(name, value)| (name.clone(), six_digits(*value)));
        writer.readings(sample.at.0, &short.collect())?;
        series.push(sample);
    }
    Ok(())
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
    /// Start and length of each.
    spans: Vec<(Nanoseconds, Nanoseconds)>,
    columns: IntervalColumns,
    /// Commits of each kind in each 100 ms.
    commits: Vec<Vec<u32>>,
}

impl Intervals {
    fn push(&mut self, interval: &Interval) {
        self.push_commits(interval);
        let mut merged: Option<Histogram<u64>> = None;
        for kind in &interval.kinds {
            match &mut merged {
                None => merged = Some(kind.response.clone()),
                Some(all) => all.add(&kind.response).expect("the bounds are the same"),
            }
        }
        let merged = merged.unwrap_or_else(new_histogram);
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

    /// Bins that an interval, being shorter than a second, does not reach are left out.
    fn push_commits(&mut self, interval: &Interval) {
        self.commits.resize(interval.kinds.len(), Vec::new());
        let n_bins = interval.length.0.div_ceil(BIN.0) as usize;
        for (commits, kind) in self.commits.iter_mut().zip(&interval.kinds) {
            commits.extend(kind.bins.iter().take(n_bins));
        }
    }

    fn commits_100ms(&self) -> Vec<EncodedCounts> {
        self.commits.iter().map(|counts| EncodedCounts::encode(counts)).collect()
    }

    fn into_columns(mut self, measure_began: Nanoseconds) -> IntervalColumns {
        let relative = |(start, _): &(Nanoseconds, Nanoseconds)| {
            let seconds = (start.0 as f64 - measure_began.0 as f64) / 1e9;
            (seconds * 1e3).round() / 1e3
        };
        self.columns.start_s = self.spans.iter().map(relative).collect();
        self.columns
    }
}
