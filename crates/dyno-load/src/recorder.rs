//! What a worker records, and sends to the collector once a second.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};

use dyno_units::Nanoseconds;
use dyno_workload::{ConnectError, ErrorClass, StatementError, Tally};

use crate::counted::{Counted, Times};
use crate::timeline::Span;
use crate::{LoadError, OUTCOMES, RoleTotals};

/// One being written, the others on their way to the collector and back.
const POOL_SIZE: usize = 3;

/// Commits buffered before they are counted. With cold memory (many workers), buffering one touches
/// one cache line, counting it eight, whose misses overlap within a batch.
const BATCH: usize = 32;

const FIRST_ERROR: usize = 2;

fn outcome_idx(class: ErrorClass) -> usize {
    // Classes are in the order of outcomes; a test checks this.
    FIRST_ERROR + class as usize
}

#[derive(Debug)]
pub(crate) struct WorkerInterval {
    pub(crate) worker_idx: usize,
    pub(crate) idx: u64,
    pub(crate) is_last: bool,
    pub(crate) counted: Box<Counted>,
    pub(crate) connect_failures: u64,
    pub(crate) connect_error: Option<ConnectError>,
}

#[derive(Debug, Default)]
pub(crate) struct WorkerEnd {
    pub(crate) cpu_user: Nanoseconds,
    pub(crate) cpu_system: Nanoseconds,
    pub(crate) run_queue: Option<Nanoseconds>,
    pub(crate) in_flight_at_end: u64,
    pub(crate) error_examples: BTreeMap<&'static str, String>,
    pub(crate) roles: Vec<RoleTotals>,
}

#[derive(Debug)]
pub(crate) enum Report {
    Connected,
    Interval(WorkerInterval),
    Ended(WorkerEnd),
    Failed(LoadError),
}

/// Where intervals go, and come back from for reuse.
pub(crate) struct Outlet {
    pub(crate) worker_idx: usize,
    pub(crate) reports: Sender<Report>,
    pub(crate) returned: Receiver<WorkerInterval>,
}

/// Allocates nothing for a commit.
// Hot fields first.
#[repr(C)]
pub(crate) struct Recorder {
    // Cleared after the last interval: later work belongs to none.
    is_recording: bool,
    // Part of the current interval, not counted yet.
    n_aside: usize,
    due_aside: u64,
    tally_aside: Tally,
    aside: [(usize, Times); BATCH],
    n_kinds: usize,
    current: WorkerInterval,
    spare: Vec<WorkerInterval>,
    outlet: Outlet,
    pub(crate) error_examples: BTreeMap<&'static str, String>,
}

impl Recorder {
    pub(crate) fn new(n_kinds: usize, outlet: Outlet) -> Recorder {
        let mut spare: Vec<_> =
            (0..POOL_SIZE).map(|_| new_worker_interval(n_kinds, outlet.worker_idx)).collect();
        let current = spare.pop().expect("the pool is not empty");
        Recorder {
            n_kinds,
            is_recording: false,
            n_aside: 0,
            due_aside: 0,
            tally_aside: Tally::default(),
            aside: [(0, Times::default()); BATCH],
            current,
            spare,
            outlet,
            error_examples: BTreeMap::new(),
        }
    }

    pub(crate) fn begin(&mut self, span: &Span) {
        self.current.idx = 0;
        self.current.counted.stamp(span);
        self.is_recording = true;
    }

    pub(crate) fn turn_over(&mut self, next: Option<&Span>) {
        self.settle();
        let mut fresh = self.take_spare();
        fresh.idx = self.current.idx + 1;
        let mut full = std::mem::replace(&mut self.current, fresh);
        full.is_last = next.is_none();
        // A collector that has ended does not need the interval.
        let _ = self.outlet.reports.send(Report::Interval(full));
        match next {
            Some(span) => self.current.counted.stamp(span),
            None => self.is_recording = false,
        }
    }

    fn take_spare(&mut self) -> WorkerInterval {
        self.spare.extend(self.outlet.returned.try_iter());
        // Empty only if the collector lags by more than an interval.
        self.spare
            .pop()
            .unwrap_or_else(|| new_worker_interval(self.n_kinds, self.outlet.worker_idx))
    }

    #[inline]
    fn open(&mut self) -> Option<&mut Counted> {
        self.is_recording.then_some(&mut self.current.counted)
    }

    fn settle(&mut self) {
        let interval = &mut self.current.counted;
        for (kind, times) in &self.aside[..self.n_aside] {
            interval.kinds[*kind].committed(*times, interval.start);
        }
        self.n_aside = 0;
        interval.due += std::mem::take(&mut self.due_aside);
        interval.tally.add(&std::mem::take(&mut self.tally_aside));
    }

