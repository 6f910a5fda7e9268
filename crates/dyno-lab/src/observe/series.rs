//! Readings of a step as series, aligned with its intervals.

use std::collections::BTreeMap;

use dyno_units::Nanoseconds;

use super::Sample;

/// Start and length.
pub type Span = (Nanoseconds, Nanoseconds);

/// All readings so far, by name; each name is of one source, and so in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    columns: BTreeMap<String, Vec<(Nanoseconds, f64)>>,
}

impl Series {
    pub fn push(&mut self, sample: Sample) {
        for (name, value) in sample.values {
            // Looked up first, because a name that is there already needs no copy.
            match self.columns.get_mut(&name) {
                Some(column) => column.push((sample.at, value)),
                None => {
                    self.columns.insert(name, vec![(sample.at, value)]);
                }
            }
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.columns.keys()
    }

    pub fn column(&self, name: &str) -> &[(Nanoseconds, f64)] {
        self.columns.get(name).map_or(&[], Vec::as_slice)
    }

    /// `intervals` are start and length, in order, on the readings' clock. An interval gets the
    /// reading nearest to its end, if it is less than half the interval's length away. Values keep
    /// six significant digits.
    pub fn align(&self, intervals: &[Span]) -> BTreeMap<String, Vec<Option<f64>>> {
        let aligned = self.columns.iter().map(|(name, column)| {
            let values: Vec<_> = intervals.iter().map(|span| nearest(column, *span)).collect();
            (name.clone(), values)
        });
        aligned.filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    }
}

fn nearest(column: &[(Nanoseconds, f64)], (start, length): Span) -> Option<f64> {
    let end = start + length;
    let distance = |at: Nanoseconds| at.saturating_sub(end).0 + end.saturating_sub(at).0;
    let after = column.partition_point(|(at, _)| *at < end);
    let around = &column[after.saturating_sub(1)..column.len().min(after + 1)];
    let (at, value) = around.iter().min_by_key(|(at, _)| distance(*at))?;
    (distance(*at) * 2 < length.0).then(|| six_digits(*value))
}

/// Rounds to six significant digits, so that a record of many hours stays small.
pub fn six_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    // Powers of ten with positive exponents are exact, those with negative ones are not.
    let digits = value.abs().log10().floor() as i32 - 5;
    let power = 10_f64.powi(digits.abs());
    let rounded =
        if digits > 0 { (value / power).round() * power } else { (value * power).round() / power };
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_kept() {
        let check = |value: f64, expected: f64| assert_eq!(six_digits(value), expected);
        check(123_456_789.0, 123_457_000.0);
        check(0.000_123_456_78, 0.000_123_457);
        check(-2.5, -2.5);
        check(0.0, 0.0);
        check(1.234_567_8e15, 1.234_57e15);
        check(f64::MIN_POSITIVE, f64::MIN_POSITIVE);
    }

    fn sample(source: usize, at: Nanoseconds, name: &str, value: f64) -> Sample {
        Sample { at, source, values: BTreeMap::from([(name.to_owned(), value)]) }
    }

    #[test]
    fn a_sample_belongs_to_the_interval_it_ends() {
        let s = Nanoseconds::from_secs;
        let late = Nanoseconds::from_millis(30);
        let mut series = Series::default();
        series.push(sample(0, s(10), "x", 0.0));
        series.push(sample(0, s(11) + late, "x", 1.0));
        series.push(sample(0, s(13), "x", 3.0));
        series.push(sample(0, s(13) + Nanoseconds::from_millis(450), "x", 4.0));
        let second = |start: u64| (s(start), s(1));
        let short = (s(13), Nanoseconds::from_millis(400));
        let columns = series.align(&[second(10), second(11), second(12), short]);
        assert_eq!(columns["x"], [Some(1.0), None, Some(3.0), Some(4.0)]);
        assert_eq!(series.column("x").len(), 4);
    }

    #[test]
    fn a_late_source_takes_nothing_from_the_others() {
        let s = Nanoseconds::from_secs;
        let mut series = Series::default();
        for at in 1..5 {
            series.push(sample(0, s(at), "quick", at as f64));
        }
        series.push(sample(1, s(3) + Nanoseconds::from_millis(100), "slow", 7.0));
        series.push(sample(1, s(90), "never", 7.0));
        let spans: Vec<_> = (0..4).map(|start| (s(start), s(1))).collect();
        let columns = series.align(&spans);
        assert_eq!(columns["quick"], [1.0, 2.0, 3.0, 4.0].map(Some));
        assert_eq!(columns["slow"], [None, None, Some(7.0), None]);
        assert!(!columns.contains_key("never"));
    }
}
