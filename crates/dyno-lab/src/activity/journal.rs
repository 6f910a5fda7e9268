//! Records a step while it runs: its events, its seconds, its probes' readings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use dyno_database::Server;
use dyno_host::CommandProbe;
use dyno_record::{EventKind, StepSummary, TrialWriter, WriteError};
use dyno_study::ProbeSource;
use dyno_units::reading::known;
use dyno_units::{Nanoseconds, Reading, Registry};

use crate::events::readings_event;
use crate::observe::{Cost, Observed, Observer, Sample, Series, six_digits};
use crate::{Deployment, EventLog, Lab, RunOrder, Span, Watched};

/// How long a command of the study's own may take for a reading.
const PROBE_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);

pub(crate) struct Journal<'a, 't> {
    pub(crate) lab: &'a Lab,
    pub(crate) step: usize,
    pub(crate) events: &'a mut EventLog<'t>,
    pub(crate) writer: &'a mut TrialWriter,
    /// What will be observed; none in simulated time, and once it is.
    watched: Option<Watched>,
    /// Whether the server's processes are seen, on this host or by an agent on theirs.
    is_local: bool,
    observes: bool,
    observer: Option<Observer>,
    registry: Registry,
    series: Series,
    keeps_readings: bool,
    /// Whether all clients are connected and the load has begun, or the other activities have.
    pub(crate) has_begun: bool,
    pub(crate) measure_began: Option<Nanoseconds>,
    /// Opened when the measured time begins.
    gates: Vec<Sender<()>>,
}

