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
    /// A ratio to the baseline; values are ratios.
    Ratio,
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
            "×" => Unit::Ratio,
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

    /// Writes a value beside an axis, where there is room for a few letters: a longer unit is told by
    /// [`Unit::beside_axis`] once.
    pub(crate) fn on_axis(&self, value: f64) -> String {
        match self.beside_axis() {
            Some(_) => Unit::Count.tick(value),
            None => self.tick(value),
        }
    }

    /// The unit, if it is too long to stand at each tick of an axis.
    pub(crate) fn beside_axis(&self) -> Option<&str> {
        match self {
            Unit::Other(unit) if unit.chars().count() > AXIS_UNIT_MOST => Some(unit),
            _ => None,
        }
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
            Unit::Ratio => ratio(value, trim),
            Unit::Percent => format!("{} %", significant(value, 3, trim)),
            Unit::Cpus => format!("{} CPU", significant(value, 3, trim)),
            Unit::Count => scaled(value, &COUNTS, trim),
            Unit::Other(unit) => {
                let number = scaled(value, &COUNTS, trim);
                match unit.strip_prefix("1/") {
                    Some(per) => format!("{number} per {per}"),
                    None => format!("{number} {unit}"),
                }
            }
        }
    }
}

/// Letters of a unit that fit behind a number at an axis.
const AXIS_UNIT_MOST: usize = 3;

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
    if rounded != 0.0 && rounded.abs() < 1e-4 {
        // `0.00000033` is counted by nobody.
        return format!("{rounded:.0$e}", if trim { 0 } else { digits as usize - 1 })
            .replace('-', "−");
    }
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

/// Writes a ratio: three digits, no scale words, no zeros at its end.
fn ratio(value: f64, trim: bool) -> String {
    let text = if value >= 1000.0 {
        grouped(round_significant(value, 3) as u64)
    } else {
        significant(value, if trim { 2 } else { 3 }, true)
    };
    format!("{text} ×")
}

/// The ratio to the baseline that an effect in percent is.
pub(crate) fn as_ratio(percent: f64) -> f64 {
    1.0 + percent / 100.0
}

/// A relative effect: from twice or half on a ratio, else in percent.
pub(crate) fn effect_of(relative: &Estimate) -> String {
    effect_value(relative, relative.value)
}

/// A value of a relative effect, written as the effect itself is.
fn effect_value(relative: &Estimate, value: f64) -> String {
    match relative.is_told_as_ratio() && value.is_finite() {
        true => Unit::Ratio.show(as_ratio(value)),
        false => Unit::Effect.show(value),
    }
}

/// An estimate's value; relative effects as ratios where they are large.
pub(crate) fn value(estimate: &Estimate) -> String {
    match Unit::of(estimate) {
        Unit::Effect => effect_of(estimate),
        unit => unit.show(estimate.value),
    }
}

/// An estimate's bounds: `40.8k … 41.6k/s`, or none where there are no bounds.
pub(crate) fn bounds(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.low.zip(estimate.high)?;
    let show = |value: f64| match Unit::of(estimate) {
        Unit::Effect => effect_value(estimate, value),
        unit => unit.show(value),
    };
    Some(range(&show(low), &show(high)))
}

/// A range whose unit is said once where both ends have the same.
pub(crate) fn range(low: &str, high: &str) -> String {
    let unit_of = |text: &str| text.find([' ', '/']).map_or("", |at| &text[at..]).to_owned();
    let (of_low, of_high) = (unit_of(low), unit_of(high));
    let low = if of_low == of_high { low.trim_end_matches(of_low.as_str()) } else { low };
    format!("{low} … {high}")
}

/// A value and its uncertainty: `41.2k/s ± 420` where the bounds are as far above as below it, up
/// to a tenth; else `392/s (20 … 7.6k)`.
pub(crate) fn with_bounds(estimate: &Estimate) -> String {
    let (value, spread) = value_and_spread(estimate);
    if spread.is_empty() { value } else { format!("{value} {spread}") }
}

/// As [`with_bounds`], and that there are none: `41.2k/s, no bounds`.
pub(crate) fn told(estimate: &Estimate) -> String {
    match estimate.low.zip(estimate.high) {
        Some(_) => with_bounds(estimate),
        None => format!("{}, no bounds", value(estimate)),
    }
}

/// The two parts of [`with_bounds`]; no spread where there are no bounds.
pub(crate) fn value_and_spread(estimate: &Estimate) -> (String, String) {
    let unit = Unit::of(estimate);
    let value = value(estimate);
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        return (value, String::new());
    };
    let (below, above) = ((estimate.value - low).max(0.0), (high - estimate.value).max(0.0));
    if !(below.is_finite() && above.is_finite()) {
        return (value, String::new());
    }
    let reach = below.max(above);
    let is_symmetric = (above - below).abs() <= SYMMETRIC_WITHIN * reach;
    // Bounds that two digits cannot tell apart are no range: `20 … 20` says nothing.
    let is_narrow = two_digits(low, &COUNTS) == two_digits(high, &COUNTS);
    let spread = if (is_symmetric || is_narrow) && !estimate.is_told_as_ratio() {
        reach_text(reach, &unit)
    } else {
        format!("({})", range_text(estimate, (low, high), &unit))
    };
    (value, spread)
}

