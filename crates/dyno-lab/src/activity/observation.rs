//! Observes a server that gets no load from Dyno.
//!
//! Throughput is the server's own count of transactions. MariaDB and MySQL have none (no counter
//! includes statements that commit by themselves): of them only statements are known. There are no
//! response times, as no client waited.

use std::collections::BTreeMap;

use dyno_host::RunningProcess;
use dyno_load::AbortFlag;
use dyno_record::{
    EncodedHistogram, EventKind, IntervalColumns, KindSummary, StepSummary, new_histogram,
};
use dyno_units::reading::Role;
use dyno_units::{Nanoseconds, Reading};
use dyno_workload::Observation;

use super::{Activity, Journal, Length, StepEnd, Surroundings};
use crate::{Context, Lab, Result, Span, TrialError, Watching};

/// How long after the end of an interval its readings are awaited.
const GRACE: Nanoseconds = Nanoseconds::from_millis(200);

const LOOK: Nanoseconds = Nanoseconds::from_millis(100);

/// The shortest last interval: over less, rates are not read.
const SHORTEST: Nanoseconds = Nanoseconds::from_millis(100);

pub(crate) struct ObservationActivity<'a> {
    lab: &'a Lab,
    name: String,
    every: Nanoseconds,
    /// The process with which it ends.
    process: Option<RunningProcess>,
    length: Length,
    /// Who watches, and may end it.
    watching: Option<&'a Watching>,
    /// Start and length of its intervals, those of the warm-up among them.
    spans: Vec<Span>,
    began: Nanoseconds,
    was_ended: bool,
}

impl Activity for ObservationActivity<'_> {
    fn name(&self) -> &str {
        "observation"
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result {
        let journal =
            at.journal.as_deref_mut().context("an observation runs on the thread of its step")?;
        let origin = self.lab.clock.now();
        self.began = origin + self.length.warm_up;
        journal.begin(origin)?;
        if self.length.warm_up > Nanoseconds::ZERO {
            self.announce("warm-up", journal)?;
            self.observe((origin, self.began), at.stop, journal)?;
        }
        if !self.was_ended {
            journal.measure(self.began);
            self.announce("measure", journal)?;
            self.observe((self.began, self.began + self.length.duration), at.stop, journal)?;
        }
        if self.lab.abort.is_raised() { Err(TrialError::Abandoned) } else { Ok(()) }
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let summary = &mut end.summary;
        let until = self.spans.last().map_or(self.began, |(start, length)| *start + *length);
        summary.measured_s = until.saturating_sub(self.began).as_secs_f64();
        summary.ended_by = Some(if self.was_ended { "activity" } else { "time" }.to_owned());
        summary.spans = Some(self.spans.iter().map(|(at, length)| (at.0, length.0)).collect());
    }

    fn add_readings_to(&self, end: &mut StepEnd) {
        count(&mut end.summary, &end.meanings, &self.spans, self.began);
    }
}

impl<'a> ObservationActivity<'a> {
    pub(crate) fn new(
        (lab, watching): (&'a Lab, Option<&'a Watching>),
        name: &str,
        observation: Observation,
        length: Length,
    ) -> Result<ObservationActivity<'a>> {
        let find = |pid: i32| {
            let found = RunningProcess::find(pid);
            found.context(format_args!("pid {pid}: there is no such process"))
        };
        Ok(ObservationActivity {
            lab,
            name: name.to_owned(),
            every: observation.every,
            process: observation.process.map(find).transpose()?,
            length,
            watching,
            spans: Vec::new(),
            began: Nanoseconds::ZERO,
            was_ended: false,
        })
    }

    fn announce(&self, phase: &str, journal: &mut Journal<'_, '_>) -> Result {
        let (step, name, phase) = (journal.step, self.name.clone(), phase.to_owned());
        Ok(journal.event(EventKind::PhaseBegan { step, name, phase })?)
    }

    fn observe(
        &mut self,
        (from, until): (Nanoseconds, Nanoseconds),
        stop: &AbortFlag,
        journal: &mut Journal<'_, '_>,
    ) -> Result {
        let mut start = from;
        while start < until && !self.was_ended {
            let due = until.min(start + self.every);
            self.was_ended = !self.wait(due, stop);
            let end = if self.was_ended { self.lab.clock.now().min(due) } else { due };
            let length = end.saturating_sub(start);
            if !self.was_ended || length >= SHORTEST {
                self.spans.push((start, length));
            }
            journal.take_samples()?;
            let step = journal.step;
            let passed_s = end.0 as f64 / 1e9 - self.began.0 as f64 / 1e9;
            journal.events.notify(EventKind::IntervalObserved { step, passed_s });
            start = end;
        }
        Ok(())
    }

    /// Waits until the readings of a moment have come; whether that was before it is to end.
    fn wait(&self, until: Nanoseconds, stop: &AbortFlag) -> bool {
        let clock = &self.lab.clock;
        loop {
            let now = clock.now();
            if now >= until + GRACE {
                return true;
            }
            let is_left = self.watching.is_some_and(|watching| watching.end.is_raised());
            let is_gone = self.process.is_some_and(|process| !process.is_alive());
            if stop.is_raised() || is_left || is_gone {
                return false;
            }
            clock.sleep_until((now + LOOK).min(until + GRACE));
        }
    }
}

