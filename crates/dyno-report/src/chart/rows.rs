//! Charts of a single step: a row for each variant, its value as a dot on a horizontal axis with
//! its bounds and repetitions.

use dyno_analysis::numbers::range;

use super::labels::in_lines;
use super::marks::{Mark, described, dots, error_bar, in_sight, numbers};
use super::scale::{Measure, Scale};
use super::{Frame, circle, open_svg, rect, text, variant_class, x_labels};
use crate::markup::{Markup, coordinate, escape};

const ROW: f64 = 27.0;
/// Height of a line of a name.
const LINE: f64 = 13.5;
/// Width of a letter of a name, about.
const LETTER: f64 = 6.3;
const LETTERS_MOST: usize = 28;
const LETTERS_MOST_WIDE: usize = 44;
/// Room at the right for the values in numbers.
const VALUES: f64 = 74.0;
const VALUES_AND_BOUNDS: f64 = 170.0;
/// A drawing at least so wide has room for bounds.
const WIDE: f64 = 600.0;
/// In a drawing for a phone a name stands above its row.
const NARROW: f64 = 400.0;

/// A chart of one step.
#[derive(Clone, Debug)]
pub(crate) struct RowsChart {
    pub(crate) label: String,
    /// The marks in the order of their rows, each with the name of its variant.
    pub(crate) rows: Vec<(String, Mark)>,
    pub(crate) measure: Measure,
    pub(crate) is_log: bool,
    /// What does not matter: from and to.
    pub(crate) band: Option<(f64, f64)>,
    pub(crate) width: f64,
}

/// Where the parts of a row are.
struct Place {
    /// Middle of its mark.
    y: f64,
    /// Foot of the first line of its name.
    name: f64,
}

impl RowsChart {
    pub(crate) fn svg(&self) -> Markup {
        let mut out = Markup::new();
        let names = self.names();
        let (frame, places) = self.frame(&names);
        let x = self.scale(&frame);
        let label = described(&self.label, self.rows.iter().map(|(_, mark)| mark));
        open_svg(&mut out, &frame, &label, " data-rows=\"\" tabindex=\"0\"");
        self.background(&mut out, &frame, &x);
        for (((_, mark), name), place) in self.rows.iter().zip(&names).zip(&places) {
            let (at, class) =
                if self.is_narrow() { (2.0, "a nm") } else { (frame.left - 10.0, "a e nm") };
            for (i, line) in name.iter().enumerate() {
                text(&mut out, at, place.name + i as f64 * LINE, class, line);
            }
            self.mark(&mut out, mark, place.y, &x);
            if mark.value.is_finite() {
                self.value(&mut out, mark, place.y + 4.0);
            }
        }
        out.raw("</svg>");
        out
    }

    /// The value in bold, its bounds beside it in regular weight where there is room.
    fn value(&self, out: &mut Markup, mark: &Mark, y: f64) {
        let spread = if self.width >= WIDE { self.spread(mark) } else { String::new() };
        out.raw(format_args!(
            "<text x=\"{}\" y=\"{}\" class=\"val e\">{}",
            coordinate(self.width - 4.0),
            coordinate(y),
            escape(&self.measure.show(mark.value)),
        ));
        if !spread.is_empty() {
            out.raw(format_args!("<tspan class=\"sp\">{}</tspan>", escape(&spread)));
        }
        out.raw("</text>");
    }

    /// The same twice, for wide and for narrow screens.
    pub(crate) fn for_all_screens(self, narrow: f64) -> Markup {
        let wide = self.svg();
        super::for_all_screens(&wide, &RowsChart { width: narrow, ..self }.svg())
    }

    fn is_narrow(&self) -> bool {
        self.width <= NARROW
    }

    fn names(&self) -> Vec<Vec<String>> {
        let names: Vec<&str> = self.rows.iter().map(|(name, _)| name.as_str()).collect();
        let most = if self.width >= WIDE { LETTERS_MOST_WIDE } else { LETTERS_MOST };
        in_lines(&names, if self.is_narrow() { (self.width / LETTER) as usize - 2 } else { most })
    }

