//! Numbers as people write them: `12.3k`, `1.2 ms`, `3.4 MB/s`, `−12.3 %`.
//!
//! One place for all renderers, so that a number looks the same in the terminal, in a pull request
//! and in the report.

use dyno_analysis::Estimate;

/// What a number counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Things per second.
    PerSecond,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A difference in percent: always with its sign.
    Effect,
    /// A share in percent.
    Percent,
    /// Seconds, e.g. CPU seconds per second.
    Cpus,
    /// A plain count.
    Count,
    /// Any other, written behind the number.
    Other(String),
}

impl Unit {
    /// The unit of an estimate, from its text.
    pub(crate) fn of(estimate: &Estimate) -> Unit {
        match estimate.unit.as_str() {
            "1/s" => Unit::PerSecond,
            "µs" => Unit::Micros,
            "B" => Unit::Bytes,
            "B/s" => Unit::BytesPerSecond,
            "%" => Unit::Effect,
            "" => Unit::Count,
            other => Unit::Other(other.to_owned()),
        }
    }

    /// Writes a value with three significant digits.
    pub(crate) fn show(&self, value: f64) -> String {
        self.write(value, false)
    }

    /// Writes a value for an axis: without trailing zeros.
    pub(crate) fn tick(&self, value: f64) -> String {
        self.write(value, true)
    }

    fn write(&self, value: f64, trim: bool) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        match self {
            Unit::PerSecond => format!("{}/s", scaled(value, &COUNTS, trim)),
            Unit::Micros => scaled(value, &TIMES, trim),
            Unit::Bytes => scaled(value, &SIZES, trim),
            Unit::BytesPerSecond => format!("{}/s", scaled(value, &SIZES, trim)),
            Unit::Effect => effect(value, trim),
            Unit::Percent => format!("{} %", significant(value, 3, trim)),
            Unit::Cpus => format!("{} CPU", significant(value, 3, trim)),
            Unit::Count => scaled(value, &COUNTS, trim),
            Unit::Other(unit) => format!("{} {unit}", scaled(value, &COUNTS, trim)),
        }
    }
}

type Scales = [(f64, &'static str)];

const COUNTS: [(f64, &str); 5] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
const TIMES: [(f64, &str); 4] = [(1e-3, " ns"), (1.0, " µs"), (1e3, " ms"), (1e6, " s")];
const SIZES: [(f64, &str); 5] =
    [(1.0, " B"), (1e3, " kB"), (1e6, " MB"), (1e9, " GB"), (1e12, " TB")];

/// Writes with the largest scale that leaves at least 1, judged after rounding: 999.7 is `1.00k`.
fn scaled(value: f64, scales: &Scales, trim: bool) -> String {
    let size = value.abs();
    if size == 0.0 {
        let unit = scales.iter().find(|(factor, _)| *factor == 1.0).map_or("", |(_, unit)| unit);
        return format!("0{unit}");
    }
    let fits = |factor: f64| round_significant(size / factor, 3) >= 1.0;
    let (factor, unit) =
        scales.iter().rev().find(|(factor, _)| fits(*factor)).unwrap_or(&scales[0]);
    // A whole number below the first scale is exact: 7, not 7.00.
    let exact = unit.is_empty() && value.fract() == 0.0;
    format!("{}{unit}", significant(value / factor, 3, trim || exact))
}

/// Rounds to a number of significant digits.
fn round_significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * power).round() / power
}

/// Writes with a number of significant digits, and the true minus sign.
fn significant(value: f64, digits: i32, trim: bool) -> String {
    let rounded = round_significant(value, digits);
    let magnitude = if rounded == 0.0 { 0 } else { rounded.abs().log10().floor() as i32 };
    let decimals = (digits - 1 - magnitude).clamp(0, 9) as usize;
    let mut text = format!("{:.decimals$}", rounded.abs());
    if (trim || rounded == 0.0) && text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if rounded < 0.0 { format!("−{text}") } else { text }
}

/// Writes a difference in percent: sign always, one decimal, none from 100 % on.
fn effect(value: f64, trim: bool) -> String {
    let decimals = if value.abs() >= 99.95 || (trim && value.fract() == 0.0) { 0 } else { 1 };
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.trim_matches(|c| c == '0' || c == '.').is_empty();
    match (is_zero, value > 0.0) {
        (true, _) => format!("{text} %"),
        (false, true) => format!("+{text} %"),
        (false, false) => format!("−{text} %"),
    }
}

/// An estimate's bounds: `40.8k … 41.6k`, or none where there are no bounds.
pub(crate) fn bounds(estimate: &Estimate) -> Option<String> {
    let unit = Unit::of(estimate);
    let (low, high) = estimate.low.zip(estimate.high)?;
    let low = unit.show(low);
    // A percentage says its unit once.
    let low = if unit == Unit::Effect { low.trim_end_matches(" %") } else { &low };
    Some(format!("{low} … {}", unit.show(high)))
}

/// An estimate with the larger distance to its bounds: `41.2k/s ± 420`.
pub(crate) fn plus_minus(estimate: &Estimate) -> String {
    let unit = Unit::of(estimate);
    let value = unit.show(estimate.value);
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        return value;
    };
    let reach = (high - estimate.value).max(estimate.value - low).max(0.0);
    if !(reach.is_finite() && estimate.value.is_finite()) {
        return value;
    }
    format!("{value} {}", reach_text(reach, &unit))
}

