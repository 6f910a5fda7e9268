//! sysbench's histogram of latencies: 1024 buckets on a logarithmic scale, whose rounding its percentiles
//! have.

use std::fmt::Write;

pub const BUCKETS: usize = 1024;
/// Its limits in milliseconds.
const LIMITS: (f64, f64) = (0.001, 100_000.0);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    size: usize,
    deduct: f64,
    factor: f64,
}

impl Scale {
    fn new(size: usize, min: f64, max: f64) -> Scale {
        let deduct = min.ln();
        Scale { size, deduct, factor: (size - 1) as f64 / (max.ln() - deduct) }
    }

    fn bucket(&self, value: f64) -> usize {
        let place = ((value.ln() - self.deduct) * self.factor + 0.5).floor();
        // A latency of zero has a logarithm of minus infinity.
        place.clamp(0.0, (self.size - 1) as f64) as usize
    }

    fn value(&self, bucket: usize) -> f64 {
        (bucket as f64 / self.factor + self.deduct).exp()
    }
}

pub fn bucket_of(ms: f64) -> usize {
    Scale::new(BUCKETS, LIMITS.0, LIMITS.1).bucket(ms)
}

#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    scale: Scale,
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new(BUCKETS, LIMITS.0, LIMITS.1)
    }
}

impl Histogram {
    /// An empty one of this many buckets, at least two, between these values.
    pub fn new(size: usize, min: f64, max: f64) -> Histogram {
        let size = size.clamp(2, 1 << 20);
        Histogram { scale: Scale::new(size, min, max), counts: vec![0; size] }
    }

    pub fn size(&self) -> usize {
        self.counts.len()
    }

    pub fn update(&mut self, value: f64) {
        self.counts[self.scale.bucket(value)] += 1;
    }

    pub fn add(&mut self, bucket: usize, n: u64) {
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += n;
        }
    }

    #[must_use]
    pub fn since(&self, before: &Histogram) -> Histogram {
        let pairs = self.counts.iter().zip(&before.counts);
        let counts = pairs.map(|(now, then)| now.saturating_sub(*then)).collect();
        Histogram { scale: self.scale, counts }
    }

    /// The value of this percentile; 0 if nothing was counted.
    pub fn percentile(&self, percent: f64) -> f64 {
        let n: u64 = self.counts.iter().sum();
        if n == 0 {
            return 0.0;
        }
        let rank = ((n as f64 * percent / 100.0 + 0.5).floor() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        self.scale.value(found.unwrap_or(self.counts.len() - 1))
    }

    /// As sysbench prints it; empty if nothing was counted.
    pub fn text(&self) -> String {
        let most = self.counts.iter().copied().max().unwrap_or(0);
        let mut out = String::new();
        if most == 0 {
            return out;
        }
        out.push_str("       value  ------------- distribution ------------- count\n");
        for (bucket, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let width = (count as f64 * 40.0 / most as f64 + 0.5).floor() as usize;
            let stars = "*".repeat(width);
            let value = self.scale.value(bucket);
            // Writing into a String cannot fail.
            let _ = writeln!(out, "{value:12.3} |{stars:<40} {count}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_buckets() {
        let mut histogram = Histogram::default();
        for ms in [1.0, 2.0, 2.29, 12.7] {
            histogram.add(bucket_of(ms), 1);
        }
        let shown = |percent| format!("{:.2}", histogram.percentile(percent));
        assert_eq!((shown(95.0), shown(50.0)), ("12.75".to_owned(), "2.00".to_owned()));
        assert_eq!(Histogram::default().percentile(95.0), 0.0);
        assert_eq!(bucket_of(0.0), 0);
        assert_eq!(bucket_of(1e9), BUCKETS - 1);
    }

    #[test]
    fn a_histogram_is_printed_in_the_tools_format() {
        let mut histogram = Histogram::default();
        histogram.add(bucket_of(1.0), 4);
        histogram.add(bucket_of(5.0), 1);
        let stars = "*".repeat(40);
        let expected = format!(
            "       value  ------------- distribution ------------- count\n       1.007 |{stars} 4\n       \
             4.999 |**********                               1\n"
        );
        assert_eq!(histogram.text(), expected);
        assert_eq!(histogram.since(&histogram).text(), "");
    }
}
