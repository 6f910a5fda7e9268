//! What is observed without load, of a server that runs already, a process or this host, and its record:
//! one variant, one trial, one step.
//!
//! The trial is written by the code that writes any other. Where the server counts its transactions, these
//! are the throughput. MariaDB and MySQL do not count them (a statement outside a transaction commits by
//! itself, and no counter says how many did): of them only statements are known. There are no response
//! times, because nobody waited.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use dyno_record::{
    EncodedHistogram, Environment, Event, EventKind, IntervalColumns, KindSummary, RunWriter,
    ServerFacts, StepSummary, TrialOutcome, TrialPlan, TrialWriter, new_histogram,
};
use dyno_units::reading::{Role, known};
use dyno_units::{Clock, Nanoseconds, Reading};

use crate::activity::{keep_samples, measured_sum};
use crate::events::EventLog;
use crate::live::readings_event;
use crate::manifest::watch_manifest;
use crate::observe::{Observer, Sample, Series, Watched};
use crate::trial::Results;

/// The name of the variant and of the step.
pub(crate) const WATCH: &str = "watch";

/// What is to be watched.
pub struct WatchOrder {
    /// Its name, without passwords.
    pub name: String,
    /// The protocol of the server, `process`, or `host`.
    pub product: String,
    /// Time between two readings.
    pub every: Nanoseconds,
    /// How long it is to be watched; none until it is stopped.
    pub length: Option<Nanoseconds>,
}

/// Somebody who is told of events.
pub type Listener<'a> = &'a mut dyn FnMut(&Event);

/// An observation under way.
pub struct Watch {
    clock: Arc<dyn Clock>,
    every: Nanoseconds,
    origin: Nanoseconds,
    observer: Observer,
    recording: Option<Recording>,
}

impl Watch {
    /// Starts the probes, from now on; what they read goes into the record, if there is one.
    ///
    /// # Errors
    ///
    /// They cannot be started.
    pub fn start(
        watched: Watched,
        every: Nanoseconds,
        clock: &Arc<dyn Clock>,
        recording: Option<Recording>,
    ) -> anyhow::Result<Watch> {
        let origin = clock.now();
        let observer = Observer::start(watched.with_period(every), Arc::clone(clock), origin)
            .context("the probes cannot be started")?;
        Ok(Watch { clock: Arc::clone(clock), every, origin, observer, recording })
    }

    /// When it began.
    pub fn origin(&self) -> Nanoseconds {
        self.origin
    }

    /// The readings that its probes may give.
    pub fn registry(&self) -> &dyno_units::Registry {
        self.observer.registry()
    }

    /// Records what has been read since the last call, and emits it as events.
    ///
    /// # Errors
    ///
    /// The record cannot be written.
    pub fn take(&mut self, listener: Listener<'_>) -> anyhow::Result<()> {
        let (samples, notes) = self.observer.take();
        keep(&self.clock, self.recording.as_mut(), (samples, notes), listener)
    }

    /// Stops the probes, and ends the record; returns whether there is one.
    ///
    /// # Errors
    ///
    /// The record cannot be written.
    pub fn finish(self, listener: Listener<'_>) -> anyhow::Result<bool> {
        let Watch { clock, every, origin, observer, mut recording } = self;
        // A second that was not watched to its end is none.
        let n = (clock.now().saturating_sub(origin).0 / every.0).max(1);
        let registry = observer.registry().clone();
        let observed = observer.finish();
        let last = (observed.samples, observed.notes);
        keep(&clock, recording.as_mut(), last, &mut *listener)?;
        let Some(Recording { server, began_unix_ms, plan, mut writer, series, _run }) = recording
        else {
            return Ok(false);
        };
        let spans: Vec<(Nanoseconds, Nanoseconds)> =
            (0..n).map(|idx| (origin + Nanoseconds(idx * every.0), every)).collect();
        let readings = series.align(&spans);
        let meanings = registry.meanings(readings.keys());
        let results = Results {
            steps: vec![summarise(readings, &meanings, &spans)],
            probes_cpu_s: observed.cost.cpu.as_secs_f64(),
            probes_wall_s: observed.cost.wall.as_secs_f64(),
            meanings,
            ..Results::default()
        };
        let mut events = EventLog { clock: Arc::clone(&clock), listener };
        events.in_trial(&mut writer, EventKind::TrialFinished { trial: plan.number })?;
        let times = (began_unix_ms, clock.unix_millis());
        let mut summary = results.into_summary(&plan, TrialOutcome::Finished, times, None);
        // Nothing was deployed: there are facts of a server, and no members.
        summary.server = server;
        writer.finish(summary)?;
        Ok(true)
    }
}

/// Records readings and notes, and emits them. A reading is of the moment at which it was taken.
fn keep(
    clock: &Arc<dyn Clock>,
    recording: Option<&mut Recording>,
    (samples, notes): (Vec<Sample>, Vec<String>),
    listener: Listener<'_>,
) -> anyhow::Result<()> {
    for sample in &samples {
        let (at_ns, unix_ms) = (sample.at.0, clock.unix_millis());
        listener(&Event { at_ns, unix_ms, kind: readings_event(sample) });
    }
    let notes = notes.into_iter().map(|message| EventKind::Noted { message });
    let mut events = EventLog { clock: Arc::clone(clock), listener };
    match recording {
        Some(Recording { writer, series, .. }) => {
            keep_samples(writer, series, samples)?;
            notes.into_iter().try_for_each(|note| events.in_trial(writer, note))?;
        }
        None => notes.for_each(|note| events.notify(note)),
    }
    Ok(())
}

