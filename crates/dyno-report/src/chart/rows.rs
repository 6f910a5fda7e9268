//! Charts of a single step: a row for each variant, its value as a dot on a horizontal axis with
//! its bounds and repetitions.

use dyno_analysis::numbers::range;

use super::marks::{Mark, described, dots, error_bar, in_sight, numbers, scale};
use super::scale::Scale;
use super::{Frame, circle, open_svg, rect, text, variant_class, x_labels};
use crate::format::Unit;
use crate::markup::{Markup, coordinate, escape};

const ROW: f64 = 27.0;
/// Width of a letter of a name, about.
const LETTER: f64 = 6.3;
/// What stands between the levels of a name.
const BETWEEN: &str = " · ";
const LETTERS_MOST: usize = 28;
/// Room at the right for the values in numbers.
const VALUES: f64 = 74.0;
const VALUES_AND_BOUNDS: f64 = 170.0;
/// A drawing at least so wide has room for bounds.
const WIDE: f64 = 600.0;

/// A chart of one step.
#[derive(Clone, Debug)]
pub(crate) struct RowsChart {
    pub(crate) label: String,
    /// The marks in the order of their rows, each with the name of its variant.
    pub(crate) rows: Vec<(String, Mark)>,
    pub(crate) unit: Unit,
    pub(crate) is_log: bool,
    /// What does not matter: from and to.
    pub(crate) band: Option<(f64, f64)>,
    pub(crate) width: f64,
}

impl RowsChart {
    pub(crate) fn svg(&self) -> Markup {
        let mut out = Markup::new();
        let frame = self.frame();
        let x = self.scale(&frame);
        let label = described(&self.label, self.rows.iter().map(|(_, mark)| mark));
        open_svg(&mut out, &frame, &label, " data-rows=\"\" tabindex=\"0\"");
        self.background(&mut out, &frame, &x);
        let names = self.names();
        for (i, ((_, mark), name)) in self.rows.iter().zip(&names).enumerate() {
            let y = frame.top + (i as f64 + 0.5) * ROW;
            text(&mut out, frame.left - 10.0, y + 4.0, "a e", name);
            self.mark(&mut out, mark, y, &x);
            if mark.value.is_finite() {
                let shown = self.unit.show(mark.value);
                let spread = if self.width >= WIDE { self.spread(mark) } else { String::new() };
                text(&mut out, frame.width - 4.0, y + 4.0, "val e", &(shown + &spread));
            }
        }
        out.raw("</svg>");
        out
    }

    /// The same twice, for wide and for narrow screens: shrunk to that of a phone, names and values would be cut off
    /// or too small to read.
    pub(crate) fn for_all_screens(self, narrow: f64) -> Markup {
        let mut out = Markup::new();
        out.raw("<div class=\"at-wide\">").raw(&*self.svg());
        let narrow = RowsChart { width: narrow, ..self };
        out.raw("</div><div class=\"at-narrow\">").raw(&*narrow.svg()).raw("</div>");
        out
    }

    /// The names as they fit: if one is too long, all without the parts that they share, and what is still too
    /// long without its middle.
    fn names(&self) -> Vec<String> {
        let names = self.rows.iter().map(|(name, _)| name.as_str());
        if names.clone().all(|name| name.chars().count() <= LETTERS_MOST) {
            return names.map(str::to_owned).collect();
        }
        let parts: Vec<Vec<&str>> = names.map(|name| name.split(BETWEEN).collect()).collect();
        let is_own = |part: &&str| parts.iter().any(|parts| !parts.contains(part));
        let own = |parts: &Vec<&str>| {
            let own: Vec<&str> = parts.iter().copied().filter(is_own).collect();
            shorten(&if own.is_empty() { parts.join(BETWEEN) } else { own.join(BETWEEN) })
        };
        parts.iter().map(own).collect()
    }

    /// ` (1.20–1.30 ms)`; of two repetitions their values, ` (13.8 and 15.5×)`.
    fn spread(&self, mark: &Mark) -> String {
        if let Some((low, high)) = mark.bounds {
            return format!(" ({})", range(&self.unit.show(low), &self.unit.show(high)));
        }
        let [a, b] = mark.dots[..] else { return String::new() };
        let (low, high) = (self.unit.show(a.min(b)), self.unit.show(a.max(b)));
        let shared = ["/s", " %", "×", " µs", " ms", " s"].into_iter();
        let mut bare =
            shared.filter_map(|unit| low.strip_suffix(unit).filter(|_| high.ends_with(unit)));
        format!(" ({} and {high})", bare.next().unwrap_or(&low))
    }

    fn frame(&self) -> Frame {
        let letters = self.names().iter().map(|name| name.chars().count()).max();
        let height = 6.0 + self.rows.len() as f64 * ROW + 26.0;
        Frame {
            width: self.width,
            height,
            left: (letters.unwrap_or(0) as f64 * LETTER + 18.0).max(40.0),
            right: self.width - if self.width >= WIDE { VALUES_AND_BOUNDS } else { VALUES },
            top: 6.0,
            bottom: height - 26.0,
        }
    }