    /// ` (1.20–1.30 ms)`; of two repetitions their values, ` (13.8 and 15.5×)`.
    fn spread(&self, mark: &Mark) -> String {
        let show = |value: f64| self.measure.show(value);
        if let Some((low, high)) = mark.bounds {
            return format!(" ({})", range(&show(low), &show(high)));
        }
        let [a, b] = mark.dots[..] else { return String::new() };
        let (low, high) = (show(a.min(b)), show(a.max(b)));
        let shared = ["/s", " %", "×", " µs", " ms", " s"].into_iter();
        let mut bare =
            shared.filter_map(|unit| low.strip_suffix(unit).filter(|_| high.ends_with(unit)));
        format!(" ({} and {high})", bare.next().unwrap_or(&low))
    }

    fn frame(&self, names: &[Vec<String>]) -> (Frame, Vec<Place>) {
        let mut y = 6.0;
        let place = |name: &Vec<String>| {
            let lines = name.len() as f64 * LINE;
            let (place, height) = match self.is_narrow() {
                true => (Place { y: y + lines + 11.0, name: y + 11.0 }, lines + 24.0),
                false => {
                    let height = ROW.max(lines + 4.0);
                    let first = y + (height - lines) / 2.0 + 10.75;
                    (Place { y: y + height / 2.0, name: first }, height)
                }
            };
            y += height;
            place
        };
        let places: Vec<Place> = names.iter().map(place).collect();
        let letters = names.iter().flatten().map(|line| line.chars().count()).max();
        let left = match self.is_narrow() {
            true => 24.0,
            false => (letters.unwrap_or(0) as f64 * LETTER + 18.0).max(40.0),
        };
        let right = self.width - if self.width >= WIDE { VALUES_AND_BOUNDS } else { VALUES };
        let frame = Frame { width: self.width, height: y + 26.0, left, right, top: 6.0, bottom: y };
        (frame, places)
    }

    fn scale(&self, frame: &Frame) -> Scale {
        let marks: Vec<&Mark> = self.rows.iter().map(|(_, mark)| mark).collect();
        let mut values = in_sight(&marks, self.is_log);
        values.extend(self.band.into_iter().flat_map(|(low, high)| [low, high]));
        self.measure.scale(&values, (self.is_log, None), (frame.left, frame.right))
    }

    fn background(&self, out: &mut Markup, frame: &Frame, x: &Scale) {
        let (top, bottom) = (coordinate(frame.top), coordinate(frame.bottom));
        if let Some((low, high)) = self.band {
            let size = (x.at(high) - x.at(low), frame.plot_height());
            rect(out, (x.at(low), frame.top), size, "band");
        }
        // Where the axis begins: dots lie right of it, and names left.
        let mut grid = format!("M{} {top}V{bottom}", coordinate(frame.left));
        let ticks: Vec<(f64, String)> = self.measure.ticks(x, 5);
        let ticks: Vec<(f64, String)> =
            ticks.into_iter().map(|(value, label)| (x.at(value), label)).collect();
        grid.extend(ticks.iter().map(|(at, _)| format!("M{} {top}V{bottom}", coordinate(*at))));
        x_labels(out, frame, &ticks, 5.0);
        out.raw(format_args!("<path d=\"{grid}\" class=\"g\"/>"));
        // Zero, or for ratios one.
        let origin = if self.is_log { self.band.map(|_| 1.0) } else { Some(0.0) };
        if let Some(origin) = origin {
            let at = coordinate(x.at(origin));
            out.raw(format_args!("<path d=\"M{at} {top}V{bottom}\" class=\"base\"/>"));
        }
    }