    #[inline]
    pub(crate) fn began(&mut self) {
        self.due_aside += u64::from(self.is_recording);
    }

    pub(crate) fn were_due(&mut self, n: u64) {
        self.open().into_iter().for_each(|interval| interval.due += n);
    }

    pub(crate) fn missed(&mut self, n: u64) {
        self.open().into_iter().for_each(|interval| interval.missed += n);
    }

    #[inline]
    pub(crate) fn lagged(&mut self, lag: Nanoseconds) {
        self.open().into_iter().for_each(|interval| interval.lag.record(lag));
    }

    /// False if it was too late to count.
    #[inline]
    pub(crate) fn committed(&mut self, kind: usize, times: Times, tally: &Tally) -> bool {
        if !self.is_recording {
            return false;
        }
        self.tally_aside.add(tally);
        self.aside[self.n_aside] = (kind, times);
        self.n_aside += 1;
        if self.n_aside == BATCH {
            self.settle();
        }
        true
    }

    /// By design. Times are not recorded with those of commits: it did less work.
    pub(crate) fn rolled_back(&mut self, kind: usize, tally: &Tally) {
        let Some(interval) = self.open() else { return };
        interval.kinds[kind].outcomes.0[1] += 1;
        interval.tally.add(tally);
    }

    pub(crate) fn failed(&mut self, kind: usize, error: &StatementError, tally: &Tally) {
        let Some(interval) = self.open() else { return };
        let outcome = outcome_idx(error.class);
        interval.kinds[kind].outcomes.0[outcome] += 1;
        interval.tally.add(tally);
        self.error_examples.entry(OUTCOMES[outcome]).or_insert_with(|| error.to_string());
    }

    pub(crate) fn retried(&mut self) {
        self.open().into_iter().for_each(|interval| interval.retries += 1);
    }

    pub(crate) fn reconnected(&mut self) {
        self.open().into_iter().for_each(|interval| interval.reconnects += 1);
    }

    pub(crate) fn connect_failed(&mut self, error: &ConnectError) {
        if self.is_recording {
            self.current.connect_failures += 1;
            self.current.connect_error = Some(error.clone());
        }
    }

    pub(crate) fn report(&self, report: Report) {
        let _ = self.outlet.reports.send(report);
    }
}

fn new_worker_interval(n_kinds: usize, worker_idx: usize) -> WorkerInterval {
    let (idx, counted, connect_failures) = (0, Box::new(Counted::new(n_kinds)), 0);
    WorkerInterval {
        worker_idx,
        idx,
        is_last: false,
        counted,
        connect_failures,
        connect_error: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::Phase;

    #[test]
    fn every_error_class_has_the_outcome_of_its_name() {
        for class in ErrorClass::ALL {
            assert_eq!(OUTCOMES[outcome_idx(class)], class.name());
        }
        assert_eq!(OUTCOMES.len(), FIRST_ERROR + ErrorClass::ALL.len());
    }

    /// Whether the batch is full or not at the end.
    #[test]
    fn what_was_set_aside_belongs_to_the_interval_in_which_it_was_done() {
        let ms = Nanoseconds::from_millis;
        let span =
            |start: u64| Span { phase: Phase::Measure, start: ms(start), end: ms(start + 1000) };
        let ((reports, received), (_back, returned)) = (channel(), channel());
        let mut recorder = Recorder::new(2, Outlet { worker_idx: 0, reports, returned });
        recorder.begin(&span(0));
        let amounts = [BATCH - 1, BATCH, 2 * BATCH + 5, 0];
        for (second, n) in amounts.into_iter().enumerate() {
            for nth in 0..n {
                recorder.began();
                let done = ms(1000 * second as u64 + 150);
                let times = Times { done, response: ms(2), service: ms(2) };
                let tally = Tally { reads: 3, ..Tally::default() };
                assert!(recorder.committed(nth % 2, times, &tally));
            }
            recorder.turn_over(
                (second + 1 < amounts.len()).then(|| span(1000 * (second as u64 + 1))).as_ref(),
            );
        }
        recorder.began();
        assert!(!recorder.committed(0, Times::default(), &Tally::default()));
        for n in amounts {
            let Ok(Report::Interval(interval)) = received.try_recv() else { panic!("an interval") };
            let counted = interval.counted;
            assert_eq!(
                (counted.due, counted.commits(), counted.tally.reads),
                (n as u64, n as u64, 3 * n as u64)
            );
            let mut target = crate::Interval::empty(2);
            counted.write_to(&mut target);
            let bins: u32 = target.kinds.iter().map(|kind| kind.bins[1]).sum();
            let times: u64 = target.kinds.iter().map(|kind| kind.response.len()).sum();
            assert_eq!((bins as usize, times as usize), (n, n));
        }
    }
}
