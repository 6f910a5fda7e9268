//! Numbers as people read them, in one style for sentences, tables, charts and the terminal.
//!
//! The style, which holds wherever Dyno shows a number:
//!
//! - Three significant digits: more than that no benchmark repeats. Where a confidence interval is so narrow
//!   that its ends would look the same, value and ends have as many as it takes to tell them apart, up to
//!   six. Uncertainty is always written as an interval (`41,200/s (40,800–41,700)`), never as `±`.
//! - Rates and counts are written out up to 99,999, with commas between thousands (`12,300/s`); from
//!   there on they take k, M, G (`123k/s`), for nobody compares six digits at a glance.
//! - Times and sizes take the unit that leaves at least 1: `1.25 ms`, `4.10 kB`.
//! - Effects are percentages with a sign while they lie between half and twice the baseline (`−12.3 %`),
//!   and factors beyond (`2.31×`). One column, one sentence or one chart uses one of the two.
//! - What was measured keeps its trailing zeros (`4.00 ms`), what was given has none (`4 ms`).

use dyno_units::{self as units, Metric};

use crate::Estimate;
use crate::findings::{NoBounds, WIDEST_BOUNDS};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    PerSecond,
    Micros,
    Millis,
    Seconds,
    Bytes,
    BytesPerSecond,
    /// A difference in percent: always with its sign.
    Effect,
    /// A ratio to the baseline; values are ratios.
    Ratio,
    Percent,
    /// CPU seconds per second.
    Cpus,
    Count,
    /// Any other, written behind the number.
    Other(String),
}

/// The unit of an estimate that is a level in percent, and not an effect: it has no sign.
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

    /// Writes a measured value with three significant digits.
    pub fn show(&self, value: f64) -> String {
        self.write(value, DIGITS, false)
    }

    /// Writes a given value, or one beside an axis: without trailing zeros.
    pub fn tick(&self, value: f64) -> String {
        self.write(value, DIGITS, true)
    }

    /// Writes a value beside an axis, where there is room for a few letters: a longer unit is named by
    /// [`Unit::beside_axis`] once.
    pub fn on_axis(&self, value: f64) -> String {
        match self.beside_axis() {
            Some(_) => Unit::Count.tick(value),
            None => self.tick(value),
        }
    }

    /// The unit, if it is too long to stand at each tick of an axis.
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

/// One of what a unit counts: `process` of `processes`. Abbreviations such as `ms` have no plural.
fn singular(unit: &str) -> &str {
    if unit.chars().count() <= AXIS_UNIT_MOST {
        return unit;
    }
    unit.strip_suffix("es")
        .filter(|one| one.ends_with("ss"))
        .or(unit.strip_suffix('s'))
        .unwrap_or(unit)
}

/// Letters of a unit that fit behind a number at an axis.
const AXIS_UNIT_MOST: usize = 3;

