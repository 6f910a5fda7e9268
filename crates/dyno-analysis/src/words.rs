//! Numbers as a person reads them: three or so digits, a unit, a true minus sign.

use crate::{Estimate, Metric};

impl Metric {
    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Throughput | Metric::RateAtLimit => "1/s",
            Metric::ClientsAtLimit => "clients",
            Metric::DiskReadPerTransaction | Metric::DiskWrittenPerTransaction => "B",
            _ => "µs",
        }
    }

    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput",
            Metric::ResponseMean => "mean response time",
            Metric::ResponseP50 => "median response time",
            Metric::ResponseP95 => "p95 response time",
            Metric::ResponseP99 => "p99 response time",
            Metric::ResponseP999 => "p99.9 response time",
            Metric::ResponseMax => "longest response time",
            Metric::ServiceP95 => "p95 service time",
            Metric::ServerCpuPerTransaction => "server CPU per transaction",
            Metric::GeneratorCpuPerStatement => "generator CPU per statement",
            Metric::DiskReadPerTransaction => "bytes read from disk per transaction",
            Metric::DiskWrittenPerTransaction => "bytes written to disk per transaction",
            Metric::RateAtLimit => "sustained rate",
            Metric::ClientsAtLimit => "sustained clients",
            Metric::StepTime => "time of the step",
        }
    }

    /// Whether more of it is better; of all others less is.
    pub fn more_is_better(self) -> bool {
        matches!(self, Metric::Throughput | Metric::RateAtLimit | Metric::ClientsAtLimit)
    }

    /// The quantile, for metrics that are quantiles of response or service times.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::ResponseP50 => Some(0.5),
            Metric::ResponseP95 | Metric::ServiceP95 => Some(0.95),
            Metric::ResponseP99 => Some(0.99),
            Metric::ResponseP999 => Some(0.999),
            _ => None,
        }
    }
}

/// A number with `digits` significant digits, commas between thousands, no trailing zeros behind
/// the point.
fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (digits - 1 - magnitude).clamp(0, 9) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{grouped}{point}{fraction}")
}

/// A value of a metric with its unit: `12,346/s`, `1.25 ms`, `4.1 kB`.
pub(crate) fn quantity(metric: Metric, value: f64) -> String {
    let scaled = |units: &[(f64, &str)]| {
        let fits = |&&(size, _): &&(f64, &str)| value.abs() >= size;
        let (size, unit) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
        format!("{} {unit}", significant(value / size, 3))
    };
    match metric.unit() {
        "clients" => format!("{} clients", significant(value, 3)),
        "1/s" => format!("{}/s", significant(value, 3)),
        "B" => scaled(&[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
        _ => scaled(&[(1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns")]),
    }
}

/// A number of anything: `0.42`, `12,346`.
pub(crate) fn number(value: f64) -> String {
    significant(value, 3)
}

/// A size: `4.1 kB`, `2.53 GB`.
pub(crate) fn bytes(value: f64) -> String {
    quantity(Metric::DiskReadPerTransaction, value)
}

/// A length of time from its seconds: `250 ms`, `12.5 s`, `1,800 s`.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v != 0.0 && v.abs() < 1.0 => format!("{} ms", significant(value * 1e3, 3)),
        _ => format!("{} s", significant(value, 3)),
    }
}

/// A percentage with its sign: `+131 %`, `−2.5 %`.
pub(crate) fn percent(value: f64) -> String {
    let digits = if value.abs() < 1.0 { 2 } else { 3 };
    // Hundredths of a percent are the finest that is told.
    let rounded = (value * 100.0).round() / 100.0;
    let sign = if rounded > 0.0 { "+" } else { "" };
    format!("{sign}{} %", significant(rounded, digits))
}

/// A share in percent, without a sign: `3 %`, `0.05 %`.
pub(crate) fn share(fraction: f64) -> String {
    // Near the whole it is the missing rest that counts: 99.9 % is not 100 %.
    let digits = if fraction > 0.95 && fraction < 1.0 { 4 } else { 2 };
    format!("{} %", significant(fraction * 100.0, digits))
}

/// A ratio told from its effect in percent: +131 becomes `2.31 ×`.
pub(crate) fn ratio(relative_percent: f64) -> String {
    let ratio = 1.0 + relative_percent / 100.0;
    // From a thousand on, no more than three digits are told either.
    let ten = 10_f64.powi((ratio.abs().max(1.0).log10().floor() as i32 - 2).max(0));
    let ratio = if ten > 1.0 { (ratio / ten).round() * ten } else { ratio };
    format!("{} ×", significant(ratio, 3))
}

impl Estimate {
    /// Whether this relative effect is told as a ratio (`2.31 ×`) and not in percent: from twice,
    /// or half, the baseline on, or where a bound is ten times, or a tenth, of it.
    pub fn is_told_as_ratio(&self) -> bool {
        let is_far = self.value >= 100.0 || self.value <= -50.0;
        let is_wide =
            self.high.is_some_and(|high| high >= 900.0) || self.low.is_some_and(|low| low <= -90.0);
        self.unit == "%" && (is_far || is_wide)
    }
}

/// How a relative effect and its bounds are written: as ratios, or in percent.
pub(crate) fn effect_text(relative: &Estimate) -> fn(f64) -> String {
    if relative.is_told_as_ratio() { ratio } else { percent }
}

/// How several relative effects are written in one sentence: all as ratios where one is.
pub(crate) fn common_text<'a>(
    mut relatives: impl Iterator<Item = &'a Estimate>,
) -> fn(f64) -> String {
    if relatives.any(Estimate::is_told_as_ratio) { ratio } else { percent }
}

/// The bounds of an estimate alone: `+124 % … +139 %`; none where there are none.
pub(crate) fn short_range(estimate: &Estimate, text: impl Fn(f64) -> String) -> Option<String> {
    let (low, high) = estimate.low.zip(estimate.high)?;
    Some(format!("{} … {}", text(low), text(high)))
}

/// A relative effect: `2.31 ×`, `−12.3 %`.
pub(crate) fn effect(relative: &Estimate) -> String {
    effect_text(relative)(relative.value)
}

/// A value of a metric in a sentence: `12,346 transactions/s`, `1.25 ms`.
pub(crate) fn spoken(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Throughput | Metric::RateAtLimit => {
            format!("{} transactions/s", significant(value, 3))
        }
        _ => quantity(metric, value),
    }
}

/// The bounds of an estimate in words, or that there are none: `95 % bounds 11/s … 13/s, n = 3`.
pub(crate) fn bounds(estimate: &Estimate, confidence: f64, text: impl Fn(f64) -> String) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            let confidence = share(confidence);
            format!("{confidence} bounds {} … {}, n = {}", text(low), text(high), estimate.n)
        }
        _ => format!("n = {}, so no bounds", estimate.n),
    }
}