impl<'a, 't> Journal<'a, 't> {
    pub(crate) fn new(
        lab: &'a Lab,
        step: usize,
        (events, writer): (&'a mut EventLog<'t>, &'a mut TrialWriter),
        (watched, is_local): (Option<Watched>, bool),
        keeps_readings: bool,
    ) -> Journal<'a, 't> {
        Journal {
            lab,
            step,
            events,
            writer,
            observes: watched.is_some(),
            watched,
            is_local,
            observer: None,
            registry: Registry::default(),
            series: Series::default(),
            keeps_readings,
            has_begun: false,
            measure_began: None,
            gates: Vec::new(),
        }
    }

    pub(crate) fn event(&mut self, kind: EventKind) -> Result<(), WriteError> {
        self.events.in_trial(self.writer, kind)
    }

    /// Something that is opened when the measured time begins, and dropped if it never does.
    pub(super) fn gate(&mut self) -> Receiver<()> {
        let (gate, opened) = channel();
        self.gates.push(gate);
        opened
    }

    pub(super) fn close_gates(&mut self) {
        self.gates.clear();
    }

    /// Starts the probes; does nothing when they run.
    pub(crate) fn begin(&mut self, at: Nanoseconds) -> Result<(), WriteError> {
        self.has_begun = true;
        let Some(watched) = self.watched.take() else { return Ok(()) };
        match Observer::start(watched, Arc::clone(&self.lab.clock), at) {
            Ok(observer) => {
                self.registry = observer.registry().clone();
                self.observer = Some(observer);
                Ok(())
            }
            // Without probes there are no readings, and the load is what is measured.
            Err(error) => self.note(format!("this step cannot be observed: {error}")),
        }
    }

    pub(super) fn begin_now(&mut self) -> Result<(), WriteError> {
        let now = self.lab.clock.now();
        self.begin(now)?;
        self.measure(now);
        Ok(())
    }

    pub(crate) fn measure(&mut self, at: Nanoseconds) {
        self.measure_began = Some(at);
        // One that has ended already needs no opening.
        for gate in self.gates.drain(..) {
            let _ = gate.send(());
        }
    }

    pub(crate) fn take_samples(&mut self) -> Result<(), WriteError> {
        let Some(observer) = &self.observer else { return Ok(()) };
        let taken = observer.take();
        self.keep(taken).map(drop)
    }

    fn keep(&mut self, observed: Observed) -> Result<Cost, WriteError> {
        let Observed { samples, notes, cost } = observed;
        for sample in &samples {
            self.events.notify_of(sample.at, readings_event(sample));
        }
        if self.keeps_readings {
            keep_samples(self.writer, &mut self.series, samples)?;
        }
        notes.into_iter().try_for_each(|note| self.note(note))?;
        Ok(cost)
    }

    fn note(&mut self, message: String) -> Result<(), WriteError> {
        self.event(EventKind::Noted { message })
    }

    pub(super) fn stop_observing(&mut self) -> Result<Cost, WriteError> {
        let Some(observer) = self.observer.take() else { return Ok(Cost::default()) };
        self.keep(observer.finish())
    }

    /// Lays the readings beside the seconds of the summary; returns what they mean.
    pub(super) fn add_readings(&self, summary: &mut StepSummary) -> BTreeMap<String, Reading> {
        let span = |(start, length): &(u64, u64)| (Nanoseconds(*start), Nanoseconds(*length));
        let spans: Vec<Span> = summary.spans.iter().flatten().map(span).collect();
        summary.readings = self.series.align(&spans);
        let server_cpu = summary.readings.get(known::SERVER_CPU).filter(|_| self.is_local);
        if let (Some(column), Some(began)) = (server_cpu, self.measure_began) {
            summary.server_cpu_s = measured_sum(&spans, began, column);
        }
        let rss = summary.readings.get(known::GENERATOR_RSS).into_iter().flatten().flatten();
        let rss = rss.fold(0.0_f64, |most, rss| most.max(*rss)) as u64;
        if summary.generator.workers > 0 && self.observes {
            // On a machine so busy that no reading came in time, the present stands for the most.
            let present = || dyno_host::own_rss_bytes().unwrap_or_default();
            summary.generator.rss_bytes = if rss > 0 { rss } else { present() };
        }
        self.registry.meanings(summary.readings.keys())
    }
}

/// Server, host, and the study's own probes for this database; `process` replaces the server's.
pub(crate) fn watched(
    lab: &Lab,
    order: &RunOrder<'_>,
    database: &str,
    (deployment, process): (&Deployment, Option<i32>),
) -> Watched {
    let wanted = order.probes.iter().filter(|probe| probe.is_read_in(database));
    let off: Vec<&str> = order.design.probes_off.iter().map(String::as_str).collect();
    let (members, probes) = deployment.watched_beside(lab);
    let server = deployment.server();
    let usual = Watched::among((server, process), deployment.data_disk(), members, &lab.clock);
    let usual = probes.into_iter().fold(usual, Watched::with).without(&off);
    let usual = deployment.host_probe(lab, &off).into_iter().fold(usual, Watched::with);
    wanted.fold(usual, |watched, probe| match &probe.source {
        ProbeSource::Command(command) => {
            let times = (probe.every, PROBE_LIMIT);
            let clock = Arc::clone(&lab.clock);
            let command = CommandProbe::new(&probe.name, command, times, clock);
            let command = command.without_variables(&probe.hidden_variables);
            watched.with(Box::new(command.kept_by(&lab.keeper)))
        }
        // The step refuses what would send SQL without a server.
        ProbeSource::Sql(sql) => match server.map(Server::connector) {
            Some(connector) => {
                watched.with(dyno_database::sql_probe(connector, &probe.name, sql, probe.every))
            }
            None => watched,
        },
    })
}

/// Sum over measured intervals; none if a value is missing, as a gap must not count as zero.
fn measured_sum(spans: &[Span], measure_began: Nanoseconds, column: &[Option<f64>]) -> Option<f64> {
    let rates = spans.iter().zip(column).filter(|((start, _), _)| *start >= measure_began);
    rates.map(|((_, length), rate)| rate.map(|rate| rate * length.as_secs_f64())).sum()
}

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
