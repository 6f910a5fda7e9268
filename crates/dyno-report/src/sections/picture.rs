//! The picture of the first screen: throughput by load if the load varies, else the effects, or the values
//! where the answer sets them against another variant than the baseline.

use dyno_analysis::numbers::EffectStyle;
use dyno_analysis::{Comparison, Estimate, MetricId, metrics};

use super::loads;
use crate::chart::Frame;
use crate::chart::marks::{Mark, MarksChart, Style};
use crate::chart::rows::RowsChart;
use crate::document::{Block, Figure};
use crate::format::{self, Unit};
use crate::markup::Markup;
use crate::view::{Place, View};

/// Most rows of a picture; with more steps than that, those of the last one are shown.
const ROWS_MOST: usize = 16;

pub(crate) const LINES_WIDE: f64 = 640.0;

const WIDE: f64 = 720.0;

const NARROW: f64 = 380.0;

/// Most values that a picture's label reads out; the tables have them all.
const SPOKEN_MOST: usize = 40;

/// The picture; nothing where there is one value and nothing to compare it with.
pub(crate) fn draw(view: &View<'_>) -> Vec<Block> {
    let findings = view.findings;
    let is_load = |step: &dyno_analysis::StepFacts| step.own.is_none() && step.search.is_none();
    let metric = findings.steps.first().map_or(metrics::THROUGHPUT, |step| step.main_metric);
    let is_by_load = findings.steps.len() > 1
        && findings.steps.iter().all(|step| is_load(step) && step.main_metric == metric);
    if is_by_load {
        return by_load(view, metric).into_iter().collect();
    }
    let effects: Vec<&Comparison> =
        view.places().filter_map(|(v, s)| view.main_comparison(v, s)).collect();
    // Effects against one variant below a headline about another would be read as the headline's.
    let against = findings.answer.against;
    let is_other = |c: &&Comparison| against.is_some_and(|against| c.baseline != against);
    match effects.is_empty() || effects.iter().any(is_other) {
        true => values(view, metric).into_iter().collect(),
        false => forests(view, effects),
    }
}

fn figure((title, note): (String, String), drawing: Markup) -> Block {
    Block::group("picture", vec![Figure::new(title, note, drawing).block()])
}

fn by_load(view: &View<'_>, metric: MetricId) -> Option<Block> {
    let mark = |at: Place| Some(loads::mark(view, at, view.estimate(at, metric)?));
    let marks: Vec<Mark> = view.places().filter_map(mark).collect();
    let first = view.findings.cells.iter().find_map(|cell| cell.metrics.get(&metric))?;
    let axis = loads::step_axis(view);
    let title = format!("{} by {}", view.heading_with_unit(metric), axis.name);
    let bars = marks.iter().any(|mark| mark.bounds.is_some());
    let bars = if bars { format!("error bars: {} CI; ", view.confidence()) } else { String::new() };
    let note = format!("{bars}hollow dots: {}", dots(&marks));
    let spoken: Vec<String> = marks.iter().take(SPOKEN_MOST).map(|mark| mark.tip.clone()).collect();
    let frame = Frame::new(LINES_WIDE, 270.0);
    let chart = MarksChart {
        label: format!("{title}. {}", spoken.join("; ")),
        steps: axis.labels,
        places: axis.places,
        marks,
        unit: Unit::of(first),
        style: Style::Lines,
        is_log: false,
        band: None,
        curves: Vec::new(),
        legend: view.legend(frame.width),
        frame,
    };
    Some(figure((title, note), chart.svg()))
}

fn dots<'a>(marks: impl IntoIterator<Item = &'a Mark>) -> &'static str {
    match marks.into_iter().all(|mark| mark.dots.len() == 2) {
        true => "the two repetitions",
        false => "repetitions",
    }
}

fn key(view: &View<'_>, rows: &[(String, Mark)]) -> String {
    let has_line = rows.iter().any(|(_, mark)| mark.bounds.is_some());
    let line =
        if has_line { format!("; line: its {} CI", view.confidence()) } else { String::new() };
    format!("filled dot: mean{line}; hollow dots: {}", dots(rows.iter().map(|(_, mark)| mark)))
}