/// `1 trial`, `2 trials`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [rest @ .., last] => {
            let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", rest.join(", "), last.as_ref())
        }
    }
}

/// The text with its first letter large.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    first.into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(actual: String, expected: &str) {
        assert_eq!(actual, expected);
    }

    #[test]
    fn quantities_have_a_readable_unit() {
        check(quantity(Metric::Throughput, 12_345.6), "12,346/s");
        check(quantity(Metric::Throughput, 0.0123), "0.0123/s");
        check(quantity(Metric::ResponseP95, 850.0), "850 µs");
        check(quantity(Metric::ResponseP95, 1_250.0), "1.25 ms");
        check(quantity(Metric::ResponseP95, 2_300_000.0), "2.3 s");
        check(quantity(Metric::ResponseP50, 0.9), "900 ns");
        check(quantity(Metric::ResponseP50, 0.0), "0 ns");
        check(quantity(Metric::DiskReadPerTransaction, 4_096.0), "4.1 kB");
    }

    #[test]
    fn percentages_have_a_sign() {
        check(percent(131.2), "+131 %");
        check(percent(-57.34), "−57.3 %");
        check(percent(0.314), "+0.31 %");
        check(percent(-0.001), "0 %");
        check(percent(0.0), "0 %");
        check(percent(12_345.0), "+12,345 %");
    }

    #[test]
    fn ratios_and_shares() {
        check(ratio(131.0), "2.31 ×");
        check(ratio(-57.3), "0.427 ×");
        check(ratio(0.0), "1 ×");
        check(ratio(1_131.0), "12.3 ×");
        check(ratio(150_250.0), "1,500 ×");
        check(share(0.95), "95 %");
        check(share(0.0005), "0.05 %");
        check(share(0.999), "99.9 %");
        check(share(1.0), "100 %");
    }

    #[test]
    fn lists() {
        check(list::<&str>(&[]), "");
        check(list(&["a"]), "a");
        check(list(&["a", "b", "c"]), "a, b and c");
        check(count(1, "trial") + &count(2, "step"), "1 trial2 steps");
        check(capital("p95"), "P95");
    }
}
