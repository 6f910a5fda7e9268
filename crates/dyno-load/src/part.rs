//! What one of several generators counted in an interval, as sent to the controller. Times travel
//! as histogram buckets, so that adding up all parts loses nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_units::Nanoseconds;
use dyno_workload::Tally;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::times::{TimeCounts, place};
use crate::{Interval, KindInterval};

/// In a whole load: a million a second for 285 years. Sums then fit 64 bits, whatever a host sends.
pub const COUNT_MOST: u64 = 1 << 53;

pub(crate) const INTERVAL_COUNT_MOST: u64 = 1 << 40;

pub type IntervalPart = Interval<KindInterval<TimesPart>, TimesPart>;

impl IntervalPart {
    pub fn of(interval: &Interval) -> IntervalPart {
        let kinds = interval.kinds.iter().map(|kind| KindInterval {
            outcomes: kind.outcomes,
            response: TimesPart::of(&kind.response),
            service: TimesPart::of(&kind.service),
            bins: kind.bins,
        });
        let (kinds, lag) = (kinds.collect(), TimesPart::of(&interval.lag));
        let Interval { phase, start, length, due, missed, retries, reconnects, tally, .. } =
            *interval;
        Interval { phase, start, length, kinds, lag, due, missed, retries, reconnects, tally }
    }

    /// Whether the times are readable, each kind has as many as it committed, and all counts together do not exceed
    /// `most`.
    pub(crate) fn is_within(&self, most: u64) -> bool {
        let Tally { reads, writes, others, rows_received, rows_changed, warnings } = self.tally;
        let own = [self.due, self.missed, self.retries, self.reconnects, reads, writes, others];
        let outcomes = self.kinds.iter().flat_map(|kind| kind.outcomes.0);
        let counts = own.into_iter().chain([rows_received, rows_changed, warnings]).chain(outcomes);
        let has_all = |kind: &KindInterval<TimesPart>| {
            let committed = Some(kind.outcomes.committed());
            [&kind.response, &kind.service].into_iter().all(|times| times.count() == committed)
        };
        counts.fold(0, u64::saturating_add) <= most
            && self.kinds.iter().all(has_all)
            && self.lag.count().is_some_and(|n| n <= most)
    }
}

/// Histogram buckets in use, each as the gap to the previous one and its count: LEB128 in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimesPart(String);

impl TimesPart {
    /// The histogram has a step's bounds.
    pub fn of(histogram: &Histogram<u64>) -> TimesPart {
        if histogram.is_empty() {
            return TimesPart::default();
        }
        let mut bytes = Vec::new();
        let mut last = 0;
        for bucket in histogram.iter_recorded() {
            let place = place(bucket.value_iterated_to());
            push(&mut bytes, (place - last) as u64);
            push(&mut bytes, bucket.count_at_value());
            last = place;
        }
        TimesPart(STANDARD.encode(bytes))
    }

    /// With their counts; `None` if damaged.
    fn buckets(&self) -> Option<Vec<(usize, u64)>> {
        let bytes = STANDARD.decode(&self.0).ok()?;
        let mut bytes = bytes.as_slice();
        let mut buckets = Vec::with_capacity(bytes.len() / 2);
        let mut place = 0_usize;
        while !bytes.is_empty() {
            let gap = pull(&mut bytes)?;
            place = place.checked_add(usize::try_from(gap).ok()?)?;
            buckets.push((place, pull(&mut bytes)?));
        }
        Some(buckets)
    }

    /// `None` if damaged.
    fn count(&self) -> Option<u64> {
        let known = |place| crate::times::shortest_of(place).is_some();
        let mut buckets = self.buckets()?.into_iter();
        buckets.try_fold(0_u64, |sum, (place, n)| known(place).then(|| sum.checked_add(n))?)
    }

    /// False if damaged; then some may have been added.
    pub(crate) fn add_to(&self, times: &mut TimeCounts) -> bool {
        let Some(buckets) = self.buckets() else { return false };
        buckets.into_iter().all(|(place, n)| times.add_at(place, n))
    }

