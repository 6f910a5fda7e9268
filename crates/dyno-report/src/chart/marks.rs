//! Charts with one mark for each variant and step: grouped bars, lines by load, effects.
//!
//! Every mark has its bounds as an error bar and each repetition as a dot. A mark's `<title>` is
//! what a pointer over it tells, without and with a script.

use super::legend::Legend;
use super::scale::{Scale, nice_log_range, nice_range};
use super::{Frame, circle, open_svg, rect, variant_class, x_labels, y_axis};
use crate::format::Unit;
use crate::markup::{Markup, coordinate, escape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Bars,
    Lines,
    /// Points side by side, around zero.
    Effects,
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
    pub(crate) unit: Unit,
    pub(crate) style: Style,
    /// Whether the y axis is logarithmic; not for bars.
    pub(crate) is_log: bool,
    /// What does not matter, from and to: around zero, on a logarithmic axis around one.
    pub(crate) band: Option<(f64, f64)>,
    /// Fitted lines: a variant, and places on the x axis in [0, 1] with values; for lines.
    pub(crate) curves: Vec<(usize, Vec<(f64, f64)>)>,
    pub(crate) legend: Legend,
    pub(crate) frame: Frame,
}

#[derive(Clone, Copy, Debug)]
struct Spot {
    /// Its middle.
    x: f64,
    /// The width it may take.
    slot: f64,
}

impl MarksChart {
    pub(crate) fn svg(mut self) -> Markup {
        self.frame = self.legend.fit(self.frame);
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
        self.legend.draw(&mut out);
        self.background(&mut out, &y, &centres);
        for variant in self.variants() {
            self.variant(&mut out, variant, &y, &centres);
        }
        out.raw("</svg>");
        out
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
        let band = (self.is_log, self.band);
        scale(&values, &self.unit, band, (frame.bottom, frame.top))
    }

