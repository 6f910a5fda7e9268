//! Line charts: one-second series and response time spectra.
//!
//! The plot is an inner SVG whose `viewBox` is in whole units (seconds, or thousandths of a nine)
//! by two thousand steps of height. So its paths are short integers, a script zooms by changing the
//! `viewBox` alone and reads values back from the paths: numbers are in the file only once.

use super::picture::Picture;
use super::reduce::{Point, reduce};
use super::scale::{Kind, Scale, nice_log_range, nice_range, time_ticks};
use super::{Frame, open_svg, text, variant_class, x_labels, y_axis};
use crate::format::Unit;
use crate::markup::{Markup, coordinate, escape};

/// Height of a plot in its own units.
const STEPS_Y: f64 = 2000.0;

/// A time axis below this has tenths of a second.
pub(crate) const SHORT_S: f64 = 10.0;

/// What the x axis means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Across {
    /// Seconds since the measurement phase began; before zero is warm-up.
    Seconds {
        from: f64,
        /// End of the last second.
        to: f64,
    },
    /// Times, by the logarithm of their microseconds to base 10.
    Times { from: f64, to: f64 },
    /// Quantiles by their nines: x = −log10(1 − q).
    Nines {
        to: f64,
        /// Place of the longest time, behind the last quantile.
        longest: f64,
    },
}

impl Across {
    fn range(self) -> (f64, f64) {
        match self {
            Across::Seconds { from, to } => (from, to.max(from + 1.0)),
            Across::Times { from, to } => (from, to.max(from + 0.1)),
            Across::Nines { to, longest } => (0.0, longest.max(to)),
        }
    }

    /// Units of the plot in one unit of x.
    fn factor(self) -> f64 {
        match self {
            // Of what is short there are tenths of a second.
            Across::Seconds { from, to } if to - from < SHORT_S => 10.0,
            Across::Seconds { .. } => 1.0,
            Across::Times { .. } | Across::Nines { .. } => 1000.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Across::Seconds { .. } => "seconds",
            Across::Times { .. } => "times",
            Across::Nines { .. } => "nines",
        }
    }

    fn ticks(self) -> Vec<(f64, String)> {
        match self {
            Across::Seconds { from, to } => time_ticks(from, to, 6),
            Across::Times { from, to } => log_time_ticks(from, to),
            Across::Nines { to, longest } => NINES
                .iter()
                .map(|(q, label)| (nines(*q), (*label).to_owned()))
                .filter(|(x, _)| *x <= to + 1e-9)
                .chain((longest > to).then(|| (longest, "max".to_owned())))
                .collect(),
        }
    }
}

const NINES: [(f64, &str); 8] = [
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.95, "95"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
];

/// Place of a quantile on an axis of nines; the maximum (quantile 1) has none.
pub(crate) fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// Ticks at 1, 2 and 5 times the powers of ten, or at those alone where they are many.
fn log_time_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    let digits: &[f64] = if to - from < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = from.floor() as i32..=to.ceil() as i32;
    let all = powers.flat_map(|power| digits.iter().map(move |d| d * 10_f64.powi(power)));
    let label = |us: f64| (us.log10(), Unit::Micros.tick(us));
    all.map(label).filter(|(x, _)| *x >= from - 1e-9 && *x <= to + 1e-9).collect()
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A line through points; breaks where values are missing.
    Line(Vec<Point>),
    /// A level from each point on, this far: what is known of a second is known of all of it.
    Steps(Vec<Point>, f64),
    /// The area between a lower and an upper line.
    Area(Vec<Point>, Vec<Point>),
    /// The same between levels.
    StepArea(Vec<Point>, Vec<Point>),
    Marks(Vec<Point>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Its classes: colour and weight.
    pub(crate) class: String,
    /// Its name where values are read; none for those in the background.
    pub(crate) name: Option<String>,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) at: f64,
    /// How long it is; zero for a moment.
    pub(crate) length: f64,
    pub(crate) class: String,
    /// Its own strip at the top of the plot among so many, where full height would cover the lines.
    pub(crate) lane: Option<(usize, usize)>,
    /// What it tells a pointer.
    pub(crate) title: String,
}

/// Height of all lanes of moments together, and of a lane at most.
const LANES: f64 = 360.0;
const LANE_MOST: f64 = 60.0;

