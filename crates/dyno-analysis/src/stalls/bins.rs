//! Commits in bins of 100 ms.

use dyno_record::{KindSummary, StepSummary};

pub(crate) const BIN_S: f64 = 0.1;

/// All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bins {
    /// Since the measurement phase began.
    pub(crate) start_s: Vec<f64>,
    /// 0.1 s; less for the last one of an interval that is no whole number of bins.
    pub(crate) width_s: Vec<f64>,
    pub(crate) counts: Vec<f64>,
}

impl Bins {
    /// All kinds together; `None` if a kind has none, or they do not fit the intervals.
    pub(crate) fn of(summary: &StepSummary) -> Option<Bins> {
        let mut total = Bins::empty(summary);
        for kind in &summary.kinds {
            total.add(kind)?;
        }
        (!summary.kinds.is_empty()).then_some(total)
    }

    /// One at a time, as all take as much memory as there are kinds.
    pub(crate) fn of_kind(summary: &StepSummary, kind: &KindSummary) -> Option<Bins> {
        let mut bins = Bins::empty(summary);
        bins.add(kind)?;
        Some(bins)
    }

    fn empty(summary: &StepSummary) -> Bins {
        let (start_s, width_s) = times(&summary.intervals.start_s, summary.measured_s);
        let counts = vec![0.0; start_s.len()];
        Bins { start_s, width_s, counts }
    }

    fn add(&mut self, kind: &KindSummary) -> Option<()> {
        let counts = kind.commits_100ms.as_ref()?.decode()?;
        self.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += f64::from(count));
        Some(())
    }

    #[cfg(test)]
    pub(crate) fn new(start_s: &[f64], width_s: &[f64], counts: Vec<f64>) -> Bins {
        Bins { start_s: start_s.to_vec(), width_s: width_s.to_vec(), counts }
    }

    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(crate) fn end_s(&self, idx: usize) -> f64 {
        self.start_s[idx] + self.width_s[idx]
    }

    /// Drops an incomplete last group.
    pub(crate) fn grouped(&self, n: usize) -> Bins {
        let sums = |column: &[f64]| column.chunks_exact(n).map(|c| c.iter().sum()).collect();
        Bins {
            start_s: self.start_s.chunks_exact(n).map(|chunk| chunk[0]).collect(),
            width_s: sums(&self.width_s),
            counts: sums(&self.counts),
        }
    }

    /// Partial bins count by their share.
    pub(crate) fn between(&self, from_s: f64, to_s: f64) -> f64 {
        let first = self.start_s.partition_point(|start| start + BIN_S < from_s);
        let mut sum = 0.0;
        for idx in first..self.len() {
            if self.start_s[idx] >= to_s {
                break;
            }
            let inside = self.end_s(idx).min(to_s) - self.start_s[idx].max(from_s);
            sum += self.counts[idx] * (inside / self.width_s[idx]).clamp(0.0, 1.0);
        }
        sum
    }
}

/// Ten bins for each whole interval. Each interval has its own, so that a shorter one (the last of
/// the warm-up) does not shift later ones.
fn times(interval_starts: &[f64], measured_s: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut starts, mut widths) = (Vec::new(), Vec::new());
    for (idx, &start) in interval_starts.iter().enumerate() {
        let end = interval_starts.get(idx + 1).copied().unwrap_or(measured_s.min(start + 1.0));
        // Times are in milliseconds: a smaller remainder is no bin.
        let n = ((end - start) / BIN_S - 0.02).ceil().clamp(0.0, 10.0) as usize;
        for bin in 0..n {
            let begin = start + bin as f64 * BIN_S;
            starts.push(begin);
            widths.push((end - begin).min(BIN_S));
        }
    }
    (starts, widths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_intervals_have_ten_bins_and_shorter_ones_fewer() {
        let (starts, widths) = times(&[-1.25, -0.25, 0.0, 1.0], 1.34);
        assert_eq!(starts.len(), 10 + 3 + 10 + 4);
        assert!((starts[10] + 0.25).abs() < 1e-9 && starts[13] == 0.0, "{starts:?}");
        assert!((widths[12] - 0.05).abs() < 1e-9 && (widths[26] - 0.04).abs() < 1e-9);
        // Jitter of milliseconds makes no bin.
        assert_eq!(times(&[0.0, 1.001], 1.001).0.len(), 10);
    }

    #[test]
    fn counts_between_two_times() {
        let bins = Bins::new(&[0.0, 0.1, 0.2], &[0.1; 3], vec![10.0, 20.0, 30.0]);
        assert!((bins.between(0.05, 0.2) - 25.0).abs() < 1e-9);
        assert!((bins.between(-1.0, 9.0) - 60.0).abs() < 1e-9);
        assert!(bins.between(0.3, 0.4) < 1e-9);
    }
}
