//! A small chart inside a table row: an effect with its bounds against zero and the threshold.

use dyno_analysis::Estimate;

use super::scale::Scale;
use super::{Frame, open_svg};
use crate::format::Unit;
use crate::markup::{Markup, coordinate};

const WIDTH: f64 = 130.0;
const HEIGHT: f64 = 22.0;

/// The reach of the scale that all strips of a table share: the largest effect or bound, in
/// percent, but never more than four times the largest value, so that one wild bound does not
/// press all others flat.
pub(crate) fn reach<'a>(effects: impl Iterator<Item = &'a Estimate>, threshold: f64) -> f64 {
    let (mut values, mut ends) = (threshold * 2.0, threshold * 2.0);
    for effect in effects.filter(|e| e.value.is_finite()) {
        values = values.max(effect.value.abs());
        for end in [effect.low, effect.high].into_iter().flatten().filter(|e| e.is_finite()) {
            ends = ends.max(end.abs());
        }
    }
    ends.min(values * 4.0).max(0.1) * 1.05
}

/// Draws an effect. `reach` and `threshold` are in percent; `class` is that of the verdict.
/// An effect that is no number, such as one on a baseline of zero, is not drawn.
pub(crate) fn effect(effect: &Estimate, reach: f64, threshold: f64, class: &str) -> String {
    if !effect.value.is_finite() {
        return String::new();
    }
    let frame = Frame {
        width: WIDTH,
        height: HEIGHT,
        left: 4.0,
        right: WIDTH - 4.0,
        top: 0.0,
        bottom: HEIGHT,
    };
    let x = Scale::linear(-reach, reach, frame.left, frame.right);
    let mut out = Markup::new();
    let unit = Unit::of(effect);
    open_svg(&mut out, &frame, &format!("effect {}", unit.show(effect.value)), "");
    let (left, right) = (x.at(-threshold), x.at(threshold));
    out.raw(format_args!(
        "<rect x=\"{}\" y=\"1\" width=\"{}\" height=\"20\" class=\"band\"/>",
        coordinate(left),
        coordinate(right - left)
    ));
    out.raw(format_args!("<path d=\"M{} 1V21\" class=\"zero\"/>", coordinate(x.at(0.0))));
    let finite = |end: Option<f64>| end.filter(|e| e.is_finite());
    if let Some((low, high)) = finite(effect.low).zip(finite(effect.high)) {
        let (low_x, high_x) = (coordinate(x.at(low)), coordinate(x.at(high)));
        let mut caps = String::new();
        // An end that lies outside of the strip has no cap: the line runs on.
        for (end, at) in [(low, &low_x), (high, &high_x)] {
            if end.abs() <= reach {
                caps += &format!("M{at} 7V15");
            }
        }
        out.raw(format_args!("<path d=\"M{low_x} 11H{high_x}{caps}\" class=\"bar {class}\"/>"));
    }
    out.raw(format_args!(
        "<circle cx=\"{}\" cy=\"11\" r=\"3.5\" class=\"pt {class}\"/></svg>",
        coordinate(x.at(effect.value))
    ));
    out.finish()
}
