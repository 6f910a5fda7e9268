//! How renderers write numbers, lengths of time and dates.
//!
//! The style of numbers is [`dyno_analysis::numbers`]: one place for the answer's sentences and for all
//! renderers, so that a number looks the same in the headline, in a table, in a chart, in the terminal
//! and in a pull request.

pub(crate) use dyno_analysis::numbers::{
    EffectStyle, Unit, as_ratio, grouped, interval as bounds, p_value, range, value,
    value_and_spread, with_ci as with_bounds,
};

use dyno_analysis::Estimate;
use dyno_analysis::numbers::significant;

/// A relative effect by itself, in the style that suits it.
pub(crate) fn effect_of(relative: &Estimate) -> String {
    EffectStyle::of([relative]).show(relative.value)
}

/// As [`with_bounds`], and that there is no interval: `41,200/s, no CI`.
pub(crate) fn told(estimate: &Estimate) -> String {
    let (value, spread) = value_and_spread(estimate);
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

/// A date and time in UTC from milliseconds since 1970: `2026-03-01 14:05:09 UTC`.
///
/// Days to date after Howard Hinnant, "chrono-compatible low-level date algorithms",
/// `civil_from_days`.
pub(crate) fn date(unix_ms: u64) -> String {
    let s = unix_ms / 1000;
    let z = (s / 86_400) as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (s % 86_400 / 3600, s % 3600 / 60, s % 60);
    format!("{year}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_and_dates() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(seconds(0.0), "0 s");
        check(seconds(-5.0), "−5 s");
        check(seconds(90.0), "1 min 30 s");
        check(seconds(5400.0), "1 h 30 min");
        check(date(0), "1970-01-01 00:00:00 UTC");
        check(date(1_709_210_096_000), "2024-02-29 12:34:56 UTC");
        check(date(4_102_444_799_999), "2099-12-31 23:59:59 UTC");
    }
}
