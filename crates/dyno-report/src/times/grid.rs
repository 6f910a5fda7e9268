//! Counts by stretch of time and bucket of response time, and their text form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Buckets for each doubling of a time.
const PER_DOUBLING: f64 = 8.0;

/// One stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Column {
    /// Seconds of it that were measured, all repetitions together.
    pub(crate) seconds: f64,
    pub(crate) max_us: f64,
    /// Transactions by bucket.
    pub(crate) counts: Counts,
}

impl Column {
    /// Whether any of it was measured. Without time there is no density to draw.
    pub(crate) fn is_measured(&self) -> bool {
        self.seconds > 0.0
    }
}

/// How often, by bucket: the buckets between the first and the last, side by side, for they are
/// added to a million times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    first: u16,
    of: Vec<u64>,
}

impl Counts {
    fn add(&mut self, bucket: u16, n: u64) {
        if self.of.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = usize::from(self.first - bucket);
            self.of.splice(..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let place = usize::from(bucket - self.first);
        if place >= self.of.len() {
            self.of.resize(place + 1, 0);
        }
        self.of[place] = self.of[place].saturating_add(n);
    }

    /// The buckets in which there is anything, rising, and how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        (self.first..).zip(&self.of).filter(|(_, n)| **n > 0).map(|(bucket, n)| (bucket, *n))
    }

    fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

/// Response times by time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    /// Where the first column begins, seconds since the measurement phase began. A column begins at 0.
    pub(crate) from_s: f64,
    pub(crate) column_s: f64,
    pub(crate) columns: Vec<Column>,
}

/// What was seen in a stretch of time, repetitions merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Window {
    /// Transactions.
    pub(crate) n: u64,
    /// Seconds, all repetitions together.
    pub(crate) seconds: f64,
    pub(crate) max_us: f64,
    counts: Counts,
}

impl Window {
    /// The response time, in microseconds, that this share of transactions did not exceed: the
    /// middle of its bucket, so a factor of up to 2^(1/16) off. None where there are none. The page's
    /// script computes it so for a period that a reader selects.
    #[cfg(test)]
    pub(crate) fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let wanted = quantile * self.n as f64;
        let mut so_far = 0;
        for (bucket, n) in self.counts.iter() {
            so_far += n;
            if so_far as f64 >= wanted {
                let middle = ((f64::from(bucket) + 0.5) / PER_DOUBLING).exp2() / 1000.0;
                return Some(middle.min(self.max_us));
            }
        }
        None
    }
}

/// Times by bucket, of one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets {
    counts: Vec<(u16, u64)>,
    max_us: f64,
}