impl Moment {
    fn draw(&self, out: &mut Markup, place: &dyn Fn(f64) -> f64) {
        let is_long = self.length > 0.0;
        let from = coordinate(place(self.at));
        let to = coordinate(place(self.at + self.length));
        let (top, bottom) = match self.lane {
            Some((lane, of)) => {
                let height = (LANES / of.max(1) as f64).min(LANE_MOST);
                (lane as f64 * height, (lane + 1) as f64 * height * 0.98)
            }
            None => (0.0, STEPS_Y),
        };
        let (top, bottom) = (coordinate(top), coordinate(bottom));
        let area = match is_long {
            true => format!("M{from} {top}V{bottom}H{to}V{top}z"),
            false => format!("M{from} {top}V{bottom}"),
        };
        let long = match (is_long, self.lane) {
            (false, _) => "",
            (true, None) => " long",
            (true, Some(_)) => " long lane",
        };
        out.raw(format_args!(
            "<path d=\"{area}\" class=\"mo{long} {}\"><title>{}</title></path>",
            self.class,
            escape(&self.title)
        ));
    }
}

/// From this width on the label of a chart holds medians.
const DESCRIBED_FROM: f64 = 500.0;

/// Lines whose medians are part of a chart's label, at most.
const DESCRIBED_MOST: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct LinesChart {
    /// For those who cannot see it.
    pub(crate) label: String,
    /// Charts of one row share their cross hairs and their zoom.
    pub(crate) row: String,
    pub(crate) across: Across,
    pub(crate) unit: Unit,
    pub(crate) is_log: bool,
    /// Smallest and largest value to show; zero is added to a linear axis.
    pub(crate) values: (f64, f64),
    /// The series, those in the background first.
    pub(crate) series: Vec<Series>,
    pub(crate) picture: Option<Picture>,
    pub(crate) moments: Vec<Moment>,
    /// The size.
    pub(crate) frame: Frame,
    pub(crate) max_points: usize,
}

impl LinesChart {
    /// A chart without anything on its plot.
    pub(crate) fn new(across: Across, unit: Unit, values: (f64, f64), frame: Frame) -> LinesChart {
        LinesChart {
            label: String::new(),
            row: String::new(),
            across,
            unit,
            is_log: false,
            values,
            series: Vec::new(),
            picture: None,
            moments: Vec::new(),
            frame,
            max_points: usize::MAX,
        }
    }

    pub(crate) fn svg(&self) -> Markup {
        let mut out = Markup::new();
        let frame = &self.frame;
        let y = self.y_scale();
        open_svg(&mut out, frame, &self.described(), &self.attributes(&y));
        let tick = |v: f64| (self.on_frame(y.at(v)), self.unit.on_axis(v));
        let ticks: Vec<(f64, String)> = y.ticks(4).into_iter().map(tick).collect();
        y_axis(&mut out, frame, &ticks);
        self.x_axis(&mut out);
        self.plot(&mut out, &y);
        if self.values == (0.0, 0.0) {
            let zero = format!("{} throughout", self.unit.show(0.0));
            text(&mut out, frame.left + 8.0, frame.bottom - 10.0, "a", &zero);
        }
        out.raw("</svg>");
        out
    }

