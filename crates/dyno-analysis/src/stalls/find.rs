//! Finds gaps and dips in a series of counts. Each bin is explained by the level around it, or by a
//! quarter of it. The sum of the log likelihood ratios rises during a stall and falls after it
//! (Page 1954; Lorden 1971). Of several widths of bins the one with the shortest detectable stall
//! is taken, so rare transactions get wider bins.

use crate::statistics::{median, robust_deviation};

use super::bins::Bins;

/// The level of a stall, relative to that around it.
const SHARE: f64 = 0.25;
/// Of a false alarm in a series.
const ALPHA: f64 = 0.01;
/// Bins of 100 ms that make up one.
const GROUPS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];
const BINS_LEAST: usize = 20;
/// Bins with one level, their median.
const BLOCK: usize = 100;
/// Levels to either side, whose median is the level around a bin.
const BLOCKS_ASIDE: usize = 3;
/// Share of the time; what lasts longer is a level, unless nothing is left.
const LASTING: f64 = 1.0 / 3.0;
const SHORTEST_S: f64 = 0.2;
/// Empty bins in a row that make a gap, whatever the spread, if a bin ordinarily has commits.
const EMPTY_BINS: usize = 5;
const EMPTY_OF: f64 = 10.0;
/// Share of the level up to which a bin is empty.
const EMPTY_SHARE: f64 = 0.01;
/// A long gap is never a level: from so many seconds on …
const LONG_GAP_S: f64 = 2.0;
/// … with so many expected commits, by the rest of the series …
const LONG_GAP_MISSING: f64 = 30.0;
/// … and this multiple of the usual time between commits.
const LONG_GAP_TIMES: f64 = 5.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    pub(super) missing: f64,
    /// Per second.
    pub(super) level: f64,
    pub(super) is_gap: bool,
    pub(super) bin_s: f64,
}

struct Series {
    bins: Bins,
    /// At the level around each bin.
    expected: Vec<f64>,
    /// Variance of ordinary counts over their mean, at least 1.
    spread: f64,
    /// With memory: for the variance of a sum.
    dispersion: f64,
    /// Sum of scores for a stall.
    limit: f64,
}

/// In the order of time.
pub(super) fn find(bins: &Bins) -> Vec<Found> {
    let mut best: Option<(f64, Series)> = None;
    for n in GROUPS {
        if bins.len() / n < BINS_LEAST {
            break;
        }
        let Some(series) = Series::new(bins.grouped(n)) else { continue };
        let shortest = series.shortest_gap_s();
        if best.as_ref().is_none_or(|(least, _)| shortest < least - 1e-9) {
            best = Some((shortest, series));
        }
        // A wider bin cannot show a shorter one.
        if best.as_ref().is_some_and(|(least, _)| *least <= n as f64 * 0.1 + 1e-9) {
            break;
        }
    }
    let mut found = best.map(|(_, series)| series.stalls()).unwrap_or_default();
    add_empty(bins, &mut found);
    found
}

/// For all kinds together: also gaps that last longer than a third of the time, or make up more
/// than half of it. (A single kind may have done all its work.)
pub(super) fn find_in_total(bins: &Bins) -> Vec<Found> {
    let mut found = find(bins);
    let busy: Vec<f64> = bins.counts.iter().copied().filter(|count| *count > 0.0).collect();
    if busy.is_empty() {
        return found;
    }
    let most = EMPTY_SHARE * median(&busy);
    let runs = empty_runs(&bins.counts, most);
    let lengths: Vec<f64> = runs.iter().map(|run| run.len() as f64).collect();
    for (nth, run) in runs.iter().enumerate() {
        let (start_s, end_s) = (bins.start_s[run.start], bins.end_s(run.end - 1));
        let length = end_s - start_s;
        // Most runs are short, and the rest goes over all bins.
        if length < LONG_GAP_S {
            continue;
        }
        let mut others = lengths.clone();
        others.remove(nth);
        let usual = if others.is_empty() { 0.0 } else { median(&others) };
        let outside =
            |column: &[f64]| -> f64 { column[..run.start].iter().chain(&column[run.end..]).sum() };
        let level = outside(&bins.counts) / outside(&bins.width_s).max(f64::MIN_POSITIVE);
        let is_gap = level * length >= LONG_GAP_MISSING
            && run.len() as f64 >= LONG_GAP_TIMES * usual
            && !found.iter().any(|one| one.start_s < end_s && start_s < one.end_s);
        if is_gap {
            let bin_s = (bins.width_s[run.start] * 1e3).round() / 1e3;
            found.push(Found { start_s, end_s, missing: level * length, level, is_gap, bin_s });
        }
    }
    found.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    found
}