impl Buckets {
    /// Takes times in nanoseconds, rising, and how often, in place of what was there.
    pub(crate) fn fill(&mut self, times: &[(u64, u64)]) {
        self.counts.clear();
        self.max_us = times.last().map_or(0.0, |(ns, _)| *ns as f64 / 1000.0);
        // Most times lie in the bucket of the one before: a logarithm for each would take longer
        // than all else.
        let mut sure_until = 0;
        for (ns, n) in times {
            if *ns >= sure_until {
                let bucket = bucket(*ns);
                sure_until = (f64::from(bucket + 1) / PER_DOUBLING).exp2() as u64;
                if self.counts.last().is_none_or(|(last, _)| *last != bucket) {
                    self.counts.push((bucket, 0));
                }
            }
            if let Some((_, of_bucket)) = self.counts.last_mut() {
                *of_bucket = of_bucket.saturating_add(*n);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn of(times: &[(u64, u64)]) -> Buckets {
        let mut buckets = Buckets::default();
        buckets.fill(times);
        buckets
    }
}

fn bucket(ns: u64) -> u16 {
    ((ns.max(1) as f64).log2() * PER_DOUBLING) as u16
}

pub(crate) fn bucket_start_us(bucket: u16) -> f64 {
    (f64::from(bucket) / PER_DOUBLING).exp2() / 1000.0
}

impl Grid {
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

    pub(crate) fn add(&mut self, at_s: f64, times: &Buckets) {
        let Some(column) = self.column(at_s) else { return };
        for (bucket, n) in &times.counts {
            column.counts.add(*bucket, *n);
        }
        column.max_us = column.max_us.max(times.max_us);
    }

    /// Adds what another grid of the same plan holds. Seconds that were covered are of the plan.
    pub(crate) fn absorb(&mut self, other: &Grid) {
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            more.counts.iter().for_each(|(bucket, n)| column.counts.add(bucket, n));
            column.max_us = column.max_us.max(more.max_us);
        }
    }

    /// The same with columns twice as long, of which one begins at 0 too.
    pub(crate) fn coarser(&self) -> Grid {
        let mut grid = Grid::new((self.from_s, self.to_s()), 2.0 * self.column_s);
        for (i, column) in self.columns.iter().enumerate() {
            let Some(sum) = grid.column(self.from_s + i as f64 * self.column_s) else { continue };
            column.counts.iter().for_each(|(bucket, n)| sum.counts.add(bucket, n));
            sum.seconds += column.seconds;
            sum.max_us = sum.max_us.max(column.max_us);
        }
        grid
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
            for (bucket, n) in column.counts.iter() {
                window.counts.add(bucket, n);
                window.n = window.n.saturating_add(n);
            }
        }
        window
    }

    pub(crate) fn to_s(&self) -> f64 {
        self.from_s + self.columns.len() as f64 * self.column_s
    }

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
            let filled: Vec<(u16, u64)> = column.counts.iter().collect();
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
    use std::collections::BTreeMap;

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
    fn buckets_of_a_second_are_those_of_its_times() {
        let check = |mut times: Vec<u64>| {
            times.sort_unstable();
            times.dedup();
            let times: Vec<(u64, u64)> = times.into_iter().map(|ns| (ns, 1 + ns % 7)).collect();
            let mut expected: BTreeMap<u16, u64> = BTreeMap::new();
            times.iter().for_each(|(ns, n)| *expected.entry(bucket(*ns)).or_default() += n);
            let found = Buckets::of(&times);
            assert_eq!(found.counts, expected.into_iter().collect::<Vec<_>>());
            let longest = times.last().map_or(0.0, |(ns, _)| *ns as f64 / 1000.0);
            assert!((found.max_us - longest).abs() < 1e-9);
        };
        check(Vec::new());
        check((0..5000).collect());
        // Around every edge of a bucket that a histogram of Dyno's can have.
        let edge = |bucket: i32| (f64::from(bucket) / PER_DOUBLING).exp2() as u64;
        check((0..334).flat_map(|b| [edge(b).saturating_sub(1), edge(b), edge(b) + 1]).collect());
        for round in 1..50_u64 {
            let jumble = |i: u64| i.wrapping_mul(round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            check((0..300).map(|i| jumble(i) >> (22 + i % 40)).collect());
        }
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
        grid.add(2.5, &Buckets::of(&times));
        grid.add(0.5, &Buckets::of(&[(77, 5)]));
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
    fn a_coarser_grid_holds_the_same_in_half_the_columns() {
        let mut grid = Grid::new((-3.0, 5.0), 1.0);
        for at in -3..5 {
            grid.cover(f64::from(at), 1.0);
            grid.add(f64::from(at), &Buckets::of(&[(1024 << (at + 3), 1), (1 << 22, 2)]));
        }
        let coarser = grid.coarser();
        assert_eq!((coarser.from_s, coarser.column_s, coarser.columns.len()), (-4.0, 2.0, 5));
        assert_eq!(coarser.window(0.0, 4.0), grid.window(0.0, 4.0));
        assert_eq!(coarser.window(-4.0, 6.0), grid.window(-3.0, 5.0));
        assert_eq!(coarser.window(-2.0, 0.0).n, 6);
    }

    #[test]
    fn the_text_of_a_grid_is_short_and_whole() {
        let mut grid = Grid::new((0.0, 2.0), 1.0);
        grid.cover(0.0, 1.0);
        grid.add(0.0, &Buckets::of(&[(1024, 3), (1130, 200), (4096, 1)]));
        let bytes = STANDARD.decode(grid.encode()).unwrap();
        // 10 tenths, 5 µs, 2 runs: at 80 two buckets with 3 and 200, 14 further on one with 1; then
        // an empty column.
        assert_eq!(bytes, [10, 5, 2, 80, 2, 3, 0xc8, 1, 14, 1, 1, 0, 0, 0]);
        grid.add(-7.0, &Buckets::of(&[(1, 1)]));
        grid.add(99.0, &Buckets::of(&[(1, 1)]));
        assert_eq!(STANDARD.decode(grid.encode()).unwrap().len(), 14);
    }
}
