//! Times, counted in the buckets of [`new_histogram`] without loss, but faster: a time costs a
//! shift and a few comparisons, and adding or emptying touches only buckets in use.

use dyno_units::Nanoseconds;
use hdrhistogram::Histogram;

/// One hour, in ns; longer times count as this.
const LONGEST: u64 = 3_600_000_000_000;

/// log2 of the buckets for each power of two: three significant digits, as in HdrHistogram.
const HALF_BITS: u32 = 10;

/// 1 ns to one hour, three significant digits: all histograms of a step can be added without loss.
pub(crate) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order")
}

/// Below 2^(HALF_BITS + 1) each time has its own bucket; above, each power of two has 2^HALF_BITS.
#[inline]
pub(crate) fn place(time: u64) -> usize {
    let whole = (2 << HALF_BITS) - 1;
    let bucket = (time | whole).ilog2() - HALF_BITS;
    ((u64::from(bucket) << HALF_BITS) + (time >> bucket)) as usize
}

fn shortest_in(place: usize) -> u64 {
    let place = place as u64;
    let bucket = (place >> HALF_BITS).saturating_sub(1);
    (place - (bucket << HALF_BITS)) << bucket
}

/// `None` if no histogram of a step has the bucket.
pub(crate) fn shortest_of(at: usize) -> Option<u64> {
    (at <= place(LONGEST)).then(|| shortest_in(at))
}

#[derive(Debug)]
pub(crate) struct TimeCounts {
    counts: Box<[u64]>,
    // The exact shortest time above zero, less one, so that zero is the greatest number.
    shortest_less_one: u64,
    // Exact; zero if there is none.
    longest: u64,
}

impl Default for TimeCounts {
    fn default() -> TimeCounts {
        let counts = vec![0; place(LONGEST) + 1].into_boxed_slice();
        TimeCounts { counts, shortest_less_one: u64::MAX, longest: 0 }
    }
}

impl TimeCounts {
    #[inline]
    pub(crate) fn record(&mut self, time: Nanoseconds) {
        let time = time.0.min(LONGEST);
        self.counts[place(time)] += 1;
        self.shortest_less_one = self.shortest_less_one.min(time.wrapping_sub(1));
        self.longest = self.longest.max(time);
    }

    /// Without that of zero.
    fn used(&self) -> std::ops::Range<usize> {
        match self.longest {
            0 => 0..0,
            longest => place(self.shortest_less_one + 1)..place(longest) + 1,
        }
    }

    pub(crate) fn clear(&mut self) {
        let used = self.used();
        self.counts[0] = 0;
        self.counts[used].fill(0);
        self.shortest_less_one = u64::MAX;
        self.longest = 0;
    }

    pub(crate) fn add(&mut self, other: &TimeCounts) {
        self.counts[0] += other.counts[0];
        let used = other.used();
        for (mine, theirs) in self.counts[used.clone()].iter_mut().zip(&other.counts[used]) {
            *mine += theirs;
        }
        self.shortest_less_one = self.shortest_less_one.min(other.shortest_less_one);
        self.longest = self.longest.max(other.longest);
    }

    /// As if each time was the bucket's shortest; false if there is no such bucket.
    pub(crate) fn add_at(&mut self, place: usize, n: u64) -> bool {
        let Some(count) = self.counts.get_mut(place) else { return false };
        *count = count.saturating_add(n);
        let time = shortest_in(place);
        if n > 0 {
            self.shortest_less_one = self.shortest_less_one.min(time.wrapping_sub(1));
            self.longest = self.longest.max(time);
        }
        true
    }

    pub(crate) fn add_to(&self, histogram: &mut Histogram<u64>) {
        let mut add = |time, n| {
            histogram.record_n(time, n).expect("no time is longer than the histogram's longest");
        };
        if self.counts[0] > 0 {
            add(0, self.counts[0]);
        }
        let used = self.used();
        for idx in used.clone() {
            let n = self.counts[idx];
            if n == 0 {
                continue;
            }
            // Only the extremes are known exactly.
            let (is_first, is_last) = (idx == used.start, idx + 1 == used.end);
            if is_first {
                add(self.shortest_less_one + 1, if is_last { 1 } else { n });
            }
            if is_last {
                add(self.longest, if is_first { n - 1 } else { n });
            }
            if !is_first && !is_last {
                add(shortest_in(idx), n);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time() -> impl Strategy<Value = u64> {
        // Of all lengths, and some equal or nearly so.
        prop_oneof![(0_u32..42, any::<u64>()).prop_map(|(bits, x)| x & ((2 << bits) - 1)), 0_u64..5]
            .prop_map(|time| time.min(LONGEST))
    }

    proptest! {
        #[test]
        fn a_histogram_of_counts_is_the_one_of_their_times(
            times in prop::collection::vec(time(), 0..60),
            more in prop::collection::vec(time(), 0..60),
        ) {
            let mut expected = new_histogram();
            times.iter().chain(&more).for_each(|time| expected.record(*time).unwrap());
            let counted = |times: &[u64]| {
                let mut counts = TimeCounts::default();
                times.iter().for_each(|time| counts.record(Nanoseconds(*time)));
                counts
            };
            let (mut counts, mut histogram) = (counted(&times), new_histogram());
            counts.add(&counted(&more));
            counts.add_to(&mut histogram);
            prop_assert_eq!(&histogram, &expected);
            prop_assert_eq!(
                (histogram.max(), histogram.min(), histogram.min_nz()),
                (expected.max(), expected.min(), expected.min_nz())
            );
            counts.clear();
            prop_assert!(counts.counts.iter().all(|n| *n == 0));
            counts.add_to(&mut histogram);
            prop_assert_eq!(&histogram, &expected);
        }
    }

    #[test]
    fn more_than_an_hour_counts_as_an_hour() {
        let mut counts = TimeCounts::default();
        counts.record(Nanoseconds(u64::MAX));
        counts.record(Nanoseconds(LONGEST));
        let mut histogram = new_histogram();
        counts.add_to(&mut histogram);
        let mut expected = new_histogram();
        expected.record_n(LONGEST, 2).unwrap();
        assert_eq!(histogram, expected);
    }
}
