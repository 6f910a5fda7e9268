//! Charts by load level: throughput, response times, effects, low and high concurrency.

use dyno_analysis::{Comparison, Estimate, Metric, MetricId, MetricRole, metrics};

use super::tables::is_cost;
use super::{page::Page, parts, scaling};

use crate::chart::Frame;
use crate::chart::marks::{Mark, MarksChart, Style, places};
use crate::chart::rows::RowsChart;
use crate::chart::scale::Measure;
use crate::chart::strip::Ruler;
use crate::document::{Block, Cell, Element, Figure, Section, Table, Text};
use crate::format::{self, Unit};
use crate::view::{Place, View};
use crate::words;

/// The most marks side by side that are read with ease in a chart of ordinary width.
const MARKS_MAX: usize = 60;

/// Width of a drawing of rows on a phone.
pub(crate) const NARROW: f64 = 380.0;

/// Ratio of largest to smallest value from which on a logarithmic axis is used for times.
const LOG_FROM: f64 = 20.0;

/// Charts that are open.
const OPEN_MOST: usize = 4;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let lead = format!(
        "Error bars are {} confidence intervals; an arrow marks one that extends beyond the chart. \
         Each dot is one repetition.{}",
        view.confidence(),
        if view.findings.steps.len() > 1 {
            format!(
                " Hover over a chart to read the values of all charts at that {}.",
                view.findings.step_noun()
            )
        } else {
            String::new()
        }
    );
    if view.findings.cells.len() <= 1 {
        let text = "Only one variant was measured, at one load level: there is nothing to plot side by side.";
        return Some(Section::new("load", "Charts", "Charts", "").with([Block::absent(text)]));
    }
    let (nav, title) = match (view.findings.steps.len(), step_axis(view).name) {
        (1, _) => ("Charts", "Charts"),
        (_, "number of clients") => ("By clients", "By number of clients"),
        (_, "offered rate") => ("By rate", "By offered rate"),
        (_, "step") => ("By step", "By step"),
        _ => ("By load level", "By load level"),
    };
    let (values, costs) = drawn(view);
    let estimates = |metric: MetricId| estimates(view, metric);
    // What the answer rests on is open, the rest is one click away.
    let (main, others): (Vec<MetricId>, Vec<MetricId>) =
        values.into_iter().partition(|metric| view.is_judged(*metric));
    let effects = |metric: &MetricId| effects(view, *metric);
    let main = main.into_iter().flat_map(|metric| [estimates(metric), effects(&metric)]);
    let mut main: Vec<Block> = main.flatten().collect();
    let more = main.split_off(main.len().min(OPEN_MOST)).into_iter();
    let more = more.chain(others.into_iter().filter_map(estimates)).chain(by_kind(view));
    let more: Vec<Block> = more.chain(costs.into_iter().filter_map(estimates)).collect();
    let n = words::counted(more.len(), "more chart", "more charts");
    let more = (!more.is_empty()).then(|| {
        let summary = format!("{n}: other metrics, kinds of transactions, costs");
        Block::fold(summary, false, vec![Block::group("charts", more)])
    });
    let section = Section::new("load", nav, title, &lead);
    let section = section.with(super::matrix::tables(view));
    let section = section.with([chooser(view), Block::group("charts", main)]).with(more);
    Some(section.with(concurrency(view)).with(super::bases::tables(view)))
}

/// The metrics whose values are drawn, those that steps are judged by first and costs last: what is
/// compared, and what is written to disks.
fn drawn(view: &View<'_>) -> (Vec<MetricId>, Vec<MetricId>) {
    let is_drawn = |metric: &&Metric| {
        let is_context = metric.role == MetricRole::Context && metric.id != metrics::DISK_WRITTEN;
        !is_context && metric.id != metrics::RESPONSE_MEAN && view.has(metric.id)
    };
    let main = view.main_metrics();
    let others = view.findings.metrics.iter().filter(is_drawn).map(|metric| metric.id);
    let others = others.filter(|metric| !main.contains(metric));
    let (costs, others): (Vec<MetricId>, Vec<MetricId>) = others.partition(|m| is_cost(*m));
    ([main.clone(), others].concat(), costs)
}

