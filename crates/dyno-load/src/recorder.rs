//! What a worker records, and passes to the collector once a second.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};

use dyno_units::Nanoseconds;
use dyno_workload::{ConnectError, ErrorClass, StatementError, Tally};

use crate::counted::{Counted, Times};
use crate::timeline::Span;
use crate::{LoadError, OUTCOMES, RoleTotals};

/// Intervals a worker owns: one being written, the others on their way to the collector and back.
const POOL_SIZE: usize = 3;

/// Index of the first outcome that is an error.
const FIRST_ERROR: usize = 2;

/// The index in [`OUTCOMES`] of a failure of this class.
fn outcome_idx(class: ErrorClass) -> usize {
    // The classes are in the order of the outcomes; a test checks this.
    FIRST_ERROR + class as usize
}

/// One interval as one worker saw it.
#[derive(Debug)]
pub(crate) struct WorkerInterval {
    pub(crate) worker_idx: usize,
    /// Which interval of the timeline.
    pub(crate) idx: u64,
    /// Whether it is the worker's last one.
    pub(crate) is_last: bool,
    pub(crate) counted: Box<Counted>,
    pub(crate) connect_failures: u64,
    /// The last of them.
    pub(crate) connect_error: Option<ConnectError>,
}

/// The final report of a worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerEnd {
    pub(crate) cpu_user: Nanoseconds,
    pub(crate) cpu_system: Nanoseconds,
    pub(crate) run_queue: Option<Nanoseconds>,
    pub(crate) in_flight_at_end: u64,
    pub(crate) error_examples: BTreeMap<&'static str, String>,
    /// Totals of its clients, by role.
    pub(crate) roles: Vec<RoleTotals>,
}

/// The messages from workers to the collector.
#[derive(Debug)]
pub(crate) enum Report {
    /// All connections of a worker are open.
    Connected,
    /// An interval has ended.
    Interval(WorkerInterval),
    /// The worker has ended.
    Ended(WorkerEnd),
    /// The worker cannot go on, and has ended.
    Failed(LoadError),
}

/// Where a worker's intervals go, and from where they return for reuse.
pub(crate) struct Outlet {
    pub(crate) worker_idx: usize,
    pub(crate) reports: Sender<Report>,
    pub(crate) returned: Receiver<WorkerInterval>,
}

/// Records attempts. Allocates nothing for one that commits.
pub(crate) struct Recorder {
    n_kinds: usize,
    // Cleared after the last interval: what is done then belongs to no interval.
    is_recording: bool,
    current: WorkerInterval,
    spare: Vec<WorkerInterval>,
    outlet: Outlet,
    error_examples: BTreeMap<&'static str, String>,
}

impl Recorder {
    pub(crate) fn new(n_kinds: usize, outlet: Outlet) -> Recorder {
        let mut spare: Vec<_> =
            (0..POOL_SIZE).map(|_| new_worker_interval(n_kinds, outlet.worker_idx)).collect();
        let current = spare.pop().expect("the pool is not empty");
        let error_examples = BTreeMap::new();
        Recorder { n_kinds, is_recording: false, current, spare, outlet, error_examples }
    }

    /// Begins the first interval.
    pub(crate) fn begin(&mut self, span: &Span) {
        self.current.idx = 0;
        self.current.counted.stamp(span);
        self.is_recording = true;
    }

    /// Passes the current interval on and begins the next one, if there is one.
    pub(crate) fn turn_over(&mut self, next: Option<&Span>) {
        let mut fresh = self.take_spare();
        fresh.idx = self.current.idx + 1;
        let mut full = std::mem::replace(&mut self.current, fresh);
        full.is_last = next.is_none();
        // A collector that has ended does not need it.
        let _ = self.outlet.reports.send(Report::Interval(full));
        match next {
            Some(span) => self.current.counted.stamp(span),
            None => self.is_recording = false,
        }
    }

