//! Response time spectra: the time at every quantile, one chart for each step.

use super::parts;
use crate::chart::lines::{Across, LinesChart, Series, Shape, nines};
use crate::chart::reduce::Point;
use crate::chart::{Frame, variant_class};
use crate::format::Unit;
use crate::markup::Markup;
use crate::view::View;

/// Points of a spectrum that are drawn, evenly spaced on the axis of nines.
const POINTS: usize = 140;

/// Distance of the longest time from the last quantile, in nines.
const MAX_GAP: f64 = 0.3;

/// Writes the section.
pub(crate) fn section(out: &mut Markup, view: &View<'_>) {
    parts::open_section(
        out,
        "spectrum",
        "Response time spectrum",
        "Each curve is the whole distribution of committed transactions, repetitions merged. Each \
         nine takes the same width, so the slow few are as visible as the quick many.",
    );
    out.raw("<div class=\"charts\">");
    let mut is_any = false;
    for step in 0..view.findings.steps.len() {
        is_any |= chart(out, view, step);
    }
    out.raw("</div>");
    if !is_any {
        out.classed("p", "absent", "No response times were recorded.");
    }
    out.raw("</section>");
}

fn chart(out: &mut Markup, view: &View<'_>, step: usize) -> bool {
    let curves: Vec<(usize, Vec<Point>)> = (0..view.findings.variants.len())
        .filter_map(|v| Some((v, points(&view.cell(v, step)?.spectrum))))
        .filter(|(_, points)| points.len() > 1)
        .collect();
    let all = || curves.iter().flat_map(|(_, points)| points.iter());
    let Some(longest) = all().map(|p| p.0).reduce(f64::max) else { return false };
    let times = || all().filter_map(|p| p.1);
    let values = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    let series = curves
        .iter()
        .map(|(variant, points)| Series {
            class: format!("l med {}", variant_class(*variant)),
            name: Some(view.variant(*variant).to_owned()),
            shape: Shape::Line(points.clone()),
        })
        .collect();
    let title = view.step(step);
    let chart = LinesChart {
        label: format!("Response time spectrum, {title}"),
        row: "spectrum".to_owned(),
        across: Across::Nines { to: longest - MAX_GAP, longest },
        unit: Unit::Micros,
        is_log: true,
        values,
        series,
        frame: Frame::new(560.0, 230.0),
        moments: Vec::new(),
        max_points: usize::MAX,
    };
    parts::figure(out, "", title, "response time by percentile · log scale", &chart.svg());
    true
}

/// A spectrum on the axis of nines. The longest time, which has no place there, is put behind the
/// last quantile.
fn points(spectrum: &[(f64, f64)]) -> Vec<Point> {
    let finite: Vec<Point> = spectrum
        .iter()
        .filter(|(q, us)| (0.0..1.0).contains(q) && us.is_finite() && *us > 0.0)
        .map(|(q, us)| (nines(*q), Some(*us)))
        .collect();
    let Some(last) = finite.last().map(|p| p.0) else { return Vec::new() };
    let mut out: Vec<Point> = Vec::with_capacity(POINTS + 2);
    let gap = last / POINTS as f64;
    for point in &finite {
        if out.last().is_none_or(|before| point.0 - before.0 >= gap) {
            out.push(*point);
        }
    }
    let longest = spectrum.iter().filter(|(q, _)| *q >= 1.0).map(|(_, us)| *us).reduce(f64::max);
    let longest = longest.or(finite.last().and_then(|p| p.1));
    out.extend(longest.filter(|us| *us > 0.0).map(|us| (last + MAX_GAP, Some(us))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_is_kept_and_points_are_few() {
        let spectrum: Vec<(f64, f64)> =
            (0..=1000).map(|i| (f64::from(i) / 1000.0, 100.0 + f64::from(i))).collect();
        let points = points(&spectrum);
        assert!(points.len() <= POINTS + 2, "{}", points.len());
        assert_eq!(points[0], (0.0, Some(100.0)));
        assert_eq!(points.last().unwrap().1, Some(1100.0));
        assert!(points.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(super::points(&[]).is_empty());
    }
}
