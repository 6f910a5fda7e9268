//! The numbers: throughput, p95 and cost for each variant and step, coloured by the effect.

use dyno_analysis::{Comparison, Estimate, Metric};

use super::{cost, kinds, parts, searches};
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;
use crate::{field, format};

/// Writes the section.
pub(crate) fn section(out: &mut Markup, view: &View<'_>) {
    let lead = format!(
        "Geometric mean over {}; ± or (low–high) is its {} CI. The second line of a cell is the effect \
         against the baseline: ▲ better, ▼ worse, = no difference, ? inconclusive.",
        parts::repetitions(view),
        parts::confidence(view)
    );
    parts::open_section(out, "numbers", "The numbers", &lead);
    if view.findings.steps.len() == 1 {
        one_step(out, view);
    } else {
        by_step(out, view);
    }
    cost::tables(out, view);
    kinds::tables(out, view);
    outcomes(out, view);
    searches::section(out, view);
    out.raw("</section>");
}

/// Steps beyond which tables are set more tightly.
const DENSE_FROM: usize = 6;

/// The metrics of cost, those of the server first.
const COSTS: [Metric; 4] = [
    Metric::ServerCpuPerTransaction,
    Metric::DiskReadPerTransaction,
    Metric::DiskWrittenPerTransaction,
    Metric::GeneratorCpuPerStatement,
];

/// Response times beside p95.
const MORE_TIMES: [Metric; 6] = [
    Metric::ResponseMean,
    Metric::ResponseP50,
    Metric::ResponseP99,
    Metric::ResponseP999,
    Metric::ResponseMax,
    Metric::ServiceP95,
];

/// A table for each metric: a row for each variant, a column for each step.
fn by_step(out: &mut Markup, view: &View<'_>) {
    let found = [Metric::RateAtLimit, Metric::ClientsAtLimit].into_iter().filter(|m| view.has(*m));
    let found = found.chain([Metric::StepTime].into_iter().filter(|m| view.has(*m)));
    for metric in found.chain([Metric::Throughput, Metric::ResponseP95]) {
        table(out, view, metric);
    }
    out.element("h3", "Cost of a transaction");
    for metric in COSTS {
        table(out, view, metric);
    }
    if MORE_TIMES.iter().any(|m| view.has(*m)) {
        out.raw("<details class=\"fold\"><summary>More response times</summary>");
        MORE_TIMES.iter().filter(|m| view.has(**m)).for_each(|m| table(out, view, *m));
        out.raw("</details>");
    }
}

/// With one step there is room for all metrics side by side.
fn one_step(out: &mut Markup, view: &View<'_>) {
    let main =
        [Metric::RateAtLimit, Metric::ClientsAtLimit, Metric::Throughput, Metric::ResponseP95];
    for metrics in [[main.as_slice(), &COSTS].concat(), MORE_TIMES.to_vec()] {
        let shown: Vec<Metric> = metrics.iter().copied().filter(|m| view.has(*m)).collect();
        if !shown.is_empty() {
            metrics_table(out, view, &shown);
        }
    }
    let missing = main[2..].iter().chain(&COSTS).filter(|m| !view.has(**m));
    missing.for_each(|m| absent(out, view, *m));
}

fn metrics_table(out: &mut Markup, view: &View<'_>, metrics: &[Metric]) {
    out.raw("<div class=\"scroll\"><table class=\"heat\"><thead><tr><th>Variant</th>");
    for metric in metrics {
        out.raw("<th class=\"n\" scope=\"col\">").text(title(*metric)).raw("</th>");
    }
    out.raw("</tr></thead><tbody>");
    for variant in 0..view.findings.variants.len() {
        row_head(out, view, variant);
        metrics.iter().for_each(|metric| cell(out, view, (variant, 0), *metric));
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

/// Opens a row with the variant's name.
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

/// A metric's name with a capital.
pub(crate) fn title(metric: Metric) -> String {
    let name = words::metric(metric);
    // Percentiles are written small: p95, not P95.
    if name.starts_with('p') && name[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return name.to_owned();
    }
    let mut chars = name.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn table(out: &mut Markup, view: &View<'_>, metric: Metric) {
    let findings = view.findings;
    if !view.has(metric) {
        absent(out, view, metric);
        return;
    }
    // Many steps fit beside each other when bounds are below their values.
    let dense = if findings.steps.len() > DENSE_FROM { " dense" } else { "" };
    out.raw(format_args!("<div class=\"scroll\"><table class=\"heat{dense}\"><caption>"));
    out.text(title(metric));
    let direction =
        if words::is_more_better(metric) { "higher is better" } else { "lower is better" };
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

fn cell(out: &mut Markup, view: &View<'_>, (variant, step): (usize, usize), metric: Metric) {
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
    let (class, style) = match comparison.and_then(parts::heat) {
        Some((class, strength)) => (class, format!(" style=\"--h:{strength}%\"")),
        None => ("", String::new()),
    };
    out.raw(format_args!("<td class=\"n {class}\"{style} title=\"{}\">", escape(&title)));
    estimate_text(out, view, estimate, comparison);
    out.raw("</td>");
}

fn estimate_text(
    out: &mut Markup,
    view: &View<'_>,
    estimate: &Estimate,
    comparison: Option<&Comparison>,
) {
    let (value, spread) = format::value_and_spread(estimate);
    out.element("b", value);
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
    out.raw("<small>").raw(parts::sign(comparison.verdict));
    out.text(format!(" {effect}{joint}{naked}")).raw("</small>");
}

/// Says why a metric is nowhere, each reason once.
fn absent(out: &mut Markup, view: &View<'_>, metric: Metric) {
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
    let reason =
        if reasons.is_empty() { "It was not measured.".to_owned() } else { reasons.join(" ") };
    out.raw("<p class=\"absent\">").element("b", title(metric)).raw(": not available. ");
    out.prose(&parts::sentence(&reason)).raw("</p>");
}

/// Attempts by outcome, where any did not commit.
fn outcomes(out: &mut Markup, view: &View<'_>) {
    let mut names: Vec<&str> = view
        .findings
        .cells
        .iter()
        .flat_map(|c| c.outcomes.iter().filter(|(_, n)| **n > 0).map(|(name, _)| name.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup();
    let is_clean = names.iter().all(|n| *n == "committed")
        && view.findings.cells.iter().all(|c| c.missed == 0 && c.retries == 0);
    if is_clean {
        if !names.is_empty() {
            let text = "Every attempt committed: no retries, no missed arrivals.";
            out.classed("p", "lead", text);
        }
        return;
    }
    out.raw(
        "<details class=\"fold\"><summary>Attempts by outcome, retries, missed arrivals</summary>",
    );
    out.raw("<div class=\"scroll\"><table><thead><tr><th>Variant</th><th>Step</th>");
    for name in &names {
        out.raw(format_args!("<th class=\"n\">{}</th>", escape(&name.replace('_', " "))));
    }
    out.raw("<th class=\"n\">retries</th><th class=\"n\">missed</th></tr></thead><tbody>");
    for (variant, step) in view.places() {
        let Some(cell) = view.cell(variant, step) else { continue };
        out.raw(format_args!("<tr class=\"v{variant}\"><th scope=\"row\">"));
        out.raw(parts::name(view, variant)).raw("</th>").element("td", view.step(step));
        let counts = names.iter().map(|n| cell.outcomes.get(*n).copied().unwrap_or(0));
        for count in counts.chain([cell.retries, cell.missed]) {
            out.classed("td", "n", format::grouped(count));
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div></details>");
}