    fn take_spare(&mut self) -> WorkerInterval {
        self.spare.extend(self.outlet.returned.try_iter());
        // The pool is empty only if the collector lags by more than a whole interval.
        self.spare
            .pop()
            .unwrap_or_else(|| new_worker_interval(self.n_kinds, self.outlet.worker_idx))
    }

    /// The interval being written, or none after the last one.
    #[inline]
    fn open(&mut self) -> Option<&mut Counted> {
        self.is_recording.then_some(&mut self.current.counted)
    }

    /// A transaction of a closed load begins.
    #[inline]
    pub(crate) fn began(&mut self) {
        if let Some(interval) = self.open() {
            interval.due += 1;
        }
    }

    /// Counts arrivals that were due.
    pub(crate) fn were_due(&mut self, n: u64) {
        if let Some(interval) = self.open() {
            interval.due += n;
        }
    }

    /// Counts arrivals that will never be sent.
    pub(crate) fn missed(&mut self, n: u64) {
        if let Some(interval) = self.open() {
            interval.missed += n;
        }
    }

    /// Records the lag of an arrival that was sent.
    #[inline]
    pub(crate) fn lagged(&mut self, lag: Nanoseconds) {
        if let Some(interval) = self.open() {
            interval.lag.record(lag);
        }
    }

    /// Records a committed transaction; false if it was too late to count.
    #[inline]
    pub(crate) fn committed(&mut self, kind: usize, times: Times, tally: &Tally) -> bool {
        let Some(interval) = self.open() else { return false };
        interval.kinds[kind].committed(times, interval.start);
        interval.tally.add(tally);
        true
    }

    /// Counts a transaction that was rolled back by design. Its times are not recorded with those
    /// of commits: it did less.
    pub(crate) fn rolled_back(&mut self, kind: usize, tally: &Tally) {
        let Some(interval) = self.open() else { return };
        interval.kinds[kind].outcomes.0[1] += 1;
        interval.tally.add(tally);
    }

    /// Counts an attempt that failed.
    pub(crate) fn failed(&mut self, kind: usize, error: &StatementError, tally: &Tally) {
        let Some(interval) = self.open() else { return };
        let outcome = outcome_idx(error.class);
        interval.kinds[kind].outcomes.0[outcome] += 1;
        interval.tally.add(tally);
        self.error_examples.entry(OUTCOMES[outcome]).or_insert_with(|| error.to_string());
    }

    /// Counts a retry.
    pub(crate) fn retried(&mut self) {
        if let Some(interval) = self.open() {
            interval.retries += 1;
        }
    }

    /// Counts a reconnect.
    pub(crate) fn reconnected(&mut self) {
        if let Some(interval) = self.open() {
            interval.reconnects += 1;
        }
    }

    /// Counts a failed reconnect.
    pub(crate) fn connect_failed(&mut self, error: &ConnectError) {
        if self.is_recording {
            self.current.connect_failures += 1;
            self.current.connect_error = Some(error.clone());
        }
    }

    /// Sends the collector something other than an interval.
    pub(crate) fn report(&self, report: Report) {
        let _ = self.outlet.reports.send(report);
    }

    /// The first message of each outcome that was an error.
    pub(crate) fn take_error_examples(&mut self) -> BTreeMap<&'static str, String> {
        std::mem::take(&mut self.error_examples)
    }
}

fn new_worker_interval(n_kinds: usize, worker_idx: usize) -> WorkerInterval {
    WorkerInterval {
        worker_idx,
        idx: 0,
        is_last: false,
        counted: Box::new(Counted::empty(n_kinds)),
        connect_failures: 0,
        connect_error: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_class_has_the_outcome_of_its_name() {
        for class in ErrorClass::ALL {
            assert_eq!(OUTCOMES[outcome_idx(class)], class.name());
        }
        assert_eq!(OUTCOMES.len(), FIRST_ERROR + ErrorClass::ALL.len());
    }
}