/// The `± 420` of an estimate. Units of rates are not repeated.
fn reach_text(reach: f64, unit: &Unit) -> String {
    let text = match unit {
        Unit::PerSecond => two_digits(reach, &COUNTS),
        Unit::Micros => two_digits(reach, &TIMES),
        Unit::Bytes | Unit::BytesPerSecond => two_digits(reach, &SIZES),
        Unit::Effect => format!("{reach:.1}"),
        _ => two_digits(reach, &COUNTS),
    };
    format!("± {text}")
}

/// Two digits are enough to say how uncertain a value is.
fn two_digits(value: f64, scales: &Scales) -> String {
    scaled(round_significant(value, 2), scales, true)
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

/// A whole number with groups of three digits: `1 250 000`.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            // A narrow no-break space.
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
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

/// A p-value: `p = 0.012`, `p < 0.001`.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_a_unit() {
        let check = |unit: Unit, value: f64, expected: &str| {
            assert_eq!(unit.show(value), expected, "{unit:?} {value}");
        };
        check(Unit::PerSecond, 12_345.0, "12.3k/s");
        check(Unit::PerSecond, 999.7, "1.00k/s");
        check(Unit::PerSecond, 999_499.0, "999k/s");
        check(Unit::PerSecond, 999_500.0, "1.00M/s");
        check(Unit::PerSecond, 7.0, "7/s");
        check(Unit::PerSecond, 0.0, "0/s");
        check(Unit::PerSecond, 0.01234, "0.0123/s");
        check(Unit::Micros, 850.0, "850 µs");
        check(Unit::Micros, 1_234.0, "1.23 ms");
        check(Unit::Micros, 12_000_000.0, "12.0 s");
        check(Unit::Micros, 0.25, "250 ns");
        check(Unit::Micros, 0.0, "0 µs");
        check(Unit::Bytes, 3_400_000.0, "3.40 MB");
        check(Unit::Bytes, -2_000.0, "−2.00 kB");
        check(Unit::BytesPerSecond, 0.0, "0 B/s");
        check(Unit::Effect, -12.34, "−12.3 %");
        check(Unit::Effect, 0.04, "0.0 %");
        check(Unit::Effect, 3.0, "+3.0 %");
        check(Unit::Effect, 250.4, "+250 %");
        check(Unit::Percent, 99.0, "99.0 %");
        check(Unit::Count, f64::NAN, "–");
        check(Unit::Other("rows".into()), 1500.0, "1.50k rows");
    }

    #[test]
    fn ticks_are_trimmed() {
        let check = |unit: Unit, value: f64, expected: &str| {
            assert_eq!(unit.tick(value), expected, "{unit:?} {value}");
        };
        check(Unit::PerSecond, 10_000.0, "10k/s");
        check(Unit::PerSecond, 2_500.0, "2.5k/s");
        check(Unit::Micros, 1_000.0, "1 ms");
        check(Unit::Effect, 5.0, "+5 %");
        check(Unit::Effect, -2.5, "−2.5 %");
        check(Unit::Percent, 100.0, "100 %");
    }

    fn estimate(value: f64, low: Option<f64>, high: Option<f64>, unit: &str) -> Estimate {
        Estimate {
            value,
            low,
            high,
            n: 3,
            min: value,
            max: value,
            unit: unit.to_owned(),
            values: vec![value],
        }
    }

    #[test]
    fn estimates_show_their_bounds_or_that_there_are_none() {
        let check = |e: Estimate, short: &str, long: Option<&str>| {
            assert_eq!(plus_minus(&e), short);
            assert_eq!(bounds(&e).as_deref(), long);
        };
        let rate = estimate(41_234.0, Some(40_900.0), Some(41_650.0), "1/s");
        check(rate, "41.2k/s ± 420", Some("40.9k/s … 41.7k/s"));
        check(estimate(41_234.0, None, None, "1/s"), "41.2k/s", None);
        let effect = estimate(-3.2, Some(-4.0), Some(-2.0), "%");
        check(effect, "−3.2 % ± 1.2", Some("−4.0 … −2.0 %"));
        let time = estimate(1_234.0, Some(1_200.0), Some(1_300.0), "µs");
        check(time, "1.23 ms ± 66 µs", Some("1.20 ms … 1.30 ms"));
    }

    #[test]
    fn seconds_dates_counts_and_p_values() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(seconds(0.0), "0 s");
        check(seconds(-5.0), "−5 s");
        check(seconds(90.0), "1 min 30 s");
        check(seconds(5400.0), "1 h 30 min");
        check(grouped(1_250_000), "1\u{202f}250\u{202f}000");
        check(grouped(12), "12");
        check(date(0), "1970-01-01 00:00:00 UTC");
        check(date(1_709_210_096_000), "2024-02-29 12:34:56 UTC");
        check(date(4_102_444_799_999), "2099-12-31 23:59:59 UTC");
        check(p_value(0.0004), "p < 0.001");
        check(p_value(0.0421), "p = 0.042");
    }
}
