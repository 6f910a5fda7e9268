//! Waits before a step until the engine has paid its debt.

use dyno_database::{Debt, DebtMeter};
use dyno_load::AbortFlag;
use dyno_record::{EventKind, Settled};
use dyno_units::{Clock, Nanoseconds};

use crate::{Context, Result, Trial, TrialError};

const PAUSE: Nanoseconds = Nanoseconds::from_secs(1);

pub(super) type Meter<'a> = &'a mut dyn DebtMeter;

/// What is told of each reading: how much time has passed, and the debt.
pub(super) type Tell<'a> = &'a mut dyn FnMut(Nanoseconds, &Debt);

/// Waits for the engine, where there is one that could have a debt. A debt that cannot be seen is
/// noted, and the step with this name, which comes next, runs.
pub(super) fn settle(trial: &mut Trial<'_, '_>, step: &str, limit: Nanoseconds) -> Result {
    let Some(server) = trial.deployment.server() else { return Ok(()) };
    let tables: Vec<String> =
        trial.workload.tables(server.dialect()).into_iter().map(|table| table.name).collect();
    let mut meter = match server.debt_meter() {
        Ok(meter) => meter,
        Err(why) => {
            let unseen = format!("the backlog cannot be read: {why}");
            trial.note(format!("before {step}: no wait, because {unseen}"))?;
            let (limit_s, notes) = (limit.as_secs_f64(), vec![unseen]);
            trial.results.settled = Some(Settled { limit_s, took_s: 0.0, paid: false, notes });
            return Ok(());
        }
    };
    let lab = trial.lab;
    let waiting = Waiting { clock: lab.clock.as_ref(), abort: &lab.abort, limit };
    let wait = format!("settling before {step}");
    trial.event(EventKind::WaitBegan { wait: wait.clone(), limit_s: limit.as_secs_f64() })?;
    let settled = waiting.settle(meter.as_mut(), &tables, &mut |passed, debt| {
        trial.events.notify(debt_read(&wait, [limit, passed], debt));
    })?;
    let Settled { took_s, paid, notes, .. } = settled.clone();
    trial.results.settled = Some(settled);
    trial.event(EventKind::WaitEnded { wait, took_s, paid: Some(paid), notes })
}

pub(super) fn debt_read(wait: &str, [limit, passed]: [Nanoseconds; 2], debt: &Debt) -> EventKind {
    let unpaid = debt.parts.iter().filter(|part| part.value > part.caught_up_at);
    EventKind::DebtRead {
        wait: wait.to_owned(),
        passed_s: passed.as_secs_f64(),
        limit_s: limit.as_secs_f64(),
        gauge: debt.gauge(),
        unpaid: unpaid.map(|part| (part.reading.to_owned(), part.value)).collect(),
    }
}

pub(super) struct Waiting<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) abort: &'a AbortFlag,
    pub(super) limit: Nanoseconds,
}

impl Waiting<'_> {
    /// Has the engine pay, and waits until it has; puts its settings back whatever happened.
    fn settle(&self, meter: Meter<'_>, tables: &[String], tell: Tell<'_>) -> Result<Settled> {
        let began = self.clock.now();
        let mut notes = Vec::new();
        match meter.begin_settling(tables) {
            Ok(done) => notes.extend(done),
            Err(why) => notes.push(format!("could not make the engine catch up faster: {why}")),
        }
        let outcome = self.until_paid(began, meter, tell);
        let restored = meter.end_settling();
        restored.context("the settings from before the wait could not be restored")?;
        if self.abort.is_raised() {
            return Err(TrialError::Abandoned);
        }
        let paid = match outcome {
            Ok(debt) if debt.is_caught_up() => true,
            Ok(debt) => {
                notes.push(left(&debt));
                false
            }
            Err(why) => {
                notes.push(format!("the backlog could not be read: {why}"));
                false
            }
        };
        let took = self.clock.now().saturating_sub(began);
        let took_s = took.as_secs_f64();
        Ok(Settled { limit_s: self.limit.as_secs_f64(), took_s, paid, notes })
    }

    /// Until the debt is paid or the time is over. `tell` gets each reading; returns the last.
    fn until_paid(
        &self,
        began: Nanoseconds,
        meter: Meter<'_>,
        tell: Tell<'_>,
    ) -> Result<Debt, String> {
        let end = began + self.limit;
        loop {
            let debt = meter.read()?;
            tell(self.clock.now().saturating_sub(began), &debt);
            if debt.is_caught_up() || self.clock.now() >= end || self.abort.is_raised() {
                return Ok(debt);
            }
            self.sleep_until((self.clock.now() + PAUSE).min(end));
        }
    }

    /// Sleeps in slices, so that Ctrl-C is heard.
    pub(super) fn sleep_until(&self, until: Nanoseconds) {
        while self.clock.now() < until && !self.abort.is_raised() {
            let slice = self.clock.now() + Nanoseconds::from_millis(100);
            self.clock.sleep_until(slice.min(until));
        }
    }
}