    fn centres(&self) -> Vec<f64> {
        let frame = &self.frame;
        let n = self.steps.len().max(1) as f64;
        (0..self.steps.len())
            .map(|i| match self.style {
                Style::Lines => self.at_place(self.places.get(i).copied().unwrap_or(0.5)),
                Style::Bars | Style::Effects => {
                    frame.left + (i as f64 + 0.5) * frame.plot_width() / n
                }
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
        let ticks: Vec<(f64, String)> =
            y.ticks(5).into_iter().map(|v| (y.at(v), self.unit.tick(v))).collect();
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
    }

    /// Distance between neighbouring marks of one step, and that of the first from the middle.
    fn slot(&self) -> (f64, f64) {
        let n = self.variants().len().max(1) as f64;
        let room = self.frame.plot_width() / self.steps.len().max(1) as f64;
        let (share, most) = match self.style {
            Style::Lines => return (0.0, 0.0),
            Style::Bars => (0.72, 46.0),
            Style::Effects => (0.66, 22.0),
        };
        let slot = (room * share / n).min(most);
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
            self.mark(out, mark, Spot { x, slot }, y);
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

    fn mark(&self, out: &mut Markup, mark: &Mark, spot: Spot, y: &Scale) {
        let Spot { x, slot } = spot;
        out.raw(format_args!(
            "<g class=\"k\" data-step=\"{}\" data-y=\"{}\">",
            mark.step,
            numbers(mark)
        ));
        out.raw(format_args!("<title>{}</title>", escape(&mark.tip)));
        let top = y.at(mark.value);
        if self.style == Style::Bars {
            let width = (slot - 2.0).max(1.0);
            let base = y.at(0.0);
            let corner = (x - width / 2.0, top.min(base));
            rect(out, corner, (width, (base - top).abs().max(0.5)), "f");
        }
        let room = if self.style == Style::Lines { 9.0 } else { (slot * 0.55).min(16.0) };
        dots(out, mark, room, |value, shift| (x + shift, y.at(value)));
        let class = if self.style == Style::Bars { "eb" } else { "eb own" };
        error_bar(out, mark, y, (x, 3.5), (true, class));
        if self.style != Style::Bars {
            let radius = if self.variants().len() > 6 { "2.8" } else { "3.6" };
            circle(out, (x, top), radius, "p");
        }
        out.raw("</g>");
    }
}

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

/// From zero if it is linear; a band has some room around it then.
pub(crate) fn scale(
    values: &[f64],
    unit: &Unit,
    (is_log, band): (bool, Option<(f64, f64)>),
    (from, to): (f64, f64),
) -> Scale {
    const ROOM: f64 = 1.5;
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let low = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    if is_log && low.is_finite() {
        let (band_low, band_high) = band.unwrap_or((low, low));
        let (low, high) = nice_log_range(low.min(band_low), high.max(low).max(band_high));
        return Scale::log(low, high, from, to);
    }
    let low = values.iter().copied().fold(0.0, f64::min);
    let (band_low, band_high) = band.unwrap_or((0.0, 0.0));
    let (low, high) = (low.min(band_low * ROOM), high.max(band_high * ROOM).max(0.0));
    let (low, high) = nice_range(low, high, 5);
    // An effect below −100 % is no effect.
    let low = if *unit == Unit::Effect { low.max(-100.0) } else { low };
    Scale::linear(low, high, from, to)
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
    use expect_test::expect;

    use super::*;

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
            unit: Unit::PerSecond,
            style,
            is_log: false,
            band: None,
            curves: Vec::new(),
            legend: Legend::none(),
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
    fn a_bar_has_its_bounds_its_dots_and_its_text() {
        let svg = chart(Style::Bars).svg().replace("><", ">\n<");
        expect![[r#"
            <svg viewBox="0 0 200 136" class="ch" role="img" aria-label="Throughput &lt;by&gt; step. a &quot;b&quot; 80/s" data-marks="93 155" data-top="10" data-bottom="110" tabindex="0">
            <path d="M62 110H186M62 90H186M62 70H186M62 50H186M62 30H186M62 10H186" class="g"/>
            <text x="54" y="114" class="a e">0/s</text>
            <text x="54" y="94" class="a e">20/s</text>
            <text x="54" y="74" class="a e">40/s</text>
            <text x="54" y="54" class="a e">60/s</text>
            <text x="54" y="34" class="a e">80/s</text>
            <text x="54" y="14" class="a e">100/s</text>
            <path d="M62 110H186" class="base"/>
            <text x="93" y="128" class="a m">1</text>
            <text x="155" y="128" class="a m">2</text>
            <g class="v1 c1">
            <g class="k" data-step="0" data-y="80 70 90 75 85">
            <title>a &quot;b&quot; 80/s</title>
            <rect x="71.7" y="30" width="42.6" height="80" rx="2" class="f"/>
            <circle cx="85" cy="35" r="1.8" class="dot"/>
            <circle cx="101" cy="25" r="1.8" class="dot"/>
            <path d="M93 40V20M89.5 40H96.5M89.5 20H96.5" class="eb"/>
            </g>
            </g>
            </svg>"#]].assert_eq(&svg);
    }

    #[test]
    fn effects_are_drawn_around_zero_with_a_band() {
        let mut chart = chart(Style::Effects);
        chart.unit = Unit::Effect;
        chart.band = Some((-3.0, 3.0));
        chart.marks[0].value = -8.0;
        chart.marks[0].bounds = Some((-9.0, -7.0));
        chart.marks[0].dots = Vec::new();
        let svg = chart.svg().replace("><", ">\n<");
        expect![[r#"
            <svg viewBox="0 0 200 136" class="ch" role="img" aria-label="Throughput &lt;by&gt; step. a &quot;b&quot; 80/s" data-marks="93 155" data-top="10" data-bottom="110" tabindex="0">
            <rect x="62" y="23.3" width="124" height="40" class="band"/>
            <path d="M62 110H186M62 76.7H186M62 43.3H186M62 10H186" class="g"/>
            <text x="54" y="114" class="a e">−10 %</text>
            <text x="54" y="80.7" class="a e">−5 %</text>
            <text x="54" y="47.3" class="a e">0 %</text>
            <text x="54" y="14" class="a e">+5 %</text>
            <path d="M62 43.3H186" class="base"/>
            <text x="93" y="128" class="a m">1</text>
            <text x="155" y="128" class="a m">2</text>
            <g class="v1 c1">
            <g class="k" data-step="0" data-y="-8 -9 -7">
            <title>a &quot;b&quot; 80/s</title>
            <path d="M93 103.3V90M89.5 103.3H96.5M89.5 90H96.5" class="eb own"/>
            <circle cx="93" cy="96.7" r="3.6" class="p"/>
            </g>
            </g>
            </svg>"#]].assert_eq(&svg);
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
    fn an_axis_of_effects_ends_at_nothing() {
        let mut chart = chart(Style::Effects);
        chart.unit = Unit::Effect;
        chart.marks[0].value = 250.0;
        chart.marks[0].bounds = Some((-99.0, 900.0));
        assert_eq!(chart.y_scale().low, -100.0);
        chart.unit = Unit::PerSecond;
        assert_eq!(chart.y_scale().low, -200.0);
    }

    #[test]
    fn steps_are_placed_by_their_load() {
        assert_eq!(places(&[1.0, 2.0, 4.0, 8.0, 16.0]), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(places(&[100.0, 150.0, 200.0]), [0.0, 0.5, 1.0]);
        assert_eq!(places(&[5.0, 5.0, 5.0]), [0.0, 0.5, 1.0]);
        assert_eq!(places(&[7.0]), [0.5]);
    }
}
