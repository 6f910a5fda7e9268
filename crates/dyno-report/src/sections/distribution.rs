//! Whole distributions of response times by kind of transaction, repetitions merged, out of the
//! trials' histograms.

use std::collections::BTreeMap;

use dyno_analysis::Findings;
use dyno_record::Run;

use crate::chart::lines::nines;
use crate::chart::reduce::Point;
use crate::findings_index::FindingsIndex;

/// Times in nanoseconds and how often.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    counts: BTreeMap<u64, u64>,
    n: u64,
}

impl Distribution {
    pub(crate) fn add(&mut self, ns: u64, n: u64) {
        *self.counts.entry(ns).or_default() += n;
        self.n += n;
    }

    pub(crate) fn merge(&mut self, other: &Distribution) {
        other.counts.iter().for_each(|(ns, n)| self.add(*ns, *n));
    }

    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    pub(crate) fn mean_us(&self) -> Option<f64> {
        let sum: f64 = self.counts.iter().map(|(ns, n)| *ns as f64 * *n as f64).sum();
        (self.n > 0).then(|| sum / self.n as f64 / 1000.0)
    }

    /// The time in microseconds that this share did not exceed; none where there is nothing.
    pub(crate) fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let mut so_far = 0;
        let mut reaches = |n: &u64| {
            so_far += n;
            so_far as f64 >= quantile * self.n as f64
        };
        self.counts.iter().find(|(_, n)| reaches(n)).map(|(ns, _)| *ns as f64 / 1000.0)
    }

    /// Quantiles and their times in microseconds, as findings have them: at most one for each time
    /// that was recorded, the longest last.
    pub(crate) fn spectrum(&self) -> Vec<(f64, f64)> {
        let mut so_far = 0;
        let mut out = Vec::new();
        for (ns, n) in &self.counts {
            out.push((so_far as f64 / self.n as f64, *ns as f64 / 1000.0));
            so_far += n;
        }
        out.extend(self.counts.keys().next_back().map(|ns| (1.0, *ns as f64 / 1000.0)));
        out
    }

    /// Times in microseconds at places of the axis of nines that are [`APART`] from each other, from
    /// the smallest on, as far as at least one observation lies beyond.
    fn trace(&self) -> Vec<f64> {
        let n = self.n as f64;
        let (mut out, mut so_far) = (Vec::new(), 0);
        for (ns, count) in &self.counts {
            so_far += count;
            loop {
                let beyond = 10_f64.powf(-(out.len() as f64) * APART);
                if beyond * n < 1.0 || (so_far as f64) < (1.0 - beyond) * n {
                    break;
                }
                out.push(*ns as f64 / 1000.0);
            }
        }
        out
    }

    /// Shares in percent by the logarithm to base 10 of the microseconds, as stairs: both edges of
    /// each bucket, which is the fourth part of a doubling wide. Empty buckets between others are
    /// zero.
    pub(crate) fn shares(&self) -> Vec<Point> {
        let mut buckets: BTreeMap<i64, u64> = BTreeMap::new();
        for (ns, n) in &self.counts {
            let bucket = ((*ns).max(1) as f64).log2() * PER_DOUBLING;
            *buckets.entry(bucket as i64).or_default() += n;
        }
        let (Some((first, _)), Some((last, _))) =
            (buckets.first_key_value(), buckets.last_key_value())
        else {
            return Vec::new();
        };
        let share = |b: i64| buckets.get(&b).map_or(0.0, |n| *n as f64 / self.n as f64 * 100.0);
        let place = |b: i64| (b as f64 / PER_DOUBLING * 2_f64.log10()) - 3.0;
        let edges = |b: i64| [(place(b), Some(share(b))), (place(b + 1), Some(share(b)))];
        (first - 1..=last + 1).flat_map(edges).collect()
    }
}

/// Buckets of a drawn histogram for each doubling.
const PER_DOUBLING: f64 = 4.0;

/// Nines between the points of a band.
const APART: f64 = 0.1;

/// Distributions of all repetitions together, and how far apart repetitions are.
#[derive(Default)]
pub(crate) struct Distributions {
    /// By step, kind of transaction and variant.
    pub(crate) merged: BTreeMap<(usize, String, usize), Distribution>,
    /// Of each trial, all kinds together, by step and variant.
    traces: BTreeMap<(usize, usize), Vec<Vec<f64>>>,
}

impl Distributions {
    /// The smallest and the largest repetition of a variant at a step, on the axis of nines, as far
    /// as each has observations; none of a single one.
    pub(crate) fn band(&self, step: usize, variant: usize) -> Option<(Vec<Point>, Vec<Point>)> {
        let traces = self.traces.get(&(step, variant)).filter(|traces| traces.len() > 1)?;
        let n = traces.iter().map(Vec::len).min().filter(|n| *n > 1)?;
        let across = |pick: fn(f64, f64) -> f64| -> Vec<Point> {
            let at = |i: usize| traces.iter().map(|trace| trace[i]).reduce(pick);
            (0..n).map(|i| (i as f64 * APART, at(i))).collect()
        };
        Some((across(f64::min), across(f64::max)))
    }
}