/// What a script offers: which metric, and values or differences. Without one all is shown.
fn chooser(view: &View<'_>) -> Block {
    let own = |(value, text): (&str, &str)| (value.to_owned(), text.to_owned());
    let (values, costs) = drawn(view);
    let metrics = values.into_iter().chain(costs);
    let metrics = metrics.map(|metric| (words::slug(metric), view.heading(metric)));
    let metrics = std::iter::once(own(("", "all"))).chain(metrics);
    let ways = [("", "all"), ("value", "values"), ("relative", "relative difference")];
    let n_ways = if view.findings.comparisons.is_empty() { 2 } else { ways.len() };
    let ways = ways.into_iter().take(n_ways).map(own);
    let choices = [parts::choice("Metric", "metric", metrics), parts::choice("Show", "how", ways)];
    Block::Control(Element::new("div").class("chooser").hidden().inside(choices))
}

/// Throughput and p99 of each kind of transaction by step, where steps are the workload's own.
fn by_kind(view: &View<'_>) -> Vec<Block> {
    let mut charts = Vec::new();
    if !view.steps().any(|step| view.is_own(step)) {
        return charts;
    }
    // What is done once a trial has no rate: its points would be noise.
    for kind in super::kinds::names(view).into_iter().filter(|kind| !view.is_one_off(kind)) {
        for metric in [metrics::THROUGHPUT, metrics::RESPONSE_P99] {
            let is_known = |k: &&dyno_analysis::kinds::KindCell| {
                k.kind == kind && view.has_place(k.variant, k.step)
            };
            let cells = view.findings.kinds.iter().filter(is_known);
            let found: Vec<(Place, &Estimate)> = cells
                .filter_map(|k| Some(((k.variant, k.step), k.metrics.get(&metric)?)))
                .collect();
            let Some((_, first)) = found.first() else { continue };
            let is_log = needs_log(&found, &Unit::of(first));
            let (name, kind) = (view.heading(metric), view.kind_title(kind));
            let title = format!("{name} of {kind} by {}", view.findings.step_noun());
            let plot = Plot::of(view, metric, (title, note(view, metric, is_log)), &found);
            charts.push(Plot { is_log, ..plot }.draw(view));
        }
    }
    charts
}

/// Steps as labels, short where they only count clients, and their places on the x axis.
pub(crate) struct StepAxis {
    pub(crate) labels: Vec<String>,
    pub(crate) places: Vec<f64>,
    pub(crate) name: &'static str,
}

pub(crate) fn step_axis(view: &View<'_>) -> StepAxis {
    let steps = &view.findings.steps;
    if steps.iter().any(|step| step.own.is_some()) {
        let labels = steps.iter().map(|s| s.name.clone()).collect();
        return StepAxis { labels, places: evenly(steps.len()), name: "step" };
    }
    let rates: Option<Vec<f64>> = steps.iter().map(|s| s.rate).collect();
    if let Some(rates) = rates.filter(|r| !r.is_empty()) {
        let labels = rates.iter().map(|r| Unit::PerSecond.tick(*r)).collect();
        return StepAxis { labels, places: places(&rates), name: "offered rate" };
    }
    let clients: Vec<f64> = steps.iter().map(|s| s.clients as f64).collect();
    let is_plain = steps.iter().all(|s| {
        s.name == format!("{} clients", s.clients) || s.name == format!("{} client", s.clients)
    });
    let labels = if is_plain {
        steps.iter().map(|s| s.clients.to_string()).collect()
    } else {
        steps.iter().map(|s| s.name.clone()).collect()
    };
    let name = if is_plain { "number of clients" } else { "load level" };
    StepAxis { labels, places: places(&clients), name }
}

/// Places of steps that have no load to be placed by.
fn evenly(n: usize) -> Vec<f64> {
    (0..n).map(|i| if n < 2 { 0.5 } else { i as f64 / (n - 1) as f64 }).collect()
}

fn frame(n_marks: usize) -> (Frame, &'static str) {
    let (width, class) = if n_marks > MARKS_MAX { (1140.0, "wide") } else { (560.0, "") };
    (with_axis_name(width, 284.0), class)
}

/// A frame with room for the name of its x axis below the ticks.
pub(crate) fn with_axis_name(width: f64, height: f64) -> Frame {
    let frame = Frame::new(width, height);
    Frame { bottom: frame.bottom - 14.0, ..frame }
}

/// The mark of an estimate; bounds that are no numbers are left out, as are those of two repetitions.
pub(crate) fn mark(view: &View<'_>, (variant, step): Place, estimate: &Estimate) -> Mark {
    Mark {
        variant,
        step,
        value: estimate.value,
        bounds: format::bounds(estimate),
        dots: estimate.values.clone(),
        tip: parts::describe(view.variant(variant), view.step(step), estimate),
    }
}