    fn mark(&self, out: &mut Markup, mark: &Mark, y: f64, x: &Scale) {
        if !mark.value.is_finite() {
            return;
        }
        out.raw(format_args!(
            "<g class=\"{}\"><g class=\"k\" data-y=\"{}\">",
            variant_class(mark.variant),
            numbers(mark)
        ));
        out.raw(format_args!("<title>{}</title>", escape(&mark.tip)));
        error_bar(out, mark, x, (y, 4.0), (false, "eb own"));
        circle(out, (x.at(mark.value), y), "4.2", "p");
        dots(out, mark, 10.0, |value, shift| (x.at(value), y + shift));
        out.raw("</g></g>");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use dyno_analysis::numbers::EffectStyle;

    use super::*;
    use crate::format::Unit;

    fn chart() -> RowsChart {
        let mark = Mark {
            variant: 1,
            step: 0,
            value: 80.0,
            bounds: Some((70.0, 90.0)),
            dots: vec![75.0, 85.0],
            tip: "a \"b\" 80/s".to_owned(),
        };
        RowsChart {
            label: "Throughput".to_owned(),
            rows: vec![("a<b".to_owned(), mark)],
            measure: Measure::Value(Unit::PerSecond),
            is_log: false,
            band: None,
            width: 480.0,
        }
    }

    #[test]
    fn a_row_has_its_name_its_bounds_its_dots_and_its_value() {
        let svg = chart().svg().replace("><", ">\n<");
        expect![[r#"
            <svg viewBox="0 0 480 59" class="ch" role="img" aria-label="Throughput. a &quot;b&quot; 80/s" data-rows="" tabindex="0">
            <text x="40" y="51" class="a m">0/s</text>
            <text x="113.2" y="51" class="a m">20/s</text>
            <text x="186.4" y="51" class="a m">40/s</text>
            <text x="259.6" y="51" class="a m">60/s</text>
            <text x="332.8" y="51" class="a m">80/s</text>
            <text x="406" y="51" class="a m">100/s</text>
            <path d="M40 6V33M40 6V33M113.2 6V33M186.4 6V33M259.6 6V33M332.8 6V33M406 6V33" class="g"/>
            <path d="M40 6V33" class="base"/>
            <text x="30" y="23.5" class="a e nm">a&lt;b</text>
            <g class="v1 c1">
            <g class="k" data-y="80 70 90 75 85">
            <title>a &quot;b&quot; 80/s</title>
            <path d="M296.2 19.5H369.4M296.2 15.5V23.5M369.4 15.5V23.5" class="eb own"/>
            <circle cx="332.8" cy="19.5" r="4.2" class="p"/>
            <circle cx="314.5" cy="14.5" r="1.8" class="dot"/>
            <circle cx="351.1" cy="24.5" r="1.8" class="dot"/>
            </g>
            </g>
            <text x="476" y="23.5" class="val e">80/s</text>
            </svg>"#]]
        .assert_eq(&svg);
    }

    #[test]
    fn on_a_phone_a_name_stands_above_its_row() {
        let narrow = RowsChart { width: 380.0, ..chart() };
        let (frame, places) = narrow.frame(&narrow.names());
        assert!(frame.left < 30.0 && places[0].name + 8.0 < places[0].y, "{}", places[0].y);
        assert!(narrow.svg().contains("<text x=\"2\" y=\"17\" class=\"a nm\">a&lt;b</text>"));
    }

    #[test]
    fn two_repetitions_show_their_values_and_no_interval() {
        let mut chart = chart();
        (chart.width, chart.measure) = (WIDE, Measure::Value(Unit::Ratio));
        chart.rows[0].1 =
            Mark { value: 14.6, bounds: None, dots: vec![15.5, 13.8], ..chart.rows[0].1.clone() };
        let svg = chart.svg().finish();
        assert!(
            svg.contains(">14.6×<tspan class=\"sp\"> (13.8 and 15.5×)</tspan></text>")
                && !svg.contains("class=\"eb"),
            "{svg}"
        );
    }

    #[test]
    fn ratios_have_one_as_their_origin_and_bounds_in_sight() {
        let mut chart = chart();
        chart.measure = Measure::Effect(EffectStyle::Ratio);
        (chart.is_log, chart.band) = (true, Some((1.0 / 1.05, 1.05)));
        chart.rows[0].1.value = 122.0;
        chart.rows[0].1.bounds = Some((27.0, 557.0));
        chart.rows[0].1.dots.clear();
        let (frame, _) = chart.frame(&chart.names());
        let x = chart.scale(&frame);
        assert!(x.at(1.0) > frame.left && x.at(557.0) < frame.right);
        let svg = chart.svg().finish();
        assert!(svg.contains("class=\"base\"") && svg.contains(">122×</text>"), "{svg}");
        assert!(svg.contains(">100×</text>"), "{svg}");
    }
}