fn left(debt: &Debt) -> String {
    let unpaid = debt.parts.iter().filter(|part| part.value > part.caught_up_at);
    let parts: Vec<String> = unpaid
        .map(|part| format!("{} {} (caught up at {})", part.reading, part.value, part.caught_up_at))
        .collect();
    format!("left: {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use dyno_database::DebtPart;
    use dyno_units::ManualClock;

    use super::*;

    /// A debt of so much, of which one is paid at each reading.
    struct Falling {
        debt: f64,
        is_settling: bool,
        /// What putting back comes to.
        end: Result<(), String>,
    }

    impl DebtMeter for Falling {
        fn read(&mut self) -> Result<Debt, String> {
            assert!(self.is_settling, "it is read between beginning and end");
            if self.debt < 0.0 {
                return Err("gone".to_owned());
            }
            let reading = "debt.pages";
            let part = DebtPart { reading, value: self.debt, caught_up_at: 1.0 };
            self.debt -= 1.0;
            Ok(Debt { parts: vec![part] })
        }

        fn begin_settling(&mut self, tables: &[String]) -> Result<Vec<String>, String> {
            self.is_settling = true;
            Ok(vec![format!("ANALYZE {}", tables.join(", "))])
        }

        fn end_settling(&mut self) -> Result<(), String> {
            self.is_settling = false;
            self.end.clone()
        }
    }

    fn settle(debt: f64, end: Result<(), String>) -> Result<Settled> {
        let clock = ManualClock::new();
        let abort = AbortFlag::new();
        let limit = Nanoseconds::from_secs(3);
        let mut meter = Falling { debt, is_settling: false, end };
        let waiting = Waiting { clock: &clock, abort: &abort, limit };
        let mut told = Vec::new();
        let settled = waiting.settle(&mut meter, &["t".to_owned()], &mut |passed, debt| {
            told.push((passed.as_secs_f64(), debt.parts[0].value));
        });
        assert!(!meter.is_settling);
        let expected = (0..).map(|n| (f64::from(n), debt - f64::from(n)));
        assert!(told.iter().copied().eq(expected.take(told.len())), "{told:?}");
        settled
    }

    #[track_caller]
    fn check(debt: f64, paid: bool, took_s: f64, note: Option<&str>) {
        let settled = settle(debt, Ok(())).expect("it settles");
        assert_eq!((settled.paid, settled.took_s, settled.limit_s), (paid, took_s, 3.0));
        assert_eq!(settled.notes[0], "ANALYZE t");
        assert_eq!(settled.notes.get(1).map(String::as_str), note);
    }

    #[test]
    fn the_wait_ends_when_the_debt_is_paid_or_the_time_is_over() {
        check(1.0, true, 0.0, None);
        check(3.0, true, 2.0, None);
        check(4.0, true, 3.0, None);
        check(9.0, false, 3.0, Some("left: debt.pages 6 (caught up at 1)"));
        check(-1.0, false, 0.0, Some("the backlog could not be read: gone"));
    }

    #[test]
    fn settings_that_stay_changed_fail_the_trial() {
        let error = settle(0.0, Err("no".to_owned())).expect_err("it must not go on");
        assert!(
            matches!(error, TrialError::Failed { message, .. } if message.contains("could not be restored"))
        );
    }
}
