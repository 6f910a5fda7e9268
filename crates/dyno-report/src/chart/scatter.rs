//! A scatter chart: dots with their bounds, some of them joined by a line of steps, or those of each variant
//! by a line of its own.

use super::scale::{Scale, nice_range};
use super::{Frame, circle, open_svg, text, variant_class, y_axis};
use crate::format::Unit;
use crate::markup::{Markup, coordinate, escape};

#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) variant: usize,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) bounds: Option<(f64, f64)>,
    pub(crate) is_joined: bool,
    pub(crate) tip: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line of steps through all joined dots.
    Frontier,
    /// A line for each variant, through its joined dots in their order.
    Variants,
}

/// The chart; the y axis begins at zero.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pub(crate) label: String,
    pub(crate) spots: Vec<Spot>,
    pub(crate) line: Line,
    /// What the x axis has to show; from zero to all dots if it is not given.
    pub(crate) x_range: Option<(f64, f64)>,
    pub(crate) x_unit: Unit,
    pub(crate) y_unit: Unit,
    pub(crate) frame: Frame,
}

impl Scatter {
    pub(crate) fn svg(&self) -> Markup {
        let frame = &self.frame;
        let finite = || self.spots.iter().filter(|s| s.x.is_finite() && s.y.is_finite());
        let top = finite().map(|s| s.bounds.map_or(s.y, |b| b.1.max(s.y))).fold(0.0, f64::max);
        let right = finite().map(|s| s.x).fold(0.0, f64::max);
        let (low, high) = nice_range(0.0, top, 5);
        let y = Scale::linear(low, high, frame.bottom, frame.top);
        let (low, high) = match self.x_range {
            Some((low, high)) => nice_range(low, high, 6),
            None => nice_range(0.0, right * 1.1, 6),
        };
        let x = Scale::linear(low, high, frame.left, frame.right);
        let mut out = Markup::new();
        open_svg(&mut out, frame, &self.label, " data-rows=\"\" tabindex=\"0\"");
        let ticks: Vec<(f64, String)> =
            y.ticks(5).into_iter().map(|v| (y.at(v), self.y_unit.tick(v))).collect();
        y_axis(&mut out, frame, &ticks);
        for value in x.ticks(6) {
            text(&mut out, x.at(value), frame.bottom + 18.0, "a m", &self.x_unit.tick(value));
        }
        match self.line {
            Line::Frontier => self.join(&mut out, &x, &y),
            Line::Variants => self.join_variants(&mut out, &x, &y),
        }
        finite().for_each(|spot| dot(&mut out, spot, &x, &y));
        out.raw("</svg>");
        out
    }

    fn joined(&self) -> impl Iterator<Item = &Spot> {
        self.spots.iter().filter(|s| s.is_joined && s.x.is_finite() && s.y.is_finite())
    }

    /// A step for each joined dot: what is to be had for so much money.
    fn join(&self, out: &mut Markup, x: &Scale, y: &Scale) {
        let mut joined: Vec<&Spot> = self.joined().collect();
        joined.sort_by(|a, b| a.x.total_cmp(&b.x));
        let Some(first) = joined.first() else { return };
        let mut path = format!("M{} {}", coordinate(x.at(first.x)), coordinate(y.at(first.y)));
        for spot in &joined[1..] {
            path += &format!("H{}V{}", coordinate(x.at(spot.x)), coordinate(y.at(spot.y)));
        }
        path += &format!("H{}", coordinate(self.frame.right));
        out.raw(format_args!("<path d=\"{path}\" class=\"frontier\"/>"));
    }

    fn join_variants(&self, out: &mut Markup, x: &Scale, y: &Scale) {
        let mut variants: Vec<usize> = self.spots.iter().map(|spot| spot.variant).collect();
        variants.dedup();
        for variant in variants {
            let mut path = String::new();
            for spot in self.joined().filter(|spot| spot.variant == variant) {
                let command = if path.is_empty() { 'M' } else { 'L' };
                let (x, y) = (coordinate(x.at(spot.x)), coordinate(y.at(spot.y)));
                path += &format!("{command}{x} {y}");
            }
            let class = variant_class(variant);
            out.raw(format_args!("<g class=\"{class}\"><path d=\"{path}\" class=\"l\"/></g>"));
        }
    }
}

fn dot(out: &mut Markup, spot: &Spot, x: &Scale, y: &Scale) {
    let at = coordinate(x.at(spot.x));
    let numbers = format!("{} {}", spot.x, spot.y);
    out.raw(format_args!(
        "<g class=\"{}\"><g class=\"k\" data-y=\"{numbers}\">",
        variant_class(spot.variant)
    ));
    out.raw(format_args!("<title>{}</title>", escape(&spot.tip)));
    if let Some((low, high)) = spot.bounds.filter(|b| b.0.is_finite() && b.1.is_finite()) {
        let (low, high) = (coordinate(y.at(low)), coordinate(y.at(high)));
        out.raw(format_args!("<path d=\"M{at} {low}V{high}\" class=\"eb own\"/>"));
    }
    circle(out, (x.at(spot.x), y.at(spot.y)), "4.6", "p");
    out.raw("</g></g>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frontier_goes_up_in_steps_through_its_dots() {
        let spot = |variant, x, y, is_joined| Spot {
            variant,
            x,
            y,
            bounds: Some((y - 1.0, y + 1.0)),
            is_joined,
            tip: "a <b>".to_owned(),
        };
        let chart = Scatter {
            label: "Price".to_owned(),
            spots: vec![
                spot(0, 4.0, 40.0, true),
                spot(1, 2.0, 20.0, true),
                spot(2, 3.0, 10.0, false),
            ],
            line: Line::Frontier,
            x_range: None,
            x_unit: Unit::Other("USD/h".to_owned()),
            y_unit: Unit::PerSecond,
            frame: Frame::new(276.0, 136.0),
        };
        let svg = chart.svg().finish();
        // 0 … 5 USD on 200 and 0 … 50 per second on 100 units.
        assert!(svg.contains("d=\"M142 70H222V30H262\" class=\"frontier\""), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a &lt;b&gt;") && svg.contains("USD/h"));
    }
}
