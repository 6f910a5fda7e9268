//! Numbers as people read them, in one style for sentences, tables, charts and the terminal:
//!
//! - Three significant digits, as no benchmark repeats more. If the ends of an interval would look
//!   the same, it and the value have as many as distinguish them, up to six. Uncertainty is an
//!   interval (`41,200/s (40,800–41,700)`), never `±`.
//! - Rates and counts are written out up to 99,999 with commas (`12,300/s`), then with k, M, G
//!   (`123k/s`).
//! - Times and sizes take the unit that leaves at least 1: `1.25 ms`, `4.10 kB`.
//! - Effects are percentages with a sign between half and twice the baseline (`−12.3 %`), and
//!   factors beyond (`2.31×`); a column, a sentence or a chart uses one of the two.
//! - Measured values keep trailing zeros (`4.00 ms`), given ones have none (`4 ms`).

use dyno_units::{self as units, Metric};

use crate::Estimate;
use crate::facts::{NoBounds, WIDEST_BOUNDS};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    PerSecond,
    Micros,
    Millis,
    Seconds,
    Bytes,
    BytesPerSecond,
    /// In percent, with its sign.
    Effect,
    /// To the baseline.
    Ratio,
    Percent,
    /// CPU seconds per second.
    Cpus,
    Count,
    /// Written after the number.
    Other(String),
}

/// For a level in percent, which has no sign, unlike an effect.
pub const PERCENT_LEVEL: &str = "percent";

impl From<&units::Unit> for Unit {
    fn from(unit: &units::Unit) -> Unit {
        match unit {
            units::Unit::Number | units::Unit::Count => Unit::Count,
            units::Unit::PerSecond => Unit::PerSecond,
            units::Unit::Bytes => Unit::Bytes,
            units::Unit::BytesPerSecond => Unit::BytesPerSecond,
            units::Unit::Percent => Unit::Percent,
            units::Unit::Seconds => Unit::Seconds,
            units::Unit::Milliseconds => Unit::Millis,
            units::Unit::Microseconds => Unit::Micros,
            units::Unit::Cpus => Unit::Cpus,
            other => Unit::Other(other.symbol().to_owned()),
        }
    }
}

pub(crate) fn unit_of(metric: &Metric) -> &str {
    match &metric.unit {
        units::Unit::Percent => PERCENT_LEVEL,
        units::Unit::Bytes => "B",
        units::Unit::BytesPerSecond => "B/s",
        unit => unit.symbol(),
    }
}

impl Unit {
    pub fn of(estimate: &Estimate) -> Unit {
        match estimate.unit.as_str() {
            "%" => Unit::Effect,
            PERCENT_LEVEL => Unit::Percent,
            "×" => Unit::Ratio,
            code => Unit::from(&units::Unit::from(code)),
        }
    }

    pub fn of_metric(metric: &Metric) -> Unit {
        Unit::from(&metric.unit)
    }

    /// A measured value, with three significant digits.
    pub fn show(&self, value: f64) -> String {
        self.write(value, DIGITS, false)
    }

    /// A given value, or one at an axis: without trailing zeros.
    pub fn tick(&self, value: f64) -> String {
        self.write(value, DIGITS, true)
    }

    /// At an axis, with room for a few letters; [`Unit::beside_axis`] names longer units once.
    pub fn on_axis(&self, value: f64) -> String {
        match self.beside_axis() {
            Some(_) => Unit::Count.tick(value),
            None => self.tick(value),
        }
    }

    /// If it is too long for each tick of an axis.
    pub fn beside_axis(&self) -> Option<&str> {
        match self {
            Unit::Other(unit) if unit.chars().count() > AXIS_UNIT_MOST => Some(unit),
            _ => None,
        }
    }

    fn show_digits(&self, value: f64, digits: i32) -> String {
        self.write(value, digits, false)
    }

    fn write(&self, value: f64, digits: i32, trim: bool) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        match self {
            Unit::PerSecond => format!("{}/s", counted(value, digits, trim)),
            Unit::Micros => scaled(value, &TIMES, digits, trim),
            Unit::Millis => scaled(value * 1e3, &TIMES, digits, trim),
            Unit::Seconds => scaled(value * 1e6, &TIMES, digits, trim),
            Unit::Bytes => scaled(value, &SIZES, digits, trim),
            Unit::BytesPerSecond => format!("{}/s", scaled(value, &SIZES, digits, trim)),
            Unit::Effect => percent(value, digits, trim),
            Unit::Ratio => ratio(value, digits, trim),
            Unit::Percent => format!("{} %", significant(value, digits, trim)),
            Unit::Cpus => {
                let number = significant(value, digits, trim);
                let one = if number == "1" { "CPU" } else { "CPUs" };
                format!("{number} {one}")
            }
            Unit::Count => counted(value, digits, trim),
            Unit::Other(unit) => {
                let number = counted(value, digits, trim);
                match unit.strip_prefix("1/") {
                    Some(per) => format!("{number} per {per}"),
                    None if number == "1" => format!("1 {}", singular(unit)),
                    None => format!("{number} {unit}"),
                }
            }
        }
    }
}

