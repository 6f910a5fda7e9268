//! From values to coordinates, and where to put ticks.

use dyno_analysis::numbers::EffectStyle;

use crate::format::{self, Unit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Linear,
    Log,
}

/// A scale from a range of values to a range of coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) kind: Kind,
    /// The value at `from`.
    pub(crate) low: f64,
    /// The value at `to`.
    pub(crate) high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// A linear scale. An empty range of values is widened so that nothing divides by zero.
    pub(crate) fn linear(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { kind: Kind::Linear, low, high, from, to }
    }

    /// A logarithmic scale; `low` and `high` must be positive.
    pub(crate) fn log(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let low = if low > 0.0 { low } else { f64::MIN_POSITIVE };
        let high = if high > low { high } else { low * 10.0 };
        Scale { kind: Kind::Log, low, high, from, to }
    }

    /// The coordinate of a value; values outside of the range are put on its edge.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => {
                (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values for ticks, about `n` of them.
    pub(crate) fn ticks(&self, n: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => nice_ticks(self.low, self.high, n),
            Kind::Log => log_ticks(self.low, self.high),
        }
    }
}

/// What the numbers of an axis are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Measure {
    Value(Unit),
    /// Ratios to a baseline, always on a logarithmic axis: half is as far from it as twice. They are written as
    /// ratios, or in percent.
    Effect(EffectStyle),
}

impl Measure {
    pub(crate) fn show(&self, value: f64) -> String {
        match self {
            Measure::Value(unit) => unit.show(value),
            Measure::Effect(style) => style.show(in_percent(value)),
        }
    }

    fn tick(&self, value: f64) -> String {
        match self {
            Measure::Value(unit) => unit.tick(value),
            Measure::Effect(EffectStyle::Ratio) => Unit::Ratio.tick(value),
            // 1.25 × 0.8 is not quite 1.
            Measure::Effect(EffectStyle::Percent) => {
                Unit::Effect.tick((in_percent(value) * 1e9).round() / 1e9)
            }
        }
    }

    /// About `n` values with their labels.
    pub(crate) fn ticks(&self, scale: &Scale, n: usize) -> Vec<(f64, String)> {
        let values = match self {
            Measure::Value(_) => scale.ticks(n),
            Measure::Effect(_) => effect_ticks(scale.low, scale.high, n),
        };
        values.into_iter().map(|value| (value, self.tick(value))).collect()
    }

    /// A scale on which all values are; a linear one has zero, and some room around a band.
    pub(crate) fn scale(
        &self,
        values: &[f64],
        (is_log, band): (bool, Option<(f64, f64)>),
        (from, to): (f64, f64),
    ) -> Scale {
        const ROOM: f64 = 1.5;
        const MARGIN: f64 = 0.05;
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        if let Measure::Effect(_) = self {
            let (band_low, band_high) = band.unwrap_or((1.0, 1.0));
            let (low, high) = (low.min(band_low).min(1.0), high.max(band_high).max(1.0));
            let margin = (high / low).max(1.02).powf(MARGIN);
            return Scale::log(low / margin, high * margin, from, to);
        }
        if is_log && low.is_finite() {
            let (band_low, band_high) = band.unwrap_or((low, low));
            let (low, high) = nice_log_range(low.min(band_low), high.max(low).max(band_high));
            return Scale::log(low, high, from, to);
        }
        let low = values.iter().copied().fold(0.0, f64::min);
        let (band_low, band_high) = band.unwrap_or((0.0, 0.0));
        let (low, high) = (low.min(band_low * ROOM), high.max(band_high * ROOM).max(0.0));
        let (low, high) = nice_range(low, high, 5);
        Scale::linear(low, high, from, to)
    }
}

fn in_percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// Ratios for ticks: round percentages where effects are small, halves and quarters, then powers of ten.
fn effect_ticks(low: f64, high: f64, n: usize) -> Vec<f64> {
    let is_in = |ratio: &f64| (low..=high).contains(ratio);
    match high / low {
        span if span > 16.0 => log_ticks(low, high),
        span if span > 1.9 => {
            [0.1, 0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0, 10.0].into_iter().filter(is_in).collect()
        }
        _ => {
            let percent = nice_ticks(in_percent(low), in_percent(high), n);
            percent.into_iter().map(format::as_ratio).collect()
        }
    }
}

/// The step of 1, 2 or 5 times a power of ten that gives about `n` ticks.
fn nice_step(span: f64, n: usize) -> f64 {
    let raw = span / n.max(1) as f64;
    let power = 10_f64.powf(raw.log10().floor());
    let factor = match raw / power {
        r if r <= 1.0 => 1.0,
        r if r <= 2.0 => 2.0,
        r if r <= 5.0 => 5.0,
        _ => 10.0,
    };
    factor * power
}

/// Multiples of a nice step within `[low, high]`.
pub(crate) fn nice_ticks(low: f64, high: f64, n: usize) -> Vec<f64> {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return vec![low];
    }
    let step = nice_step(span, n);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Widens a range to multiples of its nice step, so that the outermost ticks are its edges.
pub(crate) fn nice_range(low: f64, high: f64, n: usize) -> (f64, f64) {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return (low, low + 1.0);
    }
    let step = nice_step(span, n);
    ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
}

