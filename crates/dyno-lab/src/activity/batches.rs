//! Moves, archives or deletes rows a few at a time: the statements of a batch are sent until its last
//! one, which returns the number of rows handled, returns zero.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dyno_host::{Probe, Readings};
use dyno_record::ActivitySummary;
use dyno_units::Direction::{Higher, Lower};
use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Metric, Nanoseconds, metric};
use dyno_workload::{Connection, Connector};

use super::sessions::{Sessions, Worked};
use super::sql::{lock, shown};
use super::{Activity, POLL, StepEnd, Surroundings, add_figures};
use crate::trial::TrialError;

#[rustfmt::skip]
const READINGS: &[Reading] = &[
    reading("job.rows_per_s", PerSecond, "Rows handled by the job", "rows that the batches of the job handled, counted when a batch ended").chart(Topic::Other, 1),
];

#[rustfmt::skip]
const METRICS: [Metric; 4] = [
    metric("job.time", Seconds, Lower, "job time", "from the first batch of the job to the one that found nothing to do, including pauses").main(),
    metric("job.rows", Count, Higher, "rows handled by the job", "rows that the batches of the job handled").secondary(),
    metric("job.rows_per_s", PerSecond, Higher, "rows per second of the job", "rows that the batches of the job handled, divided by the job's time, including pauses").secondary(),
    metric("job.slowest", Seconds, Lower, "slowest batch", "duration of the longest batch of the job").secondary(),
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BatchJob {
    /// Its name, unique in a step, as of a metric.
    pub(crate) name: String,
    /// A batch, in the order in which its statements are sent on one connection.
    pub(crate) statements: Vec<String>,
    /// Connections, each with batches of its own.
    pub(crate) at_once: usize,
    pub(crate) pause: Nanoseconds,
    /// Whether nothing else goes on in the step, so that what the server does is the job's.
    pub(crate) is_alone: bool,
}

pub(crate) struct Batches {
    job: BatchJob,
    sessions: Sessions,
    clock: Arc<dyn Clock>,
    rows: Arc<AtomicU64>,
    outcome: Option<Outcome>,
}

#[derive(Clone, Copy)]
struct Batch {
    began: Nanoseconds,
    ended: Nanoseconds,
    rows: u64,
}

struct Outcome {
    began: Nanoseconds,
    took: Nanoseconds,
    ended: String,
    is_done: bool,
    /// Those that handled rows.
    batches: Vec<Batch>,
}

impl BatchJob {
    /// Sends one batch; returns the rows that it handled.
    fn batch(&self, connection: &mut dyn Connection) -> Result<u64, String> {
        let mut last = Vec::new();
        for (idx, statement) in self.statements.iter().enumerate() {
            last = connection.query(statement).map_err(|error| {
                format!("failed at statement {} (`{}`): {error}", idx + 1, shown(statement))
            })?;
        }
        let value = last.first().and_then(|row| row.first()).and_then(Option::as_deref);
        value.and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
            format!(
                "cannot tell how many rows a batch handled: its last statement must return one \
                 whole number, but returned {}",
                value.map_or("nothing".to_owned(), |text| format!("`{}`", shown(text)))
            )
        })
    }
}

impl Batches {
    pub(crate) fn new(job: BatchJob, connector: Connector, clock: &Arc<dyn Clock>) -> Batches {
        let sessions = Sessions::new(connector, clock);
        Batches { job, sessions, clock: Arc::clone(clock), rows: Arc::default(), outcome: None }
    }
}

impl Activity for Batches {
    fn name(&self) -> &str {
        &self.job.name
    }

    fn metrics(&self) -> Vec<Metric> {
        METRICS.into_iter().chain(super::server_metrics(self.job.is_alone)).collect()
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result<(), TrialError> {
        let (job, clock, n) = (&self.job, &*self.clock, self.job.at_once.max(1));
        // Connections that found nothing to do, and batches that handled rows.
        let (n_done, batches) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let worked = self.sessions.work(n, at, |connection, work| {
            while !work.is_stopped() {
                let began = clock.now();
                match job.batch(connection) {
                    Ok(0) => {
                        n_done.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    Ok(rows) => {
                        self.rows.fetch_add(rows, Ordering::Relaxed);
                        lock(&batches).push(Batch { began, ended: clock.now(), rows });
                    }
                    Err(why) => {
                        work.fail(why);
                        break;
                    }
                }
                let until = clock.now() + job.pause;
                while !work.is_stopped() && clock.now() < until {
                    clock.sleep_until(until.min(clock.now() + POLL));
                }
            }
        })?;
        let is_done = worked.failure.is_none() && n_done.load(Ordering::Relaxed) == n;
        let batches = std::mem::take(&mut *lock(&batches));
        let Worked { began, took, .. } = worked;
        let ended = worked.in_words(is_done);
        self.outcome = Some(Outcome { began, took, ended, is_done, batches });
        worked.result(&self.job.name, at)
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let Some(outcome) = &self.outcome else { return };
        let rows: u64 = outcome.batches.iter().map(|batch| batch.rows).sum();
        let took = outcome.took.as_secs_f64();
        let time = |batch: &Batch| batch.ended.saturating_sub(batch.began).as_secs_f64();
        let slowest = outcome.batches.iter().map(time).reduce(f64::max);
        let values = [
            Some(took).filter(|_| outcome.is_done),
            Some(rows as f64),
            (took > 0.0).then(|| rows as f64 / took),
            slowest,
        ];
        add_figures(end, METRICS, values);
        let text = match slowest {
            Some(slowest) => format!(
                "{} batches, {rows} rows, the slowest batch {slowest:.3} s",
                outcome.batches.len()
            ),
            None => "no batch handled any row".to_owned(),
        };
        end.summary.activities.push(ActivitySummary {
            name: self.job.name.clone(),
            kind: "batches".to_owned(),
            began_ns: outcome.began.0,
            took_s: took,
            ended: outcome.ended.clone(),
            is_done: outcome.is_done,
            output: vec![text],
        });
    }

    fn add_readings_to(&self, end: &mut StepEnd) {
        let is_done = self.outcome.as_ref().is_some_and(|outcome| outcome.is_done);
        if is_done && self.job.is_alone {
            super::add_server_figures(end);
        }
    }

    fn probe(&self) -> Option<Box<dyn Probe>> {
        Some(Box::new(RowsProbe { rows: Arc::clone(&self.rows), last: None }))
    }
}

struct RowsProbe {
    rows: Arc<AtomicU64>,
    /// When it was read last, and what it was then.
    last: Option<(Nanoseconds, u64)>,
}

impl Probe for RowsProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let rows = self.rows.load(Ordering::Relaxed);
        if let Some((before, known)) = self.last.replace((now, rows)).filter(|last| last.0 < now) {
            let seconds = now.saturating_sub(before).as_secs_f64();
            readings.insert("job.rows_per_s".into(), (rows - known) as f64 / seconds);
        }
    }

    fn name(&self) -> &str {
        "job"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_rate_between_two_readings() {
        let rows = Arc::new(AtomicU64::new(0));
        let mut probe = RowsProbe { rows: Arc::clone(&rows), last: None };
        let mut read = |at: u64, more: u64| {
            rows.fetch_add(more, Ordering::Relaxed);
            let mut readings = Readings::new();
            probe.read(Nanoseconds::from_secs(at), &mut readings);
            readings.get("job.rows_per_s").copied()
        };
        assert_eq!(read(1, 10), None);
        assert_eq!(read(3, 8), Some(4.0));
        assert_eq!(read(4, 0), Some(0.0));
    }
}
