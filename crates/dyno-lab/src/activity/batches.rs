//! Moves, archives or deletes rows a few at a time: the statements of a batch are sent until its last
//! one, which returns the number of rows handled, returns zero.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dyno_host::{Probe, Readings};
use dyno_units::Direction::{Higher, Lower};
use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Metric, Nanoseconds, locked, metric};
use dyno_workload::{Connection, Connector};

use super::POLL;
use super::job::{JobActivity, figures};
use super::sessions::Sessions;
use super::sql::shown;

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

fn batch(statements: &[String], connection: &mut dyn Connection) -> Result<u64, String> {
    let mut last = Vec::new();
    for (idx, statement) in statements.iter().enumerate() {
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

/// Sends batches on so many connections, each with batches of its own and a pause between them.
pub(crate) fn batches(
    statements: Vec<String>,
    (at_once, pause): (usize, Nanoseconds),
    (connector, clock): (Connector, &Arc<dyn Clock>),
) -> JobActivity {
    let sessions = Sessions::new(connector, clock);
    let handled = Arc::new(AtomicU64::new(0));
    let probe = RowsProbe { rows: Arc::clone(&handled), last: None };
    let mut job = JobActivity::new("batches", METRICS.to_vec(), move |name, at| {
        let (clock, n) = (&*sessions.clock, at_once.max(1));
        // Connections that found nothing to do, and seconds and rows of batches that handled rows.
        let (n_done, ended) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let worked = sessions.work(n, at, |connection, work| {
            while !work.is_stopped() {
                let began = clock.now();
                match batch(&statements, connection) {
                    Ok(0) => {
                        n_done.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    Ok(rows) => {
                        handled.fetch_add(rows, Ordering::Relaxed);
                        let took = clock.now().saturating_sub(began);
                        locked(&ended).push((took.as_secs_f64(), rows));
                    }
                    Err(why) => {
                        work.fail(why);
                        break;
                    }
                }
                let until = clock.now() + pause;
                while !work.is_stopped() && clock.now() < until {
                    clock.sleep_until(until.min(clock.now() + POLL));
                }
            }
        })?;
        let is_done = worked.failure.is_none() && n_done.load(Ordering::Relaxed) == n;
        let ended = std::mem::take(&mut *locked(&ended));
        let rows: u64 = ended.iter().map(|(_, rows)| rows).sum();
        let took = worked.took.as_secs_f64();
        let slowest = ended.iter().map(|(took, _)| *took).reduce(f64::max);
        let values = [
            Some(took).filter(|_| is_done),
            Some(rows as f64),
            (took > 0.0).then(|| rows as f64 / took),
            slowest,
        ];
        let text = match slowest {
            Some(slowest) => {
                format!("{} batches, {rows} rows, the slowest batch {slowest:.3} s", ended.len())
            }
            None => "no batch handled any row".to_owned(),
        };
        Ok(worked.into_end((name, at), is_done, (figures(METRICS, values), vec![text])))
    });
    job.probe = Some(Box::new(probe));
    job
}

struct RowsProbe {
    rows: Arc<AtomicU64>,
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
