//! Charts by load level: throughput, response times, effects, low and high concurrency.

use dyno_analysis::{Comparison, Estimate, Metric};

use super::parts;
use crate::chart::Frame;
use crate::chart::marks::{Mark, MarksChart, Style, places};
use crate::chart::strip;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;

/// The most bars that are read with ease in a chart of ordinary width.
const BARS_MAX: usize = 30;

/// Ratio of largest to smallest value from which on a logarithmic axis is used for times.
const LOG_FROM: f64 = 20.0;

/// Writes the section.
pub(crate) fn section(out: &mut Markup, view: &View<'_>) {
    let lead = format!(
        "Error bars are {} bounds; every repetition is a dot. Point at a chart to read all charts at \
         that step.",
        parts::confidence(view)
    );
    if view.findings.cells.len() <= 1 {
        parts::open_section(out, "load", "By load level", "");
        let text = "One variant at one step was measured: there is nothing to draw side by side.";
        out.classed("p", "absent", text).raw("</section>");
        return;
    }
    parts::open_section(out, "load", "By load level", &lead);
    out.raw("<div class=\"charts\">");
    for metric in
        [Metric::Throughput, Metric::ResponseP95, Metric::ResponseP50, Metric::ResponseP99]
    {
        estimates(out, view, metric);
    }
    for metric in [Metric::Throughput, Metric::ResponseP95] {
        effects(out, view, metric, Effect::Relative);
    }
    for metric in [Metric::Throughput, Metric::ResponseP95] {
        effects(out, view, metric, Effect::Absolute);
    }
    estimates(out, view, Metric::ServerCpuPerTransaction);
    estimates(out, view, Metric::DiskWrittenPerTransaction);
    out.raw("</div>");
    concurrency(out, view);
    out.raw("</section>");
}

/// Which effect is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Relative,
    Absolute,
}

/// Steps as labels, short where they only count clients, and their places on the x axis.
struct StepAxis {
    labels: Vec<String>,
    places: Vec<f64>,
    name: &'static str,
}

fn step_axis(view: &View<'_>) -> StepAxis {
    let steps = &view.findings.steps;
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
    let name = if is_plain { "clients" } else { "step" };
    StepAxis { labels, places: places(&clients), name }
}

fn frame(n_marks: usize) -> (Frame, &'static str) {
    if n_marks > 2 * BARS_MAX {
        (Frame::new(1140.0, 300.0), "wide")
    } else {
        (Frame::new(560.0, 270.0), "")
    }
}

fn mark(view: &View<'_>, (variant, step): (usize, usize), estimate: &Estimate) -> Mark {
    Mark {
        variant,
        step,
        value: estimate.value,
        bounds: estimate.low.zip(estimate.high).filter(|b| b.0.is_finite() && b.1.is_finite()),
        dots: estimate.values.clone(),
        tip: parts::describe(view.variant(variant), view.step(step), estimate),
    }
}

/// A chart of a metric's estimates.
fn estimates(out: &mut Markup, view: &View<'_>, metric: Metric) {
    let found: Vec<((usize, usize), &Estimate)> =
        view.places().filter_map(|(v, s)| Some(((v, s), view.estimate(v, s, metric)?))).collect();
    let Some((_, first)) = found.first() else { return };
    let unit = Unit::of(first);
    let axis = step_axis(view);
    let positive = || found.iter().map(|(_, e)| e.value).filter(|v| *v > 0.0);
    let (low, high) = (positive().fold(f64::MAX, f64::min), positive().fold(0.0, f64::max));
    let is_log = unit == Unit::Micros && high / low >= LOG_FROM;
    let marks: Vec<Mark> = found.iter().map(|(at, e)| mark(view, *at, e)).collect();
    let is_few = axis.labels.len() <= 6 && marks.len() <= BARS_MAX;
    let style = match (is_log, is_few) {
        // A bar from zero has no meaning on a logarithmic axis.
        (true, _) if axis.labels.len() > 1 => Style::Lines,
        (true, _) => Style::Effects,
        (false, true) => Style::Bars,
        (false, false) => Style::Lines,
    };
    let (frame, class) = if style == Style::Lines { frame(0) } else { frame(marks.len()) };
    let title = format!("{} by {}", super::tables::title(metric), axis.name);
    let chart = MarksChart {
        label: title.clone(),
        steps: axis.labels,
        places: axis.places,
        marks,
        unit,
        style,
        is_log,
        band: None,
        frame,
    };
    let note = note(metric, is_log);
    parts::figure(out, class, &title, &note, &chart.svg());
}

