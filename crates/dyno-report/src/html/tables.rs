//! The numbers: throughput, p95 and cost for each variant and step, coloured by the effect.

use dyno_analysis::{Comparison, Direction, Estimate, Metric, MetricId, MetricRole, metrics};

use super::{Page, cost, kinds, parts, searches};
use crate::document::{Block, Cell, Section, Table};
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::{field, format};

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let effect = match view.findings.comparisons.is_empty() {
        true => String::new(),
        false => format!(" Below it is the effect relative to the baseline: {}.", view.signs()),
    };
    let lead = format!(
        "Each value is the mean over {} (geometric; arithmetic where values may be zero). Its {} CI is in \
         parentheses.{effect}",
        parts::repetitions(view),
        view.confidence()
    );
    let mut section = Section::new("numbers", "Numbers", "The numbers", &lead);
    let out = section.drawn();
    if view.findings.steps.len() == 1 {
        one_step(out, view);
    } else {
        by_step(out, view);
    }
    notes(out, view);
    cost::tables(out, view);
    kinds::tables(out, view);
    let outcomes = outcomes(view);
    section.blocks.extend(outcomes.into_iter().chain(searches::probes(view)));
    Some(section)
}

/// What is to be known of the tables' values: which percentiles rest on little, and where a mean is beyond
/// one of them.
fn notes(out: &mut Markup, view: &View<'_>) {
    let all: Vec<MetricId> = view.findings.metrics.iter().map(|metric| metric.id).collect();
    if let Some(text) = view.few_in_words(&all) {
        out.classed("p", "quiet", text);
    }
    if let Some(text) = means_beyond(view) {
        out.classed("p", "quiet", text);
    }
}

/// Where the mean response time is above the 95th or 99th percentile: few transactions took most of the
/// time.
fn means_beyond(view: &View<'_>) -> Option<String> {
    let value = |at: (usize, usize), metric| Some(view.estimate(at.0, at.1, metric)?.value);
    let is_beyond = |at: &(usize, usize)| {
        let mean = value(*at, metrics::RESPONSE_MEAN);
        mean.is_some_and(|mean| value(*at, metrics::RESPONSE_P95).is_some_and(|p95| mean > p95))
    };
    let mut names: Vec<&str> =
        view.places().filter(is_beyond).map(|(variant, _)| view.variant(variant)).collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "For {}, the mean response time exceeds the p95: a few very slow transactions dominate it \
             (see the longest response time).",
            crate::words::list(&names)
        )
    })
}

/// Steps beyond which tables are set more tightly.
const DENSE_FROM: usize = 6;

/// The metrics in groups: those that steps are judged by and what activities declare, costs, others.
struct Groups {
    main: Vec<MetricId>,
    costs: Vec<MetricId>,
    others: Vec<MetricId>,
}