/// Powers of ten within `[low, high]`, with 2 and 5 between them where there are few.
pub(crate) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let factors: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let stride = ((decades / 6.0).ceil() as usize).max(1);
    (first..=last)
        .step_by(stride)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)))
        .filter(|v| *v >= low * 0.999 && *v <= high * 1.001)
        .collect()
}

/// Widens a range to powers of ten, or to 1-2-5 steps where it is narrow.
pub(crate) fn nice_log_range(low: f64, high: f64) -> (f64, f64) {
    let steps = |v: f64, is_up: bool| {
        let power = 10_f64.powf(v.log10().floor());
        let options = [1.0, 2.0, 5.0, 10.0].map(|f| f * power);
        if is_up {
            options.into_iter().find(|o| *o >= v * 0.999).unwrap_or(options[3])
        } else {
            options.into_iter().rev().find(|o| *o <= v * 1.001).unwrap_or(options[0])
        }
    };
    let (low, high) = (steps(low, false), steps(high, true));
    if high > low { (low, high) } else { (low, low * 10.0) }
}

/// Ticks of time in seconds: steps that a clock has.
pub(crate) fn time_ticks(low: f64, high: f64, n: usize) -> Vec<(f64, String)> {
    const STEPS: [f64; 20] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0,
        3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0,
    ];
    let raw = (high - low) / n.max(1) as f64;
    let step = STEPS.into_iter().find(|s| *s >= raw).unwrap_or_else(|| nice_step(high - low, n));
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).map(|t| (t, format::seconds(t))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_nice() {
        let check = |low, high, n, expected: &[f64]| {
            let ticks = nice_ticks(low, high, n);
            assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
            assert!(ticks.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{ticks:?}");
        };
        check(0.0, 50.0, 5, &[0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        check(0.0, 43.0, 5, &[0.0, 10.0, 20.0, 30.0, 40.0]);
        check(-7.0, 3.0, 5, &[-6.0, -4.0, -2.0, 0.0, 2.0]);
        check(0.0, 0.3, 3, &[0.0, 0.1, 0.2, 0.3]);
        check(5.0, 5.0, 3, &[5.0]);
    }

    #[test]
    fn half_is_as_far_as_twice_and_ticks_are_round() {
        let percent = Measure::Effect(EffectStyle::Percent);
        let labels = |values: &[f64], measure: &Measure| -> Vec<String> {
            let scale = measure.scale(values, (true, Some((0.97, 1.03))), (0.0, 100.0));
            measure.ticks(&scale, 5).into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(&[0.92, 1.04], &percent), ["−5 %", "0 %"]);
        assert_eq!(labels(&[0.45, 1.9], &percent), ["−50 %", "−20 %", "0 %", "+25 %", "+100 %"]);
        let ratio = Measure::Effect(EffectStyle::Ratio);
        assert_eq!(
            labels(&[0.02, 3.0], &ratio),
            ["0.02×", "0.05×", "0.1×", "0.2×", "0.5×", "1×", "2×"]
        );
        let scale = ratio.scale(&[0.5, 2.0], (true, None), (0.0, 100.0));
        let apart = |value: f64| (scale.at(value) - scale.at(1.0)).abs();
        assert!((apart(0.5) - apart(2.0)).abs() < 1e-9);
        let none = ratio.scale(&[], (true, Some((0.97, 1.03))), (0.0, 100.0));
        assert!(none.at(1.0).is_finite());
    }

    #[test]
    fn ranges_end_on_ticks() {
        let check = |low, high, expected: (f64, f64)| {
            assert_eq!(nice_range(low, high, 5), expected);
        };
        check(0.0, 43.0, (0.0, 50.0));
        check(-7.0, 3.0, (-8.0, 4.0));
        check(0.0, 50.0, (0.0, 50.0));
        check(0.0, 0.0, (0.0, 1.0));
    }

    #[test]
    fn log_ticks_are_powers_of_ten() {
        let check = |low, high, expected: &[f64]| {
            let ticks = log_ticks(low, high);
            assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
            assert!(ticks.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-9));
        };
        check(100.0, 1000.0, &[100.0, 200.0, 500.0, 1000.0]);
        check(10.0, 1e5, &[10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!(nice_log_range(130.0, 1_900.0), (100.0, 2_000.0));
        assert_eq!(nice_log_range(200.0, 200.0), (200.0, 2_000.0));
    }

    #[test]
    fn scales_map_edges_to_edges_and_clamp() {
        let y = Scale::linear(0.0, 10.0, 100.0, 0.0);
        assert_eq!((y.at(0.0), y.at(5.0), y.at(10.0), y.at(99.0)), (100.0, 50.0, 0.0, 0.0));
        let log = Scale::log(10.0, 1000.0, 0.0, 2.0);
        assert!((log.at(100.0) - 1.0).abs() < 1e-9);
        assert_eq!(log.at(0.0), 0.0);
        assert!(Scale::linear(3.0, 3.0, 0.0, 1.0).at(3.0).is_finite());
    }

    #[test]
    fn time_ticks_are_those_of_a_clock() {
        let labels = |low, high| -> Vec<String> {
            time_ticks(low, high, 6).into_iter().map(|(_, l)| l).collect()
        };
        assert_eq!(labels(-5.0, 30.0), ["0 s", "10 s", "20 s", "30 s"]);
        assert_eq!(labels(0.0, 1800.0)[..2], ["0 s", "5 min"]);
    }
}