/// A record that is being written.
pub struct Recording {
    /// Holds the lock on the folder.
    _run: RunWriter,
    writer: TrialWriter,
    plan: TrialPlan,
    series: Series,
    began_unix_ms: u64,
    server: ServerFacts,
}

impl Recording {
    /// Begins a record in a folder that holds none yet.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn begin(
        folder: &Path,
        order: &WatchOrder,
        server: ServerFacts,
        environment: &Environment,
        clock: &Arc<dyn Clock>,
    ) -> anyhow::Result<Recording> {
        let began_unix_ms = clock.unix_millis();
        let manifest = watch_manifest(order, environment, began_unix_ms);
        let mut run = RunWriter::create(folder, &manifest)?;
        let plan = TrialPlan { number: 1, variant: 0, repetition: 1, block: 1 };
        let mut writer = run.begin_trial(&plan, WATCH)?;
        let variant = WATCH.to_owned();
        let began = EventKind::TrialBegan { trial: plan.number, variant, repetition: 1 };
        let mut events = EventLog { clock: Arc::clone(clock), listener: &mut |_| {} };
        events.in_trial(&mut writer, began)?;
        let series = Series::default();
        Ok(Recording { _run: run, writer, plan, series, began_unix_ms, server })
    }
}

/// The step: of intervals of one length (start and length).
fn summarise(
    readings: BTreeMap<String, Vec<Option<f64>>>,
    meanings: &BTreeMap<String, Reading>,
    spans: &[(Nanoseconds, Nanoseconds)],
) -> StepSummary {
    let origin = spans.first().map_or(Nanoseconds::ZERO, |(start, _)| *start);
    let measured_s: f64 = spans.iter().map(|(_, length)| length.as_secs_f64()).sum();
    let counter = |role: Role| {
        let mut counters = meanings.iter().filter(|(_, reading)| reading.role == Some(role));
        counters.find_map(|(name, reading)| Some((reading, readings.get(name)?)))
    };
    let total = |column: &[Option<f64>]| (mean(column) * measured_s).round() as u64;
    let counted = counter(Role::Transactions);
    let zeros = || vec![0.0; spans.len()];
    let rates: Vec<f64> = counted
        .map_or_else(zeros, |(_, column)| column.iter().map(|rate| rate.unwrap_or(0.0)).collect());
    let kinds = counted.map(|(reading, column)| KindSummary {
        name: format!("{} (counted by the server)", reading.title),
        outcomes: BTreeMap::from([("committed".to_owned(), total(column))]),
        response: EncodedHistogram::encode(&new_histogram()),
        service: EncodedHistogram::encode(&new_histogram()),
        commits_100ms: None,
    });
    let since = |start: &Nanoseconds| start.saturating_sub(origin).as_secs_f64();
    let cpu = readings.get(known::SERVER_CPU);
    StepSummary {
        step: 0,
        measured_s,
        kinds: kinds.into_iter().collect(),
        others: counter(Role::Statements).map_or(0, |(_, column)| total(column)),
        server_cpu_s: cpu.and_then(|column| measured_sum(spans, origin, column)),
        intervals: IntervalColumns {
            start_s: spans.iter().map(|(start, _)| since(start)).collect(),
            throughput: rates,
            errors: zeros(),
            missed: zeros(),
            p50_us: zeros(),
            p95_us: zeros(),
            p99_us: zeros(),
            max_us: zeros(),
            lag_p99_us: zeros(),
        },
        readings,
        spans: Some(spans.iter().map(|(start, length)| (start.0, length.0)).collect()),
        ended_by: Some("time".to_owned()),
        ..StepSummary::default()
    }
}

/// The mean of the values that are there; 0 without any. The first interval has no rate: that takes
/// two readings.
fn mean(column: &[Option<f64>]) -> f64 {
    let values: Vec<f64> = column.iter().flatten().copied().collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(name: &str, column: Vec<Option<f64>>) -> StepSummary {
        let start = |second: usize| Nanoseconds::from_secs(7 + second as u64);
        let spans: Vec<_> = (0..column.len()).map(|n| (start(n), Nanoseconds::SECOND)).collect();
        let readings = BTreeMap::from([(name.to_owned(), column)]);
        let meanings = crate::observe::registry().meanings(readings.keys());
        summarise(readings, &meanings, &spans)
    }

    #[test]
    fn statements_are_no_transactions() {
        let column = vec![None, Some(100.0), Some(300.0)];
        let mysql = summary("mysql.statements_per_s", column.clone());
        assert!(mysql.kinds.is_empty() && mysql.intervals.throughput == [0.0; 3]);
        // The first second has no rate: it is taken to be as the others are.
        assert_eq!((mysql.others, mysql.measured_s), (600, 3.0));
        assert_eq!(mysql.intervals.start_s, [0.0, 1.0, 2.0]);
        let postgresql = summary("pg.commits_per_s", column);
        assert_eq!(postgresql.kinds[0].outcomes["committed"], 600);
        assert_eq!(postgresql.intervals.throughput, [0.0, 100.0, 300.0]);
        assert_eq!(postgresql.others, 0);
        let host = summary("cpu.busy_pct", vec![Some(1.0)]);
        assert!(host.kinds.is_empty() && host.others == 0);
    }

    #[test]
    fn a_gap_is_not_taken_for_an_idle_server() {
        let whole = summary(known::SERVER_CPU, vec![Some(0.5), Some(1.0)]);
        assert_eq!(whole.server_cpu_s, Some(1.5));
        assert_eq!(summary(known::SERVER_CPU, vec![None, Some(1.0)]).server_cpu_s, None);
    }
}