type Scales = [(f64, &'static str)];

const COUNTS: [(f64, &str); 4] = [(1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
const TIMES: [(f64, &str); 4] = [(1e-3, " ns"), (1.0, " µs"), (1e3, " ms"), (1e6, " s")];
const SIZES: [(f64, &str); 5] =
    [(1.0, " B"), (1e3, " kB"), (1e6, " MB"), (1e9, " GB"), (1e12, " TB")];

/// From here on rates and counts take k, M, G.
const SCALED_FROM: f64 = 100_000.0;

/// A rate or a count: written out below [`SCALED_FROM`], with a scale from there on.
fn counted(value: f64, digits: i32, trim: bool) -> String {
    let rounded = round_significant(value, digits);
    if rounded.abs() >= SCALED_FROM {
        return scaled(value, &COUNTS, digits, trim);
    }
    // A whole number below a thousand is exact: 7, not 7.00. A mean of logarithms misses it by a hair.
    let is_whole = (value - value.round()).abs() <= 1e-9 * value.abs();
    let is_exact = value.abs() < 1000.0 && is_whole;
    with_commas(&significant(value, digits, trim || is_exact))
}

fn with_commas(text: &str) -> String {
    let (whole, rest) =
        text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, whole) = whole.strip_prefix('−').map_or(("", whole), |whole| ("−", whole));
    let Ok(whole) = whole.parse() else { return text.to_owned() };
    let point = if rest.is_some() { "." } else { "" };
    format!("{sign}{}{point}{}", grouped(whole), rest.unwrap_or_default())
}

/// Writes with the largest scale that leaves at least 1, judged after rounding: 999.7 µs is `1.00 ms`.
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

/// Writes with a number of significant digits, and the true minus sign.
pub fn significant(value: f64, digits: i32, trim: bool) -> String {
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

/// A whole number with groups of three digits: `1,250,000`.
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

/// The ratio to the baseline that an effect in percent is.
pub fn as_ratio(percent: f64) -> f64 {
    1.0 + percent / 100.0
}

impl Estimate {
    /// Whether this relative effect is shown as a ratio (`2.31×`) and not in percent: from twice, or
    /// half, the baseline on, or where a bound is ten times, or a tenth, of it.
    pub fn shows_as_ratio(&self) -> bool {
        let is_far = self.value >= 100.0 || self.value <= -50.0;
        let is_wide =
            self.high.is_some_and(|high| high >= 900.0) || self.low.is_some_and(|low| low <= -90.0);
        self.unit == "%" && (is_far || is_wide)
    }
}

/// How relative effects are written: the same way throughout a sentence, a column, a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EffectStyle {
    /// `−12.3 %`.
    #[default]
    Percent,
    /// `2.31×`.
    Ratio,
}

impl EffectStyle {
    /// The style that suits all of these relative effects: ratios where one of them is shown as one.
    pub fn of<'a>(effects: impl IntoIterator<Item = &'a Estimate>) -> EffectStyle {
        match effects.into_iter().any(Estimate::shows_as_ratio) {
            true => EffectStyle::Ratio,
            false => EffectStyle::Percent,
        }
    }

    /// Writes an effect that is given in percent of the baseline.
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

    /// Value and interval of an effect: `−12.3 % (−13.4 to −11.2)`, `2.31× (2.23–2.39)`.
    pub fn with_ci(self, relative: &Estimate) -> String {
        let (value, spread) = self.value_and_spread(relative);
        if spread.is_empty() { value } else { format!("{value} {spread}") }
    }

    /// The two parts of [`EffectStyle::with_ci`].
    pub fn value_and_spread(self, relative: &Estimate) -> (String, String) {
        let written = Written::new(relative, &|value, digits| self.show_digits(value, digits));
        (written.value, written.interval.map_or(String::new(), |text| in_brackets(&text)))
    }

    pub fn interval(self, relative: &Estimate) -> Option<String> {
        Written::new(relative, &|value, digits| self.show_digits(value, digits)).interval
    }
}

const DIGITS: i32 = 3;

/// The most of them, where an interval is so narrow that its ends would look the same with fewer.
const DIGITS_MOST: i32 = 6;

/// What stands in place of an interval whose ends are the same with [`DIGITS_MOST`] digits.
pub(crate) const NO_SPREAD: &str = "no spread";

/// What is said of an interval that spans more than [`WIDEST_BOUNDS`].
const TOO_WIDE: &str = "CI wider than a factor of 100";

fn is_too_wide(estimate: &Estimate, low: f64, high: f64) -> bool {
    let of = |value: f64| if estimate.unit == "%" { as_ratio(value) } else { value };
    let (low, high) = (of(low), of(high));
    // Zero is a bound of its own kind: values that may be nothing span no factor.
    low > 0.0 && high / low > WIDEST_BOUNDS
}

/// The two values of an estimate from two repetitions. With two, an interval rests on a single
/// difference, and its ends surprise more than they inform.
fn pair(estimate: &Estimate) -> Option<(f64, f64)> {
    match estimate.values[..] {
        [a, b] if estimate.n == 2 && a.is_finite() && b.is_finite() => Some((a.min(b), a.max(b))),
        _ => None,
    }
}

/// The bounds of an estimate that are drawn; of two repetitions none, but their values.
pub fn bounds(estimate: &Estimate) -> Option<(f64, f64)> {
    let bounds = estimate.low.zip(estimate.high).filter(|_| pair(estimate).is_none());
    bounds.filter(|(low, high)| low.is_finite() && high.is_finite())
}

/// An estimate as text. Its value and the ends of its interval have as many digits as it takes to tell
/// the ends apart.
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
                || ends.is_some_and(|(low, high)| is_too_wide(estimate, low, high)));
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
            Unit::Effect => {
                let style = EffectStyle::of([estimate]);
                Written::new(estimate, &|value, digits| style.show_digits(value, digits))
            }
            unit => Written::new(estimate, &|value, digits| unit.show_digits(value, digits)),
        }
    }
}

/// The confidence interval of an estimate: `40,800–41,700/s`. Of two repetitions their values, and
/// none where there is no interval; one that spans more than [`WIDEST_BOUNDS`] is said to be that wide.
pub fn interval(estimate: &Estimate) -> Option<String> {
    Written::of(estimate).interval
}

/// A range whose unit is said once if both ends have the same: `1.20–1.30 ms`, `−4.0 to −2.0 %`.
pub fn range(low: &str, high: &str) -> String {
    let unit_of = |text: &str| text.find([' ', '/', '×']).map_or("", |at| &text[at..]).to_owned();
    let (of_low, of_high) = (unit_of(low), unit_of(high));
    // Of things that are counted, one end may be singular: `1–3 processes`.
    let is_same = of_low == of_high || (!of_low.is_empty() && of_high.starts_with(&of_low));
    let low = if is_same { low.strip_suffix(of_low.as_str()).unwrap_or(low) } else { low };
    // Nothing is nothing in any unit.
    let low = if low.strip_prefix('0').is_some_and(|unit| unit == of_low) { "0" } else { low };
    let is_signed = |text: &str| text.starts_with(['+', '−']);
    let joint = if is_signed(low) || is_signed(high) { " to " } else { "–" };
    format!("{low}{joint}{high}")
}

/// An estimate's value; relative effects as ratios if they are large.
pub fn value(estimate: &Estimate) -> String {
    Written::of(estimate).value
}

/// A value and its interval: `41,200/s (40,800–41,700)`. Of two repetitions `392/s (380 and 404)`.
pub fn with_ci(estimate: &Estimate) -> String {
    let (value, spread) = value_and_spread(estimate);
    if spread.is_empty() { value } else { format!("{value} {spread}") }
}

/// The two parts of [`with_ci`]; no interval where there is none.
pub fn value_and_spread(estimate: &Estimate) -> (String, String) {
    let written = Written::of(estimate);
    (written.value, written.interval.map_or(String::new(), |text| in_brackets(&text)))
}

/// An interval behind its value: the unit of rates, effects, ratios and work per unit is not written
/// twice; times, sizes and sizes per second may change theirs.
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

/// A p-value: `p = 0.012`, `p < 0.001`, `p = 1`.
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p if p >= 0.9995 => "p = 1".to_owned(),
        p => format!("p = {p:.3}"),
    }
}

#[cfg(test)]
mod tests;