fn note(metric: Metric, is_log: bool) -> String {
    let unit = match metric {
        Metric::Throughput => "committed transactions per second",
        Metric::ServerCpuPerTransaction => "CPU time of the server's processes ÷ transactions",
        Metric::DiskWrittenPerTransaction => "bytes written to disk devices ÷ transactions",
        _ => "done − due, committed transactions",
    };
    if is_log { format!("{unit} · log scale") } else { unit.to_owned() }
}

/// A chart of effects against the baseline.
fn effects(out: &mut Markup, view: &View<'_>, metric: Metric, effect: Effect) {
    let found: Vec<&Comparison> =
        view.places().filter_map(|(v, s)| view.comparison(v, s, metric)).collect();
    let Some(first) = found.first() else { return };
    let pick = |c: &'_ Comparison| match effect {
        Effect::Relative => c.relative.clone(),
        Effect::Absolute => c.absolute.clone(),
    };
    let axis = step_axis(view);
    let unit = Unit::of(&pick(first));
    let marks: Vec<Mark> =
        found.iter().map(|c| mark(view, (c.variant, c.step), &pick(c))).collect();
    let threshold = view.findings.threshold * 100.0;
    let (frame, class) = frame(marks.len());
    let kind = if effect == Effect::Relative { "relative" } else { "absolute" };
    let title = format!("{}: {kind} difference", super::tables::title(metric));
    let direction = if words::is_more_better(metric) { "up is better" } else { "down is better" };
    let note = match effect {
        Effect::Relative => format!(
            "{}, in percent · band: ± {} · {direction}",
            against(view),
            parts::threshold(view)
        ),
        Effect::Absolute => format!("{} · {direction}", against(view)),
    };
    let chart = MarksChart {
        label: title.clone(),
        steps: axis.labels,
        places: axis.places,
        marks,
        unit,
        style: Style::Effects,
        is_log: false,
        band: (effect == Effect::Relative).then_some(threshold),
        frame,
    };
    parts::figure(out, class, &title, &note, &chart.svg());
}

/// `against MariaDB 11.8`, or `against its baseline` where there are several.
fn against(view: &View<'_>) -> String {
    let mut baselines: Vec<usize> =
        view.findings.variants.iter().filter_map(|v| v.baseline).collect();
    baselines.sort_unstable();
    baselines.dedup();
    match baselines[..] {
        [only] => format!("against {}", view.variant(only)),
        _ => "against its baseline".to_owned(),
    }
}

/// Low and high concurrency: the geometric mean of the ratios over the steps of a group.
fn concurrency(out: &mut Markup, view: &View<'_>) {
    let groups = &view.findings.concurrency;
    if groups.is_empty() {
        return;
    }
    let threshold = view.findings.threshold * 100.0;
    let reach = strip::reach(groups.iter().map(|g| &g.relative), threshold);
    out.element("h3", "Low and high concurrency");
    let cpus = view.findings.cpus;
    out.classed(
        "p",
        "lead",
        format!(
            "Throughput over all steps of a group: low has at most as many clients as the machine \
             has CPUs ({cpus}), high has more. Geometric mean of the ratios to the baseline."
        ),
    );
    out.raw(
        "<div class=\"scroll\"><table class=\"verdicts\"><thead><tr><th>Variant</th><th>Group</th>",
    );
    out.raw("<th class=\"n\">Throughput</th><th></th><th>Verdict</th></tr></thead><tbody>");
    for group in groups.iter().filter(|g| g.variant < view.findings.variants.len()) {
        let class = words::verdict_class(group.verdict);
        out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", group.variant));
        out.raw(parts::name(view, group.variant));
        out.raw(format_args!(
            "<small>against {}</small></th>",
            escape(view.variant(group.baseline))
        ));
        out.element("td", words::group(group.group));
        let bounds = format::bounds(&group.relative).unwrap_or_else(|| "no bounds".to_owned());
        out.raw(format_args!(
            "<td class=\"n\"><b>{}</b><small>{}, n = {}</small></td><td class=\"strip\">{}</td>\
             <td>{}</td></tr>",
            Unit::Effect.show(group.relative.value),
            escape(&bounds),
            group.relative.n,
            strip::effect(&group.relative, reach, threshold, class),
            parts::badge(group.verdict)
        ));
    }
    out.raw("</tbody></table></div>");
}