/// The effects against the baseline, a picture for each metric: steps that end when their work is done are
/// judged by their time, of which less is better, and the others by their throughput.
fn forests(view: &View<'_>, effects: Vec<&Comparison>) -> Vec<Block> {
    let metrics = crate::words::distinct(effects.iter().map(|effect| effect.metric));
    let of = |metric: MetricId| effects.iter().copied().filter(move |c| c.metric == metric);
    metrics.into_iter().filter_map(|metric| forest(view, of(metric).collect())).collect()
}

fn forest(view: &View<'_>, mut effects: Vec<&Comparison>) -> Option<Block> {
    if effects.len() > ROWS_MOST {
        let last = effects.iter().map(|c| c.step).max().unwrap_or(0);
        effects.retain(|c| c.step == last);
    }
    let first = *effects.first()?;
    let is_one_step = effects.iter().all(|c| c.step == first.step);
    let style = view.effect_style(first.metric);
    let threshold = view.findings.threshold * 100.0;
    let ratio = |percent: f64| match style {
        EffectStyle::Ratio => format::as_ratio(percent),
        EffectStyle::Percent => percent,
    };
    let in_words = |c: &Comparison| {
        let interval = style.interval(&c.relative).map_or(String::new(), |i| format!(" ({i})"));
        let (name, step) = (view.variant(c.variant), view.step(c.step));
        let effect = style.show(c.relative.value);
        format!("{name} at {step}: {effect}{interval}, {}", view.judged(c).word())
    };
    let row = |c: &&Comparison| {
        let mut mark = loads::mark(view, (c.variant, c.step), &c.relative).map(ratio);
        mark.tip = format!("{}, n = {}", in_words(c), c.relative.n);
        let name = view.variant(c.variant);
        let name = match is_one_step {
            true => name.to_owned(),
            false => format!("{name} · {}", view.step(c.step)),
        };
        (name, mark)
    };
    let is_log = style == EffectStyle::Ratio;
    // Nothing at all has no place among ratios.
    let shown = effects.iter().filter(|c| !is_log || ratio(c.relative.value) > 0.0);
    let rows: Vec<(String, Mark)> = shown.map(row).collect();
    let spoken: Vec<String> = effects.iter().map(|c| in_words(c)).collect();
    let at = if is_one_step && view.findings.steps.len() > 1 {
        format!(" at {}", view.step(first.step))
    } else {
        String::new()
    };
    let baseline = loads::baseline(view);
    let title = format!("{} relative to {baseline}{at}", view.heading(first.metric));
    let better = if view.is_more_better(first.metric) { "right" } else { "left" };
    let scale = if is_log { ", log scale" } else { "" };
    let note = format!(
        "{better} is better{scale}; {}; grey band: no difference (± {})",
        key(view, &rows),
        view.threshold()
    );
    let most = ratio(threshold);
    let band = if is_log { (1.0 / most, most) } else { (-threshold, threshold) };
    let chart = RowsChart {
        label: format!("{title}. {}", spoken.join("; ")),
        rows,
        unit: if is_log { Unit::Ratio } else { Unit::Effect },
        is_log,
        band: Some(band),
        width: WIDE,
    };
    Some(figure((title, note), chart.for_all_screens(NARROW)))
}

fn values(view: &View<'_>, metric: MetricId) -> Option<Block> {
    let found = view.places().filter(|(_, step)| *step == view.first_step());
    let found = found.filter_map(|at| Some((at, view.estimate(at, metric)?)));
    let found: Vec<(Place, &Estimate)> = found.collect();
    let row = |(at, estimate): &(Place, &Estimate)| {
        (view.variant(at.0).to_owned(), loads::mark(view, *at, estimate))
    };
    let rows: Vec<(String, Mark)> = found.iter().map(row).collect();
    let first = view.findings.cells.iter().find_map(|cell| cell.metrics.get(&metric));
    let first = first.filter(|_| rows.len() > 1)?;
    let title = view.heading_with_unit(metric);
    let is_log = loads::needs_log(&found, &Unit::of(first));
    let better = if view.is_more_better(metric) { "right" } else { "left" };
    let note = format!(
        "{better} is better{}; {}",
        if is_log { ", log scale" } else { "" },
        key(view, &rows)
    );
    let spoken: Vec<String> = rows.iter().map(|(_, mark)| mark.tip.clone()).collect();
    let chart = RowsChart {
        label: format!("{title}. {}", spoken.join("; ")),
        rows,
        unit: Unit::of(first),
        is_log,
        band: None,
        width: WIDE,
    };
    Some(figure((title, note), chart.for_all_screens(NARROW)))
}