impl Groups {
    /// Of main metrics and costs also those that have no value, because they come with a reason.
    fn new(view: &View<'_>) -> Groups {
        let (mut main, mut costs, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let is_known = |metric: &&Metric| {
            let is_absent = |cell: &dyno_analysis::Cell| cell.absent.contains_key(&metric.id);
            view.has(metric.id) || view.findings.cells.iter().any(is_absent)
        };
        let declared: Vec<MetricId> = view.findings.metrics.declared().map(|m| m.id).collect();
        let first = view.main_metrics();
        for metric in view.findings.metrics.iter().filter(is_known) {
            let is_main = first.contains(&metric.id) || metric.role == MetricRole::Main;
            let is_declared = declared.contains(&metric.id) && metric.role == MetricRole::Secondary;
            match metric.id {
                id if is_main || is_declared => main.push(id),
                id if is_cost(id) => costs.push(id),
                id if view.has(id) => others.push(id),
                _ => {}
            }
        }
        Groups { main, costs, others }
    }
}

/// Whether a metric is what the work cost: `server_cpu_per_transaction`.
pub(crate) fn is_cost(metric: MetricId) -> bool {
    metric.as_str().contains("_per_")
}

/// A table for each metric: a row for each variant, a column for each step.
fn by_step(out: &mut Markup, view: &View<'_>) {
    let groups = Groups::new(view);
    for metric in groups.main {
        table(out, view, metric);
    }
    if !groups.costs.is_empty() {
        out.element("h3", "Cost of a transaction");
        groups.costs.into_iter().for_each(|metric| table(out, view, metric));
    }
    if !groups.others.is_empty() {
        let is_time =
            |metric: &MetricId| view.metric(*metric).unit == dyno_units::Unit::Microseconds;
        let what = if groups.others.iter().all(is_time) { "response times" } else { "metrics" };
        out.raw(format_args!("<details class=\"fold\"><summary>More {what}</summary>"));
        groups.others.into_iter().for_each(|metric| table(out, view, metric));
        out.raw("</details>");
    }
}

/// With one step there is room for all metrics side by side.
fn one_step(out: &mut Markup, view: &View<'_>) {
    let Groups { main, costs, others } = Groups::new(view);
    let (shown, missing): (Vec<MetricId>, Vec<MetricId>) =
        [main, costs].concat().into_iter().partition(|metric| view.has(*metric));
    for metrics in [shown, others].iter().filter(|metrics| !metrics.is_empty()) {
        metrics_table(out, view, metrics);
    }
    missing.into_iter().for_each(|metric| absent(out, view, metric));
}

fn metrics_table(out: &mut Markup, view: &View<'_>, metrics: &[MetricId]) {
    out.raw("<div class=\"scroll\"><table class=\"heat\"><thead><tr><th>Variant</th>");
    for metric in metrics {
        out.raw("<th class=\"n\" scope=\"col\">")
            .text(view.heading_with_unit(*metric))
            .raw("</th>");
    }
    out.raw("</tr></thead><tbody>");
    for variant in 0..view.findings.variants.len() {
        row_head(out, view, variant);
        metrics.iter().for_each(|metric| cell(out, view, (variant, 0), *metric));
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn row_head(out: &mut Markup, view: &View<'_>, variant: usize) {
    out.raw(format_args!("<tr class=\"v{variant}\"><th scope=\"row\">"));
    out.raw(parts::name(view, variant));
    let is_even =
        view.findings.variants.windows(2).all(|pair| pair[0].finished == pair[1].finished);
    let finished = view.findings.variants[variant].finished;
    let remarks = [
        parts::is_baseline(view, variant).then(|| "baseline".to_owned()),
        mode(view, variant),
        (!is_even).then(|| format!("n = {finished}")),
    ];
    let remarks: Vec<String> = remarks.into_iter().flatten().collect();
    if !remarks.is_empty() {
        out.element("small", remarks.join(", "));
    }
    out.raw("</th>");
}

/// How TPC-C's transactions follow each other, which its throughput means nothing without; none of
/// other workloads.
fn mode(view: &View<'_>, variant: usize) -> Option<String> {
    let modes = (0..view.findings.steps.len()).map(|step| field::mode(view, (variant, step)));
    let mut modes: Vec<String> = modes
        .map(|mode| mode.trim_start_matches(", ").to_owned())
        .filter(|m| !m.is_empty())
        .collect();
    modes.dedup();
    (!modes.is_empty()).then(|| modes.join(" and "))
}

fn table(out: &mut Markup, view: &View<'_>, metric: MetricId) {
    let findings = view.findings;
    if !view.has(metric) {
        absent(out, view, metric);
        return;
    }
    // Many steps fit beside each other when bounds are below their values.
    let dense = if findings.steps.len() > DENSE_FROM { " dense" } else { "" };
    out.raw(format_args!("<div class=\"scroll\"><table class=\"heat{dense}\"><caption>"));
    out.text(view.heading_with_unit(metric));
    let direction = match view.metric(metric).better {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "",
    };
    out.raw(format_args!(" <span>{direction}</span></caption><thead><tr><th>Variant</th>"));
    for step in &findings.steps {
        out.raw(format_args!("<th class=\"n\" scope=\"col\">{}</th>", escape(&step.name)));
    }
    out.raw("</tr></thead><tbody>");
    for variant in 0..findings.variants.len() {
        row_head(out, view, variant);
        for step in 0..findings.steps.len() {
            cell(out, view, (variant, step), metric);
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn cell(out: &mut Markup, view: &View<'_>, (variant, step): (usize, usize), metric: MetricId) {
    let Some(cell) = view.cell(variant, step) else {
        out.raw("<td class=\"n none\">not measured</td>");
        return;
    };
    let Some(estimate) = cell.metrics.get(&metric) else {
        let reason = cell.absent.get(&metric).map_or("not measured", String::as_str);
        out.raw(format_args!("<td class=\"n none\" title=\"{}\">–</td>", escape(reason)));
        return;
    };
    let comparison = view.comparison(variant, step, metric);
    let title = parts::describe(view.variant(variant), view.step(step), estimate);
    let (class, style) = match comparison.and_then(|c| parts::heat(view.judged(c), c)) {
        Some((class, strength)) => (class, format!(" style=\"--h:{strength}%\"")),
        None => ("", String::new()),
    };
    out.raw(format_args!("<td class=\"n {class}\"{style} title=\"{}\">", escape(&title)));
    estimate_text(out, view, (estimate, view.few(variant, step, metric)), comparison);
    out.raw("</td>");
}

fn estimate_text(
    out: &mut Markup,
    view: &View<'_>,
    (estimate, few): (&Estimate, &str),
    comparison: Option<&Comparison>,
) {
    let (value, spread) = format::value_and_spread(estimate);
    out.element("b", format!("{value}{few}"));
    if !spread.is_empty() {
        let class = if spread.starts_with('(') { "range" } else { "" };
        out.raw(" ").classed("i", class, spread);
    }
    let naked = if estimate.n == 1 { "n = 1, no CI" } else { "" };
    let Some(comparison) = comparison else {
        out.element("small", naked);
        return;
    };
    // A sign beside the colour, and a word for those who see neither.
    let effect = view.effect_style(comparison.metric).show(comparison.relative.value);
    let joint = if naked.is_empty() { "" } else { ", " };
    out.raw("<small>").raw(parts::sign(view.judged(comparison)));
    out.text(format!(" {effect}{joint}{naked}")).raw("</small>");
}

/// Says why a metric is nowhere, each reason once.
fn absent(out: &mut Markup, view: &View<'_>, metric: MetricId) {
    let mut reasons: Vec<&str> = view
        .findings
        .cells
        .iter()
        .filter_map(|c| c.absent.get(&metric).map(String::as_str))
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    // Without load nobody expects response times.
    if reasons.is_empty() && dyno_analysis::is_watched(view.findings) {
        return;
    }
    let reasons: Vec<String> = match reasons.is_empty() {
        true => vec!["It was not measured.".to_owned()],
        false => reasons.into_iter().map(parts::full_sentence).collect(),
    };
    out.raw("<p class=\"absent\">").element("b", view.heading(metric)).raw(": not available. ");
    out.prose(&reasons.join(" ")).raw("</p>");
}

/// Attempts by outcome, where any did not commit.
fn outcomes(view: &View<'_>) -> Option<Block> {
    let cells = &view.findings.cells;
    let counted = |cell: &'_ dyno_analysis::Cell| -> Vec<String> {
        cell.outcomes.iter().filter(|(_, n)| **n > 0).map(|(name, _)| name.clone()).collect()
    };
    let mut names: Vec<String> = cells.iter().flat_map(counted).collect();
    names.sort_unstable();
    names.dedup();
    if names.iter().all(|name| name == "committed")
        && cells.iter().all(|cell| cell.missed == 0 && cell.retries == 0)
    {
        let text = "Every attempt committed: no retries, no missed arrivals.";
        return (!names.is_empty()).then(|| Block::Paragraph(text.to_owned()));
    }
    let heads = ["Variant", view.step_head()].map(str::to_owned).into_iter();
    let heads = heads.chain(names.iter().map(|name| name.replace('_', " ")));
    let heads: Vec<String> = heads.chain(["retries", "missed"].map(str::to_owned)).collect();
    let mut table = Table::new("", &heads, 2);
    for (variant, step) in view.places() {
        let Some(cell) = view.cell(variant, step) else { continue };
        let counts = names.iter().map(|name| cell.outcomes.get(name).copied().unwrap_or(0));
        let counts = counts.chain([cell.retries, cell.missed]).map(format::grouped);
        let place =
            [Cell::Variant(variant, view.variant(variant).to_owned()), view.step(step).into()];
        table.row(place.into_iter().chain(counts.map(Cell::from)));
    }
    Some(Block::Fold {
        summary: "Attempts by outcome, retries, missed arrivals".to_owned(),
        is_open: false,
        blocks: vec![Block::Table(table)],
    })
}