/// `process` of `processes`. Abbreviations such as `ms` have no plural.
fn singular(unit: &str) -> &str {
    if unit.chars().count() <= AXIS_UNIT_MOST {
        return unit;
    }
    unit.strip_suffix("es")
        .filter(|one| one.ends_with("ss"))
        .or(unit.strip_suffix('s'))
        .unwrap_or(unit)
}

/// Letters after a number at an axis.
const AXIS_UNIT_MOST: usize = 3;

type Scales = [(f64, &'static str)];

const COUNTS: [(f64, &str); 4] = [(1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
const TIMES: [(f64, &str); 4] = [(1e-3, " ns"), (1.0, " µs"), (1e3, " ms"), (1e6, " s")];
const SIZES: [(f64, &str); 5] =
    [(1.0, " B"), (1e3, " kB"), (1e6, " MB"), (1e9, " GB"), (1e12, " TB")];

/// From here on rates and counts take k, M, G.
const SCALED_FROM: f64 = 100_000.0;

/// A rate or a count: scaled from [`SCALED_FROM`] on.
fn counted(value: f64, digits: i32, trim: bool) -> String {
    let rounded = round_significant(value, digits);
    if rounded.abs() >= SCALED_FROM {
        return scaled(value, &COUNTS, digits, trim);
    }
    // A whole number below a thousand is exact (7, not 7.00), but for rounding of logarithms.
    let is_whole = (value - value.round()).abs() <= 1e-9 * value.abs();
    let is_exact = value.abs() < 1000.0 && is_whole;
    with_commas(&plain(value, digits, trim || is_exact))
}

fn with_commas(text: &str) -> String {
    let (whole, rest) =
        text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, whole) = whole.strip_prefix('−').map_or(("", whole), |whole| ("−", whole));
    let Ok(whole) = whole.parse() else { return text.to_owned() };
    let point = if rest.is_some() { "." } else { "" };
    format!("{sign}{}{point}{}", grouped(whole), rest.unwrap_or_default())
}

/// With the largest scale that leaves at least 1 after rounding: 999.7 µs is `1.00 ms`.
fn scaled(value: f64, scales: &Scales, digits: i32, trim: bool) -> String {
    let size = value.abs();
    if size == 0.0 {
        let unit = scales.iter().find(|(factor, _)| *factor == 1.0).map_or("", |(_, unit)| unit);
        return format!("0{unit}");
    }
    let fits = |factor: f64| round_significant(size / factor, 3) >= 1.0;
    let (factor, unit) =
        scales.iter().rev().find(|(factor, _)| fits(*factor)).unwrap_or(&scales[0]);
    format!("{}{unit}", with_commas(&significant(value / factor, digits, trim)))
}

fn round_significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * power).round() / power
}

/// A number below this is not written out.
const LEAST: f64 = 1e-4;

/// Of counts and money, which have no smaller unit.
const COUNT_LEAST: f64 = 1e-7;

/// With the true minus sign.
pub fn significant(value: f64, digits: i32, trim: bool) -> String {
    written_from(LEAST, value, digits, trim)
}

/// As [`significant`], of counts and money: work may cost less than a ten-thousandth.
pub(crate) fn plain(value: f64, digits: i32, trim: bool) -> String {
    written_from(COUNT_LEAST, value, digits, trim)
}

fn written_from(least: f64, value: f64, digits: i32, trim: bool) -> String {
    let rounded = round_significant(value, digits);
    if rounded != 0.0 && rounded.abs() < least {
        // Nobody counts the zeros of `0.00000000033`, nor reads `3.3e−10`.
        return if rounded > 0.0 { format!("<{least}") } else { format!(">−{least}") };
    }
    let magnitude = if rounded == 0.0 { 0 } else { rounded.abs().log10().floor() as i32 };
    let decimals = (digits - 1 - magnitude).clamp(0, 13) as usize;
    let mut text = format!("{:.decimals$}", rounded.abs());
    if (trim || rounded == 0.0) && text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if rounded < 0.0 { format!("−{text}") } else { text }
}

/// Difference in percent: always with sign; one decimal, none from 100 % on.
fn percent(value: f64, digits: i32, trim: bool) -> String {
    let is_short = value.abs() >= 99.95 || (trim && value.fract() == 0.0);
    let decimals = (digits - if is_short { 3 } else { 2 }) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.trim_matches(|c| c == '0' || c == '.').is_empty();
    match (is_zero, value > 0.0) {
        (true, _) => format!("{text} %"),
        (false, true) => format!("+{text} %"),
        (false, false) => format!("−{text} %"),
    }
}

fn ratio(value: f64, digits: i32, trim: bool) -> String {
    let digits = if trim { digits - 1 } else { digits };
    format!("{}×", with_commas(&significant(value, digits, trim)))
}

/// `1,250,000`.
pub fn grouped(value: u64) -> String {
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

pub fn as_ratio(percent: f64) -> f64 {
    1.0 + percent / 100.0
}

impl Estimate {
    /// A ratio (`2.31×`) from twice or half the baseline on, or if a bound is ten times or a tenth.
    pub fn shows_as_ratio(&self) -> bool {
        let is_far = self.value >= 100.0 || self.value <= -50.0;
        let is_wide =
            self.high.is_some_and(|high| high >= 900.0) || self.low.is_some_and(|low| low <= -90.0);
        self.unit == "%" && (is_far || is_wide)
    }
}

/// The same throughout a sentence, a column, a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EffectStyle {
    /// `−12.3 %`.
    #[default]
    Percent,
    /// `2.31×`.
    Ratio,
}

impl EffectStyle {
    /// Ratios if one of them is shown as one.
    pub fn of<'a>(effects: impl IntoIterator<Item = &'a Estimate>) -> EffectStyle {
        match effects.into_iter().any(Estimate::shows_as_ratio) {
            true => EffectStyle::Ratio,
            false => EffectStyle::Percent,
        }
    }

    /// In percent of the baseline.
    pub fn show(self, percent: f64) -> String {
        self.show_digits(percent, DIGITS)
    }

    fn show_digits(self, percent: f64, digits: i32) -> String {
        match self {
            EffectStyle::Ratio if percent.is_finite() => {
                Unit::Ratio.show_digits(as_ratio(percent), digits)
            }
            _ => Unit::Effect.show_digits(percent, digits),
        }
    }

    /// `−12.3 % (−13.4 to −11.2)`, `2.31× (2.23–2.39)`
    pub fn with_ci(self, relative: &Estimate) -> String {
        self.written(relative).whole()
    }

    /// The parts of [`EffectStyle::with_ci`].
    pub fn value_and_spread(self, relative: &Estimate) -> (String, String) {
        self.written(relative).parts()
    }

    pub fn interval(self, relative: &Estimate) -> Option<String> {
        self.written(relative).interval
    }

    fn written(self, relative: &Estimate) -> Written {
        Written::new(relative, &|value, digits| self.show_digits(value, digits))
    }
}