fn count(
    summary: &mut StepSummary,
    meanings: &BTreeMap<String, Reading>,
    spans: &[Span],
    began: Nanoseconds,
) {
    let counter = |role: Role| {
        let mut counters = meanings.iter().filter(|(_, reading)| reading.role == Some(role));
        counters.find_map(|(name, reading)| Some((reading, summary.readings.get(name)?)))
    };
    let total = |column: &[Option<f64>]| {
        let measured = spans.iter().zip(column).filter(|((start, _), _)| *start >= began);
        (mean(measured.filter_map(|(_, rate)| *rate)) * summary.measured_s).round() as u64
    };
    let zeros = || vec![0.0; spans.len()];
    let counted = counter(Role::Transactions);
    let rates: Vec<f64> = counted
        .map_or_else(zeros, |(_, column)| column.iter().map(|rate| rate.unwrap_or(0.0)).collect());
    let kinds = counted.map(|(reading, column)| KindSummary {
        name: format!("{} (counted by the server)", reading.title),
        outcomes: BTreeMap::from([("committed".to_owned(), total(column))]),
        response: EncodedHistogram::encode(&new_histogram()),
        service: EncodedHistogram::encode(&new_histogram()),
        commits_100ms: None,
    });
    let statements = counter(Role::Statements).map_or(0, |(_, column)| total(column));
    let since = |(start, _): &Span| ((start.0 as f64 - began.0 as f64) / 1e6).round() / 1e3;
    summary.kinds = kinds.into_iter().collect();
    summary.others = statements;
    summary.intervals = IntervalColumns {
        start_s: spans.iter().map(since).collect(),
        throughput: rates,
        errors: zeros(),
        missed: zeros(),
        p50_us: zeros(),
        p95_us: zeros(),
        p99_us: zeros(),
        max_us: zeros(),
        lag_p99_us: zeros(),
    };
}

/// The mean; 0 without any. A second without a rate, such as the first, is taken to be as the others are.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    sum / f64::from(n.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The summary of intervals of a second of which the first is a warm-up, if it has one.
    fn summary(name: &str, column: Vec<Option<f64>>, warm_up_s: u64) -> StepSummary {
        let start = |second: usize| Nanoseconds::from_secs(7 + second as u64);
        let spans: Vec<_> = (0..column.len()).map(|n| (start(n), Nanoseconds::SECOND)).collect();
        let measured_s = column.len() as f64 - warm_up_s as f64;
        let readings = BTreeMap::from([(name.to_owned(), column)]);
        let meanings = crate::observe::registry().meanings(readings.keys());
        let mut summary = StepSummary { measured_s, readings, ..StepSummary::default() };
        count(&mut summary, &meanings, &spans, Nanoseconds::from_secs(7 + warm_up_s));
        summary
    }

    #[test]
    fn statements_are_no_transactions() {
        let column = vec![None, Some(100.0), Some(300.0)];
        let mysql = summary("mysql.statements_per_s", column.clone(), 0);
        assert!(mysql.kinds.is_empty() && mysql.intervals.throughput == [0.0; 3]);
        // The first second has no rate: it is taken to be as the others are.
        assert_eq!(mysql.others, 600);
        assert_eq!(mysql.intervals.start_s, [0.0, 1.0, 2.0]);
        let postgresql = summary("pg.commits_per_s", column, 0);
        assert_eq!(postgresql.kinds[0].outcomes["committed"], 600);
        assert_eq!(postgresql.intervals.throughput, [0.0, 100.0, 300.0]);
        assert_eq!(postgresql.others, 0);
        let host = summary("cpu.busy_pct", vec![Some(1.0)], 0);
        assert!(host.kinds.is_empty() && host.others == 0);
    }

    #[test]
    fn what_happens_in_the_warm_up_is_not_counted() {
        let column = vec![Some(9000.0), Some(100.0), Some(300.0)];
        let postgresql = summary("pg.commits_per_s", column, 1);
        assert_eq!(postgresql.kinds[0].outcomes["committed"], 400);
        assert_eq!(postgresql.intervals.start_s, [-1.0, 0.0, 1.0]);
    }
}