fn empty_runs(counts: &[f64], most: f64) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (idx, count) in counts.iter().enumerate() {
        if *count > most {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == idx => run.end += 1,
            _ => runs.push(idx..idx + 1),
        }
    }
    runs
}

/// Adds runs of empty bins outside of stalls: counts that swing never leave nothing.
fn add_empty(bins: &Bins, found: &mut Vec<Found>) {
    if bins.len() < BINS_LEAST {
        return;
    }
    let Some(series) = Series::new(bins.clone()) else { return };
    if median(&series.expected) < EMPTY_OF {
        return;
    }
    let is_empty = |idx: &usize| bins.counts[*idx] <= EMPTY_SHARE * series.expected[*idx];
    let mut idx = 0;
    while idx < bins.len() {
        let n = (idx..bins.len()).take_while(is_empty).count();
        if n >= EMPTY_BINS {
            // It began and ended within the neighbouring bins.
            let (first, last) = (idx.saturating_sub(1), (idx + n).min(bins.len() - 1));
            let overlaps =
                |one: &Found| one.start_s < bins.end_s(last) && bins.start_s[first] < one.end_s;
            if !found.iter().any(overlaps) {
                found.extend(series.stall(first, last));
            }
        }
        idx += n + 1;
    }
    found.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
}

impl Series {
    /// `None` if more than half of the bins are empty: there is no level.
    fn new(bins: Bins) -> Option<Series> {
        let expected = levels(&bins);
        let typical = median(&expected);
        if typical <= 0.0 {
            return None;
        }
        let residuals: Vec<f64> =
            bins.counts.iter().zip(&expected).map(|(count, level)| count - level).collect();
        let deviation = robust_deviation(&residuals, 0.0);
        let memory = memory(&residuals, deviation.max(typical.sqrt()));
        let spread = (deviation * deviation / typical).max(1.0);
        let dispersion = spread * (1.0 + memory) / (1.0 - memory);
        let limit = (bins.len() as f64 / ALPHA).ln();
        Some(Series { bins, expected, spread, dispersion, limit })
    }

    fn shortest_gap_s(&self) -> f64 {
        let each = (1.0 - SHARE) * median(&self.expected) / self.dispersion;
        (self.limit / each).ceil() * self.bins.width_s.first().copied().unwrap_or(0.1)
    }

    /// Log likelihood ratio (Poisson), reduced for a larger spread.
    fn score(&self, idx: usize) -> f64 {
        let (count, level) = (self.bins.counts[idx], self.expected[idx]);
        (count * SHARE.ln() + (1.0 - SHARE) * level) / self.dispersion
    }

    fn stalls(&self) -> Vec<Found> {
        let mut stalls = Vec::new();
        let (mut sum, mut first, mut most, mut last) = (0.0_f64, 0, 0.0_f64, 0);
        let mut idx = 0;
        while idx < self.bins.len() {
            if sum <= 0.0 {
                (sum, first, most, last) = (0.0, idx, 0.0, idx);
            }
            sum += self.score(idx);
            if sum > most {
                (most, last) = (sum, idx);
            }
            let is_over = sum <= 0.0 || most - sum >= self.limit || idx + 1 == self.bins.len();
            if is_over && most >= self.limit {
                stalls.extend(self.stall(first, last));
                // After its last bin the search begins anew.
                idx = last;
                sum = 0.0;
            }
            idx += 1;
        }
        stalls
    }

    fn stall(&self, first: usize, last: usize) -> Option<Found> {
        let sum = |column: &[f64]| -> f64 { column[first..=last].iter().sum() };
        let (done, expected) = (sum(&self.bins.counts), sum(&self.expected));
        let inner = first + 1..last;
        let rest: f64 = match inner.is_empty() {
            true => 0.0,
            false => {
                let level: f64 = self.expected[inner.clone()].iter().sum();
                self.bins.counts[inner].iter().sum::<f64>() / level.max(1.0)
            }
        };
        let start_s = self.begin(first, rest);
        let end_s = self.end(last, rest);
        let whole = self.bins.end_s(self.bins.len() - 1) - self.bins.start_s[0];
        let length = end_s - start_s;
        let is_stall = done < 0.5 * expected
            && length <= LASTING * whole
            && length >= SHORTEST_S.max(self.bins.width_s[first]) - 0.05;
        let level = expected / sum(&self.bins.width_s);
        is_stall.then(|| Found {
            start_s,
            end_s,
            missing: (level * length * (1.0 - rest)).max(expected - done),
            level,
            is_gap: rest < 0.01,
            bin_s: (self.bins.width_s[first] * 1e3).round() / 1e3,
        })
    }

