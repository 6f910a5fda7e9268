//! The run-off: after the last step, a wait without load until the engine has paid its debt.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_database::Debt;
use dyno_record::{EventKind, RunOff};
use dyno_units::Nanoseconds;

use super::settle::{Meter, Tell, Waiting, debt_read};
use crate::activity::{keep_samples, watched};
use crate::events::readings_event;
use crate::observe::{Observed, Observer, Series, six_digits};
use crate::{Context, Result, Span, Trial, fail};

const PAUSE: Nanoseconds = Nanoseconds::SECOND;

pub(super) const WAIT: &str = "run-off";

/// Readings in a row that have to say that it is paid: one may be a moment's.
const AGREEING: usize = 2;

pub(super) fn run_off(trial: &mut Trial<'_, '_>, limit: Nanoseconds) -> Result {
    let Some(server) = trial.deployment.server() else { return Ok(()) };
    let mut meter = match server.debt_meter() {
        Ok(meter) => meter,
        Err(why) => {
            let message = format!("no run-off, because the backlog cannot be read: {why}");
            let seen = Seen { unseen: Some(why), ..Seen::default() };
            let run_off = seen.into_record(limit, Nanoseconds::ZERO, &Series::default());
            trial.results.summary.run_off = Some(run_off);
            return trial.note(message);
        }
    };
    let lab = trial.lab;
    let database = &trial.variant.database.name;
    let watched = watched(lab, trial.order, database, (&trial.deployment, None));
    let limit_s = limit.as_secs_f64();
    trial.event(EventKind::WaitBegan { wait: WAIT.to_owned(), limit_s })?;
    let began = lab.clock.now();
    let observer = Observer::start(watched, Arc::clone(&lab.clock), began)
        .context("the run-off cannot be observed")?;
    let waiting = Waiting { clock: lab.clock.as_ref(), abort: &lab.abort, limit };
    let mut taken = Observed::default();
    let seen = watch(&waiting, began, meter.as_mut(), &mut |passed, debt| {
        trial.events.notify(debt_read(WAIT, [limit, passed], debt));
        let Observed { samples, notes, .. } = observer.take();
        samples.iter().for_each(|sample| trial.events.notify(readings_event(sample)));
        taken.samples.extend(samples);
        taken.notes.extend(notes);
    });
    let registry = observer.registry().clone();
    let Observed { samples, notes, cost } = observer.finish();
    taken.samples.extend(samples);
    taken.notes.extend(notes);
    trial.check_abort()?;
    if let Some(why) = trial.deployment.down() {
        return fail(format!("the server did not survive the run-off: {why}"));
    }
    let series = keep(trial, Observed { cost, ..taken })?;
    trial.results.summary.meanings.extend(registry.meanings(series.names()));
    let run_off = seen.into_record(limit, began, &series);
    let ended = ended(&run_off);
    trial.results.summary.run_off = Some(run_off);
    trial.event(ended)
}

fn keep(trial: &mut Trial<'_, '_>, observed: Observed) -> Result<Series> {
    let Observed { samples, notes, cost } = observed;
    trial.results.summary.probes_cpu_s += cost.cpu.as_secs_f64();
    trial.results.summary.probes_wall_s += cost.wall.as_secs_f64();
    let mut series = Series::default();
    keep_samples(trial.writer, &mut series, samples)?;
    notes.into_iter().try_for_each(|note| trial.note(note))?;
    Ok(series)
}

fn ended(run_off: &RunOff) -> EventKind {
    let paid = match (run_off.paid_after_s, &run_off.unseen) {
        (Some(_), _) => Some(true),
        (None, Some(_)) => None,
        (None, None) => Some(false),
    };
    let took_s = run_off.paid_after_s.or(run_off.start_s.last().copied()).unwrap_or_default();
    let notes = run_off.unseen.iter().map(|why| format!("the backlog could not be read: {why}"));
    EventKind::WaitEnded { wait: WAIT.to_owned(), took_s, paid, notes: notes.collect() }
}

#[derive(Default)]
struct Seen {
    debts: Vec<(Nanoseconds, Debt)>,
    caught_up_at: Option<Nanoseconds>,
    unseen: Option<String>,
}

