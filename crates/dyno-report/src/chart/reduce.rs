//! Fewer points for a drawing, never less truth: each bucket keeps its smallest and its largest
//! point, so a dip of one second is still there. Nothing is averaged.

/// A point of a series: position and value, if there is one.
pub(crate) type Point = (f64, Option<f64>);

/// Reduces a series to at most about `max_points` points. A bucket in which values are missing
/// between its points gives a gap only where no value of the bucket is left.
pub(crate) fn reduce(points: &[Point], max_points: usize) -> Vec<Point> {
    if points.len() <= max_points {
        return points.to_vec();
    }
    let n_buckets = (max_points / 2).max(1);
    let mut out = Vec::with_capacity(2 * n_buckets);
    for bucket in 0..n_buckets {
        let from = bucket * points.len() / n_buckets;
        let to = (bucket + 1) * points.len() / n_buckets;
        push_extremes(&points[from..to], &mut out);
    }
    out
}

/// Appends the smallest and the largest point of a bucket, in order of their positions.
fn push_extremes(bucket: &[Point], out: &mut Vec<Point>) {
    let values = || bucket.iter().enumerate().filter_map(|(i, (_, v))| v.map(|v| (i, v)));
    let low = values().min_by(|a, b| a.1.total_cmp(&b.1));
    let high = values().max_by(|a, b| a.1.total_cmp(&b.1));
    match (low, high) {
        (Some((low, _)), Some((high, _))) => {
            out.push(bucket[low.min(high)]);
            if low != high {
                out.push(bucket[low.max(high)]);
            }
        }
        _ => out.extend(bucket.first().map(|(x, _)| (*x, None))),
    }
}

/// Several series seen together, position by position.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Together {
    /// The median at each position; none where no series has a value.
    pub(crate) median: Vec<Point>,
    pub(crate) lowest: Vec<Point>,
    pub(crate) highest: Vec<Point>,
}

/// Joins series on their positions, rounded to whole ones.
pub(crate) fn together(series: &[Vec<Point>]) -> Together {
    let rounded = |(x, v): &Point| (x.round() as i64, v.filter(|v| v.is_finite()));
    let mut points: Vec<(i64, Option<f64>)> = series.iter().flatten().map(rounded).collect();
    // Stable, and quick on series that are in order already.
    points.sort_by_key(|(x, _)| *x);
    let mut out = Together::default();
    let mut values = Vec::new();
    for position in points.chunk_by(|a, b| a.0 == b.0) {
        let x = position[0].0 as f64;
        values.clear();
        values.extend(position.iter().filter_map(|(_, v)| *v));
        values.sort_by(f64::total_cmp);
        out.median.push((x, median(&values)));
        out.lowest.push((x, values.first().copied()));
        out.highest.push((x, values.last().copied()));
    }
    out
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extremes(points: &[Point]) -> (f64, f64) {
        let values = || points.iter().filter_map(|p| p.1);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    }

    #[test]
    fn reduction_keeps_extremes_order_and_size() {
        // A deterministic jumble with one dip and one peak, at every place in turn.
        for place in 0..97 {
            let points: Vec<Point> = (0..970)
                .map(|i| {
                    let value = 1000.0 + f64::from((i * 7919) % 101);
                    let value = match i {
                        _ if i == place * 10 => 1.0,
                        _ if i == 969 - place * 10 => 9_000.0,
                        _ => value,
                    };
                    (f64::from(i), Some(value))
                })
                .collect();
            let reduced = reduce(&points, 60);
            assert!(reduced.len() <= 60);
            assert_eq!(extremes(&reduced), extremes(&points));
            assert!(reduced.windows(2).all(|w| w[0].0 < w[1].0));
            assert!(reduced.iter().all(|p| points.contains(p)), "a point was invented");
        }
    }

    #[test]
    fn short_series_are_left_alone_and_long_gaps_stay_gaps() {
        let short = [(0.0, Some(1.0)), (1.0, None)];
        assert_eq!(reduce(&short, 10), short);
        let gap: Vec<Point> =
            (0..100).map(|i| (f64::from(i), (i < 50).then_some(f64::from(i)))).collect();
        let reduced = reduce(&gap, 20);
        assert!(reduced.iter().filter(|p| p.0 >= 50.0).all(|p| p.1.is_none()));
        assert!(reduced.iter().any(|p| p.1.is_none()));
    }

    #[test]
    fn medians_and_envelopes_join_on_position() {
        let a: Vec<Point> = vec![(0.02, Some(1.0)), (1.0, Some(5.0)), (2.0, None)];
        let b: Vec<Point> = vec![(0.0, Some(3.0)), (1.04, Some(9.0)), (2.0, None)];
        let c: Vec<Point> = vec![(1.0, Some(6.0))];
        let joined = together(&[a, b, c]);
        assert_eq!(joined.median, [(0.0, Some(2.0)), (1.0, Some(6.0)), (2.0, None)]);
        assert_eq!(joined.lowest, [(0.0, Some(1.0)), (1.0, Some(5.0)), (2.0, None)]);
        assert_eq!(joined.highest, [(0.0, Some(3.0)), (1.0, Some(9.0)), (2.0, None)]);
    }
}
