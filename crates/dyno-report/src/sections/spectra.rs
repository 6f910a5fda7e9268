//! Response times of each step: spectrum, histogram, and heat map over time; kinds of transactions
//! apart where there are several.

use super::distribution::{Distribution, Distributions, on_nines};
use super::{heat, page::Page, parts};
use crate::chart::lines::{Across, LinesChart, Series, Shape};
use crate::chart::reduce::Point;
use crate::chart::{Frame, variant_class};
use crate::document::{Block, Figure, Section};
use crate::format::Unit;
use crate::markup::Markup;
use crate::times::Times;
use crate::view::View;
use crate::words;

/// Points of a spectrum that are drawn, evenly spaced on the axis of nines.
const POINTS: usize = 140;

/// Distance of the longest time from the last quantile, in nines.
const MAX_GAP: f64 = 0.3;

/// Fewer observations beyond a percentile are no evidence of where it lies.
const BEYOND_LEAST: f64 = 20.0;

/// A histogram of more variants is a tangle: their percentiles show the same.
const HISTOGRAM_MOST: usize = 2;

/// Curves of a chart, by variant.
type Curves = Vec<(usize, Vec<Point>)>;

/// A curve of percentiles on the axis of nines, and the place up to which enough observations lie beyond.
struct Percentiles {
    variant: usize,
    points: Vec<Point>,
    sure: f64,
}

impl Percentiles {
    fn of(variant: usize, all: &Distribution) -> Percentiles {
        let points = on_nines(&all.spectrum(), POINTS, MAX_GAP);
        Percentiles { variant, points, sure: (all.n() as f64 / BEYOND_LEAST).log10() }
    }

    /// What is read is all of it. What is drawn is a line as far as there is evidence, then a faint one, and the
    /// longest time as a hole, to which no line goes.
    fn series(self, view: &View<'_>) -> Vec<Series> {
        let class = variant_class(self.variant);
        let of = |weight: &str, shape: Shape| Series {
            class: format!("{weight} {class}"),
            name: None,
            shape,
        };
        let (longest, quantiles) = self.points.split_last().expect("two points at least");
        let n_sure = quantiles.partition_point(|(nines, _)| *nines <= self.sure);
        let sure = Shape::Line(quantiles[..n_sure].to_vec());
        let faint = Shape::Line(quantiles[n_sure.saturating_sub(1)..].to_vec());
        let end = Shape::Marks(vec![*longest]);
        let name = Some(view.variant(self.variant).to_owned());
        let (dot, hole) = (of("l dots", end.clone()), of("l dots hole", end));
        let whole = Series { name, ..of("l med read", Shape::Line(self.points.clone())) };
        vec![of("l tail", faint), of("l med", sure), dot, hole, whole]
    }
}

/// A lower and an upper line of a variant.
type Bands = Vec<(usize, (Vec<Point>, Vec<Point>))>;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let &Page { view, ref distributions, ref times, .. } = page;
    let section = Section::new(
        "spectrum",
        "Response times",
        "Response times",
        "Percentiles of all committed transactions, repetitions merged; the band spans the lowest to the \
         highest repetition. Each further nine (90 %, 99 %, 99.9 %) has the same width, so the slowest \
         transactions are as visible as the rest.",
    );
    let steps: Vec<usize> =
        view.steps().filter(|step| view.cells_of(*step).any(|c| !c.spectrum.is_empty())).collect();
    let absent = steps.is_empty().then(|| Block::absent("No response times were recorded."));
    let panel = |step: usize| parts::panel(view, step, panel(view, (step, distributions, times)));
    Some(section.with(absent).with(steps.into_iter().map(panel)))
}

