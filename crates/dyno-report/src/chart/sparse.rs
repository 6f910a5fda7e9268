//! Series that are read less often than once a second: lines over their gaps, a mark at each reading.
//!
//! A missing second of a series that is read each second is a gap. Of one that is read every five
//! seconds four in five are missing, and none of them is a gap: what counts is the series' own
//! interval.

use std::collections::BTreeMap;

use super::reduce::{Point, Together, together};

/// Seconds between readings from which on a series is sparse.
const SPARSE_FROM: f64 = 1.5;

/// A gap is where readings are further apart than so many of the series' own intervals.
const GAP_FROM: f64 = 1.6;

/// The usual distance of neighbouring readings of some series together, if it makes them sparse.
pub(crate) fn own_interval<'a>(all: impl IntoIterator<Item = &'a Vec<Point>>) -> Option<f64> {
    let mut apart: Vec<f64> = Vec::new();
    for series in all {
        let read: Vec<f64> = series.iter().filter(|p| p.1.is_some()).map(|p| p.0).collect();
        apart.extend(read.windows(2).map(|pair| pair[1] - pair[0]));
    }
    apart.retain(|distance| distance.is_finite());
    apart.sort_by(f64::total_cmp);
    // Of an even number the larger one in the middle: what is read every five seconds may be read at
    // the end of a step once more.
    let middle = apart.get(apart.len() / 2)?;
    (*middle >= SPARSE_FROM).then_some(*middle)
}

/// The readings of a sparse series, without what is missing between them by its own interval; longer
/// gaps stay gaps.
pub(crate) fn bridged(points: &[Point], interval: f64) -> Vec<Point> {
    let mut out: Vec<Point> = Vec::new();
    for (x, value) in points.iter().filter(|p| p.1.is_some()) {
        if let Some((before, _)) = out.last()
            && x - before > GAP_FROM * interval
        {
            out.push(((before + x) / 2.0, None));
        }
        out.push((*x, *value));
    }
    out
}

/// Sparse series seen together. They are not read in the same seconds, so readings of the same
/// interval are joined; each stands in the middle of those.
pub(crate) fn joined(all: &[Vec<Point>], interval: f64) -> Together {
    let slot = |x: f64| (x / interval).round() as i64;
    let mut places: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (x, _) in all.iter().flatten().filter(|p| p.1.is_some()) {
        let (sum, n) = places.entry(slot(*x)).or_default();
        (*sum, *n) = (*sum + x, *n + 1.0);
    }
    let slots: Vec<Vec<Point>> = all
        .iter()
        .map(|series| {
            let read = series.iter().filter(|p| p.1.is_some());
            read.map(|(x, value)| (slot(*x) as f64, *value)).collect()
        })
        .collect();
    let middle_of = |at: f64| places.get(&(at as i64)).map_or(at, |(sum, n)| sum / n);
    let by_slot = together(&slots);
    let placed = |points: Vec<Point>| -> Vec<Point> {
        let points: Vec<Point> = points.into_iter().map(|(at, v)| (middle_of(at), v)).collect();
        bridged(&points, interval)
    };
    Together {
        median: placed(by_slot.median),
        lowest: placed(by_slot.lowest),
        highest: placed(by_slot.highest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series of so many seconds that is read every `every` seconds from `first` on.
    fn every(every: usize, first: usize, seconds: usize) -> Vec<Point> {
        let is_read = |i: usize| i >= first && (i - first).is_multiple_of(every);
        (0..seconds).map(|i| (i as f64, is_read(i).then_some(i as f64))).collect()
    }

    #[test]
    fn a_series_has_its_own_interval() {
        let check = |series: Vec<Point>, expected: Option<f64>| {
            assert_eq!(own_interval([&series]), expected, "{series:?}");
        };
        check(every(5, 2, 30), Some(5.0));
        check(every(1, 0, 30), None);
        // A second that is missing makes no series sparse.
        let mut dense = every(1, 0, 30);
        dense[7].1 = None;
        check(dense, None);
        let mut at_the_end = every(5, 4, 12);
        at_the_end[11].1 = Some(1.0);
        check(at_the_end, Some(5.0));
        check(every(5, 2, 5), None);
        check(Vec::new(), None);
        // Of two readings in each of two trials.
        assert_eq!(own_interval([&every(5, 0, 8), &every(5, 1, 8)]), Some(5.0));
    }

    #[test]
    fn its_own_interval_is_no_gap_and_a_longer_one_is() {
        let mut series = every(5, 0, 40);
        series[15].1 = None;
        series[20].1 = None;
        let points = bridged(&series, 5.0);
        let read: Vec<f64> = points.iter().filter(|p| p.1.is_some()).map(|p| p.0).collect();
        assert_eq!(read, [0.0, 5.0, 10.0, 25.0, 30.0, 35.0]);
        let gaps: Vec<f64> = points.iter().filter(|p| p.1.is_none()).map(|p| p.0).collect();
        assert_eq!(gaps, [17.5]);
    }

    #[test]
    fn trials_that_are_read_in_other_seconds_have_one_median() {
        let a: Vec<Point> = vec![(0.0, Some(10.0)), (5.0, Some(20.0)), (10.0, Some(30.0))];
        let b: Vec<Point> = vec![(1.0, Some(14.0)), (6.0, Some(24.0)), (11.0, Some(34.0))];
        let all = joined(&[a.clone(), b], 5.0);
        assert_eq!(all.median, [(0.5, Some(12.0)), (5.5, Some(22.0)), (10.5, Some(32.0))]);
        assert_eq!(all.lowest[1], (5.5, Some(20.0)));
        assert_eq!(all.highest[1], (5.5, Some(24.0)));
        // One trial is its own median, where it was read.
        assert_eq!(joined(std::slice::from_ref(&a), 5.0).median, a);
    }
}
