//! How renderers write numbers, lengths of time and dates.
//!
//! The style of numbers is [`dyno_analysis::numbers`]: one place for the answer's sentences and for all
//! renderers, so that a number looks the same in the headline, in a table, in a chart, in the terminal
//! and in a pull request.

pub(crate) use dyno_analysis::numbers::{
    Unit, as_ratio, bounds, grouped, interval, p_value, range, value, with_ci as with_bounds,
};

use dyno_analysis::Estimate;
use dyno_analysis::numbers::{self, significant};

/// As numbers write it.
const NO_SPREAD: &str = "(no spread)";

/// A value and what stands in brackets behind it: its interval, or that repetitions are all equal.
pub(crate) fn value_and_spread(estimate: &Estimate) -> (String, String) {
    let (value, spread) = numbers::value_and_spread(estimate);
    match estimate.n {
        2 if spread == NO_SPREAD => (value, "(both equal)".to_owned()),
        n if spread == NO_SPREAD => (value, format!("(all {n} equal)")),
        _ => (value, spread),
    }
}

/// As [`with_bounds`], and that there is no interval: `41,200/s, no CI`.
pub(crate) fn estimate(estimate: &Estimate) -> String {
    let (value, spread) = numbers::value_and_spread(estimate);
    if spread.is_empty() { format!("{value}, no CI") } else { format!("{value} {spread}") }
}

/// A number of seconds on an axis or in a sentence: `45 s`, `5 min`, `1 h 30 min`.
pub(crate) fn seconds(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "" };
    let size = value.abs();
    let whole = size.round() as u64;
    if size < 60.0 {
        return format!("{sign}{} s", significant(size, 3, true));
    }
    let join = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{sign}{large} {large_unit}"),
        _ => format!("{sign}{large} {large_unit} {small} {small_unit}"),
    };
    if whole < 3600 {
        join(whole / 60, "min", whole % 60, "s")
    } else {
        join(whole / 3600, "h", whole % 3600 / 60, "min")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_repetitions_are_said_with_their_number() {
        let (findings, _) = crate::fixture::three_variants();
        let of = |values: &[f64]| {
            let first = findings.cells[0].metrics.values().next().unwrap().clone();
            let (low, n) = (Some(values[0]), values.len() as u32);
            let equal = Estimate { value: values[0], low, high: low, n, ..first };
            value_and_spread(&Estimate { values: values.to_vec(), ..equal }).1
        };
        assert_eq!(of(&[7.0; 5]), "(all 5 equal)");
        assert_eq!(of(&[7.0; 2]), "(both equal)");
    }

    #[test]
    fn lengths_of_time() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(seconds(0.0), "0 s");
        check(seconds(-5.0), "−5 s");
        check(seconds(90.0), "1 min 30 s");
        check(seconds(5400.0), "1 h 30 min");
    }
}
