//! Charts by load level: throughput, response times, effects, low and high concurrency.

use dyno_analysis::{Comparison, Estimate, Metric, MetricId, MetricRole, metrics};

use super::Page;
use super::tables::is_cost;

use super::{parts, scaling};
use crate::chart::Frame;
use crate::chart::marks::{Mark, MarksChart, Style, places};
use crate::chart::rows::RowsChart;
use crate::chart::strip::{self, Ruler};
use crate::document::Section;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;

/// The most bars that are read with ease in a chart of ordinary width.
const BARS_MAX: usize = 30;

/// Ratio of largest to smallest value from which on a logarithmic axis is used for times.
const LOG_FROM: f64 = 20.0;

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
        let mut section = Section::new("load", "Charts", "Charts", "");
        section.drawn().classed("p", "absent", text);
        return Some(section);
    }
    let (nav, title) = match (view.findings.steps.len(), step_axis(view).name) {
        (1, _) => ("Charts", "Charts"),
        (_, "number of clients") => ("By clients", "By number of clients"),
        (_, "offered rate") => ("By rate", "By offered rate"),
        (_, "step") => ("By step", "By step"),
        _ => ("By load level", "By load level"),
    };
    let mut section = Section::new("load", nav, title, &lead);
    let out = section.drawn();
    chooser(out, view);
    out.raw("<div class=\"charts\">");
    let (values, costs) = drawn(view);
    values.into_iter().for_each(|metric| estimates(out, view, metric));
    by_kind(out, view);
    for effect in [Effect::Relative, Effect::Absolute] {
        for metric in view.main_metrics() {
            effects(out, view, metric, effect);
        }
    }
    costs.into_iter().for_each(|metric| estimates(out, view, metric));
    out.raw("</div>");
    concurrency(out, view);
    super::bases::tables(out, view);
    Some(section)
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
fn chooser(out: &mut Markup, view: &View<'_>) {
    out.raw("<div class=\"chooser\" hidden><label>Metric <select id=\"metric\">");
    out.raw("<option value=\"\">all</option>");
    let (values, costs) = drawn(view);
    for metric in values.into_iter().chain(costs) {
        let (code, name) = (words::slug(metric), view.heading(metric));
        out.raw(format_args!("<option value=\"{code}\">{}</option>", escape(&name)));
    }
    out.raw("</select></label><label>Show <select id=\"how\"><option value=\"\">all</option>");
    out.raw("<option value=\"value\">values</option>");
    if !view.findings.comparisons.is_empty() {
        out.raw("<option value=\"relative\">relative difference</option>");
        out.raw("<option value=\"absolute\">absolute difference</option>");
    }
    out.raw("</select></label></div>");
}

