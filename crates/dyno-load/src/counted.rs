//! An interval while a worker, or the collector, is counting it.

use dyno_units::Nanoseconds;
use dyno_workload::Tally;

use crate::part::IntervalPart;
use crate::timeline::Span;
use crate::times::{TimeCounts, new_histogram};
use crate::{BIN_LENGTH, BINS, Interval, KindInterval, Outcomes, Phase};

pub(crate) type Counted = Interval<KindCounts, TimeCounts>;

#[derive(Debug, Default)]
pub(crate) struct KindCounts {
    pub(crate) outcomes: Outcomes,
    // Under closed load response and service time are the same, and recorded once.
    both: TimeCounts,
    response: TimeCounts,
    service: TimeCounts,
    bins: [u32; BINS],
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) done: Nanoseconds,
    /// done − due.
    pub(crate) response: Nanoseconds,
    /// done − sent.
    pub(crate) service: Nanoseconds,
}

#[inline]
fn bin(since_start: Nanoseconds) -> usize {
    ((since_start.0 / BIN_LENGTH.0) as usize).min(BINS - 1)
}

impl KindCounts {
    #[inline]
    pub(crate) fn committed(&mut self, times: Times, start: Nanoseconds) {
        self.outcomes.0[0] += 1;
        if times.response == times.service {
            self.both.record(times.response);
        } else {
            self.response.record(times.response);
            self.service.record(times.service);
        }
        self.bins[bin(times.done.saturating_sub(start))] += 1;
    }

    fn clear(&mut self) {
        self.outcomes = Outcomes::default();
        self.both.clear();
        self.response.clear();
        self.service.clear();
        self.bins = [0; BINS];
    }

    fn add(&mut self, other: &KindCounts) {
        self.outcomes.add(&other.outcomes);
        self.both.add(&other.both);
        self.response.add(&other.response);
        self.service.add(&other.service);
    }

    fn write_to(&self, target: &mut KindInterval) {
        target.outcomes = self.outcomes;
        target.bins = self.bins;
        if !target.response.is_empty() {
            target.response.reset();
            target.service.reset();
        }
        for (times, histogram) in
            [(&self.response, &mut target.response), (&self.service, &mut target.service)]
        {
            self.both.add_to(histogram);
            times.add_to(histogram);
        }
    }
}

impl Counted {
    pub(crate) fn new(n_kinds: usize) -> Counted {
        let kinds = (0..n_kinds).map(|_| KindCounts::default()).collect();
        Interval::of_kinds(kinds, TimeCounts::default())
    }

    pub(crate) fn stamp(&mut self, span: &Span) {
        self.phase = span.phase;
        self.start = span.start;
        self.length = span.end - span.start;
    }

    pub(crate) fn clear(&mut self) {
        self.kinds.iter_mut().for_each(KindCounts::clear);
        self.lag.clear();
        (self.due, self.missed, self.retries, self.reconnects) = (0, 0, 0, 0);
        self.tally = Tally::default();
    }

    /// Bin by bin; start and length stay.
    pub(crate) fn add(&mut self, other: &Counted) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            for (mine, theirs) in mine.bins.iter_mut().zip(theirs.bins) {
                *mine += theirs;
            }
        }
        self.add_but_bins(other);
    }

    /// Adds a later interval's counts to the last bin of this one.
    pub(crate) fn add_late(&mut self, late: &Counted) {
        let last = bin(self.length.saturating_sub(Nanoseconds(1)));
        for (mine, theirs) in self.kinds.iter_mut().zip(&late.kinds) {
            mine.bins[last] += theirs.bins.iter().sum::<u32>();
        }
        self.add_but_bins(late);
    }

    fn add_but_bins(&mut self, other: &Counted) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.add(theirs);
        }
        self.lag.add(&other.lag);
        self.due += other.due;
        self.missed += other.missed;
        self.retries += other.retries;
        self.reconnects += other.reconnects;
        self.tally.add(&other.tally);
    }

    /// Adds a generator's counts; false if they do not fit, and then some may have been added.
    pub(crate) fn add_part(&mut self, part: &IntervalPart) -> bool {
        if part.kinds.len() != self.kinds.len() {
            return false;
        }
        let mut fits = part.lag.add_to(&mut self.lag);
        for (mine, theirs) in self.kinds.iter_mut().zip(&part.kinds) {
            fits &= theirs.response.add_to(&mut mine.response);
            fits &= theirs.service.add_to(&mut mine.service);
            mine.outcomes.add(&theirs.outcomes);
            for (mine, theirs) in mine.bins.iter_mut().zip(theirs.bins) {
                *mine = mine.saturating_add(theirs);
            }
        }
        self.due += part.due;
        self.missed += part.missed;
        self.retries += part.retries;
        self.reconnects += part.reconnects;
        self.tally.add(&part.tally);
        fits
    }

    pub(crate) fn commits(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.outcomes.committed()).sum()
    }

    /// Overwrites `target`, which has as many kinds.
    pub(crate) fn write_to(&self, target: &mut Interval) {
        (target.phase, target.start, target.length) = (self.phase, self.start, self.length);
        for (kind, target) in self.kinds.iter().zip(&mut target.kinds) {
            kind.write_to(target);
        }
        if !target.lag.is_empty() {
            target.lag.reset();
        }
        self.lag.add_to(&mut target.lag);
        (target.due, target.missed) = (self.due, self.missed);
        (target.retries, target.reconnects) = (self.retries, self.reconnects);
        target.tally = self.tally;
    }
}

impl Interval {
    pub(crate) fn empty(n_kinds: usize) -> Interval {
        let kind = || {
            let (response, service) = (new_histogram(), new_histogram());
            KindInterval { outcomes: Outcomes::default(), response, service, bins: [0; BINS] }
        };
        Interval::of_kinds((0..n_kinds).map(|_| kind()).collect(), new_histogram())
    }
}

impl<K, T> Interval<K, T> {
    fn of_kinds(kinds: Vec<K>, lag: T) -> Interval<K, T> {
        let (phase, [start, length]) = (Phase::WarmUp, [Nanoseconds::ZERO; 2]);
        let ([due, missed, retries, reconnects], tally) = ([0; 4], Tally::default());
        Interval { phase, start, length, kinds, lag, due, missed, retries, reconnects, tally }
    }
}