const DIGITS: i32 = 3;

/// For intervals whose ends look the same with fewer.
const DIGITS_MOST: i32 = 6;

/// For an interval whose ends are equal with [`DIGITS_MOST`] digits.
pub(crate) const NO_SPREAD: &str = "no spread";

/// For an interval beyond [`WIDEST_BOUNDS`].
const TOO_WIDE: &str = "CI wider than a factor of 100";

/// Whether bounds, relative effects in percent, span more than [`WIDEST_BOUNDS`].
pub(crate) fn is_too_wide(low: f64, high: f64) -> bool {
    spans_too_much(as_ratio(low), as_ratio(high))
}

fn spans_too_much(low: f64, high: f64) -> bool {
    // Zero is a bound of its own kind: values that may be nothing span no factor.
    low > 0.0 && high / low > WIDEST_BOUNDS
}

/// Shown for two repetitions: an interval from a single difference surprises more than it informs.
fn pair(estimate: &Estimate) -> Option<(f64, f64)> {
    match estimate.values[..] {
        [a, b] if estimate.n == 2 && a.is_finite() && b.is_finite() => Some((a.min(b), a.max(b))),
        _ => None,
    }
}

/// For drawing; `None` for two repetitions, which show their values.
pub fn bounds(estimate: &Estimate) -> Option<(f64, f64)> {
    let bounds = estimate.low.zip(estimate.high).filter(|_| pair(estimate).is_none());
    bounds.filter(|(low, high)| low.is_finite() && high.is_finite())
}