/// Each second, until the debt was paid several times in a row, or the time is over.
fn watch(waiting: &Waiting<'_>, began: Nanoseconds, meter: Meter<'_>, tell: Tell<'_>) -> Seen {
    let mut seen = Seen::default();
    for tick in 1.. {
        match meter.read() {
            Ok(debt) => {
                let now = waiting.clock.now();
                tell(now.saturating_sub(began), &debt);
                seen.debts.push((now, debt));
            }
            Err(why) => {
                seen.unseen = Some(why);
                break;
            }
        }
        let n = seen.debts.len();
        let latest = &seen.debts[n.saturating_sub(AGREEING)..];
        if latest.len() == AGREEING && latest.iter().all(|(_, debt)| debt.is_caught_up()) {
            seen.caught_up_at = latest.first().map(|(at, _)| *at);
            break;
        }
        let end = began + waiting.limit;
        if waiting.clock.now() >= end || waiting.abort.is_raised() {
            break;
        }
        // A reading that took long delays the next ones, and is not made up for.
        let due = began + Nanoseconds(PAUSE.0 * tick);
        waiting.sleep_until(due.max(waiting.clock.now()).min(end));
    }
    seen
}

impl Seen {
    fn into_record(self, limit: Nanoseconds, began: Nanoseconds, series: &Series) -> RunOff {
        let spans: Vec<Span> =
            self.debts.iter().map(|(at, _)| (at.saturating_sub(PAUSE), PAUSE)).collect();
        let mut readings: BTreeMap<String, Vec<Option<f64>>> = series.align(&spans);
        for (idx, (_, debt)) in self.debts.iter().enumerate() {
            for part in &debt.parts {
                // The meter's own readings are those that the run-off ended by.
                let column = readings.entry(part.reading.to_owned());
                let column = column.or_insert_with(|| vec![None; self.debts.len()]);
                column[idx] = Some(six_digits(part.value));
            }
        }
        let seconds =
            |at: Nanoseconds| (at.saturating_sub(began).as_secs_f64() * 1e3).round() / 1e3;
        RunOff {
            limit_s: limit.as_secs_f64(),
            paid_after_s: self.caught_up_at.map(seconds),
            unseen: self.unseen,
            start_s: self.debts.iter().map(|(at, _)| seconds(*at)).collect(),
            readings,
        }
    }
}

#[cfg(test)]
mod tests {
    use dyno_database::{DebtMeter, DebtPart};
    use dyno_load::AbortFlag;
    use dyno_units::{Clock, ManualClock};

    use super::*;

    /// A debt that goes through these values; at their end it cannot be read.
    struct Values(Vec<f64>);

    impl DebtMeter for Values {
        fn read(&mut self) -> Result<Debt, String> {
            if self.0.is_empty() {
                return Err("gone".to_owned());
            }
            let part =
                DebtPart { reading: "debt.pages", value: self.0.remove(0), caught_up_at: 1.0 };
            Ok(Debt { parts: vec![part] })
        }

        fn begin_settling(&mut self, _tables: &[String]) -> Result<Vec<String>, String> {
            unreachable!("nobody makes the engine pay sooner in a run-off")
        }

        fn end_settling(&mut self) -> Result<(), String> {
            unreachable!("it was not begun")
        }
    }

    #[track_caller]
    fn check(values: &[f64], paid_after_s: Option<f64>, n: usize, unseen: Option<&str>) {
        let clock = ManualClock::new();
        clock.sleep_until(Nanoseconds::from_secs(10));
        let (abort, limit) = (AbortFlag::new(), Nanoseconds::from_secs(4));
        let waiting = Waiting { clock: &clock, abort: &abort, limit };
        let began = clock.now();
        let mut n_told = 0;
        let mut meter = Values(values.to_vec());
        let seen = watch(&waiting, began, &mut meter, &mut |_, _| n_told += 1);
        assert_eq!(n_told, seen.debts.len());
        let record = seen.into_record(limit, began, &Series::default());
        assert_eq!((record.paid_after_s, record.unseen.as_deref()), (paid_after_s, unseen));
        let times: Vec<f64> = (0..n).map(|second| second as f64).collect();
        assert_eq!((record.limit_s, record.start_s), (4.0, times));
        let readings: Vec<Option<f64>> = values[..n].iter().copied().map(Some).collect();
        assert_eq!(record.readings["debt.pages"], readings);
    }

    #[test]
    fn it_ends_with_two_readings_in_a_row_or_with_its_time() {
        check(&[1.0, 0.0, 9.0], Some(0.0), 2, None);
        check(&[5.0, 1.0, 3.0, 1.0, 0.0], Some(3.0), 5, None);
        check(&[9.0, 8.0, 7.0, 6.0, 5.0, 0.0], None, 5, None);
        check(&[9.0, 8.0], None, 2, Some("gone"));
    }
}