/// Throughput and p99 of each kind of transaction by step, where steps are the workload's own.
fn by_kind(out: &mut Markup, view: &View<'_>) {
    if !(0..view.findings.steps.len()).any(|step| view.is_own(step)) {
        return;
    }
    // What is done once a trial has no rate: its points would be noise.
    for kind in super::kinds::names(view).into_iter().filter(|kind| !view.is_one_off(kind)) {
        for metric in [metrics::THROUGHPUT, metrics::RESPONSE_P99] {
            let is_known = |k: &&dyno_analysis::kinds::KindCell| {
                k.kind == kind
                    && k.variant < view.findings.variants.len()
                    && k.step < view.findings.steps.len()
            };
            let cells = view.findings.kinds.iter().filter(is_known);
            let found: Vec<((usize, usize), &Estimate)> = cells
                .filter_map(|k| Some(((k.variant, k.step), k.metrics.get(&metric)?)))
                .collect();
            let Some((_, first)) = found.first() else { continue };
            let unit = Unit::of(first);
            let is_log = needs_log(&found, &unit);
            let is_bars = !is_log && found.len() <= BARS_MAX;
            Plot {
                title: format!(
                    "{} of {} by {}",
                    view.heading(metric),
                    view.kind_title(kind),
                    view.findings.step_noun()
                ),
                note: note(view, metric, is_log),
                marks: found.iter().map(|(at, e)| mark(view, *at, e)).collect(),
                unit,
                style: if is_bars { Style::Bars } else { Style::Effects },
                is_log,
                band: None,
                curves: Vec::new(),
                class: class_of(metric, "value"),
            }
            .draw(out, view);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Relative,
    Absolute,
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
    if n_marks > 2 * BARS_MAX {
        (Frame::new(1140.0, 300.0), "wide")
    } else {
        (Frame::new(560.0, 270.0), "")
    }
}

/// The mark of an estimate; bounds that are no numbers are left out, as are those of two repetitions.
pub(crate) fn mark(view: &View<'_>, (variant, step): (usize, usize), estimate: &Estimate) -> Mark {
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
    unit: Unit,
    style: Style,
    is_log: bool,
    band: Option<(f64, f64)>,
    curves: Vec<(usize, Vec<(f64, f64)>)>,
    /// Classes by which a reader chooses what is shown.
    class: String,
}

impl Plot {
    /// Draws a row for each variant where there is one step, else a place on the axis for each
    /// step.
    fn draw(self, out: &mut Markup, view: &View<'_>) {
        let (class, svg) = match view.findings.steps.as_slice() {
            [_] => {
                let name = |mark: &Mark| view.variant(mark.variant).to_owned();
                let chart = RowsChart {
                    label: self.title.clone(),
                    rows: self.marks.into_iter().map(|mark| (name(&mark), mark)).collect(),
                    unit: self.unit,
                    is_log: self.is_log,
                    band: self.band,
                    width: 560.0,
                };
                ("", chart.svg())
            }
            _ => {
                let axis = step_axis(view);
                let n_side_by_side = if self.style == Style::Lines { 0 } else { self.marks.len() };
                let (frame, class) = frame(n_side_by_side);
                let legend = view.legend(frame.width);
                let chart = MarksChart {
                    label: self.title.clone(),
                    steps: axis.labels,
                    places: axis.places,
                    marks: self.marks,
                    unit: self.unit,
                    style: self.style,
                    is_log: self.is_log,
                    band: self.band,
                    curves: self.curves,
                    frame: legend.fit(frame),
                    legend,
                };
                (class, chart.svg())
            }
        };
        let class = format!("{class} {}", self.class);
        parts::figure(out, &class, &self.title, &self.note, &svg);
    }
}

fn class_of(metric: MetricId, how: &str) -> String {
    format!("how-{how} of-{}", words::slug(metric))
}

/// Whether values that are read side by side differ so much that ratios must take equal space.
/// Throughput rises by itself with the load, so there the variants of one step are what counts.
pub(crate) fn needs_log(found: &[((usize, usize), &Estimate)], unit: &Unit) -> bool {
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

fn estimates(out: &mut Markup, view: &View<'_>, metric: MetricId) {
    let found: Vec<((usize, usize), &Estimate)> =
        view.places().filter_map(|(v, s)| Some(((v, s), view.estimate(v, s, metric)?))).collect();
    let Some((_, first)) = found.first() else { return };
    let unit = Unit::of(first);
    let is_log = needs_log(&found, &unit);
    let n_steps = view.findings.steps.len();
    let is_few = n_steps <= 6 && found.len() <= BARS_MAX;
    let curves = if metric == metrics::THROUGHPUT { scaling::curves(view) } else { Vec::new() };
    // A bar from zero has no meaning on a logarithmic axis, and a fitted line none among bars.
    let is_line = is_log || !is_few || !curves.is_empty();
    // Between steps that the workload defines nothing lies, so no line joins them.
    let has_own = (0..n_steps).any(|step| view.is_own(step));
    let style = match (is_line, has_own) {
        (true, true) => Style::Effects,
        (true, false) => Style::Lines,
        (false, _) => Style::Bars,
    };
    let name = view.heading(metric);
    let by = if n_steps == 1 { String::new() } else { format!(" by {}", step_axis(view).name) };
    Plot {
        title: format!("{name}{by}"),
        note: match curves.is_empty() {
            true => note(view, metric, is_log),
            false => format!("{} · dotted: the fitted scalability law", note(view, metric, is_log)),
        },
        marks: found.iter().map(|(at, e)| mark(view, *at, e)).collect(),
        unit,
        style,
        is_log,
        band: None,
        curves,
        class: class_of(metric, "value"),
    }
    .draw(out, view);
}

fn note(view: &View<'_>, metric: MetricId, is_log: bool) -> String {
    let text = &view.metric(metric).text;
    if is_log { format!("{text} · log scale") } else { text.to_string() }
}

fn effects(out: &mut Markup, view: &View<'_>, metric: MetricId, effect: Effect) {
    let found: Vec<&Comparison> =
        view.places().filter_map(|(v, s)| view.comparison(v, s, metric)).collect();
    if found.is_empty() {
        return;
    }
    let name = view.heading(metric);
    let is_more_better = view.is_more_better(metric);
    let better = match (view.findings.steps.len(), is_more_better) {
        (1, true) => "right is better",
        (1, false) => "left is better",
        (_, true) => "up is better",
        (_, false) => "down is better",
    };
    let baseline = baseline(view);
    let drawn = |pick: fn(&Comparison) -> &Estimate| {
        found.iter().map(|c| mark(view, (c.variant, c.step), pick(c))).collect::<Vec<Mark>>()
    };
    let plot = match effect {
        Effect::Absolute => Plot {
            title: format!("{name}: absolute difference"),
            note: format!("from {baseline} · {better}"),
            marks: drawn(|c| &c.absolute),
            unit: Unit::of(&found[0].absolute),
            style: Style::Effects,
            is_log: false,
            band: None,
            curves: Vec::new(),
            class: class_of(metric, "absolute"),
        },
        Effect::Relative => relative(view, &found, drawn(|c| &c.relative), |kind, to, how| {
            (format!("{name}: {kind}"), format!("{to} {baseline}, {how} · {better}"))
        }),
    };
    plot.draw(out, view);
}

/// Relative effects in percent, or as ratios on a logarithmic axis where some are large.
fn relative(
    view: &View<'_>,
    found: &[&Comparison],
    mut marks: Vec<Mark>,
    words: impl Fn(&str, &str, String) -> (String, String),
) -> Plot {
    let threshold = view.findings.threshold * 100.0;
    let band = format!("band: ± {}", view.threshold());
    let is_log = found.iter().any(|c| c.relative.shows_as_ratio());
    if !is_log {
        let (title, note) = words("relative difference", "from", format!("in percent · {band}"));
        let band = Some((-threshold, threshold));
        let style = Style::Effects;
        let (unit, curves) = (Unit::Effect, Vec::new());
        let class = class_of(found[0].metric, "relative");
        return Plot { title, note, marks, unit, style, is_log, band, curves, class };
    }
    for mark in &mut marks {
        mark.value = format::as_ratio(mark.value);
        mark.bounds =
            mark.bounds.map(|(low, high)| (format::as_ratio(low), format::as_ratio(high)));
        mark.dots.iter_mut().for_each(|dot| *dot = format::as_ratio(*dot));
    }
    // Nothing at all has no place among ratios.
    marks.retain(|mark| mark.value > 0.0);
    let (title, note) = words("ratio", "to", format!("log scale · {band}"));
    let most = format::as_ratio(threshold);
    let band = Some((1.0 / most, most));
    let (unit, style, curves) = (Unit::Ratio, Style::Effects, Vec::new());
    let class = class_of(found[0].metric, "relative");
    Plot { title, note, marks, unit, style, is_log, band, curves, class }
}

/// `MariaDB 11.8 (the baseline)`, or `each variant's baseline` where there are several.
pub(crate) fn baseline(view: &View<'_>) -> String {
    let mut baselines: Vec<usize> =
        view.findings.variants.iter().filter_map(|v| v.baseline).collect();
    baselines.sort_unstable();
    baselines.dedup();
    match baselines[..] {
        [only] => format!("{} (the baseline)", view.variant(only)),
        _ => "each variant's baseline".to_owned(),
    }
}

/// Low and high concurrency: the geometric mean of the ratios over the steps of a group.
fn concurrency(out: &mut Markup, view: &View<'_>) {
    let groups = &view.findings.concurrency;
    if groups.is_empty() {
        return;
    }
    let threshold = view.findings.threshold * 100.0;
    let ruler = Ruler::new(groups.iter().map(|g| &g.relative), threshold);
    out.element("h3", "Low and high concurrency");
    let machines = view.findings.variants.iter().map(|variant| &variant.machine);
    let is_one = machines.clone().min() == machines.max();
    let cpus = match is_one {
        true => format!("as the machine has CPUs ({})", view.findings.cpus),
        false => "as either machine has CPUs".to_owned(),
    };
    out.classed(
        "p",
        "lead",
        format!(
            "Throughput over all load levels of a group, as the geometric mean of the ratios to the \
             baseline. Low: at most as many clients {cpus}; high: more{}.",
            if is_one { "" } else { " than both have" }
        ),
    );
    out.raw(
        "<div class=\"scroll\"><table class=\"verdicts\"><thead><tr><th scope=\"col\">Variant</th><th scope=\"col\">Group</th>",
    );
    super::answer::head(out, "Throughput", &ruler);
    out.raw("</tr></thead><tbody>");
    for group in groups.iter().filter(|g| g.variant < view.findings.variants.len()) {
        let judged =
            view.judged_pair((group.variant, group.baseline), metrics::THROUGHPUT, group.verdict);
        let class = judged.class();
        out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", group.variant));
        out.raw(parts::name(view, group.variant));
        out.raw(format_args!("<small>vs. {}</small></th>", escape(view.variant(group.baseline))));
        out.element("td", words::group(group.group));
        let bounds = format::interval(&group.relative).unwrap_or_else(|| "no CI".to_owned());
        out.raw(format_args!(
            "<td class=\"n\" data-of=\"Throughput\"><b>{}</b><small>{}, n = {}</small></td><td class=\"strip\">{}</td>\
             <td>{}</td></tr>",
            format::effect_of(&group.relative),
            escape(&bounds),
            group.relative.n,
            strip::effect(&group.relative, &ruler, threshold, class),
            parts::badge(judged)
        ));
    }
    out.raw("</tbody></table></div>");
}
