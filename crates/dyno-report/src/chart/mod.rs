//! Charts as SVG text: scales, axes, marks and lines.
//!
//! A chart has fixed coordinates and is stretched by its `viewBox`; colours, fonts and strokes come
//! from classes only, so that one drawing serves light, dark and paper.

pub(crate) mod labels;
pub(crate) mod lines;
pub(crate) mod marks;
pub(crate) mod picture;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod scale;
pub(crate) mod scatter;
pub(crate) mod sparse;
pub(crate) mod strip;

use crate::markup::{Markup, coordinate, escape};

/// The size of a chart and of the margins around its plot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Left edge of the plot.
    pub(crate) left: f64,
    /// Right edge of the plot.
    pub(crate) right: f64,
    /// Top edge of the plot.
    pub(crate) top: f64,
    /// Bottom edge of the plot.
    pub(crate) bottom: f64,
}

impl Frame {
    /// A frame with room for tick labels at the left and below.
    pub(crate) fn new(width: f64, height: f64) -> Frame {
        Frame { width, height, left: 62.0, right: width - 14.0, top: 10.0, bottom: height - 26.0 }
    }

    pub(crate) fn plot_width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn plot_height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// From this width on a drawing is shrunk on a narrow screen, where its texts are then set larger.
const BIG_FROM: f64 = 500.0;

/// How many times as large, at most; the style sheet's sizes are made for it.
const NARROW_TEXT: f64 = 1.4;

const HALF_LETTER: f64 = 3.3;

/// One drawing for wide screens and another one for narrow ones: shrunk to that of a phone, names and values would be
/// cut off or too small to read.
pub(crate) fn for_all_screens(wide: &Markup, narrow: &Markup) -> Markup {
    let mut out = Markup::new();
    out.raw("<div class=\"at-wide\">").raw(&**wide);
    out.raw("</div><div class=\"at-narrow\">").raw(&**narrow).raw("</div>");
    out
}

/// Opens an SVG element. `attributes` are markup.
pub(crate) fn open_svg(out: &mut Markup, frame: &Frame, label: &str, attributes: &str) {
    let big = if frame.width >= BIG_FROM { " big" } else { "" };
    out.raw(format_args!(
        "<svg viewBox=\"0 0 {} {}\" class=\"ch{big}\" role=\"img\" aria-label=\"{}\"{attributes}>",
        coordinate(frame.width),
        coordinate(frame.height),
        escape(label),
    ));
}

pub(crate) fn y_axis(out: &mut Markup, frame: &Frame, ticks: &[(f64, String)]) {
    let mut grid = String::new();
    for (y, _) in ticks {
        grid +=
            &format!("M{} {}H{}", coordinate(frame.left), coordinate(*y), coordinate(frame.right));
    }
    if !grid.is_empty() {
        out.raw(format_args!("<path d=\"{grid}\" class=\"g\"/>"));
    }
    for (y, label) in ticks {
        text(out, frame.left - 8.0, y + 4.0, "a e", label);
    }
}

/// Draws labels below the x axis; those that would touch their neighbour at the left are left out,
/// and those that would on a narrow screen have a class by which they are hidden there. `apart` is
/// half of the distance between two labels.
pub(crate) fn x_labels(out: &mut Markup, frame: &Frame, labels: &[(f64, String)], apart: f64) {
    let (mut free_from, mut free_narrow) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (x, label) in labels {
        let half = label.chars().count() as f64 * HALF_LETTER;
        if x - half - apart < free_from {
            continue;
        }
        free_from = x + half + apart;
        let narrow = half * NARROW_TEXT + apart;
        let is_wide_only = frame.width >= BIG_FROM && x - narrow < free_narrow;
        if !is_wide_only {
            free_narrow = x + narrow;
        }
        let class = if is_wide_only { "a m wd" } else { "a m" };
        text(out, *x, frame.bottom + 18.0, class, label);
    }
}

pub(crate) fn circle(out: &mut Markup, (x, y): (f64, f64), radius: &str, class: &str) {
    let (x, y) = (coordinate(x), coordinate(y));
    out.raw(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" class=\"{class}\"/>"));
}

/// A rectangle from its upper left corner on.
pub(crate) fn rect(out: &mut Markup, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
    let [x, y, width, height] = [x, y, width, height].map(coordinate);
    out.raw(format_args!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"/>"
    ));
}

pub(crate) fn text(out: &mut Markup, x: f64, y: f64, class: &str, content: &str) {
    out.raw(format_args!(
        "<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>",
        coordinate(x),
        coordinate(y),
        escape(content)
    ));
}

/// Colours that anybody can tell apart.
const COLOURS: usize = 5;

/// The classes of a variant: its colour, and a dash pattern once all colours are used.
pub(crate) fn variant_class(variant: usize) -> String {
    let colour = variant % COLOURS;
    match variant / COLOURS {
        0 => format!("v{variant} c{colour}"),
        round => format!("v{variant} c{colour} d{}", (round - 1) % 3 + 1),
    }
}

/// A piece of a variant's line, for what stands beside its name.
pub(crate) fn swatch(variant: usize) -> Markup {
    let mut out = Markup::new();
    out.raw(format_args!("<svg class=\"sw {}\"", variant_class(variant)));
    out.raw(" viewBox=\"0 0 18 10\" aria-hidden=\"true\"><path d=\"M1 5H17\" class=\"l\"/></svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_touch_are_left_out_or_hidden_on_a_narrow_screen() {
        let check = |width: f64, apart_by: f64, expected: &[&str]| {
            let labels: Vec<(f64, String)> =
                (0..4).map(|i| (f64::from(i) * apart_by, format!("{i}0 s"))).collect();
            let mut out = Markup::new();
            x_labels(&mut out, &Frame::new(width, 100.0), &labels, 4.0);
            let svg = out.finish();
            let classes: Vec<&str> =
                svg.split("class=\"").skip(1).filter_map(|t| t.split('"').next()).collect();
            assert_eq!(classes, expected, "{svg}");
        };
        check(560.0, 60.0, &["a m", "a m", "a m", "a m"]);
        // 34.4 apart is enough at the ordinary size, 45 at the larger one.
        check(560.0, 36.0, &["a m", "a m wd", "a m", "a m wd"]);
        check(370.0, 36.0, &["a m", "a m", "a m", "a m"]);
        check(560.0, 20.0, &["a m", "a m wd"]);
    }
}
