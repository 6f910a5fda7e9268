//! Charts with one mark for each variant and step: lines by load, effects. No bars: an estimate is a place on an
//! axis, and what lies below it means nothing.
//!
//! Every mark has its bounds as an error bar and each repetition as a dot. A mark's `<title>` is
//! what a pointer over it tells, without and with a script.

use super::scale::{Measure, Scale};
use super::{Frame, circle, open_svg, rect, text, variant_class, x_labels, y_axis};
use crate::markup::{Markup, coordinate, escape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A line through the steps of a variant.
    Lines,
    /// Points side by side: nothing lies between two steps.
    Points,
}

/// One variant at one step.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) variant: usize,
    /// Place of the step among [`MarksChart::steps`].
    pub(crate) step: usize,
    pub(crate) value: f64,
    pub(crate) bounds: Option<(f64, f64)>,
    /// Each repetition's own value.
    pub(crate) dots: Vec<f64>,
    /// What it says about itself: name, value, bounds, repetitions.
    pub(crate) tip: String,
}

impl Mark {
    /// The same with all its numbers in another measure.
    pub(crate) fn map(self, measure: impl Fn(f64) -> f64) -> Mark {
        Mark {
            value: measure(self.value),
            bounds: self.bounds.map(|(low, high)| (measure(low), measure(high))),
            dots: self.dots.into_iter().map(measure).collect(),
            ..self
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct MarksChart {
    pub(crate) label: String,
    pub(crate) steps: Vec<String>,
    /// Places of the steps on the x axis, in [0, 1]; for lines.
    pub(crate) places: Vec<f64>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) measure: Measure,
    pub(crate) style: Style,
    pub(crate) is_log: bool,
    /// What does not matter, from and to: around zero, on a logarithmic axis around one.
    pub(crate) band: Option<(f64, f64)>,
    /// Fitted lines: a variant, and places on the x axis in [0, 1] with values; for lines.
    pub(crate) curves: Vec<(usize, Vec<(f64, f64)>)>,
    /// What is written at the ends of lines, by variant; empty for a chart below a key of all variants.
    pub(crate) names: Vec<String>,
    /// What the x axis is of, at its end; may be empty.
    pub(crate) across: String,
    pub(crate) frame: Frame,
}

impl MarksChart {
    pub(crate) fn svg(&self) -> Markup {
        let mut out = Markup::new();
        let frame = &self.frame;
        let y = self.y_scale();
        let centres = self.centres();
        let xs: Vec<String> = centres.iter().map(|x| coordinate(*x)).collect();
        let attributes = format!(
            " data-marks=\"{}\" data-top=\"{}\" data-bottom=\"{}\" tabindex=\"0\"",
            xs.join(" "),
            coordinate(frame.top),
            coordinate(frame.bottom)
        );
        open_svg(&mut out, frame, &described(&self.label, self.marks.iter()), &attributes);
        self.background(&mut out, &y, &centres);
        for variant in self.variants() {
            self.variant(&mut out, variant, &y, &centres);
        }
        self.names(&mut out, &y, &centres);
        out.raw("</svg>");
        out
    }

    /// The name of each line behind its last mark, moved apart where they would cover each other.
    fn names(&self, out: &mut Markup, y: &Scale, centres: &[f64]) {
        const APART: f64 = 14.0;
        let last = |(variant, name): (usize, &String)| {
            let own = self.marks.iter().filter(|m| m.variant == variant && m.value.is_finite());
            let mark = own.max_by_key(|m| m.step)?;
            let x = centres.get(mark.step)? + 2.0 * BESIDE + 4.0;
            Some((x, y.at(mark.value) + 4.0, variant, name.clone()))
        };
        let mut all: Vec<_> = self.names.iter().enumerate().filter_map(last).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        for i in 1..all.len() {
            all[i].1 = all[i].1.max(all[i - 1].1 + APART);
        }
        // What was pushed below the plot pushes back.
        let mut most = self.frame.bottom;
        for one in all.iter_mut().rev() {
            one.1 = one.1.min(most);
            most = one.1 - APART;
        }
        for (x, y, variant, name) in all {
            out.raw(format_args!(
                "<text x=\"{}\" y=\"{}\" class=\"end {}\"><tspan class=\"dt\">● </tspan>{}</text>",
                coordinate(x),
                coordinate(y),
                variant_class(variant),
                escape(&name)
            ));
        }
    }

    fn variants(&self) -> Vec<usize> {
        crate::words::sorted(self.marks.iter().map(|m| m.variant))
    }

    fn y_scale(&self) -> Scale {
        let frame = &self.frame;
        let marks: Vec<&Mark> = self.marks.iter().collect();
        let mut values = in_sight(&marks, self.is_log);
        // A fitted line is above what was measured where it does not fit.
        let fitted =
            self.curves.iter().flat_map(|(_, curve)| curve.iter().map(|(_, value)| *value));
        let most = values.iter().copied().fold(0.0, f64::max) * REACH;
        values.extend(fitted.filter(|value| *value > 0.0 && *value <= most));
        self.measure.scale(&values, (self.is_log, self.band), (frame.bottom, frame.top))
    }

    fn centres(&self) -> Vec<f64> {
        let frame = &self.frame;
        let n = self.steps.len().max(1) as f64;
        (0..self.steps.len())
            .map(|i| match self.style {
                Style::Lines => self.at_place(self.places.get(i).copied().unwrap_or(0.5)),
                Style::Points => frame.left + (i as f64 + 0.5) * frame.plot_width() / n,
            })
            .collect()
    }

    /// The x coordinate of a place in [0, 1].
    fn at_place(&self, place: f64) -> f64 {
        let inset = 22.0;
        self.frame.left + inset + place * (self.frame.plot_width() - 2.0 * inset)
    }

    fn background(&self, out: &mut Markup, y: &Scale, centres: &[f64]) {
        let frame = &self.frame;
        if let Some((low, high)) = self.band {
            let (top, bottom) = (y.at(high), y.at(low));
            rect(out, (frame.left, top), (frame.plot_width(), bottom - top), "band");
        }
        let ticks = self.measure.ticks(y, 5).into_iter();
        let ticks: Vec<(f64, String)> = ticks.map(|(v, label)| (y.at(v), label)).collect();
        y_axis(out, frame, &ticks);
        let origin = if self.is_log { self.band.map(|_| 1.0) } else { Some(0.0) };
        if let Some(origin) = origin {
            let zero = coordinate(y.at(origin));
            let (left, right) = (coordinate(frame.left), coordinate(frame.right));
            out.raw(format_args!("<path d=\"M{left} {zero}H{right}\" class=\"base\"/>"));
        }
        let labels: Vec<(f64, String)> =
            centres.iter().copied().zip(self.steps.iter().cloned()).collect();
        x_labels(out, &self.frame, &labels, 3.0);
        if !self.across.is_empty() {
            let across = format!("{} →", self.across);
            text(out, frame.right, frame.bottom + 33.0, "a e", &across);
        }
    }

    /// Distance between neighbouring marks of one step, and that of the first from the middle.
    fn slot(&self) -> (f64, f64) {
        let n = self.variants().len().max(1) as f64;
        let room = self.frame.plot_width() / self.steps.len().max(1) as f64;
        let most = if self.style == Style::Lines { BESIDE } else { 22.0 };
        let slot = (room * 0.66 / n).min(most);
        (slot, -slot * (n - 1.0) / 2.0)
    }

    fn variant(&self, out: &mut Markup, variant: usize, y: &Scale, centres: &[f64]) {
        let place = self.variants().iter().position(|v| *v == variant).unwrap_or(0);
        let (slot, first) = self.slot();
        let shift = first + slot * place as f64;
        out.raw(format_args!("<g class=\"{}\">", variant_class(variant)));
        let marks = self.marks.iter().filter(|m| m.variant == variant && m.value.is_finite());
        let marks = marks.filter_map(|m| Some((m, centres.get(m.step)? + shift)));
        let marks: Vec<(&Mark, f64)> = marks.collect();
        if self.style == Style::Lines {
            let points = joined(marks.iter().map(|(m, x)| (*x, y.at(m.value))));
            out.raw(format_args!("<path d=\"M{points}\" class=\"l\"/>"));
            self.curve(out, variant, y);
        }
        for (mark, x) in marks {
            self.mark(out, mark, x, y);
        }
        out.raw("</g>");
    }

    fn curve(&self, out: &mut Markup, variant: usize, y: &Scale) {
        for (_, curve) in self.curves.iter().filter(|(of, _)| *of == variant) {
            let finite = curve.iter().filter(|(_, value)| value.is_finite());
            let points = joined(finite.map(|(x, value)| (self.at_place(*x), y.at(*value))));
            if !points.is_empty() {
                out.raw(format_args!("<path d=\"M{points}\" class=\"l fit\"/>"));
            }
        }
    }

    fn mark(&self, out: &mut Markup, mark: &Mark, x: f64, y: &Scale) {
        out.raw(format_args!(
            "<g class=\"k\" data-step=\"{}\" data-y=\"{}\">",
            mark.step,
            numbers(mark)
        ));
        out.raw(format_args!("<title>{}</title>", escape(&mark.tip)));
        // Beside the mean, or it would hide them.
        let beside = self.slot().0.min(BESIDE) * 0.7;
        dots(out, mark, 2.0, |value, shift| (x - beside + shift, y.at(value)));
        error_bar(out, mark, y, (x, 3.5), (true, "eb own"));
        let radius = if self.variants().len() > 6 { "2.8" } else { "3.6" };
        circle(out, (x, y.at(mark.value)), radius, "p");
        out.raw("</g>");
    }
}

/// Distance of neighbouring marks of a step at most, where lines join steps.
const BESIDE: f64 = 9.0;

fn joined(points: impl Iterator<Item = (f64, f64)>) -> String {
    let points = points.map(|(x, y)| format!("{} {}", coordinate(x), coordinate(y)));
    points.collect::<Vec<String>>().join("L")
}

/// How many times the largest value or repetition bounds may reach before a chart leaves them out of
/// sight: with two repetitions bounds may be a thousand times as far, and nothing else would be seen.
const REACH: f64 = 4.0;

const REACH_LOG: f64 = 30.0;

/// What an axis has to show: all values and repetitions, and bounds as far as they do not press the
/// rest flat.
pub(crate) fn in_sight(marks: &[&Mark], is_log: bool) -> Vec<f64> {
    let own = marks.iter().flat_map(|m| m.dots.iter().copied().chain([m.value]));
    let mut values: Vec<f64> = own.filter(|v| v.is_finite()).collect();
    let (least, most) = if is_log {
        let positive = || values.iter().copied().filter(|v| *v > 0.0);
        let (low, high) =
            (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
        (low / REACH_LOG, high * REACH_LOG)
    } else {
        let size = values.iter().fold(0.0_f64, |size, v| size.max(v.abs())) * REACH;
        (-size, size)
    };
    let bounds = marks.iter().filter_map(|m| m.bounds).flat_map(|(low, high)| [low, high]);
    values.extend(bounds.filter(|v| v.is_finite()).map(|v| v.max(least).min(most)));
    values
}

pub(crate) fn described<'a>(label: &str, marks: impl Iterator<Item = &'a Mark>) -> String {
    let mut all = marks.map(|mark| mark.tip.as_str());
    let described: Vec<&str> = all.by_ref().take(DESCRIBED_MOST).collect();
    let more = all.count();
    match (described.is_empty(), more) {
        (true, _) => label.to_owned(),
        (false, 0) => format!("{label}. {}", described.join("; ")),
        (false, more) => format!("{label}. {}; and {more} more", described.join("; ")),
    }
}

/// Marks that a chart's label holds, at most.
const DESCRIBED_MOST: usize = 6;

/// The numbers of a mark as a script reads them: value, bounds, and each repetition.
pub(crate) fn numbers(mark: &Mark) -> String {
    let (low, high) = mark.bounds.unwrap_or((f64::NAN, f64::NAN));
    let all = [mark.value, low, high].into_iter().chain(mark.dots.iter().copied());
    all.map(exact).collect::<Vec<_>>().join(" ")
}

/// A number with six digits; `-` for none.
fn exact(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let power = 10_f64.powi(5 - value.abs().log10().floor() as i32);
    let rounded = (value * power).round() / power;
    if rounded.is_finite() { rounded.to_string() } else { value.to_string() }
}

/// Whether an end of bounds lies on the axis; one beyond it has no cap: its bar runs on.
fn has_cap(end: f64, scale: &Scale) -> bool {
    (scale.low..=scale.high).contains(&end)
}

/// The line between the bounds of a mark, from bottom to top or from left to right, in the middle of what is as wide
/// as its caps: twice the reach.
pub(crate) fn error_bar(
    out: &mut Markup,
    mark: &Mark,
    scale: &Scale,
    (middle, reach): (f64, f64),
    (is_upright, class): (bool, &str),
) {
    let Some((low, high)) = mark.bounds else { return };
    let [before, middle, after] = [middle - reach, middle, middle + reach].map(coordinate);
    let point = |along: f64, aside: &str| match is_upright {
        true => format!("{aside} {}", coordinate(along)),
        false => format!("{} {aside}", coordinate(along)),
    };
    let (along, aside, inwards) = if is_upright { ('V', 'H', 5.0) } else { ('H', 'V', -5.0) };
    let cap = |end: f64| {
        let tip = scale.at(end);
        if has_cap(end, scale) {
            return format!("M{}{aside}{after}", point(tip, &before));
        }
        // An arrow: it goes on beyond the chart.
        let foot = if end > scale.high { tip + inwards } else { tip - inwards };
        format!("M{}L{}L{}", point(foot, &before), point(tip, &middle), point(foot, &after))
    };
    let (from, to) = (point(scale.at(low), &middle), coordinate(scale.at(high)));
    let caps = cap(low) + &cap(high);
    out.raw(format_args!("<path d=\"M{from}{along}{to}{caps}\" class=\"{class}\"/>"));
}

/// One dot for each repetition, side by side so that equal values do not hide each other.
pub(crate) fn dots(out: &mut Markup, mark: &Mark, room: f64, at: impl Fn(f64, f64) -> (f64, f64)) {
    let n = mark.dots.len();
    for (i, value) in mark.dots.iter().enumerate().filter(|(_, v)| n > 1 && v.is_finite()) {
        let shift = (i as f64 / (n - 1) as f64 - 0.5) * room;
        circle(out, at(*value, shift), "1.8", "dot");
    }
}

/// Places of steps on a log2-like axis, in [0, 1]; linear where the values span less than a factor
/// of eight; evenly spaced where they do not rise.
pub(crate) fn places(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    if n <= 1 {
        return vec![0.5; n];
    }
    let rises = values.windows(2).all(|w| w[1] > w[0]) && values[0] > 0.0;
    if !rises {
        return (0..n).map(|i| i as f64 / (n - 1) as f64).collect();
    }
    let is_wide = values[n - 1] / values[0] >= 8.0;
    let stretch = |v: f64| if is_wide { v.log2() } else { v };
    let (low, high) = (stretch(values[0]), stretch(values[n - 1]));
    values.iter().map(|v| (stretch(*v) - low) / (high - low)).collect()
}

#[cfg(test)]
mod tests {
    use dyno_analysis::numbers::EffectStyle;

    use super::*;
    use crate::format::Unit;

    fn chart(style: Style) -> MarksChart {
        MarksChart {
            label: "Throughput <by> step".to_owned(),
            steps: vec!["1".to_owned(), "2".to_owned()],
            places: vec![0.0, 1.0],
            marks: vec![Mark {
                variant: 1,
                step: 0,
                value: 80.0,
                bounds: Some((70.0, 90.0)),
                dots: vec![75.0, 85.0],
                tip: "a \"b\" 80/s".to_owned(),
            }],
            measure: Measure::Value(Unit::PerSecond),
            style,
            is_log: false,
            band: None,
            curves: Vec::new(),
            names: Vec::new(),
            across: String::new(),
            frame: Frame::new(200.0, 136.0),
        }
    }

    #[test]
    fn wild_bounds_do_not_press_the_rest_flat() {
        let mark = |value: f64, bounds: (f64, f64)| Mark {
            variant: 0,
            step: 0,
            value,
            bounds: Some(bounds),
            dots: vec![value * 0.5, value * 2.0],
            tip: String::new(),
        };
        let check = |is_log: bool, bounds: (f64, f64), expected: (f64, f64)| {
            let marks = [mark(100.0, bounds)];
            let all = in_sight(&[&marks[0]], is_log);
            let low = all.iter().copied().fold(f64::INFINITY, f64::min);
            let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!((low, high), expected, "{bounds:?}");
        };
        check(false, (20.0, 300.0), (20.0, 300.0));
        check(false, (0.1, 44_000.0), (0.1, 800.0));
        check(false, (-9_000.0, 44_000.0), (-800.0, 800.0));
        check(true, (10.0, 900.0), (10.0, 900.0));
        check(true, (1e-6, 1e9), (50.0 / 30.0, 6_000.0));
        let scale = Scale::linear(0.0, 800.0, 100.0, 0.0);
        assert!(has_cap(0.1, &scale) && !has_cap(44_000.0, &scale));
    }

    #[test]
    fn marks_of_a_step_stand_beside_each_other_and_lines_have_names() {
        let mut chart = chart(Style::Lines);
        chart.names = vec!["a<b".to_owned(), "c".to_owned()];
        let other = Mark { variant: 0, ..chart.marks[0].clone() };
        chart.marks.push(other);
        let svg = chart.svg();
        // Nine units apart around the step, whose own place is 84.
        for part in ["cx=\"79.5\" cy=\"30\" r=\"3.6\"", "cx=\"88.5\" cy=\"30\" r=\"3.6\""] {
            assert!(svg.contains(part), "{}", &*svg);
        }
        let names =
            ["y=\"34\" class=\"end v0 c0\">", "● </tspan>a&lt;b<", "y=\"48\" class=\"end v1 c1\">"];
        assert!(names.iter().all(|name| svg.contains(name)), "{}", &*svg);
        assert!(!svg.contains("<rect"));
    }

    #[test]
    fn effects_have_a_band_around_one() {
        let mut chart = chart(Style::Points);
        chart.measure = Measure::Effect(EffectStyle::Percent);
        (chart.is_log, chart.band) = (true, Some((0.97, 1.03)));
        chart.marks[0] = chart.marks[0].clone().map(|value| 1.0 - value / 1000.0);
        let svg = chart.svg();
        assert!(svg.contains("class=\"band\"") && svg.contains(">−5 %</text>"), "{}", &*svg);
        assert!(svg.contains("class=\"base\"") && svg.contains(">0 %</text>"), "{}", &*svg);
    }

    #[test]
    fn a_fitted_line_goes_through_its_places() {
        let mut chart = chart(Style::Lines);
        chart.curves = vec![(1, vec![(0.0, 0.0), (1.0, 100.0)]), (0, vec![(0.0, 5.0)])];
        let svg = chart.svg().finish();
        assert!(svg.contains("<path d=\"M84 110L164 10\" class=\"l fit\"/>"), "{svg}");
        assert_eq!(svg.matches(" fit").count(), 1);
    }

    #[test]
    fn a_fitted_line_is_not_cut_where_it_is_above_what_was_measured() {
        let mut chart = chart(Style::Lines);
        let top = |chart: &MarksChart| chart.y_scale().high;
        assert_eq!(top(&chart), 100.0);
        chart.curves = vec![(1, vec![(0.0, 10.0), (1.0, 104.6)])];
        assert_eq!(top(&chart), 150.0);
        // A wild one does not press the rest flat.
        chart.curves = vec![(1, vec![(0.0, 10.0), (1.0, 1e9)])];
        assert_eq!(top(&chart), 100.0);
    }

    #[test]
    fn steps_are_placed_by_their_load() {
        assert_eq!(places(&[1.0, 2.0, 4.0, 8.0, 16.0]), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(places(&[100.0, 150.0, 200.0]), [0.0, 0.5, 1.0]);
        assert_eq!(places(&[5.0, 5.0, 5.0]), [0.0, 0.5, 1.0]);
        assert_eq!(places(&[7.0]), [0.5]);
    }
}