/// With as many digits as distinguish the ends of the interval.
struct Written {
    value: String,
    interval: Option<String>,
}

impl Written {
    fn new(estimate: &Estimate, show: &dyn Fn(f64, i32) -> String) -> Written {
        let pair = pair(estimate);
        let is_finite = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite();
        let ends = pair.or(estimate.low.zip(estimate.high)).filter(is_finite);
        let is_wide = pair.is_none()
            && (estimate.no_bounds == Some(NoBounds::TooWide)
                || ends.is_some_and(|(low, high)| match estimate.unit.as_str() {
                    "%" => is_too_wide(low, high),
                    _ => spans_too_much(low, high),
                }));
        let differ = |digits: &i32| ends.is_some_and(|(a, b)| show(a, *digits) != show(b, *digits));
        let digits = (DIGITS..=DIGITS_MOST).find(differ);
        let value = show(estimate.value, digits.filter(|_| !is_wide).unwrap_or(DIGITS));
        let interval = match (ends, digits) {
            _ if is_wide => Some(TOO_WIDE.to_owned()),
            (None, _) => None,
            (Some(_), None) => Some(NO_SPREAD.to_owned()),
            (Some((low, high)), Some(digits)) => {
                let (low, high) = (show(low, digits), show(high, digits));
                Some(if pair.is_some() { format!("{low} and {high}") } else { range(&low, &high) })
            }
        };
        Written { value, interval }
    }

    fn of(estimate: &Estimate) -> Written {
        match Unit::of(estimate) {
            Unit::Effect => EffectStyle::of([estimate]).written(estimate),
            unit => Written::new(estimate, &|value, digits| unit.show_digits(value, digits)),
        }
    }
    fn parts(self) -> (String, String) {
        (self.value, self.interval.map_or(String::new(), |text| in_brackets(&text)))
    }

    fn whole(self) -> String {
        let (value, spread) = self.parts();
        if spread.is_empty() { value } else { format!("{value} {spread}") }
    }
}

/// `40,800–41,700/s`; for two repetitions their values. Beyond [`WIDEST_BOUNDS`], says so.
pub fn interval(estimate: &Estimate) -> Option<String> {
    Written::of(estimate).interval
}

/// The unit is written once if both ends have it: `1.20–1.30 ms`, `−4.0 to −2.0 %`.
pub fn range(low: &str, high: &str) -> String {
    let unit_of = |text: &str| text.find([' ', '/', '×']).map_or("", |at| &text[at..]).to_owned();
    let (of_low, of_high) = (unit_of(low), unit_of(high));
    // One end may be singular: `1–3 processes`.
    let is_same = of_low == of_high || (!of_low.is_empty() && of_high.starts_with(&of_low));
    let low = if is_same { low.strip_suffix(of_low.as_str()).unwrap_or(low) } else { low };
    // Zero needs no unit.
    let low = if low.strip_prefix('0').is_some_and(|unit| unit == of_low) { "0" } else { low };
    let is_signed = |text: &str| text.starts_with(['+', '−']);
    let joint = if is_signed(low) || is_signed(high) { " to " } else { "–" };
    format!("{low}{joint}{high}")
}

/// Large relative effects are ratios.
pub fn value(estimate: &Estimate) -> String {
    Written::of(estimate).value
}

/// `41,200/s (40,800–41,700)`; for two repetitions `392/s (380 and 404)`.
pub fn with_ci(estimate: &Estimate) -> String {
    Written::of(estimate).whole()
}

/// The parts of [`with_ci`].
pub fn value_and_spread(estimate: &Estimate) -> (String, String) {
    Written::of(estimate).parts()
}

/// To follow a value: without the unit of rates, effects, ratios and work per unit; times, sizes
/// and sizes per second may change theirs.
fn in_brackets(interval: &str) -> String {
    let per =
        interval.find(" per ").map_or("", |at| interval[at..].split(" and ").next().unwrap_or(""));
    for unit in ["/s", " %", "×", per] {
        let bare = interval.strip_suffix(unit).filter(|bare| !bare.ends_with('B'));
        if let Some(bare) = bare.filter(|_| !unit.is_empty()) {
            return format!("({})", bare.replace(unit, ""));
        }
    }
    format!("({interval})")
}

/// `p = 0.012`, `p < 0.001`, `p = 1`
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p if p >= 0.9995 => "p = 1".to_owned(),
        p => format!("p = {p:.3}"),
    }
}

#[cfg(test)]
mod tests;
