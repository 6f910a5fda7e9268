//! Counts by stretch of time and bucket of response time, and their text form.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Buckets for each doubling of a time.
const PER_DOUBLING: f64 = 8.0;

/// One stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Column {
    /// Seconds of it that were measured, all repetitions together.
    pub(crate) seconds: f64,
    /// The longest response time, in microseconds.
    pub(crate) max_us: f64,
    /// Transactions by bucket.
    pub(crate) counts: BTreeMap<u16, u64>,
}

/// Response times by time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    /// Where the first column begins, seconds since the measure phase began. A column begins at 0.
    pub(crate) from_s: f64,
    /// The length of a column.
    pub(crate) column_s: f64,
    /// The columns.
    pub(crate) columns: Vec<Column>,
}

/// What was seen in a stretch of time, repetitions merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Window {
    /// Transactions.
    pub(crate) n: u64,
    /// Seconds, all repetitions together.
    pub(crate) seconds: f64,
    /// The longest response time, in microseconds.
    pub(crate) max_us: f64,
    counts: BTreeMap<u16, u64>,
}

impl Window {
    /// The response time, in microseconds, that this share of transactions did not exceed: the
    /// middle of its bucket, so a factor of up to 2^(1/16) off. None where there are none.
    pub(crate) fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let wanted = quantile * self.n as f64;
        let mut so_far = 0;
        for (bucket, n) in &self.counts {
            so_far += n;
            if so_far as f64 >= wanted {
                let middle = ((f64::from(*bucket) + 0.5) / PER_DOUBLING).exp2() / 1000.0;
                return Some(middle.min(self.max_us));
            }
        }
        None
    }
}

/// The bucket of a time.
fn bucket(ns: u64) -> u16 {
    ((ns.max(1) as f64).log2() * PER_DOUBLING) as u16
}

/// Where a bucket begins, in microseconds.
pub(crate) fn bucket_start_us(bucket: u16) -> f64 {
    (f64::from(bucket) / PER_DOUBLING).exp2() / 1000.0
}

impl Grid {
    /// A grid over a span of time; empty.
    pub(crate) fn new((from_s, to_s): (f64, f64), column_s: f64) -> Grid {
        let from_s = (from_s / column_s).floor() * column_s;
        let n = ((to_s - from_s) / column_s).ceil().max(1.0) as usize;
        Grid { from_s, column_s, columns: vec![Column::default(); n] }
    }

    fn column(&mut self, at_s: f64) -> Option<&mut Column> {
        // Starts of seconds are known to the millisecond.
        let place = (at_s - self.from_s + 0.002) / self.column_s;
        (place >= 0.0).then(|| self.columns.get_mut(place as usize))?
    }

    /// Notes that some seconds were measured.
    pub(crate) fn cover(&mut self, at_s: f64, seconds: f64) {
        if let Some(column) = self.column(at_s) {
            column.seconds += seconds;
        }
    }

    /// Adds times, in nanoseconds, and how often.
    pub(crate) fn add(&mut self, at_s: f64, counts: &[(u64, u64)]) {
        let Some(column) = self.column(at_s) else { return };
        for (ns, n) in counts {
            let of_bucket = column.counts.entry(bucket(*ns)).or_default();
            *of_bucket = of_bucket.saturating_add(*n);
            column.max_us = column.max_us.max(*ns as f64 / 1000.0);
        }
    }

    /// What the columns from one time to another hold, each as a whole.
    pub(crate) fn window(&self, from_s: f64, to_s: f64) -> Window {
        let mut window = Window::default();
        for (i, column) in self.columns.iter().enumerate() {
            let start = self.from_s + i as f64 * self.column_s;
            if start < from_s - 1e-6 || start + self.column_s > to_s + 1e-6 {
                continue;
            }
            window.seconds += column.seconds;
            window.max_us = window.max_us.max(column.max_us);
            for (bucket, n) in &column.counts {
                let of_bucket = window.counts.entry(*bucket).or_default();
                *of_bucket = of_bucket.saturating_add(*n);
                window.n = window.n.saturating_add(*n);
            }
        }
        window
    }