    /// The label with the median of each line, for those who cannot see them.
    fn described(&self) -> String {
        let median = |series: &Series| -> Option<String> {
            let (Shape::Line(points) | Shape::Steps(points, _)) = &series.shape else {
                return None;
            };
            let mut values: Vec<f64> =
                points.iter().filter_map(|p| p.1).filter(|v| v.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            let middle = *values.get(values.len() / 2)?;
            Some(format!("{} {}", series.name.as_ref()?, self.unit.show(middle)))
        };
        let is_time = matches!(self.across, Across::Seconds { .. });
        let medians: Vec<String> =
            self.series.iter().filter_map(median).take(DESCRIBED_MOST).collect();
        // Small charts stand in groups of many, and a page holds hundreds of them.
        match medians.is_empty() || !is_time || self.frame.width < DESCRIBED_FROM {
            true => self.label.clone(),
            false => format!("{}. Median: {}", self.label, medians.join(", ")),
        }
    }

    fn y_scale(&self) -> Scale {
        let (low, high) = self.values;
        if self.is_log && low > 0.0 {
            let (low, high) = nice_log_range(low, high);
            return Scale::log(low, high, STEPS_Y, 0.0);
        }
        let (low, high) = nice_range(low.min(0.0), high.max(0.0), 4);
        Scale::linear(low, high, STEPS_Y, 0.0)
    }

    /// From the plot's own units of height to the frame.
    fn on_frame(&self, y: f64) -> f64 {
        self.frame.top + y / STEPS_Y * self.frame.plot_height()
    }

    /// What a script needs to read values back.
    fn attributes(&self, y: &Scale) -> String {
        let (from, to) = self.across.range();
        let frame = &self.frame;
        let heat = self.picture.as_ref();
        let heat = heat.map(|picture| format!(" data-heat=\"{}\"", escape(&picture.name)));
        format!(
            " data-lines=\"{}\" data-row=\"{}\" data-x=\"{from} {to}\" data-y=\"{} {}\"{} \
             data-unit=\"{}\" data-box=\"{} {} {} {}\"{} tabindex=\"0\"",
            self.across.name(),
            escape(&self.row),
            y.low,
            y.high,
            if y.kind == Kind::Log { " data-log=\"\"" } else { "" },
            escape(&unit_code(&self.unit)),
            coordinate(frame.left),
            coordinate(frame.top),
            coordinate(frame.plot_width()),
            coordinate(frame.plot_height()),
            heat.unwrap_or_default(),
        )
    }

    fn x_axis(&self, out: &mut Markup) {
        let (from, to) = self.across.range();
        let x = Scale::linear(from, to, self.frame.left, self.frame.right);
        out.raw("<g class=\"xt\">");
        let labels: Vec<(f64, String)> =
            self.across.ticks().into_iter().map(|(value, label)| (x.at(value), label)).collect();
        x_labels(out, &self.frame, &labels, 4.0);
        out.raw("</g>");
    }

    fn plot(&self, out: &mut Markup, y: &Scale) {
        let frame = &self.frame;
        let (from, to) = self.across.range();
        let factor = self.across.factor();
        let width = ((to - from) * factor).round().max(1.0);
        out.raw(format_args!(
            "<svg class=\"in\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
             viewBox=\"0 0 {width} {STEPS_Y}\" preserveAspectRatio=\"none\">",
            coordinate(frame.left),
            coordinate(frame.top),
            coordinate(frame.plot_width()),
            coordinate(frame.plot_height()),
        ));
        if from < 0.0 && matches!(self.across, Across::Seconds { .. }) {
            let warm_up = (-from * factor).round();
            out.raw(format_args!(
                "<rect width=\"{warm_up}\" height=\"{STEPS_Y}\" class=\"warm\"/>"
            ));
        }
        let place = |x: f64| ((x - from) * factor).round() as i64;
        self.picture(out, y, &place);
        for moment in self.moments.iter().filter(|m| m.at >= from && m.at <= to) {
            moment.draw(out, &|x| (x - from) * factor);
        }
        let height = |v: f64| y.at(v).round() as i64;
        self.series.iter().for_each(|series| self.series(out, series, &place, &height));
        out.raw("</svg>");
    }

    fn picture(&self, out: &mut Markup, y: &Scale, place: &dyn Fn(f64) -> i64) {
        let Some(picture) = &self.picture else { return };
        let (left, right) = (place(picture.across.0), place(picture.across.1));
        let (low, high) = (y.at(picture.values.0), y.at(picture.values.1));
        out.raw(format_args!(
            "<image href=\"{}\" x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"heatmap\" \
             preserveAspectRatio=\"none\"/>",
            picture.address,
            high.round(),
            right - left,
            (low - high).round().max(1.0),
        ));
    }

    fn series(
        &self,
        out: &mut Markup,
        series: &Series,
        place: &dyn Fn(f64) -> i64,
        height: &dyn Fn(f64) -> i64,
    ) {
        let on_plot = |points: &[Point]| -> Vec<(i64, Option<i64>)> {
            let point = |(x, v): Point| (place(x), v.filter(|v| v.is_finite()).map(height));
            reduce(points, self.max_points).into_iter().map(point).collect()
        };
        let path = match &series.shape {
            Shape::Line(points) => line_path(&on_plot(points)),
            Shape::Steps(points, length) => {
                step_path(&on_plot(points), (length * self.across.factor()).round() as i64)
            }
            Shape::Area(low, high) => area_path(&on_plot(low), &on_plot(high)),
            Shape::StepArea(low, high) => {
                area_path(&corners(on_plot(low)), &corners(on_plot(high)))
            }
            Shape::Marks(points) => marks_path(&on_plot(points)),
        };
        if path.is_empty() {
            return;
        }
        let name = series.name.iter().map(|name| format!(" data-n=\"{}\"", escape(name)));
        let name: String = name.collect();
        out.raw(format_args!("<path d=\"{path}\" class=\"{}\"{name}/>", series.class));
    }
}

pub(crate) fn unit_code(unit: &Unit) -> String {
    match unit {
        Unit::PerSecond => "1/s".to_owned(),
        Unit::Micros => "us".to_owned(),
        Unit::Millis => "ms".to_owned(),
        Unit::Seconds => "s".to_owned(),
        Unit::Bytes => "B".to_owned(),
        Unit::BytesPerSecond => "B/s".to_owned(),
        Unit::Effect | Unit::Percent => "%".to_owned(),
        Unit::Ratio => "×".to_owned(),
        Unit::Cpus => "CPU".to_owned(),
        Unit::Count => String::new(),
        Unit::Other(other) => other.clone(),
    }
}

/// The path of a series by second in a plot's own units, from a time on and on a linear scale of
/// values; empty where there are no values. What is not read each second is a line.
pub(crate) fn path_of(
    points: &[Point],
    from: f64,
    (low, high): (f64, f64),
    is_sparse: bool,
) -> String {
    let y = Scale::linear(low, high, STEPS_Y, 0.0);
    let place = |(x, v): &Point| {
        let value = v.filter(|v| v.is_finite()).map(|v| y.at(v).round() as i64);
        ((x - from).round() as i64, value)
    };
    let points: Vec<_> = points.iter().map(place).collect();
    if is_sparse { line_path(&points) } else { step_path(&points, 1) }
}

/// A small line in a row of a table, out of such a path: what it means says the number beside it.
pub(crate) fn spark(path: &str, variant: usize, width: f64) -> Markup {
    let mut out = Markup::new();
    out.raw(format_args!(
        "<svg class=\"spark\" viewBox=\"0 0 {} {STEPS_Y}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path d=\"{path}\" class=\"l {}\"/></svg>",
        width.round().max(1.0),
        variant_class(variant)
    ));
    out
}

/// A path of levels, the last of which is so long; a missing value breaks it, and ends the level before.
fn step_path(points: &[(i64, Option<i64>)], length: i64) -> String {
    let mut path = String::new();
    let mut pen: Option<(i64, i64)> = None;
    for (x, y) in points {
        if let Some((x0, _)) = pen {
            path += &format!("h{}", x - x0);
        }
        match (pen, *y) {
            (Some((_, y0)), Some(y)) => path += &format!("v{}", y - y0),
            (None, Some(y)) => path += &format!("M{x} {y}"),
            (_, None) => {}
        }
        pen = y.map(|y| (*x, y));
    }
    if pen.is_some() {
        path += &format!("h{length}");
    }
    path
}

/// Both ends of each level of an area, a second or as far as the next one.
fn corners(points: Vec<(i64, Option<i64>)>) -> Vec<(i64, Option<i64>)> {
    let end = |i: usize| points.get(i + 1).map_or(points[i].0 + 1, |next| next.0);
    let both = |(i, (x, y)): (usize, &(i64, Option<i64>))| [(*x, *y), (end(i), *y)];
    points.iter().enumerate().flat_map(both).collect()
}

/// A path of relative steps; a missing value breaks the line.
fn line_path(points: &[(i64, Option<i64>)]) -> String {
    let mut path = String::new();
    let mut pen: Option<(i64, i64)> = None;
    let mut is_begun = false;
    for (x, y) in points {
        let Some(y) = *y else {
            close_dot(&mut path, is_begun);
            (pen, is_begun) = (None, false);
            continue;
        };
        match pen {
            None => {
                path += &format!("M{x} {y}");
                is_begun = true;
            }
            Some((x0, y0)) => {
                // Within a line the letter is written once; a minus sign separates by itself.
                path += if is_begun { "l" } else { "" };
                push_step(&mut path, x - x0, y - y0, is_begun);
                is_begun = false;
            }
        }
        pen = Some((*x, y));
    }
    close_dot(&mut path, is_begun);
    path
}

/// A point without neighbours is drawn as a dot: a line of no length with round ends.
fn close_dot(path: &mut String, is_single: bool) {
    if is_single {
        path.push_str("h0");
    }
}

fn marks_path(points: &[(i64, Option<i64>)]) -> String {
    let dots = points.iter().filter_map(|(x, y)| Some(format!("M{x} {}h0", (*y)?)));
    dots.collect()
}

fn push_step(path: &mut String, dx: i64, dy: i64, is_first: bool) {
    if !is_first && dx >= 0 {
        path.push(' ');
    }
    path.push_str(&dx.to_string());
    if dy >= 0 {
        path.push(' ');
    }
    path.push_str(&dy.to_string());
}

/// A closed path along the upper line and back along the lower one; missing values are bridged.
fn area_path(low: &[(i64, Option<i64>)], high: &[(i64, Option<i64>)]) -> String {
    let known = |points: &[(i64, Option<i64>)]| -> Vec<(i64, Option<i64>)> {
        points.iter().copied().filter(|p| p.1.is_some()).collect()
    };
    let mut around = known(high);
    let mut back = known(low);
    back.reverse();
    around.extend(back);
    let path = line_path(&around);
    if path.is_empty() { path } else { path + "z" }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn paths_are_short_and_break_at_gaps() {
        let check = |points: &[(i64, Option<i64>)], expected: &str| {
            assert_eq!(line_path(points), expected);
        };
        check(&[], "");
        check(&[(0, Some(5))], "M0 5h0");
        check(&[(0, Some(5)), (1, Some(7)), (2, Some(1)), (3, Some(1))], "M0 5l1 2 1-6 1 0");
        check(&[(0, Some(5)), (1, None), (2, Some(1)), (3, Some(9))], "M0 5h0M2 1l1 8");
        check(&[(0, None), (1, None)], "");
    }

    #[test]
    fn a_second_is_a_level_from_its_begin_to_its_end() {
        let check = |points: &[(i64, Option<i64>)], expected: &str| {
            assert_eq!(step_path(points, 1), expected);
        };
        check(&[], "");
        check(&[(0, Some(5))], "M0 5h1");
        check(&[(0, Some(5)), (1, Some(7)), (2, Some(7))], "M0 5h1v2h1v0h1");
        check(&[(0, Some(5)), (1, None), (3, Some(1))], "M0 5h1M3 1h1");
        check(&[(0, None)], "");
        let area = corners(vec![(0, Some(9)), (2, Some(8))]);
        assert_eq!(area, [(0, Some(9)), (2, Some(9)), (2, Some(8)), (3, Some(8))]);
    }

    #[test]
    fn marks_are_dots_without_a_line() {
        assert_eq!(marks_path(&[(0, Some(5)), (5, None), (10, Some(7))]), "M0 5h0M10 7h0");
    }

    #[test]
    fn areas_go_there_and_back() {
        let low = [(0, Some(9)), (1, None), (2, Some(8))];
        let high = [(0, Some(1)), (1, Some(0)), (2, Some(2))];
        assert_eq!(area_path(&low, &high), "M0 1l1-1 1 2 0 6-2 1z");
    }

    #[test]
    fn moments_are_marked_inside_the_chart() {
        let moment = |at: f64| Moment {
            at,
            length: 0.0,
            class: "c1".to_owned(),
            lane: None,
            title: "a <stall>".to_owned(),
        };
        let chart = LinesChart {
            label: "Throughput".to_owned(),
            row: "s0".to_owned(),
            across: Across::Seconds { from: -2.0, to: 40.0 },
            unit: Unit::PerSecond,
            is_log: false,
            values: (0.0, 100.0),
            series: Vec::new(),
            picture: None,
            moments: vec![moment(17.0), moment(99.0)],
            frame: Frame::new(300.0, 136.0),
            max_points: 8,
        };
        let svg = chart.svg().finish();
        let mark = "<path d=\"M19 0V2000\" class=\"mo c1\"><title>a &lt;stall&gt;</title></path>";
        assert!(svg.contains(mark), "{svg}");
        assert_eq!(svg.matches("class=\"mo ").count(), 1);
    }

    #[test]
    fn moments_of_many_variants_stay_in_their_lanes() {
        let draw = |lane| {
            let (class, title) = ("c1".to_owned(), "stall".to_owned());
            let moment = Moment { at: 3.0, length: 2.0, class, lane, title };
            let mut out = Markup::new();
            moment.draw(&mut out, &|x| x);
            out.finish()
        };
        assert!(draw(None).contains("d=\"M3 0V2000H5V0z\" class=\"mo long c1\""));
        assert!(
            draw(Some((11, 12))).contains("d=\"M3 330V352.8H5V330z\" class=\"mo long lane c1\"")
        );
    }

    #[test]
    fn a_large_chart_says_the_median_of_its_lines() {
        let line = |name: &str, value: f64| Series {
            class: "l".to_owned(),
            name: Some(name.to_owned()),
            shape: Shape::Line(vec![(0.0, Some(1.0)), (1.0, Some(value)), (2.0, Some(900.0))]),
        };
        let chart = LinesChart {
            label: "Throughput by second".to_owned(),
            row: "s0".to_owned(),
            across: Across::Seconds { from: 0.0, to: 3.0 },
            unit: Unit::PerSecond,
            is_log: false,
            values: (0.0, 900.0),
            series: vec![line("a", 100.0), line("b", 200.0)],
            picture: None,
            moments: Vec::new(),
            frame: Frame::new(560.0, 190.0),
            max_points: 8,
        };
        let label = "aria-label=\"Throughput by second. Median: a 100/s, b 200/s\"";
        let svg = chart.svg().finish();
        assert!(svg.contains(label), "{svg}");
    }

    #[test]
    fn nines_are_spaced_evenly() {
        let check = |q: f64, x: f64| assert!((nines(q) - x).abs() < 1e-9);
        check(0.0, 0.0);
        check(0.9, 1.0);
        check(0.99, 2.0);
        check(0.999, 3.0);
        assert!(nines(1.0).is_infinite());
    }

    #[test]
    fn a_chart_has_axes_warm_up_and_a_dip_that_is_not_lost() {
        let mut points: Vec<Point> = (-2..40).map(|i| (f64::from(i), Some(100.0))).collect();
        points[20].1 = Some(0.0);
        points[30].1 = None;
        let chart = LinesChart {
            label: "Throughput".to_owned(),
            row: "s0".to_owned(),
            across: Across::Seconds { from: -2.0, to: 40.0 },
            unit: Unit::PerSecond,
            is_log: false,
            values: (0.0, 100.0),
            series: vec![Series {
                class: "l v0 c0".to_owned(),
                name: Some("a<b".to_owned()),
                shape: Shape::Steps(points, 1.0),
            }],
            picture: None,
            moments: Vec::new(),
            frame: Frame::new(300.0, 136.0),
            max_points: 8,
        };
        let svg = chart.svg().replace("><", ">\n<");
        expect![[r#"
            <svg viewBox="0 0 300 136" class="ch" role="img" aria-label="Throughput" data-lines="seconds" data-row="s0" data-x="-2 40" data-y="0 100" data-unit="1/s" data-box="62 10 224 100" tabindex="0">
            <path d="M62 110H286M62 60H286M62 10H286" class="g"/>
            <text x="54" y="114" class="a e">0/s</text>
            <text x="54" y="64" class="a e">50/s</text>
            <text x="54" y="14" class="a e">100/s</text>
            <g class="xt">
            <text x="72.7" y="128" class="a m">0 s</text>
            <text x="126" y="128" class="a m">10 s</text>
            <text x="179.3" y="128" class="a m">20 s</text>
            <text x="232.7" y="128" class="a m">30 s</text>
            <text x="286" y="128" class="a m">40 s</text>
            </g>
            <svg class="in" x="62" y="10" width="224" height="100" viewBox="0 0 42 2000" preserveAspectRatio="none">
            <rect width="2" height="2000" class="warm"/>
            <path d="M0 0h9v0h10v0h1v2000h1v-2000h8v0h2v0h10v0h1" class="l v0 c0" data-n="a&lt;b"/>
            </svg>
            </svg>"#]].assert_eq(&svg);
    }
}