    fn scale(&self, frame: &Frame) -> Scale {
        let marks: Vec<&Mark> = self.rows.iter().map(|(_, mark)| mark).collect();
        let mut values = in_sight(&marks, self.is_log);
        values.extend(self.band.into_iter().flat_map(|(low, high)| [low, high]));
        scale(&values, &self.unit, (self.is_log, None), (frame.left, frame.right))
    }

    fn background(&self, out: &mut Markup, frame: &Frame, x: &Scale) {
        let (top, bottom) = (coordinate(frame.top), coordinate(frame.bottom));
        if let Some((low, high)) = self.band {
            let size = (x.at(high) - x.at(low), frame.plot_height());
            rect(out, (x.at(low), frame.top), size, "band");
        }
        // Where the axis begins: dots lie right of it, and names left.
        let mut grid = format!("M{} {top}V{bottom}", coordinate(frame.left));
        let ticks: Vec<(f64, String)> =
            x.ticks(5).into_iter().map(|value| (x.at(value), self.unit.tick(value))).collect();
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

fn shorten(name: &str) -> String {
    if name.chars().count() <= LETTERS_MOST {
        return name.to_owned();
    }
    let letters: Vec<char> = name.chars().collect();
    let n_end = LETTERS_MOST / 2;
    let begin = &letters[..LETTERS_MOST - 1 - n_end];
    begin.iter().chain(&['…']).chain(&letters[letters.len() - n_end..]).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

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
            unit: Unit::PerSecond,
            is_log: false,
            band: None,
            width: 300.0,
        }
    }

    #[test]
    fn a_row_has_its_name_its_bounds_its_dots_and_its_value() {
        let svg = chart().svg().replace("><", ">\n<");
        expect![[r#"
            <svg viewBox="0 0 300 59" class="ch" role="img" aria-label="Throughput. a &quot;b&quot; 80/s" data-rows="" tabindex="0">
            <text x="40" y="51" class="a m">0/s</text>
            <text x="77.2" y="51" class="a m">20/s</text>
            <text x="114.4" y="51" class="a m">40/s</text>
            <text x="151.6" y="51" class="a m">60/s</text>
            <text x="188.8" y="51" class="a m">80/s</text>
            <path d="M40 6V33M40 6V33M77.2 6V33M114.4 6V33M151.6 6V33M188.8 6V33M226 6V33" class="g"/>
            <path d="M40 6V33" class="base"/>
            <text x="30" y="23.5" class="a e">a&lt;b</text>
            <g class="v1 c1">
            <g class="k" data-y="80 70 90 75 85">
            <title>a &quot;b&quot; 80/s</title>
            <path d="M170.2 19.5H207.4M170.2 15.5V23.5M207.4 15.5V23.5" class="eb own"/>
            <circle cx="188.8" cy="19.5" r="4.2" class="p"/>
            <circle cx="179.5" cy="14.5" r="1.8" class="dot"/>
            <circle cx="198.1" cy="24.5" r="1.8" class="dot"/>
            </g>
            </g>
            <text x="296" y="23.5" class="val e">80/s</text>
            </svg>"#]]
        .assert_eq(&svg);
    }

    #[test]
    fn names_that_are_too_long_stay_apart() {
        let names = |all: &[&str]| {
            let mark = chart().rows[0].1.clone();
            let rows = all.iter().map(|name| ((*name).to_owned(), mark.clone())).collect();
            RowsChart { rows, ..chart() }.names()
        };
        let short = ["ext4 · direct=yes", "ext4 · direct=no"];
        assert_eq!(names(&short), short);
        assert_eq!(
            names(&["ext4 · sync=fdatasync · direct=yes", "ext4 · sync=fdatasync · direct=no"]),
            ["direct=yes", "direct=no"]
        );
        let long = names(&["one beginning of a long name, a", "one beginning of a long name, b"]);
        assert_eq!(
            long,
            ["one beginning… a long name, a", "one beginning… a long name, b"].map(shorten)
        );
        assert!(long.iter().all(|name| name.chars().count() == LETTERS_MOST), "{long:?}");
        assert_ne!(long[0], long[1]);
    }

    #[test]
    fn two_repetitions_show_their_values_and_no_interval() {
        let mut chart = chart();
        (chart.width, chart.unit) = (WIDE, Unit::Ratio);
        chart.rows[0].1 =
            Mark { value: 14.6, bounds: None, dots: vec![15.5, 13.8], ..chart.rows[0].1.clone() };
        let svg = chart.svg().finish();
        assert!(
            svg.contains(">14.6× (13.8 and 15.5×)</text>") && !svg.contains("class=\"eb"),
            "{svg}"
        );
    }

    #[test]
    fn ratios_have_one_as_their_origin_and_bounds_in_sight() {
        let mut chart = chart();
        (chart.is_log, chart.unit, chart.band) = (true, Unit::Ratio, Some((1.0 / 1.05, 1.05)));
        chart.rows[0].1.value = 122.0;
        chart.rows[0].1.bounds = Some((27.0, 557.0));
        chart.rows[0].1.dots.clear();
        let frame = chart.frame();
        let x = chart.scale(&frame);
        assert!(x.at(1.0) > frame.left && x.at(557.0) < frame.right);
        let svg = chart.svg().finish();
        assert!(svg.contains("class=\"base\"") && svg.contains(">122×</text>"), "{svg}");
        assert!(svg.contains(">100×</text>"), "{svg}");
    }
}