    /// Where the last column ends.
    pub(crate) fn to_s(&self) -> f64 {
        self.from_s + self.columns.len() as f64 * self.column_s
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.counts.is_empty())
    }

    /// The grid as text for the page's script: base64 of LEB128 numbers. For each column: tenths of
    /// seconds, longest time in µs, number of runs; for each run of buckets side by side: buckets
    /// passed over since the last run, length, and the counts.
    pub(crate) fn encode(&self) -> String {
        let mut bytes = Vec::new();
        for column in &self.columns {
            push(&mut bytes, (column.seconds * 10.0).round() as u64);
            push(&mut bytes, column.max_us.ceil() as u64);
            let filled: Vec<(u16, u64)> = column.counts.iter().map(|(b, n)| (*b, *n)).collect();
            let runs: Vec<&[(u16, u64)]> = filled.chunk_by(|a, b| b.0 == a.0 + 1).collect();
            push(&mut bytes, runs.len() as u64);
            let mut at = 0;
            for run in runs {
                push(&mut bytes, u64::from(run[0].0 - at));
                push(&mut bytes, run.len() as u64);
                run.iter().for_each(|(_, n)| push(&mut bytes, *n));
                at = run[run.len() - 1].0 + 1;
            }
        }
        STANDARD.encode(bytes)
    }
}

/// Appends a LEB128 number.
fn push(bytes: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_an_eighth_of_a_doubling() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(1024), 80);
        assert_eq!(bucket(2047), 87);
        assert_eq!(bucket(2048), 88);
        assert!((bucket_start_us(80) - 1.024).abs() < 1e-9);
        // The longest time that a histogram of Dyno's holds.
        assert_eq!(bucket(3_600_000_000_000), 333);
    }

    #[test]
    fn a_grid_begins_with_a_whole_column_and_has_one_at_zero() {
        let grid = Grid::new((-5.0, 30.0), 3.0);
        assert!((grid.from_s + 6.0).abs() < 1e-9);
        assert_eq!(grid.columns.len(), 12);
    }

    #[test]
    fn a_window_holds_whole_columns_and_its_quantiles_are_near() {
        let mut grid = Grid::new((0.0, 4.0), 2.0);
        grid.cover(0.0, 2.0);
        grid.cover(2.0, 1.5);
        let times: Vec<(u64, u64)> = (1..=1000).map(|i| (i * 10_000, 1)).collect();
        grid.add(2.5, &times);
        grid.add(0.5, &[(77, 5)]);
        let window = grid.window(2.0, 4.0);
        assert_eq!((window.n, window.seconds), (1000, 1.5));
        for (quantile, expected) in [(0.5, 5_000.0), (0.95, 9_500.0), (0.99, 9_900.0)] {
            let found = window.quantile_us(quantile).unwrap();
            assert!((found / expected).ln().abs() <= 2_f64.ln() / 16.0 + 1e-3, "{found}");
        }
        assert_eq!(window.max_us, 10_000.0);
        assert_eq!(grid.window(1.0, 3.9).n, 0, "no column lies within it");
        assert_eq!(grid.window(0.0, 4.0).n, 1005);
        assert_eq!(grid.window(1.0, 1.5).quantile_us(0.5), None);
    }

    #[test]
    fn the_text_of_a_grid_is_short_and_whole() {
        let mut grid = Grid::new((0.0, 2.0), 1.0);
        grid.cover(0.0, 1.0);
        grid.add(0.0, &[(1024, 3), (1130, 200), (4096, 1)]);
        let bytes = STANDARD.decode(grid.encode()).unwrap();
        // 10 tenths, 5 µs, 2 runs: at 80 two buckets with 3 and 200, 14 further on one with 1; then
        // an empty column.
        assert_eq!(bytes, [10, 5, 2, 80, 2, 3, 0xc8, 1, 14, 1, 1, 0, 0, 0]);
        grid.add(-7.0, &[(1, 1)]);
        grid.add(99.0, &[(1, 1)]);
        assert_eq!(STANDARD.decode(grid.encode()).unwrap().len(), 14);
    }
}