fn panel(
    view: &View<'_>,
    (step, distributions, times): (usize, &Distributions, &Times),
) -> Vec<Block> {
    let title = view.step(step);
    let mut kinds: Vec<&str> = Vec::new();
    let mut merged: Vec<(usize, Distribution)> = Vec::new();
    for ((_, kind, variant), distribution) in
        distributions.merged.iter().filter(|(k, _)| k.0 == step)
    {
        if !kinds.contains(&kind.as_str()) {
            kinds.push(kind);
        }
        match merged.iter_mut().find(|(v, _)| v == variant) {
            Some((_, all)) => all.merge(distribution),
            None => merged.push((*variant, distribution.clone())),
        }
    }
    merged.sort_by_key(|(variant, _)| *variant);
    super::kinds::in_order(view, &mut kinds);
    // Findings hold a spectrum up to 99.9 %; the histograms go as far as there are transactions.
    let of = |v: usize| match merged.iter().find(|(variant, _)| *variant == v) {
        Some((_, all)) => Some(Percentiles::of(v, all)),
        None => {
            let points = on_nines(&view.cell(v, step)?.spectrum, POINTS, MAX_GAP);
            Some(Percentiles { variant: v, points, sure: f64::INFINITY })
        }
    };
    let n = view.findings.variants.len();
    let curves = (0..n).filter_map(of).collect();
    let bands: Bands = (0..n).filter_map(|v| Some((v, distributions.band(step, v)?))).collect();
    let frame = Frame::new(560.0, 230.0);
    let label = format!("Response time percentiles, {title}");
    let percentiles = spectrum(view, &label, (curves, bands), frame).map(|svg| {
        let note = "response time by percentile · log scale · faint: fewer than 20 transactions took longer";
        Figure::new("Percentiles", note, svg).block()
    });
    let curves = merged.iter().map(|(variant, all)| (*variant, all.shares())).collect();
    let histogram = histogram(view, &format!("Response times, {title}"), curves, frame);
    let histogram = histogram.filter(|_| merged.len() <= HISTOGRAM_MOST).map(|svg| {
        let note = "share of transactions by response time (bins 19 % wide)";
        Figure::new("Histogram", note, svg).block()
    });
    let charts = Block::group("charts", percentiles.into_iter().chain(histogram).collect());
    let maps = heat::maps(view, times, (step, ""));
    let by_kind = (kinds.len() > 1).then(|| by_kind(view, (step, &kinds), (distributions, times)));
    [charts].into_iter().chain(maps).chain(by_kind).collect()
}

/// Each kind of transaction apart: open in a step of the workload's own, else folded.
fn by_kind(
    view: &View<'_>,
    (step, kinds): (usize, &[&str]),
    (distributions, times): (&Distributions, &Times),
) -> Block {
    let n = words::counted(kinds.len(), "kind", "kinds");
    let figure = |kind: &&str| {
        let of_kind = distributions.merged.iter().filter(|((s, k, _), _)| *s == step && k == kind);
        let curves = of_kind.map(|((_, _, v), all)| Percentiles::of(*v, all)).collect();
        let title = view.kind_title(kind);
        let label = format!("Response time percentiles, {title}, {}", view.step(step));
        let alone = (curves, Bands::new());
        let svg = spectrum(view, &label, alone, Frame::new(370.0, 180.0))?;
        Some(Figure::new(title, "response time by percentile", svg).block())
    };
    let charts = Block::group("charts small", kinds.iter().filter_map(figure).collect());
    let maps = kinds.iter().flat_map(|kind| heat::maps(view, times, (step, kind)));
    let is_open = view.findings.steps[step].own.is_some();
    let summary = format!("By kind of transaction: {n}");
    Block::fold(summary, is_open, [charts].into_iter().chain(maps).collect())
}

fn series(view: &View<'_>, curves: Curves) -> Vec<Series> {
    let of = |(variant, points): (usize, Vec<Point>)| Series {
        class: format!("l med {}", variant_class(variant)),
        name: Some(view.variant(variant).to_owned()),
        shape: Shape::Line(points),
    };
    curves.into_iter().map(of).collect()
}

fn spectrum(
    view: &View<'_>,
    label: &str,
    (mut curves, bands): (Vec<Percentiles>, Bands),
    frame: Frame,
) -> Option<Markup> {
    curves.retain(|curve| curve.points.len() > 1);
    let all = || curves.iter().flat_map(|curve| curve.points.iter());
    let longest = all().map(|p| p.0).reduce(f64::max)?;
    let edges = || bands.iter().flat_map(|(_, (low, high))| low.iter().chain(high));
    let times = || all().chain(edges()).filter_map(|p| p.1).filter(|us| *us > 0.0);
    let values = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    let band = |(variant, (low, high)): (usize, (Vec<Point>, Vec<Point>))| Series {
        class: format!("env {}", variant_class(variant)),
        name: None,
        shape: Shape::Area(low, high),
    };
    let lines = curves.into_iter().flat_map(|curve| curve.series(view));
    let across = Across::Nines { to: longest - MAX_GAP, longest };
    let chart = LinesChart {
        label: label.to_owned(),
        row: "spectrum".to_owned(),
        is_log: true,
        series: bands.into_iter().map(band).chain(lines).collect(),
        ..LinesChart::new(across, Unit::Micros, values, frame)
    };
    Some(chart.svg())
}

fn histogram(view: &View<'_>, label: &str, mut curves: Curves, frame: Frame) -> Option<Markup> {
    curves.retain(|(_, points)| points.len() > 1);
    let all = || curves.iter().flat_map(|(_, points)| points.iter());
    let from = all().map(|p| p.0).reduce(f64::min)?;
    let to = all().map(|p| p.0).reduce(f64::max)?;
    let most = all().filter_map(|p| p.1).fold(0.0, f64::max);
    let across = Across::Times { from, to };
    let chart = LinesChart {
        label: label.to_owned(),
        row: "histogram".to_owned(),
        series: series(view, curves),
        ..LinesChart::new(across, Unit::Percent, (0.0, most), frame)
    };
    Some(chart.svg())
}
