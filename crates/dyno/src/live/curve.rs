//! A small curve of the last minutes, in eighths of a character's height.

use std::collections::VecDeque;

/// Seconds.
const KEPT: usize = 300;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One value a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    values: VecDeque<f64>,
}

impl Curve {
    pub(crate) fn push(&mut self, value: f64) {
        if self.values.len() == KEPT {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    pub(crate) fn latest(&self) -> Option<f64> {
        self.values.back().copied()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.values.iter().all(|value| *value == 0.0)
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        let n = self.values.len();
        (n > 0).then(|| self.values.iter().sum::<f64>() / n as f64)
    }

    /// Growth per second over the latest `seconds`, by least squares; none below two values.
    pub(crate) fn slope(&self, seconds: usize) -> Option<f64> {
        let n = self.values.len().min(seconds);
        if n < 2 {
            return None;
        }
        let latest = self.values.iter().skip(self.values.len() - n);
        let middle = (n - 1) as f64 / 2.0;
        let products: f64 = latest.enumerate().map(|(t, v)| (t as f64 - middle) * v).sum();
        let squares: f64 = (0..n).map(|t| (t as f64 - middle).powi(2)).sum();
        Some(products / squares)
    }

    /// At most `width` characters from zero to the maximum; each is the mean of its seconds.
    pub(crate) fn drawn(&self, width: usize) -> String {
        let per_bar = self.values.len().div_ceil(width.max(1)).max(1);
        // The first character may cover fewer seconds, so that the latest is whole.
        let first = self.values.len() % per_bar;
        let values: Vec<f64> = self.values.iter().copied().collect();
        let (head, tail) = values.split_at(first);
        let chunks = (!head.is_empty()).then_some(head).into_iter().chain(tail.chunks(per_bar));
        let means: Vec<f64> =
            chunks.map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect();
        let top = means.iter().copied().fold(0.0, f64::max);
        let bar = |value: f64| match top > 0.0 {
            true => BARS[((value.max(0.0) / top * 7.0).round() as usize).min(7)],
            false => BARS[0],
        };
        means.into_iter().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Curve {
        let mut curve = Curve::default();
        values.iter().for_each(|value| curve.push(*value));
        curve
    }

    #[test]
    fn a_curve_goes_from_zero_to_its_top() {
        let check = |values: &[f64], width: usize, expected: &str| {
            assert_eq!(curve(values).drawn(width), expected, "{values:?}");
        };
        check(&[], 5, "");
        check(&[0.0, 0.0], 5, "▁▁");
        check(&[0.0, 1.0, 2.0, 7.0], 5, "▁▂▃█");
        check(&[-1.0, 5.0], 5, "▁█");
        check(&[1.0, 1.0, 7.0, 7.0], 2, "▂█");
        check(&[7.0, 1.0, 1.0, 7.0, 7.0], 3, "█▂█");
    }

    #[test]
    fn a_slope_is_of_the_latest_values() {
        let check = |values: &[f64], seconds: usize, expected: Option<f64>| {
            assert_eq!(curve(values).slope(seconds), expected, "{values:?}");
        };
        check(&[], 5, None);
        check(&[1.0], 5, None);
        check(&[1.0, 3.0], 5, Some(2.0));
        check(&[9.0, 9.0, 1.0, 2.0, 3.0], 3, Some(1.0));
        check(&[4.0, 4.0, 4.0], 5, Some(0.0));
    }

    #[test]
    fn old_values_go() {
        let mut long = Curve::default();
        (0..1000).for_each(|n| long.push(f64::from(n)));
        assert_eq!((long.values.len(), long.latest()), (KEPT, Some(999.0)));
        assert_eq!(curve(&[1.0, 3.0]).mean(), Some(2.0));
        assert_eq!(curve(&[]).mean(), None);
    }
}
