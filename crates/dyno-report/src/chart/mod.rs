//! Charts as SVG text: scales, axes, marks and lines.
//!
//! A chart has fixed coordinates and is stretched by its `viewBox`; colours, fonts and strokes come
//! from classes only, so that one drawing serves light, dark and paper.

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
    /// Width of the drawing.
    pub(crate) width: f64,
    /// Height of the drawing.
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

    /// Width of the plot.
    pub(crate) fn plot_width(&self) -> f64 {
        self.right - self.left
    }

    /// Height of the plot.
    pub(crate) fn plot_height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// Opens an SVG element. `attributes` are markup.
pub(crate) fn open_svg(out: &mut Markup, frame: &Frame, label: &str, attributes: &str) {
    out.raw(format_args!(
        "<svg viewBox=\"0 0 {} {}\" class=\"ch\" role=\"img\" aria-label=\"{}\"{attributes}>",
        coordinate(frame.width),
        coordinate(frame.height),
        escape(label),
    ));
}

/// Draws grid lines and labels of the y axis.
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

/// Draws a text.
pub(crate) fn text(out: &mut Markup, x: f64, y: f64, class: &str, content: &str) {
    out.raw(format_args!(
        "<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>",
        coordinate(x),
        coordinate(y),
        escape(content)
    ));
}

/// The classes of a variant: its colour, and a dash pattern once all colours are used.
pub(crate) fn variant_class(variant: usize) -> String {
    let colour = variant % 8;
    match variant / 8 {
        0 => format!("v{variant} c{colour}"),
        round => format!("v{variant} c{colour} d{}", (round - 1) % 3 + 1),
    }
}