/// Bounds are written as `±` if their distances to the value differ by no more than this share.
const SYMMETRIC_WITHIN: f64 = 0.1;

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

/// The `20 … 7.6k` of an estimate, in two digits. Units of rates and effects are not repeated.
fn range_text(estimate: &Estimate, (low, high): (f64, f64), unit: &Unit) -> String {
    let show = |value: f64| match unit {
        Unit::Micros => two_digits(value, &TIMES),
        Unit::Bytes | Unit::BytesPerSecond => two_digits(value, &SIZES),
        Unit::Effect if estimate.is_told_as_ratio() => {
            Unit::Ratio.show(as_ratio(value)).trim_end_matches(" ×").to_owned()
        }
        Unit::Effect => effect(value, true).trim_end_matches(" %").to_owned(),
        _ => two_digits(value, &COUNTS),
    };
    range(&show(low), &show(high))
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

/// A whole number with groups of three digits, as the answer's sentences have them: `1,250,000`.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
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
        check(Unit::Ratio, 122.4, "122 ×");
        check(Unit::Ratio, 2.31, "2.31 ×");
        check(Unit::Ratio, 0.00107, "0.00107 ×");
        check(Unit::Count, f64::NAN, "–");
        check(Unit::Other("rows".into()), 1500.0, "1.50k rows");
        check(Unit::Other("1/CPU s".into()), 41_200.0, "41.2k per CPU s");
        check(Unit::Bytes, 3.3e-7, "3.30e−7 B");
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

    #[test]
    fn long_units_stand_beside_the_axis() {
        let check = |unit: &str, tick: &str, beside: Option<&str>| {
            let unit = Unit::Other(unit.to_owned());
            assert_eq!((unit.on_axis(1500.0).as_str(), unit.beside_axis()), (tick, beside));
        };
        check("ms", "1.5k ms", None);
        check("transactions", "1.5k", Some("transactions"));
        assert_eq!(Unit::PerSecond.on_axis(1500.0), "1.5k/s");
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
            ..Estimate::default()
        }
    }

    #[test]
    fn estimates_show_their_bounds_or_that_there_are_none() {
        let check = |e: Estimate, short: &str, long: Option<&str>| {
            assert_eq!(with_bounds(&e), short);
            assert_eq!(bounds(&e).as_deref(), long);
        };
        let rate = estimate(41_234.0, Some(40_900.0), Some(41_650.0), "1/s");
        check(rate, "41.2k/s (41k … 42k)", Some("40.9k … 41.7k/s"));
        let rate = estimate(41_234.0, Some(40_830.0), Some(41_650.0), "1/s");
        check(rate, "41.2k/s ± 420", Some("40.8k … 41.7k/s"));
        let wide = estimate(981.0, Some(512.3), Some(1_890.0), "1/s");
        check(wide, "981/s (510 … 1.9k)", Some("512 … 1.89k/s"));
        check(estimate(41_234.0, None, None, "1/s"), "41.2k/s", None);
        let effect = estimate(-3.2, Some(-4.0), Some(-2.0), "%");
        check(effect, "−3.2 % (−4 … −2)", Some("−4.0 … −2.0 %"));
        let effect = estimate(-3.0, Some(-4.08), Some(-2.0), "%");
        check(effect, "−3.0 % ± 1.1", Some("−4.1 … −2.0 %"));
        let large = estimate(12_057.0, Some(2_552.0), Some(55_636.0), "%");
        check(large, "122 × (26.5 … 557)", Some("26.5 … 557 ×"));
        let small = estimate(-92.4, Some(-99.4), Some(-7.9), "%");
        check(small, "0.076 × (0.006 … 0.921)", Some("0.006 … 0.921 ×"));
        let huge = estimate(312_400.0, Some(99_900.0), Some(999_900.0), "%");
        check(huge, "3,130 × (1,000 … 10,000)", Some("1,000 … 10,000 ×"));
        let narrow = estimate(20.0, Some(19.998), Some(20.01), "");
        check(narrow, "20 ± 0.01", Some("20.0 … 20.0"));
        let time = estimate(1_234.0, Some(1_200.0), Some(1_300.0), "µs");
        check(time, "1.23 ms (1.2 … 1.3 ms)", Some("1.20 … 1.30 ms"));
        let time = estimate(1_034.0, Some(900.0), Some(1_300.0), "µs");
        check(time, "1.03 ms (900 µs … 1.3 ms)", Some("900 µs … 1.30 ms"));
    }

    #[test]
    fn seconds_dates_counts_and_p_values() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(seconds(0.0), "0 s");
        check(seconds(-5.0), "−5 s");
        check(seconds(90.0), "1 min 30 s");
        check(seconds(5400.0), "1 h 30 min");
        check(grouped(1_250_000), "1,250,000");
        check(grouped(12), "12");
        check(date(0), "1970-01-01 00:00:00 UTC");
        check(date(1_709_210_096_000), "2024-02-29 12:34:56 UTC");
        check(date(4_102_444_799_999), "2099-12-31 23:59:59 UTC");
        check(p_value(0.0004), "p < 0.001");
        check(p_value(0.0421), "p = 0.042");
    }
}