/// What a chart shows, before it is known whether steps lie side by side.
struct Plot {
    title: String,
    note: String,
    marks: Vec<Mark>,
    measure: Measure,
    style: Style,
    is_log: bool,
    band: Option<(f64, f64)>,
    curves: Vec<(usize, Vec<(f64, f64)>)>,
    /// Classes by which a reader chooses what is shown.
    class: String,
}

impl Plot {
    /// A plot of values, side by side.
    fn of(
        view: &View<'_>,
        metric: MetricId,
        (title, note): (String, String),
        found: &[(Place, &Estimate)],
    ) -> Plot {
        Plot {
            title,
            note,
            marks: found.iter().map(|(at, estimate)| mark(view, *at, estimate)).collect(),
            measure: Measure::Value(Unit::of(found[0].1)),
            style: Style::Points,
            is_log: false,
            band: None,
            curves: Vec::new(),
            class: class_of(metric, "value"),
        }
    }

    /// Draws a row for each variant where there is one step, else a place on the axis for each
    /// step.
    fn draw(self, view: &View<'_>) -> Block {
        let (class, svg) = match view.findings.steps.as_slice() {
            [_] => {
                let name = |mark: &Mark| view.label(mark.variant).to_owned();
                let chart = RowsChart {
                    label: self.title.clone(),
                    rows: self.marks.into_iter().map(|mark| (name(&mark), mark)).collect(),
                    measure: self.measure,
                    is_log: self.is_log,
                    band: self.band,
                    width: 560.0,
                };
                ("", chart.for_all_screens(NARROW))
            }
            _ => {
                let axis = step_axis(view);
                let n_side_by_side = if self.style == Style::Lines { 0 } else { self.marks.len() };
                let (frame, class) = frame(n_side_by_side);
                let chart = MarksChart {
                    label: self.title.clone(),
                    steps: axis.labels,
                    places: axis.places,
                    marks: self.marks,
                    measure: self.measure,
                    style: self.style,
                    is_log: self.is_log,
                    band: self.band,
                    curves: self.curves,
                    names: Vec::new(),
                    across: axis.name.to_owned(),
                    frame,
                };
                (class, chart.svg())
            }
        };
        let class = format!("{class} {}", self.class);
        Figure { class, ..Figure::new(self.title, self.note, svg) }.block()
    }
}

fn class_of(metric: MetricId, how: &str) -> String {
    format!("how-{how} of-{}", words::slug(metric))
}

/// Whether values that are read side by side differ so much that ratios must take equal space.
/// Throughput rises by itself with the load, so there the variants of one step are what counts.
pub(crate) fn needs_log(found: &[(Place, &Estimate)], unit: &Unit) -> bool {
    let is_far = |values: Vec<f64>| {
        let positive = || values.iter().copied().filter(|v| *v > 0.0);
        positive().fold(0.0, f64::max) / positive().fold(f64::MAX, f64::min) >= LOG_FROM
    };
    if *unit == Unit::Micros {
        return is_far(found.iter().map(|(_, e)| e.value).collect());
    }
    let has_zero = found.iter().any(|(_, e)| e.min <= 0.0);
    let at = |step: usize| found.iter().filter(move |((_, s), _)| *s == step).map(|(_, e)| e.value);
    !has_zero && found.iter().any(|((_, step), _)| is_far(at(*step).collect()))
}

fn estimates(view: &View<'_>, metric: MetricId) -> Option<Block> {
    let found: Vec<(Place, &Estimate)> =
        view.places().filter_map(|(v, s)| Some(((v, s), view.estimate((v, s), metric)?))).collect();
    let (_, first) = found.first()?;
    let is_log = needs_log(&found, &Unit::of(first));
    let n_steps = view.findings.steps.len();
    let curves = if metric == metrics::THROUGHPUT { scaling::curves(view) } else { Vec::new() };
    // Between steps that the workload defines nothing lies, so no line joins them.
    let has_own = (0..n_steps).any(|step| view.is_own(step));
    let style = if has_own { Style::Points } else { Style::Lines };
    let name = view.heading(metric);
    let by = if n_steps == 1 { String::new() } else { format!(" by {}", step_axis(view).name) };
    let fitted = if curves.is_empty() { "" } else { " · dotted: the fitted scalability law" };
    let note = format!("{}{fitted}", note(view, metric, is_log));
    let plot = Plot::of(view, metric, (format!("{name}{by}"), note), &found);
    Some(Plot { style, is_log, curves, ..plot }.draw(view))
}

