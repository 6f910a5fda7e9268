//! A small chart inside a table row: an effect with its bounds against zero and the threshold.

use dyno_analysis::Estimate;
use dyno_analysis::numbers::EffectStyle;

use super::scale::Scale;
use super::{Frame, circle, open_svg, rect};
use crate::format::{self, Unit};
use crate::markup::{Markup, coordinate};

const WIDTH: f64 = 170.0;
const HEIGHT: f64 = 22.0;

/// The scale that all strips of a table share: ratios, so that half is as far from the baseline as twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ruler {
    /// The largest effect or bound, as [`place`] has it.
    reach: f64,
    style: EffectStyle,
}

impl Ruler {
    /// A scale for these effects: up to the largest bound, but never more than four times the
    /// largest value, so that one wild bound does not press all others flat.
    pub(crate) fn new<'a>(
        effects: impl Iterator<Item = &'a Estimate>,
        threshold: f64,
        style: EffectStyle,
    ) -> Ruler {
        let least = place(threshold * 2.0);
        let (mut values, mut ends) = (least, least);
        for effect in effects.filter(|e| place(e.value).is_finite()) {
            values = values.max(place(effect.value).abs());
            let bounds = format::bounds(effect).map(|(low, high)| [place(low), place(high)]);
            let bounds = bounds.into_iter().flatten().filter(|end| end.is_finite());
            ends = bounds.fold(ends, |ends, end| ends.max(end.abs()));
        }
        let reach = ends.max(values).min(values * 4.0).max(0.001) * 1.05;
        Ruler { reach, style }
    }

    pub(crate) fn ends(&self) -> (String, String) {
        let at = |place: f64| match self.style {
            EffectStyle::Ratio => Unit::Ratio.tick(place.exp()),
            EffectStyle::Percent => {
                let percent = (place.exp() - 1.0) * 100.0;
                Unit::Effect.tick(if percent.abs() >= 10.0 { percent.round() } else { percent })
            }
        };
        (at(-self.reach), at(self.reach))
    }
}

/// Where an effect in percent lies: zero is no effect.
fn place(percent: f64) -> f64 {
    format::as_ratio(percent).ln()
}

/// Draws an effect; `threshold` is in percent, `class` is that of the verdict. An effect that has no
/// place, such as one on a baseline of zero, is not drawn.
pub(crate) fn effect(effect: &Estimate, ruler: &Ruler, threshold: f64, class: &str) -> Markup {
    if !place(effect.value).is_finite() {
        return Markup::new();
    }
    let reach = ruler.reach;
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
    let style = ruler.style;
    let bounds = style.interval(effect).map_or(String::new(), |bounds| format!(" ({bounds})"));
    let verdict = match class {
        "same" => "no difference",
        "open" => "undecided",
        class => class,
    };
    let label = format!("effect {}{bounds}, {verdict}", style.show(effect.value));
    open_svg(&mut out, &frame, &label, "");
    let band = place(threshold);
    let (left, right) = (x.at(-band), x.at(band));
    rect(&mut out, (left, 1.0), (right - left, 20.0), "band");
    out.raw(format_args!("<path d=\"M{} 1V21\" class=\"zero\"/>", coordinate(x.at(0.0))));
    // Nothing at all lies beyond the end of every scale.
    let bounds =
        format::bounds(effect).map(|(low, high)| (place(low).max(-2.0 * reach), place(high)));
    if let Some((low, high)) = bounds.filter(|(_, high)| high.is_finite()) {
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
    circle(&mut out, (x.at(place(effect.value)), 11.0), "3.5", &format!("pt {class}"));
    out.raw("</svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate {
            value,
            low: Some(low),
            high: Some(high),
            n: 3,
            min: low,
            max: high,
            unit: "%".to_owned(),
            values: Vec::new(),
            ..Estimate::default()
        }
    }

    #[test]
    fn effects_share_a_scale_of_ratios() {
        let all = [estimate(12_057.0, 2_552.0, 55_636.0), estimate(-50.0, -75.0, 0.0)];
        let ruler = Ruler::new(all.iter(), 3.0, EffectStyle::of(&all));
        // Half is as far to the left as twice is to the right.
        assert!((place(-50.0) + place(100.0)).abs() < 1e-12);
        assert!(ruler.reach >= 557_f64.ln());
    }

    #[test]
    fn no_end_of_a_scale_is_below_nothing() {
        let check = |effect: Estimate, low: &str, high: &str| {
            let style = EffectStyle::of([&effect]);
            let ends = Ruler::new([effect].iter(), 3.0, style).ends();
            assert_eq!(ends, (low.to_owned(), high.to_owned()));
        };
        check(estimate(20.0, -15.0, 66.0), "−41 %", "+70 %");
        check(estimate(8.0, 5.0, 11.0), "−10 %", "+12 %");
        check(estimate(-60.0, -70.0, 1.0), "0.28×", "3.5×");
        // Four times the value, however wild a bound is.
        check(estimate(8.0, -80.0, 9.0), "−28 %", "+38 %");
    }

    #[test]
    fn an_effect_without_a_place_is_not_drawn() {
        let all = [estimate(-100.0, -100.0, -100.0)];
        let ruler = Ruler::new(all.iter(), 3.0, EffectStyle::of(&all));
        assert!(effect(&all[0], &ruler, 3.0, "worse").is_empty());
        let drawn = effect(&estimate(5.0, 1.0, 9.0), &ruler, 3.0, "better").finish();
        assert!(drawn.contains("pt better"));
        let label = "aria-label=\"effect 1.05× (1.01–1.09×), better\"";
        assert!(drawn.contains(label), "{drawn}");
    }
}