    /// Two standard deviations.
    fn chance(&self, idx: usize) -> f64 {
        2.0 * (self.spread * self.expected[idx]).sqrt()
    }

    /// Missing share of a bin, of what a stall takes that leaves the share `rest`.
    fn missing_share(&self, idx: usize, ordinary: f64, rest: f64) -> f64 {
        let missing = (ordinary - self.bins.counts[idx]) / ordinary.max(f64::MIN_POSITIVE);
        (missing / (1.0 - rest).max(0.1)).clamp(0.0, 1.0)
    }

    fn begin(&self, first: usize, rest: f64) -> f64 {
        let share = self.missing_share(first, self.expected[first], rest);
        let mut start = self.bins.end_s(first) - share * self.bins.width_s[first];
        let before = first.checked_sub(1).filter(|_| share > 0.9);
        if let Some(before) = before.filter(|&b| self.is_short_of(b)) {
            let share = self.missing_share(before, self.expected[before], rest);
            start -= share * self.bins.width_s[before];
        }
        start
    }

    /// Counts in the last bin and the next are from after the end. Waiting work may be done faster
    /// than usual, as the next bin shows.
    fn end(&self, last: usize, rest: f64) -> f64 {
        let rate_behind = |idx: usize| {
            let level = self.expected[idx.min(self.bins.len() - 1)];
            let next = self.bins.counts.get(idx + 1).copied().unwrap_or(level);
            if next > level + self.chance(idx) { next } else { level }
        };
        let share = self.missing_share(last, rate_behind(last), rest);
        let mut end = self.bins.start_s[last] + share * self.bins.width_s[last];
        let behind = last + 1;
        if share > 0.9 && behind < self.bins.len() {
            let ordinary = rate_behind(behind);
            let (count, level) = (self.bins.counts[behind], self.expected[behind]);
            let is_burst = count > level + self.chance(behind);
            let share = match () {
                () if ordinary > level => self.missing_share(behind, ordinary, rest),
                // All waiting work was done in this bin, at an unknown time.
                () if is_burst => 0.5,
                () if self.is_short_of(behind) => self.missing_share(behind, level, rest),
                () => 0.0,
            };
            end += share * self.bins.width_s[behind];
        }
        end
    }

    fn is_short_of(&self, idx: usize) -> bool {
        self.expected[idx] - self.bins.counts[idx] > self.chance(idx)
    }
}

/// Commits at the level around each bin: median of nearby blocks' medians, or of all if that is
/// almost nothing. Shorter bins get less.
fn levels(bins: &Bins) -> Vec<f64> {
    let width = median(&bins.width_s);
    let of_all = median(&bins.counts);
    let blocks: Vec<f64> = bins.counts.chunks(BLOCK).map(median).collect();
    let around = |block: usize| {
        let (from, to) = (block.saturating_sub(BLOCKS_ASIDE), block + BLOCKS_ASIDE + 1);
        // The last block may have few bins.
        let level = match blocks.len() {
            0..=4 => of_all,
            n => median(&blocks[from.min(n - 1)..to.min(n)]),
        };
        if level >= 0.1 * of_all { level } else { of_all }
    };
    let smooth: Vec<f64> = (0..blocks.len()).map(around).collect();
    let scaled = |(idx, own): (usize, &f64)| smooth[idx / BLOCK] * own / width;
    bins.width_s.iter().enumerate().map(scaled).collect()
}

/// Correlation of neighbours, from 0 to 0.8; stalls, as outliers, do not count as memory.
fn memory(residuals: &[f64], deviation: f64) -> f64 {
    let most = 3.0 * deviation.max(f64::MIN_POSITIVE);
    let ordinary = |r: &f64| if r.abs() <= most { *r } else { 0.0 };
    let cut: Vec<f64> = residuals.iter().map(ordinary).collect();
    crate::time::autocorrelation(&cut, 1).clamp(0.0, 0.8)
}
