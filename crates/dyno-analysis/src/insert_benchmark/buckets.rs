//! Response time buckets of the Insert Benchmark's author, from HDR histograms.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Inclusive upper bounds: 256 µs, 1, 4, 16, 64, 256 ms, 1, 4, 16 s; a last bucket has the rest.
pub const BOUNDS_NS: [u64; 9] = [
    256_000,
    1_000_000,
    4_000_000,
    16_000_000,
    64_000_000,
    256_000_000,
    1_000_000_000,
    4_000_000_000,
    16_000_000_000,
];

pub const N_BUCKETS: usize = BOUNDS_NS.len() + 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Buckets {
    /// Not cumulated.
    pub counts: [u64; N_BUCKETS],
    /// 0 without any.
    pub max_s: f64,
}

impl Buckets {
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Percent of all; 0 without any.
    pub fn percent(&self) -> [f64; N_BUCKETS] {
        let total = self.total().max(1) as f64;
        self.counts.map(|count| 100.0 * count as f64 / total)
    }
}

/// A value stands for all that equal it within the histogram's precision (a thousandth); the
/// smallest of them decides, so that a bound is in its own bucket.
pub fn buckets(histogram: &Histogram<u64>) -> Buckets {
    let mut buckets = Buckets::default();
    for value in histogram.iter_recorded() {
        let least = histogram.lowest_equivalent(value.value_iterated_to());
        let bucket = BOUNDS_NS.iter().position(|bound| least <= *bound);
        buckets.counts[bucket.unwrap_or(BOUNDS_NS.len())] += value.count_at_value();
    }
    if !histogram.is_empty() {
        buckets.max_s = histogram.max() as f64 / 1e9;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use dyno_record::new_histogram;

    use super::*;

    #[track_caller]
    fn check(values: &[u64], expected: [u64; N_BUCKETS], max_s: f64) {
        let mut histogram = new_histogram();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        let found = buckets(&histogram);
        assert_eq!(found.counts, expected);
        assert!((found.max_s - max_s).abs() <= max_s / 500.0, "{} {max_s}", found.max_s);
    }

    #[test]
    fn every_time_falls_into_its_bucket() {
        check(&[], [0; N_BUCKETS], 0.0);
        check(&[1, 100_000, 256_000], [3, 0, 0, 0, 0, 0, 0, 0, 0, 0], 256e-6);
        check(&[257_000, 1_000_000, 1_002_000], [0, 2, 1, 0, 0, 0, 0, 0, 0, 0], 1.002e-3);
        check(
            &[3_000_000, 15_000_000, 60_000_000, 250_000_000, 990_000_000],
            [0, 0, 1, 1, 1, 1, 1, 0, 0, 0],
            0.99,
        );
        check(
            &[3_900_000_000, 15_900_000_000, 16_100_000_000, 3_000_000_000_000],
            [0, 0, 0, 0, 0, 0, 0, 1, 1, 2],
            3000.0,
        );
    }

    #[test]
    fn shares_are_percent_of_all() {
        let mut histogram = new_histogram();
        histogram.record_n(100_000, 3).unwrap();
        histogram.record(2_000_000_000).unwrap();
        let found = buckets(&histogram);
        assert_eq!(found.percent(), [75.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 25.0, 0.0, 0.0]);
        assert_eq!(Buckets::default().percent(), [0.0; N_BUCKETS]);
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost(values: Vec<u32>) {
            let mut histogram = new_histogram();
            for value in &values {
                histogram.record(u64::from(*value).max(1) * 1000).unwrap();
            }
            proptest::prop_assert_eq!(buckets(&histogram).total(), values.len() as u64);
        }
    }
}