fn note(view: &View<'_>, metric: MetricId, is_log: bool) -> String {
    let text = &view.metric(metric).text;
    if is_log { format!("{text} · log scale") } else { text.to_string() }
}

/// Effects, always on a logarithmic axis: half is as far from the baseline as twice.
fn effects(view: &View<'_>, metric: MetricId) -> Option<Block> {
    let found: Vec<&Comparison> =
        view.places().filter_map(|(v, s)| view.comparison((v, s), metric)).collect();
    let better = match (view.findings.steps.len(), view.is_more_better(metric)) {
        (1, true) => "right is better",
        (1, false) => "left is better",
        (_, true) => "up is better",
        (_, false) => "down is better",
    };
    let (name, baseline) = (view.heading(metric), baseline(view));
    let (found, measure, band) = (relative(found)?, measure(view, metric), band(view));
    let note = format!("to {baseline}, log scale · band: ± {} · {better}", view.threshold());
    let title = format!("{name}: relative difference");
    let plot = Plot::of(view, metric, (title, note), &found);
    let marks = plot.marks.into_iter().map(|mark| mark.map(format::as_ratio)).collect();
    let class = class_of(metric, "relative");
    Some(Plot { marks, measure, is_log: true, band: Some(band), class, ..plot }.draw(view))
}

/// The effects that have a place among ratios, as nothing at all has none; none if there is no such effect.
fn relative<'a>(found: Vec<&'a Comparison>) -> Option<Vec<(Place, &'a Estimate)>> {
    let is_ratio = |c: &&Comparison| format::as_ratio(c.relative.value) > 0.0;
    let found = found.into_iter().filter(is_ratio);
    let found: Vec<_> = found.map(|c| ((c.variant, c.step), &c.relative)).collect();
    (!found.is_empty()).then_some(found)
}

/// How effects on a metric are written, in all of the page.
pub(crate) fn measure(view: &View<'_>, metric: MetricId) -> Measure {
    Measure::Effect(view.effect_style(metric))
}

/// Ratios that count as no difference.
pub(crate) fn band(view: &View<'_>) -> (f64, f64) {
    let most = format::as_ratio(view.findings.threshold * 100.0);
    (1.0 / most, most)
}

/// `MariaDB 11.8 (the baseline)`, or `each variant's baseline` where there are several.
pub(crate) fn baseline(view: &View<'_>) -> String {
    let baselines = view.findings.variants.iter().filter_map(|v| v.baseline);
    match words::sorted(baselines)[..] {
        [only] => format!("{} (the baseline)", view.variant(only)),
        _ => "each variant's baseline".to_owned(),
    }
}

/// Low and high concurrency: the geometric mean of the ratios over the steps of a group.
fn concurrency(view: &View<'_>) -> Vec<Block> {
    let groups = &view.findings.concurrency;
    if groups.is_empty() {
        return Vec::new();
    }
    let threshold = view.findings.threshold * 100.0;
    let style = view.effect_style(metrics::THROUGHPUT);
    let ruler = Ruler::new(groups.iter().map(|g| &g.relative), threshold, style);
    let machines = view.findings.variants.iter().map(|variant| &variant.machine);
    let is_one = machines.clone().min() == machines.max();
    let cpus = match is_one {
        true => format!("as the machine has CPUs ({})", view.findings.cpus),
        false => "as either machine has CPUs".to_owned(),
    };
    let lead = format!(
        "Throughput over all load levels of a group, as the geometric mean of the ratios to the \
         baseline. Low: at most as many clients {cpus}; high: more{}.",
        if is_one { "" } else { " than both have" }
    );
    let mut table = Table::headed("", "Variant | Group").class("verdicts");
    table.columns.extend(parts::heads_of("Throughput", &ruler));
    for group in groups.iter().filter(|g| g.variant < view.findings.variants.len()) {
        let judged =
            view.judge((group.variant, group.baseline), metrics::THROUGHPUT, group.verdict);
        let bounds = style.interval(&group.relative).unwrap_or_else(|| "no CI".to_owned());
        let effect = Text::default().b(style.show(group.relative.value));
        let effect = effect.small(format!("{bounds}, n = {}", group.relative.n));
        table.row([
            view.head(group.variant).small(format!("vs. {}", view.variant(group.baseline))),
            words::group(group.group).into(),
            Cell::from(effect).with("data-of", "Throughput"),
            parts::strip(view, &group.relative, &ruler, judged),
            Cell::verdict(judged),
        ]);
    }
    let heading = Block::heading(3, "Low and high concurrency");
    vec![heading, Block::lead(lead), table.into()]
}
