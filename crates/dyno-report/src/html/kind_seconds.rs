//! Throughput and p99 of each kind of transaction over time, out of the grids: a chart for each
//! variant with a line for each kind.

use super::panel::small;
use super::parts;
use crate::chart::lines::{Across, LinesChart, Series, Shape};
use crate::chart::reduce::Point;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::times::{Grid, Times};
use crate::view::View;

/// A variant's grid of one kind.
struct Strand<'a> {
    variant: usize,
    kind: &'a str,
    grid: &'a Grid,
}

/// What is drawn of a column of a grid.
type Pick = fn(&Grid, f64) -> Option<f64>;

/// Writes the charts; nothing where kinds are not kept apart.
pub(crate) fn charts(out: &mut Markup, view: &View<'_>, times: &Times, step: usize) {
    let strands: Vec<Strand<'_>> = times
        .of_step(step)
        .filter(|((_, _, kind), _)| !kind.is_empty())
        .map(|((variant, _, kind), grid)| Strand { variant: *variant, kind, grid })
        .collect();
    let mut kinds: Vec<&str> = strands.iter().map(|strand| strand.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    super::kinds::in_order(view, &mut kinds);
    let Some(first) = strands.first().filter(|_| kinds.len() > 1) else { return };
    let length = format::seconds(first.grid.column_s);
    let rate: Pick = |grid, at| {
        let window = grid.window(at, at + grid.column_s);
        (window.seconds > 0.0).then(|| window.n as f64 / window.seconds)
    };
    let p99: Pick = |grid, at| grid.window(at, at + grid.column_s).quantile_us(0.99);
    for (title, unit, pick) in
        [("Throughput by kind", Unit::PerSecond, rate), ("p99 by kind", Unit::Micros, p99)]
    {
        out.element("h4", title);
        legend(out, &kinds, &format!("in columns of {length}, repetitions merged"));
        out.raw("<div class=\"charts small\">");
        for variant in 0..view.findings.variants.len() {
            chart(out, view, (&strands, &kinds), (variant, step), (title, &unit, pick));
        }
        out.raw("</div>");
    }
}

/// The values of a grid by time.
fn points(grid: &Grid, pick: Pick) -> Vec<Point> {
    let at = |i: usize| grid.from_s + i as f64 * grid.column_s;
    (0..grid.columns.len()).map(|i| (at(i), pick(grid, at(i)))).collect()
}

fn chart(
    out: &mut Markup,
    view: &View<'_>,
    (strands, kinds): (&[Strand<'_>], &[&str]),
    (variant, step): (usize, usize),
    (title, unit, pick): (&str, &Unit, Pick),
) {
    // The same scale for all variants, or they could not be compared.
    let of_all = strands.iter().flat_map(|strand| points(strand.grid, pick));
    let most = of_all.filter_map(|p| p.1).fold(0.0, f64::max);
    let own: Vec<&Strand<'_>> = strands.iter().filter(|s| s.variant == variant).collect();
    let Some(first) = own.first() else { return };
    let series = own
        .iter()
        .map(|strand| Series {
            class: format!(
                "l med m{}",
                kinds.iter().position(|k| *k == strand.kind).unwrap_or(0) % 8
            ),
            name: Some(strand.kind.to_owned()),
            shape: Shape::Line(points(strand.grid, pick)),
        })
        .collect();
    let chart = LinesChart {
        label: format!("{title}, {}, {}", view.variant(variant), view.step(step)),
        row: format!("step{step}"),
        across: Across::Seconds { from: first.grid.from_s, to: first.grid.to_s() },
        unit: unit.clone(),
        is_log: false,
        values: (0.0, most),
        series,
        picture: None,
        attributes: String::new(),
        moments: Vec::new(),
        frame: small(),
        max_points: usize::MAX,
    };
    out.raw(format_args!("<figure class=\"chart of v{variant}\"><figcaption><b>"));
    out.raw(parts::name(view, variant)).raw("</b></figcaption>").raw(chart.svg());
    out.raw("</figure>");
}

fn legend(out: &mut Markup, kinds: &[&str], note: &str) {
    out.raw("<p class=\"modes\">");
    for (i, kind) in kinds.iter().enumerate() {
        out.raw(format_args!(
            "<span><svg class=\"sw m{}\" viewBox=\"0 0 18 10\" aria-hidden=\"true\"><path \
             d=\"M1 5H17\" class=\"l\"/></svg>{}</span>",
            i % 8,
            escape(kind)
        ));
    }
    out.classed("span", "quiet", note).raw("</p>");
}