    /// `None` if damaged.
    pub fn histogram(&self) -> Option<Histogram<u64>> {
        let mut histogram = crate::times::new_histogram();
        for (place, n) in self.buckets()? {
            let time = crate::times::shortest_of(place)?;
            histogram.record_n(time, n).ok()?;
        }
        Some(histogram)
    }

    /// The shortest time of the bucket with this quantile; zero without times.
    pub fn quantile(&self, share: f64) -> Nanoseconds {
        let buckets = self.buckets().unwrap_or_default();
        let n: u64 = buckets.iter().map(|(_, n)| n).sum();
        let wanted = ((share * n as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (place, n) in buckets {
            seen += n;
            if seen >= wanted {
                return Nanoseconds(crate::times::shortest_of(place).unwrap_or_default());
            }
        }
        Nanoseconds::ZERO
    }
}

/// LEB128: seven bits a byte, the lowest first.
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(first & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::times::new_histogram;

    fn histogram(times: &[u64]) -> Histogram<u64> {
        let mut histogram = new_histogram();
        times.iter().for_each(|time| histogram.record(*time).expect("it is within the bounds"));
        histogram
    }

    fn time() -> impl Strategy<Value = u64> {
        (0_u32..42, any::<u64>())
            .prop_map(|(bits, x)| (x & ((2 << bits) - 1)).min(3_600_000_000_000))
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_histogram_of_all_times(
            times in prop::collection::vec(time(), 0..80),
            more in prop::collection::vec(time(), 0..80),
        ) {
            let mut counts = TimeCounts::default();
            for part in [&times, &more] {
                prop_assert!(TimesPart::of(&histogram(part)).add_to(&mut counts));
            }
            let mut merged = new_histogram();
            counts.add_to(&mut merged);
            let expected = histogram(&[times.clone(), more].concat());
            prop_assert_eq!(&merged, &expected);
            prop_assert_eq!(
                (merged.max(), merged.min(), merged.min_nz(), merged.len()),
                (expected.max(), expected.min(), expected.min_nz(), expected.len())
            );
            let one = TimesPart::of(&histogram(&times));
            prop_assert_eq!(one.histogram(), Some(histogram(&times)));
        }

        #[test]
        fn what_is_damaged_is_refused_and_ends_nothing(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let part = TimesPart(STANDARD.encode(bytes));
            part.add_to(&mut TimeCounts::default());
            part.histogram();
            part.quantile(0.5);
        }
    }

    #[test]
    fn what_a_record_could_not_hold_is_refused() {
        let mut part = IntervalPart::default();
        part.kinds.push(KindInterval::default());
        let committed = |part: &mut IntervalPart, n: u64, times: &[u64]| {
            part.kinds[0].outcomes.0[0] = n;
            part.kinds[0].response = TimesPart::of(&histogram(times));
            part.kinds[0].service = part.kinds[0].response.clone();
        };
        committed(&mut part, 2, &[10, 20]);
        assert!(part.is_within(100));
        committed(&mut part, 3, &[10, 20]);
        assert!(!part.is_within(100), "more commits than times");
        committed(&mut part, 2, &[10, 20]);
        (part.due, part.missed) = (60, 60);
        assert!(!part.is_within(100), "too many together");
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        let part = TimesPart::of(&histogram(&[10, 20, 30, 40]));
        assert_eq!(part.quantile(0.5), Nanoseconds(20));
        assert_eq!(part.quantile(0.99), Nanoseconds(40));
        assert_eq!(TimesPart::default().quantile(0.5), Nanoseconds::ZERO);
        let check = |text: &str| {
            assert!(!TimesPart(text.to_owned()).add_to(&mut TimeCounts::default()), "{text}");
        };
        check("not base64");
        // A bucket beyond every histogram, and a number without its end.
        check(&STANDARD.encode([0xff, 0xff, 0xff, 0x0f, 1]));
        check(&STANDARD.encode([1, 0x80]));
    }
}