pub(crate) fn gather(findings: &Findings, runs: &[Run]) -> Distributions {
    let mut found = Distributions::default();
    for (_, _, (variant, at), step) in FindingsIndex::new(findings, runs).steps(runs) {
        let mut own = Distribution::default();
        for kind in &step.kinds {
            let key = (at, kind.name.clone(), variant);
            let all = found.merged.entry(key).or_default();
            // The reader has refused records whose histograms cannot be decoded.
            let _ = kind.response.walk(&mut |ns, n| {
                all.add(ns, n);
                own.add(ns, n);
            });
        }
        if own.n > 0 {
            found.traces.entry((at, variant)).or_default().push(own.trace());
        }
    }
    found.merged.retain(|_, distribution| distribution.n > 0);
    found
}

/// A spectrum on the axis of nines, with about so many points. The longest time, which has no place
/// there, is put behind the last quantile by `gap`.
pub(crate) fn on_nines(spectrum: &[(f64, f64)], n_points: usize, gap: f64) -> Vec<Point> {
    let finite: Vec<Point> = spectrum
        .iter()
        .filter(|(q, us)| (0.0..1.0).contains(q) && us.is_finite() && *us > 0.0)
        .map(|(q, us)| (nines(*q), Some(*us)))
        .collect();
    let Some(last) = finite.last().map(|p| p.0) else { return Vec::new() };
    let mut out: Vec<Point> = Vec::with_capacity(n_points + 2);
    let apart = last / n_points as f64;
    for point in &finite {
        if out.last().is_none_or(|before| point.0 - before.0 >= apart) {
            out.push(*point);
        }
    }
    let longest = spectrum.iter().filter(|(q, _)| *q >= 1.0).map(|(_, us)| *us).reduce(f64::max);
    let longest = longest.or(finite.last().and_then(|p| p.1));
    out.extend(longest.filter(|us| *us > 0.0).map(|us| (last + gap, Some(us))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_is_kept_and_points_are_few() {
        let spectrum: Vec<(f64, f64)> =
            (0..=1000).map(|i| (f64::from(i) / 1000.0, 100.0 + f64::from(i))).collect();
        let points = on_nines(&spectrum, 140, 0.3);
        assert!(points.len() <= 142, "{}", points.len());
        assert_eq!(points[0], (0.0, Some(100.0)));
        assert_eq!(points.last().unwrap().1, Some(1100.0));
        assert!(points.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(on_nines(&[], 140, 0.3).is_empty());
    }

    #[test]
    fn a_band_goes_from_the_smallest_to_the_largest_repetition() {
        let of = |times: &[(u64, u64)]| {
            let mut all = Distribution::default();
            times.iter().for_each(|(ns, n)| all.add(*ns, *n));
            all.trace()
        };
        // Ten observations reach one nine, a hundred reach two.
        let (few, many) = (of(&[(1000, 5), (3000, 5)]), of(&[(2000, 89), (9000, 11)]));
        assert_eq!((few.len(), many.len()), (11, 21));
        assert_eq!((few[0], few[10], many[0], many[10]), (1.0, 3.0, 2.0, 9.0));
        let mut all = Distributions::default();
        all.traces.insert((0, 0), vec![few.clone(), many]);
        all.traces.insert((0, 1), vec![few]);
        let (low, high) = all.band(0, 0).unwrap();
        assert_eq!((low.len(), high.len()), (11, 11));
        assert_eq!((low[0].1, high[0].1), (Some(1.0), Some(2.0)));
        assert_eq!((low[10], high[10]), ((1.0, Some(3.0)), (1.0, Some(9.0))));
        assert!(all.band(0, 1).is_none() && all.band(1, 0).is_none());
    }

    #[test]
    fn a_distribution_tells_its_quantiles_and_its_shares() {
        let mut all = Distribution::default();
        all.add(1024, 3);
        let mut more = Distribution::default();
        more.add(4096, 1);
        all.merge(&more);
        assert_eq!(all.spectrum(), [(0.0, 1.024), (0.75, 4.096), (1.0, 4.096)]);
        let shares = all.shares();
        // Eight quarters of doublings apart, and an empty one at either end; two edges of each.
        assert_eq!(shares.len(), 22);
        let values: Vec<f64> = shares.iter().filter_map(|p| p.1).filter(|v| *v > 0.0).collect();
        assert_eq!(values, [75.0, 75.0, 25.0, 25.0]);
        assert!((shares[2].0 - 1.024_f64.log10()).abs() < 1e-9, "its lower edge");
        assert!((shares[3].0 - (1.024 * 2_f64.powf(0.25)).log10()).abs() < 1e-9, "its upper edge");
        assert!(Distribution::default().shares().is_empty());
    }
}
